/*
 * The send queue: what is posted is begun in order, at once if it can be, and
 * is complete then. What cannot waits at the head; all that is behind it waits
 * as well. A place is free when a completion of it or of a later one has been
 * polled, as hardware has it.
 */
#include <errno.h>
#include <string.h>

#include "object.h"

enum { SILENT_RETRY_US = 1000 };

fv_count_t fv_waiting;

static struct fv_send *at(const struct fv_qp *q, uint32_t i)
{
	return (struct fv_send *)(q->sends +
				  i % q->cap.max_send_wr * q->send_bytes);
}

/* --- posting --- */

static int check(const struct fv_qp *q, const struct ibv_send_wr *wr,
		 uint64_t length)
{
	bool is_ud = q->ibv.qp_type == IBV_QPT_UD;
	bool is_inline = wr->send_flags & IBV_SEND_INLINE;

	if (wr->num_sge < 0 || wr->num_sge > (int)q->cap.max_send_sge)
		return EINVAL;
	if (is_inline && length > q->cap.max_inline_data)
		return EINVAL;
	if (length > (uint64_t)fv_setting(FV_SET_MAX_MSG))
		return EINVAL;
	switch (wr->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return is_ud && wr->wr.ud.ah == NULL ? EINVAL : 0;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return is_ud ? EINVAL : 0;
	case IBV_WR_RDMA_READ:
		return is_ud || is_inline || q->attr.max_rd_atomic == 0 ? EINVAL
									: 0;
	default:
		return EINVAL;
	}
}

static void fill(struct fv_qp *q, struct fv_send *w,
		 const struct ibv_send_wr *wr)
{
	char *to = w->inlined;
	long delay = fv_setting(FV_SET_DELAY_US);

	w->wr_id = wr->wr_id;
	w->opcode = wr->opcode;
	w->flags = wr->send_flags;
	w->imm = wr->imm_data;
	w->n = wr->num_sge;
	w->not_before =
		delay == 0 ? 0 : fv_now_us() + fv_lot((uint32_t)delay + 1);
	for (int i = 0; i < w->n; i++) {
		w->sge[i] = wr->sg_list[i];
		if (!(w->flags & IBV_SEND_INLINE))
			continue;
		memcpy(to, (void *)(uintptr_t)w->sge[i].addr, w->sge[i].length);
		to += w->sge[i].length;
	}
	if (q->ibv.qp_type == IBV_QPT_UD) {
		w->to = ((struct fv_ah *)wr->wr.ud.ah)->attr;
		w->qpn = wr->wr.ud.remote_qpn;
		w->qkey = wr->wr.ud.remote_qkey;
	} else {
		w->remote = wr->wr.rdma.remote_addr;
		w->rkey = wr->wr.rdma.rkey;
	}
}

static int post(struct fv_qp *q, const struct ibv_send_wr *wr)
{
	uint64_t length = 0;
	int error;

	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	error = check(q, wr, length);
	if (error != 0)
		return error;
	if (q->tail - load_relaxed(&q->retired) >= q->cap.max_send_wr)
		return ENOMEM;
	fill(q, at(q, q->tail), wr);
	at(q, q->tail)->length = (uint32_t)length;
	q->tail++;
	return 0;
}

int fv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		 struct ibv_send_wr **bad)
{
	struct fv_qp *q = (struct fv_qp *)qp;
	bool has_waited, waits;
	int error = 0;

	FV_CALLED(post_send);
	FV_MORE(doorbells);
	if (load_acquire(&q->end->state) < IBV_QPS_RTS) {
		*bad = wr;
		return EINVAL;
	}
	fv_lock(&q->sq_lock);
	has_waited = q->is_waiting;
	for (; wr != NULL && error == 0; wr = wr->next) {
		error = post(q, wr);
		if (error != 0)
			*bad = wr;
	}
	fv_run(q, false);
	waits = q->is_waiting;
	fv_unlock(&q->sq_lock);
	/* Somebody has to come back to it, though we may sleep. */
	if (waits && !has_waited)
		fv_wake(fv_me);
	return error;
}

/* --- completions --- */

static enum ibv_wc_opcode opcode_of(const struct fv_send *w)
{
	switch (w->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	default:
		return IBV_WC_SEND;
	}
}

static void complete(struct fv_qp *q, const struct fv_send *w,
		     enum ibv_wc_status status, uint32_t vendor_err)
{
	struct fv_cqe cqe = {
		.wc = { .wr_id = w->wr_id,
			.status = status,
			.opcode = opcode_of(w),
			.vendor_err = vendor_err,
			.byte_len = w->length,
			.qp_num = q->ibv.qp_num },
		.sent = q->head + 1,
		.is_send = true,
	};
	/* Who is flushed finds it so, but for a test that wants it. */
	bool is_first = status != IBV_WC_WR_FLUSH_ERR || q->is_doomed;

