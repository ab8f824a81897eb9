/*
 * Closing a session: while a message is on its way, and with some that nobody
 * has received. And opening one for which some have come.
 */
#include "rails.h"

static void setup(void)
{
	rails_setup(nm_strategies[0]);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, rails_teardown);
}

static void close_and_open(void)
{
	CHECK_INT(nm_core_session_close(session), 0);
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
	given_seq = 0;
}

TEST(a_session_whose_receive_is_under_way_is_in_use)
{
	static const struct said parts[] = { { 0, 600 }, { 1, 400 } };

	recv_into(0, 1000);
	CHECK_INT(nm_core_session_close(session), -EBUSY);
	give_rts(parts, 2);
	CHECK_INT(nreceiving, 2);
	CHECK_INT(nm_core_session_close(session), -EBUSY);
	end(receiving[0]);
	CHECK_INT(nm_core_session_close(session), -EBUSY);
	end(receiving[1]);
	CHECK_INT(status_of(0).error, 0);
	close_and_open();
}

/* The two parts of give_rts(), and the synchronous send 43. */
static void all_are_refused(void)
{
	CHECK_INT(nsent, 3);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(chunk_of(i).kind, NM_WIRE_KIND_RTR);
		CHECK_INT(chunk_of(i).id, 70 + i);
		CHECK_INT(chunk_of(i).length, 0);
	}
	CHECK_INT(chunk_of(2).kind, NM_WIRE_KIND_ACK);
	CHECK_INT(chunk_of(2).id, 43);
}

TEST(what_nobody_has_received_is_refused)
{
	static const struct said parts[] = { { 0, 600 }, { 1, 400 } };
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_EAGER,
				   .flags = NM_WIRE_SYNC,
				   .seq = 1,
				   .session = SESSION,
				   .id = 43 };

	give_rts(parts, 2);
	give(&c);
	c.flags = 0;
	c.seq = 2;
	give(&c);
	progress();
	CHECK_INT(nsent, 0);
	close_and_open();
	progress();
	all_are_refused();
}

TEST(a_message_that_was_taken_outlives_its_session)
{
	static const struct said parts[] = { { 0, 600 } };
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_EAGER,
				   .seq = 1,
				   .session = SESSION,
				   .length = 5,
				   .payload = "hello" };
	struct nm_message *taken_out[2];
	struct nm_sr_status status;

	give_rts(parts, 1);
	give(&c);
	progress();
	for (int i = 0; i < 2; i++)
		CHECK_INT(nm_sr_mprobe(session, peer, 0, NM_TAG_EXACT,
				       &taken_out[i], &status),
			  0);
	close_and_open();
	for (int i = 0; i < 2; i++) {
		struct nm_data d = nm_data_flat(text[i], 600);

		CHECK_INT(nm_sr_mrecv(taken_out[i], &d, &reqs[i]), 0);
	}
	progress();
	CHECK_INT(nreceiving, 1);
	end(receiving[0]);
	CHECK_INT(status_of(0).error, 0);
	CHECK_INT(status_of(0).length, 600);
	CHECK_INT(status_of(1).length, 5);
	CHECK(memcmp(text[1], "hello", 5) == 0);
}

/* Those before them have not come, so they wait for their turn. */
TEST(so_is_what_has_come_before_its_turn)
{
	static const struct said parts[] = { { 0, 600 }, { 1, 400 } };
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_EAGER,
				   .flags = NM_WIRE_SYNC,
				   .seq = 2,
				   .session = SESSION,
				   .id = 43 };

	given_seq = 1;
	give_rts(parts, 2);
	give(&c);
	progress();
	close_and_open();
	progress();
	all_are_refused();
}

static uint64_t credit_given(void)
{
	struct nm_wire_head h;
	uint64_t sum = 0;

	for (int i = 0; i < nsent; i++) {
		nm_wire_get_head(sent[i].bytes, sent[i].length, &h);
		sum += h.credit;
	}
	return sum;
}

/* The peer may send as much again. */
TEST(credit_of_what_is_dropped_goes_back)
{
	static const char payload[1000];
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_EAGER,
				   .session = SESSION,
				   .length = sizeof(payload),
				   .payload = payload };

	core.config.window = 2 * sizeof(payload);
	for (c.seq = 0; c.seq < 3; c.seq += 2)
		give(&c);
	progress();
	CHECK_INT(nsent, 0);
	close_and_open();
	progress();
	CHECK_INT(credit_given(), 2 * sizeof(payload));
}

static void give_number(uint32_t seq)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_EAGER,
				   .seq = seq,
				   .session = SESSION };

	give(&c);
}

/* As in a session that is open, a peer that lies is given up. */
TEST(numbers_that_cannot_be_are_found_when_the_session_is_opened)
{
	bool twice = check_random() % 2;

	CHECK_INT(nm_core_session_close(session), 0);
	give_number(0);
	give_number(twice ? 0 : UINT32_MAX);
	progress();
	CHECK_INT(peer->error, 0);
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
	CHECK_INT(peer->error, -EBADMSG);
	recv_into(0, 10);
	CHECK_INT(status_of(0).error, 0);
	close_and_open(); /* what has been copied is freed */
}
