/*
 * Messages in parts that are packets, over several links, against a peer that
 * the test plays itself: what leaves over which link, what becomes of parts in
 * whatever order and whether or not a receive is there, and what of a message
 * of which a part never comes.
 */
#include "rails.h"

enum { LONG = 1000, WINDOW = 1 << 20 };

static int cut_eager_as_told(struct nm_gate *gate, size_t length,
			     struct nm_share *out)
{
	return shares[0] + shares[1] + shares[2] == length
		       ? cut_as_told(gate, length, out)
		       : 0;
}

static const struct nm_strategy told = {
	.name = "told",
	.pack = nm_fifo_pack,
	.cut = cut_as_told,
	.cut_eager = cut_eager_as_told,
};

static char message[LONG];

static void setup(void)
{
	rails_setup(&told);
	nm_ids_put(&core.syncs, nm_ids_get(&core.syncs, &core));
	taken = core.mem.taken;
	peer->cut_min = 600;
	for (int i = 0; i < LONG; i++)
		message[i] = (char)check_random();
	memset(text, 0, sizeof(text));
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, rails_teardown);
}

/* --- what the user says --- */

static void send_message(unsigned flags)
{
	struct nm_data d = nm_data_flat(message, LONG);

	CHECK_INT(nm_sr_isend(session, peer, 7, &d, flags, &reqs[0]), 0);
}

static void expect_received(int i, size_t room)
{
	size_t want = room < LONG ? room : LONG;
	struct nm_sr_status s = status_of(i);

	CHECK_INT(s.error, room < LONG ? -EMSGSIZE : 0);
	CHECK_INT(s.length, want);
	CHECK_INT(s.sent, LONG);
	CHECK_INT(s.tag, 7);
	CHECK_PTR(s.gate, peer);
	CHECK_INT(memcmp(text[i], message, want), 0);
	for (size_t k = want; k < BYTES; k++)
		CHECK_INT(text[i][k], 0);
}

/* --- what the peer says --- */

static struct nm_wire_chunk part(uint32_t seq, size_t offset, size_t bytes)
{
	return (struct nm_wire_chunk){ .kind = NM_WIRE_KIND_PART,
				       .tag = 7,
				       .seq = seq,
				       .session = SESSION,
				       .length = LONG,
				       .offset = (uint32_t)offset,
				       .tail_len = (uint32_t)bytes,
				       .tail = message + offset };
}

static void give_part(uint32_t seq, size_t offset, size_t bytes)
{
	struct nm_wire_chunk c = part(seq, offset, bytes);

	give(&c);
	progress();
}

/* Two parts of the message, the first of which is the i-th. */
static void give_half(int i)
{
	give_part(0, i == 0 ? 0 : 600, i == 0 ? 600 : 400);
}

static void give_eager(uint32_t seq)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_EAGER,
				   .tag = 7,
				   .seq = seq,
				   .session = SESSION,
				   .length = 5,
				   .payload = "small" };

	give(&c);
	progress();
}

static void expect_given_up(void)
{
	progress();
	CHECK_INT(peer->error, -EBADMSG);
}

/* --- sending --- */

static void expect_part(int i, int rail, size_t offset, size_t bytes)
{
	struct nm_wire_chunk c = chunk_of(i);

	CHECK_INT(sent[i].rail, rail);
	CHECK_INT(c.kind, NM_WIRE_KIND_PART);
	CHECK_INT(c.tag, 7);
	CHECK_INT(c.seq, 0);
	CHECK_INT(c.session, SESSION);
	CHECK_INT(c.length, LONG);
	CHECK_INT(c.offset, offset);
	CHECK_INT(c.tail_len, bytes);
	CHECK_INT(memcmp(c.tail, message + offset, bytes), 0);
}

TEST(the_sender_posts_one_part_and_leaves_the_others)
{
	shares_are(500, 300, 200);
	send_message(0);
	CHECK_INT(nsent, 1);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	CHECK(!nm_core_is_quiet(&core));
	expect_part(0, 0, 0, 500);
	CHECK(nm_core_progress(&core));
	CHECK_INT(nsent, 3);
	expect_part(1, 1, 500, 300);
	expect_part(2, 2, 800, 200);
	CHECK_INT(status_of(0).error, 0);
	CHECK_INT(peer->credit_used, LONG);
	CHECK_INT(load_relaxed(&core.stats.cut_out), 1);
	CHECK_INT(load_relaxed(&core.stats.eager_out), 1);
}

