/* nmad/core/wire.c: what is written is what is read. */
#include "../../check.h"

#include <errno.h>

#include "../../../nmad/core/wire.h"

static unsigned char packet[1024], parts[NM_WIRE_PARTS_BYTES];

static size_t put(size_t at, const struct nm_wire_chunk *c)
{
	nm_wire_put_chunk(packet + at, c);
	at += nm_wire_chunk_size(c);
	if (c->kind == NM_WIRE_KIND_EAGER && c->length > 0) {
		memcpy(packet + at, c->payload, c->length);
		at += c->length;
	}
	if ((c->kind == NM_WIRE_KIND_PART || c->kind == NM_WIRE_KIND_RESENT) &&
	    c->tail_len > 0) {
		memcpy(packet + at, c->tail, c->tail_len);
		at += c->tail_len;
	}
	return at;
}

static void put_head(uint16_t nchunks, uint32_t credit)
{
	struct nm_wire_head h = { nchunks, credit };

	nm_wire_put_head(packet, &h);
}

static void same(const struct nm_wire_chunk *c, const struct nm_wire_chunk *in)
{
	CHECK_INT(c->kind, in->kind);
	CHECK_INT(c->flags, in->flags);
	CHECK_INT(c->nparts, in->nparts);
	CHECK_INT(c->priority, in->priority);
	CHECK_INT(c->rail, in->rail);
	CHECK_INT(c->tag, in->tag);
	CHECK_INT(c->seq, in->seq);
	CHECK_INT(c->session, in->session);
	CHECK_INT(c->length, in->length);
	CHECK_INT(c->id, in->id);
	CHECK_INT(c->offset, in->offset);
	CHECK_INT(c->tail_len, in->tail_len);
	if (c->tail_len > 0)
		CHECK_INT(memcmp(c->tail, in->tail, c->tail_len), 0);
	if (c->kind == NM_WIRE_KIND_EAGER && c->length > 0)
		CHECK_INT(memcmp(c->payload, in->payload, c->length), 0);
}

enum { TAIL_LEN = NM_WIRE_PART + 4 }; /* of the RTS below */

static const struct nm_wire_chunk one_of_each[] = {
	{ .kind = NM_WIRE_KIND_EAGER,
	  .tag = 0xfffffffe,
	  .seq = 7,
	  .session = 0x0123456789abcdef,
	  .length = 5,
	  .payload = "hello" },
	{ .kind = NM_WIRE_KIND_EAGER,
	  .flags = NM_WIRE_SYNC,
	  .tag = 1,
	  .seq = 0xffffffff,
	  .session = 1,
	  .id = 0xfedcba9876543210,
	  .payload = "" },
	{ .kind = NM_WIRE_KIND_RTS,
	  .nparts = 1,
	  .priority = -3,
	  .tag = 9,
	  .seq = 8,
	  .session = 2,
	  .length = (uint64_t)1 << 40,
	  .tail_len = TAIL_LEN,
	  .tail = parts },
	{ .kind = NM_WIRE_KIND_RTR,
	  .length = 12,
	  .id = 13,
	  .tail_len = 4,
	  .tail = "tokn" },
	{ .kind = NM_WIRE_KIND_ACK, .id = 14 },
	{ .kind = NM_WIRE_KIND_ACK, .flags = NM_WIRE_RETRACTED, .id = 17 },
	{ .kind = NM_WIRE_KIND_RTR,
	  .flags = NM_WIRE_RETRACTED,
	  .id = 18,
	  .tail = "" },
	{ .kind = NM_WIRE_KIND_RETRACT,
	  .tag = 19,
	  .seq = 20,
	  .session = 0xfedcba9876543210,
	  .id = 0xffffffff },
	{ .kind = NM_WIRE_KIND_RTS,
	  .flags = NM_WIRE_ANNOUNCED,
	  .nparts = 1,
	  .tag = 10,
	  .seq = 9,
	  .session = 3,
	  .length = (uint64_t)1 << 40,
	  .id = 15,
	  .tail_len = TAIL_LEN,
	  .tail = parts },
	{ .kind = NM_WIRE_KIND_ANNOUNCE,
	  .rail = 4,
	  .tag = 11,
	  .seq = 10,
	  .session = 4,
	  .length = (uint64_t)1 << 41,
	  .id = 16,
	  .tail_len = 4,
	  .tail = "tokn" },
	{ .kind = NM_WIRE_KIND_PART,
	  .tag = 12,
	  .seq = 11,
	  .session = 0xfedcba9876543210,
	  .length = 0xffffffff,
	  .offset = 0xfffffffa,
	  .tail_len = 5,
	  .tail = "world" },
	{ .kind = NM_WIRE_KIND_PART,
	  .flags = NM_WIRE_SYNC,
	  .tag = 12,
	  .seq = 11,
	  .session = 5,
	  .length = 6,
	  .id = 17,
	  .tail_len = 5,
	  .tail = "hello" },
	{ .kind = NM_WIRE_KIND_RTR,
	  .flags = NM_WIRE_AGAIN,
	  .length = 13,
	  .id = 19,
	  .tail = "" },
	{ .kind = NM_WIRE_KIND_LOST, .rail = 5 },
	{ .kind = NM_WIRE_KIND_RESENT,
	  .rail = 6,
	  .seq = 0xfffffffe,
	  .tail_len = 6,
	  .tail = "packet" },
	{ .kind = NM_WIRE_KIND_RESENT,
	  .flags = NM_WIRE_UNSENT,
	  .rail = 7,
	  .tail = "" },
	{ .kind = NM_WIRE_KIND_OFFER,
	  .rail = 7,
	  .id = 0xfedcba9876543210,
	  .tail_len = 4,
	  .tail = "tokn" },
};

