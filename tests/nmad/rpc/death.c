/*
 * Calls and processes that die, or send nonsense, and the end of it all: a core
 * whose peers the test plays itself, and nobody polls but the test.
 */
#include "../../check.h"

#include <errno.h>

#include <marcel/marcel.h>
#include <nmad/nmad.h>
#include <nmad/rpc.h>
#include <pioman/pioman.h>

#include "../../../nmad/rpc/rpc.h"
#include "../core/mock.h"

enum { BYTES = 2048, PACKETS = 8, SESSION = 5, SERVICE = 7 };

struct packet {
	struct nm_pkt_in in;
	unsigned char bytes[BYTES];
	size_t length;
};

static struct nm_core core;
static struct nm_rpc *rpc;
static struct packet given[PACKETS];
static int ngiven, ndelivered, nsent;
static uint32_t seqs[2];
static piom_sem_t entered;

/* --- the network: what is sent to us; what we send is lost --- */

static int lose(struct nm_link *link, struct nm_pkt *pkt)
{
	(void)link;
	(void)pkt;
	nsent++;
	return NM_SENT;
}

static bool bring(struct nm_rail *rail, int budget)
{
	bool moved = ndelivered < ngiven;

	for (; ndelivered < ngiven && budget > 0; ndelivered++, budget--) {
		struct packet *p = &given[ndelivered];

		p->in.data = p->bytes;
		p->in.length = p->length;
		nm_rail_recv(rail, &p->in);
	}
	return moved;
}

static void take_back(struct nm_rail *rail, struct nm_pkt_in *in)
{
	(void)rail;
	(void)in;
}

static const struct nm_driver driver = {
	.name = "mock",
	.max_small = BYTES,
	.rdv_threshold = 500,
	.post_send = lose,
	.poll = bring,
	.release = take_back,
};

static void progress(void)
{
	while (nm_core_progress(&core))
		continue;
}

static void give(int from, nm_tag_t tag, const void *payload, size_t length)
{
	struct nm_wire_head h = { 1, 0 };
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_EAGER,
				   .tag = tag,
				   .seq = seqs[from]++,
				   .session = SESSION,
				   .length = length,
				   .payload = payload };
	struct packet *p = &given[ngiven++];

	p->in.link = &links[0][from];
	nm_wire_put_head(p->bytes, &h);
	nm_wire_put_chunk(p->bytes + NM_WIRE_HEAD, &c);
	p->length = NM_WIRE_HEAD + nm_wire_chunk_size(&c);
	memcpy(p->bytes + p->length, payload, length);
	p->length += length;
}

/* The head of a call, as nmad/rpc/rpc.h has it. */
static void give_call(int from, uint32_t slot, uint64_t body)
{
	struct {
		uint32_t service, slot;
		uint64_t length;
	} head = { SERVICE, slot, body };

	give(from, NM_RPC_HEAD, &head, sizeof(head));
}

/* And the answer, to the call of this slot. */
static void give_answer(int from, uint32_t slot, int result)
{
	struct nm_rpc_answer answer = { 0, result };

	give(from, NM_RPC_ANSWER | slot, &answer, sizeof(answer));
}

static void die(int rank)
{
	struct nm_pass pass;

	nm_core_lock(&core);
	nm_core_settle(&core, &pass);
	nm_gate_fail(&pass, &core.gates[rank], -ECONNRESET);
	nm_core_unlock(&core, &pass);
}

static void setup(void)
{
	CHECK_INT(marcel_init(NULL), 0);
	CHECK_INT(piom_init(), 0);
	mock_core(&core, &driver, 100000);
	nm_core_self = &core;
	ngiven = ndelivered = nsent = 0;
	seqs[0] = seqs[1] = 0;
	piom_sem_init(&entered, 0);
	CHECK_INT(nm_rpc_open(SESSION, 0, &rpc), 0);
}

static void teardown(void)
{
	if (rpc != NULL)
		CHECK_INT(nm_rpc_close(rpc), 0);
	progress();
	CHECK_INT(load_relaxed(&core.pending), 0);
	nm_core_self = NULL;
	nm_core_exit(&core);
	piom_exit();
	marcel_end();
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, teardown);
}

TEST(all_calls_of_one_who_dies_end_and_those_that_waited_too)
{
	enum { CALLS = NM_RPC_WINDOW + 10 };
	static struct nm_rpc_request reqs[CALLS];
	struct nm_rpc_status status;

	for (int i = 0; i < CALLS; i++)
		CHECK_INT(nm_rpc_send(rpc, &core.gates[1], SERVICE, NULL, 0,
				      NULL, &reqs[i]),
			  0);
	progress();
	for (int i = 0; i < CALLS; i++)
		CHECK_INT(nm_rpc_test(&reqs[i]), -EAGAIN);
	CHECK_INT(nm_rpc_close(rpc), -EBUSY);
	die(1);
	progress();
	for (int i = 0; i < CALLS; i++) {
		CHECK_INT(nm_rpc_test(&reqs[i]), 0);
		nm_rpc_status(&reqs[i], &status);
		CHECK_INT(status.error, -ECONNRESET);
		CHECK_INT(status.result, 0);
	}
	/* And whoever calls him later. */
	CHECK_INT(nm_rpc_send(rpc, &core.gates[1], SERVICE, NULL, 0, NULL,
			      &reqs[0]),
		  0);
	nm_rpc_status(&reqs[0], &status);
	CHECK_INT(nm_rpc_test(&reqs[0]), 0);
	CHECK_INT(status.error, -ECONNRESET);
}

