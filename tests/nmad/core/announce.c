/*
 * Receives that are announced, against a peer that the test plays itself: what
 * is announced and when, what a send makes of it, and that every announcement
 * is used, recalled or forgotten, whoever dies or lies.
 */
#include "../../check.h"

#include <errno.h>

#include <nmad/nmad.h>

#include "mock.h"

enum {
	PACKETS = 256,
	BYTES = 2048,
	SESSION = 5,
	PLACES = 200,
	LARGE = 1000,
	ID = 4711, /* of the peer's announcement */
};

enum state { NONE, OPEN, TAKEN, RECALLED, IN_VAIN };

struct packet {
	struct nm_pkt_in in;
	unsigned char bytes[BYTES];
	size_t length;
};

static struct nm_core core;
static struct nm_session *session;
static struct nm_gate *peer;
static struct packet sent[PACKETS], given[PACKETS];
static int nsent, ngiven, ndelivered, npolls;
static bool dead, full, no_place;
static size_t taken; /* memory that a core at rest has */

/* Our places, and one of the peer's. */
static enum state places[PLACES], theirs;
static int nplaces;
static struct nm_xfer *sending, *receiving;

/* --- the driver --- */

static int mock_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	(void)link;
	if (full)
		return -EAGAIN;
	CHECK(nsent < PACKETS);
	sent[nsent].length = nm_pkt_length(pkt);
	nm_pkt_copy(pkt, sent[nsent].bytes);
	nsent++;
	return NM_SENT;
}

static bool mock_poll(struct nm_rail *rail, int budget)
{
	bool moved = ndelivered < ngiven;

	npolls++;
	for (; ndelivered < ngiven && budget > 0; budget--) {
		struct packet *p = &given[ndelivered++];

		p->in.link = &rail->links[1];
		p->in.data = p->bytes;
		p->in.length = p->length;
		nm_rail_recv(rail, &p->in);
	}
	if (dead)
		nm_rail_link_dead(rail, &rail->links[1], -ECONNRESET);
	return moved;
}

static void mock_release(struct nm_rail *rail, struct nm_pkt_in *in)
{
	(void)rail;
	(void)in;
}

static void mock_xfer_offer(struct nm_xfer *x)
{
	x->mine.length = 1;
	x->mine.bytes[0] = 'o';
}

static int mock_xfer_recv(struct nm_xfer *x)
{
	receiving = x;
	if (x->mine.length == 2) /* it was announced */
		return 0;
	x->mine.length = 1;
	x->mine.bytes[0] = 'a';
	nm_rail_xfer_ready(x->link->rail, x);
	return 0;
}

static int mock_xfer_send(struct nm_xfer *x)
{
	sending = x;
	return 0;
}

static int mock_xfer_announce(struct nm_xfer *x)
{
	if (no_place)
		return -EAGAIN;
	CHECK(nplaces < PLACES);
	places[nplaces] = OPEN;
	x->mine.length = 2;
	x->mine.bytes[0] = 'p';
	x->mine.bytes[1] = (unsigned char)nplaces++;
	return 0;
}

static int mock_xfer_take(struct nm_xfer *x)
{
	CHECK_INT(x->peers.length, 1);
	CHECK_INT(x->peers.bytes[0], 't');
	if (theirs != OPEN)
		return -ECANCELED;
	theirs = TAKEN;
	return 0;
}

static int mock_xfer_recall(struct nm_xfer *x, bool for_good)
{
	enum state *s = &places[x->mine.bytes[1]];

	CHECK(*s == OPEN || *s == TAKEN);
	if (*s == TAKEN && !for_good)
		return -EALREADY;
	*s = *s == OPEN ? RECALLED : IN_VAIN;
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
	.xfer_announce = mock_xfer_announce,
	.xfer_take = mock_xfer_take,
	.xfer_recall = mock_xfer_recall,
};

/* --- a core of rank 0 with one rail to rank 1 --- */

