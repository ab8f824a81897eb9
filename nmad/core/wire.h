/*
 * What stands on the wire. A packet is a head and some chunks; all numbers are
 * little-endian, nothing is aligned.
 *
 *   head     version 1 | 0 1 | chunks 2 | credit 4
 *   EAGER    kind 1 | flags 1 | 0 2 | length 4 | tag 4 | seq 4 | session 8
 *            [ id 8, if SYNC ] | length bytes of payload
 *   PART     kind 1 | flags 1 | 0 2 | bytes 4 | tag 4 | seq 4 | session 8
 *            offset 4 | length 4 | [ id 8, if SYNC ] | bytes of payload
 *   RTS      kind 1 | parts 1 | flags 1 | priority 1 | tag 4 | seq 4 |
 *            session 8 | [ id 8, if ANNOUNCED ], then for each part:
 *     part     rail 1 | 0 1 | token 2 | length 8 | id 8 | token bytes
 *   RTR      kind 1 | flags 1 | token 2 | length 8 | id 8 | token bytes
 *   ACK      kind 1 | flags 1 | 0 6 | id 8
 *   ANNOUNCE kind 1 | rail 1 | token 2 | tag 4 | seq 4 | session 8 |
 *            length 8 | id 8 | token bytes
 *   RETRACT  kind 1 | 0 3 | tag 4 | seq 4 | which 4 | session 8
 *   LOST     kind 1 | rail 1 | 0 2
 *   RESENT   kind 1 | flags 1 | rail 1 | 0 1 | number 4 | length 4 |
 *            length bytes of a packet
 *   OFFER    kind 1 | rail 1 | token 2 | id 8 | token bytes
 *
 * EAGER, PART, RTS and RETRACT are envelopes: they count in `seq`, per session
 * and sender, and are matched in that order. The body of an RTS is cut into one
 * to eight parts that lie behind one another, each with the rail that it takes:
 * it is as long as all of them, and neither a gap nor an overlap can be said.
 * Its priority is one of enum nm_priority, in two's complement. An id names a
 * send, or a part of one, that waits for an answer at its sender, and comes
 * back in RTR (length: how many bytes of the part the receiver wants; 0: none,
 * the part is over) or ACK (a receive has matched). `credit` gives back room
 * for eager payload (doc/nmad.md, "Protocol").
 *
 * PARTs of one `seq` are one message of `length` bytes (medium.c): whichever
 * comes first is its envelope, so all say the same of it. A PART is the first
 * chunk of its packet, and less than the message.
 *
 * ANNOUNCE says that a receive of so many bytes waits for the next message of
 * this session and tag, if that is `seq` or later, and where (announce.c); its
 * id comes back in the RTS of the message that has gone there.
 *
 * RETRACT takes back an earlier envelope of this session and tag, `which`, that
 * no receive has matched (retract.c); its RTRs or its ACK say so then.
 *
 * The last three are about a rail that is lost between the two (lost.c). LOST
 * says so. RESENT is alone in its packet and has in it the packet of that
 * number, which may have come over the lost rail; or, if UNSENT, one that
 * cannot have. OFFER offers a part of a body, the one of that id, over another
 * rail, and is answered by an RTR as an RTS is. AGAIN in an RTR asks for that.
 *
 * One encoder and one decoder. The decoder believes nothing: it never reads
 * outside the packet, whatever it says.
 */
#ifndef NMAD_CORE_WIRE_H
#define NMAD_CORE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include <nmad/sendrecv.h>

#include "../drivers/driver.h"

enum {
	NM_WIRE_VERSION = 7,
	NM_WIRE_HEAD = 8,
	NM_WIRE_EAGER = 24,
	NM_WIRE_EAGER_SYNC = 32,
	NM_WIRE_EAGER_PART = 32,
	NM_WIRE_EAGER_PART_SYNC = 40,
	NM_WIRE_RTS = 20,  /* without its parts, and the id */
	NM_WIRE_PART = 20, /* without its token */
	NM_WIRE_RTR = 20,
	NM_WIRE_ACK = 16,
	NM_WIRE_ANNOUNCE = 36, /* without its token */
	NM_WIRE_RETRACT = 24,
	NM_WIRE_LOST = 4,
	NM_WIRE_RESENT = 12, /* without the packet */
	NM_WIRE_OFFER = 12,  /* without its token */
	NM_WIRE_PARTS_MAX = 8,
	NM_WIRE_PARTS_BYTES = NM_WIRE_PARTS_MAX * (NM_WIRE_PART + NM_TOKEN_MAX),
};

