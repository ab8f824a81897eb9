/*
 * A send reaches its peer: the sender's process looks at what the peer's has
 * published, moves the bytes, and leaves a completion there.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "object.h"

/* Pieces of memory, ours or the peer's. */
struct pieces {
	struct iovec iov[FV_SGE + 1];
	unsigned n;
};

static void add(struct pieces *p, uint64_t addr, size_t length)
{
	if (length == 0)
		return;
	p->iov[p->n].iov_base = (void *)(uintptr_t)addr;
	p->iov[p->n++].iov_len = length;
}

static size_t bytes_of(const struct pieces *p)
{
	size_t n = 0;

	for (unsigned i = 0; i < p->n; i++)
		n += p->iov[i].iov_len;
	return n;
}

/* Leave out the first `bytes`. */
static void skip(struct pieces *p, size_t bytes)
{
	unsigned i = 0;

	while (i < p->n && bytes >= p->iov[i].iov_len)
		bytes -= p->iov[i++].iov_len;
	memmove(p->iov, p->iov + i, (p->n - i) * sizeof(*p->iov));
	p->n -= i;
	if (p->n > 0) {
		p->iov[0].iov_base = (char *)p->iov[0].iov_base + bytes;
		p->iov[0].iov_len -= bytes;
	}
}

/* To or from the peer; as long on both sides. 0, or errno. */
static int move(pid_t pid, struct pieces *ours, struct pieces *theirs,
		bool to_peer)
{
	ssize_t n;

	while (ours->n > 0) {
		if (to_peer)
			n = process_vm_writev(pid, ours->iov, ours->n,
					      theirs->iov, theirs->n, 0);
		else
			n = process_vm_readv(pid, ours->iov, ours->n,
					     theirs->iov, theirs->n, 0);
		if (n < 0 && errno == EPERM) {
			fprintf(stderr,
				"fake_verbs: process_vm_writev is refused\n");
			abort();
		}
		if (n <= 0)
			return n < 0 ? errno : EFAULT;
		skip(ours, (size_t)n);
		skip(theirs, (size_t)n);
	}
	return 0;
}

/* Can the first byte that is left be read here? */
static bool is_mapped(const struct pieces *p)
{
	char c;
	struct iovec to = { &c, 1 }, from = { p->iov[0].iov_base, 1 };

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;
}

/* --- our side --- */

static int ours(struct fv_qp *q, struct fv_send *w, uint32_t access,
		struct pieces *out)
{
	out->n = 0;
	if (w->flags & IBV_SEND_INLINE) {
		add(out, (uintptr_t)w->inlined, w->length);
		return IBV_WC_SUCCESS;
	}
	for (int i = 0; i < w->n; i++) {
		const struct ibv_sge *s = &w->sge[i];

		if (s->length == 0)
			continue;
		if (!fv_mr_covers(fv_me, s->lkey, q->end->device, q->end->pd,
				  s->addr, s->length, access))
			return IBV_WC_LOC_PROT_ERR;
		add(out, s->addr, s->length);
	}
	return IBV_WC_SUCCESS;
}

/* --- the peer's side; its end is locked --- */

struct peer {
	struct fv_slot *slot;
	struct fv_end *end;
	uint32_t qpn;
};

static void find(struct peer *p, uint32_t qpn)
{
	p->slot = fv_slot_of(qpn);
	p->end = fv_end_of(qpn);
	p->qpn = qpn;
	fv_lock(&p->end->lock);
}

/* The end is in error, which its owner will notice. */
static void fail(struct peer *p, uint32_t event)
{
	store_seq(&p->end->state, IBV_QPS_ERR);
	store_release(&p->end->trouble, event + 1);
	fv_wake(p->slot);
}

static void received(struct fv_qp *q, struct fv_send *w, struct peer *p,
		     const struct fv_recv *r, enum ibv_wc_status status,
		     uint32_t bytes)
{
	bool is_write = w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	bool has_imm = is_write || w->opcode == IBV_WR_SEND_WITH_IMM;
	bool is_ud = q->ibv.qp_type == IBV_QPT_UD;
	struct fv_cqe cqe = {
		.wc = { .wr_id = r->wr_id,
			.status = status,
			.opcode = is_write ? IBV_WC_RECV_RDMA_WITH_IMM
					   : IBV_WC_RECV,
			.vendor_err = status == IBV_WC_SUCCESS
					      ? 0
					      : 0x80 + (uint32_t)status,
			.byte_len = bytes,
			.imm_data = has_imm ? w->imm : 0,
			.qp_num = p->qpn,
			.src_qp = q->ibv.qp_num,
			.wc_flags = (has_imm ? IBV_WC_WITH_IMM : 0) |
				    (is_ud && w->to.is_global ? IBV_WC_GRH : 0),
			.slid = fv_lid(q->end->device, q->end->port) },
	};

	fv_push(p->slot, fv_here(p->slot, p->end->cq), &cqe,
		w->flags & IBV_SEND_SOLICITED);
}