TEST(a_packet_of_all_kinds_is_read_as_it_was_written)
{
	const struct nm_wire_part part = { .rail = 3,
					   .length = (uint64_t)1 << 40,
					   .id = 11,
					   .token_len = 4,
					   .token = "tokn" };
	const struct nm_wire_chunk *in = one_of_each;
	uint32_t tail_len = 0;
	size_t n = sizeof(one_of_each) / sizeof(*in), length = NM_WIRE_HEAD;
	size_t at = NM_WIRE_HEAD;
	struct nm_wire_head h;

	nm_wire_put_part(parts, &tail_len, &part);
	CHECK_INT(tail_len, in[2].tail_len);
	put_head((uint16_t)n, 4711);
	for (size_t i = 0; i < n; i++)
		length = put(length, &in[i]);
	CHECK_INT(nm_wire_get_head(packet, length, &h), 0);
	CHECK_INT(h.nchunks, n);
	CHECK_INT(h.credit, 4711);
	for (size_t i = 0; i < n; i++) {
		struct nm_wire_chunk c;

		CHECK_INT(nm_wire_get_chunk(packet, length, &at, &c), 0);
		same(&c, &in[i]);
	}
	CHECK_INT(at, length);
}

TEST(numbers_are_little_endian_on_every_machine)
{
	static const unsigned char want[] = { 7, 0, 2, 1, 6, 5, 4, 3 };

	put_head(0x0102, 0x03040506);
	CHECK_INT(memcmp(packet, want, sizeof(want)), 0);
}

TEST(a_packet_of_another_version_is_refused)
{
	struct nm_wire_head h;

	put_head(0, 0);
	packet[0]++;
	CHECK_INT(nm_wire_get_head(packet, NM_WIRE_HEAD, &h), -EBADMSG);
}

TEST(every_cut_of_a_chunk_is_refused)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_EAGER,
				   .flags = NM_WIRE_SYNC,
				   .length = 9,
				   .payload = "123456789" };
	struct nm_wire_chunk out;
	size_t length = put(0, &c);

	for (size_t cut = 0; cut < length; cut++) {
		size_t at = 0;

		CHECK_INT(nm_wire_get_chunk(packet, cut, &at, &out), -EBADMSG);
		CHECK_INT(at, 0);
	}
}

