/*
 * The wire's encoder and its bounded decoder.
 */
#include "wire.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <base/compiler.h>
#include <base/diag.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define wire16(x) (x)
#define wire32(x) (x)
#define wire64(x) (x)
#else
#define wire16(x) __builtin_bswap16(x)
#define wire32(x) __builtin_bswap32(x)
#define wire64(x) __builtin_bswap64(x)
#endif

static void put16(unsigned char *to, uint16_t v)
{
	v = wire16(v);
	memcpy(to, &v, sizeof(v));
}

static void put32(unsigned char *to, uint32_t v)
{
	v = wire32(v);
	memcpy(to, &v, sizeof(v));
}

static void put64(unsigned char *to, uint64_t v)
{
	v = wire64(v);
	memcpy(to, &v, sizeof(v));
}

static uint16_t get16(const unsigned char *from)
{
	uint16_t v;

	memcpy(&v, from, sizeof(v));
	return wire16(v);
}

static uint32_t get32(const unsigned char *from)
{
	uint32_t v;

	memcpy(&v, from, sizeof(v));
	return wire32(v);
}

static uint64_t get64(const unsigned char *from)
{
	uint64_t v;

	memcpy(&v, from, sizeof(v));
	return wire64(v);
}

void nm_wire_put_head(void *to, const struct nm_wire_head *h)
{
	unsigned char *p = to;

	p[0] = NM_WIRE_VERSION;
	p[1] = 0;
	put16(p + 2, h->nchunks);
	put32(p + 4, h->credit);
}

/* Without its parts. */
static size_t rts_head(unsigned flags)
{
	return NM_WIRE_RTS + (flags & NM_WIRE_ANNOUNCED ? 8 : 0);
}

size_t nm_wire_chunk_size(const struct nm_wire_chunk *c)
{
	if (likely(c->kind == NM_WIRE_KIND_EAGER))
		return c->flags & NM_WIRE_SYNC ? NM_WIRE_EAGER_SYNC
					       : NM_WIRE_EAGER;
	switch (c->kind) {
	case NM_WIRE_KIND_PART:
		return c->flags & NM_WIRE_SYNC ? NM_WIRE_EAGER_PART_SYNC
					       : NM_WIRE_EAGER_PART;
	case NM_WIRE_KIND_RTS:
		return rts_head(c->flags) + c->tail_len;
	case NM_WIRE_KIND_RTR:
		return NM_WIRE_RTR + c->tail_len;
	case NM_WIRE_KIND_ACK:
		return NM_WIRE_ACK;
	case NM_WIRE_KIND_ANNOUNCE:
		return NM_WIRE_ANNOUNCE + c->tail_len;
	case NM_WIRE_KIND_RETRACT:
		return NM_WIRE_RETRACT;
	case NM_WIRE_KIND_LOST:
		return NM_WIRE_LOST;
	case NM_WIRE_KIND_RESENT:
		return NM_WIRE_RESENT;
	case NM_WIRE_KIND_OFFER:
		return NM_WIRE_OFFER + c->tail_len;
	}
	base_check(!"a chunk of a known kind");
	return 0;
}

static void put_eager(unsigned char *p, const struct nm_wire_chunk *c)
{
	p[1] = c->flags;
	put16(p + 2, 0);
	put32(p + 4, (uint32_t)c->length);
	put32(p + 8, c->tag);
	put32(p + 12, c->seq);
	put64(p + 16, c->session);
	if (c->flags & NM_WIRE_SYNC)
		put64(p + 24, c->id);
}

static void put_eager_part(unsigned char *p, const struct nm_wire_chunk *c)
{
	p[1] = c->flags;
	put16(p + 2, 0);
	put32(p + 4, c->tail_len);
	put32(p + 8, c->tag);
	put32(p + 12, c->seq);
	put64(p + 16, c->session);
	put32(p + 24, c->offset);
	put32(p + 28, (uint32_t)c->length);
	if (c->flags & NM_WIRE_SYNC)
		put64(p + NM_WIRE_EAGER_PART, c->id);
}

static void put_rts(unsigned char *p, const struct nm_wire_chunk *c)
{
	p[1] = c->nparts;
	p[2] = c->flags;
	p[3] = (unsigned char)c->priority;
	put32(p + 4, c->tag);
	put32(p + 8, c->seq);
	put64(p + 12, c->session);
	if (c->flags & NM_WIRE_ANNOUNCED)
		put64(p + NM_WIRE_RTS, c->id);
	memcpy(p + rts_head(c->flags), c->tail, c->tail_len);
}

