/*
 * What tests can ask of the fake library: faults, limits and counts, and that
 * processes reach each other and die.
 */
#include "ends.h"

#include <errno.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct fake_verbs *fake;

static void setup(void)
{
	if (nm_verbs_lib_load(true) != 0)
		check_skip("no libibverbs");
	fake = fake_verbs();
	if (fake == NULL)
		check_skip("this is a real libibverbs");
	fake->set("TIMEOUT_MS", "20");
}

/* Nothing of it may be left, whatever a test does. */
static void teardown(void)
{
	static const char *const names[] = {
		"DEVICES",    "PORTS",    "LINK", "EACCES",     "MAX_MSG",
		"MAX_INLINE", "MAX_QP",   "SRQ",  "MEMLOCK",    "TIMEOUT_MS",
		"RNR_US",     "DELAY_US", "LOSS", "DUPLICATES",
	};
	struct fake_verbs_counts n;

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		fake->set(names[i], NULL);
	fake->fail(NULL);
	fake->counts(&n);
	CHECK_INT(n.contexts + n.pds + n.mrs + n.cqs + n.channels + n.srqs +
			  n.qps + n.ahs + n.pinned,
		  0);
}

__attribute__((constructor)) static void register_fixture(void)
{
	check_fixture(setup, teardown);
}

/* --- single completions --- */

TEST(a_completion_fails_as_it_was_told)
{
	struct end a = { 0 }, b = { 0 };
	struct fake_verbs_fault fault = { .device = 0,
					  .after = 2,
					  .count = 1,
					  .status = IBV_WC_REM_OP_ERR,
					  .vendor_err = 129 };
	struct ibv_wc wc;

	ends_open(&a, &b);
	fake->fail(&fault);
	for (unsigned i = 0; i < 4; i++)
		CHECK_INT(end_recv(&b, i, 0, 64), 0);
	for (unsigned i = 0; i < 4; i++)
		CHECK_INT(end_send(&a, i, 0, 8, IBV_SEND_SIGNALED), 0);
	ends_expect(a.scq, 0, IBV_WC_SUCCESS);
	ends_expect(a.scq, 1, IBV_WC_SUCCESS);
	wc = ends_expect(a.scq, 2, IBV_WC_REM_OP_ERR);
	CHECK_INT(wc.vendor_err, 129);
	ends_expect(a.scq, 3, IBV_WC_WR_FLUSH_ERR);
	ends_expect(b.rcq, 0, IBV_WC_SUCCESS);
	ends_expect(b.rcq, 1, IBV_WC_SUCCESS);
	CHECK(ends_empty(b.rcq));
	ends_close(&a, &b);
}

