/*
 * Work requests. Each link has a ring of those that it has posted; the adapter
 * does them in order, so that one completion tells of all before it too, and is
 * asked for now and then only. A frame is written into registered memory, which
 * is free again when its work request is known to be done: until then the frame
 * can be sent again over another rail.
 */
#include "verbs.h"

#include <errno.h>

/* --- posting --- */

bool nm_verbs_has_room(const struct verbs *v, const struct verbs_peer *p,
		       bool spare)
{
	unsigned reserve = spare ? 0 : VERBS_SQ_SPARE;

	return p->posted - p->done < VERBS_SQ - reserve && v->cq_room > reserve;
}

/* Whether its completion is to be told. */
static bool is_to_be_told(const struct verbs *v, const struct verbs_peer *p)
{
	return p->posted - p->signaled >= VERBS_SIGNAL ||
	       v->nfree < VERBS_SENDS / 2;
}

static int post(struct verbs *v, struct verbs_peer *p, struct verbs_wr what,
		struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int rc;

	wr->wr_id = nm_verbs_id((uint32_t)p->link->rank, p->posted);
	p->wr[p->posted % VERBS_SQ] = what;
	p->posted++;
	v->cq_room--; /* until it is told of */
	if (wr->send_flags & IBV_SEND_SIGNALED)
		p->signaled = p->posted;
	rc = ibv_post_send(p->qp, wr, &bad);
	if (likely(rc == 0))
		return 0;
	p->posted--; /* nothing will be told of it */
	v->cq_room++;
	return rc > 0 ? -rc : rc;
}

/* --- frames --- */

/*
 * Half of them are with work requests of which the adapter tells, that wakes
 * who waits; of the others, which have left, it is asked.
 */
BASE_COLD static void is_starved(struct verbs *v)
{
	if (v->is_starved)
		return;
	v->is_starved = true;
	base_list_for_each (n, &v->used) {
		struct verbs_peer *p =
			container_of(n, struct verbs_peer, on_used);

		if (p->posted != p->signaled)
			nm_verbs_ask(v, p);
	}
}

bool nm_verbs_has_frame(struct verbs *v, struct verbs_peer *p, bool spare)
{
	if (unlikely(v->nfree == 0)) {
		is_starved(v);
		return false;
	}
	return nm_verbs_has_room(v, p, spare);
}

static unsigned char *frame_at(struct verbs *v, unsigned slot)
{
	return v->memory + ((size_t)v->nslots + slot) * VERBS_SLOT;
}

unsigned char *nm_verbs_frame(struct verbs *v)
{
	return frame_at(v, v->free[v->nfree - 1]) + VERBS_HEAD;
}

int nm_verbs_frame_send(struct verbs *v, struct verbs_peer *p,
			enum verbs_kind kind, size_t bytes, struct nm_xfer *x)
{
	unsigned slot = v->free[--v->nfree];
	struct verbs_head *head = (void *)frame_at(v, slot);
	struct ibv_sge at = { (uintptr_t)head, (uint32_t)(VERBS_HEAD + bytes),
			      v->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &at,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND };
	struct verbs_wr what = { kind == VERBS_BYE ? VERBS_WR_BYE
						   : VERBS_WR_FRAME,
				 (uint16_t)slot, at.length, x };
	int rc;

	head->kind = (uint8_t)kind;
	head->zero = 0;
	head->credits = htole16((uint16_t)p->owed);
	head->number = htole32(p->number);
	if (x != NULL || kind == VERBS_BYE || is_to_be_told(v, p))
		wr.send_flags = IBV_SEND_SIGNALED;
	if (at.length <= v->max_inline)
		wr.send_flags |= IBV_SEND_INLINE;
	rc = post(v, p, what, &wr);
	if (unlikely(rc < 0)) {
		v->nfree++;
		return rc;
	}
	nm_verbs_paid(v, p);
	if (kind == VERBS_PACKET)
		p->number++;
	if (kind == VERBS_PACKET || kind == VERBS_PIECES)
		p->credits--;
	return 0;
}

/*
 * What is refused here is asked for again when something has come or is done,
 * which wakes who waits: NM_CAP_ROOM.
 */
int nm_verbs_post(struct nm_link *link, struct nm_pkt *pkt)
{
	struct verbs *v = link->rail->drv;
	struct verbs_peer *p = link->conn;
	int rc;

	if (unlikely(p->state != VERBS_OPEN || p->is_dying))
		return p->state >= VERBS_LEFT ? nm_verbs_refuse(v, p) : -EAGAIN;
	if (unlikely(p->credits == 0 || !nm_verbs_has_frame(v, p, false)))
		return -EAGAIN;
	nm_pkt_copy(pkt, nm_verbs_frame(v));
	rc = nm_verbs_frame_send(v, p, VERBS_PACKET, nm_pkt_length(pkt), NULL);
	if (likely(rc == 0))
		return NM_SENT;
	nm_verbs_fail(v, p, rc);
	return -EAGAIN;
}

/* --- frames that need no credit --- */

