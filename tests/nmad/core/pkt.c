/* nmad/core/pkt.c: copying and gathering show the same bytes. */
#include "../../check.h"

#include <sys/uio.h>

#include "../../../nmad/core/pkt.h"

static const struct nm_driver driver = { .name = "test" };
static struct nm_rail rail = { .driver = &driver,
			       .max_small = 4096,
			       .fill = 4096 };
static struct nm_link link_ = { .rail = &rail };

static unsigned char memory[1024];
static struct iovec iov[16];

static void build(struct nm_pkt *pkt, struct nm_data *data)
{
	size_t n = check_random() % 5;

	pkt->link = &link_;
	nm_pkt_init(pkt);
	for (size_t i = 0; i < n; i++) {
		struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_EAGER };
		unsigned pieces = (unsigned)(check_random() % 4);

		for (unsigned j = 0; j < pieces; j++) {
			iov[4 * i + j % 4].iov_base =
				memory + check_random() % 900;
			iov[4 * i + j % 4].iov_len = check_random() % 60;
		}
		data[i] = nm_data_iovec(iov + 4 * i, pieces);
		if (check_random() % 2)
			data[i] = nm_data_flat(memory + check_random() % 900,
					       check_random() % 100);
		c.length = data[i].length;
		if (!nm_pkt_fits(pkt, nm_wire_chunk_size(&c), &data[i]))
			break;
		nm_pkt_put(pkt, &c, &data[i]);
	}
	nm_pkt_seal(pkt, 7);
}

TEST(gathered_pieces_are_the_copied_bytes_from_any_offset)
{
	static unsigned char whole[4096], gathered[4096];
	struct nm_data data[8];
	struct nm_pkt pkt;

	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (unsigned char)check_random();
	for (int round = 0; round < 2000; round++) {
		struct iovec out[6];
		size_t at = 0, length;

		build(&pkt, data);
		length = nm_pkt_length(&pkt);
		nm_pkt_copy(&pkt, whole);
		while (at < length) {
			int n = nm_pkt_iov(&pkt, at, out,
					   1 + (int)(check_random() % 6));

			CHECK(n > 0);
			for (int i = 0; i < n; i++) {
				memcpy(gathered + at, out[i].iov_base,
				       out[i].iov_len);
				at += out[i].iov_len;
			}
		}
		CHECK_INT(at, length);
		CHECK_INT(memcmp(whole, gathered, length), 0);
		CHECK_INT(nm_pkt_iov(&pkt, length, out, 6), 0);
	}
}

static struct nm_wire_chunk eager(size_t length)
{
	return (struct nm_wire_chunk){ .kind = NM_WIRE_KIND_EAGER,
				       .length = length };
}

TEST(a_packet_takes_no_more_than_its_driver_and_its_head_room)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_ACK, .id = 1 };
	const size_t room = 4096 - NM_WIRE_HEAD - NM_WIRE_EAGER;
	struct nm_data fits = nm_data_flat(memory, room);
	struct nm_data exceeds = nm_data_flat(memory, room + 1);
	struct nm_pkt pkt = { .link = &link_ };
	size_t n = 0;

	nm_pkt_init(&pkt);
	CHECK(!nm_pkt_fits(&pkt, NM_WIRE_EAGER, &exceeds));
	CHECK(nm_pkt_fits(&pkt, NM_WIRE_EAGER, &fits));
	for (; nm_pkt_fits(&pkt, NM_WIRE_ACK, NULL); n++)
		nm_pkt_put(&pkt, &c, NULL);
	CHECK_INT(n, (4096 - NM_WIRE_HEAD) / NM_WIRE_ACK);
}

/* Where the driver would take more. */
TEST(headers_and_short_payload_end_where_their_memory_does)
{
	static const struct nm_driver generous = { .max_small = 65536,
						   .fill = 65536 };
	struct nm_rail rail_ = { .driver = &generous,
				 .max_small = 65536,
				 .fill = 65536 };
	struct nm_link to = { .rail = &rail_ };
	struct nm_wire_chunk ack = { .kind = NM_WIRE_KIND_ACK, .id = 1 };
	struct nm_data first = nm_data_flat(memory, 900);
	struct nm_data small = nm_data_flat(memory, 60);
	struct nm_wire_chunk c = eager(60);
	const size_t each = NM_WIRE_EAGER + 60;
	struct nm_pkt pkt = { .link = &to };
	struct nm_data rest, more;
	size_t n = 0, left;

	nm_pkt_init(&pkt);
	for (; nm_pkt_fits(&pkt, NM_WIRE_ACK, NULL); n++)
		nm_pkt_put(&pkt, &ack, NULL);
	CHECK_INT(n, (NM_PKT_CTL - NM_WIRE_HEAD) / NM_WIRE_ACK);

	/* What is only referred to, in front, takes none of it. */
	nm_pkt_init(&pkt);
	c.length = 900;
	nm_pkt_put(&pkt, &c, &first);
	c.length = 60;
	for (left = NM_PKT_CTL - NM_WIRE_HEAD - NM_WIRE_EAGER; left >= 2 * each;
	     left -= each) {
		CHECK(nm_pkt_fits(&pkt, NM_WIRE_EAGER, &small));
		nm_pkt_put(&pkt, &c, &small);
	}
	/* All but one byte more than another header and some payload takes. */
	left -= each;
	CHECK(left >= NM_WIRE_EAGER && left - NM_WIRE_EAGER < NM_PKT_SHORT);
	nm_pkt_put(&pkt, &c, &small);
	rest = nm_data_flat(memory, left - NM_WIRE_EAGER);
	more = nm_data_flat(memory, left - NM_WIRE_EAGER + 1);
	CHECK(nm_pkt_fits(&pkt, NM_WIRE_EAGER, &rest));
	CHECK(!nm_pkt_fits(&pkt, NM_WIRE_EAGER, &more));
	c.length = rest.length;
	nm_pkt_put(&pkt, &c, &rest);
	CHECK_INT(pkt.ctl_len, NM_PKT_CTL);
	CHECK(!nm_pkt_fits(&pkt, NM_WIRE_ACK, NULL));
}

