/*
 * Completion queues and their channels. Who delivers pushes; the owner polls.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "object.h"

struct fv_cq *fv_cq_list;

/* --- pushing, in any process --- */

static bool fires(uint32_t armed, const struct fv_cqe *cqe, bool solicited)
{
	return armed == FV_ANY ||
	       (armed == FV_SOLICITED &&
		(solicited || cqe->wc.status != IBV_WC_SUCCESS));
}

void fv_push(struct fv_slot *owner, struct fv_ring *ring,
	     const struct fv_cqe *cqe, bool solicited)
{
	bool has_fired = false, fits;
	uint32_t tail;

	fv_lock(&ring->lock);
	tail = load_relaxed(&ring->tail);
	fits = tail - load_acquire(&ring->head) < ring->size;
	if (fits) {
		ring->cqe[tail % ring->size] = *cqe;
		/* Before `armed` is looked at: who arms looks here after. */
		store_seq(&ring->tail, tail + 1);
		has_fired = fires(load_seq(&ring->armed), cqe, solicited);
	} else {
		store_relaxed(&ring->overrun, 1);
	}
	if (has_fired) {
		store_relaxed(&ring->armed, FV_UNARMED);
		fetch_add_release(&ring->fired, 1);
	}
	fv_unlock(&ring->lock);
	if (has_fired && owner == fv_me)
		fv_cq_look(ring->cq);
	else if (has_fired || !fits)
		fv_wake(owner);
}

/* --- events --- */

/* Its list or one of its queue pairs is locked, so it stays. */
void fv_cq_look(struct fv_cq *cq)
{
	struct ibv_async_event e = { .element.cq = &cq->ibv };
	uint32_t n = xchg_acquire(&cq->ring->fired, 0);

	for (; n > 0; n--)
		fv_events_put(&((struct fv_channel *)cq->ibv.channel)->events,
			      &e);
	if (load_relaxed(&cq->ring->overrun) == 0 ||
	    xchg_relaxed(&cq->told_overrun, true))
		return;
	e.event_type = IBV_EVENT_CQ_ERR;
	fv_events_put(&fv_context(cq->ibv.context)->async, &e);
}

int fv_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct fv_ring *ring = ((struct fv_cq *)cq)->ring;
	uint32_t want = solicited_only ? FV_SOLICITED : FV_ANY;

	FV_CALLED(req_notify_cq);
	FV_MORE(doorbells);
	if (cq->channel == NULL)
		return 0;
	if (load_seq(&ring->armed) < want)
		store_seq(&ring->armed, want);
	return 0;
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel,
			    struct ibv_cq **cq, void **cq_context)
{
	struct ibv_async_event e;
	struct fv_cq *c;

	FV_CALLED(get_cq_event);
	if (!fv_events_get(&((struct fv_channel *)channel)->events, &e))
		return -1;
	c = (struct fv_cq *)e.element.cq;
	fetch_add_relaxed(&c->delivered, 1);
	*cq = &c->ibv;
	*cq_context = c->ibv.cq_context;
	return 0;
}

EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	FV_CALLED(ack_cq_events);
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += n;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

EXPORT struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	struct fv_channel *c = calloc(1, sizeof(*c));
	int error;

	FV_CALLED(create_comp_channel);
	error = fv_events_init(&c->events);
	if (error != 0) {
		free(c);
		errno = error;
		return NULL;
	}
	c->ibv.context = context;
	c->ibv.fd = c->events.fd;
	fetch_add_relaxed(&fv_context(context)->users, 1);
	FV_MORE(channels);
	return &c->ibv;
}

EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct fv_channel *c = (struct fv_channel *)channel;

	FV_CALLED(destroy_comp_channel);
	if (channel->refcnt != 0)
		return EBUSY;
	fetch_sub_relaxed(&fv_context(channel->context)->users, 1);
	fv_events_exit(&c->events);
	free(c);
	FV_LESS(channels);
	return 0;
}

/* --- polling --- */

/* There is room in the queue that this has come from. */
static void retire(const struct fv_cqe *cqe)
{
	struct fv_qp *q =
		load_acquire(&fv_qps[cqe->wc.qp_num >> 8 & (FV_QPS - 1)].qp);

	if (cqe->is_send)
		store_relaxed(&q->retired, cqe->sent);
	else
		fetch_add_relaxed(&fv_receives_of(q)->retired, 1);
}

int fv_poll_cq(FV_POLLS)
{
	struct fv_cq *c = (struct fv_cq *)cq;
	struct fv_ring *ring = c->ring;
	uint32_t head, tail;
	int i = 0;

	FV_CALLED(poll_cq);
	if (fv_progress_due())
		fv_progress(false);
	if (load_acquire(&ring->tail) == load_relaxed(&ring->head))
		return 0;
	fv_lock(&c->poll_lock);
	head = load_relaxed(&ring->head);
	tail = load_acquire(&ring->tail);
	for (; i < n && head != tail; i++, head++) {
		const struct fv_cqe *cqe = &ring->cqe[head % ring->size];

		wc[i] = cqe->wc;
		retire(cqe);
	}
	store_release(&ring->head, head);
	fv_unlock(&c->poll_lock);
	return i;
}

