/*
 * The core against one peer that the test plays itself, packet by packet, over
 * a driver that only records: what leaves for what comes, and what becomes of
 * requests when the peer lies or dies.
 */
#include "../../check.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <nmad/nmad.h>

#include "../../../nmad/core/core.h"
#include "mock.h"

enum { PACKETS = 64, BYTES = 2048, SESSION = 5, WINDOW = 1000 };

extern const struct nm_strategy *const nm_strategies[];

struct packet {
	struct nm_pkt_in in;
	unsigned char bytes[BYTES];
	size_t length;
};

static struct nm_core core;
static struct nm_session *session;
static struct nm_gate *peer;
static struct packet sent[PACKETS], given[PACKETS];
static int nsent, ngiven, ndelivered, nreleased;
static bool full, dead, withhold;
static struct nm_xfer *granted, *receiving;

/* --- the driver --- */

static int mock_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	if (full)
		return -EAGAIN;
	if (dead)
		return -EPIPE;
	CHECK(nsent < PACKETS);
	sent[nsent].length = nm_pkt_length(pkt);
	nm_pkt_copy(pkt, sent[nsent].bytes);
	nsent++;
	return NM_SENT;
}

static bool mock_poll(struct nm_rail *rail, int budget)
{
	bool moved = ndelivered < ngiven;

	for (; ndelivered < ngiven && budget > 0; ndelivered++, budget--) {
		struct packet *p = &given[ndelivered];

		p->in.link = &rail->links[1];
		p->in.data = p->bytes;
		p->in.length = p->length;
		nm_rail_recv(rail, &p->in);
	}
	if (dead && rail->links[1].error == 0)
		nm_rail_link_dead(rail, &rail->links[1], -ECONNRESET);
	return moved;
}

static void mock_release(struct nm_rail *rail, struct nm_pkt_in *in)
{
	(void)rail;
	(void)in;
	nreleased++;
}

static void mock_xfer_offer(struct nm_xfer *x)
{
	x->mine.length = 3;
	memcpy(x->mine.bytes, "abc", 3);
}

static int mock_xfer_recv(struct nm_xfer *x)
{
	receiving = x;
	mock_xfer_offer(x);
	if (!withhold)
		nm_rail_xfer_ready(x->link->rail, x);
	return 0;
}

static int mock_xfer_send(struct nm_xfer *x)
{
	granted = x;
	return 0;
}

static const struct nm_driver mock = {
	.name = "mock",
	.max_small = BYTES,
	.rdv_threshold = 500,
	.post_send = mock_post_send,
	.poll = mock_poll,
	.release = mock_release,
	.xfer_offer = mock_xfer_offer,
	.xfer_recv = mock_xfer_recv,
	.xfer_send = mock_xfer_send,
};

/* --- a core of rank 0 with one rail to rank 1 --- */

static void setup(void)
{
	mock_core(&core, &mock, WINDOW);
	peer = &core.gates[1];
	nsent = ngiven = ndelivered = nreleased = 0;
	full = dead = withhold = false;
	granted = receiving = NULL;
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
}

