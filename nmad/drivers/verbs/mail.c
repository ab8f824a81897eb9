/*
 * Datagrams between clerks, by a queue pair of the kind that needs no
 * connection. Each is a hello; what else comes is cut off and judged by who
 * takes it.
 */
#include "clerk.h"

#include <marcel/errno.h>
#include <sched.h>
#include <stdlib.h>

enum {
	COMING = 64,        /* that may come at once */
	LEAVING = 16,       /* that are under way */
	GRH = 40,           /* bytes in front of a datagram */
	PLACE = GRH + 4096, /* of any: one too long would end the queue pair */
	QKEY = 0x6e6d6962,
	GONE_MS = 100, /* to leave */
};

/* --- what comes --- */

static unsigned char *place_of(const struct verbs_mail *m, unsigned i)
{
	return m->memory + i * (size_t)PLACE;
}

static int post_place(struct verbs_mail *m, unsigned i)
{
	struct ibv_sge at = { (uintptr_t)place_of(m, i), PLACE, m->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &at, .num_sge = 1 },
			   *bad;

	return -ibv_post_recv(m->qp, &wr, &bad);
}

void nm_verbs_mail_arm(struct verbs_mail *m)
{
	struct ibv_cq *cq;
	void *arg;

	while (nm_verbs_lib.get_cq_event(m->channel, &cq, &arg) == 0)
		nm_verbs_lib.ack_cq_events(cq, 1);
	ibv_req_notify_cq(m->came, 0);
}

bool nm_verbs_mail_take(struct verbs_mail *m,
			unsigned char to[static VERBS_HELLO], size_t *bytes)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(m->came, 1, &wc) > 0) {
		if (wc.status != IBV_WC_SUCCESS)
			continue;
		memcpy(to, place_of(m, (unsigned)wc.wr_id) + GRH, VERBS_HELLO);
		*bytes = wc.byte_len < GRH ? 0 : wc.byte_len - GRH;
		post_place(m, (unsigned)wc.wr_id);
		return true;
	}
	return false;
}

/* --- what leaves --- */

static void see_gone(struct verbs_mail *m)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(m->gone, 1, &wc) > 0)
		m->ngone++;
}

static unsigned next_place(const struct verbs_mail *m)
{
	return COMING + m->nsent % LEAVING;
}

unsigned char *nm_verbs_mail_place(struct verbs_mail *m)
{
	see_gone(m);
	return m->nsent - m->ngone < LEAVING ? place_of(m, next_place(m))
					     : NULL;
}

void nm_verbs_mail_send(struct verbs_mail *m, struct ibv_ah *ah, uint32_t qpn)
{
	struct ibv_sge at = { (uintptr_t)place_of(m, next_place(m)),
			      VERBS_HELLO, m->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &at,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.ud = { .ah = ah,
					     .remote_qpn = qpn,
					     .remote_qkey = QKEY } },
			   *bad;

	if (ibv_post_send(m->qp, &wr, &bad) == 0)
		m->nsent++;
}

bool nm_verbs_mail_leaves(struct verbs_mail *m)
{
	uint64_t end = verbs_now_ms() + GONE_MS;

	for (see_gone(m); m->ngone != m->nsent && verbs_now_ms() < end;
	     see_gone(m))
		sched_yield();
	return m->ngone == m->nsent;
}

/* --- from the start to the end --- */

static int make_queue(struct verbs_mail *m)
{
	struct verbs_port *port = &m->v->port;
	struct ibv_qp_init_attr init = {
		.send_cq = m->gone,
		.recv_cq = m->came,
		.cap = { .max_send_wr = LEAVING,
			 .max_recv_wr = COMING,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = port->number,
				    .qkey = QKEY };

	m->qp = nm_verbs_lib.create_qp(port->pd, &init);
	if (m->qp == NULL)
		return errno != 0 ? -errno : -ENOMEM;
	if (nm_verbs_lib.modify_qp(m->qp, &attr,
				   IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					   IBV_QP_PORT | IBV_QP_QKEY) != 0)
		return -EIO;
	for (unsigned i = 0; i < COMING; i++)
		if (post_place(m, i) != 0)
			return -EIO;
	attr.qp_state = IBV_QPS_RTR;
	if (nm_verbs_lib.modify_qp(m->qp, &attr, IBV_QP_STATE) != 0)
		return -EIO;
	attr.qp_state = IBV_QPS_RTS;
	return nm_verbs_lib.modify_qp(m->qp, &attr,
				      IBV_QP_STATE | IBV_QP_SQ_PSN) != 0
		       ? -EIO
		       : 0;
}

int nm_verbs_mail_open(struct verbs_mail *m, struct verbs *v)
{
	struct verbs_port *port = &v->port;
	size_t bytes = (COMING + LEAVING) * (size_t)PLACE;

	m->v = v;
	bytes = (bytes + 4095) & ~(size_t)4095;
	m->memory = aligned_alloc(4096, bytes);
	if (m->memory == NULL)
		return -ENOMEM;
	memset(m->memory, 0, bytes);
	m->mr = nm_verbs_lib.reg_mr(port->pd, m->memory, bytes,
				    IBV_ACCESS_LOCAL_WRITE);
	if (m->mr == NULL)
		return -ENOMEM;
	m->channel = nm_verbs_lib.create_comp_channel(port->context);
	if (m->channel == NULL)
		return -EIO;
	m->came = nm_verbs_lib.create_cq(port->context, COMING, NULL,
					 m->channel, 0);
	m->gone = nm_verbs_lib.create_cq(port->context, LEAVING, NULL, NULL, 0);
	if (m->came == NULL || m->gone == NULL)
		return -EIO;
	nm_verbs_do_not_block(m->channel->fd);
	return make_queue(m);
}

void nm_verbs_mail_close(struct verbs_mail *m)
{
	if (m->qp != NULL)
		nm_verbs_lib.destroy_qp(m->qp);
	if (m->came != NULL)
		nm_verbs_lib.destroy_cq(m->came);
	if (m->gone != NULL)
		nm_verbs_lib.destroy_cq(m->gone);
	if (m->channel != NULL)
		nm_verbs_lib.destroy_comp_channel(m->channel);
	if (m->mr != NULL)
		nm_verbs_lib.dereg_mr(m->mr);
	free(m->memory);
}
