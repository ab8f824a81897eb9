/*
 * Queue pairs: made, led from state to state, torn down.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "object.h"

struct fv_number fv_qps[FV_QPS];
struct fv_qp *fv_qp_list;

/* --- errors --- */

void fv_qp_tell(struct fv_qp *q, enum ibv_event_type type)
{
	struct ibv_async_event e = { .element.qp = &q->ibv,
				     .event_type = type };

	fv_events_put(&fv_context(q->ibv.context)->async, &e);
}

void fv_qp_flush_receives(struct fv_qp *q)
{
	struct fv_cqe cqe = { .is_send = false };
	struct fv_recv recv;

	if (q->srq != NULL)
		return;
	/* Nobody is delivering what he has taken. */
	fv_lock(&q->end->lock);
	while (fv_take(fv_me, q->own.rq, &recv)) {
		cqe.wc = (struct ibv_wc){ .wr_id = recv.wr_id,
					  .status = IBV_WC_WR_FLUSH_ERR,
					  .opcode = IBV_WC_RECV,
					  .vendor_err = 249,
					  .qp_num = q->ibv.qp_num };
		fv_push(fv_me, q->recv_cq->ring, &cqe, false);
	}
	fv_unlock(&q->end->lock);
}

/* In state ERR now, and its owner knows. */
static void flush(struct fv_qp *q)
{
	if (q->is_flushed)
		return;
	q->is_flushed = true;
	fv_qp_flush_receives(q);
	if (q->srq != NULL)
		fv_qp_tell(q, IBV_EVENT_QP_LAST_WQE_REACHED);
}

static void set_state(struct fv_qp *q, enum ibv_qp_state state)
{
	fv_lock(&q->end->lock);
	store_seq(&q->end->state, state);
	fv_unlock(&q->end->lock);
}

void fv_qp_error(struct fv_qp *q, enum ibv_qp_state state)
{
	set_state(q, state);
	if (state == IBV_QPS_ERR)
		flush(q);
}

/*
 * Its device is dead, and completes nothing any more: what another process was
 * delivering is complete when this returns.
 */
static void die(struct fv_qp *q)
{
	if (load_relaxed(&q->end->state) != IBV_QPS_RESET)
		set_state(q, IBV_QPS_ERR);
}

/* Whoever delivered may have found a fault of ours; the list is locked. */
void fv_qp_look(struct fv_qp *q)
{
	uint32_t trouble = xchg_acquire(&q->end->trouble, 0);

	if (trouble != 0)
		fv_qp_tell(q, trouble - 1);
	if (fv_is_fatal(q->end->device))
		die(q);
	if (load_acquire(&q->end->state) != IBV_QPS_ERR)
		return;
	fv_lock(&q->sq_lock);
	flush(q);
	fv_run(q, true);
	fv_unlock(&q->sq_lock);
}

/* --- states --- */

/* What each step needs and what it allows besides, as the kernel has it. */
struct step {
	enum ibv_qp_state from, to;
	int rc_needs, rc_allows, ud_needs, ud_allows;
};

static const struct step steps[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT,
	  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0,
	  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0,
	  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0,
	  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY },
	{ IBV_QPS_INIT, IBV_QPS_RTR,
	  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	  IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX, 0,
	  IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS,
	  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		  IBV_QP_MAX_QP_RD_ATOMIC,
	  IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
		  IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE,
	  IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0,
	  IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
		  IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE,
	  0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_SQE, IBV_QPS_RTS, -1, 0, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_RESET, IBV_QPS_RESET, 0, 0, 0, 0 },
	{ IBV_QPS_INIT, IBV_QPS_RESET, 0, 0, 0, 0 },
	{ IBV_QPS_RTR, IBV_QPS_RESET, 0, 0, 0, 0 },
	{ IBV_QPS_RTS, IBV_QPS_RESET, 0, 0, 0, 0 },
	{ IBV_QPS_SQE, IBV_QPS_RESET, 0, 0, 0, 0 },
	{ IBV_QPS_ERR, IBV_QPS_RESET, 0, 0, 0, 0 },
	{ IBV_QPS_INIT, IBV_QPS_ERR, 0, 0, 0, 0 },
	{ IBV_QPS_RTR, IBV_QPS_ERR, 0, 0, 0, 0 },
	{ IBV_QPS_RTS, IBV_QPS_ERR, 0, 0, 0, 0 },
	{ IBV_QPS_SQE, IBV_QPS_ERR, 0, 0, 0, 0 },
	{ IBV_QPS_ERR, IBV_QPS_ERR, 0, 0, 0, 0 },
};

