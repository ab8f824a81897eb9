/* nmad/core/pkt.c: copying and gathering show the same bytes. */
#include "../../check.h"

#include <sys/uio.h>

#include "../../../nmad/core/pkt.h"

static const struct nm_driver driver = { .max_small = 4096 };
static struct nm_rail rail = { .driver = &driver };
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
		c.length = data[i].length;
		if (!nm_pkt_fits(pkt, nm_wire_chunk_size(&c), c.length))
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

TEST(a_packet_takes_no_more_than_its_driver_and_its_head_room)
{
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_ACK, .id = 1 };
	struct nm_pkt pkt = { .link = &link_ };
	size_t n = 0;

	nm_pkt_init(&pkt);
	CHECK(!nm_pkt_fits(&pkt, NM_WIRE_EAGER, 4096));
	CHECK(nm_pkt_fits(&pkt, NM_WIRE_EAGER,
			  4096 - NM_WIRE_HEAD - NM_WIRE_EAGER));
	for (; nm_pkt_fits(&pkt, NM_WIRE_ACK, 0); n++)
		nm_pkt_put(&pkt, &c, NULL);
	CHECK_INT(n, (NM_CTL_MAX - NM_WIRE_HEAD) / NM_WIRE_ACK);
}