TEST(the_parts_are_those_of_memory_in_pieces_too)
{
	struct iovec iov[] = { { message, 450 },
			       { message + 450, 400 },
			       { message + 850, 150 } };
	struct nm_data d = nm_data_iovec(iov, 3);

	shares_are(500, 0, 500);
	CHECK_INT(nm_sr_isend(session, peer, 7, &d, 0, &reqs[0]), 0);
	progress();
	CHECK_INT(nsent, 2);
	expect_part(0, 0, 0, 500);
	expect_part(1, 2, 500, 500);
}

TEST(what_comes_behind_it_waits_for_a_link_and_does_not_overtake)
{
	shares_are(500, 300, 200);
	send_message(0);
	send_bytes(1, 10);
	CHECK_INT(nsent, 2);
	CHECK_INT(chunk_of(1).kind, NM_WIRE_KIND_EAGER);
	CHECK_INT(chunk_of(1).seq, 1);
	CHECK_INT(sent[1].rail, 0);
	progress();
	CHECK_INT(nsent, 4);
}

/* It would be ready and wait for the other links. */
TEST(a_cut_without_the_link_whose_turn_it_is_is_not_made)
{
	shares_are(0, 600, 400);
	send_message(0);
	CHECK_INT(nsent, 1);
	CHECK_INT(chunk_of(0).kind, NM_WIRE_KIND_RTS);
	dead[0] = true;
}

TEST(without_credit_for_all_of_it_nothing_is_cut)
{
	core.config.window = LONG - 1;
	shares_are(500, 500, 0);
	send_message(0);
	CHECK_INT(nsent, 1);
	CHECK_INT(chunk_of(0).kind, NM_WIRE_KIND_RTS);
	dead[0] = true;
}

TEST(a_synchronous_send_is_over_when_all_have_left_and_it_was_matched)
{
	struct nm_wire_chunk ack = { .kind = NM_WIRE_KIND_ACK };
	bool early = check_random() % 2;

	shares_are(500, 500, 0);
	send_message(NM_SEND_SYNC);
	ack.id = chunk_of(0).id;
	CHECK(ack.id != 0);
	if (!early)
		progress();
	CHECK(!nm_sr_is_complete(&reqs[0]));
	give(&ack);
	progress();
	CHECK_INT(nsent, 2);
	CHECK_INT(chunk_of(1).id, ack.id);
	CHECK_INT(status_of(0).error, 0);
}

TEST(a_send_of_which_a_part_cannot_leave_fails)
{
	bool sync = check_random() % 2;
	int rail = (int)(check_random() % 2);

	shares_are(500, 500, 0);
	if (rail == 1) {
		send_message(sync ? NM_SEND_SYNC : 0);
		CHECK(!nm_sr_is_complete(&reqs[0]));
		core.rails[1].links[1].error = -ECONNRESET;
	} else {
		core.rails[0].links[1].error = -ECONNRESET;
		send_message(sync ? NM_SEND_SYNC : 0);
		CHECK(!nm_sr_is_complete(&reqs[0]));
	}
	progress();
	if (sync) {
		CHECK(!nm_sr_is_complete(&reqs[0]));
		dead[2] = true;
		progress();
	}
	CHECK_INT(status_of(0).error, -ECONNRESET);
}

/* --- receiving --- */

TEST(either_part_may_come_first_to_a_receive)
{
	int first = (int)(check_random() % 2);

	recv_into(0, BYTES);
	give_half(first);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	CHECK_INT(core.gates[1].credit_back, 0);
	give_half(1 - first);
	expect_received(0, BYTES);
	CHECK_INT(peer->credit_back, LONG);
	CHECK_INT(load_relaxed(&core.stats.cut_in), 1);
	CHECK_INT(load_relaxed(&core.stats.eager_in), 1);
	CHECK_INT(load_relaxed(&core.stats.unexpected), 0);
}

/* As two owners of rails bring them, who meet in the core. */
TEST(both_parts_may_come_at_once)
{
	struct nm_wire_chunk a = part(0, 0, 600), b = part(0, 600, 400);

	recv_into(0, BYTES);
	give(&a);
	give(&b);
	progress();
	expect_received(0, BYTES);
}

TEST(a_short_buffer_gets_what_it_has_room_for)
{
	size_t room[] = { 999, 700, 600, 300, 0 };

	for (int i = 0; i < 5; i++) {
		size_t at = (size_t)(check_random() % 2) * 600;

		recv_into(i, room[i]);
		give_part((uint32_t)i, at, at == 0 ? 600 : 400);
		give_part((uint32_t)i, 600 - at, at == 0 ? 400 : 600);
		expect_received(i, room[i]);
	}
}

