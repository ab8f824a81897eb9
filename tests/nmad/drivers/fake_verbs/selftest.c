/*
 * What a driver may rely on in verbs: holds of the fake library and of the real
 * one with two devices that reach each other. Nothing of nmad, but what opens
 * the library.
 */
#include "ends.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include <base/atomic.h>

static void setup(void)
{
	ends_load();
}

__attribute__((constructor)) static void register_setup(void)
{
	check_fixture(setup, NULL);
}

/* --- messages --- */

TEST(messages_arrive_whole_in_order_and_say_how_long_they_are)
{
	static const uint32_t sizes[] = { 1, 100, 0, 4096, 1025, 70000, 8 };
	struct end a = { 0 }, b = { 0 };
	struct ibv_wc wc;

	ends_open(&a, &b);
	for (unsigned i = 0; i < 7; i++)
		CHECK_INT(end_recv(&b, i, i * 8192 * (i < 6), 80000), 0);
	for (unsigned i = 0; i < 7; i++) {
		ends_fill(a.buffer, sizes[i], i);
		CHECK_INT(end_send(&a, 100 + i, 0, sizes[i], IBV_SEND_SIGNALED),
			  0);
		wc = ends_expect(a.scq, 100 + i, IBV_WC_SUCCESS);
		CHECK_INT(wc.opcode, IBV_WC_SEND);
		CHECK_INT(wc.qp_num, a.qp->qp_num);
		wc = ends_expect(b.rcq, i, IBV_WC_SUCCESS);
		CHECK_INT(wc.opcode, IBV_WC_RECV);
		CHECK_INT(wc.byte_len, sizes[i]);
		CHECK_INT(wc.qp_num, b.qp->qp_num);
		CHECK_INT(wc.wc_flags & IBV_WC_WITH_IMM, 0);
		CHECK(ends_is_filled(b.buffer + i * 8192 * (i < 6), sizes[i],
				     i));
	}
	ends_close(&a, &b);
}