static void put_rtr(unsigned char *p, const struct nm_wire_chunk *c)
{
	p[1] = c->flags;
	put16(p + 2, (uint16_t)c->tail_len);
	put64(p + 4, c->length);
	put64(p + 12, c->id);
	if (c->tail_len > 0)
		memcpy(p + NM_WIRE_RTR, c->tail, c->tail_len);
}

static void put_announce(unsigned char *p, const struct nm_wire_chunk *c)
{
	p[1] = c->rail;
	put16(p + 2, (uint16_t)c->tail_len);
	put32(p + 4, c->tag);
	put32(p + 8, c->seq);
	put64(p + 12, c->session);
	put64(p + 20, c->length);
	put64(p + 28, c->id);
	if (c->tail_len > 0)
		memcpy(p + NM_WIRE_ANNOUNCE, c->tail, c->tail_len);
}

static void put_retract(unsigned char *p, const struct nm_wire_chunk *c)
{
	memset(p + 1, 0, 3);
	put32(p + 4, c->tag);
	put32(p + 8, c->seq);
	put32(p + 12, (uint32_t)c->id);
	put64(p + 16, c->session);
}

static void put_lost(unsigned char *p, const struct nm_wire_chunk *c)
{
	p[1] = c->rail;
	put16(p + 2, 0);
}

static void put_resent(unsigned char *p, const struct nm_wire_chunk *c)
{
	p[1] = c->flags;
	p[2] = c->rail;
	p[3] = 0;
	put32(p + 4, c->seq);
	put32(p + 8, c->tail_len);
}

static void put_offer(unsigned char *p, const struct nm_wire_chunk *c)
{
	p[1] = c->rail;
	put16(p + 2, (uint16_t)c->tail_len);
	put64(p + 4, c->id);
	if (c->tail_len > 0)
		memcpy(p + NM_WIRE_OFFER, c->tail, c->tail_len);
}

void nm_wire_put_part(void *parts, uint32_t *len,
		      const struct nm_wire_part *part)
{
	unsigned char *p = (unsigned char *)parts + *len;

	p[0] = part->rail;
	p[1] = 0;
	put16(p + 2, (uint16_t)part->token_len);
	put64(p + 4, part->length);
	put64(p + 12, part->id);
	if (part->token_len > 0)
		memcpy(p + NM_WIRE_PART, part->token, part->token_len);
	*len += NM_WIRE_PART + part->token_len;
}

size_t nm_wire_put_chunk(void *to, const struct nm_wire_chunk *c)
{
	unsigned char *p = to;

	p[0] = c->kind;
	switch (c->kind) {
	case NM_WIRE_KIND_EAGER:
		put_eager(p, c);
		break;
	case NM_WIRE_KIND_PART:
		put_eager_part(p, c);
		break;
	case NM_WIRE_KIND_RTS:
		put_rts(p, c);
		break;
	case NM_WIRE_KIND_RTR:
		put_rtr(p, c);
		break;
	case NM_WIRE_KIND_ANNOUNCE:
		put_announce(p, c);
		break;
	case NM_WIRE_KIND_RETRACT:
		put_retract(p, c);
		break;
	case NM_WIRE_KIND_LOST:
		put_lost(p, c);
		break;
	case NM_WIRE_KIND_RESENT:
		put_resent(p, c);
		break;
	case NM_WIRE_KIND_OFFER:
		put_offer(p, c);
		break;
	default:
		p[1] = c->flags;
		memset(p + 2, 0, 6);
		put64(p + 8, c->id);
	}
	return nm_wire_chunk_size(c);
}

int nm_wire_get_head(const void *packet, size_t length,
		     struct nm_wire_head *out)
{
	const unsigned char *p = packet;

	if (length < NM_WIRE_HEAD || p[0] != NM_WIRE_VERSION || p[1] != 0)
		return -EBADMSG;
	out->nchunks = get16(p + 2);
	out->credit = get32(p + 4);
	return 0;
}

/* The decoders get a chunk of at least one byte; `room` bytes may be read. */

static int get_eager(const unsigned char *p, size_t room,
		     struct nm_wire_chunk *c)
{
	size_t head;

