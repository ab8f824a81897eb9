/*
 * A core of rank 0 with three rails to rank 1, which the test plays itself, and
 * a strategy that cuts bodies as the test says.
 */
#ifndef TESTS_NMAD_CORE_RAILS_H
#define TESTS_NMAD_CORE_RAILS_H

#include "played.h"

enum { RAILS = 3, XFERS = 64 };

static bool dead[RAILS];
static uint32_t given_seq;

/* Parts that drivers have, in the order in which they came. */
static struct nm_xfer *sending[XFERS], *receiving[XFERS];
static int nsending, nreceiving;

/* --- the driver --- */

static inline int mock_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	(void)link;
	return record(pkt);
}

static inline bool mock_poll(struct nm_rail *rail, int budget)
{
	bool moved = rail->index == 0 && deliver(rail, budget);

	if (dead[rail->index])
		nm_rail_link_dead(rail, &rail->links[1], -ECONNRESET);
	return moved;
}

/* The token is the rail's number, so that one of another rail is seen. */
static inline void mock_xfer_offer(struct nm_xfer *x)
{
	x->mine.length = 1;
	x->mine.bytes[0] = (unsigned char)('0' + x->link->rail->index);
}

static inline int mock_xfer_recv(struct nm_xfer *x)
{
	CHECK(nreceiving < XFERS);
	receiving[nreceiving++] = x;
	CHECK_INT(x->peers.length, 1);
	CHECK_INT(x->peers.bytes[0], '0' + x->link->rail->index);
	mock_xfer_offer(x);
	nm_rail_xfer_ready(x->link->rail, x);
	return 0;
}

static inline int mock_xfer_send(struct nm_xfer *x)
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

static inline int cut_as_told(struct nm_gate *gate, size_t length,
			      struct nm_share *out)
{
	int n = 0;

	CHECK_INT(gate->nlinks, RAILS);
	(void)length;
	for (int i = 0; i < RAILS; i++)
		if (shares[i] > 0)
			out[n++] = (struct nm_share){ i, shares[i] };
	return n;
}

static inline void shares_are(size_t a, size_t b, size_t c)
{
	shares[0] = a;
	shares[1] = b;
	shares[2] = c;
}

/* --- a core of rank 0 with three rails to rank 1 --- */

static inline void rails_setup(const struct nm_strategy *strategy)
{
	mock_core_rails(&core, &mock, 1 << 20, RAILS);
	core.config.strategy = strategy;
	peer = &core.gates[1];
	nsent = ngiven = ndelivered = nsending = nreceiving = 0;
	memset(dead, 0, sizeof(dead));
	given_seq = 0;
	CHECK_INT(nm_core_session_open(&core, SESSION, &session), 0);
	nm_ids_put(&core.offers, nm_ids_get(&core.offers, &core));
	taken = core.mem.taken;
}

static inline void rails_teardown(void)
{
	progress();
	CHECK_INT(load_relaxed(&core.pending), 0);
	CHECK_INT(nm_core_session_close(session), 0);
	CHECK_INT(core.mem.taken, taken);
	nm_core_exit(&core);
}

/* --- what the peer says --- */

static inline void give_rtr(uint64_t id, uint64_t length)
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
static inline void give_urgent(const struct said *said, int n, int priority)
{
	unsigned char parts[NM_WIRE_PARTS_BYTES];
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_RTS,
				   .nparts = (uint8_t)n,
				   .priority = (int8_t)priority,
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

static inline void give_rts(const struct said *said, int n)
{
	give_urgent(said, n, 0);
}

static inline struct nm_wire_part part_of(const struct nm_wire_chunk *c, int i)
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

static inline void recv_into(int i, size_t bytes)
{
	struct nm_data d = nm_data_flat(text[i], bytes);

	CHECK_INT(nm_sr_irecv(session, peer, 0, NM_TAG_ANY, &d, &reqs[i]), 0);
	progress();
}

static inline void send_bytes(int i, size_t bytes)
{
	struct nm_data d = nm_data_flat(text[i], bytes);

	CHECK_INT(nm_sr_isend(session, peer, 0, &d, 0, &reqs[i]), 0);
}

#endif