/* Bits and bytes that mean nothing today. */
TEST(what_means_nothing_must_be_zero)
{
	static const struct {
		uint8_t kind, at, bits;
	} all[] = {
		{ NM_WIRE_KIND_EAGER, 1, 0xfe },
		{ NM_WIRE_KIND_EAGER, 2, 0xff },
		{ NM_WIRE_KIND_EAGER, 3, 0xff },
		{ NM_WIRE_KIND_RTS, 2, 0xfd },
		{ NM_WIRE_KIND_RTS, 3, 0xf8 },
		{ NM_WIRE_KIND_RTR, 1, 0xf3 },
		{ NM_WIRE_KIND_ACK, 1, 0xfb },
		{ NM_WIRE_KIND_RETRACT, 1, 0xff },
		{ NM_WIRE_KIND_RETRACT, 2, 0xff },
		{ NM_WIRE_KIND_RETRACT, 3, 0xff },
		{ NM_WIRE_KIND_ACK, 4, 0xff },
		{ NM_WIRE_KIND_ACK, 7, 0xff },
		{ NM_WIRE_KIND_PART, 1, 0xfe },
		{ NM_WIRE_KIND_PART, 2, 0xff },
		{ NM_WIRE_KIND_PART, 3, 0xff },
		{ NM_WIRE_KIND_LOST, 2, 0xff },
		{ NM_WIRE_KIND_LOST, 3, 0xff },
		{ NM_WIRE_KIND_RESENT, 1, 0xef },
		{ NM_WIRE_KIND_RESENT, 3, 0xff },
	};
	const struct nm_wire_part part = { .length = 1, .id = 1, .token = "" };

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct nm_wire_chunk c = { .kind = all[i].kind }, out;
		size_t length, at = 0;

		if (c.kind == NM_WIRE_KIND_RTS) {
			c.nparts = 1;
			c.tail = parts;
			nm_wire_put_part(parts, &c.tail_len, &part);
		}
		if (c.kind == NM_WIRE_KIND_PART) {
			c.length = 2;
			c.tail_len = 1;
			c.tail = "x";
		}
		length = put(0, &c);
		CHECK_INT(nm_wire_get_chunk(packet, length, &at, &out), 0);
		for (unsigned bit = 1; bit < 256; bit <<= 1) {
			if (!(all[i].bits & bit))
				continue;
			at = 0;
			packet[all[i].at] ^= (unsigned char)bit;
			CHECK_INT(nm_wire_get_chunk(packet, length, &at, &out),
				  -EBADMSG);
			packet[all[i].at] ^= (unsigned char)bit;
		}
	}
}

TEST(a_token_longer_than_allowed_is_refused)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_RTR, .id = 1 }, out;
	size_t at = 0;

	put(0, &c);
	packet[2] = NM_TOKEN_MAX + 1;
	CHECK_INT(nm_wire_get_chunk(packet, sizeof(packet), &at, &out),
		  -EBADMSG);
}

/* It wants something, and there is no token for it yet. */
TEST(an_rtr_that_asks_for_another_rail_says_nothing_else)
{
	struct nm_wire_chunk good = { .kind = NM_WIRE_KIND_RTR,
				      .flags = NM_WIRE_AGAIN,
				      .length = 1,
				      .tail = "token" };
	struct nm_wire_chunk c, out;

	for (int what = 0; what < 4; what++) {
		size_t length, at = 0;

		c = good;
		c.length -= what == 1;
		c.tail_len += what == 2;
		c.flags |= what == 3 ? NM_WIRE_RETRACTED : 0;
		length = put(0, &c);
		CHECK_INT(nm_wire_get_chunk(packet, length, &at, &out),
			  what == 0 ? 0 : -EBADMSG);
	}
}

TEST(what_is_resent_and_the_token_of_an_offer_end_in_the_packet)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_RESENT,
				   .tail_len = 6,
				   .tail = "packet" };
	struct nm_wire_chunk out;
	size_t at = 0;

	for (int k = 0; k < 2; k++) {
		size_t length = put(0, &c);

		for (size_t cut = 0; cut < length; cut++) {
			CHECK_INT(nm_wire_get_chunk(packet, cut, &at, &out),
				  -EBADMSG);
			CHECK_INT(at, 0);
		}
		c.kind = NM_WIRE_KIND_OFFER;
	}
	packet[2] = NM_TOKEN_MAX + 1;
	CHECK_INT(nm_wire_get_chunk(packet, sizeof(packet), &at, &out),
		  -EBADMSG);
}

/* --- a part of an eager message --- */

static int read_eager_part(uint64_t length, uint32_t offset, uint32_t bytes)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_PART,
				   .length = length,
				   .offset = offset,
				   .tail_len = bytes,
				   .tail = "12345" };
	size_t end = put(0, &c), at = 0;
	struct nm_wire_chunk out;

	for (size_t cut = 0; cut < end; cut++) {
		CHECK_INT(nm_wire_get_chunk(packet, cut, &at, &out), -EBADMSG);
		CHECK_INT(at, 0);
	}
	return nm_wire_get_chunk(packet, end, &at, &out);
}

TEST(a_part_lies_in_its_message_and_is_neither_nothing_nor_all_of_it)
{
	CHECK_INT(read_eager_part(6, 0, 5), 0);
	CHECK_INT(read_eager_part(6, 1, 5), 0);
	CHECK_INT(read_eager_part(6, 2, 5), -EBADMSG);
	CHECK_INT(read_eager_part(6, 0xffffffff, 5), -EBADMSG);
	CHECK_INT(read_eager_part(6, 3, 0), -EBADMSG);
	CHECK_INT(read_eager_part(5, 0, 5), -EBADMSG);
	CHECK_INT(read_eager_part(4, 0, 5), -EBADMSG);
	CHECK_INT(read_eager_part(0, 0, 0), -EBADMSG);
}

