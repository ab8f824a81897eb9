#include "ends.h"

#include <poll.h>
#include <sched.h>
#include <stdlib.h>

enum { GID = 1, PSN = 1000 };

void ends_load(void)
{
	struct ibv_device **list;
	int n = 0;

	if (nm_verbs_lib_load(true) != 0)
		check_skip("no libibverbs");
	list = V.get_device_list(&n);
	if (list != NULL)
		V.free_device_list(list);
	if (n == 0)
		check_skip("no device");
}

void end_open(struct end *e, int n)
{
	struct ibv_srq_init_attr init = { .attr = { ENDS_WR, 2, 0 } };
	struct ibv_device **list;
	bool is_shared = e->srq != NULL;
	int count;

	list = V.get_device_list(&count);
	CHECK(list != NULL && count > 0);
	e->context = V.open_device(list[n < count ? n : count - 1]);
	CHECK(e->context != NULL);
	V.free_device_list(list);
	memset(&e->port, 0, sizeof(e->port));
	CHECK_INT(V.query_port(e->context, 1, (void *)&e->port), 0);
	e->pd = V.alloc_pd(e->context);
	e->channel = V.create_comp_channel(e->context);
	e->scq = V.create_cq(e->context, ENDS_CQE, e, e->channel, 0);
	e->rcq = V.create_cq(e->context, ENDS_CQE, e, e->channel, 0);
	e->srq = is_shared ? V.create_srq(e->pd, &init) : NULL;
	CHECK(e->pd && e->channel && e->scq && e->rcq && !!e->srq == is_shared);
	e->buffer = aligned_alloc(4096, ENDS_BYTES);
	memset(e->buffer, 0, ENDS_BYTES);
	e->mr = V.reg_mr(e->pd, e->buffer, ENDS_BYTES,
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				 IBV_ACCESS_REMOTE_READ);
	CHECK(e->mr != NULL);
	e->qp = NULL;
	e->rnr_retry = 7;
	e->sends = ENDS_WR;
}

void end_close(struct end *e)
{
	if (e->qp != NULL)
		CHECK_INT(V.destroy_qp(e->qp), 0);
	if (e->srq != NULL)
		CHECK_INT(V.destroy_srq(e->srq), 0);
	CHECK_INT(V.dereg_mr(e->mr), 0);
	CHECK_INT(V.destroy_cq(e->scq), 0);
	CHECK_INT(V.destroy_cq(e->rcq), 0);
	CHECK_INT(V.destroy_comp_channel(e->channel), 0);
	CHECK_INT(V.dealloc_pd(e->pd), 0);
	CHECK_INT(V.close_device(e->context), 0);
	free(e->buffer);
}

void end_make(struct end *e, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->scq,
		.recv_cq = e->rcq,
		.srq = e->srq,
		.cap = { .max_send_wr = e->sends,
			 .max_recv_wr = ENDS_WR,
			 .max_send_sge = 2,
			 .max_recv_sge = 2,
			 .max_inline_data = 64 },
		.qp_type = type,
	};

	e->qp = V.create_qp(e->pd, &init);
	CHECK(e->qp != NULL);
}

struct ends_address end_address(const struct end *e)
{
	struct ends_address a = { .qpn = e->qp->qp_num,
				  .psn = PSN,
				  .rkey = e->mr->rkey,
				  .lid = e->port.lid,
				  .buffer = (uintptr_t)e->buffer };
	bool is_roce = e->port.link_layer == IBV_LINK_LAYER_ETHERNET;

	CHECK_INT(V.query_gid(e->context, 1, is_roce ? GID : 0, &a.gid), 0);
	return a;
}