TEST(short_payload_is_one_piece_with_the_headers)
{
	struct nm_data small = nm_data_flat(memory, 8);
	struct nm_wire_chunk c = eager(8);
	struct nm_pkt pkt = { .link = &link_ };
	struct iovec out[8];

	nm_pkt_init(&pkt);
	for (int i = 0; i < 20; i++) {
		CHECK(nm_pkt_fits(&pkt, NM_WIRE_EAGER, &small));
		nm_pkt_put(&pkt, &c, &small);
	}
	CHECK_INT(nm_pkt_length(&pkt), NM_WIRE_HEAD + 20 * (NM_WIRE_EAGER + 8));
	CHECK_INT(nm_pkt_iov(&pkt, 0, out, 8), 1);
	CHECK_INT(out[0].iov_len, nm_pkt_length(&pkt));
}

/* Its bytes may be a function of the user's to tell, and no lock surrounds it.
 */
TEST(short_payload_that_is_not_flat_is_only_referred_to)
{
	struct iovec two[2] = { { memory, 4 }, { memory + 100, 4 } };
	struct nm_data pieces = nm_data_iovec(two, 2);
	struct nm_wire_chunk c = eager(8);
	struct nm_pkt pkt = { .link = &link_ };

	nm_pkt_init(&pkt);
	for (unsigned i = 0; i < NM_PKT_PIECES; i++) {
		CHECK(nm_pkt_fits(&pkt, NM_WIRE_EAGER, &pieces));
		nm_pkt_put(&pkt, &c, &pieces);
	}
	CHECK_INT(pkt.npieces, NM_PKT_PIECES);
	CHECK(!nm_pkt_fits(&pkt, NM_WIRE_EAGER, &pieces));
}

TEST(beyond_what_the_driver_likes_only_a_message_alone)
{
	static const struct nm_driver modest = { .max_small = 4096,
						 .fill = 500 };
	struct nm_rail rail_ = { .driver = &modest,
				 .max_small = 4096,
				 .fill = 500 };
	struct nm_link to = { .rail = &rail_ };
	struct nm_data large = nm_data_flat(memory, 900);
	struct nm_data small = nm_data_flat(memory, 8);
	struct nm_wire_chunk c = eager(8);
	struct nm_pkt pkt = { .link = &to };

	nm_pkt_init(&pkt);
	CHECK(nm_pkt_fits(&pkt, NM_WIRE_EAGER, &large));
	nm_pkt_put(&pkt, &c, &small);
	CHECK(!nm_pkt_fits(&pkt, NM_WIRE_EAGER, &large));
	while (nm_pkt_fits(&pkt, NM_WIRE_EAGER, &small))
		nm_pkt_put(&pkt, &c, &small);
	CHECK_INT(pkt.nchunks, (500 - NM_WIRE_HEAD) / (NM_WIRE_EAGER + 8));
}

TEST(a_part_is_those_bytes_of_the_payload_only)
{
	struct iovec two[2] = { { memory, 400 }, { memory + 500, 500 } };
	struct nm_data pieces = nm_data_iovec(two, 2);
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_PART,
				   .length = 1000,
				   .offset = 300,
				   .tail_len = 500 };
	size_t head = NM_WIRE_HEAD + NM_WIRE_EAGER_PART;
	struct nm_pkt pkt = { .link = &link_ };
	unsigned char copy[4096];
	struct iovec out[8];

	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (unsigned char)check_random();
	nm_pkt_init(&pkt);
	nm_pkt_put_part(&pkt, &c, &pieces);
	nm_pkt_seal(&pkt, 0);
	CHECK_INT(nm_pkt_length(&pkt), head + 500);
	nm_pkt_copy(&pkt, copy);
	CHECK_INT(memcmp(copy + head, memory + 300, 100), 0);
	CHECK_INT(memcmp(copy + head + 100, memory + 500, 400), 0);
	CHECK_INT(nm_pkt_iov(&pkt, 0, out, 8), 3);
	CHECK_INT(out[0].iov_len, head);
	CHECK(out[1].iov_base == memory + 300 && out[1].iov_len == 100);
	CHECK(out[2].iov_base == memory + 500 && out[2].iov_len == 400);
	CHECK_INT(nm_pkt_iov(&pkt, head + 150, out, 8), 1);
	CHECK(out[0].iov_base == memory + 550 && out[0].iov_len == 350);
}
