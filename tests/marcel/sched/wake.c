/* marcel/sched/wake.c: one wake per park, early or late, none lost. */
#include <pthread.h>

#include <base/atomic.h>
#include <base/spin.h>
#include "../with.h"

enum { ROUNDS = 20000 / FEWER, THREADS = 40 };

/*
 * A baton of one slot: who finds it empty waits in it, who finds somebody
 * takes and wakes it. All pass it on until the total, which is even, is
 * reached; then nobody waits.
 */
static struct {
	struct base_spin lock;
	marcel_t waiter;    /* l: lock */
	long passed, total; /* l: */
} baton = { .lock = BASE_SPIN_INIT(BASE_RANK_NONE) };

static void unlock_after(void *arg)
{
	base_spin_unlock(arg);
}

/* False: the total is reached. */
static bool pass(void)
{
	marcel_t t;

	base_spin_lock(&baton.lock);
	if (baton.passed == baton.total) {
		base_spin_unlock(&baton.lock);
		return false;
	}
	baton.passed++;
	t = baton.waiter;
	if (t != NULL) {
		baton.waiter = NULL;
		base_spin_unlock(&baton.lock);
		marcel_wake(t);
		return true;
	}
	baton.waiter = marcel_self();
	marcel_park(unlock_after, &baton.lock);
	return true;
}

static ATOMIC(int) finished;

static void *pass_often(void *arg)
{
	while (pass())
		;
	fetch_add_release(&finished, 1);
	return arg;
}

static void start_passing(long total)
{
	baton.passed = 0;
	baton.total = total;
	store_relaxed(&finished, 0);
}

TEST_VPS(threads_that_wait_in_turn_are_all_woken)
{
	marcel_t t[THREADS];

	start_passing(ROUNDS);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_create(&t[i], NULL, pass_often, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK(baton.waiter == NULL);
}

TEST_VPS(user_threads_and_kernel_threads_wake_each_other)
{
	marcel_t t[THREADS];
	pthread_t p[4];

	start_passing(10 * HANDOVERS);
	for (int i = 0; i < 4; i++)
		CHECK_INT(pthread_create(&p[i], NULL, pass_often, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_create(&t[i], NULL, pass_often, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	while (load_acquire(&finished) < 4 + THREADS)
		marcel_yield();
	for (int i = 0; i < 4; i++)
		CHECK_INT(pthread_join(p[i], NULL), 0);
	CHECK(baton.waiter == NULL);
}

/* --- without an after action: the wake may come before the sleep --- */

static ATOMIC(marcel_t) partner[2];
static int rounds;

static void *ping(void *arg)
{
	int me = (int)(long)arg;
	marcel_t other;

	store_release(&partner[me], marcel_self());
	while ((other = load_acquire(&partner[!me])) == NULL)
		marcel_yield();
	for (int i = 0; i < rounds; i++) {
		if (me == 0)
			marcel_wake(other);
		marcel_park(NULL, NULL);
		if (me == 1)
			marcel_wake(other);
	}
	fetch_add_release(&finished, 1);
	return NULL;
}

static void reset_ping(int n)
{
	rounds = n;
	store_relaxed(&finished, 0);
	store_relaxed(&partner[0], NULL);
	store_relaxed(&partner[1], NULL);
}

TEST_VPS(a_wake_before_the_park_is_kept)
{
	marcel_t t[2];

	reset_ping(ROUNDS);
	for (long i = 0; i < 2; i++)
		CHECK_INT(marcel_create(&t[i], NULL, ping, (void *)i), 0);
	for (int i = 0; i < 2; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

TEST_VPS(a_wake_before_the_park_of_a_kernel_thread_is_kept)
{
	pthread_t p;

	reset_ping(HANDOVERS);
	CHECK_INT(pthread_create(&p, NULL, ping, (void *)1), 0);
	ping((void *)0);
	CHECK_INT(pthread_join(p, NULL), 0);
}

/* --- the waker is the after action itself --- */

static void wake_after(void *arg)
{
	marcel_wake(arg);
}

TEST_VPS(after_may_wake_its_own_thread)
{
	for (int i = 0; i < 1000; i++)
		marcel_park(wake_after, marcel_self());
}

/* --- many sleepers, one waker --- */

static ATOMIC(int) asleep;

static void count_after(void *arg)
{
	fetch_add_release(&asleep, 1);
}

static void *sleep_once(void *arg)
{
	marcel_park(count_after, NULL);
	return arg;
}

static void *wake_all(void *arg)
{
	marcel_t *t = arg;

	while (load_acquire(&asleep) < THREADS)
		sched_yield();
	for (int i = 0; i < THREADS; i++)
		marcel_wake(t[i]);
	return NULL;
}

TEST_VPS(a_kernel_thread_wakes_vps_that_sleep)
{
	marcel_t t[THREADS];
	pthread_t p;

	for (int round = 0; round < 20; round++) {
		store_relaxed(&asleep, 0);
		for (int i = 0; i < THREADS; i++)
			CHECK_INT(marcel_create(&t[i], NULL, sleep_once, NULL),
				  0);
		CHECK_INT(pthread_create(&p, NULL, wake_all, t), 0);
		for (int i = 0; i < THREADS; i++)
			CHECK_INT(marcel_join(t[i], NULL), 0);
		CHECK_INT(pthread_join(p, NULL), 0);
	}
}