static void setup(void)
{
	mock_core(&core, &mock, 1 << 20);
	peer = &core.gates[1];
	peer->announces = true;
	nsent = ngiven = ndelivered = nplaces = 0;
	dead = full = no_place = false;
	theirs = NONE;
	sending = receiving = NULL;
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
	struct nm_pass pass;

	progress();
	nm_core_lock(&core);
	nm_core_settle(&core, &pass); /* what has been copied is freed */
	nm_core_unlock(&core, &pass);
	CHECK_INT(load_relaxed(&core.pending), 0);
	CHECK_INT(core.mem.taken, taken);
	for (int i = 0; i < nplaces; i++)
		CHECK(places[i] != OPEN);
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
	size_t size = nm_wire_chunk_size(c);

	CHECK(ngiven < PACKETS);
	nm_wire_put_head(p->bytes, &h);
	nm_wire_put_chunk(p->bytes + NM_WIRE_HEAD, c);
	p->length = NM_WIRE_HEAD + size;
	if (c->kind == NM_WIRE_KIND_EAGER) {
		memcpy(p->bytes + p->length, c->payload, c->length);
		p->length += c->length;
	}
	progress();
}

static void give_eager(uint32_t tag, uint32_t seq)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_EAGER,
				   .tag = tag,
				   .seq = seq,
				   .session = SESSION,
				   .length = 5,
				   .payload = "hello" };

	give(&c);
}

static struct nm_wire_chunk rts_of(unsigned char *parts, uint32_t tag,
				   uint32_t seq, uint64_t length, uint64_t id)
{
	struct nm_wire_part part = {
		.length = length, .id = 70, .token_len = 1, .token = "o"
	};
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_RTS,
				   .flags = id != 0 ? NM_WIRE_ANNOUNCED : 0,
				   .nparts = 1,
				   .tag = tag,
				   .seq = seq,
				   .session = SESSION,
				   .id = id,
				   .tail = parts };

	nm_wire_put_part(parts, &c.tail_len, &part);
	return c;
}

static void give_rts(uint32_t tag, uint32_t seq, uint64_t length, uint64_t id)
{
	unsigned char parts[NM_WIRE_PARTS_BYTES];
	struct nm_wire_chunk c = rts_of(parts, tag, seq, length, id);

	give(&c);
}

static struct nm_wire_chunk announcement(uint32_t tag, uint32_t seq,
					 uint64_t length)
{
	return (struct nm_wire_chunk){ .kind = NM_WIRE_KIND_ANNOUNCE,
				       .tag = tag,
				       .seq = seq,
				       .session = SESSION,
				       .length = length,
				       .id = ID,
				       .tail_len = 1,
				       .tail = "t" };
}

