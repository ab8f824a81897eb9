/*
 * Completions: what has come, and what has left. One queue tells of both, so
 * that what a peer sent before its queue pair failed is read before the failure
 * is.
 *
 * A packet is handed to the core where it lies; whoever releases it gives the
 * place back, and with it the peer's credit. What is under way to us is bounded
 * by that: when the core holds most of a peer's credits, or of all places, who
 * sleeps is woken by the next that comes back, since nothing else tells.
 */
#include "verbs.h"

#include <errno.h>

#include <base/diag.h>

enum {
	BATCH = 16,
	DUE = VERBS_CREDITS / 2, /* credits that are paid at once */
	HUNGRY = VERBS_CREDITS / 4 *
		 3, /* in our hands: the peer may lack them */
	WANTED = VERBS_CREDITS + VERBS_SPARE, /* receives of a peer */
};

/* --- credits --- */

/*
 * They are paid when there are many, or when the peer may have none left: what
 * the core holds it may hold until more has come.
 */
static void see_due(struct verbs *v, struct verbs_peer *p)
{
	if ((p->owed >= DUE || (p->owed > 0 && p->held >= HUNGRY)) &&
	    !base_link_is_on(&p->on_owing))
		base_list_push_back(&v->owing, &p->on_owing);
}

static void hold(struct verbs *v, struct verbs_peer *p)
{
	if (++p->held == HUNGRY)
		v->nhungry++;
	if (unlikely(p->held >= HUNGRY))
		see_due(v, p);
}

static void owe(struct verbs *v, struct verbs_peer *p)
{
	p->owed++;
	see_due(v, p);
}

void nm_verbs_paid(struct verbs *v, struct verbs_peer *p)
{
	bool was_hungry = p->held >= HUNGRY;

	p->held -= p->owed;
	p->owed = 0;
	if (unlikely(was_hungry) && p->held < HUNGRY)
		v->nhungry--;
	base_list_remove(&p->on_owing);
}

void nm_verbs_hold_nothing(struct verbs *v, struct verbs_peer *p)
{
	if (p->held >= HUNGRY)
		v->nhungry--;
	p->held = p->owed = 0;
}

bool nm_verbs_wants_back(const struct verbs *v)
{
	return v->nhungry > 0 || v->nkept > v->nslots / 4 * 3;
}

/* --- places --- */

static void place_is_free(struct verbs *v, struct verbs_slot *s)
{
	s->free.next = v->refill;
	v->refill = &s->free;
	v->nrefill++;
}

void nm_verbs_release(struct nm_rail *rail, struct nm_pkt_in *in)
{
	struct verbs *v = rail->drv;
	struct verbs_slot *s = container_of(in, struct verbs_slot, in);

	if (unlikely(verbs_back_give(&v->back, &s->free)))
		nm_verbs_ring(&v->bell);
}

void nm_verbs_take_back(struct verbs *v)
{
	base_mpsc_for_each (n, base_mpsc_take(&v->back.list)) {
		struct verbs_slot *s = container_of(n, struct verbs_slot, free);

		owe(v, &v->peers[s->rank]);
		v->nkept--;
		place_is_free(v, s);
	}
}

/* A chain of at most `most` receives; what is left of it is taken back. */
static unsigned post_some(struct verbs *v, struct verbs_peer *p, unsigned most)
{
	struct ibv_recv_wr wr[BATCH], *bad = NULL;
	struct ibv_sge at[BATCH];
	unsigned n = 0, failed = 0;
	int rc;

	for (; n < most && n < BATCH && v->refill != NULL; n++) {
		struct verbs_slot *s =
			container_of(v->refill, struct verbs_slot, free);
		size_t i = (size_t)(s - v->slots);

		v->refill = s->free.next;
		at[n] = (struct ibv_sge){ (uintptr_t)v->memory + i * VERBS_SLOT,
					  VERBS_SLOT, v->mr->lkey };
		wr[n] = (struct ibv_recv_wr){ .wr_id = (uint64_t)i << 1,
					      .next = &wr[n + 1],
					      .sg_list = &at[n],
					      .num_sge = 1 };
	}
	if (n == 0)
		return 0;
	wr[n - 1].next = NULL;
	v->nrefill -= n;
	rc = v->srq != NULL ? ibv_post_srq_recv(v->srq, wr, &bad)
			    : ibv_post_recv(p->qp, wr, &bad);
	for (struct ibv_recv_wr *w = rc != 0 ? bad : NULL; w != NULL;
	     w = w->next, failed++)
		place_is_free(v, &v->slots[w->wr_id >> 1]);
	return n - failed;
}