static void teardown(void)
{
	CHECK_INT(nreleased, ngiven);
	nm_match_check(&core.match);
	CHECK_INT(nm_core_session_close(session), 0);
	CHECK_INT(load_relaxed(&core.pending), 0);
	nm_core_exit(&core);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

/* --- what the peer says --- */

static void give(const struct nm_wire_chunk *c, int n, uint32_t credit)
{
	struct nm_wire_head h = { (uint16_t)n, credit };
	struct packet *p = &given[ngiven++];

	p->length = NM_WIRE_HEAD;
	nm_wire_put_head(p->bytes, &h);
	for (; n > 0; n--, c++) {
		nm_wire_put_chunk(p->bytes + p->length, c);
		p->length += nm_wire_chunk_size(c);
		if (c->kind != NM_WIRE_KIND_EAGER)
			continue;
		memcpy(p->bytes + p->length, c->payload, c->length);
		p->length += c->length;
	}
}

static struct nm_wire_chunk eager(uint32_t tag, uint32_t seq, const char *text)
{
	return (struct nm_wire_chunk){ .kind = NM_WIRE_KIND_EAGER,
				       .tag = tag,
				       .seq = seq,
				       .session = SESSION,
				       .length = strlen(text),
				       .payload = text };
}

static void give_eager(uint32_t tag, uint32_t seq, const char *text)
{
	struct nm_wire_chunk c = eager(tag, seq, text);

	give(&c, 1, 0);
}

/* The only chunk of the i-th packet that left. */
static struct nm_wire_chunk chunk_of(int i)
{
	struct nm_wire_chunk c;
	struct nm_wire_head h;
	size_t at = NM_WIRE_HEAD;

	CHECK(i < nsent);
	CHECK_INT(nm_wire_get_head(sent[i].bytes, sent[i].length, &h), 0);
	CHECK_INT(h.nchunks, 1);
	CHECK_INT(nm_wire_get_chunk(sent[i].bytes, sent[i].length, &at, &c), 0);
	CHECK_INT(at, sent[i].length);
	return c;
}

/* The only part of the RTS that the i-th packet was. */
static struct nm_wire_part part_of(int i)
{
	struct nm_wire_chunk c = chunk_of(i);
	struct nm_wire_part part;
	size_t at = 0;

	CHECK_INT(c.kind, NM_WIRE_KIND_RTS);
	CHECK_INT(c.nparts, 1);
	nm_wire_get_part(c.tail, &at, &part);
	CHECK_INT(at, c.tail_len);
	CHECK_INT(part.length, c.length);
	return part;
}

/* An RTS of one part. */
static struct nm_wire_chunk rts_of(uint64_t length, uint64_t id)
{
	static unsigned char parts[NM_WIRE_PART + 1];
	const struct nm_wire_part part = {
		.length = length, .id = id, .token_len = 1, .token = "q"
	};
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_RTS,
				   .nparts = 1,
				   .session = SESSION,
				   .length = length,
				   .tail = parts };

	nm_wire_put_part(parts, &c.tail_len, &part);
	return c;
}

static uint32_t credit_of(int i)
{
	struct nm_wire_head h;

	CHECK_INT(nm_wire_get_head(sent[i].bytes, sent[i].length, &h), 0);
	return h.credit;
}

/* --- what the user says --- */

static char text[16][BYTES];
static struct nm_sr_request reqs[16];

static void recv_into(int i, struct nm_gate *from, uint32_t tag, uint32_t mask)
{
	struct nm_data d = nm_data_flat(text[i], BYTES);

	memset(text[i], 0, BYTES);
	CHECK_INT(nm_sr_irecv(session, from, tag, mask, &d, &reqs[i]), 0);
}

static void send_bytes(int i, uint32_t tag, size_t bytes, unsigned flags)
{
	struct nm_data d = nm_data_flat(text[i], bytes);

	CHECK_INT(nm_sr_isend(session, peer, tag, &d, flags, &reqs[i]), 0);
}

static int error_of(int i)
{
	struct nm_sr_status s;

	CHECK(nm_sr_is_complete(&reqs[i]));
	nm_sr_status(&reqs[i], &s);
	return s.error;
}

static void progress(void)
{
	for (int i = 0; i < 4; i++)
		nm_core_progress(&core);
}

/* --- sending --- */

TEST(a_small_message_leaves_at_once_in_the_callers_own_time)
{
	strcpy(text[0], "hello");
	send_bytes(0, 9, 5, 0);
	CHECK_INT(nsent, 1);
	CHECK_INT(error_of(0), 0);
	CHECK_INT(chunk_of(0).kind, NM_WIRE_KIND_EAGER);
	CHECK_INT(chunk_of(0).tag, 9);
	CHECK_INT(chunk_of(0).session, SESSION);
	CHECK_INT(memcmp(chunk_of(0).payload, "hello", 5), 0);
}