static void give_announcement(uint32_t tag, uint32_t seq, uint64_t length)
{
	struct nm_wire_chunk c = announcement(tag, seq, length);

	theirs = OPEN;
	give(&c);
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

/* --- what the user says --- */

static char text[16][BYTES];
static struct nm_sr_request reqs[16];

static void recv_data(int i, struct nm_gate *from, uint32_t tag, uint32_t mask,
		      struct nm_data data)
{
	CHECK_INT(nm_sr_irecv(session, from, tag, mask, &data, &reqs[i]), 0);
	progress();
}

static void recv_into(int i, uint32_t tag)
{
	recv_data(i, peer, tag, NM_TAG_EXACT, nm_data_flat(text[i], LARGE));
}

static void send_bytes(int i, uint32_t tag, size_t bytes)
{
	struct nm_data d = nm_data_flat(text[i], bytes);

	CHECK_INT(nm_sr_isend(session, peer, tag, &d, 0, &reqs[i]), 0);
}

static struct nm_sr_status status_of(int i)
{
	struct nm_sr_status s;

	CHECK(nm_sr_is_complete(&reqs[i]));
	nm_sr_status(&reqs[i], &s);
	return s;
}

static int error_of(int i)
{
	return status_of(i).error;
}

/* What the driver says of a transfer that it has. */
static void end(struct nm_xfer *x)
{
	struct nm_rail *rail = x->link->rail;
	struct nm_news news;

	CHECK(x != NULL);
	nm_news_init(&news);
	rail->news = &news;
	nm_rail_xfer_done(rail, x, 0);
	nm_core_run(&core, &news, NULL);
}

/* Receives that are posted still: as if the peer had died. */
static void finish(void)
{
	dead = true;
	progress();
}

/* --- what is announced --- */

TEST(a_large_receive_of_one_source_and_tag_is_announced)
{
	struct nm_wire_chunk c;

	give_eager(8, 0);
	give_eager(8, 1);
	recv_into(0, 7);
	CHECK_INT(nsent, 1);
	c = chunk_of(0);
	CHECK_INT(c.kind, NM_WIRE_KIND_ANNOUNCE);
	CHECK_INT(c.tag, 7);
	CHECK_INT(c.seq, 2);
	CHECK_INT(c.session, SESSION);
	CHECK_INT(c.length, LARGE);
	CHECK_INT(c.rail, 0);
	CHECK_INT(c.tail_len, 2);
	CHECK(c.id != 0);
	recv_into(1, 8);
	recv_into(2, 8);
	CHECK_INT(nsent, 1); /* they have their messages */
	finish();
}

TEST(what_its_next_message_may_not_be_for_is_not_announced)
{
	struct iovec iov = { text[0], LARGE };

	recv_data(0, peer, 7, NM_TAG_EXACT, nm_data_flat(text[0], 500));
	recv_data(1, peer, 8, NM_TAG_EXACT, nm_data_iovec(&iov, 1));
	CHECK_INT(nsent, 0);
	recv_data(2, peer, 0, NM_TAG_ANY, nm_data_flat(text[2], LARGE));
	recv_into(3, 9); /* the one before may take it */
	CHECK_INT(nm_sr_cancel(&reqs[2]), 0);
	CHECK_INT(nsent, 0);
	recv_data(4, NM_ANY_GATE, 9, NM_TAG_EXACT, nm_data_flat(text[4], 10));
	recv_into(5, 10);
	CHECK_INT(nm_sr_cancel(&reqs[4]), 0);
	recv_data(6, NM_ANY_GATE, 0, NM_TAG_ANY, nm_data_flat(text[6], 10));
	recv_into(7, 11);
	CHECK_INT(nm_sr_cancel(&reqs[6]), 0);
	CHECK_INT(nsent, 0);
	recv_into(8, 7); /* one of that tag was posted before */
	CHECK_INT(nsent, 0);
	peer->announces = false;
	recv_into(9, 12);
	CHECK_INT(nsent, 0);
	CHECK_INT(nplaces, 0);
	finish();
}

TEST(the_next_of_a_tag_is_announced_when_the_first_has_its_message)
{
	recv_into(0, 7);
	recv_into(1, 7);
	recv_into(2, 7);
	CHECK_INT(nsent, 1);
	places[0] = TAKEN;
	give_rts(7, 0, LARGE, chunk_of(0).id);
	CHECK_INT(nsent, 2);
	CHECK_INT(chunk_of(1).seq, 1);
	CHECK_INT(places[1], OPEN);
	end(receiving);
	/* An early envelope, too, when its turn has come. */
	places[1] = TAKEN;
	give_rts(7, 2, LARGE, chunk_of(1).id);
	give_eager(9, 1);
	end(receiving);
	CHECK_INT(error_of(1), 0);
	CHECK_INT(nsent, 3);
	CHECK_INT(chunk_of(2).seq, 3);
	CHECK_INT(places[2], OPEN);
	recv_into(3, 9);
	CHECK_INT(error_of(3), 0);
	finish();
	CHECK_INT(error_of(2), -ECONNRESET);
	CHECK_INT(places[2], RECALLED);
}

/* How many receives are not announced, after what happened. */
static int skipped(void)
{
	int n = 0, before = nsent;

	for (; nsent == before; n++) {
		recv_into(15, 99);
		CHECK_INT(nm_sr_cancel(&reqs[15]), 0);
	}
	return n - 1;
}

TEST(what_was_in_vain_costs_the_next_theirs_until_one_is_of_use)
{
	static const int want[] = { 1, 2, 4, 8, 16, 32, 32 };
	uint32_t seq = 0;

	CHECK_INT(skipped(), 0);
	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		recv_into(0, 7);
		give_eager(7, seq++);
		CHECK_INT(error_of(0), 0);
		CHECK_INT(skipped(), want[i]);
	}
	recv_into(0, 7);
	places[nplaces - 1] = TAKEN;
	give_rts(7, seq, LARGE, chunk_of(nsent - 1).id);
	end(receiving);
	CHECK_INT(skipped(), 0);
}

