/*
 * Sends that are taken back, from either side, against a peer that the test
 * plays itself: who waits for a match is told that there is none, and the
 * message is nobody's; who does not, or has met a receive, completes as ever.
 */
#include "../fewer.h"
#include "rails.h"

enum { SESSIONS = 100000 / FEWER };

static const struct nm_strategy told = {
	.name = "told",
	.pack = nm_fifo_pack,
	.cut = cut_as_told,
};

static void setup(void)
{
	rails_setup(&told);
	nm_ids_put(&core.syncs, nm_ids_get(&core.syncs, &core));
	taken = core.mem.taken;
	shares_are(500, 500, 0);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, rails_teardown);
}

/* --- the sender --- */

static void send_sync(int i, size_t bytes)
{
	struct nm_data d = nm_data_flat(text[i], bytes);

	CHECK_INT(nm_sr_isend(session, peer, 3, &d, NM_SEND_SYNC, &reqs[i]), 0);
	progress();
}

/* The RETRACT of the only send before it. */
static void expect_retract(struct nm_wire_chunk c)
{
	CHECK_INT(c.kind, NM_WIRE_KIND_RETRACT);
	CHECK_INT(c.id, 0);
	CHECK_INT(c.seq, 1);
	CHECK_INT(c.session, SESSION);
}

static void answer(uint8_t kind, uint64_t id, uint8_t flags)
{
	struct nm_wire_chunk c = { .kind = kind, .flags = flags, .id = id };

	give(&c);
	progress();
}

TEST(a_small_send_that_waits_for_a_match_is_taken_back)
{
	send_sync(0, 5);
	CHECK_INT(nm_sr_cancel(&reqs[0]), 0);
	CHECK_INT(nsent, 2);
	expect_retract(chunk_of(1));
	CHECK_INT(chunk_of(1).tag, 3);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	answer(NM_WIRE_KIND_ACK, chunk_of(0).id, NM_WIRE_RETRACTED);
	CHECK_INT(status_of(0).error, -ECANCELED);
	CHECK_INT(nm_sr_cancel(&reqs[0]), -EALREADY);
}

TEST(a_large_send_is_taken_back_when_all_its_parts_are)
{
	struct nm_wire_chunk rts;

	send_bytes(0, 1000);
	rts = chunk_of(0);
	CHECK_INT(rts.nparts, 2);
	CHECK_INT(nm_sr_cancel(&reqs[0]), 0);
	expect_retract(chunk_of(1));
	answer(NM_WIRE_KIND_RTR, part_of(&rts, 1).id, NM_WIRE_RETRACTED);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	answer(NM_WIRE_KIND_RTR, part_of(&rts, 0).id, NM_WIRE_RETRACTED);
	CHECK_INT(status_of(0).error, -ECANCELED);
	CHECK_INT(nsending, 0);
}

TEST(one_that_had_met_its_receive_completes_as_ever)
{
	struct nm_wire_chunk rts;

	send_bytes(0, 1000);
	rts = chunk_of(0);
	CHECK_INT(nm_sr_cancel(&reqs[0]), 0);
	give_rtr(part_of(&rts, 0).id, 500);
	give_rtr(part_of(&rts, 1).id, 500);
	CHECK_INT(nsending, 2);
	end(sending[0]);
	end(sending[1]);
	CHECK_INT(status_of(0).error, 0);
	send_sync(1, 5);
	CHECK_INT(nm_sr_cancel(&reqs[1]), 0);
	answer(NM_WIRE_KIND_ACK, chunk_of(2).id, 0);
	CHECK_INT(status_of(1).error, 0);
}

TEST(it_is_asked_for_once)
{
	send_sync(0, 5);
	CHECK_INT(nm_sr_cancel(&reqs[0]), 0);
	CHECK_INT(nm_sr_cancel(&reqs[0]), 0);
	progress();
	CHECK_INT(nsent, 2);
	dead[0] = true;
	progress();
	CHECK_INT(status_of(0).error, -ECONNRESET);
}