TEST(a_message_may_be_gathered_and_scattered)
{
	struct end a = { 0 }, b = { 0 };
	struct ibv_sge from[2], to[2];
	struct ibv_send_wr send = { .wr_id = 1,
				    .sg_list = from,
				    .num_sge = 2,
				    .opcode = IBV_WR_SEND_WITH_IMM,
				    .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_recv_wr recv = { .wr_id = 2, .sg_list = to, .num_sge = 2 },
			   *bad_recv;
	struct ibv_wc wc;

	ends_open(&a, &b);
	from[0] = (struct ibv_sge){ (uintptr_t)a.buffer, 300, a.mr->lkey };
	from[1] =
		(struct ibv_sge){ (uintptr_t)a.buffer + 1000, 700, a.mr->lkey };
	to[0] = (struct ibv_sge){ (uintptr_t)b.buffer, 500, b.mr->lkey };
	to[1] = (struct ibv_sge){ (uintptr_t)b.buffer + 2000, 4000,
				  b.mr->lkey };
	ends_fill(a.buffer, 300, 1);
	ends_fill(a.buffer + 1000, 700, 2);
	send.imm_data = 4711;
	CHECK_INT(ibv_post_recv(b.qp, &recv, &bad_recv), 0);
	CHECK_INT(ibv_post_send(a.qp, &send, &bad), 0);
	ends_expect(a.scq, 1, IBV_WC_SUCCESS);
	wc = ends_expect(b.rcq, 2, IBV_WC_SUCCESS);
	CHECK_INT(wc.byte_len, 1000);
	CHECK(wc.wc_flags & IBV_WC_WITH_IMM);
	CHECK_INT(wc.imm_data, 4711);
	CHECK(ends_is_filled(b.buffer, 300, 1));
	CHECK(memcmp(b.buffer + 300, a.buffer + 1000, 200) == 0);
	CHECK(memcmp(b.buffer + 2000, a.buffer + 1200, 500) == 0);
	ends_close(&a, &b);
}

TEST(what_is_not_signaled_has_no_completion)
{
	struct end a = { 0 }, b = { 0 };

	ends_open(&a, &b);
	for (unsigned i = 0; i < 4; i++)
		CHECK_INT(end_recv(&b, i, 0, 64), 0);
	for (unsigned i = 0; i < 4; i++)
		CHECK_INT(end_send(&a, i, 0, 8, i == 3 ? IBV_SEND_SIGNALED : 0),
			  0);
	for (unsigned i = 0; i < 4; i++)
		ends_expect(b.rcq, i, IBV_WC_SUCCESS);
	ends_expect(a.scq, 3, IBV_WC_SUCCESS);
	CHECK(ends_empty(a.scq));
	ends_close(&a, &b);
}

TEST(inline_data_are_the_senders_again_at_once)
{
	struct end a = { 0 }, b = { 0 };

	ends_open(&a, &b);
	/* It waits for a receive meanwhile. */
	ends_fill(a.buffer, 60, 1);
	CHECK_INT(end_send(&a, 1, 0, 60, IBV_SEND_INLINE | IBV_SEND_SIGNALED),
		  0);
	ends_fill(a.buffer, 60, 2);
	CHECK_INT(end_recv(&b, 2, 0, 64), 0);
	ends_expect(b.rcq, 2, IBV_WC_SUCCESS);
	ends_expect(a.scq, 1, IBV_WC_SUCCESS);
	CHECK(ends_is_filled(b.buffer, 60, 1));
	CHECK(end_send(&a, 1, 0, 4096, IBV_SEND_INLINE) != 0);
	ends_close(&a, &b);
}

TEST(who_is_not_ready_is_waited_for)
{
	struct end a = { 0 }, b = { 0 };

	ends_open(&a, &b);
	ends_fill(a.buffer, 3000, 1);
	CHECK_INT(end_send(&a, 1, 0, 1000, IBV_SEND_SIGNALED), 0);
	CHECK_INT(end_send(&a, 2, 0, 2000, IBV_SEND_SIGNALED), 0);
	CHECK(ends_empty(a.scq));
	CHECK_INT(end_recv(&b, 3, 0, 4000), 0);
	ends_expect(b.rcq, 3, IBV_WC_SUCCESS);
	ends_expect(a.scq, 1, IBV_WC_SUCCESS);
	CHECK(ends_empty(a.scq));
	CHECK_INT(end_recv(&b, 4, 4000, 4000), 0);
	CHECK_INT(ends_expect(b.rcq, 4, IBV_WC_SUCCESS).byte_len, 2000);
	ends_expect(a.scq, 2, IBV_WC_SUCCESS);
	CHECK(ends_is_filled(b.buffer + 4000, 2000, 1));
	ends_close(&a, &b);
}

/* --- remote memory --- */

TEST(memory_is_written_and_read_without_the_peer)
{
	struct end a = { 0 }, b = { 0 };
	struct ibv_wc wc;
	uint64_t there;
	uint32_t key;

	ends_open(&a, &b);
	there = (uintptr_t)b.buffer;
	key = b.mr->rkey;
	ends_fill(a.buffer, 100000, 1);
	CHECK_INT(end_rdma(&a, 1, IBV_WR_RDMA_WRITE, 0, 100000, there + 5, key),
		  0);
	wc = ends_expect(a.scq, 1, IBV_WC_SUCCESS);
	CHECK_INT(wc.opcode, IBV_WC_RDMA_WRITE);
	CHECK(ends_is_filled(b.buffer + 5, 100000, 1));
	CHECK(ends_empty(b.rcq));
	CHECK_INT(end_rdma(&a, 2, IBV_WR_RDMA_READ, 130000, 90000, there + 5,
			   key),
		  0);
	wc = ends_expect(a.scq, 2, IBV_WC_SUCCESS);
	CHECK_INT(wc.opcode, IBV_WC_RDMA_READ);
	CHECK(ends_is_filled(a.buffer + 130000, 90000, 1));
	/* Nothing, wherever to. */
	CHECK_INT(end_rdma(&a, 3, IBV_WR_RDMA_WRITE, 0, 0, 0, 0), 0);
	ends_expect(a.scq, 3, IBV_WC_SUCCESS);
	ends_close(&a, &b);
}

TEST(a_write_with_immediate_data_takes_a_receive)
{
	struct end a = { 0 }, b = { 0 };
	struct ibv_wc wc;

	ends_open(&a, &b);
	ends_fill(a.buffer, 5000, 1);
	CHECK_INT(end_recv(&b, 1, 0, 0), 0);
	CHECK_INT(end_rdma(&a, 2, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 5000,
			   (uintptr_t)b.buffer, b.mr->rkey),
		  0);
	wc = ends_expect(b.rcq, 1, IBV_WC_SUCCESS);
	CHECK_INT(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	CHECK_INT(wc.byte_len, 5000);
	CHECK(wc.wc_flags & IBV_WC_WITH_IMM);
	CHECK_INT(wc.imm_data, 79);
	CHECK(ends_is_filled(b.buffer, 5000, 1));
	ends_expect(a.scq, 2, IBV_WC_SUCCESS);
	/* So does one of nothing; and who is behind waits. */
	CHECK_INT(end_rdma(&a, 3, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 0, 0), 0);
	CHECK(ends_empty(a.scq));
	CHECK_INT(end_recv(&b, 4, 0, 0), 0);
	CHECK_INT(ends_expect(b.rcq, 4, IBV_WC_SUCCESS).byte_len, 0);
	ends_expect(a.scq, 3, IBV_WC_SUCCESS);
	ends_close(&a, &b);
}

/* --- errors --- */

/* An access that must fail; both ends are in error then. */
static void refused(struct end *a, struct end *b, enum ibv_wr_opcode opcode,
		    uint64_t there, uint32_t key, enum ibv_wc_status status)
{
	CHECK_INT(end_recv(b, 7, 0, 64), 0);
	CHECK_INT(end_rdma(a, 1, opcode, 0, 64, there, key), 0);
	CHECK_INT(end_rdma(a, 2, opcode, 0, 64, there, key), 0);
	ends_expect(a->scq, 1, status);
	ends_expect(a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	ends_expect(b->rcq, 7, IBV_WC_WR_FLUSH_ERR);
	CHECK_INT(end_send(a, 3, 0, 8, 0), 0);
	ends_expect(a->scq, 3, IBV_WC_WR_FLUSH_ERR);
}

TEST(a_key_that_does_not_exist_is_refused)
{
	struct end a = { 0 }, b = { 0 };

	ends_open(&a, &b);
	refused(&a, &b, IBV_WR_RDMA_WRITE, (uintptr_t)b.buffer,
		b.mr->rkey ^ 0x5500, IBV_WC_REM_ACCESS_ERR);
	ends_close(&a, &b);
}

TEST(an_access_past_the_end_is_refused)
{
	struct end a = { 0 }, b = { 0 };

	ends_open(&a, &b);
	refused(&a, &b, IBV_WR_RDMA_WRITE,
		(uintptr_t)b.buffer + ENDS_BYTES - 63, b.mr->rkey,
		IBV_WC_REM_ACCESS_ERR);
	ends_close(&a, &b);
}

TEST(an_access_without_the_right_is_refused)
{
	struct end a = { 0 }, b = { 0 };
	struct ibv_mr *mr;

	ends_open(&a, &b);
	mr = V.reg_mr(b.pd, b.buffer, 4096,
		      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(mr != NULL);
	refused(&a, &b, IBV_WR_RDMA_READ, (uintptr_t)b.buffer, mr->rkey,
		IBV_WC_REM_ACCESS_ERR);
	CHECK_INT(V.dereg_mr(mr), 0);
	ends_close(&a, &b);
}

TEST(a_key_that_has_been_taken_back_is_refused)
{
	struct end a = { 0 }, b = { 0 };
	struct ibv_mr *mr;
	uint32_t key;

	ends_open(&a, &b);
	mr = V.reg_mr(b.pd, b.buffer, 4096,
		      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(mr != NULL);
	key = mr->rkey;
	CHECK_INT(V.dereg_mr(mr), 0);
	refused(&a, &b, IBV_WR_RDMA_WRITE, (uintptr_t)b.buffer, key,
		IBV_WC_REM_ACCESS_ERR);
	ends_close(&a, &b);
}

TEST(memory_that_is_not_registered_cannot_be_sent)
{
	struct end a = { 0 }, b = { 0 };
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND },
			   *bad;
	struct ibv_wc wc;

	ends_open(&a, &b);
	sge = (struct ibv_sge){ (uintptr_t)a.buffer, 64, a.mr->lkey ^ 0x5500 };
	CHECK_INT(end_recv(&b, 2, 0, 64), 0);
	CHECK_INT(ibv_post_send(a.qp, &wr, &bad), 0);
	/* Of rxe, a local QP operation error. */
	wc = ends_wait(a.scq);
	CHECK(wc.status == IBV_WC_LOC_PROT_ERR ||
	      (!fake_verbs() && wc.status == IBV_WC_LOC_QP_OP_ERR));
	CHECK_INT(end_send(&a, 2, 0, 8, 0), 0);
	ends_expect(a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	ends_close(&a, &b);
}

TEST(a_message_that_is_too_long_fails_on_both_sides)
{
	struct end a = { 0 }, b = { 0 };
	struct ibv_wc wc;

	ends_open(&a, &b);
	CHECK_INT(end_recv(&b, 1, 0, 64), 0);
	CHECK_INT(end_send(&a, 2, 0, 65, IBV_SEND_SIGNALED), 0);
	/* Of rxe, a local QP operation error and ... */
	wc = ends_wait(b.rcq);
	CHECK(wc.status == IBV_WC_LOC_LEN_ERR ||
	      (!fake_verbs() && wc.status == IBV_WC_LOC_QP_OP_ERR));
	/* ... a remote operation error. */
	wc = ends_wait(a.scq);
	CHECK(wc.status == IBV_WC_REM_INV_REQ_ERR ||
	      (!fake_verbs() && wc.status == IBV_WC_REM_OP_ERR));
	ends_close(&a, &b);
}

TEST(without_retries_nobody_is_waited_for)
{
	struct end a = { 0 }, b = { 0 };
	struct ends_address at_a, at_b;

	end_open(&a, 0);
	end_open(&b, 1);
	end_make(&a, IBV_QPT_RC);
	end_make(&b, IBV_QPT_RC);
	at_a = end_address(&a);
	at_b = end_address(&b);
	a.rnr_retry = 0;
	CHECK_INT(end_connect(&a, &at_b), 0);
	CHECK_INT(end_connect(&b, &at_a), 0);
	CHECK_INT(end_send(&a, 1, 0, 64, IBV_SEND_SIGNALED), 0);
	ends_expect(a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	ends_close(&a, &b);
}

static void to_state(struct end *e, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = { .qp_state = state };

	CHECK_INT(V.modify_qp(e->qp, &a, IBV_QP_STATE), 0);
}

TEST(receives_come_back_from_a_queue_pair_in_error)
{
	struct end a = { 0 }, b = { 0 };

	ends_open(&a, &b);
	for (unsigned i = 0; i < 3; i++)
		CHECK_INT(end_recv(&a, 10 + i, 0, 64), 0);
	to_state(&a, IBV_QPS_ERR);
	for (unsigned i = 0; i < 3; i++)
		ends_expect(a.rcq, 10 + i, IBV_WC_WR_FLUSH_ERR);
	ends_close(&a, &b);
}

TEST(sends_come_back_from_a_queue_pair_in_error)
{
	struct end a = { 0 }, b = { 0 };

	ends_open(&a, &b);
	/* Two wait for a receive, neither is signaled. */
	CHECK_INT(end_send(&a, 1, 0, 64, 0), 0);
	CHECK_INT(end_send(&a, 2, 0, 64, 0), 0);
	to_state(&a, IBV_QPS_ERR);
	ends_expect(a.scq, 1, IBV_WC_WR_FLUSH_ERR);
	ends_expect(a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	ends_close(&a, &b);
}

TEST(a_send_to_a_queue_pair_in_error_comes_back)
{
	struct end a = { 0 }, b = { 0 };

	ends_open(&a, &b);
	to_state(&a, IBV_QPS_ERR);
	CHECK_INT(end_send(&a, 1, 0, 64, 0), 0);
	ends_expect(a.scq, 1, IBV_WC_WR_FLUSH_ERR);
	ends_close(&a, &b);
}

TEST(a_receive_of_a_queue_pair_in_error_comes_back)
{
	struct end a = { 0 }, b = { 0 };

	if (fake_verbs() == NULL)
		check_skip("rxe keeps it");
	ends_open(&a, &b);
	to_state(&a, IBV_QPS_ERR);
	CHECK_INT(end_recv(&a, 20, 0, 64), 0);
	ends_expect(a.rcq, 20, IBV_WC_WR_FLUSH_ERR);
	ends_close(&a, &b);
}

TEST(a_queue_pair_that_was_reset_is_as_new)
{
	struct end a = { 0 }, b = { 0 };
	struct ends_address at_a, at_b;

	if (fake_verbs() == NULL)
		check_skip("rxe never sends then");
	ends_open(&a, &b);
	CHECK_INT(end_recv(&a, 1, 0, 64), 0);
	CHECK_INT(end_recv(&b, 1, 0, 64), 0);
	to_state(&a, IBV_QPS_RESET);
	to_state(&b, IBV_QPS_RESET);
	CHECK(end_send(&a, 3, 0, 64, 0) != 0);
	CHECK(ends_empty(a.scq) && ends_empty(a.rcq));
	at_a = end_address(&a);
	at_b = end_address(&b);
	CHECK_INT(end_connect(&a, &at_b), 0);
	CHECK_INT(end_connect(&b, &at_a), 0);
	CHECK_INT(end_recv(&b, 2, 0, 64), 0);
	CHECK_INT(end_send(&a, 3, 0, 64, IBV_SEND_SIGNALED), 0);
	ends_expect(a.scq, 3, IBV_WC_SUCCESS);
	ends_expect(b.rcq, 2, IBV_WC_SUCCESS);
	ends_close(&a, &b);
}

/* --- what is refused at once --- */

TEST(states_come_in_order_with_what_each_needs)
{
	struct end a = { 0 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .port_num = 1 };
	int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		   IBV_QP_ACCESS_FLAGS;

	end_open(&a, 0);
	end_make(&a, IBV_QPT_RC);
	CHECK_INT(V.modify_qp(a.qp, &attr, init), EINVAL);
	attr.qp_state = IBV_QPS_INIT;
	CHECK_INT(V.modify_qp(a.qp, &attr, init & ~IBV_QP_PORT), EINVAL);
	CHECK_INT(V.modify_qp(a.qp, &attr, init & ~IBV_QP_ACCESS_FLAGS),
		  EINVAL);
	CHECK_INT(V.modify_qp(a.qp, &attr, init | IBV_QP_QKEY), EINVAL);
	attr.port_num = 99;
	CHECK_INT(V.modify_qp(a.qp, &attr, init), EINVAL);
	attr.port_num = 1;
	CHECK_INT(V.modify_qp(a.qp, &attr, init), 0);
	CHECK_INT(V.modify_qp(a.qp, &attr, init & ~IBV_QP_STATE), 0);
	/* Nobody is connected: neither RTS, nor RTR with half of it. */
	attr.qp_state = IBV_QPS_RTS;
	CHECK_INT(V.modify_qp(a.qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC),
		  EINVAL);
	attr.qp_state = IBV_QPS_RTR;
	CHECK_INT(V.modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_DEST_QPN),
		  EINVAL);
	CHECK(end_send(&a, 1, 0, 8, 0) != 0);
	end_close(&a);
}

TEST(a_full_queue_takes_no_more)
{
	struct end a = { 0 }, b = { 0 };
	unsigned n = 0;

	ends_open(&a, &b);
	while (end_recv(&b, n, 0, 64) == 0)
		n++;
	CHECK(n >= ENDS_WR && n <= 4 * ENDS_WR);
	for (unsigned i = 0; i < 3 * ENDS_WR; i++) {
		CHECK_INT(end_send(&a, i, 0, 8, IBV_SEND_SIGNALED), 0);
		ends_expect(a.scq, i, IBV_WC_SUCCESS);
		ends_wait(b.rcq);
		CHECK_INT(end_recv(&b, i, 0, 64), 0);
		CHECK(end_recv(&b, i, 0, 64) != 0);
	}
	ends_close(&a, &b);
}

TEST(what_is_in_use_is_not_destroyed)
{
	struct end a = { 0 };

	end_open(&a, 0);
	end_make(&a, IBV_QPT_RC);
	CHECK_INT(V.destroy_cq(a.scq), EBUSY);
	CHECK_INT(V.dealloc_pd(a.pd), EBUSY);
	CHECK_INT(V.destroy_comp_channel(a.channel), EBUSY);
	end_close(&a);
}

TEST(nothing_that_is_not_mapped_is_registered)
{
	struct end a = { 0 };

	end_open(&a, 0);
	errno = 0;
	CHECK(V.reg_mr(a.pd, (void *)4096, 4096, IBV_ACCESS_LOCAL_WRITE) ==
	      NULL);
	CHECK(errno != 0);
	CHECK(V.reg_mr(a.pd, a.buffer, 4096, IBV_ACCESS_REMOTE_WRITE) == NULL);
	CHECK_INT(errno, EINVAL);
	end_close(&a);
}

/* --- shared receives --- */

TEST(queue_pairs_share_receives_and_their_limit_is_told)
{
	struct end a = { 0 }, b = { 0 }, c = { .srq = (void *)1 };
	struct ibv_srq_attr limit = { .srq_limit = 3 };
	struct ends_address at;
	struct ibv_async_event event;
	struct ibv_qp *first;
	struct ibv_wc wc;

	ends_load();
	end_open(&a, 0);
	end_open(&b, 0);
	end_open(&c, 1);
	end_make(&a, IBV_QPT_RC);
	end_make(&b, IBV_QPT_RC);
	end_make(&c, IBV_QPT_RC);
	at = end_address(&c);
	CHECK_INT(end_connect(&a, &at), 0);
	at = end_address(&a);
	CHECK_INT(end_connect(&c, &at), 0);
	first = c.qp;
	end_make(&c, IBV_QPT_RC);
	at = end_address(&c);
	CHECK_INT(end_connect(&b, &at), 0);
	at = end_address(&b);
	CHECK_INT(end_connect(&c, &at), 0);
	for (unsigned i = 0; i < 4; i++)
		CHECK_INT(end_recv(&c, i, i * 100, 100), 0);
	CHECK_INT(V.modify_srq(c.srq, &limit, IBV_SRQ_LIMIT), 0);
	CHECK_INT(end_send(&a, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	wc = ends_expect(c.rcq, 0, IBV_WC_SUCCESS);
	CHECK_INT(wc.qp_num, first->qp_num);
	CHECK_INT(end_send(&b, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	wc = ends_expect(c.rcq, 1, IBV_WC_SUCCESS);
	CHECK_INT(wc.qp_num, c.qp->qp_num);
	CHECK_INT(V.get_async_event(c.context, &event), 0);
	CHECK_STR(V.event_type_str(event.event_type),
		  V.event_type_str(IBV_EVENT_SRQ_LIMIT_REACHED));
	CHECK_PTR(event.element.srq, c.srq);
	V.ack_async_event(&event);
	CHECK_INT(V.destroy_srq(c.srq), EBUSY);
	CHECK_INT(V.destroy_qp(first), 0);
	end_close(&a);
	end_close(&b);
	end_close(&c);
}

/* --- datagrams --- */

static int datagram(struct end *a, struct ibv_ah *ah, uint32_t qpn,
		    uint32_t qkey, uint64_t id, uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)a->buffer, bytes, a->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	return ibv_post_send(a->qp, &wr, &bad);
}

TEST(datagrams_arrive_behind_a_header_or_not_at_all)
{
	struct end a = { 0 }, b = { 0 };
	struct ends_address at;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	end_open(&a, 0);
	end_open(&b, 1);
	end_make(&a, IBV_QPT_UD);
	end_make(&b, IBV_QPT_UD);
	end_datagrams(&a, 42);
	end_datagrams(&b, 42);
	at = end_address(&b);
	ah = end_ah(&a, &at);
	/* Neither into a queue without receives, nor with another key. */
	CHECK_INT(datagram(&a, ah, at.qpn, 42, 1, 100), 0);
	ends_expect(a.scq, 1, IBV_WC_SUCCESS);
	CHECK_INT(end_recv(&b, 9, 0, 1200), 0);
	CHECK_INT(datagram(&a, ah, at.qpn, 43, 2, 100), 0);
	ends_expect(a.scq, 2, IBV_WC_SUCCESS);
	ends_fill(a.buffer, 1000, 3);
	CHECK_INT(datagram(&a, ah, at.qpn, 42, 3, 1000), 0);
	ends_expect(a.scq, 3, IBV_WC_SUCCESS);
	wc = ends_expect(b.rcq, 9, IBV_WC_SUCCESS);
	CHECK_INT(wc.byte_len, 1040);
	CHECK_INT(wc.src_qp, a.qp->qp_num);
	CHECK(ends_is_filled(b.buffer + 40, 1000, 3));
	if (a.port.link_layer == IBV_LINK_LAYER_ETHERNET)
		CHECK(wc.wc_flags & IBV_WC_GRH);
	CHECK(ends_empty(b.rcq));
	CHECK_INT(V.destroy_ah(ah), 0);
	ends_close(&a, &b);
}

/* --- events --- */

static bool is_readable(int fd, int ms)
{
	struct pollfd p = { fd, POLLIN, 0 };

	return poll(&p, 1, ms) == 1;
}

static void expect_event(struct end *e, struct ibv_cq *want)
{
	struct ibv_cq *cq;
	void *context;

	CHECK(is_readable(e->channel->fd, -1));
	CHECK_INT(V.get_cq_event(e->channel, &cq, &context), 0);
	CHECK_PTR(cq, want);
	CHECK_PTR(context, e);
	V.ack_cq_events(cq, 1);
	CHECK(!is_readable(e->channel->fd, 0));
}

TEST(an_armed_queue_tells_once)
{
	struct end a = { 0 }, b = { 0 };
	struct ibv_cq *cq;
	void *context;

	ends_open(&a, &b);
	CHECK_INT(fcntl(b.channel->fd, F_SETFL, O_NONBLOCK), 0);
	CHECK_INT(V.get_cq_event(b.channel, &cq, &context), -1);
	CHECK_INT(errno, EAGAIN);
	for (unsigned i = 0; i < 6; i++)
		CHECK_INT(end_recv(&b, i, 0, 64), 0);
	/* Not armed: nothing. */
	CHECK_INT(end_send(&a, 0, 0, 8, IBV_SEND_SIGNALED), 0);
	ends_expect(b.rcq, 0, IBV_WC_SUCCESS);
	CHECK(!is_readable(b.channel->fd, 0));
	CHECK_INT(ibv_req_notify_cq(b.rcq, 0), 0);
	CHECK(!is_readable(b.channel->fd, 0));
	CHECK_INT(end_send(&a, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	expect_event(&b, b.rcq);
	CHECK_INT(end_send(&a, 2, 0, 8, IBV_SEND_SIGNALED), 0);
	ends_expect(b.rcq, 1, IBV_WC_SUCCESS);
	ends_expect(b.rcq, 2, IBV_WC_SUCCESS);
	CHECK(!is_readable(b.channel->fd, 0));
	/* Only of what the sender wants to be noticed. */
	CHECK_INT(ibv_req_notify_cq(b.rcq, 1), 0);
	CHECK_INT(end_send(&a, 3, 0, 8, IBV_SEND_SIGNALED), 0);
	ends_expect(b.rcq, 3, IBV_WC_SUCCESS);
	CHECK(!is_readable(b.channel->fd, 0));
	CHECK_INT(end_send(&a, 4, 0, 8, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED),
		  0);
	expect_event(&b, b.rcq);
	ends_expect(b.rcq, 4, IBV_WC_SUCCESS);
	ends_close(&a, &b);
}

TEST(who_sleeps_is_woken_by_what_had_to_wait)
{
	struct end a = { 0 }, b = { 0 };

	ends_open(&a, &b);
	CHECK_INT(ibv_req_notify_cq(a.scq, 0), 0);
	CHECK_INT(end_send(&a, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	CHECK(!is_readable(a.channel->fd, 0));
	/* Nobody polls from here on. */
	CHECK_INT(end_recv(&b, 2, 0, 64), 0);
	expect_event(&a, a.scq);
	ends_expect(a.scq, 1, IBV_WC_SUCCESS);
	ends_expect(b.rcq, 2, IBV_WC_SUCCESS);
	ends_close(&a, &b);
}

TEST(an_event_that_nobody_got_goes_with_its_queue)
{
	struct end a = { 0 }, b = { 0 };

	ends_open(&a, &b);
	CHECK_INT(ibv_req_notify_cq(b.rcq, 0), 0);
	CHECK_INT(end_recv(&b, 2, 0, 64), 0);
	CHECK_INT(end_send(&a, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	CHECK(is_readable(b.channel->fd, -1));
	CHECK_INT(V.destroy_qp(b.qp), 0);
	b.qp = NULL;
	CHECK_INT(V.destroy_cq(b.rcq), 0);
	CHECK(!is_readable(b.channel->fd, 0));
	b.rcq = V.create_cq(b.context, ENDS_CQE, &b, b.channel, 0);
	ends_close(&a, &b);
}

/* --- threads --- */

/* Two queue pairs to one, who post to both, who poll: all at once. */
struct crowd {
	struct end a[2], b[2];
	ATOMIC(uint32_t) acked, got;
};

enum { POSTERS = 2, EACH = 300, CROWD = POSTERS * EACH };

static void *posts(void *arg)
{
	struct crowd *c = arg;

	for (unsigned i = 0; i < EACH; i++)
		while (end_send(&c->a[i % 2], i, 0, 8, IBV_SEND_SIGNALED) != 0)
			poll(NULL, 0, 0);
	return NULL;
}

static void *polls_sends(void *arg)
{
	struct crowd *c = arg;
	struct ibv_wc wc;

	while (load_relaxed(&c->acked) < CROWD) {
		for (int i = 0; i < 2; i++) {
			if (ibv_poll_cq(c->a[i].scq, 1, &wc) == 0)
				continue;
			CHECK_INT(wc.status, IBV_WC_SUCCESS);
			fetch_add_relaxed(&c->acked, 1);
		}
		poll(NULL, 0, 0);
	}
	return NULL;
}

static void *polls_receives(void *arg)
{
	struct crowd *c = arg;
	struct ibv_wc wc;

	while (load_relaxed(&c->got) < CROWD) {
		for (int i = 0; i < 2; i++) {
			if (ibv_poll_cq(c->b[i].rcq, 1, &wc) == 0)
				continue;
			CHECK_INT(wc.status, IBV_WC_SUCCESS);
			CHECK_INT(end_recv(&c->b[i], 0, 64, 64), 0);
			fetch_add_relaxed(&c->got, 1);
		}
		poll(NULL, 0, 0);
	}
	return NULL;
}

TEST(threads_may_post_and_poll_at_once)
{
	struct crowd c = { 0 };
	pthread_t t[POSTERS + 3];
	int n = 0;

	for (int i = 0; i < 2; i++) {
		ends_open(&c.a[i], &c.b[i]);
		for (int r = 0; r < ENDS_WR; r++)
			CHECK_INT(end_recv(&c.b[i], 0, 64, 64), 0);
	}
	for (int i = 0; i < POSTERS; i++)
		pthread_create(&t[n++], NULL, posts, &c);
	pthread_create(&t[n++], NULL, polls_sends, &c);
	pthread_create(&t[n++], NULL, polls_receives, &c);
	pthread_create(&t[n++], NULL, polls_receives, &c);
	while (n > 0)
		pthread_join(t[--n], NULL);
	CHECK_INT(load_relaxed(&c.got), CROWD);
	for (int i = 0; i < 2; i++)
		ends_close(&c.a[i], &c.b[i]);
}
