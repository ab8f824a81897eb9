/*
 * The driver over libibverbs: polling, waiting, closing.
 */
#include "verbs.h"

#include <errno.h>
#include <poll.h>

#include <base/clock.h>
#include <base/diag.h>

enum {
	RDV_THRESHOLD = 8192,
	FILL = 2048,
	BUDGET = 32, /* arrivals */
};

/* --- polling --- */

static void pay_all(struct verbs *v)
{
	struct base_list batch;
	struct base_link *n;

	base_list_init(&batch);
	base_list_splice_back(&batch, &v->owing);
	while ((n = base_list_take_front(&batch)) != NULL) {
		base_list_push_back(&v->owing, n); /* if there is no room */
		nm_verbs_pay(v, container_of(n, struct verbs_peer, on_owing));
	}
}

static bool push_all(struct verbs *v)
{
	struct base_list batch;
	struct base_link *n;
	bool moved = false;

	base_list_init(&batch);
	base_list_splice_back(&batch, &v->sending);
	while ((n = base_list_take_front(&batch)) != NULL) {
		base_list_push_back(&v->sending, n);
		moved |= nm_verbs_push(
			v, container_of(n, struct verbs_peer, on_send));
	}
	return moved;
}

static bool verbs_poll(struct nm_rail *rail, int budget)
{
	struct verbs *v = rail->drv;
	bool moved = false, empty;

	if (unlikely(!base_mpsc_is_empty(&v->news)))
		moved = nm_verbs_news(v);
	if (unlikely(load_relaxed(&v->ticks) != v->ticks_seen)) {
		nm_verbs_look(v);
		/* An event is lost where the kernel had no memory for it. */
		v->is_notified = false;
	}
	v->has_failed = v->is_starved = false;
	moved |= nm_verbs_poll_cq(v, &budget, &empty);
	if (!base_mpsc_is_empty(&v->back.list))
		nm_verbs_take_back(v);
	if (v->nrefill > 0)
		nm_verbs_refill(v, false);
	if (unlikely(!base_list_is_empty(&v->owing)))
		pay_all(v);
	if (unlikely(!base_list_is_empty(&v->sending)))
		moved |= push_all(v);
	if (unlikely(!base_list_is_empty(&v->asking)))
		nm_verbs_ask_again(v);
	/* Who has just failed may have had something come since. */
	if (unlikely(!base_list_is_empty(&v->dying))) {
		if (empty && !v->has_failed)
			nm_verbs_bury(v);
		moved = true;
	}
	return moved;
}

/* --- waiting --- */

static bool verbs_is_busy(const struct nm_rail *rail)
{
	const struct verbs *v = rail->drv;

	return !base_list_is_empty(&v->asking) ||
	       !base_list_is_empty(&v->owing) || !base_list_is_empty(&v->dying);
}

/*
 * Once the queue is asked to notify, the next completion that comes to it makes
 * one event, which may be late: as long as it has not been read, the channel is
 * readable or will be, and nothing need be asked again.
 */
static int verbs_arm(struct nm_rail *rail)
{
	struct verbs *v = rail->drv;
	struct ibv_cq *cq;
	void *arg;

	nm_rail_calls(rail, NM_CALL_LOOK);
	if (v->is_notified &&
	    nm_verbs_lib.get_cq_event(v->channel, &cq, &arg) == 0) {
		nm_verbs_lib.ack_cq_events(cq, 1);
		v->is_notified = false;
	}
	nm_verbs_hush(&v->bell);
	if (!v->is_notified) {
		nm_rail_calls(rail, NM_CALL_BELL);
		v->is_notified = ibv_req_notify_cq(v->cq, 0) == 0;
	}
	if (!v->is_notified && load_relaxed(&v->down) == 0)
		return -EAGAIN;
	if (verbs_poll(rail, BUDGET) || verbs_is_busy(rail))
		return -EAGAIN;
	if (nm_verbs_wants_back(v) && !verbs_back_want(&v->back))
		return -EAGAIN;
	nm_verbs_refill(v, true);
	return 0;
}

/* --- goodbyes --- */

/* The adapter tries until a peer that has not met us does. */
static void verbs_disconnect(struct nm_link *link)
{
	struct verbs *v = link->rail->drv;
	struct verbs_peer *p = link->conn;

	nm_verbs_news(v);
	nm_verbs_met(v, p);
	if (p->state != VERBS_OPEN || p->is_dying) {
		nm_verbs_hang_up(v, p);
		return;
	}
	nm_verbs_forget(v, p);
	nm_verbs_bye(v, p);
}

/* They came, and nobody has polled since: the core knows nothing of them. */
static void see_off_unseen(struct verbs *v)
{
	nm_verbs_news(v);
	base_list_for_each (n, &v->used) {
		struct verbs_peer *p =
			container_of(n, struct verbs_peer, on_used);

		nm_verbs_met(v, p);
		if (p->state == VERBS_OPEN && p->posted == 0)
			verbs_disconnect(p->link);
	}
}

