/*
 * The simulated network over a driver that the test plays itself: what it holds
 * when more comes than is due, and what it is asked for.
 */
#include "../../check.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../../nmad/boot/boot.h"
#include "../../../nmad/core/rail.h"

enum {
	BUDGET = 32,
	POLLS = 20,
	PACKETS = BUDGET * POLLS,
	PEER = 1,
	OTHER = 0,
	RANKS = 2
};

extern const struct nm_driver nm_driver_sim;

static struct nm_rail rail;
static struct nm_rail_stats stats;
static struct nm_link links[RANKS];
static struct nm_rail *inner;

/* What the inner driver has reported, what has come of it. */
static struct nm_pkt_in packets[PACKETS], others[PACKETS];
static struct nm_xfer xfers[POLLS];
static int npackets, nreleased, ndelivered, nstarted, nended;
static bool at_once; /* transfers end in the slot that starts them */
static int goes_on;  /* so many packets of the other peer come with a poll */
static int nothers;
static bool one_more; /* and once as many of the first as there is room */

/* --- the clock: the test's, if that is not 0 --- */

static uint64_t clock_ns;

int clock_gettime(clockid_t id, struct timespec *ts)
{
	if (clock_ns == 0)
		return (int)syscall(SYS_clock_gettime, id, ts);
	ts->tv_sec = 0;
	ts->tv_nsec = (long)clock_ns;
	return 0;
}

/* --- the inner driver --- */

static int played_open(struct nm_rail *r, const struct nm_boot_info *info,
		       const char *spec)
{
	(void)info;
	(void)spec;
	inner = r;
	return 0;
}

static void played_close(struct nm_rail *r)
{
	CHECK_PTR(r, inner);
}

static int played_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	(void)link;
	(void)pkt;
	return NM_SENT;
}

static int played_xfer(struct nm_xfer *x)
{
	CHECK_PTR(x->link, &inner->links[PEER]);
	if (at_once)
		nm_rail_xfer_done(inner, x, 0);
	else
		nstarted++;
	return 0;
}

static bool played_is_busy(const struct nm_rail *r)
{
	CHECK_PTR(r, inner);
	return false;
}

static int played_arm(struct nm_rail *r)
{
	CHECK_PTR(r, inner);
	return 0;
}

/* A transfer is over, then come as many packets as are asked for. */
static bool played_poll(struct nm_rail *r, int budget)
{
	for (int i = 0; i < goes_on && budget > 0; i++, budget--) {
		struct nm_pkt_in *in = &others[nothers++ % PACKETS];

		in->link = &r->links[OTHER];
		nm_rail_recv(r, in);
	}
	if (goes_on && !one_more)
		return true;
	one_more = false;
	if (nstarted > 0)
		nm_rail_xfer_done(r, &xfers[--nstarted], 0);
	for (; budget > 0; budget--) {
		struct nm_pkt_in *in = &packets[npackets++];

		CHECK(npackets <= PACKETS);
		in->link = &r->links[PEER];
		nm_rail_recv(r, in);
	}
	return true;
}

static void played_release(struct nm_rail *r, struct nm_pkt_in *in)
{
	CHECK_PTR(r, inner);
	CHECK((in >= packets && in < packets + npackets) ||
	      (in >= others && in < others + PACKETS));
	nreleased++;
}

static const struct nm_driver played = {
	.name = "played",
	.max_small = 4096,
	.open = played_open,
	.close = played_close,
	.post_send = played_post_send,
	.poll = played_poll,
	.arm = played_arm,
	.is_busy = played_is_busy,
	.release = played_release,
	.xfer_recv = played_xfer,
	.xfer_send = played_xfer,
};

const struct nm_driver *const nm_drivers[] = { &played, &nm_driver_sim, NULL };

/* --- the core --- */

void nm_rail_recv(struct nm_rail *r, struct nm_pkt_in *in)
{
	if (r->up != NULL) {
		r->up->recv(r, in);
		return;
	}
	if (in->link == &links[PEER])
		ndelivered++;
	nm_driver_sim.release(r, in);
}

void nm_rail_xfer_done(struct nm_rail *r, struct nm_xfer *x, int status)
{
	if (r->up != NULL) {
		r->up->xfer_done(r, x, status);
		return;
	}
	CHECK_PTR(x->link, &links[PEER]);
	CHECK_INT(status, 0);
	nended++;
}

/* Nothing of that is reported here. */
void nm_rail_sent(struct nm_rail *r, struct nm_pkt *pkt)
{
	(void)pkt;
	CHECK_PTR(r, NULL);
}

void nm_rail_xfer_ready(struct nm_rail *r, struct nm_xfer *x)
{
	(void)x;
	CHECK_PTR(r, NULL);
}

void nm_rail_link_dead(struct nm_rail *r, struct nm_link *link, int error)
{
	if (r->up != NULL)
		r->up->link_dead(r, link, error);
}

