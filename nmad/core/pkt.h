/*
 * A packet being built: the headers of its chunks lie here, their payload is
 * only referred to until the driver copies or gathers it. One a link, for its
 * whole life: the core fills it while it holds the link's turn.
 *
 *   ctl      | head | chunk 0 | chunk 1 | ...        (headers)
 *   pieces   [0] ctl bytes 0..a, then payload 0; [1] ctl a..b, payload 1 ...
 *
 * Short flat payload is copied into ctl: many short messages are one piece of
 * memory, not two each, and of one that goes alone a second copy costs less
 * than a second piece.
 */
#ifndef NMAD_CORE_PKT_H
#define NMAD_CORE_PKT_H

#include "rail.h"
#include "wire.h"

enum {
	NM_PKT_PIECES = 8,
	NM_PKT_CTL = 4096, /* bytes of headers and short payload */
	NM_PKT_SHORT = 64, /* payload up to this is short */
};

struct nm_doubt;

struct nm_piece {
	size_t ctl_end;             /* what of ctl is before the payload */
	const struct nm_data *data; /* the payload ... */
	size_t offset, length;      /* ... of it */
	struct nm_data_place place; /* where nm_pkt_iov() was last */
};

struct nm_pkt {
	/* All: who has the link's turn, then the rail's owner. */
	struct nm_event post;
	struct nm_link *link;
	size_t length;        /* in all */
	size_t ctl_len;       /* bytes in ctl */
	unsigned npieces;     /* payload that is not in ctl */
	unsigned nchunks;     /* without the head */
	struct nm_chain reqs; /* complete when the packet has left */
	bool now;             /* somebody waits for it at once */
	union {
		struct nm_req *part_of; /* of a NM_POST_PART: the send */
		struct nm_doubt *doubt; /* of a NM_POST_RESENT: what is in it */
	};
	/* It is the envelope of what goes to an announced receive, and nothing
	 * else: who has that word set is told. NULL: the peer is. */
	struct nm_awaited *awaited;
	struct nm_piece pieces[NM_PKT_PIECES];
	unsigned char ctl[NM_PKT_CTL];
};

static inline void nm_pkt_init(struct nm_pkt *pkt)
{
	pkt->post.kind = NM_POST_PKT;
	pkt->length = NM_WIRE_HEAD;
	pkt->ctl_len = NM_WIRE_HEAD;
	pkt->npieces = 0;
	pkt->nchunks = 0;
	pkt->now = false;
	pkt->awaited = NULL;
	nm_chain_init(&pkt->reqs);
}

/* Whether a chunk with such a header and payload (or NULL) still fits. */
bool nm_pkt_fits(const struct nm_pkt *pkt, size_t header,
		 const struct nm_data *data);

/* Append a chunk that fits. `data` is its payload, or NULL. */
void nm_pkt_put(struct nm_pkt *pkt, const struct nm_wire_chunk *c,
		const struct nm_data *data);

/* The same for a PART, whose payload are c->tail_len bytes of `data`. */
void nm_pkt_put_part(struct nm_pkt *pkt, const struct nm_wire_chunk *c,
		     const struct nm_data *data);

/* Write the head; the packet is whole then. */
void nm_pkt_seal(struct nm_pkt *pkt, uint32_t credit);

#endif
