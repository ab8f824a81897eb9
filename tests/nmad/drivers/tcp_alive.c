/*
 * drivers/tcp/alive.c, without a network: what the kernel says of connections,
 * and what time it is, this test says. Whom it takes for dead, and when.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "../../../nmad/drivers/tcp/tcp.h"
#include "../../check.h"

enum { FD = 1000, BOUND = 60000, PERIOD = BOUND / 6, FOREVER = 1000 };

/* --- the kernel, and the rest of the driver --- */

static uint64_t now; /* ms */

static struct {
	int unacknowledged;  /* bytes */
	uint8_t retransmits; /* since the last answer */
	uint64_t heard;      /* ms: when that was */
} kernel;

struct base_option nm_tcp_options[TCP_NOPTS];
static struct tcp tcp;
static struct tcp_peer peer;
static bool dead;

uint64_t nm_tcp_now(void)
{
	return now;
}

void nm_tcp_alarm_by(struct tcp *t, uint64_t ms)
{
	CHECK_PTR(t, &tcp);
	CHECK(ms > now);
}

void nm_tcp_dead(struct tcp *t, struct tcp_peer *p, int error)
{
	CHECK_PTR(t, &tcp);
	CHECK_PTR(p, &peer);
	CHECK_INT(error, -ETIMEDOUT);
	p->sock.fd = -1;
	dead = true;
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	struct tcp_info *info = value;

	CHECK_INT(fd, FD);
	CHECK_INT(level, IPPROTO_TCP);
	CHECK_INT(name, TCP_INFO);
	CHECK_INT(*length, sizeof(*info));
	info->tcpi_retransmits = kernel.retransmits;
	info->tcpi_last_ack_recv = (uint32_t)(now - kernel.heard);
	return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;

	CHECK_INT(fd, FD);
	CHECK_INT(request, SIOCOUTQ);
	va_start(ap, request);
	*va_arg(ap, int *) = kernel.unacknowledged;
	va_end(ap);
	return 0;
}

/* --- what happens --- */

/* A connection over which nothing is on its way. */
static void begin(void)
{
	now = 1000000;
	dead = false;
	memset(&kernel, 0, sizeof(kernel));
	memset(&tcp, 0, sizeof(tcp));
	memset(&peer, 0, sizeof(peer));
	nm_tcp_options[TCP_OPT_DEAD].value = BOUND / 1000;
	base_list_init(&tcp.used);
	base_list_push_back(&tcp.used, &peer.on_used);
	peer.sock.fd = FD;
	kernel.heard = now;
}

/* Something is given to the socket. */
static void post(void)
{
	kernel.unacknowledged = 100;
	nm_tcp_alive_sent(&tcp);
}

static void answer(void)
{
	kernel.unacknowledged = 0;
	kernel.retransmits = 0;
	kernel.heard = now;
}

static void look(void)
{
	nm_tcp_alive_look(&tcp, now);
}

/* Time passes up to then, with all looks that are due. */
static void go_on_until(uint64_t then)
{
	while (tcp.next_look != 0 && tcp.next_look <= then) {
		now = tcp.next_look;
		look();
	}
	now = then;
}

TEST(who_answers_nothing_is_dead_within_the_bound_and_not_before_two_thirds)
{
	uint64_t silent;

	begin();
	post();
	silent = now;
	kernel.retransmits = 1;
	go_on_until(silent + BOUND * 2 / 3);
	CHECK(!dead);
	go_on_until(silent + BOUND);
	CHECK(dead);
}

TEST(who_has_been_silent_for_long_before_it_was_asked_has_as_much_time)
{
	begin();
	now += 100 * BOUND;
	post();
	kernel.retransmits = 1;
	go_on_until(now + BOUND * 2 / 3);
	CHECK(!dead);
	answer();
	go_on_until(now + BOUND);
	CHECK(!dead);
}

/* A stopped process, whose kernel has no room: each question has an answer. */
TEST(who_answers_and_acknowledges_nothing_is_never_dead)
{
	begin();
	post();
	for (int i = 0; i < FOREVER; i++) {
		kernel.retransmits = 1;
		go_on_until(now + PERIOD - 1);
		kernel.heard = now;
	}
	CHECK(!dead);
}

/* After a third nothing is lost, and the kernel asks again in as long a time.
 */
TEST(trouble_of_a_third_of_the_bound_whenever_it_begins_loses_nothing)
{
	for (uint64_t at = 0; at < 2 * PERIOD; at += PERIOD / 10) {
		begin();
		post();
		go_on_until(now + at);
		kernel.heard = now;
		kernel.retransmits = 1;
		go_on_until(now + BOUND * 2 / 3 - 1);
		CHECK(!dead);
		answer();
		go_on_until(now + BOUND);
		CHECK(!dead);
		CHECK_INT(tcp.next_look, 0);
	}
}

/* A machine that stood still: its kernel has asked nobody, either. */
TEST(who_was_away_takes_nobody_for_dead)
{
	begin();
	post();
	kernel.retransmits = 1;
	go_on_until(now + BOUND / 2);
	now += 10 * BOUND;
	look();
	CHECK(!dead);
	answer();
	go_on_until(now + BOUND);
	CHECK(!dead);
}

TEST(an_answer_at_the_very_time_of_a_look_ends_what_was_in_doubt)
{
	begin();
	post();
	kernel.retransmits = 1;
	go_on_until(now + PERIOD);
	CHECK_INT(tcp.next_look, now + PERIOD);
	answer();
	go_on_until(now + 100 * BOUND);
	CHECK_INT(tcp.next_look, 0);
	post();
	kernel.retransmits = 1;
	go_on_until(now + BOUND / 3);
	CHECK(!dead);
}

TEST(who_waits_is_not_woken_once_all_is_acknowledged)
{
	begin();
	post();
	CHECK(tcp.next_look > now);
	answer();
	go_on_until(now + PERIOD);
	CHECK_INT(tcp.next_look, 0);
}

/* --- who has taken a call --- */

TEST(who_has_to_be_asked_twice_has_not_gone)
{
	begin();
	CHECK(nm_tcp_alive_answers(FD));
	kernel.retransmits = 1;
	now += BOUND / 3;
	CHECK(nm_tcp_alive_answers(FD));
	now += BOUND / 3;
	CHECK(!nm_tcp_alive_answers(FD));
}