TEST(where_the_driver_has_no_place_the_message_comes_as_ever)
{
	no_place = true;
	recv_into(0, 7);
	CHECK_INT(nsent, 0);
	give_rts(7, 0, 800, 0);
	CHECK_INT(nsent, 1);
	CHECK_INT(chunk_of(0).kind, NM_WIRE_KIND_RTR);
	end(receiving);
	CHECK_INT(error_of(0), 0);
}

/* --- and met --- */

TEST(a_message_that_took_the_place_is_met_and_not_answered)
{
	recv_into(0, 7);
	places[0] = TAKEN;
	give_eager(8, 0);
	give_rts(7, 1, 800, chunk_of(0).id);
	CHECK_INT(nsent, 1);
	CHECK(receiving != NULL);
	CHECK_INT(receiving->length, 800);
	CHECK_INT(receiving->peers.length, 1);
	CHECK_INT(receiving->peers.bytes[0], 'o');
	CHECK_INT(nm_sr_is_complete(&reqs[0]), 0);
	end(receiving);
	CHECK_INT(error_of(0), 0);
	CHECK_INT(status_of(0).length, 800);
	CHECK_INT(status_of(0).sent, 800);
	CHECK_INT(status_of(0).tag, 7);
	CHECK_PTR(status_of(0).gate, peer);
	CHECK_INT(nsent, 1);
	recv_into(1, 8);
}

TEST(one_that_comes_before_its_turn_is_met_in_its_turn)
{
	recv_into(0, 7);
	places[0] = TAKEN;
	give_rts(7, 1, LARGE, chunk_of(0).id);
	CHECK_PTR(receiving, NULL);
	give_eager(8, 0);
	CHECK(receiving != NULL);
	end(receiving);
	CHECK_INT(error_of(0), 0);
	recv_into(1, 8);
}

TEST(a_message_that_asks_finds_the_place_recalled)
{
	recv_into(0, 7);
	give_rts(7, 0, 2 * LARGE, 0);
	CHECK_INT(places[0], RECALLED);
	CHECK_INT(nsent, 2);
	CHECK_INT(chunk_of(1).kind, NM_WIRE_KIND_RTR);
	end(receiving);
	CHECK_INT(error_of(0), -EMSGSIZE);
}

TEST(a_cancelled_receive_is_recalled_unless_it_is_taken)
{
	recv_into(0, 7);
	CHECK_INT(nm_sr_cancel(&reqs[0]), 0);
	CHECK_INT(error_of(0), -ECANCELED);
	CHECK_INT(places[0], RECALLED);
	recv_into(1, 7);
	CHECK_INT(nsent, 2);
	places[1] = TAKEN;
	CHECK_INT(nm_sr_cancel(&reqs[1]), -EALREADY);
	give_rts(7, 0, LARGE, chunk_of(1).id);
	end(receiving);
	CHECK_INT(error_of(1), 0);
}

TEST(what_is_recalled_before_it_was_said_is_not_said)
{
	full = true;
	send_bytes(1, 0, 10); /* has the turn */
	recv_into(0, 7);
	CHECK_INT(places[0], OPEN);
	CHECK_INT(nm_sr_cancel(&reqs[0]), 0);
	CHECK_INT(places[0], RECALLED);
	full = false;
	progress();
	CHECK_INT(nsent, 1);
}

TEST(what_is_over_before_the_driver_was_asked_is_recalled_then)
{
	CHECK(nm_rail_enter(&core.rails[0].lock));
	recv_into(0, 7);
	CHECK_INT(nm_sr_cancel(&reqs[0]), 0);
	CHECK_INT(error_of(0), -ECANCELED);
	CHECK_INT(nplaces, 0);
	nm_rail_leave(&core.rails[0].lock);
	progress();
	CHECK_INT(nplaces, 1);
	CHECK_INT(places[0], RECALLED);
	CHECK_INT(nsent, 0);
}

