/*
 * A core of rank 0, and rank 1, which the test plays itself: what the core
 * sends is kept, and what the test gives comes when the driver is polled.
 */
#ifndef TESTS_NMAD_CORE_PLAYED_H
#define TESTS_NMAD_CORE_PLAYED_H

#include "../../check.h"

#include <errno.h>

#include <nmad/nmad.h>

#include "mock.h"

enum { PACKETS = 256, BYTES = 2048, SESSION = 5 };

struct packet {
	struct nm_pkt_in in;
	unsigned char bytes[BYTES];
	size_t length;
	int rail; /* over which it left */
};

static struct nm_core core;
static struct nm_session *session;
static struct nm_gate *peer;
static struct packet sent[PACKETS], given[PACKETS];
static int nsent, ngiven, ndelivered;
static size_t taken; /* memory that a core at rest has */
static char text[16][BYTES];
static struct nm_sr_request reqs[16];

/* --- for the driver --- */

static inline int record(const struct nm_pkt *pkt)
{
	CHECK(nsent < PACKETS);
	sent[nsent].length = nm_pkt_length(pkt);
	sent[nsent].rail = pkt->link->rail->index;
	nm_pkt_copy(pkt, sent[nsent].bytes);
	nsent++;
	return NM_SENT;
}

static inline bool deliver(struct nm_rail *rail, int budget)
{
	bool moved = ndelivered < ngiven;

	for (; ndelivered < ngiven && budget > 0; budget--) {
		struct packet *p = &given[ndelivered++];

		p->in.link = &rail->links[1];
		p->in.data = p->bytes;
		p->in.length = p->length;
		nm_rail_recv(rail, &p->in);
	}
	return moved;
}

static inline void mock_release(struct nm_rail *rail, struct nm_pkt_in *in)
{
	(void)rail;
	(void)in;
}

/* --- the test's --- */

static inline void progress(void)
{
	for (int i = 0; i < 8; i++)
		nm_core_progress(&core);
}

/* A packet of this chunk, to come when somebody polls. */
static inline void give(const struct nm_wire_chunk *c)
{
	struct nm_wire_head h = { 1, 0 };
	struct packet *p = &given[ngiven++];

	CHECK(ngiven < PACKETS);
	nm_wire_put_head(p->bytes, &h);
	nm_wire_put_chunk(p->bytes + NM_WIRE_HEAD, c);
	p->length = NM_WIRE_HEAD + nm_wire_chunk_size(c);
	if (c->kind == NM_WIRE_KIND_PART || c->kind == NM_WIRE_KIND_RESENT) {
		memcpy(p->bytes + p->length, c->tail, c->tail_len);
		p->length += c->tail_len;
	}
	if (c->kind != NM_WIRE_KIND_EAGER || c->length == 0)
		return;
	memcpy(p->bytes + p->length, c->payload, c->length);
	p->length += c->length;
}

/* The only chunk of the i-th packet that left. */
static inline struct nm_wire_chunk chunk_of(int i)
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

static inline struct nm_sr_status status_of(int i)
{
	struct nm_sr_status s;

	CHECK(nm_sr_is_complete(&reqs[i]));
	nm_sr_status(&reqs[i], &s);
	return s;
}

/* What the rail's driver says of a transfer that it has. */
static inline void end(struct nm_xfer *x)
{
	struct nm_news news;

	CHECK(x != NULL);
	nm_news_init(&news, true);
	x->link->rail->news = &news;
	nm_rail_xfer_done(x->link->rail, x, 0);
	mock_settle(&core, &news);
}

#endif
