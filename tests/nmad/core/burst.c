/*
 * Bursts: what leaves at once, what gathers and until when. A core with one
 * rail whose driver records packets, each of which has left at once.
 */
#include "../../check.h"

#include <errno.h>

#include <base/clock.h>
#include <nmad/nmad.h>

#include "mock.h"

enum {
	BYTES = 8192,
	PACKETS = 64,
	REQS = 256,
	SESSION = 5,
	AT_ONCE = 3, /* of a burst */
};

static const uint64_t hour = 3600000000000u;

extern const struct nm_strategy nm_strategy_aggreg;

static struct nm_core core;
static struct nm_session *session;
static struct nm_gate *peer;
static struct nm_sr_request reqs[REQS];
static char text[REQS][3000];
static unsigned char sent[PACKETS][BYTES];
static size_t length[PACKETS];
static int nsent, nreqs, narmed;

static int record(struct nm_link *link, struct nm_pkt *pkt)
{
	(void)link;
	CHECK(nsent < PACKETS);
	length[nsent] = nm_pkt_length(pkt);
	nm_pkt_copy(pkt, sent[nsent++]);
	return NM_SENT;
}

static bool poll_nothing(struct nm_rail *rail, int budget)
{
	(void)rail;
	(void)budget;
	return false;
}

static int arm(struct nm_rail *rail)
{
	(void)rail;
	narmed++;
	return 0;
}

static bool is_busy(const struct nm_rail *rail)
{
	(void)rail;
	return false;
}

static void offer(struct nm_xfer *x)
{
	x->mine.length = 0;
}

static const struct nm_driver dear = {
	.name = "dear",
	.caps = NM_CAP_DEAR,
	.max_small = BYTES,
	.fill = BYTES,
	.rdv_threshold = 500,
	.post_send = record,
	.poll = poll_nothing,
	.arm = arm,
	.is_busy = is_busy,
	.xfer_offer = offer,
};

static void setup(void)
{
	mock_core(&core, &dear, 100000);
	core.config.strategy = &nm_strategy_aggreg;
	peer = &core.gates[1];
	store_relaxed(&peer->eager_max, 2900);
	peer->is_dear = true;
	core.event = -1;
	core.late_ns = (int64_t)hour;
	nsent = nreqs = narmed = 0;
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
}

