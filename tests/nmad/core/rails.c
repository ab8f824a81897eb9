/*
 * A large message in parts over several links of a gate, against a peer that
 * the test plays itself: what is offered, wanted, granted and ended for each
 * part, in whatever order, and what becomes of it when the peer lies or a link
 * dies.
 */
#include "../../check.h"

#include <errno.h>

#include <nmad/nmad.h>

#include "mock.h"

enum { RAILS = 3, PACKETS = 256, BYTES = 2048, SESSION = 5, XFERS = 64 };

struct packet {
	struct nm_pkt_in in;
	unsigned char bytes[BYTES];
	size_t length;
};

static struct nm_core core;
static struct nm_session *session;
static struct nm_gate *peer;
static struct packet sent[PACKETS], given[PACKETS];
static int nsent, ngiven, ndelivered;
static bool dead[RAILS];
static uint32_t given_seq;
static size_t taken; /* memory that a core at rest has */

/* Parts that drivers have, in the order in which they came. */
static struct nm_xfer *sending[XFERS], *receiving[XFERS];
static int nsending, nreceiving;

/* --- the driver --- */

static int mock_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	(void)link;
	CHECK(nsent < PACKETS);
	sent[nsent].length = nm_pkt_length(pkt);
	nm_pkt_copy(pkt, sent[nsent].bytes);
	nsent++;
	return NM_SENT;
}

static bool mock_poll(struct nm_rail *rail, int budget)
{
	bool moved = ndelivered < ngiven && rail->index == 0;

	for (; moved && ndelivered < ngiven && budget > 0; budget--) {
		struct packet *p = &given[ndelivered++];

		p->in.link = &rail->links[1];
		p->in.data = p->bytes;
		p->in.length = p->length;
		nm_rail_recv(rail, &p->in);
	}
	if (dead[rail->index])
		nm_rail_link_dead(rail, &rail->links[1], -ECONNRESET);
	return moved;
}

static void mock_release(struct nm_rail *rail, struct nm_pkt_in *in)
{
	(void)rail;
	(void)in;
}

/* The token is the rail's number, so that one of another rail is seen. */
static void mock_xfer_offer(struct nm_xfer *x)
{
	x->mine.length = 1;
	x->mine.bytes[0] = (unsigned char)('0' + x->link->rail->index);
}

static int mock_xfer_recv(struct nm_xfer *x)
{
	CHECK(nreceiving < XFERS);
	receiving[nreceiving++] = x;
	CHECK_INT(x->peers.length, 1);
	CHECK_INT(x->peers.bytes[0], '0' + x->link->rail->index);
	mock_xfer_offer(x);
	nm_rail_xfer_ready(x->link->rail, x);
	return 0;
}

static int mock_xfer_send(struct nm_xfer *x)
{
	CHECK(nsending < XFERS);
	sending[nsending++] = x;
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

/* --- the strategy: the cut that the test says --- */

static size_t shares[RAILS];

static int as_told(struct nm_gate *gate, size_t length, struct nm_share *out)
{
	int n = 0;

	CHECK_INT(gate->nlinks, RAILS);
	(void)length;
	for (int i = 0; i < RAILS; i++)
		if (shares[i] > 0)
			out[n++] = (struct nm_share){ i, shares[i] };
	return n;
}

static const struct nm_strategy told = {
	.name = "told",
	.pack = nm_fifo_pack,
	.cut = as_told,
};

static void shares_are(size_t a, size_t b, size_t c)
{
	shares[0] = a;
	shares[1] = b;
	shares[2] = c;
}

/* --- a core of rank 0 with three rails to rank 1 --- */

static void setup(void)
{
	mock_core_rails(&core, &mock, 1 << 20, RAILS);
	core.config.strategy = &told;
	peer = &core.gates[1];
	nsent = ngiven = ndelivered = nsending = nreceiving = 0;
	memset(dead, 0, sizeof(dead));
	given_seq = 0;
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
	nm_ids_put(&core.offers, nm_ids_get(&core.offers, &core));
	taken = core.mem.taken;
}

static void progress(void)
{
	for (int i = 0; i < 8; i++)
		nm_core_progress(&core);
}

static void teardown(void)
{
	progress();
	CHECK_INT(load_relaxed(&core.pending), 0);
	CHECK_INT(core.mem.taken, taken);
	CHECK_INT(nm_core_session_close(session), 0);
	nm_core_exit(&core);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

/* --- what the peer says --- */

static void give(const struct nm_wire_chunk *c)
{
	struct nm_wire_head h = { 1, 0 };
	struct packet *p = &given[ngiven++];

	CHECK(ngiven < PACKETS);
	nm_wire_put_head(p->bytes, &h);
	nm_wire_put_chunk(p->bytes + NM_WIRE_HEAD, c);
	p->length = NM_WIRE_HEAD + nm_wire_chunk_size(c);
}

static void give_rtr(uint64_t id, uint64_t length)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_RTR,
				   .id = id,
				   .length = length,
				   .tail = "r",
				   .tail_len = 1 };

	give(&c);
	progress();
}