TEST(one_that_nobody_expected_is_kept_until_its_receive)
{
	int first = (int)(check_random() % 2);
	size_t room = check_random() % 2 ? BYTES : 300;

	give_half(first);
	give_half(1 - first);
	CHECK_INT(peer->credit_back, 0);
	recv_into(0, room);
	expect_received(0, room);
	CHECK_INT(peer->credit_back, LONG);
}

static void give_retract(void)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_RETRACT,
				   .tag = 7,
				   .seq = 1,
				   .session = SESSION };

	give(&c);
	progress();
}

static void give_sync_half(int i)
{
	struct nm_wire_chunk c = part(0, i == 0 ? 0 : 600, i == 0 ? 600 : 400);

	c.flags = NM_WIRE_SYNC;
	c.id = 43;
	give(&c);
	progress();
}

TEST(one_that_is_taken_back_is_given_back_when_it_is_whole)
{
	int first = (int)(check_random() % 2);
	struct nm_wire_head head;

	give_sync_half(first);
	give_retract();
	CHECK_INT(nsent, 0);
	give_sync_half(1 - first);
	CHECK_INT(nsent, 1);
	CHECK_INT(chunk_of(0).kind, NM_WIRE_KIND_ACK);
	CHECK_INT(chunk_of(0).flags, NM_WIRE_RETRACTED);
	CHECK_INT(nm_wire_get_head(sent[0].bytes, sent[0].length, &head), 0);
	CHECK_INT(head.credit, LONG);
	recv_into(0, BYTES);
	CHECK_INT(nm_sr_cancel(&reqs[0]), 0);
}

TEST(but_not_if_it_was_matched_before)
{
	bool probe = check_random() % 2;
	struct nm_message *message;
	struct nm_sr_status s;

	give_sync_half(0);
	give_retract();
	if (probe)
		CHECK_INT(nm_sr_mprobe(session, peer, 7, NM_TAG_EXACT, &message,
				       &s),
			  0);
	else
		recv_into(0, BYTES);
	give_sync_half(1);
	if (probe) {
		struct nm_data d = nm_data_flat(text[0], BYTES);

		CHECK_INT(nm_sr_mrecv(message, &d, &reqs[0]), 0);
		progress();
	}
	expect_received(0, BYTES);
	CHECK_INT(nsent, 1);
	CHECK_INT(chunk_of(0).flags, 0);
}

TEST(a_receive_may_come_between_the_parts)
{
	int first = (int)(check_random() % 2);
	size_t room = check_random() % 2 ? BYTES : 300;

	give_half(first);
	recv_into(0, room);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	give_half(1 - first);
	expect_received(0, room);
	CHECK_INT(load_relaxed(&core.stats.unexpected), 1);
}

TEST(a_probe_sees_all_of_it_from_the_first_part_on)
{
	struct nm_sr_status s;

	CHECK_INT(nm_sr_probe(session, peer, 7, NM_TAG_EXACT, &s), -EAGAIN);
	give_half(1);
	CHECK_INT(nm_sr_probe(session, peer, 7, NM_TAG_EXACT, &s), 0);
	CHECK_INT(s.length, LONG);
	give_half(0);
	CHECK_INT(nm_sr_probe(session, peer, 7, NM_TAG_EXACT, &s), 0);
	CHECK_INT(s.length, LONG);
	recv_into(0, BYTES);
	expect_received(0, BYTES);
}

TEST(one_that_was_taken_out_is_received_when_it_is_whole)
{
	struct nm_data d = nm_data_flat(text[0], BYTES);
	struct nm_message *m;
	struct nm_sr_status s;
	bool late = check_random() % 2;

	give_half(0);
	CHECK_INT(nm_sr_mprobe(session, peer, 7, NM_TAG_EXACT, &m, &s), 0);
	if (late)
		give_half(1);
	CHECK_INT(nm_sr_mrecv(m, &d, &reqs[0]), 0);
	if (!late)
		give_half(1);
	progress();
	expect_received(0, BYTES);
}

TEST(a_receive_may_be_cancelled_until_a_part_has_come)
{
	recv_into(0, BYTES);
	CHECK_INT(nm_sr_cancel(&reqs[0]), 0);
	give_half(0);
	recv_into(1, BYTES);
	CHECK_INT(nm_sr_cancel(&reqs[1]), -EALREADY);
	give_half(1);
	expect_received(1, BYTES);
	recv_into(2, BYTES);
	give_part(1, 0, 600);
	CHECK_INT(nm_sr_cancel(&reqs[2]), -EALREADY);
	give_part(1, 600, 400);
	expect_received(2, BYTES);
}