TEST(a_message_arrives_though_its_sender_hears_nothing)
{
	struct end a = { 0 }, b = { 0 };
	struct fake_verbs_fault fault = { .pid = getpid(),
					  .device = -1,
					  .count = 1,
					  .status = IBV_WC_RETRY_EXC_ERR,
					  .delivered = true };

	ends_open(&a, &b);
	fake->fail(&fault);
	CHECK_INT(end_recv(&b, 1, 0, 64), 0);
	CHECK_INT(end_recv(&b, 2, 0, 64), 0);
	CHECK_INT(end_send(&a, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	CHECK_INT(end_send(&a, 2, 0, 8, IBV_SEND_SIGNALED), 0);
	ends_expect(b.rcq, 1, IBV_WC_SUCCESS);
	ends_expect(a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	ends_expect(a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	CHECK(ends_empty(b.rcq));
	ends_close(&a, &b);
}

TEST(who_has_gone_does_not_answer)
{
	struct end a = { 0 }, b = { 0 };

	ends_open(&a, &b);
	CHECK_INT(end_recv(&b, 1, 0, 64), 0);
	CHECK_INT(V.destroy_qp(b.qp), 0);
	b.qp = NULL;
	CHECK_INT(ibv_req_notify_cq(a.scq, 0), 0);
	CHECK_INT(end_send(&a, 1, 0, 0, IBV_SEND_SIGNALED), 0);
	/* Nobody polls meanwhile. */
	CHECK_INT(poll(&(struct pollfd){ a.channel->fd, POLLIN, 0 }, 1, -1), 1);
	ends_expect(a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	ends_close(&a, &b);
}

TEST(who_expects_another_does_not_answer)
{
	struct end a = { 0 }, b = { 0 }, c = { 0 };
	struct ends_address at;

	ends_open(&a, &b);
	end_open(&c, 0);
	end_make(&c, IBV_QPT_RC);
	at = end_address(&b);
	CHECK_INT(end_connect(&c, &at), 0);
	CHECK_INT(end_recv(&b, 1, 0, 64), 0);
	CHECK_INT(end_send(&c, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	ends_expect(c.scq, 1, IBV_WC_RETRY_EXC_ERR);
	CHECK(ends_empty(b.rcq));
	end_close(&c);
	ends_close(&a, &b);
}

/* --- queue pairs, ports, devices --- */

static void expect_async(struct end *e, enum ibv_event_type type)
{
	struct ibv_async_event event;

	CHECK_INT(V.get_async_event(e->context, &event), 0);
	CHECK_STR(V.event_type_str(event.event_type), V.event_type_str(type));
	if (type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_PORT_ACTIVE)
		CHECK_INT(event.element.port_num, 1);
	if (type == IBV_EVENT_QP_FATAL)
		CHECK_PTR(event.element.qp, e->qp);
	V.ack_async_event(&event);
}

TEST(a_queue_pair_breaks)
{
	struct end a = { 0 }, b = { 0 };

	ends_open(&a, &b);
	CHECK_INT(end_recv(&a, 1, 0, 64), 0);
	CHECK_INT(end_send(&a, 2, 0, 64, 0), 0);
	fake->happen(FAKE_QP_FATAL, 0, a.qp->qp_num, false);
	expect_async(&a, IBV_EVENT_QP_FATAL);
	ends_expect(a.rcq, 1, IBV_WC_WR_FLUSH_ERR);
	ends_expect(a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	/* The peer finds out when it sends. */
	CHECK_INT(end_send(&b, 3, 0, 8, 0), 0);
	ends_expect(b.scq, 3, IBV_WC_RETRY_EXC_ERR);
	ends_close(&a, &b);
}

static enum ibv_port_state port_state(struct end *e)
{
	CHECK_INT(V.query_port(e->context, 1, (void *)&e->port), 0);
	return e->port.state;
}

TEST(a_port_goes_down_and_up)
{
	struct end a = { 0 }, b = { 0 };

	ends_open(&a, &b);
	CHECK_INT(port_state(&b), IBV_PORT_ACTIVE);
	CHECK_INT(end_recv(&b, 1, 0, 64), 0);
	fake->happen(FAKE_PORT_DOWN, 1, 1, false);
	expect_async(&b, IBV_EVENT_PORT_ERR);
	CHECK_INT(port_state(&b), IBV_PORT_DOWN);
	CHECK_INT(port_state(&a), IBV_PORT_ACTIVE);
	CHECK_INT(end_send(&a, 1, 0, 8, 0), 0);
	CHECK_INT(end_send(&b, 2, 0, 8, 0), 0);
	ends_expect(a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	ends_expect(b.scq, 2, IBV_WC_RETRY_EXC_ERR);
	ends_expect(b.rcq, 1, IBV_WC_WR_FLUSH_ERR);
	fake->happen(FAKE_PORT_UP, 1, 1, false);
	expect_async(&b, IBV_EVENT_PORT_ACTIVE);
	CHECK_INT(port_state(&b), IBV_PORT_ACTIVE);
	ends_close(&a, &b);
	ends_open(&a, &b);
	CHECK_INT(end_recv(&b, 1, 0, 64), 0);
	CHECK_INT(end_send(&a, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	ends_expect(a.scq, 1, IBV_WC_SUCCESS);
	ends_close(&a, &b);
}

TEST(a_short_break_of_a_port_is_not_noticed)
{
	struct end a = { 0 }, b = { 0 };

	fake->set("TIMEOUT_MS", "20000");
	ends_open(&a, &b);
	CHECK_INT(end_recv(&b, 1, 0, 64), 0);
	fake->happen(FAKE_PORT_DOWN, 0, 1, true);
	CHECK_INT(end_send(&a, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	CHECK(ends_empty(a.scq) && ends_empty(b.rcq));
	fake->happen(FAKE_PORT_UP, 0, 1, true);
	ends_expect(a.scq, 1, IBV_WC_SUCCESS);
	ends_expect(b.rcq, 1, IBV_WC_SUCCESS);
	ends_close(&a, &b);
}

TEST(a_device_breaks)
{
	struct end a = { 0 }, b = { 0 };

	ends_open(&a, &b);
	CHECK_INT(end_recv(&b, 1, 0, 64), 0);
	CHECK_INT(end_recv(&a, 1, 0, 64), 0);
	fake->happen(FAKE_DEVICE_FATAL, 1, 0, false);
	expect_async(&b, IBV_EVENT_DEVICE_FATAL);
	ends_expect(b.rcq, 1, IBV_WC_WR_FLUSH_ERR);
	CHECK(V.reg_mr(b.pd, b.buffer, 4096, 0) == NULL);
	CHECK_INT(errno, EIO);
	CHECK_INT(end_send(&a, 2, 0, 8, 0), 0);
	ends_expect(a.scq, 2, IBV_WC_RETRY_EXC_ERR);
	ends_close(&a, &b);
}

TEST(a_completion_queue_overflows)
{
	struct end a = { 0 }, b = { 0 };
	struct ibv_qp_init_attr init = { .cap = { 8, 8, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };
	struct ends_address at_b, at_a;
	struct ibv_cq *small;

	end_open(&a, 0);
	end_open(&b, 1);
	small = V.create_cq(b.context, 2, &b, NULL, 0);
	CHECK(small != NULL);
	init.send_cq = init.recv_cq = small;
	b.qp = V.create_qp(b.pd, &init);
	CHECK(b.qp != NULL);
	end_make(&a, IBV_QPT_RC);
	at_b = end_address(&b);
	at_a = end_address(&a);
	CHECK_INT(end_connect(&a, &at_b), 0);
	CHECK_INT(end_connect(&b, &at_a), 0);
	for (unsigned i = 0; i < 3; i++) {
		CHECK_INT(end_recv(&b, i, 0, 64), 0);
		CHECK_INT(end_send(&a, i, 0, 8, IBV_SEND_SIGNALED), 0);
		ends_expect(a.scq, i, IBV_WC_SUCCESS);
	}
	expect_async(&b, IBV_EVENT_CQ_ERR);
	CHECK_INT(V.destroy_qp(b.qp), 0);
	b.qp = NULL;
	CHECK_INT(V.destroy_cq(small), 0);
	ends_close(&a, &b);
}

/* --- limits --- */

TEST(places_of_sends_are_free_when_a_later_completion_was_polled)
{
	struct end a = { 0 }, b = { 0 };

	ends_open(&a, &b);
	for (unsigned i = 0; i < ENDS_WR; i++)
		CHECK_INT(end_recv(&b, i, 0, 64), 0);
	for (unsigned i = 0; i < ENDS_WR; i++)
		CHECK_INT(end_send(&a, i, 0, 8, i == 9 ? IBV_SEND_SIGNALED : 0),
			  0);
	CHECK_INT(end_send(&a, 99, 0, 8, 0), ENOMEM);
	ends_expect(a.scq, 9, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 10; i++)
		CHECK_INT(end_send(&a, i, 0, 8, 0), 0);
	CHECK_INT(end_send(&a, 99, 0, 8, 0), ENOMEM);
	ends_close(&a, &b);
}

TEST(registered_memory_is_limited)
{
	struct end a = { 0 };
	struct fake_verbs_counts n;
	struct ibv_mr *mr;

	end_open(&a, 0);
	fake->counts(&n);
	CHECK_INT(n.pinned, ENDS_BYTES);
	fake->set("MEMLOCK", "270336"); /* two pages more */
	CHECK(V.reg_mr(a.pd, a.buffer + 4095, 4098, 0) == NULL);
	CHECK_INT(errno, ENOMEM);
	mr = V.reg_mr(a.pd, a.buffer + 4095, 4097, 0);
	CHECK(mr != NULL);
	fake->counts(&n);
	CHECK_INT(n.pinned, ENDS_BYTES + 8192);
	CHECK_INT(n.mrs, 2);
	CHECK_INT(V.dereg_mr(mr), 0);
	end_close(&a);
}

TEST(devices_lack_what_they_are_told_to)
{
	struct ibv_qp_init_attr init = { .cap = { 1, 1, 1, 1, 1 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_srq_init_attr srq = { .attr = { 1, 1, 0 } };
	struct ibv_device_attr attr;
	struct end a = { 0 };

	fake->set("SRQ", "0");
	fake->set("MAX_INLINE", "0");
	fake->set("MAX_MSG", "1000");
	fake->set("MAX_QP", "1");
	end_open(&a, 0);
	CHECK_INT(V.query_device(a.context, &attr), 0);
	CHECK_INT(attr.max_srq, 0);
	CHECK_INT(attr.max_qp, 1);
	CHECK_INT(a.port.max_msg_sz, 1000);
	CHECK(V.create_srq(a.pd, &srq) == NULL);
	CHECK_INT(errno, EOPNOTSUPP);
	init.send_cq = a.scq;
	init.recv_cq = a.rcq;
	CHECK(V.create_qp(a.pd, &init) == NULL);
	CHECK_INT(errno, EINVAL);
	init.cap.max_inline_data = 0;
	a.qp = V.create_qp(a.pd, &init);
	CHECK(a.qp != NULL);
	CHECK(V.create_qp(a.pd, &init) == NULL);
	CHECK_INT(errno, ENOMEM);
	end_close(&a);
}

TEST(devices_are_as_many_as_wanted_and_open_to_whom_they_should)
{
	struct ibv_device **list;
	int n;

	fake->set("DEVICES", "0");
	list = V.get_device_list(&n);
	CHECK(list != NULL && list[0] == NULL);
	CHECK_INT(n, 0);
	V.free_device_list(list);
	fake->set("DEVICES", "3");
	fake->set("EACCES", "2");
	list = V.get_device_list(&n);
	CHECK_INT(n, 3);
	CHECK_STR(V.get_device_name(list[2]), "fake2");
	CHECK(V.open_device(list[1]) == NULL);
	CHECK_INT(errno, EACCES);
	V.free_device_list(list);
}

TEST(addresses_may_be_local_identifiers)
{
	struct end a = { 0 }, b = { 0 };

	fake->set("LINK", "ib");
	fake->set("PORTS", "2");
	ends_open(&a, &b);
	CHECK_INT(a.port.link_layer, IBV_LINK_LAYER_INFINIBAND);
	CHECK(a.port.lid != 0 && a.port.lid != b.port.lid);
	CHECK_INT(end_recv(&b, 1, 0, 64), 0);
	CHECK_INT(end_send(&a, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	ends_expect(a.scq, 1, IBV_WC_SUCCESS);
	CHECK_INT(ends_expect(b.rcq, 1, IBV_WC_SUCCESS).slid, a.port.lid);
	ends_close(&a, &b);
}

/* --- lots --- */

/* How many of n arrive. */
static unsigned datagrams(struct end *a, struct end *b, unsigned n)
{
	struct ends_address at = end_address(b);
	struct ibv_ah *ah = end_ah(a, &at);
	struct ibv_sge sge = { (uintptr_t)a->buffer, 8, a->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;
	unsigned got = 0;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = at.qpn;
	wr.wr.ud.remote_qkey = 5;
	for (unsigned i = 0; i < n; i++) {
		while (end_recv(b, i, 0, 64) == 0)
			;
		CHECK_INT(ibv_post_send(a->qp, &wr, &bad), 0);
		CHECK_INT(ends_wait(a->scq).status, IBV_WC_SUCCESS);
		while (ibv_poll_cq(b->rcq, 1, &wc) == 1)
			got++;
	}
	CHECK_INT(V.destroy_ah(ah), 0);
	return got;
}

TEST(datagrams_are_lost_and_doubled_by_lot)
{
	struct end a = { 0 }, b = { 0 };
	unsigned n;

	end_open(&a, 0);
	end_open(&b, 1);
	end_make(&a, IBV_QPT_UD);
	end_make(&b, IBV_QPT_UD);
	end_datagrams(&a, 5);
	end_datagrams(&b, 5);
	CHECK_INT(datagrams(&a, &b, 50), 50);
	fake->set("LOSS", "300");
	n = datagrams(&a, &b, 200);
	CHECK(n > 100 && n < 180);
	fake->set("LOSS", "0");
	fake->set("DUPLICATES", "1000");
	CHECK_INT(datagrams(&a, &b, 50), 100);
	ends_close(&a, &b);
}

TEST(delayed_sends_stay_in_order)
{
	struct end a = { 0 }, b = { 0 };
	struct fake_verbs_counts n;
	bool have_waited = false;

	fake->set("DELAY_US", "3000");
	ends_open(&a, &b);
	for (unsigned i = 0; i < ENDS_WR; i++) {
		CHECK_INT(end_recv(&b, i, 0, 64), 0);
		CHECK_INT(end_send(&a, i, 0, 8, IBV_SEND_SIGNALED), 0);
		fake->counts(&n);
		have_waited |= n.waiting > 0;
	}
	CHECK(have_waited);
	for (unsigned i = 0; i < ENDS_WR; i++)
		ends_expect(b.rcq, i, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < ENDS_WR; i++)
		ends_expect(a.scq, i, IBV_WC_SUCCESS);
	ends_close(&a, &b);
}

TEST(ten_thousand_connections_leave_nothing)
{
	struct end a = { 0 }, b = { 0 };
	struct fake_verbs_counts before, after;
	struct ends_address at_a, at_b;

	end_open(&a, 0);
	end_open(&b, 1);
	fake->counts(&before);
	for (int i = 0; i < 10000; i++) {
		end_make(&a, IBV_QPT_RC);
		end_make(&b, IBV_QPT_RC);
		at_a = end_address(&a);
		at_b = end_address(&b);
		CHECK_INT(end_connect(&a, &at_b), 0);
		CHECK_INT(end_connect(&b, &at_a), 0);
		CHECK_INT(end_recv(&b, 1, 0, 64), 0);
		CHECK_INT(end_send(&a, 1, 0, 8, IBV_SEND_SIGNALED), 0);
		ends_expect(b.rcq, 1, IBV_WC_SUCCESS);
		CHECK_INT(V.destroy_qp(a.qp), 0);
		CHECK_INT(V.destroy_qp(b.qp), 0);
	}
	a.qp = b.qp = NULL;
	fake->counts(&after);
	CHECK_INT(after.qps, before.qps);
	CHECK_INT(after.pinned, before.pinned);
	CHECK_INT(after.unread, 0);
	CHECK_INT(after.calls.create_qp - before.calls.create_qp, 20000);
	ends_close(&a, &b);
}
