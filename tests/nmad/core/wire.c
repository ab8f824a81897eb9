/* nmad/core/wire.c: what is written is what is read. */
#include "../../check.h"

#include <errno.h>

#include "../../../nmad/core/wire.h"

static unsigned char packet[512];

static size_t put(size_t at, const struct nm_wire_chunk *c)
{
	nm_wire_put_chunk(packet + at, c);
	at += nm_wire_chunk_size(c);
	if (c->kind == NM_WIRE_KIND_EAGER) {
		memcpy(packet + at, c->payload, c->length);
		at += c->length;
	}
	return at;
}

static void put_head(uint16_t nchunks, uint32_t credit)
{
	struct nm_wire_head h = { nchunks, credit };

	nm_wire_put_head(packet, &h);
}

TEST(a_packet_of_all_kinds_is_read_as_it_was_written)
{
	static const struct nm_wire_chunk in[] = {
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
		  .rail = 3,
		  .tag = 9,
		  .seq = 8,
		  .session = 2,
		  .length = (uint64_t)1 << 40,
		  .id = 11,
		  .token_len = 4,
		  .token = "tokn" },
		{ .kind = NM_WIRE_KIND_RTR, .length = 12, .id = 13 },
		{ .kind = NM_WIRE_KIND_ACK, .id = 14 },
	};
	size_t n = sizeof(in) / sizeof(in[0]), length = NM_WIRE_HEAD;
	size_t at = NM_WIRE_HEAD;
	struct nm_wire_head h;

	put_head((uint16_t)n, 4711);
	for (size_t i = 0; i < n; i++)
		length = put(length, &in[i]);
	CHECK_INT(nm_wire_get_head(packet, length, &h), 0);
	CHECK_INT(h.nchunks, n);
	CHECK_INT(h.credit, 4711);
	for (size_t i = 0; i < n; i++) {
		struct nm_wire_chunk c;

		CHECK_INT(nm_wire_get_chunk(packet, length, &at, &c), 0);
		CHECK_INT(c.kind, in[i].kind);
		CHECK_INT(c.flags, in[i].flags);
		CHECK_INT(c.rail, in[i].rail);
		CHECK_INT(c.tag, in[i].tag);
		CHECK_INT(c.seq, in[i].seq);
		CHECK_INT(c.session, in[i].session);
		CHECK_INT(c.length, in[i].length);
		CHECK_INT(c.id, in[i].id);
		CHECK_INT(c.token_len, in[i].token_len);
		if (c.token_len > 0)
			CHECK_INT(memcmp(c.token, in[i].token, c.token_len), 0);
		if (c.kind == NM_WIRE_KIND_EAGER && c.length > 0)
			CHECK_INT(memcmp(c.payload, in[i].payload, c.length),
				  0);
	}
	CHECK_INT(at, length);
}

TEST(numbers_are_little_endian_on_every_machine)
{
	static const unsigned char want[] = { 1, 0, 2, 1, 6, 5, 4, 3 };

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

TEST(a_token_longer_than_allowed_is_refused)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_RTR, .id = 1 }, out;
	size_t at = 0;

	put(0, &c);
	packet[2] = NM_TOKEN_MAX + 1;
	CHECK_INT(nm_wire_get_chunk(packet, sizeof(packet), &at, &out),
		  -EBADMSG);
}