/* His last message says that the handler has run, whatever its body lacked. */
TEST(who_answers_and_dies_has_answered)
{
	static const char body[1000];
	struct nm_data d = nm_data_flat(body, sizeof(body));
	struct nm_rpc_request req;
	struct nm_rpc_status status;

	CHECK_INT(nm_rpc_send(rpc, &core.gates[1], SERVICE, NULL, 0, &d, &req),
		  0);
	give_answer(1, 0, 5);
	progress();
	CHECK_INT(nm_rpc_test(&req), -EAGAIN);
	die(1);
	progress();
	CHECK_INT(nm_rpc_test(&req), 0);
	nm_rpc_status(&req, &status);
	CHECK_INT(status.error, 0);
	CHECK_INT(status.result, 5);
}

/* What has gathered leaves with it: the call is over, so nobody polls. */
TEST(who_tests_or_waits_for_a_call_ends_a_burst)
{
	struct nm_rpc_request req;

	CHECK_INT(
		nm_rpc_send(rpc, &core.gates[1], SERVICE, NULL, 0, NULL, &req),
		0);
	give_answer(1, 0, 5);
	progress();
	store_relaxed(&core.bursting, 1);
	CHECK_INT(nm_rpc_test(&req), 0);
	CHECK_INT(load_relaxed(&core.bursting), 0);
	store_relaxed(&core.bursting, 1);
	nm_rpc_wait(&req);
	CHECK_INT(load_relaxed(&core.bursting), 0);
}

static int received;

static int receive(struct nm_rpc_call *call, void *arg)
{
	char body[8];
	struct nm_data into = nm_data_flat(body, sizeof(body));

	(void)arg;
	received = nm_rpc_receive(call, &into);
	piom_sem_post(&entered);
	return 0;
}

TEST(a_caller_that_dies_ends_the_wait_for_its_body_and_others_are_served)
{
	CHECK_INT(nm_rpc_register(rpc, SERVICE, receive, NULL), 0);
	give_call(1, 3, 8);
	progress();
	die(1);
	piom_sem_wait(&entered);
	CHECK_INT(received, -ECONNRESET);
	give_call(0, 3, 0);
	progress();
	piom_sem_wait(&entered);
	CHECK_INT(received, 0);
	CHECK_INT(nm_rpc_unregister(rpc, SERVICE), 0);
}

TEST(what_is_no_call_is_dropped)
{
	static const char much[sizeof(uint64_t) * 2 + NM_RPC_HEADER_MAX + 8];

	CHECK_INT(nm_rpc_register(rpc, SERVICE, receive, NULL), 0);
	give(1, NM_RPC_HEAD, "x", 1);
	give(1, NM_RPC_HEAD, much, sizeof(much));
	give_call(1, NM_RPC_WINDOW, 0);
	give_call(1, 0, 0);
	progress();
	piom_sem_wait(&entered);
	CHECK_INT(received, 0);
	CHECK_INT(nm_rpc_unregister(rpc, SERVICE), 0);
	CHECK_INT(piom_sem_trywait(&entered), -EAGAIN);
}

TEST(calls_that_come_as_it_closes_are_answered)
{
	for (uint32_t slot = 0; slot < 3; slot++)
		give_call(1, slot, 0);
	CHECK_INT(nm_rpc_close(rpc), 0);
	rpc = NULL;
	CHECK_INT(ndelivered, 3);
	CHECK_INT(nsent, 3);
}

/* --- a handler that takes its time --- */

static piom_sem_t leave;

static int linger(struct nm_rpc_call *call, void *arg)
{
	(void)call;
	(void)arg;
	piom_sem_post(&entered);
	piom_sem_wait(&leave);
	return 0;
}

static void *unregister(void *rc)
{
	*(int *)rc = nm_rpc_unregister(rpc, SERVICE);
	return NULL;
}

/* Who unregisters waits for the handler, and uses what would be freed. */
TEST(calls_are_not_closed_while_somebody_unregisters)
{
	marcel_t t;
	int rc = -1;

	piom_sem_init(&leave, 0);
	CHECK_INT(nm_rpc_register(rpc, SERVICE, linger, NULL), 0);
	give_call(1, 0, 0);
	progress();
	piom_sem_wait(&entered);
	CHECK_INT(marcel_create(&t, NULL, unregister, &rc), 0);
	/* It is no longer registered when another can be. */
	while (nm_rpc_register(rpc, SERVICE, receive, NULL) == -EEXIST)
		marcel_yield();
	CHECK_INT(nm_rpc_unregister(rpc, SERVICE), 0);
	CHECK_INT(nm_rpc_close(rpc), -EBUSY);
	piom_sem_post(&leave);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(rc, 0);
}