TEST(the_next_send_has_the_next_number)
{
	send_sync(0, 5);
	CHECK_INT(nm_sr_cancel(&reqs[0]), 0);
	send_bytes(1, 5);
	progress();
	CHECK_INT(chunk_of(2).seq, 2);
	CHECK_INT(status_of(1).error, 0);
	dead[0] = true;
	progress();
	CHECK_INT(nm_sr_cancel(&reqs[0]), -EALREADY);
}

TEST(a_peer_that_gives_back_what_was_not_taken_back_is_given_up)
{
	struct nm_wire_chunk rts;

	if (check_random() % 2) {
		send_sync(0, 5);
		answer(NM_WIRE_KIND_ACK, chunk_of(0).id, NM_WIRE_RETRACTED);
	} else {
		send_bytes(0, 1000);
		rts = chunk_of(0);
		answer(NM_WIRE_KIND_RTR, part_of(&rts, 0).id,
		       NM_WIRE_RETRACTED);
	}
	CHECK_INT(peer->error, -EBADMSG);
	CHECK_INT(status_of(0).error, -ECONNRESET);
}

/* --- the receiver --- */

static const struct said parts[] = { { 0, 600 }, { 1, 400 } };

static void give_small(uint8_t flags, uint32_t number)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_EAGER,
				   .flags = flags,
				   .seq = number,
				   .session = SESSION,
				   .id = 43,
				   .length = 5,
				   .payload = "hello" };

	give(&c);
	progress();
}

static void give_retract(uint32_t which, uint32_t number)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_RETRACT,
				   .seq = number,
				   .session = SESSION,
				   .id = which };

	give(&c);
	progress();
}

static bool is_here(void)
{
	struct nm_sr_status s;

	return nm_sr_probe(session, peer, 0, NM_TAG_EXACT, &s) == 0;
}

static void expect_given_back(int i, uint8_t kind, uint64_t id)
{
	struct nm_wire_chunk c = chunk_of(i);

	CHECK_INT(c.kind, kind);
	CHECK_INT(c.flags, NM_WIRE_RETRACTED);
	CHECK_INT(c.id, id);
	CHECK_INT(c.length, 0);
}

TEST(a_kept_message_is_given_back)
{
	give_small(NM_WIRE_SYNC, 0);
	CHECK(is_here());
	give_retract(0, 1);
	CHECK(!is_here());
	CHECK_INT(nsent, 1);
	expect_given_back(0, NM_WIRE_KIND_ACK, 43);
}

TEST(so_are_all_parts_of_a_large_one)
{
	give_rts(parts, 2);
	give_retract(0, 1);
	CHECK(!is_here());
	CHECK_INT(nsent, 2);
	expect_given_back(0, NM_WIRE_KIND_RTR, 70);
	expect_given_back(1, NM_WIRE_KIND_RTR, 71);
}

/* Over another rail, say. */
TEST(it_may_come_before_the_message)
{
	give_retract(0, 1);
	CHECK_INT(nsent, 0);
	give_small(NM_WIRE_SYNC, 0);
	CHECK(!is_here());
	expect_given_back(0, NM_WIRE_KIND_ACK, 43);
	give_small(0, 2);
	CHECK(is_here());
}

TEST(of_many_only_that_one_is_given_back)
{
	uint32_t which = (uint32_t)(check_random() % 4);

	for (uint32_t i = 0; i < 4; i++)
		give_small(i == which ? NM_WIRE_SYNC : 0, i);
	give_retract(which, 4);
	expect_given_back(0, NM_WIRE_KIND_ACK, 43);
	for (int i = 0; i < 4; i++)
		recv_into(i, 5);
	for (int i = 0; i < 3; i++)
		CHECK_INT(status_of(i).error, 0);
	CHECK(!nm_sr_is_complete(&reqs[3]));
	CHECK_INT(nm_sr_cancel(&reqs[3]), 0);
	CHECK_INT(nsent, 1);
}

TEST(who_waits_for_no_match_is_not_given_back)
{
	give_small(0, 0);
	give_retract(0, 1);
	CHECK(is_here());
	CHECK_INT(nsent, 0);
}