TEST(a_death_ends_a_receive_though_it_was_taken)
{
	recv_into(0, 7);
	recv_into(1, 8);
	places[0] = TAKEN;
	finish();
	CHECK_INT(error_of(0), -ECONNRESET);
	CHECK_INT(error_of(1), -ECONNRESET);
	CHECK_INT(places[0], IN_VAIN);
	CHECK_INT(places[1], RECALLED);
}

TEST(a_peer_that_says_it_took_what_it_cannot_have_is_given_up)
{
	for (int lie = 0; lie < 6; lie++) {
		unsigned char parts[NM_WIRE_PARTS_BYTES];
		struct nm_wire_chunk c;
		uint64_t id;

		if (lie > 0) {
			teardown();
			setup();
		}
		recv_into(0, 7);
		id = chunk_of(0).id;
		c = rts_of(parts, 7, 0, lie == 1 ? LARGE + 1 : LARGE,
			   lie == 0 ? id + 1 : id);
		if (lie == 2)
			parts[0] = 1; /* another rail */
		if (lie == 3)
			c.tag = 8; /* nobody's */
		if (lie == 4) {
			struct nm_wire_part more = {
				.rail = 1, .length = 1, .id = 71, .token = ""
			};

			c.nparts = 2;
			nm_wire_put_part(parts, &c.tail_len, &more);
		}
		if (lie == 5)
			recv_into(1, 8);
		if (lie == 5)
			c.tag = 8; /* another's */
		give(&c);
		if (lie == 3)
			recv_into(1, 8);
		CHECK(peer->error != 0);
		CHECK_INT(error_of(0), -ECONNRESET);
		if (lie == 3 || lie == 5)
			CHECK_INT(error_of(1), -ECONNRESET);
	}
}

/* --- sending to what was announced --- */

TEST(the_next_message_of_the_tag_goes_without_asking)
{
	struct nm_wire_chunk c;

	give_announcement(7, 0, LARGE);
	send_bytes(0, 8, 10); /* of another tag */
	CHECK_INT(theirs, OPEN);
	send_bytes(1, 7, 900);
	CHECK_INT(theirs, TAKEN);
	c = chunk_of(1);
	CHECK_INT(c.kind, NM_WIRE_KIND_RTS);
	CHECK_INT(c.flags, NM_WIRE_ANNOUNCED);
	CHECK_INT(c.id, ID);
	CHECK_INT(c.seq, 1);
	CHECK_INT(c.length, 900);
	CHECK(sending != NULL);
	CHECK_INT(sending->length, 900);
	end(sending);
	CHECK_INT(error_of(1), 0);
	/* Only that one. */
	send_bytes(2, 7, 900);
	CHECK_INT(chunk_of(2).flags, 0);
	finish();
}

TEST(a_send_that_leaves_later_takes_its_place_in_its_turn)
{
	full = true;
	send_bytes(0, 8, 10);
	progress();
	give_announcement(7, 1, LARGE);
	send_bytes(1, 8, 10);
	send_bytes(2, 7, LARGE);
	send_bytes(3, 7, LARGE);
	CHECK_INT(nsent, 0);
	CHECK_INT(theirs, OPEN);
	full = false;
	progress();
	CHECK_INT(nsent, 4);
	CHECK_INT(chunk_of(2).flags, NM_WIRE_ANNOUNCED);
	CHECK_INT(chunk_of(2).seq, 2);
	CHECK_INT(chunk_of(3).flags, 0);
	end(sending);
	CHECK_INT(error_of(2), 0);
	finish();
}

/* How many large sends do not look for announcements first, until one does. */
static int blind(void)
{
	static struct nm_sr_request many[64];
	static int nmany;
	struct nm_data d = nm_data_flat(text[0], LARGE);
	int n = 0;

	for (int before = npolls;; n++) {
		CHECK(nmany < 64);
		CHECK_INT(nm_sr_isend(session, peer, 9, &d, 0, &many[nmany++]),
			  0);
		if (npolls != before)
			return n;
	}
}