TEST(envelopes_count_from_zero_whatever_their_tag_or_kind)
{
	send_bytes(0, 9, 5, 0);
	send_bytes(1, 8, 1000, 0);
	send_bytes(2, 7, 0, 0);
	for (uint32_t i = 0; i < 3; i++)
		CHECK_INT(chunk_of((int)i).seq, i);
	CHECK_INT(chunk_of(1).kind, NM_WIRE_KIND_RTS);
	dead = true;
	progress();
	CHECK_INT(error_of(1), -ECONNRESET);
}

TEST(a_full_network_keeps_messages_in_their_order_and_loses_none)
{
	full = true;
	for (int i = 0; i < 10; i++)
		send_bytes(i, (uint32_t)i, 1, 0);
	progress();
	CHECK_INT(nsent, 0);
	CHECK(!nm_core_is_quiet(&core));
	full = false;
	for (int i = 0; i < 12; i++)
		progress();
	CHECK_INT(nsent, 10);
	for (int i = 0; i < 10; i++) {
		CHECK_INT(chunk_of(i).tag, i);
		CHECK_INT(error_of(i), 0);
	}
	CHECK(nm_core_is_quiet(&core));
}

TEST(a_session_whose_sends_wait_to_leave_is_in_use)
{
	full = true;
	for (int i = 0; i < 3; i++)
		send_bytes(i, 0, i < 2 ? 10 : 1000, 0);
	CHECK_INT(nm_core_session_close(session), -EBUSY);
	full = false;
	progress();
	CHECK_INT(nsent, 3);
	dead = true;
	progress();
	CHECK_INT(nm_core_session_close(session), 0);
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
}

TEST(what_is_left_for_a_holder_who_sleeps_keeps_the_pollers_awake)
{
	base_pin();
	CHECK(nm_core_try(&core.lock));
	send_bytes(0, 1, 5, 0);
	CHECK_INT(nsent, 0);
	CHECK(!nm_core_is_quiet(&core));
	CHECK(nm_core_end(&core.lock));
	base_unpin();
	CHECK(nm_core_progress(&core));
	CHECK_INT(nsent, 1);
	CHECK(nm_core_is_quiet(&core));
}

TEST(payload_beyond_the_window_waits_and_its_envelope_does_not)
{
	for (int i = 0; i < 4; i++)
		send_bytes(i, (uint32_t)i, 400, 0);
	send_bytes(4, 4, 64, 0);
	CHECK_INT(nsent, 5);
	CHECK_INT(chunk_of(0).kind, NM_WIRE_KIND_EAGER);
	CHECK_INT(chunk_of(1).kind, NM_WIRE_KIND_EAGER);
	CHECK_INT(chunk_of(2).kind, NM_WIRE_KIND_RTS);
	CHECK_INT(chunk_of(3).kind, NM_WIRE_KIND_RTS);
	CHECK_INT(chunk_of(4).kind, NM_WIRE_KIND_EAGER); /* rides free */
	give(NULL, 0, 800);
	progress();
	send_bytes(5, 5, 400, 0);
	CHECK_INT(chunk_of(5).kind, NM_WIRE_KIND_EAGER);
	dead = true;
	progress();
}

TEST(credit_goes_back_when_a_quarter_of_the_window_is_matched)
{
	static char long_text[241];

	memset(long_text, 'x', 240);
	give_eager(1, 0, long_text);
	give_eager(1, 1, long_text);
	progress();
	CHECK_INT(nsent, 0);
	recv_into(0, peer, 1, NM_TAG_EXACT);
	CHECK_INT(nsent, 0);
	recv_into(1, peer, 1, NM_TAG_EXACT);
	CHECK_INT(nsent, 1);
	CHECK_INT(credit_of(0), 480);
}