TEST(nor_what_a_receive_has_matched)
{
	recv_into(0, 5);
	give_small(NM_WIRE_SYNC, 0);
	give_retract(0, 1);
	CHECK_INT(status_of(0).error, 0);
	CHECK_INT(nsent, 1);
	CHECK_INT(chunk_of(0).kind, NM_WIRE_KIND_ACK);
	CHECK_INT(chunk_of(0).flags, 0);
}

TEST(nor_what_a_matched_probe_has_taken)
{
	struct nm_data d = nm_data_flat(text[0], 5);
	struct nm_message *message;
	struct nm_sr_status s;

	give_small(NM_WIRE_SYNC, 0);
	CHECK_INT(nm_sr_mprobe(session, peer, 0, NM_TAG_EXACT, &message, &s),
		  0);
	give_retract(0, 1);
	CHECK_INT(nsent, 0);
	CHECK_INT(nm_sr_mrecv(message, &d, &reqs[0]), 0);
	progress();
	CHECK_INT(status_of(0).error, 0);
	CHECK_INT(chunk_of(0).flags, 0);
}

/* --- of no open session: the peer's may be open longer, or sooner --- */

static void close_session(void)
{
	CHECK_INT(nm_core_session_close(session), 0);
}

static void open_session(void)
{
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
	progress();
}

/* A message of another number, which waits for no match, is there. */
static void expect_only(uint32_t number)
{
	give_small(0, number);
	recv_into(0, 5);
	CHECK_INT(status_of(0).error, 0);
	CHECK(!is_here());
}

TEST(what_waits_for_its_session_is_given_back)
{
	bool first = check_random() % 2;
	int before;

	close_session();
	if (first)
		give_retract(0, 1);
	give_small(NM_WIRE_SYNC, 0);
	if (!first)
		give_retract(0, 1);
	CHECK_INT(nsent, 1);
	expect_given_back(0, NM_WIRE_KIND_ACK, 43);
	before = nsent;
	open_session();
	CHECK_INT(nsent, before);
	CHECK(!is_here());
	expect_only(2);
}

TEST(so_is_a_large_one_of_no_open_session)
{
	bool first = check_random() % 2;

	close_session();
	if (first)
		give_retract(0, 1);
	give_rts(parts, 2);
	if (!first)
		give_retract(0, 1);
	CHECK_INT(nsent, 2);
	expect_given_back(0, NM_WIRE_KIND_RTR, 70);
	expect_given_back(1, NM_WIRE_KIND_RTR, 71);
	open_session();
	CHECK_INT(nsent, 2);
	expect_only(2);
}

/* Parts of 1000 bytes, the RETRACT before, between or behind them. */
static void give_half(int i)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_PART,
				   .flags = NM_WIRE_SYNC,
				   .session = SESSION,
				   .id = 43,
				   .length = 1000,
				   .offset = i == 0 ? 0 : 600,
				   .tail_len = i == 0 ? 600 : 400,
				   .tail = text[0] };

	give(&c);
	progress();
}

TEST(so_is_one_in_parts_when_it_is_whole)
{
	int first = (int)(check_random() % 2);
	int place = (int)(check_random() % 3);

	close_session();
	if (place == 0)
		give_retract(0, 1);
	give_half(first);
	if (place == 1)
		give_retract(0, 1);
	CHECK_INT(nsent, 0);
	give_half(1 - first);
	if (place == 2)
		give_retract(0, 1);
	CHECK_INT(nsent, 1);
	expect_given_back(0, NM_WIRE_KIND_ACK, 43);
	CHECK(base_list_is_empty(&peer->medium));
	open_session();
	CHECK_INT(nsent, 1);
	expect_only(2);
}

TEST(one_in_parts_may_become_whole_when_the_session_is_open)
{
	int first = (int)(check_random() % 2);

	close_session();
	if (check_random() % 2) {
		give_half(first);
		give_retract(0, 1);
	} else {
		give_retract(0, 1);
		give_half(first);
	}
	open_session();
	CHECK_INT(nsent, 0);
	if (check_random() % 2) {
		give_half(1 - first);
		expect_given_back(0, NM_WIRE_KIND_ACK, 43);
	} else {
		recv_into(1, 1000);
		give_half(1 - first);
		CHECK_INT(status_of(1).error, 0);
		CHECK_INT(chunk_of(0).flags, 0);
	}
	CHECK_INT(nsent, 1);
	expect_only(2);
}