static bool is_step(const struct fv_qp *q, enum ibv_qp_state from,
		    enum ibv_qp_state to, int mask)
{
	bool is_rc = q->ibv.qp_type == IBV_QPT_RC;

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		const struct step *s = &steps[i];
		int needs = is_rc ? s->rc_needs : s->ud_needs;
		int allows = is_rc ? s->rc_allows : s->ud_allows;

		if (s->from == from && s->to == to)
			return needs >= 0 && (mask & needs) == needs &&
			       (mask & ~(needs | allows | IBV_QP_STATE)) == 0;
	}
	return false;
}

static bool is_sane(const struct ibv_qp_attr *a, int mask)
{
	if ((mask & IBV_QP_PORT) &&
	    (a->port_num < 1 || a->port_num > fv_setting(FV_SET_PORTS)))
		return false;
	if ((mask & IBV_QP_PKEY_INDEX) && a->pkey_index != 0)
		return false;
	if ((mask & IBV_QP_AV) && !fv_is_address(&a->ah_attr))
		return false;
	if ((mask & IBV_QP_PATH_MTU) &&
	    (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096))
		return false;
	if ((mask & IBV_QP_TIMEOUT) && a->timeout > 31)
		return false;
	if ((mask & IBV_QP_RETRY_CNT) && a->retry_cnt > 7)
		return false;
	if ((mask & IBV_QP_RNR_RETRY) && a->rnr_retry > 7)
		return false;
	if ((mask & IBV_QP_MIN_RNR_TIMER) && a->min_rnr_timer > 31)
		return false;
	return !((mask & IBV_QP_MAX_DEST_RD_ATOMIC) &&
		 a->max_dest_rd_atomic > 16) &&
	       !((mask & IBV_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > 16);
}

/* What others look at; the end is locked. */
static void publish(struct fv_qp *q, const struct ibv_qp_attr *a, int mask)
{
	struct fv_end *end = q->end;

	if (mask & IBV_QP_PORT)
		end->port = a->port_num;
	if (mask & IBV_QP_DEST_QPN)
		end->dest = a->dest_qp_num;
	if (mask & IBV_QP_QKEY)
		end->qkey = a->qkey;
	if (mask & IBV_QP_ACCESS_FLAGS)
		end->access = a->qp_access_flags;
	if (mask & IBV_QP_RQ_PSN)
		end->rq_psn = a->rq_psn & 0xffffff;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		end->max_dest_rd = a->max_dest_rd_atomic;
}

static void adopt(struct fv_qp *q, const struct ibv_qp_attr *a, int mask)
{
	if (mask & IBV_QP_PORT)
		q->attr.port_num = a->port_num;
	if (mask & IBV_QP_DEST_QPN)
		q->attr.dest_qp_num = a->dest_qp_num;
	if (mask & IBV_QP_QKEY)
		q->attr.qkey = a->qkey;
	if (mask & IBV_QP_AV)
		q->attr.ah_attr = a->ah_attr;
	if (mask & IBV_QP_TIMEOUT)
		q->attr.timeout = a->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		q->attr.retry_cnt = a->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		q->attr.rnr_retry = a->rnr_retry;
	if (mask & IBV_QP_SQ_PSN)
		q->attr.sq_psn = a->sq_psn & 0xffffff;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		q->attr.max_rd_atomic = a->max_rd_atomic;
}

/* As new; the end is locked. */
static void reset(struct fv_qp *q)
{
	struct fv_rq *rq = q->own.rq;

	fv_cq_clean(q->send_cq, q->ibv.qp_num);
	if (q->recv_cq != q->send_cq)
		fv_cq_clean(q->recv_cq, q->ibv.qp_num);
	q->head = q->tail;
	store_relaxed(&q->retired, q->tail);
	q->next_try = q->silent_since = q->rnr_since = 0;
	q->is_flushed = q->is_unacked = q->is_judged = q->is_doomed = false;
	if (q->srq != NULL)
		return;
	store_relaxed(&rq->head, load_relaxed(&rq->tail));
	store_relaxed(&q->own.retired, load_relaxed(&rq->tail));
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
	struct fv_qp *q = (struct fv_qp *)qp;
	enum ibv_qp_state from, to;
	int error = 0;

	FV_CALLED(modify_qp);
	if (fv_is_fatal(q->end->device)) {
		die(q);
		return EIO;
	}
	fv_lock(&q->sq_lock);
	fv_lock(&q->end->lock);
	from = load_relaxed(&q->end->state);
	to = mask & IBV_QP_STATE ? a->qp_state : from;
	if (((mask & IBV_QP_CUR_STATE) && a->cur_qp_state != from) ||
	    !is_step(q, from, to, mask) || !is_sane(a, mask)) {
		error = EINVAL;
	} else {
		publish(q, a, mask);
		adopt(q, a, mask);
		if (to == IBV_QPS_RESET)
			reset(q);
		store_seq(&q->end->state, to);
		qp->state = to;
	}
	fv_unlock(&q->end->lock);
	if (error == 0 && to == IBV_QPS_ERR)
		flush(q);
	fv_run(q, true);
	fv_unlock(&q->sq_lock);
	return error;
}

/* --- making them --- */

static int check(const struct ibv_qp_init_attr *init)
{
	const struct ibv_qp_cap *cap = &init->cap;
	uint32_t max_wr = (uint32_t)fv_setting(FV_SET_MAX_WR);

	if (init->qp_type != IBV_QPT_RC && init->qp_type != IBV_QPT_UD)
		return EOPNOTSUPP;
	if (init->send_cq == NULL || init->recv_cq == NULL ||
	    cap->max_send_wr > max_wr || cap->max_recv_wr > max_wr ||
	    cap->max_send_sge > FV_SGE || cap->max_recv_sge > FV_SGE ||
	    cap->max_inline_data > (uint32_t)fv_setting(FV_SET_MAX_INLINE))
		return EINVAL;
	return load_relaxed(&fv_counts.qps) >=
			       (uint64_t)fv_setting(FV_SET_MAX_QP)
		       ? ENOMEM
		       : 0;
}

static void open_end(struct fv_qp *q, uint32_t index)
{
	struct fv_end *end = &fv_me->ends[index];
	uint32_t slot = (uint32_t)(fv_me - fv_fabric->slots);

	/* From 1: number 0 is nobody's. */
	end->generation = end->generation % 255 + 1;
	q->ibv.qp_num = slot << 18 | index << 8 | end->generation;
	q->end = end;
	fv_lock(&end->lock);
	store_relaxed(&end->state, IBV_QPS_RESET);
	store_relaxed(&end->trouble, 0);
	end->type = q->ibv.qp_type;
	end->device = fv_context(q->ibv.context)->device;
	end->pd = q->ibv.pd->handle;
	end->port = end->dest = end->qkey = end->access = end->rq_psn = 0;
	end->is_shared = q->srq != NULL;
	end->rq = fv_receives_of(q)->rq;
	end->cq = q->recv_cq->ring;
	store_release(&end->qpn, q->ibv.qp_num);
	fv_unlock(&end->lock);
}

/* A place in the table, a long time after it was left. */
static bool enlist(struct fv_qp *q)
{
	static uint32_t next;
	uint32_t i, n = 0;

	fv_lock(&fv_list_lock);
	for (i = 0; i < FV_QPS; i++) {
		n = (next + i) % FV_QPS;
		if (load_relaxed(&fv_qps[n].qp) == NULL)
			break;
	}
	if (i < FV_QPS) {
		next = n + 1;
		open_end(q, n);
		store_release(&fv_qps[n].qp, q);
		q->next = fv_qp_list;
		fv_qp_list = q;
	}
	fv_unlock(&fv_list_lock);
	return i < FV_QPS;
}

static void free_qp(struct fv_qp *q)
{
	if (q->own.rq != NULL)
		fv_rq_free(&q->own);
	free(q->sends);
	pthread_mutex_destroy(&q->ibv.mutex);
	pthread_cond_destroy(&q->ibv.cond);
	free(q);
}

static void use(struct fv_qp *q, int more)
{
	fetch_add_relaxed(&q->send_cq->users, (uint32_t)more);
	fetch_add_relaxed(&q->recv_cq->users, (uint32_t)more);
	if (q->srq != NULL)
		fetch_add_relaxed(&q->srq->users, (uint32_t)more);
	fetch_add_relaxed(&((struct fv_pd *)q->ibv.pd)->users, (uint32_t)more);
	fetch_add_relaxed(&fv_counts.qps, (uint64_t)(int64_t)more);
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd,
				    struct ibv_qp_init_attr *init)
{
	struct ibv_qp_cap *cap = &init->cap;
	struct fv_qp *q;

	FV_CALLED(create_qp);
	errno = fv_is_fatal(fv_context(pd->context)->device) ? EIO
							     : check(init);
	if (errno != 0)
		return NULL;
	if (cap->max_send_wr == 0)
		cap->max_send_wr = 1;
	if (init->srq != NULL)
		cap->max_recv_wr = cap->max_recv_sge = 0;
	q = calloc(1, sizeof(*q));
	q->ibv.context = pd->context;
	q->ibv.qp_context = init->qp_context;
	q->ibv.pd = pd;
	q->ibv.send_cq = init->send_cq;
	q->ibv.recv_cq = init->recv_cq;
	q->ibv.srq = init->srq;
	q->ibv.qp_type = init->qp_type;
	pthread_mutex_init(&q->ibv.mutex, NULL);
	pthread_cond_init(&q->ibv.cond, NULL);
	q->cap = *cap;
	q->signals_all = init->sq_sig_all;
	q->send_cq = (struct fv_cq *)init->send_cq;
	q->recv_cq = (struct fv_cq *)init->recv_cq;
	q->srq = (struct fv_srq *)init->srq;
	q->send_bytes = (sizeof(struct fv_send) + cap->max_inline_data + 15) &
			~(size_t)15;
	q->sends = calloc(cap->max_send_wr, q->send_bytes);
	if ((q->srq == NULL &&
	     fv_rq_new(&q->own, cap->max_recv_wr == 0 ? 1 : cap->max_recv_wr,
		       cap->max_recv_sge, pd->handle) == NULL) ||
	    !enlist(q)) {
		free_qp(q);
		errno = ENOMEM;
		return NULL;
	}
	use(q, 1);
	return &q->ibv;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct fv_qp *q = (struct fv_qp *)qp, **at;

	FV_CALLED(destroy_qp);
	fv_lock(&fv_list_lock);
	for (at = &fv_qp_list; *at != q; at = &(*at)->next)
		;
	*at = q->next;
	fv_lock(&q->sq_lock);
	fv_lock(&q->end->lock);
	store_relaxed(&q->end->qpn, 0);
	fv_cq_clean(q->send_cq, qp->qp_num);
	if (q->recv_cq != q->send_cq)
		fv_cq_clean(q->recv_cq, qp->qp_num);
	fv_unlock(&q->end->lock);
	if (q->is_waiting)
		fetch_sub_relaxed(&fv_waiting, 1);
	fv_unlock(&q->sq_lock);
	store_relaxed(&fv_qps[qp->qp_num >> 8 & (FV_QPS - 1)].qp, NULL);
	fv_unlock(&fv_list_lock);
	fv_events_drop(&fv_context(qp->context)->async, q);
	pthread_mutex_lock(&qp->mutex);
	while (qp->events_completed != load_relaxed(&q->delivered))
		pthread_cond_wait(&qp->cond, &qp->mutex);
	pthread_mutex_unlock(&qp->mutex);
	use(q, -1);
	free_qp(q);
	return 0;
}

int fv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		 struct ibv_recv_wr **bad)
{
	struct fv_qp *q = (struct fv_qp *)qp;
	int error;

	FV_CALLED(post_recv);
	if (q->srq != NULL || load_acquire(&q->end->state) == IBV_QPS_RESET) {
		*bad = wr;
		return EINVAL;
	}
	error = fv_post(&q->own, wr, bad);
	if (load_seq(&q->end->state) == IBV_QPS_ERR)
		fv_qp_flush_receives(q);
	return error;
}
