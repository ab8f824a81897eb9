/*
 * Receives, of one queue pair or shared: who delivers takes, the owner posts.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "object.h"

struct fv_srq *fv_srq_list;

/* false: there is none; then we are woken when there is. */
bool fv_take(struct fv_slot *owner, struct fv_rq *rq, struct fv_recv *out)
{
	uint64_t me = UINT64_C(1) << (fv_me - fv_fabric->slots);
	uint32_t head, tail, limit;
	bool hit;

	fv_lock(&rq->lock);
	head = load_relaxed(&rq->head);
	tail = load_acquire(&rq->tail);
	if (head == tail) {
		/* Then looked at again: who posts looks at it after. */
		fetch_or_seq(&rq->starved, me);
		tail = load_seq(&rq->tail);
	}
	if (head == tail) {
		fv_unlock(&rq->lock);
		return false;
	}
	*out = rq->recv[head % rq->size];
	store_release(&rq->head, head + 1);
	limit = load_relaxed(&rq->limit);
	hit = limit != 0 && tail - head - 1 < limit;
	if (hit) {
		store_relaxed(&rq->limit, 0);
		store_relaxed(&rq->limit_hit, 1);
	}
	fv_unlock(&rq->lock);
	if (hit)
		fv_wake(owner);
	return true;
}

static void feed(struct fv_rq *rq)
{
	uint64_t starved = load_seq(&rq->starved);

	if (starved == 0)
		return;
	starved = xchg_seq(&rq->starved, 0);
	for (uint32_t i = 0; i < FV_SLOTS; i++)
		if (starved >> i & 1)
			fv_wake(&fv_fabric->slots[i]);
}

static int post(struct fv_receives *r, const struct ibv_recv_wr *wr)
{
	struct fv_rq *rq = r->rq;
	uint32_t tail = load_relaxed(&rq->tail);
	struct fv_recv *recv = &rq->recv[tail % rq->size];

	if (wr->num_sge < 0 || wr->num_sge > (int)rq->sges)
		return EINVAL;
	if (tail - load_relaxed(&r->retired) >= rq->size)
		return ENOMEM;
	recv->wr_id = wr->wr_id;
	recv->n = (uint32_t)wr->num_sge;
	for (int i = 0; i < wr->num_sge; i++)
		recv->sge[i] = wr->sg_list[i];
	store_seq(&rq->tail, tail + 1);
	return 0;
}

int fv_post(struct fv_receives *r, struct ibv_recv_wr *wr,
	    struct ibv_recv_wr **bad)
{
	int error = 0;

	FV_MORE(doorbells);
	fv_lock(&r->post_lock);
	for (; wr != NULL && error == 0; wr = wr->next) {
		error = post(r, wr);
		if (error != 0)
			*bad = wr;
	}
	feed(r->rq);
	fv_unlock(&r->post_lock);
	return error;
}

struct fv_rq *fv_rq_new(struct fv_receives *r, uint32_t wrs, uint32_t sges,
			uint32_t pd)
{
	size_t bytes = sizeof(struct fv_rq) + wrs * sizeof(struct fv_recv);
	uint64_t at = fv_arena_get(bytes);

	if (at == 0)
		return NULL;
	r->bytes = bytes;
	r->rq = fv_at(at);
	r->rq->size = wrs;
	r->rq->sges = sges;
	r->rq->pd = pd;
	return r->rq;
}

void fv_rq_free(struct fv_receives *r)
{
	fv_arena_put((uint64_t)((char *)r->rq - (char *)fv_fabric), r->bytes);
}

/* --- shared ones --- */

int fv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	FV_CALLED(post_srq_recv);
	return fv_post(&((struct fv_srq *)srq)->receives, wr, bad);
}

void fv_srq_look(struct fv_srq *srq)
{
	struct ibv_async_event e = {
		.element.srq = &srq->ibv,
		.event_type = IBV_EVENT_SRQ_LIMIT_REACHED,
	};

	if (xchg_relaxed(&srq->receives.rq->limit_hit, 0) != 0)
		fv_events_put(&fv_context(srq->ibv.context)->async, &e);
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
				      struct ibv_srq_init_attr *init)
{
	struct fv_srq *s;

	FV_CALLED(create_srq);
	errno = EIO;
	if (fv_is_fatal(fv_context(pd->context)->device))
		return NULL;
	errno = EOPNOTSUPP;
	if (fv_setting(FV_SET_SRQ) == 0)
		return NULL;
	errno = EINVAL;
	if (init->attr.max_wr == 0 || init->attr.max_sge > FV_SGE ||
	    init->attr.max_wr > (uint32_t)fv_setting(FV_SET_MAX_WR))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (fv_rq_new(&s->receives, init->attr.max_wr, init->attr.max_sge,
		      pd->handle) == NULL) {
		free(s);
		errno = ENOMEM;
		return NULL;
	}
	s->ibv.context = pd->context;
	s->ibv.srq_context = init->srq_context;
	s->ibv.pd = pd;
	pthread_mutex_init(&s->ibv.mutex, NULL);
	pthread_cond_init(&s->ibv.cond, NULL);
	fetch_add_relaxed(&((struct fv_pd *)pd)->users, 1);
	fv_lock(&fv_list_lock);
	s->next = fv_srq_list;
	fv_srq_list = s;
	fv_unlock(&fv_list_lock);
	FV_MORE(srqs);
	return &s->ibv;
}

EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
			  int mask)
{
	struct fv_rq *rq = ((struct fv_srq *)srq)->receives.rq;

	FV_CALLED(modify_srq);
	if (mask != IBV_SRQ_LIMIT || attr->srq_limit > rq->size)
		return EINVAL;
	store_relaxed(&rq->limit, attr->srq_limit);
	return 0;
}

EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
	struct fv_srq *s = (struct fv_srq *)srq, **at;

	FV_CALLED(destroy_srq);
	if (load_relaxed(&s->users) != 0)
		return EBUSY;
	fv_lock(&fv_list_lock);
	for (at = &fv_srq_list; *at != s; at = &(*at)->next)
		;
	*at = s->next;
	fv_unlock(&fv_list_lock);
	fv_events_drop(&fv_context(srq->context)->async, s);
	pthread_mutex_lock(&srq->mutex);
	while (srq->events_completed != load_relaxed(&s->delivered))
		pthread_cond_wait(&srq->cond, &srq->mutex);
	pthread_mutex_unlock(&srq->mutex);
	pthread_mutex_destroy(&srq->mutex);
	pthread_cond_destroy(&srq->cond);
	fv_rq_free(&s->receives);
	fetch_sub_relaxed(&((struct fv_pd *)srq->pd)->users, 1);
	free(s);
	FV_LESS(srqs);
	return 0;
}
