/*
 * The decoder against garbage: random bytes, and true packets with some bytes
 * changed, cut anywhere. Each packet is at the end of its own heap block, so
 * that a read past the end is seen by AddressSanitizer. With WIRE_LIBFUZZER
 * the same function is libFuzzer's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/compiler.h>

#include "../../../nmad/core/wire.h"

/* They take what the chunk says, each is good and all are the message. */
static unsigned decode_parts(const struct nm_wire_chunk *c)
{
	uint64_t length = 0;
	unsigned sum = 0;
	size_t at = 0;

	for (int i = 0; i < c->nparts; i++) {
		const unsigned char *token;
		struct nm_wire_part part;

		nm_wire_get_part(c->tail, &at, &part);
		token = part.token;
		for (uint32_t j = 0; j < part.token_len; j++)
			sum += token[j];
		if (part.length == 0 || part.token_len > NM_TOKEN_MAX ||
		    part.length > UINT64_MAX - length)
			abort();
		length += part.length;
	}
	if (at != c->tail_len || length != c->length)
		abort();
	return sum;
}

/* Decode all there is; the number of chunks, or -errno. */
static int decode(const unsigned char *data, size_t length)
{
	struct nm_wire_head h;
	struct nm_wire_chunk c;
	size_t at = NM_WIRE_HEAD;
	unsigned sum = 0;
	int n = 0;

	if (nm_wire_get_head(data, length, &h) < 0)
		return -EBADMSG;
	for (; n < h.nchunks; n++) {
		const unsigned char *p;

		if (nm_wire_get_chunk(data, length, &at, &c) < 0)
			return -EBADMSG;
		if (at > length)
			abort();
		p = c.payload;
		for (uint64_t i = 0; p != NULL && i < c.length; i++)
			sum += p[i];
		p = c.tail;
		for (uint32_t i = 0; p != NULL && i < c.tail_len; i++)
			sum += p[i];
		if (c.kind == NM_WIRE_KIND_RTS)
			sum += decode_parts(&c);
		if (c.kind == NM_WIRE_KIND_PART &&
		    (c.tail_len == 0 || c.tail_len >= c.length ||
		     c.offset > c.length - c.tail_len))
			abort();
	}
	return sum == 1 ? n + 1 : n;
}

#ifdef WIRE_LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	decode(data, length);
	return 0;
}
#else
#include "../../check.h"

/* One thread: of no interest to TSan. */
enum { ROUNDS = BASE_TSAN ? 20000 : 200000, ROOM = 500 };

static const unsigned char token[NM_TOKEN_MAX];

static void make_parts(struct nm_wire_chunk *c, unsigned char *parts)
{
	c->nparts = (uint8_t)(1 + check_random() % 3);
	c->priority = (int8_t)((int)(check_random() % 16) + NM_PRIORITY_MIN);
	c->tail_len = 0;
	c->tail = parts;
	for (int i = 0; i < c->nparts; i++) {
		struct nm_wire_part part = {
			.rail = (uint8_t)i,
			.length = 1 + check_random() % 1000,
			.id = check_random(),
			.token_len = (uint32_t)(check_random() % 20),
			.token = token,
		};

		nm_wire_put_part(parts, &c->tail_len, &part);
	}
}

static void make_eager_part(struct nm_wire_chunk *c)
{
	c->tail_len = 1 + (uint32_t)(check_random() % 16);
	c->offset = (uint32_t)(check_random() % 1000);
	c->length = c->offset + c->tail_len + 1 + check_random() % 1000;
}

static size_t true_packet(unsigned char *to)
{
	struct nm_wire_head h = { (uint16_t)(check_random() % 4), 0 };
	size_t at = NM_WIRE_HEAD;

	nm_wire_put_head(to, &h);
	for (int i = 0; i < h.nchunks; i++) {
		struct nm_wire_chunk c = {
			.kind = (uint8_t)(1 +
					  check_random() % (NM_WIRE_KINDS - 1)),
			.tail_len = (uint32_t)(check_random() % 20),
			.tail = token,
			.length = check_random() % 16,
		};
		unsigned char parts[NM_WIRE_PARTS_BYTES];

		if (c.kind == NM_WIRE_KIND_RTS)
			make_parts(&c, parts);
		if (c.kind == NM_WIRE_KIND_PART)
			make_eager_part(&c);
		if ((c.kind == NM_WIRE_KIND_EAGER ||
		     c.kind == NM_WIRE_KIND_PART) &&
		    check_random() % 2)
			c.flags = NM_WIRE_SYNC;
		if (c.kind == NM_WIRE_KIND_RTS && check_random() % 2)
			c.flags = NM_WIRE_ANNOUNCED;
		if ((c.kind == NM_WIRE_KIND_RTR ||
		     c.kind == NM_WIRE_KIND_ACK) &&
		    check_random() % 2)
			c.flags = NM_WIRE_RETRACTED;
		if (c.kind == NM_WIRE_KIND_RTR && check_random() % 2) {
			c.flags = NM_WIRE_AGAIN;
			c.length = 1 + check_random() % 16;
			c.tail_len = 0;
		}
		if (c.kind == NM_WIRE_KIND_RESENT && check_random() % 2)
			c.flags = NM_WIRE_UNSENT;
		nm_wire_put_chunk(to + at, &c);
		at += nm_wire_chunk_size(&c);
		if (c.kind == NM_WIRE_KIND_EAGER) {
			memset(to + at, 0, c.length);
			at += c.length;
		}
		if (c.kind == NM_WIRE_KIND_PART ||
		    c.kind == NM_WIRE_KIND_RESENT) {
			memset(to + at, 0, c.tail_len);
			at += c.tail_len;
		}
	}
	return at;
}

TEST(garbage_is_never_read_past_its_end)
{
	unsigned char *data;

	for (int i = 0; i < ROUNDS; i++) {
		size_t length = check_random() % ROOM;

		data = malloc(length + 1);
		for (size_t j = 0; j < length; j++)
			data[j] = (unsigned char)check_random();
		if (length > 1 && check_random() % 2) {
			data[0] = NM_WIRE_VERSION;
			data[1] = 0;
		}
		decode(data, length);
		free(data);
	}
}

TEST(a_damaged_packet_is_read_or_refused_never_overrun)
{
	unsigned char whole[ROOM];
	int good = 0;

	for (int i = 0; i < ROUNDS; i++) {
		size_t length = true_packet(whole), cut;
		unsigned char *data;

		CHECK(length <= ROOM);
		CHECK(decode(whole, length) >= 0);
		cut = check_random() % 4 ? length
					 : check_random() % (length + 1);
		data = malloc(cut + 1);
		memcpy(data, whole, cut);
		for (uint64_t n = check_random() % 3; n > 0 && cut > 0; n--)
			data[check_random() % cut] ^=
				(unsigned char)(1u << check_random() % 8);
		good += decode(data, cut) >= 0;
		free(data);
	}
	CHECK(good > 0);
}
#endif