TEST(a_synchronous_send_of_the_peer_is_answered_once)
{
	struct nm_wire_chunk a = part(0, 0, 600), b = part(0, 600, 400);
	bool expected = check_random() % 2;

	a.flags = b.flags = NM_WIRE_SYNC;
	a.id = b.id = 71;
	if (expected)
		recv_into(0, BYTES);
	give(&b);
	give(&a);
	progress();
	CHECK_INT(nsent, expected);
	if (!expected)
		recv_into(0, BYTES);
	expect_received(0, BYTES);
	CHECK_INT(nsent, 1);
	CHECK_INT(chunk_of(0).kind, NM_WIRE_KIND_ACK);
	CHECK_INT(chunk_of(0).id, 71);
}

/* --- order --- */

TEST(it_is_matched_in_its_place_whatever_comes_first)
{
	bool posted = check_random() % 2;

	for (int i = 0; i < 3 && posted; i++)
		recv_into(i, BYTES);
	give_part(1, 600, 400);
	give_eager(2);
	CHECK_INT(load_relaxed(&core.stats.early), 2);
	give_eager(0);
	for (int i = 0; i < 3 && !posted; i++)
		recv_into(i, BYTES);
	CHECK_INT(status_of(0).length, 5);
	CHECK(!nm_sr_is_complete(&reqs[1]));
	CHECK_INT(status_of(2).length, 5);
	give_part(1, 0, 600);
	expect_received(1, BYTES);
}

TEST(one_of_a_session_that_is_opened_later_is_kept_for_it)
{
	struct nm_wire_chunk a = part(0, 0, 600), b = part(0, 600, 400);
	struct nm_data d = nm_data_flat(text[0], BYTES);
	struct nm_session *other;

	a.session = b.session = 99;
	give(&b);
	progress();
	CHECK_INT(nm_core_session_open(&core, 99, &other), 0);
	CHECK_INT(nm_sr_irecv(other, peer, 7, NM_TAG_EXACT, &d, &reqs[0]), 0);
	give(&a);
	progress();
	expect_received(0, BYTES);
	CHECK_INT(nm_core_session_close(other), 0);
}

TEST(what_comes_of_one_whose_session_was_closed_is_forgotten)
{
	struct nm_wire_chunk a = part(0, 0, 600), b = part(0, 600, 400);
	uint32_t seq = (uint32_t)(check_random() % 2); /* 1: it is parked */
	static const char zeros[LONG];
	struct nm_wire_chunk same_size = { .kind = NM_WIRE_KIND_EAGER,
					   .session = SESSION,
					   .length = LONG,
					   .payload = zeros };
	struct nm_session *other;

	a.session = b.session = 99;
	a.seq = b.seq = seq;
	CHECK_INT(nm_core_session_open(&core, 99, &other), 0);
	give(&a);
	progress();
	CHECK_INT(nm_core_session_close(other), 0);
	/* This one is kept in the memory that the other had. */
	give(&same_size);
	progress();
	give(&b);
	progress();
	CHECK_INT(peer->error, 0);
	memset(text[0], 1, BYTES);
	recv_into(0, BYTES);
	CHECK_INT(status_of(0).length, LONG);
	CHECK_INT(memcmp(text[0], zeros, LONG), 0);
}

/* --- a peer that dies between the parts --- */

TEST(a_receive_of_which_a_part_never_comes_fails)
{
	bool expected = check_random() % 2;

	if (expected)
		recv_into(0, BYTES);
	give_half((int)(check_random() % 2));
	if (!expected)
		recv_into(0, BYTES);
	dead[1] = true;
	progress();
	CHECK_INT(status_of(0).error, -ECONNRESET);
	CHECK_INT(status_of(0).length, 0);
	CHECK_PTR(status_of(0).gate, peer);
	CHECK(peer->error != 0);
}

TEST(one_that_is_not_whole_fails_who_receives_it_later)
{
	struct nm_data d = nm_data_flat(text[0], BYTES);
	struct nm_message *m;
	struct nm_sr_status s;
	bool taken_out = check_random() % 2;

	give_half(0);
	if (taken_out)
		CHECK_INT(nm_sr_mprobe(session, peer, 7, NM_TAG_EXACT, &m, &s),
			  0);
	dead[1] = true;
	progress();
	CHECK(peer->error != 0);
	if (taken_out)
		CHECK_INT(nm_sr_mrecv(m, &d, &reqs[0]), 0);
	else
		recv_into(0, BYTES);
	CHECK_INT(status_of(0).error, -ECONNRESET);
	CHECK_INT(status_of(0).length, 0);
}

