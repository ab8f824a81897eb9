/*
 * A packet being built: the headers of its chunks lie here, their payload is
 * only referred to until the driver copies or gathers it. One a link, for its
 * whole life: the core fills it while it holds the link's turn.
 *
 *   ctl      | head | chunk 0 | chunk 1 | ...        (headers)
 *   pieces   [0] ctl bytes 0..a, then payload 0; [1] ctl a..b, payload 1 ...
 */
#ifndef NMAD_CORE_PKT_H
#define NMAD_CORE_PKT_H

#include "rail.h"
#include "wire.h"

enum { NM_PKT_PIECES = 8 };

struct nm_piece {
	size_t ctl_end;             /* headers before the payload end here */
	const struct nm_data *data; /* the payload ... */
	size_t length;              /* ... from its start */
};

struct nm_pkt {
	/* All: who has the link's turn, then the rail's owner. */
	struct nm_event post;
	struct nm_link *link;
	size_t length;        /* in all */
	size_t ctl_len;       /* bytes of headers */
	unsigned npieces;     /* at least 1 once it has payload */
	unsigned nchunks;     /* without the head */
	struct nm_chain reqs; /* complete when the packet has left */
	bool with_driver;     /* o: posted, not yet reported as sent */
	struct nm_piece pieces[NM_PKT_PIECES];
	unsigned char ctl[NM_CTL_MAX];
};

static inline void nm_pkt_init(struct nm_pkt *pkt)
{
	pkt->length = NM_WIRE_HEAD;
	pkt->ctl_len = NM_WIRE_HEAD;
	pkt->npieces = 0;
	pkt->nchunks = 0;
	nm_chain_init(&pkt->reqs);
}

/* Whether a chunk with so many bytes of header and payload still fits. */
bool nm_pkt_fits(const struct nm_pkt *pkt, size_t header, size_t payload);

/* Append a chunk that fits. `data` is its payload, or NULL. */
void nm_pkt_put(struct nm_pkt *pkt, const struct nm_wire_chunk *c,
		const struct nm_data *data);

/* Write the head; the packet is whole then. */
void nm_pkt_seal(struct nm_pkt *pkt, uint32_t credit);

#endif