	if (status != IBV_WC_SUCCESS || q->signals_all ||
	    (w->flags & IBV_SEND_SIGNALED))
		fv_push(fv_me, q->send_cq->ring, &cqe, false);
	q->head++;
	q->next_try = q->silent_since = q->rnr_since = 0;
	q->is_judged = q->is_doomed = q->is_unacked = false;
	if (status != IBV_WC_SUCCESS && is_first)
		fv_qp_error(q, q->ibv.qp_type == IBV_QPT_RC ? IBV_QPS_ERR
							    : IBV_QPS_SQE);
}

/* --- beginning them --- */

/* us until nobody has answered; 0: never. */
static uint64_t patience(const struct fv_qp *q)
{
	long ms = fv_setting(FV_SET_TIMEOUT_MS);

	if (ms >= 0)
		return (uint64_t)ms * 1000 + 1;
	if (q->attr.timeout == 0)
		return 0;
	return (4096 * (UINT64_C(1) << q->attr.timeout) / 1000 + 1) *
	       (q->attr.retry_cnt + 1u);
}

/* What becomes of the head; with a fault in its way if a test wants one. */
static int attempt(struct fv_qp *q, struct fv_send *w)
{
	int status;

	if (q->ibv.qp_type != IBV_QPT_RC)
		return fv_deliver(q, w);
	if (!q->is_judged) {
		q->is_judged = true;
		q->is_doomed =
			fv_fault_due(fv_slot_of(q->attr.dest_qp_num)->pid,
				     (int)q->end->device, &q->fault);
	}
	if (!q->is_doomed)
		return fv_deliver(q, w);
	if (q->fault.delivered && !q->is_unacked) {
		status = fv_deliver(q, w);
		if (status != IBV_WC_SUCCESS)
			return status;
		q->is_unacked = true;
	}
	return q->fault.status == IBV_WC_RETRY_EXC_ERR ? FV_SILENCE
						       : (int)q->fault.status;
}

/* The receiver is not ready. Is it past waiting for him? */
static bool rnr_is_over(struct fv_qp *q, uint64_t now)
{
	uint64_t interval = (uint64_t)fv_setting(FV_SET_RNR_US);

	if (q->rnr_since == 0)
		q->rnr_since = now;
	q->silent_since = 0;
	q->next_try = now + interval;
	return q->attr.rnr_retry != 7 &&
	       now - q->rnr_since >= q->attr.rnr_retry * interval;
}

static bool silence_is_over(struct fv_qp *q, uint64_t now)
{
	uint64_t limit = patience(q);

	if (q->silent_since == 0)
		q->silent_since = now;
	q->rnr_since = 0;
	q->next_try = now + SILENT_RETRY_US;
	return limit != 0 && now - q->silent_since >= limit;
}

/* Begin the head. false: it waits. */
static bool begin(struct fv_qp *q, struct fv_send *w, bool at_once)
{
	uint64_t now;
	int status;

	if (load_acquire(&q->end->state) >= IBV_QPS_SQE) {
		complete(q, w, IBV_WC_WR_FLUSH_ERR, 249);
		return true;
	}
	if (w->not_before != 0 || q->next_try != 0) {
		now = fv_now_us();
		if (now < w->not_before)
			q->next_try = w->not_before;
		if (now < q->next_try && (!at_once || now < w->not_before))
			return false;
	}
	status = attempt(q, w);
	if (status == FV_NOT_READY && rnr_is_over(q, fv_now_us()))
		status = IBV_WC_RNR_RETRY_EXC_ERR;
	else if (status == FV_SILENCE && silence_is_over(q, fv_now_us()))
		status = IBV_WC_RETRY_EXC_ERR;
	if (status < 0)
		return false;
	complete(q, w, status,
		 q->is_doomed               ? q->fault.vendor_err
		 : status == IBV_WC_SUCCESS ? 0
					    : 0x80 + (uint32_t)status);
	return true;
}

void fv_run(struct fv_qp *q, bool at_once)
{
	bool waits;

	while (q->head != q->tail && begin(q, at(q, q->head), at_once))
		;
	waits = q->head != q->tail;
	if (waits == q->is_waiting)
		return;
	q->is_waiting = waits;
	fetch_add_relaxed(&fv_waiting, waits ? 1 : (uint32_t)-1);
}