	if (room < NM_WIRE_EAGER || (p[1] & ~NM_WIRE_SYNC) != 0)
		return -EBADMSG;
	c->flags = p[1];
	head = nm_wire_chunk_size(c);
	c->length = get32(p + 4);
	if (get16(p + 2) != 0 || room < head || room - head < c->length)
		return -EBADMSG;
	c->tag = get32(p + 8);
	c->seq = get32(p + 12);
	c->session = get64(p + 16);
	c->id = c->flags & NM_WIRE_SYNC ? get64(p + 24) : 0;
	c->payload = p + head;
	return 0;
}

/* It is neither empty nor all of its message, and lies inside it. */
static int get_eager_part(const unsigned char *p, size_t room,
			  struct nm_wire_chunk *c)
{
	size_t head;

	if (room < NM_WIRE_EAGER_PART || (p[1] & ~NM_WIRE_SYNC) != 0)
		return -EBADMSG;
	c->flags = p[1];
	head = nm_wire_chunk_size(c);
	c->tail_len = get32(p + 4);
	c->offset = get32(p + 24);
	c->length = get32(p + 28);
	if (get16(p + 2) != 0 || room < head || room - head < c->tail_len ||
	    c->tail_len == 0 || c->tail_len >= c->length ||
	    c->offset > c->length - c->tail_len)
		return -EBADMSG;
	c->tag = get32(p + 8);
	c->seq = get32(p + 12);
	c->session = get64(p + 16);
	if (c->flags & NM_WIRE_SYNC)
		c->id = get64(p + NM_WIRE_EAGER_PART);
	c->tail = p + head;
	return 0;
}

/* Behind a head of so many bytes, which begin with kind or rail, x, length. */
static int get_token(const unsigned char *p, size_t room, size_t head,
		     uint32_t *len)
{
	if (room < head)
		return -EBADMSG;
	*len = get16(p + 2);
	return *len <= NM_TOKEN_MAX && *len <= room - head ? 0 : -EBADMSG;
}

void nm_wire_get_part(const void *parts, size_t *at, struct nm_wire_part *out)
{
	const unsigned char *p = (const unsigned char *)parts + *at;

	out->rail = p[0];
	out->token_len = get16(p + 2);
	out->length = get64(p + 4);
	out->id = get64(p + 12);
	out->token = p + NM_WIRE_PART;
	*at += NM_WIRE_PART + out->token_len;
}

/* All of them are there, none is empty, and their lengths have a sum. */
static int check_parts(const unsigned char *p, size_t room,
		       struct nm_wire_chunk *c)
{
	size_t at = 0;

	for (int i = 0; i < c->nparts; i++) {
		struct nm_wire_part part;
		uint32_t len;

		if (get_token(p + at, room - at, NM_WIRE_PART, &len) < 0 ||
		    p[at + 1] != 0)
			return -EBADMSG;
		nm_wire_get_part(p, &at, &part);
		if (part.length == 0 || part.length > UINT64_MAX - c->length)
			return -EBADMSG;
		c->length += part.length;
	}
	c->tail = p;
	c->tail_len = (uint32_t)at;
	return 0;
}

static int get_rts(const unsigned char *p, size_t room, struct nm_wire_chunk *c)
{
	size_t head;

	if (room < NM_WIRE_RTS || (p[2] & ~NM_WIRE_ANNOUNCED) != 0)
		return -EBADMSG;
	c->nparts = p[1];
	c->flags = p[2];
	c->priority = (int8_t)p[3];
	head = rts_head(c->flags);
	if (c->nparts == 0 || c->nparts > NM_WIRE_PARTS_MAX || room < head ||
	    c->priority < NM_PRIORITY_MIN || c->priority > NM_PRIORITY_MAX)
		return -EBADMSG;
	if (c->flags & NM_WIRE_ANNOUNCED)
		c->id = get64(p + NM_WIRE_RTS);
	c->tag = get32(p + 4);
	c->seq = get32(p + 8);
	c->session = get64(p + 12);
	return check_parts(p + head, room - head, c);
}

static int get_rtr(const unsigned char *p, size_t room, struct nm_wire_chunk *c)
{
	if (get_token(p, room, NM_WIRE_RTR, &c->tail_len) < 0 ||
	    (p[1] & ~(NM_WIRE_RETRACTED | NM_WIRE_AGAIN)) != 0)
		return -EBADMSG;
	c->flags = p[1];
	c->tail = p + NM_WIRE_RTR;
	c->length = get64(p + 4);
	c->id = get64(p + 12);
	if ((c->flags & NM_WIRE_AGAIN) && (c->length == 0 || c->tail_len > 0 ||
					   (c->flags & NM_WIRE_RETRACTED)))
		return -EBADMSG;
	return 0;
}

