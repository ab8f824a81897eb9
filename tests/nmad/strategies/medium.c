/*
 * Which messages leave in parts that are packets, and which by rendezvous, over
 * two rails of which it is known how fast they are: the packets that leave for
 * each, as a trace.
 */
#include "../../check.h"

#include <errno.h>
#include <stdio.h>

#include <base/clock.h>
#include <nmad/nmad.h>
#include <pioman/pioman.h>

#include "../core/mock.h"

enum {
	SESSION = 5,
	THRESHOLD = 32768,
	PACKET = 40000,
	LARGEST = 1 << 20,
	TRACE = 200
};

extern const struct nm_strategy nm_strategy_default, nm_strategy_split,
	nm_strategy_prio, nm_strategy_fifo, nm_strategy_aggreg;

static struct nm_core core;
static struct nm_session *session;
static struct nm_gate *peer;
static struct nm_curve body, eager;
static char memory[LARGEST];
static struct nm_sr_request reqs[4];
static int nreqs;
static char trace[TRACE];
static bool idle;
static struct nm_pkt *held; /* by a driver that does not let it go */
static bool holds;

/* Instead of pioman's. */
int piom_any_idle(void)
{
	return idle;
}

/* --- the driver --- */

static void note(int rail, const unsigned char *packet, size_t length)
{
	size_t at = NM_WIRE_HEAD, end = strlen(trace);
	struct nm_wire_chunk c;

	CHECK_INT(nm_wire_get_chunk(packet, length, &at, &c), 0);
	switch (c.kind) {
	case NM_WIRE_KIND_EAGER:
		snprintf(trace + end, TRACE - end, "%d:eager %lu ", rail,
			 c.length);
		break;
	case NM_WIRE_KIND_PART:
		snprintf(trace + end, TRACE - end, "%d:part %u+%u ", rail,
			 c.offset, c.tail_len);
		break;
	case NM_WIRE_KIND_RTS:
		snprintf(trace + end, TRACE - end, "%d:rts of %d ", rail,
			 c.nparts);
		break;
	}
}

static int mock_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	static unsigned char packet[PACKET];

	CHECK(nm_pkt_length(pkt) <= PACKET);
	nm_pkt_copy(pkt, packet);
	note(link->rail->index, packet, nm_pkt_length(pkt));
	if (!holds)
		return NM_SENT;
	held = pkt;
	return NM_POSTED;
}

static bool mock_poll(struct nm_rail *rail, int budget)
{
	struct nm_pkt *pkt = held;

	(void)budget;
	if (pkt == NULL || holds || pkt->link->rail != rail)
		return false;
	held = NULL;
	nm_rail_sent(rail, pkt);
	return true;
}

static const struct nm_driver mock = {
	.name = "mock",
	.max_small = PACKET,
	.post_send = mock_post_send,
	.poll = mock_poll,
};

static void progress(void)
{
	for (int i = 0; i < 4; i++)
		nm_core_progress(&core);
}

/* --- two rails of 2.3 us and 1.2 GB/s, 10 us more by rendezvous --- */

static void line(struct nm_curve *c, double latency)
{
	*c = (struct nm_curve){ 0 };
	CHECK_INT(nm_curve_add(c, 0, latency), 0);
	CHECK_INT(nm_curve_add(c, 1e6, latency + 1e6 / 1.2), 0);
}

static void setup(void)
{
	mock_core_rails(&core, &mock, 1 << 20, 2);
	core.config.rdv_threshold = THRESHOLD;
	core.config.strategy = &nm_strategy_split;
	peer = &core.gates[1];
	line(&eager, 2300);
	line(&body, 12300);
	for (int i = 0; i < 2; i++) {
		core.rails[i].curve = &body;
		core.rails[i].eager = &eager;
	}
	nm_rails_thresholds(&core);
	CHECK_INT(load_relaxed(&peer->eager_max), THRESHOLD);
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
	trace[0] = 0;
	nreqs = 0;
	idle = true;
	holds = false;
}