void nm_verbs_pay(struct verbs *v, struct verbs_peer *p)
{
	if (p->state != VERBS_OPEN || p->is_dying)
		base_list_remove(&p->on_owing);
	else if (nm_verbs_has_frame(v, p, true)) {
		int rc = nm_verbs_frame_send(v, p, VERBS_CREDIT, 0, NULL);

		if (rc < 0)
			nm_verbs_fail(v, p, rc);
	}
}

void nm_verbs_bye(struct verbs *v, struct verbs_peer *p)
{
	if (!nm_verbs_has_frame(v, p, true) ||
	    nm_verbs_frame_send(v, p, VERBS_BYE, 0, NULL) < 0)
		p->bye_left = true; /* there is no goodbye */
}

/* --- writes --- */

static int write_nothing(struct verbs *v, struct verbs_peer *p)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };

	return post(v, p, (struct verbs_wr){ .kind = VERBS_WR_ALIVE }, &wr);
}

/* Nothing is written, but the adapter there must answer. */
void nm_verbs_ask(struct verbs *v, struct verbs_peer *p)
{
	int rc;

	if (p->state != VERBS_OPEN || p->is_dying || p->is_asked ||
	    !nm_verbs_has_room(v, p, true))
		return;
	p->is_asked = true;
	rc = write_nothing(v, p);
	if (rc < 0)
		nm_verbs_fail(v, p, rc);
}

/*
 * The adapter does not tell of frames that have left before and were not to be
 * told of. It does of what is posted in the state of error, after all others.
 */
void nm_verbs_mark_end(struct verbs *v, struct verbs_peer *p)
{
	if (p->posted != p->signaled && p->told != p->posted &&
	    p->posted - p->done < VERBS_SQ && v->cq_room > 0)
		write_nothing(v, p);
}

int nm_verbs_write(struct verbs *v, struct verbs_peer *p, struct nm_xfer *x,
		   size_t bytes, bool last)
{
	struct verbs_x *vx = nm_verbs_x(x);
	struct ibv_sge at = { (uintptr_t)x->data.base + x->offset + vx->at,
			      (uint32_t)bytes, vx->reg->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &at,
		.num_sge = 1,
		.opcode = vx->reads ? IBV_WR_RDMA_READ
			  : last    ? IBV_WR_RDMA_WRITE_WITH_IMM
				    : IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(vx->generation << VERBS_WINDOW_BITS |
				    vx->window),
		.wr.rdma = { vx->remote + vx->at, vx->rkey },
	};
	struct verbs_wr what = { VERBS_WR_WRITE, 0, 0, x };
	int rc = post(v, p, what, &wr);

	if (rc < 0)
		return rc;
	p->nwrites++;
	vx->flying++;
	vx->at += bytes;
	if (last)
		p->credits--;
	return 0;
}

/* --- done --- */

static void is_done(struct verbs *v, struct verbs_peer *p, struct verbs_wr w)
{
	if (w.kind == VERBS_WR_FRAME || w.kind == VERBS_WR_BYE)
		v->free[v->nfree++] = w.slot;
	switch (w.kind) {
	case VERBS_WR_WRITE:
		p->nwrites--;
		if (w.x != NULL)
			nm_verbs_written(v, p, w.x);
		break;
	case VERBS_WR_FRAME:
		if (w.x != NULL)
			nm_verbs_sent(v, w.x);
		break;
	case VERBS_WR_ALIVE:
		p->is_asked = false;
		break;
	case VERBS_WR_BYE:
		p->bye_left = true;
		break;
	}
}

static void told(struct verbs *v, struct verbs_peer *p, uint32_t upto)
{
	v->cq_room += upto - p->told;
	p->told = upto;
}

void nm_verbs_done(struct verbs *v, struct verbs_peer *p, uint32_t index)
{
	while ((int32_t)(index - p->done) >= 0 && p->done != p->posted) {
		struct verbs_wr w = p->wr[p->done % VERBS_SQ];

		p->done++;
		is_done(v, p, w);
	}
	told(v, p, p->done);
}

/* --- the end --- */

void nm_verbs_flushed(struct verbs *v, struct verbs_peer *p, uint32_t index)
{
	if ((int32_t)(index - p->told) >= 0)
		told(v, p, index + 1);
	if (p->state == VERBS_CLOSED)
		nm_verbs_destroy(v, p);
}

const struct verbs_head *
nm_verbs_frame_of(struct verbs *v, const struct verbs_wr *w, size_t *bytes)
{
	*bytes = w->bytes;
	return w->kind == VERBS_WR_FRAME ? (void *)frame_at(v, w->slot) : NULL;
}

void nm_verbs_drop_frames(struct verbs *v, struct verbs_peer *p)
{
	for (; p->done != p->posted; p->done++) {
		const struct verbs_wr *w = &p->wr[p->done % VERBS_SQ];

		if (w->kind == VERBS_WR_FRAME || w->kind == VERBS_WR_BYE)
			v->free[v->nfree++] = w->slot;
	}
}