static int get_ack(const unsigned char *p, size_t room, struct nm_wire_chunk *c)
{
	static const unsigned char nothing[6];

	if (room < NM_WIRE_ACK || (p[1] & ~NM_WIRE_RETRACTED) != 0 ||
	    memcmp(p + 2, nothing, sizeof(nothing)) != 0)
		return -EBADMSG;
	c->flags = p[1];
	c->id = get64(p + 8);
	return 0;
}

static int get_announce(const unsigned char *p, size_t room,
			struct nm_wire_chunk *c)
{
	if (get_token(p, room, NM_WIRE_ANNOUNCE, &c->tail_len) < 0)
		return -EBADMSG;
	c->rail = p[1];
	c->tag = get32(p + 4);
	c->seq = get32(p + 8);
	c->session = get64(p + 12);
	c->length = get64(p + 20);
	c->id = get64(p + 28);
	c->tail = p + NM_WIRE_ANNOUNCE;
	return 0;
}

static int get_retract(const unsigned char *p, size_t room,
		       struct nm_wire_chunk *c)
{
	if (room < NM_WIRE_RETRACT || p[1] != 0 || get16(p + 2) != 0)
		return -EBADMSG;
	c->tag = get32(p + 4);
	c->seq = get32(p + 8);
	c->id = get32(p + 12);
	c->session = get64(p + 16);
	return 0;
}

static int get_lost(const unsigned char *p, size_t room,
		    struct nm_wire_chunk *c)
{
	if (room < NM_WIRE_LOST || get16(p + 2) != 0)
		return -EBADMSG;
	c->rail = p[1];
	return 0;
}

/* What is in it may be a packet; it is looked at as one later. */
static int get_resent(const unsigned char *p, size_t room,
		      struct nm_wire_chunk *c)
{
	if (room < NM_WIRE_RESENT || (p[1] & ~NM_WIRE_UNSENT) != 0 || p[3] != 0)
		return -EBADMSG;
	c->flags = p[1];
	c->rail = p[2];
	c->seq = get32(p + 4);
	c->tail_len = get32(p + 8);
	c->tail = p + NM_WIRE_RESENT;
	return c->tail_len <= room - NM_WIRE_RESENT ? 0 : -EBADMSG;
}

static int get_offer(const unsigned char *p, size_t room,
		     struct nm_wire_chunk *c)
{
	if (get_token(p, room, NM_WIRE_OFFER, &c->tail_len) < 0)
		return -EBADMSG;
	c->rail = p[1];
	c->id = get64(p + 4);
	c->tail = p + NM_WIRE_OFFER;
	return 0;
}

static int get_other(const unsigned char *p, size_t room,
		     struct nm_wire_chunk *c)
{
	switch (c->kind) {
	case NM_WIRE_KIND_PART:
		return get_eager_part(p, room, c);
	case NM_WIRE_KIND_RTS:
		return get_rts(p, room, c);
	case NM_WIRE_KIND_RTR:
		return get_rtr(p, room, c);
	case NM_WIRE_KIND_ACK:
		return get_ack(p, room, c);
	case NM_WIRE_KIND_ANNOUNCE:
		return get_announce(p, room, c);
	case NM_WIRE_KIND_RETRACT:
		return get_retract(p, room, c);
	case NM_WIRE_KIND_LOST:
		return get_lost(p, room, c);
	case NM_WIRE_KIND_RESENT:
		return get_resent(p, room, c);
	case NM_WIRE_KIND_OFFER:
		return get_offer(p, room, c);
	}
	return -EBADMSG;
}

int nm_wire_get_chunk(const void *packet, size_t length, size_t *at,
		      struct nm_wire_chunk *out)
{
	const unsigned char *p = (const unsigned char *)packet + *at;
	size_t room = length - *at;
	bool eager;
	int rc;

	if (*at >= length)
		return -EBADMSG;
	memset(out, 0, sizeof(*out));
	out->kind = p[0];
	eager = p[0] == NM_WIRE_KIND_EAGER;
	rc = likely(eager) ? get_eager(p, room, out) : get_other(p, room, out);
	if (rc < 0)
		return rc;
	*at += nm_wire_chunk_size(out);
	if (likely(eager))
		*at += out->length;
	else if (out->kind == NM_WIRE_KIND_PART ||
		 out->kind == NM_WIRE_KIND_RESENT)
		*at += out->tail_len;
	return 0;
}