TEST(a_rendezvous_asks_is_granted_and_ends_by_the_drivers_word)
{
	struct nm_wire_chunk rtr = { .kind = NM_WIRE_KIND_RTR, .length = 700 };

	send_bytes(0, 1, 900, 0);
	CHECK_INT(chunk_of(0).kind, NM_WIRE_KIND_RTS);
	CHECK_INT(chunk_of(0).length, 900);
	CHECK_INT(part_of(0).token_len, 3);
	rtr.id = part_of(0).id;
	rtr.tail = "xy";
	rtr.tail_len = 2;
	give(&rtr, 1, 0);
	progress();
	CHECK(granted != NULL);
	CHECK_INT(granted->length, 700);
	CHECK_INT(granted->peers.length, 2);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	core.rails[0].news = &(struct nm_news){ 0 };
	nm_news_init(core.rails[0].news, true);
	nm_rail_xfer_done(&core.rails[0], granted, 0);
	mock_settle(&core, core.rails[0].news);
	CHECK_INT(error_of(0), 0);
}

TEST(a_receiver_that_wants_nothing_ends_the_rendezvous)
{
	struct nm_wire_chunk rtr = { .kind = NM_WIRE_KIND_RTR, .length = 0 };

	send_bytes(0, 1, 900, 0);
	rtr.id = part_of(0).id;
	give(&rtr, 1, 0);
	progress();
	CHECK_PTR(granted, NULL);
	CHECK_INT(error_of(0), 0);
}

TEST(a_synchronous_send_waits_for_its_ack)
{
	struct nm_wire_chunk ack = { .kind = NM_WIRE_KIND_ACK };

	send_bytes(0, 1, 8, NM_SEND_SYNC);
	CHECK_INT(chunk_of(0).flags, NM_WIRE_SYNC);
	progress();
	CHECK(!nm_sr_is_complete(&reqs[0]));
	ack.id = chunk_of(0).id;
	give(&ack, 1, 0);
	progress();
	CHECK_INT(error_of(0), 0);
}

/* --- receiving --- */

TEST(early_envelopes_wait_for_those_before_them)
{
	for (int i = 0; i < 4; i++)
		recv_into(i, peer, 0, NM_TAG_ANY);
	give_eager(3, 3, "three");
	give_eager(1, 1, "one");
	give_eager(2, 2, "two");
	progress();
	CHECK(!nm_sr_is_complete(&reqs[0]));
	CHECK_INT(load_relaxed(&core.stats.early), 3);
	CHECK_INT(load_relaxed(&core.stats.eager_in), 3);
	give_eager(7, 0, "zero");
	progress();
	CHECK_INT(load_relaxed(&core.stats.early), 3);
	CHECK_INT(load_relaxed(&core.stats.unexpected), 0);
	for (int i = 0; i < 4; i++)
		CHECK_INT(error_of(i), 0);
	CHECK_STR(text[0], "zero");
	CHECK_STR(text[1], "one");
	CHECK_STR(text[2], "two");
	CHECK_STR(text[3], "three");
}

TEST(many_chunks_in_one_packet_are_all_taken)
{
	struct nm_wire_chunk c[3] = { eager(1, 0, "a"), eager(2, 1, "b"),
				      eager(1, 2, "c") };

	recv_into(0, peer, 1, NM_TAG_EXACT);
	give(c, 3, 0);
	progress();
	recv_into(1, peer, 1, NM_TAG_EXACT);
	recv_into(2, NM_ANY_GATE, 2, NM_TAG_EXACT);
	CHECK_STR(text[0], "a");
	CHECK_STR(text[1], "c");
	CHECK_STR(text[2], "b");
	for (int i = 0; i < 3; i++)
		CHECK_INT(error_of(i), 0);
}