struct said {
	int rail;
	uint64_t length;
};

/* An RTS of n parts; their ids are 70, 71 ... */
static void give_rts(const struct said *said, int n)
{
	unsigned char parts[NM_WIRE_PARTS_BYTES];
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_RTS,
				   .nparts = (uint8_t)n,
				   .seq = given_seq++,
				   .session = SESSION,
				   .tail = parts };

	for (int i = 0; i < n; i++) {
		unsigned char token = (unsigned char)('0' + said[i].rail);
		struct nm_wire_part part = { .rail = (uint8_t)said[i].rail,
					     .length = said[i].length,
					     .id = 70 + (uint64_t)i,
					     .token_len = 1,
					     .token = &token };

		nm_wire_put_part(parts, &c.tail_len, &part);
	}
	give(&c);
	progress();
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
	return c;
}

static struct nm_wire_part part_of(const struct nm_wire_chunk *c, int i)
{
	struct nm_wire_part part;
	size_t at = 0;

	CHECK_INT(c->kind, NM_WIRE_KIND_RTS);
	CHECK(i < c->nparts);
	for (int k = 0; k <= i; k++)
		nm_wire_get_part(c->tail, &at, &part);
	return part;
}

/* --- what the user says --- */

static char text[8][BYTES];
static struct nm_sr_request reqs[8];

static void recv_into(int i, size_t bytes)
{
	struct nm_data d = nm_data_flat(text[i], bytes);

	CHECK_INT(nm_sr_irecv(session, peer, 0, NM_TAG_ANY, &d, &reqs[i]), 0);
	progress();
}

static void send_bytes(int i, size_t bytes)
{
	struct nm_data d = nm_data_flat(text[i], bytes);

	CHECK_INT(nm_sr_isend(session, peer, 0, &d, 0, &reqs[i]), 0);
}

static struct nm_sr_status status_of(int i)
{
	struct nm_sr_status s;

	CHECK(nm_sr_is_complete(&reqs[i]));
	nm_sr_status(&reqs[i], &s);
	return s;
}

/* What the rail's driver says of a part that it has. */
static void end(struct nm_xfer *x)
{
	struct nm_rail *rail = x->link->rail;
	struct nm_news news;

	nm_news_init(&news);
	rail->news = &news;
	nm_rail_xfer_done(rail, x, 0);
	nm_core_run(&core, &news, NULL);
}

/* --- sending --- */

TEST(an_rts_offers_each_part_to_the_rail_that_it_is_cut_for)
{
	struct nm_wire_chunk rts;

	shares_are(500, 300, 200);
	send_bytes(0, 1000);
	CHECK_INT(nsent, 1);
	rts = chunk_of(0);
	CHECK_INT(rts.nparts, 3);
	CHECK_INT(rts.length, 1000);
	for (int i = 0; i < 3; i++) {
		CHECK_INT(part_of(&rts, i).rail, i);
		CHECK_INT(part_of(&rts, i).length, shares[i]);
		CHECK_INT(part_of(&rts, i).token_len, 1);
		CHECK_INT(*(const char *)part_of(&rts, i).token, '0' + i);
	}
	CHECK(part_of(&rts, 0).id != part_of(&rts, 1).id);
	dead[2] = true;
}

TEST(a_rail_that_gets_no_bytes_is_not_named)
{
	struct nm_wire_chunk rts;

	shares_are(0, 900, 100);
	send_bytes(0, 1000);
	rts = chunk_of(0);
	CHECK_INT(rts.nparts, 2);
	CHECK_INT(part_of(&rts, 0).rail, 1);
	CHECK_INT(part_of(&rts, 1).rail, 2);
	dead[0] = true;
}

TEST(each_part_moves_once_it_is_granted_and_the_last_ends_the_send)
{
	static const int order[] = { 2, 0, 1 };
	size_t at[] = { 0, 500, 800 };
	struct nm_wire_chunk rts;

	shares_are(500, 300, 200);
	send_bytes(0, 1000);
	rts = chunk_of(0);
	for (int i = 0; i < 3; i++) {
		give_rtr(part_of(&rts, order[i]).id, shares[order[i]]);
		CHECK_INT(nsending, i + 1);
		CHECK_INT(sending[i]->link->rail->index, order[i]);
		CHECK_INT(sending[i]->offset, at[order[i]]);
		CHECK_INT(sending[i]->length, shares[order[i]]);
		CHECK_INT(sending[i]->peers.length, 1);
	}
	end(sending[1]);
	end(sending[2]);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	end(sending[0]);
	CHECK_INT(status_of(0).error, 0);
}