/* What has been announced is never asked for. */
static void teardown(void)
{
	struct nm_pass pass;

	holds = false;
	progress();
	nm_core_lock(&core);
	nm_core_settle(&core, &pass);
	nm_gate_fail(&pass, peer, -ECONNRESET);
	nm_core_unlock(&core, &pass);
	progress();
	for (int i = 0; i < nreqs; i++)
		CHECK(nm_sr_is_complete(&reqs[i]));
	CHECK_INT(nm_core_session_close(session), 0);
	nm_core_exit(&core);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

static void send_bytes(size_t bytes, int priority)
{
	struct nm_data d = nm_data_flat(memory, bytes);

	CHECK_INT(nm_sr_isend_priority(session, peer, 0, &d, 0, priority,
				       &reqs[nreqs++]),
		  0);
	progress();
}

/* The first of the two links comes first: so it is whose turn it is. */
static const char *sent_for(size_t bytes)
{
	trace[0] = 0;
	nreqs = 0;
	peer->turn = 0;
	send_bytes(bytes, 0);
	return trace;
}

#define EXPECT(bytes, want)                                                    \
	do {                                                                   \
		const char *got_ = sent_for(bytes);                            \
		if (strcmp(got_, want) != 0)                                   \
			check_fail(__FILE__, __LINE__, "%s, not %s", got_,     \
				   want);                                      \
	} while (0)

/* --- rules --- */

/* A part above the threshold starts a rendezvous; below it, it is handed over.
 */
TEST(parts_below_the_threshold_are_packets_and_others_a_rendezvous)
{
	static const struct nm_strategy *const all[] = { &nm_strategy_default,
							 &nm_strategy_split,
							 &nm_strategy_prio };

	core.config.strategy = all[check_random() % 3];
	EXPECT(16000, "0:eager 16000 ");
	EXPECT(16384, "0:part 0+8192 1:part 8192+8192 ");
	EXPECT(32768, "0:part 0+16384 1:part 16384+16384 ");
	EXPECT(65536, "0:part 0+32768 1:part 32768+32768 ");
	EXPECT(65536 + 256, "0:rts of 2 ");
	CHECK_INT(load_relaxed(&core.stats.cut_out), 3);
}

TEST(where_nobody_is_idle_no_message_is_cut)
{
	idle = false;
	EXPECT(16384, "0:eager 16384 ");
	EXPECT(32768, "0:eager 32768 ");
	EXPECT(40000, "0:rts of 2 ");
}

TEST(strategies_that_cut_nothing_do_not_cut_messages)
{
	core.config.strategy =
		check_random() % 2 ? &nm_strategy_fifo : &nm_strategy_aggreg;
	nm_rails_thresholds(&core);
	EXPECT(32768, "0:eager 32768 ");
	EXPECT(40000, "0:rts of 1 ");
}

TEST(where_one_rail_is_not_known_no_message_is_cut)
{
	core.rails[1].eager = NULL;
	nm_rails_thresholds(&core);
	EXPECT(32768, "0:eager 32768 ");
}

TEST(who_drives_the_rails_under_the_cores_lock_cuts_no_message)
{
	core.config.lock = NM_LOCK_COARSE;
	nm_rails_thresholds(&core);
	EXPECT(32768, "0:eager 32768 ");
}

TEST(a_link_whose_packet_is_under_way_gets_no_part)
{
	holds = true;
	EXPECT(100, "0:eager 100 ");
	trace[0] = 0;
	send_bytes(16384, 0);
	CHECK_INT(strcmp(trace, "1:eager 16384 "), 0);
}

TEST(a_rail_that_moves_bodies_gets_less_or_nothing)
{
	const double hour = 3600e9; /* more than this test is held up */
	double now = (double)base_now_ns();

	core.rails[1].nparts = 1;
	core.rails[1].free_ns = now + hour;
	EXPECT(32768, "0:eager 32768 ");
	core.rails[1].free_ns = now;
	EXPECT(32768, "0:part 0+16384 1:part 16384+16384 ");
	core.rails[1].nparts = 0;
}

TEST(a_message_that_yields_to_an_urgent_one_is_announced)
{
	core.config.strategy = &nm_strategy_prio;
	holds = true;
	EXPECT(100, "0:eager 100 ");
	send_bytes(100, 0);
	trace[0] = 0;
	send_bytes(16384, 0);
	send_bytes(50, 5);
	holds = false;
	progress();
	CHECK(strstr(trace, ":rts of ") != NULL);
	CHECK(strstr(trace, ":part ") == NULL);
}