TEST(messages_of_an_unknown_session_wait_until_it_is_opened)
{
	struct nm_wire_chunk c = eager(1, 1, "second"),
			     d = eager(1, 0, "first");
	struct nm_session *other, *first = session;

	c.session = d.session = 77;
	give(&c, 1, 0);
	give(&d, 1, 0);
	progress();
	CHECK_INT(nm_core_session_open(&core, 77, &other), 0);
	session = other;
	recv_into(0, peer, 0, NM_TAG_ANY);
	recv_into(1, peer, 0, NM_TAG_ANY);
	session = first;
	CHECK_STR(text[0], "first");
	CHECK_STR(text[1], "second");
	CHECK_INT(nm_core_session_close(other), 0);
}

TEST(an_answer_leaves_before_messages_that_came_first)
{
	struct nm_wire_chunk rts = rts_of(1000, 42);

	recv_into(0, peer, 0, NM_TAG_EXACT);
	full = true;
	send_bytes(1, 1, 1, 0);
	send_bytes(2, 2, 1, 0);
	give(&rts, 1, 0);
	progress();
	full = false;
	progress();
	progress();
	CHECK_INT(nsent, 3);
	CHECK_INT(chunk_of(1).kind, NM_WIRE_KIND_RTR);
	CHECK_INT(chunk_of(1).id, 42);
	CHECK_INT(chunk_of(1).length, 1000);
	dead = true;
	progress();
	CHECK_INT(error_of(0), -ECONNRESET);
}

/* --- a peer that lies --- */

static void expect_given_up(void)
{
	progress();
	CHECK(peer->error != 0);
	CHECK_INT(error_of(0), -ECONNRESET);
	send_bytes(1, 1, 1, 0);
	CHECK_INT(error_of(1), -ECONNRESET);
	recv_into(2, peer, 1, NM_TAG_EXACT);
	CHECK_INT(error_of(2), -ECONNRESET);
}

TEST(a_peer_that_sends_garbage_is_given_up)
{
	recv_into(0, peer, 1, NM_TAG_EXACT);
	memset(given[0].bytes, 0x5a, BYTES);
	given[0].length = 100;
	ngiven = 1;
	expect_given_up();
}

TEST(a_peer_that_repeats_an_envelope_is_given_up)
{
	recv_into(0, peer, 1, NM_TAG_EXACT);
	give_eager(2, 0, "x");
	give_eager(2, 0, "x");
	expect_given_up();
}

TEST(a_peer_that_answers_what_was_not_asked_is_given_up)
{
	static const uint8_t kinds[] = { NM_WIRE_KIND_RTR, NM_WIRE_KIND_ACK };
	struct nm_wire_chunk c = { .kind = kinds[check_random() % 2],
				   .id = check_random() };

	recv_into(0, peer, 1, NM_TAG_EXACT);
	give(&c, 1, 0);
	expect_given_up();
}

TEST(a_peer_that_gives_credit_it_was_not_owed_is_given_up)
{
	recv_into(0, peer, 1, NM_TAG_EXACT);
	give(NULL, 0, 1);
	expect_given_up();
}

TEST(a_peer_that_asks_for_more_than_was_offered_is_given_up)
{
	struct nm_wire_chunk rtr = { .kind = NM_WIRE_KIND_RTR, .length = 901 };

	send_bytes(0, 1, 900, 0);
	rtr.id = part_of(0).id;
	give(&rtr, 1, 0);
	expect_given_up();
}

/*
 * Whoever owned the rail first may be late: who had it after him sees the end
 * of the transfer and enters the core before him.
 */