void fv_cq_clean(struct fv_cq *c, uint32_t qpn)
{
	struct fv_ring *ring = c->ring;
	uint32_t tail, kept;

	fv_lock(&c->poll_lock);
	fv_lock(&ring->lock);
	kept = load_relaxed(&ring->head);
	tail = load_relaxed(&ring->tail);
	for (uint32_t i = kept; i != tail; i++) {
		const struct fv_cqe *cqe = &ring->cqe[i % ring->size];

		if (cqe->wc.qp_num == qpn)
			retire(cqe);
		else
			ring->cqe[kept++ % ring->size] = *cqe;
	}
	store_release(&ring->tail, kept);
	fv_unlock(&ring->lock);
	fv_unlock(&c->poll_lock);
}

/* --- making them --- */

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
				    void *cq_context,
				    struct ibv_comp_channel *channel,
				    int comp_vector)
{
	struct fv_cq *c;
	size_t bytes;
	uint64_t at;

	FV_CALLED(create_cq);
	errno = EIO;
	if (fv_is_fatal(fv_context(context)->device))
		return NULL;
	errno = EINVAL;
	if (cqe <= 0 || cqe > FV_CQE || comp_vector != 0)
		return NULL;
	bytes = sizeof(struct fv_ring) + (size_t)cqe * sizeof(struct fv_cqe);
	at = fv_arena_get(bytes);
	errno = ENOMEM;
	if (at == 0)
		return NULL;
	c = calloc(1, sizeof(*c));
	c->ring = fv_at(at);
	c->bytes = bytes;
	c->ring->size = (uint32_t)cqe;
	c->ring->cq = c;
	c->ibv.context = context;
	c->ibv.channel = channel;
	c->ibv.cq_context = cq_context;
	c->ibv.cqe = cqe;
	pthread_mutex_init(&c->ibv.mutex, NULL);
	pthread_cond_init(&c->ibv.cond, NULL);
	fetch_add_relaxed(&fv_context(context)->users, 1);
	fv_lock(&fv_list_lock);
	if (channel != NULL)
		channel->refcnt++;
	c->next = fv_cq_list;
	fv_cq_list = c;
	fv_unlock(&fv_list_lock);
	FV_MORE(cqs);
	return &c->ibv;
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct fv_cq *c = (struct fv_cq *)cq, **at;

	FV_CALLED(destroy_cq);
	if (load_relaxed(&c->users) != 0)
		return EBUSY;
	fv_lock(&fv_list_lock);
	for (at = &fv_cq_list; *at != c; at = &(*at)->next)
		;
	*at = c->next;
	if (cq->channel != NULL)
		cq->channel->refcnt--;
	fv_unlock(&fv_list_lock);
	if (cq->channel != NULL)
		fv_events_drop(&((struct fv_channel *)cq->channel)->events, c);
	fv_events_drop(&fv_context(cq->context)->async, c);
	/* As libibverbs does: events that were got are acknowledged. */
	pthread_mutex_lock(&cq->mutex);
	while (cq->comp_events_completed != load_relaxed(&c->delivered) ||
	       cq->async_events_completed != load_relaxed(&c->async_delivered))
		pthread_cond_wait(&cq->cond, &cq->mutex);
	pthread_mutex_unlock(&cq->mutex);
	pthread_mutex_destroy(&cq->mutex);
	pthread_cond_destroy(&cq->cond);
	fv_arena_put((uint64_t)((char *)c->ring - (char *)fv_fabric), c->bytes);
	fetch_sub_relaxed(&fv_context(cq->context)->users, 1);
	free(c);
	FV_LESS(cqs);
	return 0;
}

static const char *const statuses[] = {
	[IBV_WC_SUCCESS] = "success",
	[IBV_WC_LOC_LEN_ERR] = "local length error",
	[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
	[IBV_WC_LOC_PROT_ERR] = "local protection error",
	[IBV_WC_WR_FLUSH_ERR] = "Work Request Flushed Error",
	[IBV_WC_REM_INV_REQ_ERR] = "remote invalid request error",
	[IBV_WC_REM_ACCESS_ERR] = "remote access error",
	[IBV_WC_REM_OP_ERR] = "remote operation error",
	[IBV_WC_RETRY_EXC_ERR] = "transport retry counter exceeded",
	[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
	[IBV_WC_FATAL_ERR] = "fatal error",
	[IBV_WC_GENERAL_ERR] = "general error",
};

EXPORT const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	FV_CALLED(wc_status_str);
	if ((unsigned)status >= sizeof(statuses) / sizeof(*statuses) ||
	    statuses[status] == NULL)
		return "another status";
	return statuses[status];
}