/* --- the parts of an RTS --- */

/* One of n parts, the i-th of `lengths`; in `packet`. Its size. */
static size_t put_rts(int n, const uint64_t *lengths)
{
	static const unsigned char token[NM_TOKEN_MAX] = "token";
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_RTS,
				   .nparts = (uint8_t)n,
				   .tail = parts };

	for (int i = 0; i < n; i++) {
		struct nm_wire_part part = { .rail = (uint8_t)i,
					     .length = lengths[i],
					     .id = 100 + (uint64_t)i,
					     .token_len = (uint32_t)(8 * i),
					     .token = token };

		nm_wire_put_part(parts, &c.tail_len, &part);
	}
	return put(0, &c);
}

static int read_rts(size_t length, struct nm_wire_chunk *out)
{
	size_t at = 0;
	int rc = nm_wire_get_chunk(packet, length, &at, out);

	CHECK(rc < 0 ? at == 0 : at == length);
	return rc;
}

TEST(the_parts_of_a_body_are_read_as_they_were_written)
{
	const uint64_t lengths[] = { 1, 2, 3, 4, 5, 6, 7, 1ull << 40 };
	size_t length = put_rts(8, lengths), at = 0;
	struct nm_wire_chunk c;
	struct nm_wire_part part;

	CHECK_INT(read_rts(length, &c), 0);
	CHECK_INT(c.nparts, 8);
	CHECK_INT(c.length, 28 + (1ull << 40));
	for (int i = 0; i < 8; i++) {
		nm_wire_get_part(c.tail, &at, &part);
		CHECK_INT(part.rail, i);
		CHECK_INT(part.length, lengths[i]);
		CHECK_INT(part.id, 100 + i);
		CHECK_INT(part.token_len, 8 * i);
		if (i > 0)
			CHECK_INT(memcmp(part.token, "token", 6), 0);
	}
	CHECK_INT(at, c.tail_len);
	for (size_t cut = 0; cut < length; cut++)
		CHECK_INT(read_rts(cut, &c), -EBADMSG);
}

TEST(a_body_of_no_parts_or_too_many_is_refused)
{
	const uint64_t lengths[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	size_t length = put_rts(8, lengths);
	struct nm_wire_chunk c;

	packet[1] = 0;
	CHECK_INT(read_rts(length, &c), -EBADMSG);
	packet[1] = 9;
	CHECK_INT(read_rts(sizeof(packet), &c), -EBADMSG);
	packet[1] = 255;
	CHECK_INT(read_rts(sizeof(packet), &c), -EBADMSG);
}

TEST(a_priority_that_there_is_not_is_refused)
{
	const uint64_t lengths[] = { 1 };
	size_t length = put_rts(1, lengths);
	struct nm_wire_chunk c;

	for (int priority = -128; priority < 128; priority++) {
		packet[3] = (unsigned char)priority;
		CHECK_INT(read_rts(length, &c),
			  priority < NM_PRIORITY_MIN ||
					  priority > NM_PRIORITY_MAX
				  ? -EBADMSG
				  : 0);
	}
}

TEST(an_empty_part_and_a_sum_too_large_are_refused)
{
	const uint64_t empty[] = { 5, 0, 5 };
	const uint64_t most[] = { UINT64_MAX - 5, 5 };
	const uint64_t huge[] = { UINT64_MAX - 5, 6 };
	struct nm_wire_chunk c;

	CHECK_INT(read_rts(put_rts(3, empty), &c), -EBADMSG);
	CHECK_INT(read_rts(put_rts(2, most), &c), 0);
	CHECK(c.length == UINT64_MAX);
	CHECK_INT(read_rts(put_rts(2, huge), &c), -EBADMSG);
}

TEST(a_token_of_a_part_ends_in_the_packet_and_is_not_too_long)
{
	const uint64_t lengths[] = { 1, 2 };
	size_t length = put_rts(2, lengths);
	size_t second = NM_WIRE_RTS + NM_WIRE_PART;
	struct nm_wire_chunk c;

	packet[second + 2]++;
	CHECK_INT(read_rts(length, &c), -EBADMSG);
	packet[second + 2] = NM_TOKEN_MAX + 1;
	CHECK_INT(read_rts(sizeof(packet), &c), -EBADMSG);
}