/* That they arrive; nobody is told of anything any more. */
static void take_last(struct verbs *v, const struct ibv_wc *wc)
{
	struct verbs_peer *p;

	if (wc->wr_id & VERBS_ID_SEND) {
		p = &v->peers[(wc->wr_id & UINT32_MAX) >> 1];
		if (wc->status != IBV_WC_SUCCESS)
			p->bye_left = true; /* it will not */
		else if (p->state == VERBS_OPEN)
			nm_verbs_done(v, p, (uint32_t)(wc->wr_id >> 32));
		return;
	}
	p = nm_verbs_find(v, wc->qp_num);
	if (p != NULL && p->state == VERBS_OPEN &&
	    wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV &&
	    v->memory[(wc->wr_id >> 1) * VERBS_SLOT] == VERBS_BYE)
		p->state = VERBS_LEFT;
}

static bool is_awaited(const struct verbs *v)
{
	base_list_for_each (n, &v->used) {
		const struct verbs_peer *p =
			container_of(n, struct verbs_peer, on_used);

		if (p->state == VERBS_OPEN && !p->is_dying && !p->bye_left)
			return true;
	}
	return false;
}

/*
 * All that was sent arrives before them. The adapter tells of who does not
 * answer; half of that time is for who has no room, and is two or three tries.
 */
static void await_goodbyes(struct verbs *v)
{
	uint64_t dead_s = (uint64_t)nm_verbs_options[VERBS_OPT_DEAD].value;
	uint64_t end = base_now_ns() + dead_s * 500000000;
	struct pollfd fd = { .fd = v->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *arg;

	while (is_awaited(v) && base_now_ns() < end) {
		while (nm_verbs_lib.get_cq_event(v->channel, &cq, &arg) == 0)
			nm_verbs_lib.ack_cq_events(cq, 1);
		ibv_req_notify_cq(v->cq, 0);
		while (ibv_poll_cq(v->cq, 1, &wc) > 0)
			take_last(v, &wc);
		if (is_awaited(v))
			poll(&fd, 1, 10);
	}
}

/* --- the driver --- */

static bool verbs_reaches(const struct nm_rail *rail, int rank)
{
	return rank != rail->rank;
}

static int verbs_join(struct nm_rail *rail, const void *addr, size_t len)
{
	struct verbs *v = rail->drv;
	int rc = nm_verbs_clerk_start(v);

	(void)addr, (void)len;
	if (rc < 0)
		base_warn("nmad", "ibverbs: no kernel thread: %s",
			  strerror(-rc));
	return rc;
}

static void verbs_close(struct nm_rail *rail)
{
	see_off_unseen(rail->drv);
	await_goodbyes(rail->drv);
	nm_verbs_close(rail);
}

static void verbs_dump(const struct nm_rail *rail)
{
	static const char *const states[] = { "cold", "calling", "ready",
					      "open", "left",    "closed" };
	const struct verbs *v = rail->drv;

	base_dump("ibverbs: %s port %d; %u receives with the core, %u to be "
		  "posted; %u frames free",
		  v->port.name, v->port.number, v->nkept, v->nrefill, v->nfree);
	base_list_for_each (n, &v->used) {
		const struct verbs_peer *p =
			container_of(n, struct verbs_peer, on_used);

		base_dump("  rank %d: %s%s; %u work requests under way, %u "
			  "credits, %u owed, %u held; %u windows",
			  p->link->rank, states[p->state],
			  p->is_dying ? ", dying" : "", p->posted - p->done,
			  p->credits, p->owed, p->held, p->nwindows);
	}
}

const struct nm_driver nm_driver_ibverbs = {
	.name = "ibverbs",
	.caps = NM_CAP_SYNC | NM_CAP_ROOM | NM_CAP_RESENDS,
	.max_small = VERBS_MAX_SMALL,
	.fill = FILL,
	.rdv_threshold = RDV_THRESHOLD,
	.options = &nm_verbs_option_table,
	.weight = 30,
	.open = nm_verbs_open,
	.close = verbs_close,
	.join = verbs_join,
	.reaches = verbs_reaches,
	.connect = nm_verbs_connect,
	.disconnect = verbs_disconnect,
	.give_up = nm_verbs_give_up,
	.arrived = nm_verbs_arrived,
	.post_send = nm_verbs_post,
	.poll = verbs_poll,
	.arm = verbs_arm,
	.is_busy = verbs_is_busy,
	.release = nm_verbs_release,
	.xfer_offer = nm_verbs_xfer_offer,
	.xfer_withdraw = nm_verbs_xfer_withdraw,
	.xfer_recv = nm_verbs_xfer_recv,
	.xfer_send = nm_verbs_xfer_send,
	.dump = verbs_dump,
};