static struct ibv_ah_attr route(const struct end *e,
				const struct ends_address *to)
{
	struct ibv_ah_attr a = { .dlid = to->lid, .port_num = 1 };

	if (e->port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return a;
	a.is_global = 1;
	a.grh.dgid = to->gid;
	a.grh.sgid_index = GID;
	a.grh.hop_limit = 64;
	return a;
}

static int init(struct end *e, uint32_t qkey)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qkey = qkey,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						    IBV_ACCESS_REMOTE_READ };
	bool is_ud = e->qp->qp_type == IBV_QPT_UD;

	return V.modify_qp(e->qp, &a,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				   (is_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

int end_connect(struct end *e, const struct ends_address *to)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR,
				 .path_mtu = IBV_MTU_1024,
				 .dest_qp_num = to->qpn,
				 .rq_psn = to->psn,
				 .max_dest_rd_atomic = 1,
				 .min_rnr_timer = 1,
				 .ah_attr = route(e, to) };
	int rc = init(e, 0);

	if (rc != 0)
		return rc;
	rc = V.modify_qp(e->qp, &a,
			 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				 IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				 IBV_QP_MAX_DEST_RD_ATOMIC |
				 IBV_QP_MIN_RNR_TIMER);
	if (rc != 0)
		return rc;
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 12;
	a.retry_cnt = 7;
	a.rnr_retry = (uint8_t)e->rnr_retry;
	a.sq_psn = PSN;
	a.max_rd_atomic = 1;
	return V.modify_qp(e->qp, &a,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				   IBV_QP_MAX_QP_RD_ATOMIC);
}

void end_datagrams(struct end *e, uint32_t qkey)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR, .sq_psn = PSN };

	CHECK_INT(init(e, qkey), 0);
	CHECK_INT(V.modify_qp(e->qp, &a, IBV_QP_STATE), 0);
	a.qp_state = IBV_QPS_RTS;
	CHECK_INT(V.modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

struct ibv_ah *end_ah(struct end *e, const struct ends_address *to)
{
	struct ibv_ah_attr a = route(e, to);
	struct ibv_ah *ah = V.create_ah(e->pd, &a);

	CHECK(ah != NULL);
	return ah;
}

void ends_open(struct end *a, struct end *b)
{
	struct ends_address at_a, at_b;

	end_open(a, 0);
	end_open(b, 1);
	end_make(a, IBV_QPT_RC);
	end_make(b, IBV_QPT_RC);
	at_a = end_address(a);
	at_b = end_address(b);
	CHECK_INT(end_connect(a, &at_b), 0);
	CHECK_INT(end_connect(b, &at_a), 0);
}

void ends_close(struct end *a, struct end *b)
{
	end_close(a);
	end_close(b);
}

/* --- work --- */

int end_recv(struct end *e, uint64_t id, size_t offset, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer + offset, bytes,
			       e->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 },
			   *bad;

	return e->srq != NULL ? ibv_post_srq_recv(e->srq, &wr, &bad)
			      : ibv_post_recv(e->qp, &wr, &bad);
}

int end_send(struct end *e, uint64_t id, size_t offset, uint32_t bytes,
	     unsigned flags)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer + offset, bytes,
			       e->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = flags },
			   *bad;

	return ibv_post_send(e->qp, &wr, &bad);
}

int end_rdma(struct end *e, uint64_t id, enum ibv_wr_opcode opcode,
	     size_t offset, uint32_t bytes, uint64_t remote, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer + offset, bytes,
			       e->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = id,
				  .sg_list = &sge,
				  .num_sge = bytes > 0 ? 1 : 0,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.imm_data = (uint32_t)id + 77;
	wr.wr.rdma.remote_addr = remote;
	wr.wr.rdma.rkey = rkey;
	return ibv_post_send(e->qp, &wr, &bad);
}

struct ibv_wc ends_wait(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		poll(NULL, 0, 0); /* gives the core away */
	CHECK_INT(n, 1);
	return wc;
}

struct ibv_wc ends_expect(struct ibv_cq *cq, uint64_t id,
			  enum ibv_wc_status status)
{
	struct ibv_wc wc = ends_wait(cq);

	CHECK_STR(V.wc_status_str(wc.status), V.wc_status_str(status));
	CHECK_INT(wc.wr_id, id);
	return wc;
}

bool ends_empty(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	return ibv_poll_cq(cq, 1, &wc) == 0;
}

void ends_fill(unsigned char *p, size_t bytes, unsigned number)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = (unsigned char)(number * 31 + i * 7 + i / 251);
}

bool ends_is_filled(const unsigned char *p, size_t bytes, unsigned number)
{
	for (size_t i = 0; i < bytes; i++)
		if (p[i] != (unsigned char)(number * 31 + i * 7 + i / 251))
			return false;
	return true;
}
