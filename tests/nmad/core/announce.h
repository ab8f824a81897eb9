/*
 * A core of rank 0 whose driver announces, and rank 1, which the test plays.
 */
#ifndef TESTS_NMAD_CORE_ANNOUNCE_H
#define TESTS_NMAD_CORE_ANNOUNCE_H

#include "played.h"

enum {
	PLACES = 200,
	LARGE = 1000,
	ID = 4711, /* of the peer's announcement */
};

enum state { NONE, OPEN, TAKEN, RECALLED, IN_VAIN };

static int npolls;
static bool dead, full, no_place;

/* Our places, and one of the peer's. */
static enum state places[PLACES], theirs;
static int nplaces;
static struct nm_xfer *sending, *receiving;

/* Who waits for what goes to our places; and to theirs, of each packet. */
static struct nm_awaited awaited[PLACES], theirs_awaited;
static const struct nm_awaited *told[PACKETS];

/* --- the driver --- */

static inline int mock_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	(void)link;
	if (full)
		return -EAGAIN;
	told[nsent] = pkt->awaited;
	return record(pkt);
}

static inline bool mock_poll(struct nm_rail *rail, int budget)
{
	bool moved = deliver(rail, budget);

	npolls++;
	if (dead)
		nm_rail_link_dead(rail, &rail->links[1], -ECONNRESET);
	return moved;
}

static inline void mock_xfer_offer(struct nm_xfer *x)
{
	x->mine.length = 1;
	x->mine.bytes[0] = 'o';
}

static inline int mock_xfer_recv(struct nm_xfer *x)
{
	receiving = x;
	x->mine.length = 1;
	x->mine.bytes[0] = 'a';
	nm_rail_xfer_ready(x->link->rail, x);
	return 0;
}

static inline int mock_xfer_send(struct nm_xfer *x)
{
	sending = x;
	return 0;
}

static inline int mock_xfer_announce(struct nm_xfer *x)
{
	if (no_place)
		return -EAGAIN;
	CHECK(nplaces < PLACES);
	places[nplaces] = OPEN;
	store_relaxed(&awaited[nplaces].is, 0);
	x->awaited = &awaited[nplaces];
	x->mine.length = 2;
	x->mine.bytes[0] = 'p';
	x->mine.bytes[1] = (unsigned char)nplaces++;
	return 0;
}

static inline int mock_xfer_meet(struct nm_xfer *x)
{
	receiving = x;
	CHECK_INT(x->mine.length, 2);
	return dead ? -ECONNRESET : 0;
}

static inline int mock_xfer_take(struct nm_xfer *x)
{
	CHECK_INT(x->peers.length, 1);
	CHECK_INT(x->peers.bytes[0], 't');
	if (theirs != OPEN)
		return -ECANCELED;
	theirs = TAKEN;
	x->awaited = &theirs_awaited;
	return 0;
}

static inline int mock_xfer_recall(struct nm_xfer *x, bool for_good)
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
	.fill = BYTES,
	.rdv_threshold = 500,
	.post_send = mock_post_send,
	.poll = mock_poll,
	.release = mock_release,
	.xfer_offer = mock_xfer_offer,
	.xfer_recv = mock_xfer_recv,
	.xfer_send = mock_xfer_send,
	.xfer_announce = mock_xfer_announce,
	.xfer_meet = mock_xfer_meet,
	.xfer_take = mock_xfer_take,
	.xfer_recall = mock_xfer_recall,
};

/* --- a core of rank 0 with one rail to rank 1 --- */

static inline void setup(void)
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

static inline void teardown(void)
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

static inline void say(const struct nm_wire_chunk *c)
{
	give(c);
	progress();
}

static inline void give_eager(uint32_t tag, uint32_t seq)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_EAGER,
				   .tag = tag,
				   .seq = seq,
				   .session = SESSION,
				   .length = 5,
				   .payload = "hello" };

	say(&c);
}

static inline struct nm_wire_chunk rts_of(unsigned char *parts, uint32_t tag,
					  uint32_t seq, uint64_t length,
					  uint64_t id)
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

static inline void give_rts(uint32_t tag, uint32_t seq, uint64_t length,
			    uint64_t id)
{
	unsigned char parts[NM_WIRE_PARTS_BYTES];
	struct nm_wire_chunk c = rts_of(parts, tag, seq, length, id);

	say(&c);
}

static inline struct nm_wire_chunk announcement(uint32_t tag, uint32_t seq,
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

static inline void give_announcement(uint32_t tag, uint32_t seq,
				     uint64_t length)
{
	struct nm_wire_chunk c = announcement(tag, seq, length);

	theirs = OPEN;
	say(&c);
}

/* --- what the user says --- */

static inline void recv_data(int i, struct nm_gate *from, uint32_t tag,
			     uint32_t mask, struct nm_data data)
{
	CHECK_INT(nm_sr_irecv(session, from, tag, mask, &data, &reqs[i]), 0);
	progress();
}

static inline void recv_into(int i, uint32_t tag)
{
	recv_data(i, peer, tag, NM_TAG_EXACT, nm_data_flat(text[i], LARGE));
}

static inline void send_bytes(int i, uint32_t tag, size_t bytes)
{
	struct nm_data d = nm_data_flat(text[i], bytes);

	CHECK_INT(nm_sr_isend(session, peer, tag, &d, 0, &reqs[i]), 0);
}

static inline int error_of(int i)
{
	return status_of(i).error;
}

/* Receives that are posted still: as if the peer had died. */
static inline void finish(void)
{
	dead = true;
	progress();
}

#endif
