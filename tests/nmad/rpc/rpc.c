/*
 * Calls of functions in another process, or one's own: what arrives, what comes
 * back, what waits for what. Run by one process or by two, with the network in
 * NMAD_DRIVER. Both run each test at the same time, each calls the other; a
 * failure in any ends the job, since the other could only wait.
 */
#include "../../check.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <marcel/marcel.h>
#include <nmad/nmad.h>
#include <nmad/rpc.h>
#include <pioman/cond.h>

#include "../fewer.h"
#include "../pattern.h"

#define MUST(x)                                                                \
	((x) ? (void)0 : failed(__FILE__, __LINE__, #x, nm_rank(), current))

enum {
	SERVICE = 7,
	OTHER = 8,
	NOBODY = 99,
	MAX_BYTES = 3 << 20,
	MANY = 100000 / FEWER,
	MANY_FROM = 2000000,
};

static struct nm_rpc *rpc;
static struct nm_gate *peer;
static const char *current = "";
static uint64_t session_id = 100;

static __attribute__((noreturn)) void
failed(const char *file, int line, const char *what, int rank, const char *test)
{
	fprintf(stderr, "%s:%d: rank %d: %s does not hold (%s)\n", file, line,
		rank, what, test);
	nm_abort(1, "test of calls failed");
}

/* --- a call at a time --- */

static void send_call(struct nm_rpc_request *req, uint32_t service,
		      const void *header, size_t bytes, const void *body,
		      size_t length)
{
	struct nm_data d = nm_data_flat(body, length);

	MUST(nm_rpc_send(rpc, peer, service, header, bytes, &d, req) == 0);
}

static struct nm_rpc_status wait_for(struct nm_rpc_request *req)
{
	struct nm_rpc_status status;

	nm_rpc_wait(req);
	MUST(nm_rpc_test(req) == 0);
	nm_rpc_status(req, &status);
	return status;
}

static struct nm_rpc_status call(uint32_t service, const void *header,
				 size_t bytes, const void *body, size_t length)
{
	struct nm_rpc_request req;

	send_call(&req, service, header, bytes, body, length);
	return wait_for(&req);
}

static void must_run(struct nm_rpc_status status, int result)
{
	MUST(status.error == 0);
	MUST(status.result == result);
}

/* --- both have come here --- */

enum { MEET = 1000000 };

static piom_sem_t met;

static int have_met(struct nm_rpc_call *c, void *arg)
{
	(void)c;
	(void)arg;
	piom_sem_post(&met);
	return 0;
}

static void meet(void)
{
	must_run(call(MEET, NULL, 0, NULL, 0), 0);
	piom_sem_wait(&met);
}

/* As soon as both are there: who is not yet, does not know the service. */
static void open_with(unsigned threads)
{
	struct nm_rpc_status status;

	MUST(nm_rpc_open(++session_id, threads, &rpc) == 0);
	MUST(nm_rpc_register(rpc, MEET, have_met, NULL) == 0);
	do
		status = call(MEET, NULL, 0, NULL, 0);
	while (status.error == -ENOENT);
	must_run(status, 0);
	piom_sem_wait(&met);
}

static void close_it(void)
{
	/* Nobody calls any more when both have been told so. */
	meet();
	MUST(nm_rpc_unregister(rpc, MEET) == 0);
	MUST(nm_rpc_close(rpc) == 0);
}

static void finish(void)
{
	if (nm_exit() != 0)
		failed(__FILE__, __LINE__, "nm_exit() == 0", nm_rank(), "exit");
}

static void setup(void)
{
	static bool started;

	if (!started) {
		started = true;
		MUST(nm_init() == 0);
		MUST(nm_size() <= 2);
		if (nm_rank() > 0)
			MUST(dup2(STDERR_FILENO, STDOUT_FILENO) >= 0);
		peer = nm_gate_of(nm_size() - 1 - nm_rank());
		piom_sem_init(&met, 0);
		atexit(finish);
	}
	open_with(0);
}

__attribute__((constructor)) static void fixture(void)
{
	check_fixture(setup, close_it);
}

#define RULE(name)                                                             \
	static void name##_body(void);                                         \
	TEST(name)                                                             \
	{                                                                      \
		current = #name;                                               \
		name##_body();                                                 \
	}                                                                      \
	static void name##_body(void)

/* --- what arrives and comes back --- */

static void paint(unsigned char *p, size_t length)
{
	pattern(length, p, length);
}

static bool is_painted(const unsigned char *p, size_t length)
{
	return is_pattern(length, p, length);
}

/* Returns how much of both it has found right. */
static int check_all(struct nm_rpc_call *c, void *arg)
{
	size_t bytes, length = nm_rpc_body_length(c);
	const unsigned char *header = nm_rpc_header(c, &bytes);
	unsigned char *body = malloc(length + 1);
	struct nm_data into = nm_data_flat(body, length);
	struct nm_data nowhere = nm_data_flat(NULL, length + 1);

	MUST(arg == &rpc);
	MUST(body != NULL);
	MUST(nm_rpc_from(c) == peer);
	MUST((uintptr_t)header % _Alignof(max_align_t) == 0);
	MUST(is_painted(header, bytes));
	MUST(nm_rpc_receive(c, &nowhere) == -EINVAL);
	MUST(nm_rpc_receive(c, &into) == 0);
	MUST(nm_rpc_receive(c, &into) == -EALREADY);
	MUST(nm_rpc_receive(c, NULL) == -EINVAL);
	MUST(is_painted(body, length));
	free(body);
	return (int)(bytes + length);
}

RULE(header_and_body_of_any_length_arrive_and_the_result_comes_back)
{
	static const size_t headers[] = {
		0, 1, 8, 63, 1000, NM_RPC_HEADER_MAX
	};
	static const size_t bodies[] = { 0,    1,     64,     65,
					 5000, 40000, 300000, MAX_BYTES };
	static unsigned char header[NM_RPC_HEADER_MAX], body[MAX_BYTES];

	MUST(nm_rpc_register(rpc, SERVICE, check_all, &rpc) == 0);
	meet();
	for (size_t h = 0; h < BASE_ARRAY_LEN(headers); h++) {
		for (size_t b = 0; b < BASE_ARRAY_LEN(bodies); b++) {
			size_t n = headers[h], m = bodies[b];

			paint(header, n);
			paint(body, m);
			must_run(call(SERVICE, header, n, body, m),
				 (int)(n + m));
		}
	}
	meet();
	MUST(nm_rpc_unregister(rpc, SERVICE) == 0);
}

static int minus(struct nm_rpc_call *c, void *arg)
{
	(void)arg;
	return -*(const int *)nm_rpc_header(c, NULL);
}

/* A handler that wants no body, or a part of it. */
static int cut(struct nm_rpc_call *c, void *arg)
{
	unsigned char some[100], begins[100];
	struct nm_data into = nm_data_flat(some, sizeof(some));

	(void)arg;
	MUST(nm_rpc_receive(c, &into) == -EMSGSIZE);
	pattern(nm_rpc_body_length(c), begins, sizeof(begins));
	MUST(memcmp(some, begins, sizeof(some)) == 0);
	return 5;
}

RULE(nobody_needs_the_body)
{
	static unsigned char body[MAX_BYTES];
	int five = 5;

	MUST(nm_rpc_register(rpc, SERVICE, minus, NULL) == 0);
	MUST(nm_rpc_register(rpc, OTHER, cut, NULL) == 0);
	meet();
	for (size_t n = 200; n <= MAX_BYTES; n *= 10) {
		paint(body, n);
		must_run(call(SERVICE, &five, sizeof(five), body, n), -5);
		must_run(call(OTHER, NULL, 0, body, n), 5);
	}
	meet();
	MUST(nm_rpc_unregister(rpc, SERVICE) == 0);
	MUST(nm_rpc_unregister(rpc, OTHER) == 0);
}

static int number_of(struct nm_rpc_call *c, void *arg)
{
	(void)c;
	return (int)(intptr_t)arg;
}

RULE(a_call_finds_its_service_among_many)
{
	for (int i = 0; i < MANY; i++)
		MUST(nm_rpc_register(rpc, (uint32_t)(MANY_FROM + i), number_of,
				     (void *)(intptr_t)i) == 0);
	MUST(nm_rpc_register(rpc, MANY_FROM, minus, NULL) == -EEXIST);
	meet();
	for (int i = 0; i < MANY; i += MANY / 100)
		must_run(call((uint32_t)(MANY_FROM + i), NULL, 0, NULL, 0), i);
	meet();
	for (int i = 0; i < MANY; i += 2)
		MUST(nm_rpc_unregister(rpc, (uint32_t)(MANY_FROM + i)) == 0);
	meet();
	for (int i = 0; i < 10; i++) {
		struct nm_rpc_status st =
			call((uint32_t)(MANY_FROM + i), NULL, 0, NULL, 0);

		MUST(st.error == (i % 2 ? 0 : -ENOENT));
	}
	meet();
	for (int i = 1; i < MANY; i += 2)
		MUST(nm_rpc_unregister(rpc, (uint32_t)(MANY_FROM + i)) == 0);
}

RULE(a_name_opens_another_world_of_calls)
{
	struct nm_rpc *by_number = rpc, *by_name;
	int five = 5;

	MUST(nm_rpc_open_name("calls", 0, &by_name) == 0);
	MUST(nm_rpc_open_name("calls", 0, &rpc) == -EEXIST);
	MUST(nm_rpc_register(by_name, SERVICE, minus, NULL) == 0);
	meet();
	MUST(call(SERVICE, &five, sizeof(five), NULL, 0).error == -ENOENT);
	rpc = by_name;
	must_run(call(SERVICE, &five, sizeof(five), NULL, 0), -5);
	rpc = by_number;
	meet();
	MUST(nm_rpc_unregister(by_name, SERVICE) == 0);
	MUST(nm_rpc_close(by_name) == 0);
}

RULE(a_call_of_nobody_is_an_error)
{
	static unsigned char body[MAX_BYTES];
	struct nm_rpc_status status = call(NOBODY, "x", 1, NULL, 0);

	MUST(status.error == -ENOENT && status.result == 0);
	status = call(NOBODY, NULL, 0, body, MAX_BYTES);
	MUST(status.error == -ENOENT && status.result == 0);
}

/* --- many at once --- */

static piom_sem_t entered, leave;
static ATOMIC(int) inside, most;

static int block(struct nm_rpc_call *c, void *arg)
{
	int now = fetch_add_relaxed(&inside, 1) + 1, seen;

	(void)arg;
	seen = load_relaxed(&most);
	while (seen < now && !cas_relaxed(&most, &seen, now))
		continue;
	piom_sem_post(&entered);
	piom_sem_wait(&leave);
	fetch_sub_relaxed(&inside, 1);
	return *(const int *)nm_rpc_header(c, NULL);
}

static void blocking_handlers(void)
{
	piom_sem_init(&entered, 0);
	piom_sem_init(&leave, 0);
	store_relaxed(&inside, 0);
	store_relaxed(&most, 0);
	MUST(nm_rpc_register(rpc, SERVICE, block, NULL) == 0);
	meet();
}

RULE(a_window_of_handlers_may_block_and_later_calls_wait)
{
	enum { CALLS = NM_RPC_WINDOW + 20 };
	static struct nm_rpc_request reqs[CALLS];
	static int numbers[CALLS];

	blocking_handlers();
	for (int i = 0; i < CALLS; i++) {
		numbers[i] = i;
		send_call(&reqs[i], SERVICE, &numbers[i], sizeof(int), NULL, 0);
	}
	MUST(nm_rpc_close(rpc) == -EBUSY);
	/* All of the window run here, and none but them can. */
	for (int i = 0; i < NM_RPC_WINDOW; i++)
		piom_sem_wait(&entered);
	MUST(load_relaxed(&inside) == NM_RPC_WINDOW);
	for (int i = 0; i < CALLS; i++)
		piom_sem_post(&leave);
	for (int i = 0; i < CALLS; i++)
		must_run(wait_for(&reqs[i]), i);
	for (int i = NM_RPC_WINDOW; i < CALLS; i++)
		piom_sem_wait(&entered);
	MUST(load_relaxed(&most) == NM_RPC_WINDOW);
	meet();
	MUST(nm_rpc_unregister(rpc, SERVICE) == 0);
}

/* Asks who calls, and returns what that has returned and one more. */
static int ask_back(struct nm_rpc_call *c, void *arg)
{
	struct nm_rpc_request req;
	struct nm_rpc_status status;
	size_t bytes;
	const void *header = nm_rpc_header(c, &bytes);

	(void)arg;
	MUST(nm_rpc_send(rpc, nm_rpc_from(c), OTHER, header, bytes, NULL,
			 &req) == 0);
	status = wait_for(&req);
	MUST(status.error == 0);
	return status.result + 1;
}

RULE(handlers_may_call_back_and_wait)
{
	enum { CALLS = NM_RPC_WINDOW / 2 };
	static struct nm_rpc_request reqs[CALLS];
	static int numbers[CALLS];

	MUST(nm_rpc_register(rpc, SERVICE, ask_back, NULL) == 0);
	MUST(nm_rpc_register(rpc, OTHER, minus, NULL) == 0);
	meet();
	for (int i = 0; i < CALLS; i++) {
		numbers[i] = i;
		send_call(&reqs[i], SERVICE, &numbers[i], sizeof(int), NULL, 0);
	}
	for (int i = 0; i < CALLS; i++)
		must_run(wait_for(&reqs[i]), 1 - i);
	meet();
	MUST(nm_rpc_unregister(rpc, SERVICE) == 0);
	MUST(nm_rpc_unregister(rpc, OTHER) == 0);
}

/* Calls back as often as it is told, inside each other. */
static int dive(struct nm_rpc_call *c, void *arg)
{
	int left = *(const int *)nm_rpc_header(c, NULL) - 1;
	struct nm_rpc_request req;
	struct nm_rpc_status status;

	(void)arg;
	if (left == 0)
		return 1;
	MUST(nm_rpc_send(rpc, nm_rpc_from(c), SERVICE, &left, sizeof(left),
			 NULL, &req) == 0);
	status = wait_for(&req);
	MUST(status.error == 0);
	return status.result + 1;
}

/* Both do so, each half way here and half way there. */
RULE(calls_inside_calls_go_as_deep_as_the_window)
{
	int depth = NM_RPC_WINDOW;

	MUST(nm_rpc_register(rpc, SERVICE, dive, NULL) == 0);
	meet();
	must_run(call(SERVICE, &depth, sizeof(depth), NULL, 0), depth);
	meet();
	MUST(nm_rpc_unregister(rpc, SERVICE) == 0);
}

static void *call_often(void *arg)
{
	static unsigned char bytes[20000];
	int me = (int)(intptr_t)arg;

	for (int i = 0; i < 50; i++) {
		size_t n = (size_t)(i * i * 8 % 20000);

		must_run(call(SERVICE, &me, sizeof(me), bytes, n), -me);
	}
	return NULL;
}

RULE(many_threads_call_at_once)
{
	enum { THREADS = 40 };
	marcel_t threads[THREADS];

	MUST(nm_rpc_register(rpc, SERVICE, minus, NULL) == 0);
	meet();
	for (int i = 0; i < THREADS; i++)
		MUST(marcel_create(&threads[i], NULL, call_often,
				   (void *)(intptr_t)i) == 0);
	for (int i = 0; i < THREADS; i++)
		MUST(marcel_join(threads[i], NULL) == 0);
	meet();
	MUST(nm_rpc_unregister(rpc, SERVICE) == 0);
}

static int next;

/* Others have every chance to come in. */
static int in_order(struct nm_rpc_call *c, void *arg)
{
	(void)arg;
	MUST(fetch_add_relaxed(&inside, 1) == 0);
	MUST(*(const int *)nm_rpc_header(c, NULL) == next);
	for (int i = 0; i < 10; i++)
		marcel_yield();
	fetch_sub_relaxed(&inside, 1);
	return next++;
}

RULE(one_thread_serves_in_the_order_of_the_calls)
{
	enum { CALLS = 3 * NM_RPC_WINDOW };
	static struct nm_rpc_request reqs[CALLS];
	static int numbers[CALLS];

	close_it();
	open_with(1);
	next = 0;
	store_relaxed(&inside, 0);
	MUST(nm_rpc_register(rpc, SERVICE, in_order, NULL) == 0);
	meet();
	for (int i = 0; i < CALLS; i++) {
		numbers[i] = i;
		send_call(&reqs[i], SERVICE, &numbers[i], sizeof(int), NULL, 0);
	}
	for (int i = 0; i < CALLS; i++)
		must_run(wait_for(&reqs[i]), i);
	meet();
	MUST(nm_rpc_unregister(rpc, SERVICE) == 0);
}

/* A function that nmad calls may call, and the last of them wakes us. */
static struct nm_rpc_request from_inside;

static void call_now(struct nm_sr_request *req, void *number)
{
	(void)req;
	send_call(&from_inside, SERVICE, number, sizeof(int), NULL, 0);
	piom_sem_post(&entered);
}

RULE(a_function_that_nmad_calls_may_call)
{
	struct nm_session *s;
	struct nm_sr_request in, out;
	struct nm_data nothing = nm_data_flat(NULL, 0);
	int number = 3;

	piom_sem_init(&entered, 0);
	MUST(nm_rpc_register(rpc, SERVICE, minus, NULL) == 0);
	MUST(nm_session_open(session_id + (1 << 20), &s) == 0);
	meet();
	MUST(nm_sr_irecv(s, peer, 1, NM_TAG_EXACT, &nothing, &in) == 0);
	MUST(nm_sr_on_done(&in, call_now, &number) == 0);
	MUST(nm_sr_isend(s, peer, 1, &nothing, 0, &out) == 0);
	nm_sr_wait(&out);
	piom_sem_wait(&entered);
	must_run(wait_for(&from_inside), -3);
	meet();
	MUST(nm_session_close(s) == 0);
	MUST(nm_rpc_unregister(rpc, SERVICE) == 0);
}

/* --- the end of services --- */

static ATOMIC(int) is_inside;

static int linger(struct nm_rpc_call *c, void *arg)
{
	(void)c;
	(void)arg;
	store_seq(&is_inside, 1);
	piom_sem_post(&entered);
	piom_sem_wait(&leave);
	/* If nobody waits for us now he is gone before we are. */
	for (int i = 0; i < 100; i++)
		marcel_yield();
	store_seq(&is_inside, 0);
	return 1;
}

RULE(who_unregisters_waits_for_the_handler)
{
	struct nm_rpc_request req;

	piom_sem_init(&entered, 0);
	piom_sem_init(&leave, 0);
	MUST(nm_rpc_register(rpc, SERVICE, linger, NULL) == 0);
	meet();
	send_call(&req, SERVICE, NULL, 0, NULL, 0);
	piom_sem_wait(&entered);
	piom_sem_post(&leave);
	MUST(nm_rpc_unregister(rpc, SERVICE) == 0);
	MUST(load_seq(&is_inside) == 0);
	must_run(wait_for(&req), 1);
	meet();
	MUST(call(SERVICE, NULL, 0, NULL, 0).error == -ENOENT);
}

static int end_myself(struct nm_rpc_call *c, void *arg)
{
	(void)c;
	(void)arg;
	MUST(nm_rpc_close(rpc) == -EDEADLK);
	return nm_rpc_unregister(rpc, SERVICE);
}

RULE(a_handler_cannot_wait_for_itself)
{
	MUST(nm_rpc_register(rpc, SERVICE, end_myself, NULL) == 0);
	meet();
	must_run(call(SERVICE, NULL, 0, NULL, 0), -EDEADLK);
	meet();
	MUST(nm_rpc_unregister(rpc, SERVICE) == 0);
}

RULE(nonsense_is_refused)
{
	struct nm_data nowhere = nm_data_flat(NULL, 1);
	struct nm_rpc_request req;
	struct nm_rpc *other;

	MUST(nm_rpc_open(session_id, 0, &other) == -EEXIST);
	MUST(nm_rpc_open(session_id + (1 << 20), 0, NULL) == -EINVAL);
	MUST(nm_rpc_open_name(NULL, 0, &other) == -EINVAL);
	MUST(nm_rpc_open_name("", 0, &other) == -EINVAL);
	MUST(nm_rpc_open_name("calls", 0, NULL) == -EINVAL);
	MUST(nm_rpc_close(NULL) == -EINVAL);
	MUST(nm_rpc_close(rpc) == -EBUSY);
	MUST(nm_rpc_register(rpc, MEET, have_met, NULL) == -EEXIST);
	MUST(nm_rpc_register(rpc, SERVICE, NULL, NULL) == -EINVAL);
	MUST(nm_rpc_register(NULL, SERVICE, have_met, NULL) == -EINVAL);
	MUST(nm_rpc_unregister(rpc, SERVICE) == -ENOENT);
	MUST(nm_rpc_unregister(NULL, SERVICE) == -EINVAL);
	MUST(nm_rpc_send(NULL, peer, 1, NULL, 0, NULL, &req) == -EINVAL);
	MUST(nm_rpc_send(rpc, NULL, 1, NULL, 0, NULL, &req) == -EINVAL);
	MUST(nm_rpc_send(rpc, peer, 1, NULL, 1, NULL, &req) == -EINVAL);
	MUST(nm_rpc_send(rpc, peer, 1, NULL, 0, NULL, NULL) == -EINVAL);
	MUST(nm_rpc_send(rpc, peer, 1, NULL, 0, &nowhere, &req) == -EINVAL);
	MUST(nm_rpc_send(rpc, peer, 1, "", NM_RPC_HEADER_MAX + 1, NULL, &req) ==
	     -EMSGSIZE);
}
