/*
 * The queue pair of a link: made by the clerk, used by the rail's owner.
 */
#include "clerk.h"

#include <marcel/errno.h>

enum {
	RETRIES = 6, /* 7 is for ever, to some adapters */
	RNR_FOR_EVER = 7,
	RNR_TIMER = 1, /* 0.01 ms */
	READS = 16,    /* under way */
	HOPS = 64,
};

int nm_verbs_queue_make(struct verbs *v, struct ibv_qp **qp)
{
	struct ibv_qp_init_attr init = {
		.qp_context = v,
		.send_cq = v->cq,
		.recv_cq = v->cq,
		.srq = v->srq,
		.cap = { .max_send_wr = VERBS_SQ,
			 .max_recv_wr = v->srq != NULL
						? 0
						: VERBS_CREDITS + VERBS_SPARE,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = v->max_inline },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = v->port.number,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE |
				   IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ,
	};

	*qp = nm_verbs_lib.create_qp(v->port.pd, &init);
	if (*qp == NULL)
		return errno != 0 ? -errno : -ENOMEM;
	return -nm_verbs_lib.modify_qp(*qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS);
}

struct ibv_ah_attr nm_verbs_way(const struct verbs *v,
				const struct verbs_addr *to)
{
	struct ibv_ah_attr ah = {
		.dlid = to->lid,
		.port_num = v->port.number,
		.is_global = to->is_ethernet,
		.grh = { .dgid = to->gid,
			 .sgid_index = v->port.gid_index,
			 .hop_limit = HOPS },
	};

	return ah;
}

/*
 * How long the adapter waits for an acknowledgement before it sends again: so
 * that all its tries take NMAD_IBVERBS_DEAD_S; 4096 ns times a power of two.
 */
static uint8_t patience(void)
{
	uint64_t each = verbs_dead_ms() * 1000000 / (RETRIES + 1);
	uint8_t n = 1;

	while (n < 30 && (uint64_t)4096 << (n + 1) <= each)
		n++;
	return n;
}

static uint8_t reads(int most)
{
	return (uint8_t)(most < READS ? most : READS);
}

int nm_verbs_queue_connect(struct verbs *v, struct ibv_qp *qp, uint32_t psn,
			   uint8_t mtu, const struct verbs_addr *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = (enum ibv_mtu)(peer->mtu < mtu ? peer->mtu : mtu),
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = reads(v->port.device.max_qp_rd_atom),
		.min_rnr_timer = RNR_TIMER,
		.ah_attr = nm_verbs_way(v, peer),
	};
	int rc = nm_verbs_lib.modify_qp(
		qp, &attr,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			IBV_QP_MIN_RNR_TIMER);

	if (rc != 0)
		return -rc;
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = patience();
	attr.retry_cnt = RETRIES;
	attr.rnr_retry = RNR_FOR_EVER;
	attr.sq_psn = psn;
	attr.max_rd_atomic = reads(v->port.device.max_qp_init_rd_atom);
	return -nm_verbs_lib.modify_qp(
		qp, &attr,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			IBV_QP_MAX_QP_RD_ATOMIC);
}