TEST(a_transfer_may_be_over_before_anybody_hears_that_it_is_ready)
{
	struct nm_wire_chunk rts = rts_of(1000, 42);
	struct nm_rail *rail = &core.rails[0];
	struct nm_news first, second;
	size_t taken;

	nm_ids_put(&core.offers,
		   nm_ids_get(&core.offers, &rts)); /* its chunk */
	taken = core.mem.taken;
	for (uint32_t i = 0; i < 2; i++) {
		withhold = true;
		recv_into(0, peer, 0, NM_TAG_EXACT);
		rts.seq = i;
		give(&rts, 1, 0);
		progress();
		CHECK(receiving != NULL);
		CHECK_INT(nsent, i);
		nm_news_init(&first, true);
		rail->news = &first;
		nm_rail_xfer_ready(rail, receiving);
		nm_news_init(&second, true);
		rail->news = &second;
		nm_rail_xfer_done(rail, receiving, 0);
		mock_settle(&core, &second);
		CHECK_INT(error_of(0), 0);
		if (i == 1) {
			dead = true;
			progress();
		}
		mock_settle(&core, &first);
		CHECK_INT(core.mem.taken, taken);
	}
	CHECK_INT(nsent, 1);
	CHECK_INT(chunk_of(0).kind, NM_WIRE_KIND_RTR);
	CHECK_INT(chunk_of(0).id, 42);
	CHECK_INT(chunk_of(0).length, 1000);
}

/* --- a peer that dies --- */

TEST(a_death_ends_all_that_waits_for_the_dead_and_names_it)
{
	struct nm_wire_chunk rts = rts_of(1000, 42);

	recv_into(0, peer, 0, NM_TAG_EXACT);
	give(&rts, 1, 0);
	progress();
	CHECK(receiving != NULL);
	recv_into(1, peer, 1, NM_TAG_EXACT);
	recv_into(2, NM_ANY_GATE, 2, NM_TAG_EXACT);
	send_bytes(3, 1, 8, NM_SEND_SYNC);
	send_bytes(4, 1, 900, 0);
	full = true;
	send_bytes(5, 1, 8, 0);
	send_bytes(6, 1, 8, NM_SEND_SYNC);
	for (int i = 0; i <= 6; i++)
		CHECK(!nm_sr_is_complete(&reqs[i]));
	full = false;
	dead = true;
	progress();
	for (int i = 0; i <= 6; i++)
		CHECK_INT(error_of(i), -ECONNRESET);
	CHECK_INT(peer->error, -ECONNRESET);
	CHECK(nm_core_is_quiet(&core));
}

TEST(messages_that_came_before_the_death_can_be_received)
{
	give_eager(1, 0, "last words");
	progress();
	dead = true;
	progress();
	recv_into(0, peer, 1, NM_TAG_EXACT);
	CHECK_INT(error_of(0), 0);
	CHECK_STR(text[0], "last words");
}

/* --- what progress costs, and what a person sees --- */

TEST(progress_takes_nothing_from_malloc)
{
	size_t before, after;

	for (int round = 0; round < 2; round++) {
		nsent = ngiven = ndelivered = nreleased = 0;
		before = mallinfo2().uordblks;
		for (uint32_t i = 0; i < 8; i++)
			give_eager(i, i + 16 * (uint32_t)round, "unexpected");
		for (uint32_t i = 0; i < 8; i++)
			give_eager(i, i + 8 + 16 * (uint32_t)round, "expected");
		for (int i = 0; i < 8; i++)
			recv_into(i, peer, (uint32_t)i, NM_TAG_EXACT);
		progress();
		for (int i = 0; i < 8; i++)
			CHECK_INT(error_of(i), 0);
		for (int i = 0; i < 8; i++)
			recv_into(i, peer, (uint32_t)i, NM_TAG_EXACT);
		for (int i = 0; i < 8; i++)
			CHECK_STR(text[i], "expected");
		send_bytes(8 + 2 * round, 1, 900, 0);
		send_bytes(9 + 2 * round, 1, 9, NM_SEND_SYNC);
		after = mallinfo2().uordblks;
		CHECK_INT(after, before);
	}
	dead = true;
	progress();
}

