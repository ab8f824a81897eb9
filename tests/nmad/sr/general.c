/* nmad/sr/general.c: requests that the program completes. */
#include <errno.h>

#include <base/atomic.h>
#include <marcel/marcel.h>
#include <pioman/cond.h>

#include "../fewer.h"
#include "../peers.h"

enum { N = 8, ROUNDS = 500 / FEWER };

static struct nm_sr_request general, message[2];

RULE(it_is_complete_when_it_is_said_to_be)
{
	struct nm_sr_status status;

	MUST(nm_sr_general_begin(NULL) == -EINVAL);
	MUST(nm_sr_general_begin(&general) == 0);
	MUST(!nm_sr_is_complete(&general));
	MUST(nm_sr_test(&general) == -EAGAIN);
	MUST(nm_sr_cancel(&general) == -EINVAL);
	MUST(nm_sr_general_end(NULL, 0) == -EINVAL);
	MUST(nm_sr_general_end(&general, EIO) == -EINVAL);
	MUST(!nm_sr_is_complete(&general));
	MUST(nm_sr_general_end(&general, -EIO) == 0);
	MUST(nm_sr_test(&general) == 0);
	nm_sr_status(&general, &status);
	MUST(status.error == -EIO && status.gate == NULL);
	MUST(status.length == 0 && status.sent == 0 && status.tag == 0);
}

RULE(a_message_is_completed_by_nmad_alone)
{
	irecv_bytes(&message[0], peer, 3, NM_TAG_EXACT, NULL, 0);
	MUST(nm_sr_general_end(&message[0], 0) == -EINVAL);
	isend_bytes(&message[1], 3, NULL, 0, 0);
	MUST(wait_for(&message[0]).error == 0);
	MUST(wait_for(&message[1]).error == 0);
}

/* --- who waits is woken --- */

static struct nm_sr_request of_threads[N];

static void *end_mine(void *arg)
{
	struct nm_sr_request *req = arg;

	MUST(nm_sr_general_end(req, 0) == 0);
	return NULL;
}

/* The requests of all threads end; who waits may be asleep, or not yet. */
RULE(who_waits_for_it_is_woken)
{
	struct nm_sr_request *all[N];
	marcel_t t[N];

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < N; i++) {
			all[i] = &of_threads[i];
			MUST(nm_sr_general_begin(all[i]) == 0);
		}
		for (int i = 0; i < N; i++)
			MUST(marcel_create(&t[i], NULL, end_mine, all[i]) == 0);
		if (round % 2 == 0)
			MUST(nm_sr_wait_any(all, N) < N);
		nm_sr_wait_all(all, N);
		MUST(nm_sr_test_all(all, N) == 0);
		for (int i = 0; i < N; i++)
			marcel_join(t[i], NULL);
	}
}

/* One that stands for two messages, among others. */
static int parts;

static void part_over(struct nm_sr_request *req, void *arg)
{
	(void)req;
	if (--parts == 0)
		nm_sr_general_end(arg, 0);
}

RULE(it_stands_for_several_messages_among_others)
{
	struct nm_sr_request *list[2] = { &general, &of_threads[0] };
	uint32_t out = 17, in = 0;

	MUST(nm_sr_general_begin(&general) == 0);
	irecv_bytes(&of_threads[0], peer, 5, NM_TAG_EXACT, NULL, 0);
	parts = 2;
	irecv_bytes(&message[0], peer, 4, NM_TAG_EXACT, &in, sizeof(in));
	isend_bytes(&message[1], 4, &out, sizeof(out), 0);
	MUST(nm_sr_on_done(&message[0], part_over, &general) == 0);
	MUST(nm_sr_on_done(&message[1], part_over, &general) == 0);
	/* Nobody has sent the other one: this is the one that ends. */
	MUST(nm_sr_wait_any(list, 2) == 0 && in == out);
	meet(1000);
	isend_bytes(&of_threads[1], 5, NULL, 0, 0);
	nm_sr_wait(&of_threads[0]);
	nm_sr_wait(&of_threads[1]);
}

/* --- and a function is called --- */

static piom_sem_t told;
static ATOMIC(int) ntold;

static void tell(struct nm_sr_request *req, void *arg)
{
	struct nm_sr_status status;

	MUST(arg == &told);
	nm_sr_status(req, &status);
	MUST(status.error == -ETIME);
	fetch_add_relaxed(&ntold, 1);
	piom_sem_post(&told);
}

static void *end_with_error(void *arg)
{
	MUST(nm_sr_general_end(arg, -ETIME) == 0);
	return NULL;
}

/* Given before it ends, after, or while it does. */
RULE(its_function_is_called_once)
{
	marcel_t t;

	piom_sem_init(&told, 0);
	store_relaxed(&ntold, 0);
	for (int round = 0; round < ROUNDS; round++) {
		MUST(nm_sr_general_begin(&general) == 0);
		if (round % 3 == 0)
			MUST(nm_sr_on_done(&general, tell, &told) == 0);
		MUST(marcel_create(&t, NULL, end_with_error, &general) == 0);
		if (round % 3 == 1)
			marcel_join(t, NULL);
		if (round % 3 != 0)
			MUST(nm_sr_on_done(&general, tell, &told) == 0);
		piom_sem_wait(&told);
		if (round % 3 != 1)
			marcel_join(t, NULL);
	}
	MUST(load_relaxed(&ntold) == ROUNDS);
}