/* Those of a peer, where receives are not shared. */
static void quench(struct verbs *v)
{
	struct base_link *n;

	while (v->refill != NULL &&
	       (n = base_list_first(&v->thirsty)) != NULL) {
		struct verbs_peer *p =
			container_of(n, struct verbs_peer, on_thirsty);
		unsigned got = post_some(v, p, WANTED - p->nreceives);

		p->nreceives += got;
		if (got == 0 || p->nreceives == WANTED)
			base_list_remove(n);
	}
}

static void is_thirsty(struct verbs *v, struct verbs_peer *p)
{
	if (v->srq == NULL && !p->is_dying && p->state != VERBS_CLOSED &&
	    !base_link_is_on(&p->on_thirsty) && p->nreceives + BATCH <= WANTED)
		base_list_push_back(&v->thirsty, &p->on_thirsty);
}

void nm_verbs_refill(struct verbs *v, bool all)
{
	unsigned least = all ? 1 : BATCH;

	if (v->nslots - v->nkept - v->nrefill < v->nslots / 2)
		least = 1;
	if (v->srq == NULL) {
		quench(v);
		return;
	}
	while (v->nrefill >= least)
		if (post_some(v, NULL, BATCH) == 0)
			return;
}

void nm_verbs_fill(struct verbs *v)
{
	for (unsigned i = v->nslots; i-- > 0;)
		place_is_free(v, &v->slots[i]);
	nm_verbs_refill(v, true);
}

/* --- whose it is --- */

static struct verbs_peer **bucket(struct verbs *v, uint32_t qpn)
{
	return &v->hash[(qpn * 2654435761u >> 16) % VERBS_HASH];
}

void nm_verbs_know(struct verbs *v, struct verbs_peer *p)
{
	struct verbs_peer **b = bucket(v, p->qp->qp_num);

	p->next = *b;
	*b = p;
	is_thirsty(v, p);
}

void nm_verbs_unknow(struct verbs *v, struct verbs_peer *p)
{
	struct verbs_peer **b = bucket(v, p->qp->qp_num);

	while (*b != p)
		b = &(*b)->next;
	*b = p->next;
	base_list_remove(&p->on_thirsty);
}

struct verbs_peer *nm_verbs_find(struct verbs *v, uint32_t qpn)
{
	struct verbs_peer *p = *bucket(v, qpn);

	while (p != NULL && p->qp->qp_num != qpn)
		p = p->next;
	return p;
}

/* NULL: its queue pair is no more. The clerk tells before the peer may send. */
static struct verbs_peer *sender(struct verbs *v, uint32_t qpn)
{
	struct verbs_peer *p = nm_verbs_find(v, qpn);

	if (unlikely(p == NULL) && nm_verbs_news(v))
		p = nm_verbs_find(v, qpn);
	return p;
}

/* --- what has come --- */

static bool take_packet(struct verbs *v, struct verbs_peer *p,
			struct verbs_slot *s, const struct verbs_head *head,
			size_t bytes)
{
	if (bytes > VERBS_MAX_SMALL || le32toh(head->number) != p->arrived)
		return false;
	p->arrived++;
	s->rank = (uint32_t)p->link->rank;
	s->in.link = p->link;
	s->in.data = (const unsigned char *)(head + 1);
	s->in.length = bytes;
	v->nkept++;
	hold(v, p);
	nm_rail_recv(v->rail, &s->in);
	return true;
}

/* False: nonsense. *kept: the core has the place. */
static bool take_frame(struct verbs *v, struct verbs_peer *p,
		       struct verbs_slot *s, size_t bytes, bool *kept)
{
	const struct verbs_head *head =
		(void *)(v->memory + (size_t)(s - v->slots) * VERBS_SLOT);
	unsigned credits;