TEST(parts_that_are_not_wanted_are_over_and_one_may_be_cut)
{
	struct nm_wire_chunk rts;

	shares_are(500, 300, 200);
	send_bytes(0, 1000);
	rts = chunk_of(0);
	give_rtr(part_of(&rts, 2).id, 0);
	give_rtr(part_of(&rts, 1).id, 7);
	CHECK_INT(nsending, 1);
	CHECK_INT(sending[0]->offset, 500);
	CHECK_INT(sending[0]->length, 7);
	end(sending[0]);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	give_rtr(part_of(&rts, 0).id, 0);
	CHECK_INT(status_of(0).error, 0);
}

/* --- receiving --- */

static const struct said three[] = { { 1, 400 }, { 0, 500 }, { 2, 100 } };

static void three_parts_arrive(void)
{
	CHECK_INT(nreceiving, 3);
	CHECK_INT(nsent, 3);
	for (int i = 0; i < 3; i++) {
		struct nm_wire_chunk c = chunk_of(i);

		CHECK_INT(receiving[i]->link->rail->index, three[i].rail);
		CHECK_INT(receiving[i]->length, three[i].length);
		CHECK_INT(receiving[i]->offset, i == 0   ? 0
						: i == 1 ? 400
							 : 900);
		CHECK_INT(c.kind, NM_WIRE_KIND_RTR);
		CHECK_INT(c.id, 70 + i);
		CHECK_INT(c.length, three[i].length);
		CHECK_INT(c.tail_len, 1);
		CHECK_INT(*(const char *)c.tail, '0' + three[i].rail);
	}
	end(receiving[2]);
	end(receiving[0]);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	end(receiving[1]);
	CHECK_INT(status_of(0).error, 0);
	CHECK_INT(status_of(0).length, 1000);
}

TEST(each_part_is_answered_for_itself_and_the_last_ends_the_receive)
{
	recv_into(0, BYTES);
	give_rts(three, 3);
	three_parts_arrive();
}

TEST(the_parts_of_a_message_that_nobody_expected_are_kept)
{
	give_rts(three, 3);
	CHECK_INT(nreceiving, 0);
	CHECK_INT(nsent, 0);
	recv_into(0, BYTES);
	three_parts_arrive();
}

TEST(a_short_buffer_takes_its_parts_and_refuses_the_others)
{
	recv_into(0, 450);
	give_rts(three, 3);
	CHECK_INT(nreceiving, 2);
	CHECK_INT(receiving[0]->length, 400);
	CHECK_INT(receiving[1]->offset, 400);
	CHECK_INT(receiving[1]->length, 50);
	CHECK_INT(nsent, 3);
	for (int i = 0; i < 3; i++) {
		struct nm_wire_chunk c = chunk_of(i);

		CHECK_INT(c.length, c.id == 70 ? 400 : c.id == 71 ? 50 : 0);
	}
	end(receiving[0]);
	end(receiving[1]);
	CHECK_INT(status_of(0).error, -EMSGSIZE);
	CHECK_INT(status_of(0).length, 450);
}

TEST(an_empty_buffer_refuses_all_parts_at_once)
{
	recv_into(0, 0);
	give_rts(three, 3);
	CHECK_INT(nreceiving, 0);
	CHECK_INT(nsent, 3);
	for (int i = 0; i < 3; i++)
		CHECK_INT(chunk_of(i).length, 0);
	CHECK_INT(status_of(0).error, -EMSGSIZE);
}

/* --- a link dies, the gate does --- */

TEST(a_link_that_dies_under_one_part_fails_the_send)
{
	struct nm_wire_chunk rts;

	shares_are(500, 300, 200);
	send_bytes(0, 1000);
	rts = chunk_of(0);
	give_rtr(part_of(&rts, 0).id, 500);
	give_rtr(part_of(&rts, 1).id, 300);
	end(sending[0]);
	dead[1] = true;
	progress();
	CHECK_INT(status_of(0).error, -ECONNRESET);
	CHECK(peer->error != 0);
	send_bytes(1, 1000);
	CHECK_INT(status_of(1).error, -ECONNRESET);
}

TEST(a_link_that_dies_under_one_part_fails_the_receive)
{
	recv_into(0, BYTES);
	give_rts(three, 3);
	end(receiving[1]);
	dead[2] = true;
	progress();
	CHECK_INT(status_of(0).error, -ECONNRESET);
	CHECK_INT(status_of(0).length, 0);
}