static void teardown(void)
{
	struct nm_pass pass;

	nm_core_lock(&core);
	nm_core_settle(&core, &pass);
	nm_gate_fail(&pass, peer, -ECONNRESET);
	nm_core_unlock(&core, &pass);
	for (int i = 0; i < nreqs; i++)
		CHECK(nm_sr_is_complete(&reqs[i]));
	CHECK_INT(nm_core_session_close(session), 0);
	CHECK_INT(load_relaxed(&core.pending), 0);
	nm_core_exit(&core);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

/* However long this test is held up: the send before was just now, or not. */
static void as_if_dense(void)
{
	core.burst_last = base_now_ns() + hour;
}

static void as_if_sparse(void)
{
	core.burst_last = 0;
}

static void send_bytes(size_t bytes)
{
	struct nm_data d = nm_data_flat(text[nreqs], bytes);

	CHECK(nreqs < REQS);
	CHECK_INT(nm_sr_isend(session, peer, (nm_tag_t)nreqs, &d, 0,
			      &reqs[nreqs]),
		  0);
	nreqs++;
}

static void send_many(int n)
{
	for (int i = 0; i < n; i++) {
		as_if_dense();
		send_bytes(8);
	}
}

/* However long this test is held up: it is early, or late, already. */
static void as_if_early(void)
{
	core.burst_ns = base_now_ns() + hour;
}

static void as_if_late(void)
{
	core.burst_ns = 0;
}

/* A burst that gathers, however long it takes. */
static void gather_some(int n)
{
	core.distrust = 0;
	send_many(AT_ONCE + 1);
	as_if_early();
	send_many(n);
}

/* The tags of the i-th packet that left; their number. */
static int tags_of(int i, uint32_t *tags)
{
	struct nm_wire_head h;
	struct nm_wire_chunk c;
	size_t at = NM_WIRE_HEAD;

	CHECK(i < nsent);
	CHECK_INT(nm_wire_get_head(sent[i], length[i], &h), 0);
	for (int n = 0; n < h.nchunks; n++) {
		CHECK_INT(nm_wire_get_chunk(sent[i], length[i], &at, &c), 0);
		tags[n] = c.tag;
	}
	return h.nchunks;
}

TEST(as_long_as_nothing_is_known_all_of_a_burst_leaves_at_once)
{
	send_many(20);
	CHECK_INT(nsent, 20);
	for (int i = 0; i < 20; i++)
		CHECK(nm_sr_is_complete(&reqs[i]));
}

TEST(after_a_poll_that_was_soon_the_next_burst_gathers)
{
	uint32_t tags[REQS];

	send_many(20);
	as_if_early();
	nm_core_progress(&core);
	CHECK_INT(core.distrust, 0);
	gather_some(20 - AT_ONCE - 1);
	CHECK_INT(nsent, 20 + AT_ONCE);
	CHECK(!nm_sr_is_complete(&reqs[20 + AT_ONCE]));
	nm_core_progress(&core);
	CHECK_INT(nsent, 20 + AT_ONCE + 1);
	CHECK_INT(tags_of(20 + AT_ONCE, tags), 20 - AT_ONCE);
	for (uint32_t i = 0; i < 20 - AT_ONCE; i++)
		CHECK_INT(tags[i], 20 + AT_ONCE + i);
	for (int i = 0; i < nreqs; i++)
		CHECK(nm_sr_is_complete(&reqs[i]));
	CHECK(!nm_core_progress(&core));
}

TEST(after_a_poll_that_was_late_the_next_burst_does_not)
{
	gather_some(20);
	CHECK_INT(nsent, AT_ONCE);
	as_if_late();
	nm_core_progress(&core);
	CHECK_INT(nsent, AT_ONCE + 1);
	send_many(20);
	CHECK_INT(nsent, AT_ONCE + 1 + 20);
}

TEST(a_poll_that_was_late_costs_the_more_bursts_the_more_often_it_happens)
{
	static const uint32_t costs[] = { 1, 2, 4, 8, 16, 32, 64, 64 };

	for (size_t i = 0; i < BASE_ARRAY_LEN(costs); i++) {
		gather_some(0);
		as_if_late();
		nm_core_progress(&core);
		CHECK_INT(core.distrust, costs[i]);
	}
	for (uint32_t left = 64; left > 0; left--) {
		CHECK_INT(core.distrust, left);
		nsent = nreqs = 0;
		send_many(AT_ONCE + 2);
		CHECK_INT(nsent, AT_ONCE + 2);
		as_if_early();
		nm_core_progress(&core);
	}
	CHECK_INT(core.distrust, 0);
	CHECK_INT(core.penalty, 64);
}

/* What waits until then waits no longer than the burst has made others wait. */
TEST(a_poll_is_not_late_for_a_burst_that_took_longer)
{
	gather_some(0);
	core.burst_ns = base_now_ns() - hour;
	core.burst_began = core.burst_ns - 2 * hour;
	nm_core_progress(&core);
	CHECK_INT(core.distrust, 0);
}

TEST(a_burst_gathers_once_it_has_lasted_as_long_as_the_last_poll_was_late)
{
	gather_some(0);
	core.burst_ns = base_now_ns() - 2 * hour;
	core.burst_began = core.burst_ns;
	nm_core_progress(&core);
	CHECK_INT(core.distrust, 1);
	nsent = 0;
	send_many(20);
	CHECK_INT(nsent, 20);
	core.burst_began = base_now_ns() - hour;
	send_many(1);
	CHECK_INT(nsent, 21);
	core.burst_began = base_now_ns() - 3 * hour;
	send_many(1);
	CHECK_INT(nsent, 21);
}

/* What all of them are asked for is complete, so that they do not poll. */
TEST(who_tests_or_waits_ends_a_burst)
{
	struct nm_sr_request *first = reqs;
	size_t out[1];

	nm_core_self = &core;
	for (int i = 0; i < 9; i++) {
		gather_some(1);
		CHECK(!nm_sr_is_complete(&reqs[nreqs - 1]));
		if (i == 0)
			nm_sr_wait(first);
		else if (i == 1)
			nm_sr_wait_all(&first, 1);
		else if (i == 2)
			nm_sr_wait_any(&first, 1);
		else if (i == 3)
			nm_sr_wait_some(&first, 1, out);
		else if (i == 4)
			nm_sr_test(first);
		else if (i == 5)
			nm_sr_test_all(&first, 1);
		else if (i == 6)
			nm_sr_test_any(&first, 1);
		else if (i == 7)
			nm_sr_end_burst();
		else
			nm_sr_test_some(&first, 1, out);
		CHECK(nm_sr_is_complete(&reqs[nreqs - 1]));
	}
	nm_core_self = NULL;
}

/* With no poll between, and whatever polls have been. */
TEST(sends_that_are_far_apart_do_not_wait_for_each_other)
{
	core.distrust = 0;
	for (int i = 0; i < 20; i++) {
		as_if_sparse();
		send_bytes(8);
		as_if_late();
		CHECK_INT(nsent, i + 1);
	}
	CHECK_INT(core.distrust, 0);
}

TEST(a_send_knows_how_long_ago_the_one_before_was)
{
	core.distrust = 0;
	as_if_sparse();
	for (int i = 0; i < AT_ONCE; i++)
		send_bytes(8);
	for (int i = 0; i < 2; i++) {
		CHECK(core.burst_last != 0);
		as_if_sparse();
		send_bytes(8);
	}
}

TEST(one_that_comes_late_takes_along_what_has_gathered_before_it)
{
	uint32_t tags[REQS];

	gather_some(1);
	CHECK_INT(nsent, AT_ONCE);
	as_if_early();
	as_if_sparse();
	send_bytes(8);
	CHECK_INT(nsent, AT_ONCE + 1);
	CHECK_INT(tags_of(AT_ONCE, tags), 3);
	send_many(1);
	CHECK_INT(nsent, AT_ONCE + 1);
}

/* Of a burst that did not gather, too: its poll teaches. */
TEST(a_poll_that_is_late_after_sends_far_apart_costs_the_next_its_gathering)
{
	core.distrust = 0;
	for (int i = 0; i <= AT_ONCE; i++) {
		as_if_sparse();
		send_bytes(8);
	}
	as_if_late();
	core.burst_began = core.burst_ns;
	nm_core_progress(&core);
	CHECK_INT(core.distrust, 1);
}

TEST(sends_with_a_poll_between_are_no_burst)
{
	core.distrust = 0;
	for (int i = 0; i < 20; i++) {
		send_many(1);
		CHECK_INT(nsent, i + 1);
		nm_core_progress(&core);
	}
	CHECK_INT(core.distrust, 0);
}

/* However late the poll is: nothing was to be won. */
TEST(a_few_messages_teach_nothing)
{
	core.distrust = 0;
	send_many(AT_ONCE);
	as_if_late();
	nm_core_progress(&core);
	CHECK_INT(core.distrust, 0);
}

TEST(who_waits_at_once_joins_nobody_and_takes_along_what_has_gathered)
{
	struct nm_data d = nm_data_flat(text[0], 8);
	struct nm_sr_request now;
	uint32_t tags[REQS];

	gather_some(1);
	CHECK_INT(nsent, AT_ONCE);
	CHECK_INT(nm_sr_isend(session, peer, 77, &d, NM_SEND_NOW, &now), 0);
	CHECK(nm_sr_is_complete(&now));
	CHECK_INT(nsent, AT_ONCE + 1);
	CHECK_INT(tags_of(AT_ONCE, tags), 3);
	CHECK_INT(tags[2], 77);
}

TEST(what_has_gathered_for_long_leaves_with_a_send_to_another_peer)
{
	struct nm_data d = nm_data_flat(text[0], 8);
	struct nm_sr_request other[AT_ONCE + 1];

	core.gates[0].is_dear = true;
	gather_some(1);
	CHECK_INT(nsent, AT_ONCE);
	as_if_late();
	for (int i = 0; i <= AT_ONCE; i++) {
		as_if_dense();
		CHECK_INT(nm_sr_isend(session, &core.gates[0], 1, &d, 0,
				      &other[i]),
			  0);
	}
	CHECK(nm_sr_is_complete(&reqs[nreqs - 1]));
	CHECK(!nm_sr_is_complete(&other[AT_ONCE]));
	nm_core_progress(&core);
	CHECK(nm_sr_is_complete(&other[AT_ONCE]));
}

TEST(what_fills_a_packet_leaves_without_a_poll)
{
	uint32_t tags[REQS];
	int n = 0;

	gather_some(0);
	while (nsent == AT_ONCE) {
		send_many(1);
		n++;
	}
	CHECK_INT(nsent, AT_ONCE + 1);
	CHECK(n > 20);
	CHECK_INT(tags_of(AT_ONCE, tags), n + 1);
	CHECK(nm_sr_is_complete(&reqs[nreqs - 1]));
	send_many(1);
	CHECK(!nm_sr_is_complete(&reqs[nreqs - 1]));
}

TEST(what_has_gathered_for_long_leaves_with_the_next_send)
{
	uint32_t tags[REQS];

	gather_some(1);
	CHECK_INT(nsent, AT_ONCE);
	as_if_late();
	send_many(1);
	CHECK_INT(nsent, AT_ONCE + 1);
	CHECK_INT(tags_of(AT_ONCE, tags), 3);
}

TEST(a_longer_message_takes_along_what_has_gathered_before_it)
{
	uint32_t tags[REQS];

	gather_some(1);
	as_if_dense();
	send_bytes(2900);
	CHECK_INT(nsent, AT_ONCE);
	as_if_dense();
	send_bytes(2900); /* too much for one packet's worth of waiting */
	CHECK_INT(nsent, AT_ONCE + 1);
	CHECK_INT(tags_of(AT_ONCE, tags), 4);
	for (uint32_t i = 0; i < 4; i++)
		CHECK_INT(tags[i], AT_ONCE + i);
}

TEST(an_answer_takes_along_what_has_gathered)
{
	struct nm_pass pass;
	uint32_t tags[REQS];

	gather_some(1);
	nm_core_lock(&core);
	pass.core = &core;
	nm_core_settle(&core, &pass);
	nm_out_ack(peer, 77);
	nm_core_unlock(&core, &pass);
	CHECK(nm_sr_is_complete(&reqs[nreqs - 1]));
	CHECK(nsent > AT_ONCE);
	CHECK(tags_of(AT_ONCE, tags) >= 2);
}

TEST(who_wants_to_sleep_does_not_while_something_gathers)
{
	CHECK_INT(nm_core_arm(&core), 0);
	gather_some(1);
	CHECK_INT(nsent, AT_ONCE);
	CHECK(!nm_core_is_quiet(&core));
	CHECK_INT(nm_core_arm(&core), -EAGAIN);
	CHECK_INT(nsent, AT_ONCE + 1);
	CHECK_INT(nm_core_arm(&core), 0);
}

TEST(what_has_gathered_for_a_peer_that_dies_fails)
{
	struct nm_pass pass = { .core = &core };
	struct nm_sr_status status;

	gather_some(1);
	/* As decide() does when a rail tells of it. */
	nm_core_lock(&core);
	nm_chain_init(&pass.posts);
	nm_chain_init(&pass.done);
	nm_chain_init(&pass.release);
	nm_gate_fail(&pass, peer, -ECONNRESET);
	nm_core_unlock(&core, &pass);
	for (int i = AT_ONCE; i < nreqs; i++) {
		nm_sr_status(&reqs[i], &status);
		CHECK_INT(status.error, -ECONNRESET);
	}
	CHECK_INT(nsent, AT_ONCE);
	nm_core_progress(&core);
	send_many(1);
	CHECK_INT(nsent, AT_ONCE);
}

/* And it does not hold up what waits for another peer. */
TEST(gates_gather_each_for_itself)
{
	struct nm_data d = nm_data_flat(text[0], 8);
	struct nm_sr_request other;

	gather_some(1);
	CHECK_INT(nsent, AT_ONCE);
	CHECK_INT(nm_sr_isend(session, &core.gates[0], 1, &d, 0, &other), 0);
	CHECK(nm_sr_is_complete(&other));
	CHECK_INT(nsent, AT_ONCE + 1);
	CHECK(!nm_sr_is_complete(&reqs[nreqs - 1]));
}