static int open_as(const char *spec)
{
	static const struct nm_boot_info info = { .size = RANKS };

	memset(&rail, 0, sizeof(rail));
	memset(links, 0, sizeof(links));
	memset(xfers, 0, sizeof(xfers));
	npackets = nreleased = ndelivered = nstarted = nended = 0;
	at_once = one_more = false;
	goes_on = 0;
	nothers = 0;
	clock_ns = 0;
	rail.driver = &nm_driver_sim;
	rail.stats = &stats;
	rail.links = links;
	rail.nlinks = RANKS;
	rail.fd = -1;
	for (int i = 0; i < RANKS; i++) {
		links[i].rail = &rail;
		links[i].rank = i;
	}
	return nm_driver_sim.open(&rail, &info, spec);
}

static void start_xfers(void)
{
	for (int i = 0; i < POLLS; i++) {
		xfers[i].link = &links[PEER];
		xfers[i].length = 1;
		CHECK_INT(nm_driver_sim.xfer_recv(&xfers[i]), 0);
	}
}

TEST(transfers_that_end_take_no_room_that_packets_were_asked_for)
{
	CHECK_INT(open_as("played,latency=1"), 0);
	clock_ns = 1000; /* nothing is ever due */
	start_xfers();
	for (int i = 0; i < POLLS; i++)
		nm_driver_sim.poll(&rail, BUDGET);
	CHECK_INT(npackets, 256);
	CHECK_INT(nstarted, 0);
	CHECK_INT(ndelivered, 0);
	nm_rail_link_dead(inner, &inner->links[PEER], -ECONNRESET);
	CHECK_INT(ndelivered, npackets);
	CHECK_INT(nreleased, npackets);
	CHECK_INT(nended, POLLS);
	nm_driver_sim.close(&rail);
}

TEST(what_is_held_of_a_peer_that_is_given_up_goes_back)
{
	CHECK_INT(open_as("played,latency=1"), 0);
	clock_ns = 1000;
	start_xfers();
	for (int i = 0; i < POLLS; i++)
		nm_driver_sim.poll(&rail, BUDGET);
	nm_driver_sim.give_up(&links[PEER]);
	CHECK_INT(nreleased, npackets);
	nm_rail_link_dead(inner, &inner->links[PEER], -ECONNRESET);
	CHECK_INT(nended, 0);
	nm_driver_sim.close(&rail);
}

/* It is held for those that may overtake it, and none of them comes. */
TEST(a_last_packet_does_not_wait_for_another_peer_to_be_quiet)
{
	char spec[32];

	for (int seed = 1; seed <= 8; seed++) {
		snprintf(spec, sizeof(spec), "played,reorder=%d", seed);
		CHECK_INT(open_as(spec), 0);
		clock_ns = 1000;
		nm_driver_sim.poll(&rail, 1);
		CHECK_INT(npackets, 1);
		goes_on = 1;
		for (int i = 0; i < 300; i++) {
			clock_ns += 1000;
			nm_driver_sim.poll(&rail, BUDGET);
		}
		CHECK_INT(ndelivered, 1);
		nm_driver_sim.close(&rail);
	}
}

/* Numbers of two peers say nothing of who came first. */
TEST(who_has_said_much_is_not_passed_by_who_begins)
{
	CHECK_INT(open_as("played,reorder=1"), 0);
	clock_ns = 1000;
	for (int i = 0; i < 10; i++) {
		clock_ns += 1000000;
		nm_driver_sim.poll(&rail, BUDGET);
	}
	goes_on = BUDGET;
	nm_driver_sim.poll(&rail, BUDGET);
	goes_on--;
	one_more = true;
	nm_driver_sim.poll(&rail, BUDGET);
	CHECK_INT(npackets, 10 * BUDGET + 1);
	goes_on++;
	for (int i = 0; i < 3; i++) {
		clock_ns += 1000000;
		nm_driver_sim.poll(&rail, BUDGET);
	}
	CHECK_INT(ndelivered, npackets);
	nm_driver_sim.close(&rail);
}

/* By whom is awake, while the rail promises to tell what comes. */
TEST(an_end_wakes_when_it_is_due_whoever_has_brought_it)
{
	struct pollfd p = { .events = POLLIN };

	CHECK_INT(open_as("played,latency=100"), 0);
	p.fd = rail.fd;
	CHECK_INT(nm_driver_sim.arm(&rail), 0);
	rail.armed = true;
	at_once = true;
	xfers[0].link = &links[PEER];
	CHECK_INT(nm_driver_sim.xfer_send(&xfers[0]), 0);
	CHECK_INT(nended, 0);
	CHECK_INT(poll(&p, 1, -1), 1);
	nm_driver_sim.poll(&rail, 0);
	CHECK_INT(nended, 1);
	nm_driver_sim.close(&rail);
}

TEST(options_out_of_range_are_refused)
{
	static const char *const bad[] = {
		"played,latency=10000001",
		"played,latency=9223372036854775807",
		"played,bandwidth=1000001",
		"played,latency=-1",
		"played,latency=",
		"played,",
		"played,late=1",
		"nothing",
		"sim",
		"",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_INT(open_as(bad[i]), -EINVAL);
	CHECK_INT(open_as("played,latency=10000000,bandwidth=1000000"), 0);
	nm_driver_sim.close(&rail);
}