enum nm_wire_kind {
	NM_WIRE_KIND_EAGER = 1,
	NM_WIRE_KIND_RTS,
	NM_WIRE_KIND_RTR,
	NM_WIRE_KIND_ACK,
	NM_WIRE_KIND_ANNOUNCE,
	NM_WIRE_KIND_PART,
	NM_WIRE_KIND_RETRACT,
	NM_WIRE_KIND_LOST,
	NM_WIRE_KIND_RESENT,
	NM_WIRE_KIND_OFFER,
	NM_WIRE_KINDS, /* one more than there are */
};

enum nm_wire_flags {
	NM_WIRE_SYNC = 1, /* EAGER, PART: answer with an ACK at the match */
	NM_WIRE_ANNOUNCED = 2, /* RTS: to a receive that was announced */
	NM_WIRE_RETRACTED = 4, /* RTR, ACK: the message was taken back */
	NM_WIRE_AGAIN = 8,     /* RTR: wanted, but not over that rail */
	NM_WIRE_UNSENT = 16,   /* RESENT: it has no number */
};

struct nm_wire_head {
	uint16_t nchunks;
	uint32_t credit;
};

/* A chunk; which fields mean something depends on the kind. */
struct nm_wire_chunk {
	uint8_t kind;
	uint8_t flags;       /* EAGER, PART, RTS, RTR, ACK, RESENT */
	uint8_t nparts;      /* RTS */
	int8_t priority;     /* RTS */
	uint8_t rail;        /* ANNOUNCE, OFFER: over which; LOST, RESENT */
	uint32_t tag, seq;   /* envelopes, ANNOUNCE; RESENT: seq: number */
	uint64_t session;    /* envelopes, ANNOUNCE */
	uint64_t length;     /* EAGER: payload; PART, RTS: of all parts; RTR:
			      * wanted; ANNOUNCE: room */
	uint64_t id;         /* EAGER, PART with SYNC, RTS if ANNOUNCED, others;
			      * RETRACT: the seq of which envelope */
	const void *payload; /* decoded EAGER: inside the packet */
	uint32_t offset;     /* PART: of its payload in the message */
	uint32_t tail_len;
	const void *tail; /* PART: its payload, when decoded; RESENT: likewise,
			   * the packet; RTS: the parts as they are written;
			   * RTR, ANNOUNCE, OFFER: the token; decoded: inside
			   * the packet */
};

/* A part of the body that an RTS announces. */
struct nm_wire_part {
	uint8_t rail;
	uint64_t length, id;
	uint32_t token_len;
	const void *token; /* decoded: where the part was read */
};

void nm_wire_put_head(void *to, const struct nm_wire_head *h);

/* Bytes that the chunk's header takes, its payload not counted. */
size_t nm_wire_chunk_size(const struct nm_wire_chunk *c);

/* Write the header; nm_wire_chunk_size(). The payload is to follow. */
size_t nm_wire_put_chunk(void *to, const struct nm_wire_chunk *c);

/* Append a part to those of an RTS that is being made. */
void nm_wire_put_part(void *parts, uint32_t *len,
		      const struct nm_wire_part *part);

/*
 * The parts of a decoded RTS, which has been found to hold nparts of them:
 * advances *at from 0.
 */
void nm_wire_get_part(const void *parts, size_t *at, struct nm_wire_part *out);

/*
 * 0; -EBADMSG: this is no packet of ours. The chunks follow: nm_wire_get_chunk
 * advances *at from NM_WIRE_HEAD, and the last must end where the packet ends.
 */
int nm_wire_get_head(const void *packet, size_t length,
		     struct nm_wire_head *out);
int nm_wire_get_chunk(const void *packet, size_t length, size_t *at,
		      struct nm_wire_chunk *out);

#endif