	*kept = false;
	if (bytes < VERBS_HEAD)
		return false;
	credits = le16toh(head->credits);
	if (p->credits + credits > VERBS_CREDITS)
		return false;
	p->credits += credits;
	bytes -= VERBS_HEAD;
	switch (head->kind) {
	case VERBS_PACKET:
		*kept = take_packet(v, p, s, head, bytes);
		return *kept;
	case VERBS_PIECES:
		hold(v, p);
		owe(v, p);
		return nm_verbs_piece(v, p, (const void *)(head + 1), bytes);
	case VERBS_CREDIT:
		return bytes == 0;
	case VERBS_BYE:
		if (bytes != 0)
			return false;
		p->state = VERBS_LEFT;
		if (!base_list_is_empty(&p->xfers))
			nm_verbs_fail(v, p, -ECONNRESET);
		return true;
	default:
		return false;
	}
}

static bool take(struct verbs *v, struct verbs_peer *p, struct verbs_slot *s,
		 const struct ibv_wc *wc, bool *kept)
{
	*kept = false;
	if (wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM)
		return take_frame(v, p, s, wc->byte_len, kept);
	hold(v, p);
	owe(v, p);
	return nm_verbs_window_full(v, p, be32toh(wc->imm_data));
}

/* Once; what follows may make no sense for that. */
BASE_COLD static void refuse(struct verbs *v, struct verbs_peer *p)
{
	if (!p->is_dying)
		base_warn("nmad", "ibverbs: rank %d has sent nonsense, closing",
			  p->link->rank);
	nm_verbs_fail(v, p, -EPROTO);
}

/* True if it is a packet. */
static bool has_come(struct verbs *v, const struct ibv_wc *wc)
{
	struct verbs_slot *s = &v->slots[wc->wr_id >> 1];
	struct verbs_peer *p = sender(v, wc->qp_num);
	bool kept = false;

	if (p != NULL && v->srq == NULL) {
		p->nreceives--;
		is_thirsty(v, p);
	}
	if (p != NULL && wc->status == IBV_WC_SUCCESS &&
	    p->state != VERBS_CLOSED) {
		p->heard++;
		if (unlikely(p->state == VERBS_READY))
			nm_verbs_met(v, p);
		if (unlikely(!take(v, p, s, wc, &kept)))
			refuse(v, p);
	}
	if (!kept)
		place_is_free(v, s);
	return kept;
}

/* --- what has left --- */

static int meaning(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		return -ETIMEDOUT;
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
		return -EREMOTEIO;
	case IBV_WC_WR_FLUSH_ERR:
	case IBV_WC_REM_ABORT_ERR:
		return -ECONNRESET;
	default:
		return -EIO;
	}
}

BASE_COLD static void has_failed(struct verbs *v, struct verbs_peer *p,
				 const struct ibv_wc *wc)
{
	/* Who has said goodbye, or been given up, need not answer any more. */
	if (p->state != VERBS_LEFT && p->state != VERBS_CLOSED && !p->is_dying)
		base_warn("nmad",
			  "ibverbs: rank %d: %s (status %d, vendor error %#x)",
			  p->link->rank, nm_verbs_lib.wc_status_str(wc->status),
			  wc->status, wc->vendor_err);
	nm_verbs_fail(v, p, meaning(wc->status));
}

static void has_left(struct verbs *v, const struct ibv_wc *wc)
{
	struct verbs_peer *p = &v->peers[(wc->wr_id & UINT32_MAX) >> 1];
	uint32_t index = (uint32_t)(wc->wr_id >> 32);

	if (unlikely(wc->status != IBV_WC_SUCCESS)) {
		if (!p->is_dying && p->state != VERBS_CLOSED)
			nm_verbs_done(v, p, index - 1);
		has_failed(v, p, wc);
		nm_verbs_flushed(v, p, index);
		return;
	}
	p->heard++;
	if (unlikely(p->is_dying || p->state == VERBS_CLOSED))
		nm_verbs_flushed(v, p, index);
	else
		nm_verbs_done(v, p, index);
}

bool nm_verbs_poll_cq(struct verbs *v, int *budget, bool *empty)
{
	struct ibv_wc wc[BATCH];
	bool moved = false;

	for (;;) {
		int want = *budget < BATCH ? *budget : BATCH, n;

		*empty = false;
		if (want <= 0)
			return moved;
		n = ibv_poll_cq(v->cq, want, wc);
		for (int i = 0; i < n; i++) {
			if (wc[i].wr_id & VERBS_ID_SEND)
				has_left(v, &wc[i]);
			else if (has_come(v, &wc[i]))
				--*budget;
		}
		moved |= n > 0;
		if (n < want) {
			*empty = true;
			return moved;
		}
	}
}