TEST(one_that_is_parked_and_not_whole_goes_with_its_peer)
{
	give_part(1, 0, 600);
	dead[2] = true;
	progress();
	CHECK(peer->error != 0);
}

/* The copy that is under way is the last to touch the request. */
TEST(a_receive_that_has_failed_waits_for_the_copies_that_are_under_way)
{
	struct nm_req *req = nm_req_of(&reqs[0]);
	struct nm_pkt_in copy = { .part = { req, message, 0, 600 } };

	recv_into(0, BYTES);
	give_half(1);
	fetch_add_relaxed(&req->parts, 1); /* as for a part that has come */
	dead[1] = true;
	progress();
	CHECK(peer->error != 0);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	nm_medium_copy(&copy);
	CHECK_INT(status_of(0).error, -ECONNRESET);
	CHECK_INT(status_of(0).length, 0);
}

/* --- a peer that lies --- */

/* The second half, as it is told. */
static void expect_second_given_up(const struct nm_wire_chunk *b)
{
	bool expected = check_random() % 2;

	if (expected)
		recv_into(0, BYTES);
	give_half(0);
	give(b);
	expect_given_up();
	if (!expected)
		recv_into(0, BYTES);
	CHECK_INT(status_of(0).error, -ECONNRESET);
}

TEST(parts_that_overlap_are_given_up)
{
	struct nm_wire_chunk b = part(0, 0, 600);

	if (check_random() % 2)
		b = part(0, 599, 401);
	expect_second_given_up(&b);
}

TEST(parts_that_say_different_things_of_their_message_are_given_up)
{
	struct nm_wire_chunk b = part(0, 600, 400);

	switch (check_random() % 3) {
	case 0:
		b.tag = 8;
		break;
	case 1:
		b.length = LONG + 1;
		break;
	case 2:
		b.flags = NM_WIRE_SYNC;
		b.id = 1;
		break;
	}
	expect_second_given_up(&b);
}

TEST(a_message_that_is_too_long_to_be_kept_is_given_up)
{
	struct nm_wire_chunk c = part(0, 0, 600);

	c.length = NM_MEM_MAX;
	give(&c);
	expect_given_up();
}

TEST(one_in_too_many_parts_is_given_up)
{
	for (uint32_t i = 0; i <= NM_WIRE_PARTS_MAX; i++) {
		CHECK_INT(peer->error, 0);
		give_part(0, i * 10, 10);
	}
	expect_given_up();
}

TEST(a_part_that_comes_again_when_its_message_is_here_is_given_up)
{
	recv_into(0, BYTES);
	give_half(0);
	give_half(1);
	give_half(1);
	expect_given_up();
	expect_received(0, BYTES);
}

TEST(a_part_behind_another_chunk_is_given_up)
{
	struct nm_wire_chunk a = part(0, 0, 600), b = part(1, 0, 600);
	struct nm_wire_head h = { 2, 0 };
	struct packet *p = &given[ngiven];

	give(&a);
	nm_wire_put_head(p->bytes, &h);
	nm_wire_put_chunk(p->bytes + p->length, &b);
	p->length += nm_wire_chunk_size(&b);
	memcpy(p->bytes + p->length, b.tail, b.tail_len);
	p->length += b.tail_len;
	expect_given_up();
}

/* --- any order of everything --- */

TEST(parts_of_many_messages_may_come_in_any_order)
{
	enum { MANY = 8, PARTS = 3 };
	struct nm_wire_chunk all[MANY * PARTS];
	int left = MANY * PARTS, posted = 0;

	for (int i = 0; i < MANY; i++) {
		size_t a = 1 + check_random() % 400;
		size_t b = 1 + check_random() % 400;

		all[i * PARTS] = part((uint32_t)i, 0, a);
		all[i * PARTS + 1] = part((uint32_t)i, a, b);
		all[i * PARTS + 2] = part((uint32_t)i, a + b, LONG - a - b);
	}
	while (left > 0) {
		int i = (int)(check_random() % (uint64_t)left);

		if (posted < MANY && check_random() % 4 == 0)
			recv_into(posted++, BYTES);
		give(&all[i]);
		if (check_random() % 2)
			progress();
		all[i] = all[--left];
	}
	while (posted < MANY)
		recv_into(posted++, BYTES);
	progress();
	for (int i = 0; i < MANY; i++)
		expect_received(i, BYTES);
	CHECK_INT(peer->credit_back, MANY * LONG);
}
