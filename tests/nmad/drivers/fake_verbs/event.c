/*
 * Queues of events with a descriptor: asynchronous ones of a context, those of
 * completion channels. The descriptor counts what is queued.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "object.h"

int fv_events_init(struct fv_events *q)
{
	q->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	return q->fd < 0 ? errno : 0;
}

void fv_events_exit(struct fv_events *q)
{
	close(q->fd);
}

static struct ibv_async_event *at(struct fv_events *q, uint32_t i)
{
	return &q->what[i % (sizeof(q->what) / sizeof(*q->what))];
}

void fv_events_put(struct fv_events *q, const struct ibv_async_event *what)
{
	uint64_t one = 1;

	fv_lock(&q->lock);
	if (q->tail - q->head == sizeof(q->what) / sizeof(*q->what)) {
		fprintf(stderr, "fake_verbs: nobody gets these events\n");
		abort();
	}
	*at(q, q->tail++) = *what;
	/* Within the lock: nobody takes what is not yet counted. */
	if (write(q->fd, &one, sizeof(one)) != sizeof(one))
		abort();
	fv_unlock(&q->lock);
}

bool fv_events_get(struct fv_events *q, struct ibv_async_event *out)
{
	bool has = false;
	uint64_t one;

	/* After a drop the count may be one too high for a moment. */
	while (!has) {
		if (read(q->fd, &one, sizeof(one)) != sizeof(one))
			return false;
		fv_lock(&q->lock);
		has = q->head != q->tail;
		if (has)
			*out = *at(q, q->head++);
		fv_unlock(&q->lock);
	}
	return true;
}

void fv_events_drop(struct fv_events *q, const void *object)
{
	struct pollfd p = { q->fd, POLLIN, 0 };
	uint64_t one;
	uint32_t kept;

	fv_lock(&q->lock);
	kept = q->head;
	for (uint32_t i = q->head; i != q->tail; i++) {
		/* All members of the union are pointers, or small numbers. */
		if ((const void *)at(q, i)->element.cq != object)
			*at(q, kept++) = *at(q, i);
		else if (poll(&p, 1, 0) == 1 &&
			 read(q->fd, &one, sizeof(one)) != sizeof(one))
			abort();
	}
	q->tail = kept;
	fv_unlock(&q->lock);
}

/* --- asynchronous events, as verbs have them --- */

/* false: of a port or a device, which wait for nobody. */
static bool has_owner(const struct ibv_async_event *e)
{
	return e->event_type == IBV_EVENT_CQ_ERR ||
	       e->event_type == IBV_EVENT_SRQ_LIMIT_REACHED ||
	       e->event_type == IBV_EVENT_QP_FATAL ||
	       e->event_type == IBV_EVENT_QP_REQ_ERR ||
	       e->event_type == IBV_EVENT_QP_ACCESS_ERR ||
	       e->event_type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

EXPORT int ibv_get_async_event(struct ibv_context *c,
			       struct ibv_async_event *event)
{
	FV_CALLED(get_async_event);
	if (!fv_events_get(&fv_context(c)->async, event))
		return -1;
	if (event->event_type == IBV_EVENT_CQ_ERR)
		fetch_add_relaxed(
			&((struct fv_cq *)event->element.cq)->async_delivered,
			1);
	else if (event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
		fetch_add_relaxed(
			&((struct fv_srq *)event->element.srq)->delivered, 1);
	else if (has_owner(event))
		fetch_add_relaxed(
			&((struct fv_qp *)event->element.qp)->delivered, 1);
	return 0;
}

static void acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond,
			uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_srq *srq = event->element.srq;
	struct ibv_qp *qp = event->element.qp;

	FV_CALLED(ack_async_event);
	if (event->event_type == IBV_EVENT_CQ_ERR)
		acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed);
	else if (event->event_type == IBV_EVENT_SRQ_LIMIT_REACHED)
		acknowledge(&srq->mutex, &srq->cond, &srq->events_completed);
	else if (has_owner(event))
		acknowledge(&qp->mutex, &qp->cond, &qp->events_completed);
}

static const char *const types[] = {
	[IBV_EVENT_CQ_ERR] = "CQ error",
	[IBV_EVENT_QP_FATAL] = "local work queue catastrophic error",
	[IBV_EVENT_QP_REQ_ERR] = "invalid request local work queue error",
	[IBV_EVENT_QP_ACCESS_ERR] = "local access violation work queue error",
	[IBV_EVENT_DEVICE_FATAL] = "local catastrophic error",
	[IBV_EVENT_PORT_ACTIVE] = "port active",
	[IBV_EVENT_PORT_ERR] = "port error",
	[IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
	[IBV_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
};

EXPORT const char *ibv_event_type_str(enum ibv_event_type type)
{
	FV_CALLED(event_type_str);
	if ((unsigned)type >= sizeof(types) / sizeof(*types) ||
	    types[type] == NULL)
		return "another event";
	return types[type];
}
