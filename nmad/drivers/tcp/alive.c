/*
 * Whether the host of a peer that is silent still lives. NMAD_TCP_DEAD_S bounds
 * how long it may seem to; it is the peer's kernel that is asked, so that a
 * process that is stopped, or computes, is not taken for dead.
 *
 *   nothing is on its way    The kernel asks (keep-alive): after a third of the
 *                            bound, and then every sixth of it.
 *   something is             The kernel sends it again and again, and does not
 *                            tell until it gives up, after some 15 minutes: we
 *                            look. Who has been asked again, and has answered
 *                            nothing for two thirds of the bound, is dead.
 *                            What counts is how often we have looked: while
 *                            this process or its machine was away, nobody was
 *                            asked, or his answers have not been taken up.
 *
 * TCP_USER_TIMEOUT, which is made for the second, also ends a connection whose
 * peer answers that it has no room, as that of a stopped process soon does.
 *
 * We look every sixth of the bound, while something is on its way: what a
 * process sends begins that, and when all is acknowledged it ends, so that who
 * waits is not woken any more. Nothing is lost by trouble on the way that is
 * over within a third of the bound.
 */
#include "tcp.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44 /* Linux 6.15 */
#endif

enum {
	PERIOD_MIN_S = 1, /* what keep-alive can count */
	RTO_MAX_S = 120,
	PERIODS = 6,  /* in the bound */
	DOUBTS = 4,   /* periods: two thirds */
	TICK_MS = 10, /* that two coarse clocks may be apart */
};

static int bound_s(void)
{
	return (int)nm_tcp_options[TCP_OPT_DEAD].value;
}

static uint64_t period_ms(void)
{
	return (uint64_t)bound_s() * 1000 / PERIODS;
}

/*
 * The kernel asks ever more rarely, up to every two minutes: a newer one, not
 * less often than we look.
 */
void nm_tcp_alive_tune(int fd)
{
	int one = 1, idle = bound_s() / 3, every = bound_s() / PERIODS;
	int n, max;

	if (every < PERIOD_MIN_S)
		every = PERIOD_MIN_S;
	n = (bound_s() - idle) / every;
	max = 1000 * (every < RTO_MAX_S ? every : RTO_MAX_S);
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &n, sizeof(n));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &max, sizeof(max));
}

/* ms since it was heard of, if it has been asked again since; else 0. */
static uint64_t unanswered(int fd)
{
	struct tcp_info info = { .tcpi_probes = 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ||
	    (info.tcpi_retransmits == 0 && info.tcpi_probes == 0))
		return 0;
	return info.tcpi_last_ack_recv;
}

bool nm_tcp_alive_answers(int fd)
{
	return unanswered(fd) < DOUBTS * period_ms();
}

static bool is_acknowledged(int fd)
{
	int bytes = 0;

	return ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes == 0;
}

/*
 * False: it is dead. An answer is older than the last look only if it is by the
 * time at which that began, and by the time that it is now.
 */
static bool ask(const struct tcp *tcp, struct tcp_peer *p)
{
	uint64_t silent = unanswered(p->sock.fd);

	if (silent == 0)
		p->doubts = 0;
	else if (silent <= nm_tcp_now() - tcp->looked + TICK_MS)
		p->doubts = 1;
	else
		p->doubts++;
	return p->doubts <= DOUBTS;
}

void nm_tcp_alive_expect(struct tcp *tcp)
{
	tcp->next_look = nm_tcp_now() + period_ms();
	nm_tcp_alarm_by(tcp, tcp->next_look);
}

void nm_tcp_alive_look(struct tcp *tcp, uint64_t now)
{
	bool again = false;

	if (tcp->next_look == 0)
		return;
	if (now < tcp->next_look) {
		nm_tcp_alarm_by(tcp, tcp->next_look);
		return;
	}
	tcp->next_look = 0;
	base_list_for_each (n, &tcp->used) {
		struct tcp_peer *p = container_of(n, struct tcp_peer, on_used);

		if (p->sock.fd < 0)
			continue;
		if (is_acknowledged(p->sock.fd))
			p->doubts = 0;
		else if (ask(tcp, p))
			again = true;
		else
			nm_tcp_dead(tcp, p, -ETIMEDOUT);
	}
	tcp->looked = now;
	if (again)
		nm_tcp_alive_expect(tcp);
}
