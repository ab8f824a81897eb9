/*
 * Packets: built by the core, read by drivers.
 */
#include "pkt.h"

#include <string.h>
#include <sys/uio.h>

#include <base/diag.h>

/* No function of the user's is called under the core's lock: flat only. */
static bool goes_to_ctl(const struct nm_data *data)
{
	return data->length <= NM_PKT_SHORT && data->kind == NM_DATA_FLAT;
}

bool nm_pkt_fits(const struct nm_pkt *pkt, size_t header,
		 const struct nm_data *data)
{
	const struct nm_rail *rail = pkt->link->rail;
	size_t limit = pkt->nchunks == 0 ? rail->max_small : rail->fill;
	size_t room = NM_PKT_CTL - pkt->ctl_len;
	size_t payload = data != NULL ? data->length : 0;

	if (pkt->length + header + payload > limit || header > room)
		return false;
	if (payload == 0)
		return true;
	if (goes_to_ctl(data))
		return payload <= room - header;
	return pkt->npieces < NM_PKT_PIECES;
}

static void put_short(struct nm_pkt *pkt, const struct nm_data *data)
{
	memcpy(pkt->ctl + pkt->ctl_len, data->base, data->length);
	pkt->ctl_len += data->length;
}

static void put_piece(struct nm_pkt *pkt, const struct nm_data *data,
		      size_t offset, size_t length)
{
	struct nm_piece *piece = &pkt->pieces[pkt->npieces++];

	piece->ctl_end = pkt->ctl_len;
	piece->data = data;
	piece->place = (struct nm_data_place){ 0 };
	piece->offset = offset;
	piece->length = length;
}

void nm_pkt_put(struct nm_pkt *pkt, const struct nm_wire_chunk *c,
		const struct nm_data *data)
{
	size_t header = nm_wire_put_chunk(pkt->ctl + pkt->ctl_len, c);

	pkt->ctl_len += header;
	pkt->length += header;
	if (data != NULL && data->length > 0) {
		if (goes_to_ctl(data))
			put_short(pkt, data);
		else
			put_piece(pkt, data, 0, data->length);
		pkt->length += data->length;
	}
	pkt->nchunks++;
}

void nm_pkt_put_part(struct nm_pkt *pkt, const struct nm_wire_chunk *c,
		     const struct nm_data *data)
{
	nm_pkt_put(pkt, c, NULL);
	put_piece(pkt, data, c->offset, c->tail_len);
	pkt->length += c->tail_len;
}

void nm_pkt_seal(struct nm_pkt *pkt, uint32_t credit)
{
	struct nm_wire_head h = { (uint16_t)pkt->nchunks, credit };

	nm_wire_put_head(pkt->ctl, &h);
}

size_t nm_pkt_length(const struct nm_pkt *pkt)
{
	return pkt->length;
}

struct nm_awaited *nm_pkt_awaited(const struct nm_pkt *pkt)
{
	return pkt->awaited;
}

void nm_pkt_copy(const struct nm_pkt *pkt, void *to)
{
	size_t done = 0;
	char *p = to;

	for (unsigned i = 0; i < pkt->npieces; i++) {
		const struct nm_piece *piece = &pkt->pieces[i];

		memcpy(p, pkt->ctl + done, piece->ctl_end - done);
		p += piece->ctl_end - done;
		done = piece->ctl_end;
		nm_data_copy_out(piece->data, piece->offset, p, piece->length);
		p += piece->length;
	}
	memcpy(p, pkt->ctl + done, pkt->ctl_len - done);
}

/* Collects pieces of memory after `skip` bytes, as far as there is room. */
struct gather {
	size_t skip;
	struct iovec *iov;
	int n, room;
};

static int gather_piece(void *arg, void *base, size_t length)
{
	struct gather *g = arg;

	if (g->skip >= length) {
		g->skip -= length;
		return 0;
	}
	if (g->n == g->room)
		return 1;
	g->iov[g->n].iov_base = (char *)base + g->skip;
	g->iov[g->n].iov_len = length - g->skip;
	g->skip = 0;
	g->n++;
	return 0;
}

int nm_pkt_iov(struct nm_pkt *pkt, size_t offset, struct iovec *iov, int n)
{
	struct gather g = { .skip = offset, .iov = iov, .room = n };
	unsigned char *ctl = (unsigned char *)pkt->ctl;
	size_t done = 0;

	for (unsigned i = 0; i < pkt->npieces; i++) {
		struct nm_piece *piece = &pkt->pieces[i];
		size_t skip;

		if (gather_piece(&g, ctl + done, piece->ctl_end - done) != 0)
			return g.n;
		done = piece->ctl_end;
		if (g.skip >= piece->length) {
			g.skip -= piece->length;
			continue;
		}
		skip = g.skip;
		g.skip = 0;
		if (nm_data_walk_on(piece->data, &piece->place,
				    piece->offset + skip, piece->length - skip,
				    gather_piece, &g) != 0)
			return g.n;
	}
	if (pkt->ctl_len > done)
		gather_piece(&g, ctl + done, pkt->ctl_len - done);
	return g.n;
}