TEST(a_blocking_call_takes_nothing_from_malloc)
{
	struct nm_data out = nm_data_flat("hello", 5);
	struct nm_data in = nm_data_flat(text[0], BYTES);
	struct nm_sr_status status;
	size_t before;

	give_eager(1, 0, "unexpected");
	progress();
	before = mallinfo2().uordblks;
	CHECK_INT(nm_sr_send(session, peer, 9, &out, 0), 0);
	CHECK_INT(nm_sr_recv(session, peer, 1, NM_TAG_EXACT, &in, &status), 0);
	CHECK_INT(mallinfo2().uordblks, before);
	CHECK_INT(status.length, 10);
	CHECK_INT(memcmp(text[0], "unexpected", 10), 0);
}

/* A packing of one byte each, every second one of a memory, or each one. */
static void pack_bytes(struct nm_packing *p, int n, int step)
{
	CHECK_INT(nm_begin_packing(session, peer, 1, 0, p), 0);
	for (int i = 0; i < n; i++) {
		CHECK_INT(nm_pack(p, &text[1][step * i], 1), 0);
		CHECK_INT(nm_pack(p, NULL, 0), 0);
	}
}

TEST(a_few_pieces_are_listed_in_the_packing_itself)
{
	struct nm_packing p;

	pack_bytes(&p, NM_PACK_PIECES, 2);
	CHECK_PTR(p.nm_pieces, p.nm_few);
	CHECK_INT(nm_end_packing(&p), 0);
	CHECK_INT(chunk_of(0).length, NM_PACK_PIECES);
	pack_bytes(&p, 10 * NM_PACK_PIECES, 1); /* they touch */
	CHECK_PTR(p.nm_pieces, p.nm_few);
	CHECK_INT(nm_end_packing(&p), 0);
	CHECK_INT(chunk_of(1).length, 10 * NM_PACK_PIECES);
}

TEST(what_many_pieces_take_from_malloc_is_given_back)
{
	enum { ROUNDS = 100, MANY = 40 }; /* ride free */
	struct nm_packing p;
	size_t halfway = 0;

	for (int i = 0; i < ROUNDS; i++) {
		nsent = 0;
		pack_bytes(&p, MANY, 2);
		CHECK_INT(i % 2 ? nm_end_packing(&p) : nm_drop_packing(&p), 0);
		if (i == ROUNDS / 2) /* what malloc keeps for itself, too */
			halfway = mallinfo2().uordblks;
	}
	CHECK_INT(mallinfo2().uordblks, halfway);
	dead = true;
	progress();
	pack_bytes(&p, MANY, 2);
	CHECK_INT(nm_end_packing(&p), -ECONNRESET);
	CHECK_INT(mallinfo2().uordblks, halfway);
}

TEST(a_dump_shows_gates_and_what_waits_for_them)
{
	int saved = dup(STDERR_FILENO), ends[2];
	static char seen[4096];
	ssize_t n;

	send_bytes(0, 77, 5, NM_SEND_SYNC);
	send_bytes(1, 78, 1000, 0);
	CHECK_INT(pipe(ends), 0);
	CHECK(dup2(ends[1], STDERR_FILENO) >= 0);
	nm_core_dump(&core);
	CHECK(dup2(saved, STDERR_FILENO) >= 0);
	n = read(ends[0], seen, sizeof(seen) - 1);
	close(ends[0]);
	close(ends[1]);
	close(saved);
	CHECK(n > 0);
	CHECK(strstr(seen, "rank 0 of 2") != NULL);
	CHECK(strstr(seen, "mock") != NULL);
	CHECK(strstr(seen, "to rank 1, tag 77, 5 bytes, priority 0: waits to "
			   "be matched") != NULL);
	CHECK(strstr(seen,
		     "parts of bodies: 1 offered; by priority 0 granted") !=
	      NULL);
	CHECK(strstr(seen, "receives: 0 exact") != NULL);
	CHECK(strstr(seen, "\n\n") == NULL);
	dead = true;
	progress();
}