/* Where in the receive these bytes go. */
static int theirs(struct peer *p, const struct fv_recv *r, uint64_t bytes,
		  struct pieces *out)
{
	struct fv_rq *rq = fv_here(p->slot, p->end->rq);

	out->n = 0;
	for (uint32_t i = 0; i < r->n && bytes > 0; i++) {
		const struct ibv_sge *s = &r->sge[i];
		uint64_t n = s->length < bytes ? s->length : bytes;

		if (n > 0 &&
		    !fv_mr_covers(p->slot, s->lkey, p->end->device, rq->pd,
				  s->addr, n, IBV_ACCESS_LOCAL_WRITE))
			return IBV_WC_LOC_PROT_ERR;
		add(out, s->addr, n);
		bytes -= n;
	}
	return bytes > 0 ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

/* What the sender is told when its move has failed. */
static int blame(int error, const struct pieces *mine, int remote)
{
	if (error == ESRCH)
		return FV_SILENCE;
	return is_mapped(mine) ? remote : IBV_WC_LOC_PROT_ERR;
}

/* --- reliable connections --- */

static int send_message(struct fv_qp *q, struct fv_send *w, struct peer *p)
{
	struct pieces from, to;
	struct fv_recv r;
	int status, error;

	status = ours(q, w, 0, &from);
	if (status != IBV_WC_SUCCESS)
		return status;
	if (!fv_take(p->slot, fv_here(p->slot, p->end->rq), &r))
		return FV_NOT_READY;
	status = theirs(p, &r, w->length, &to);
	if (status == IBV_WC_SUCCESS) {
		error = move(p->slot->pid, &from, &to, true);
		if (error == 0) {
			received(q, w, p, &r, IBV_WC_SUCCESS, w->length);
			return IBV_WC_SUCCESS;
		}
		status = blame(error, &from, IBV_WC_LOC_PROT_ERR);
		if (status < 0 || !is_mapped(&from))
			return status;
	}
	received(q, w, p, &r, status, 0);
	fail(p, IBV_EVENT_QP_REQ_ERR);
	return status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR
					    : IBV_WC_REM_OP_ERR;
}

/* Remote memory, there and back. */
static int access_memory(struct fv_qp *q, struct fv_send *w, struct peer *p)
{
	bool writes = w->opcode != IBV_WR_RDMA_READ;
	uint32_t right =
		writes ? IBV_ACCESS_REMOTE_WRITE : IBV_ACCESS_REMOTE_READ;
	struct pieces mine, its = { .n = 0 };
	int status, error;

	status = ours(q, w, writes ? 0 : IBV_ACCESS_LOCAL_WRITE, &mine);
	if (status != IBV_WC_SUCCESS)
		return status;
	if (!(p->end->access & right) ||
	    (!writes && p->end->max_dest_rd == 0)) {
		fail(p, IBV_EVENT_QP_REQ_ERR);
		return IBV_WC_REM_INV_REQ_ERR;
	}
	if (w->length == 0)
		return IBV_WC_SUCCESS;
	if (!fv_mr_covers(p->slot, w->rkey, p->end->device, p->end->pd,
			  w->remote, w->length, right)) {
		fail(p, IBV_EVENT_QP_ACCESS_ERR);
		return IBV_WC_REM_ACCESS_ERR;
	}
	add(&its, w->remote, w->length);
	error = move(p->slot->pid, &mine, &its, writes);
	if (error == 0)
		return IBV_WC_SUCCESS;
	status = blame(error, &mine, IBV_WC_REM_ACCESS_ERR);
	if (status == IBV_WC_REM_ACCESS_ERR)
		fail(p, IBV_EVENT_QP_ACCESS_ERR);
	return status;
}

static int write_with_imm(struct fv_qp *q, struct fv_send *w, struct peer *p)
{
	struct fv_rq *rq = fv_here(p->slot, p->end->rq);
	struct fv_recv r;
	int status;

	/* As on the wire: the bytes, again if there is no receive. */
	status = access_memory(q, w, p);
	if (status != IBV_WC_SUCCESS)
		return status;
	if (!fv_take(p->slot, rq, &r))
		return FV_NOT_READY;
	received(q, w, p, &r, IBV_WC_SUCCESS, w->length);
	return IBV_WC_SUCCESS;
}

/* Is this the end that our queue pair has been connected to? */
static bool answers(const struct fv_qp *q, const struct peer *p)
{
	const struct fv_end *e = p->end;
	uint32_t state = load_relaxed(&e->state);
	struct fv_place place = fv_place_of(&q->attr.ah_attr);

	return load_relaxed(&e->qpn) == p->qpn && e->type == IBV_QPT_RC &&
	       (state == IBV_QPS_RTR || state == IBV_QPS_RTS) &&
	       e->dest == q->ibv.qp_num && e->rq_psn == q->attr.sq_psn &&
	       e->device == place.device && e->port == place.port &&
	       fv_port_is_up(p->slot, e->device, e->port);
}

/* Without bytes to move, or any more, nothing would show that it is dead. */
static bool is_in_doubt(const struct fv_qp *q, const struct fv_send *w)
{
	return w->length == 0 || q->silent_since != 0 || q->rnr_since != 0;
}

static bool lives(const struct peer *p)
{
	return fv_fabric_lives(load_acquire(&p->slot->id));
}

static int deliver_rc(struct fv_qp *q, struct fv_send *w)
{
	struct peer p;
	int status;

	if (!fv_port_is_up(fv_me, q->end->device, q->end->port))
		return FV_SILENCE;
	find(&p, q->attr.dest_qp_num);
	if (!answers(q, &p) || (is_in_doubt(q, w) && !lives(&p)))
		status = FV_SILENCE;
	else if (w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		status = write_with_imm(q, w, &p);
	else if (w->opcode == IBV_WR_RDMA_WRITE ||
		 w->opcode == IBV_WR_RDMA_READ)
		status = access_memory(q, w, &p);
	else
		status = send_message(q, w, &p);
	fv_unlock(&p.end->lock);
	return status;
}

/* --- datagrams --- */

enum { GRH = 40 };

static bool hears(const struct fv_qp *q, const struct fv_send *w,
		  const struct peer *p, struct fv_place place)
{
	const struct fv_end *e = p->end;
	uint32_t state = load_relaxed(&e->state);
	/* With this bit it is the sender's own key that counts. */
	uint32_t qkey = w->qkey >> 31 ? q->attr.qkey : w->qkey;

	return load_relaxed(&e->qpn) == p->qpn && e->type == IBV_QPT_UD &&
	       (state == IBV_QPS_RTR || state == IBV_QPS_RTS ||
		state == IBV_QPS_SQE) &&
	       e->qkey == qkey && e->device == place.device &&
	       e->port == place.port &&
	       fv_port_is_up(p->slot, e->device, e->port);
}

static void header(const struct fv_qp *q, const struct fv_send *w,
		   struct ibv_grh *grh)
{
	memset(grh, 0, sizeof(*grh));
	if (!w->to.is_global)
		return;
	grh->version_tclass_flow = htonl(6u << 28);
	grh->paylen = htons((uint16_t)w->length);
	grh->next_hdr = 27;
	grh->hop_limit = w->to.grh.hop_limit;
	fv_gid(q->end->device, q->end->port, w->to.grh.sgid_index, &grh->sgid);
	grh->dgid = w->to.grh.dgid;
}

/* Whether it arrives is nobody's business. */
static void datagram(struct fv_qp *q, struct fv_send *w, struct pieces from)
{
	struct fv_place place = fv_place_of(&w->to);
	struct pieces to;
	struct ibv_grh grh;
	struct fv_recv r;
	struct peer p;

	header(q, w, &grh);
	memmove(from.iov + 1, from.iov, from.n++ * sizeof(*from.iov));
	from.iov[0] = (struct iovec){ &grh, GRH };
	find(&p, w->qpn);
	if (place.port != 0 && hears(q, w, &p, place) &&
	    fv_take(p.slot, fv_here(p.slot, p.end->rq), &r) &&
	    theirs(&p, &r, bytes_of(&from), &to) == IBV_WC_SUCCESS &&
	    move(p.slot->pid, &from, &to, true) == 0)
		received(q, w, &p, &r, IBV_WC_SUCCESS, w->length + GRH);
	fv_unlock(&p.end->lock);
}

static int deliver_ud(struct fv_qp *q, struct fv_send *w)
{
	struct pieces from;
	int status = ours(q, w, 0, &from);

	if (status != IBV_WC_SUCCESS)
		return status;
	if (w->length > fv_mtu())
		return IBV_WC_LOC_LEN_ERR;
	if (!fv_port_is_up(fv_me, q->end->device, q->end->port) ||
	    fv_lot(1000) < fv_setting(FV_SET_LOSS))
		return IBV_WC_SUCCESS;
	datagram(q, w, from);
	if (fv_lot(1000) < fv_setting(FV_SET_DUPLICATES))
		datagram(q, w, from);
	return IBV_WC_SUCCESS;
}

int fv_deliver(struct fv_qp *q, struct fv_send *w)
{
	return q->ibv.qp_type == IBV_QPT_UD ? deliver_ud(q, w)
					    : deliver_rc(q, w);
}

/* --- whom a datagram is for --- */

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct fv_ah *ah;

	FV_CALLED(create_ah);
	if (!fv_is_address(attr)) {
		errno = EINVAL;
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	ah->attr = *attr;
	fetch_add_relaxed(&((struct fv_pd *)pd)->users, 1);
	FV_MORE(ahs);
	return &ah->ibv;
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	FV_CALLED(destroy_ah);
	fetch_sub_relaxed(&((struct fv_pd *)ah->pd)->users, 1);
	free(ah);
	FV_LESS(ahs);
	return 0;
}