TEST(of_many_of_no_open_session_only_that_one_is_given_back)
{
	uint32_t which = (uint32_t)(check_random() % 4);
	bool first = check_random() % 2;

	close_session();
	if (first)
		give_retract(which, 4);
	for (uint32_t i = 4; i-- > 0;)
		give_small(i == which ? NM_WIRE_SYNC : 0, i);
	if (!first)
		give_retract(which, 4);
	CHECK_INT(nsent, 1);
	expect_given_back(0, NM_WIRE_KIND_ACK, 43);
	open_session();
	for (int i = 0; i < 4; i++)
		recv_into(i, 5);
	for (int i = 0; i < 3; i++)
		CHECK_INT(status_of(i).error, 0);
	give_small(0, 5);
	CHECK_INT(status_of(3).error, 0);
	CHECK_INT(nsent, 1);
}

TEST(who_waits_for_no_match_stays_in_limbo)
{
	close_session();
	give_small(0, 0);
	give_retract(0, 1);
	give_retract(1, 2);
	open_session();
	CHECK_INT(nsent, 0);
	recv_into(0, 5);
	CHECK_INT(status_of(0).error, 0);
	expect_only(3);
}

TEST(what_is_of_another_session_or_tag_is_not_given_back)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_RETRACT,
				   .seq = 1,
				   .session = SESSION,
				   .tag = 9 };

	close_session();
	give_small(NM_WIRE_SYNC, 0);
	give(&c);
	c.session = SESSION + 1;
	c.tag = 0;
	give(&c);
	progress();
	CHECK_INT(nsent, 0);
	open_session();
	CHECK(is_here());
	recv_into(0, 5);
	CHECK_INT(status_of(0).error, 0);
	CHECK_INT(chunk_of(0).flags, 0);
	expect_only(2);
	close_session();
	c = (struct nm_wire_chunk){ .kind = NM_WIRE_KIND_EAGER,
				    .session = SESSION + 1 };
	give(&c);
	progress();
	CHECK_INT(nm_core_session_open(&core, SESSION + 1, &session), 0);
	CHECK(is_here());
	close_session();
	CHECK(nm_limbo_is_empty(&core.retracts));
	open_session();
}

/* And what left is forgotten, so that there is room for more packets. */
static void give_now(const struct nm_wire_chunk *c)
{
	nsent = ngiven = ndelivered = 0;
	give(c);
	progress();
}

/* Each has one, and every second one is given back before it is opened. */
TEST(what_is_of_many_sessions_waits_for_its_own)
{
	struct nm_wire_chunk m = { .kind = NM_WIRE_KIND_EAGER,
				   .flags = NM_WIRE_SYNC,
				   .session = SESSION,
				   .id = 43,
				   .length = 5,
				   .payload = "hello" };
	struct nm_wire_chunk r = { .kind = NM_WIRE_KIND_RETRACT, .seq = 1 };

	close_session();
	for (int i = 0; i < SESSIONS; i++) {
		r.session = ++m.session;
		give_now(&m);
		if (i % 2 == 0)
			continue;
		give_now(&r);
		CHECK_INT(nsent, 1);
		expect_given_back(0, NM_WIRE_KIND_ACK, 43);
	}
	for (int i = 0; i < SESSIONS; i++) {
		CHECK_INT(nm_core_session_open(&core, SESSION + 1 + (unsigned)i,
					       &session),
			  0);
		CHECK_INT(is_here(), i % 2 == 0);
		close_session();
		nsent = 0;
		progress();
	}
	CHECK(nm_limbo_is_empty(&core.limbo));
	CHECK(nm_limbo_is_empty(&core.retracts));
	open_session();
}

TEST(one_that_waits_for_its_turn_outlives_its_session)
{
	give_retract(0, 1);
	close_session();
	CHECK_INT(nsent, 0);
	give_small(NM_WIRE_SYNC, 0);
	expect_given_back(0, NM_WIRE_KIND_ACK, 43);
	open_session();
	expect_only(2);
}