TEST(a_send_looks_for_announcements_first_unless_that_was_in_vain)
{
	static const int want[] = { 0, 1, 2, 4, 8 };

	for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		CHECK_INT(blind(), want[i]);
	/* That one was of use. */
	give_announcement(7, chunk_of(nsent - 1).seq + 1, LARGE);
	send_bytes(0, 7, LARGE);
	end(sending);
	CHECK_INT(error_of(0), 0);
	CHECK_INT(blind(), 0);
	finish();
}

TEST(what_has_been_recalled_is_asked_for)
{
	give_announcement(7, 0, LARGE);
	theirs = RECALLED;
	send_bytes(0, 7, LARGE);
	CHECK_INT(chunk_of(0).kind, NM_WIRE_KIND_RTS);
	CHECK_INT(chunk_of(0).flags, 0);
	CHECK_PTR(sending, NULL);
	finish();
	CHECK_INT(error_of(0), -ECONNRESET);
}

TEST(a_message_that_does_not_go_there_uses_it_up)
{
	give_announcement(7, 0, LARGE);
	give_announcement(8, 0, LARGE);
	send_bytes(0, 7, 10);
	send_bytes(1, 7, LARGE);
	CHECK_INT(chunk_of(1).flags, 0);
	send_bytes(2, 8, LARGE + 1);
	CHECK_INT(chunk_of(2).flags, 0);
	send_bytes(3, 8, LARGE);
	CHECK_INT(chunk_of(3).flags, 0);
	CHECK_INT(theirs, OPEN);
	finish();
}

TEST(an_announcement_from_before_something_was_sent_is_forgotten)
{
	send_bytes(0, 7, 10);
	give_announcement(7, 0, LARGE);
	send_bytes(1, 7, LARGE);
	CHECK_INT(chunk_of(1).flags, 0);
	give_announcement(7, 2, LARGE);
	send_bytes(2, 7, LARGE);
	CHECK_INT(chunk_of(2).flags, NM_WIRE_ANNOUNCED);
	end(sending);
	finish();
}

TEST(a_later_announcement_of_a_tag_replaces_an_earlier_one)
{
	struct nm_wire_chunk c = announcement(7, 0, LARGE);

	give_announcement(7, 0, LARGE);
	c.id = ID + 1;
	give(&c);
	send_bytes(0, 7, LARGE);
	CHECK_INT(chunk_of(0).id, ID + 1);
	end(sending);
	send_bytes(1, 7, LARGE);
	CHECK_INT(chunk_of(1).flags, 0);
	finish();
}

TEST(of_too_many_the_oldest_are_forgotten)
{
	enum { MANY = 40, KEPT = 32 };
	static struct nm_sr_request many[MANY];
	struct nm_data d = nm_data_flat(text[0], LARGE);

	for (uint32_t tag = 0; tag < MANY; tag++)
		give_announcement(tag, 0, LARGE);
	for (uint32_t tag = 0; tag < MANY; tag++) {
		theirs = OPEN;
		CHECK_INT(nm_sr_isend(session, peer, tag, &d, 0, &many[tag]),
			  0);
		CHECK_INT(chunk_of((int)tag).flags,
			  tag < MANY - KEPT ? 0 : NM_WIRE_ANNOUNCED);
		if (tag >= MANY - KEPT)
			end(sending);
	}
	finish();
}

TEST(an_announcement_for_a_session_that_is_not_open_is_forgotten)
{
	struct nm_wire_chunk c = announcement(7, 0, LARGE);

	c.session = SESSION + 1;
	theirs = OPEN;
	give(&c);
	CHECK_INT(peer->error, 0);
	CHECK_PTR(peer->announced, NULL);
}

TEST(a_death_ends_a_send_that_has_its_place)
{
	full = true;
	send_bytes(0, 8, 10);
	progress();
	give_announcement(7, 1, LARGE);
	give_announcement(9, 1, LARGE);
	send_bytes(1, 7, LARGE);
	finish();
	CHECK_INT(error_of(1), -ECONNRESET);
	CHECK_INT(theirs, OPEN);
}

TEST(an_announcement_over_a_rail_that_has_none_is_given_up)
{
	struct nm_wire_chunk c = announcement(7, 0, LARGE);

	c.rail = 3;
	give(&c);
	CHECK(peer->error != 0);
}
