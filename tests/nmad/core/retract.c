/*
 * Sends that are taken back, from either side, against a peer that the test
 * plays itself: who waits for a match is told that there is none, and the
 * message is nobody's; who does not, or has met a receive, completes as ever.
 */
#include "rails.h"

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

TEST(one_of_no_open_session_waits_for_it)
{
	CHECK_INT(nm_core_session_close(session), 0);
	give_small(NM_WIRE_SYNC, 0);
	give_retract(0, 1);
	CHECK_INT(nsent, 0);
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
	progress();
	expect_given_back(0, NM_WIRE_KIND_ACK, 43);
}

TEST(a_session_is_closed_while_one_waits_for_its_turn)
{
	give_retract(0, 1);
	CHECK_INT(nm_core_session_close(session), 0);
	CHECK_INT(nsent, 0);
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
}