/* Its buffer is still being written to until the other rail has let go. */
TEST(a_request_that_has_failed_waits_for_the_rails_that_have_its_parts)
{
	struct nm_rail *rail = &core.rails[0];
	struct nm_news news;

	if (mock_rails_go_with_core())
		return;
	recv_into(0, BYTES);
	give_rts(three, 3);
	nm_news_init(&news);
	CHECK(nm_rail_enter(&core.rails[1].lock));
	rail->news = &news;
	nm_rail_link_dead(rail, &rail->links[1], -ECONNRESET);
	nm_core_run(&core, &news, NULL);
	CHECK(peer->error != 0);
	CHECK(!nm_sr_is_complete(&reqs[0]));
	CHECK(nm_rail_leave(&core.rails[1].lock));
	progress();
	CHECK_INT(status_of(0).error, -ECONNRESET);
}

/* --- a peer that lies --- */

static void expect_given_up(void)
{
	progress();
	CHECK_INT(peer->error, -EBADMSG);
	for (int i = 0; i < RAILS; i++)
		CHECK(peer->links[i]->error != 0);
}

TEST(a_peer_that_names_a_rail_twice_is_given_up)
{
	const struct said twice[] = { { 1, 400 }, { 0, 500 }, { 1, 100 } };

	recv_into(0, BYTES);
	give_rts(twice, 3);
	expect_given_up();
	CHECK_INT(nreceiving, 0);
	CHECK_INT(status_of(0).error, -ECONNRESET);
}

TEST(a_peer_that_names_a_rail_that_does_not_lead_to_it_is_given_up)
{
	const struct said unknown[] = { { 1, 400 }, { 3, 500 } };
	const struct said huge[] = { { 255, 400 } };

	if (check_random() % 2)
		give_rts(unknown, 2);
	else
		give_rts(huge, 1);
	expect_given_up();
}

TEST(a_peer_that_grants_a_part_twice_or_more_of_it_than_there_is_is_given_up)
{
	struct nm_wire_chunk rts;
	uint64_t id;

	shares_are(500, 300, 200);
	send_bytes(0, 1000);
	rts = chunk_of(0);
	id = part_of(&rts, 1).id;
	if (check_random() % 2) {
		give_rtr(id, 301);
	} else {
		give_rtr(id, 300);
		CHECK_INT(peer->error, 0);
		give_rtr(id, 300);
	}
	expect_given_up();
	CHECK_INT(status_of(0).error, -ECONNRESET);
}

TEST(a_peer_that_grants_what_it_has_refused_is_given_up)
{
	struct nm_wire_chunk rts;

	shares_are(500, 300, 200);
	send_bytes(0, 1000);
	rts = chunk_of(0);
	give_rtr(part_of(&rts, 1).id, 0);
	CHECK_INT(peer->error, 0);
	give_rtr(part_of(&rts, 1).id, 300);
	expect_given_up();
	CHECK_INT(status_of(0).error, -ECONNRESET);
}

TEST(a_peer_that_answers_a_receive_is_given_up)
{
	recv_into(0, BYTES);
	give_rts(three, 3);
	give_rtr(receiving[0]->id, 1);
	expect_given_up();
	CHECK_INT(status_of(0).error, -ECONNRESET);
}

/* --- any order of everything --- */

/* Take a random one of the n out of the list. */
static struct nm_xfer *take_any(struct nm_xfer **list, int *n)
{
	int i = (int)(check_random() % (uint64_t)*n);
	struct nm_xfer *x = list[i];

	list[i] = list[--*n];
	return x;
}

TEST(parts_of_many_messages_may_be_granted_and_end_in_any_order)
{
	enum { MANY = 6 };
	uint64_t ids[MANY * RAILS], lengths[MANY * RAILS];
	int nids = 0, left = MANY * RAILS;

	for (int i = 0; i < MANY; i++) {
		struct nm_wire_chunk rts;

		shares_are(500 + check_random() % 100, 1 + check_random() % 100,
			   1 + check_random() % 100);
		send_bytes(i, shares[0] + shares[1] + shares[2]);
		rts = chunk_of(i);
		for (int k = 0; k < RAILS; k++) {
			ids[nids] = part_of(&rts, k).id;
			lengths[nids++] = shares[k];
		}
	}
	while (left > 0) {
		if (nids > 0 && check_random() % 2) {
			int i = (int)(check_random() % (uint64_t)nids--);
			uint64_t want = check_random() % (lengths[i] + 1);

			give_rtr(ids[i], want);
			left -= want == 0;
			ids[i] = ids[nids];
			lengths[i] = lengths[nids];
		} else if (nsending > 0) {
			end(take_any(sending, &nsending));
			left--;
		}
	}
	for (int i = 0; i < MANY; i++)
		CHECK_INT(status_of(i).error, 0);
}
