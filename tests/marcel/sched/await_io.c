/*
 * Who awaits IO: before whom it runs when it is woken while others compute, and
 * that those get their slices all the same.
 */
#include <pthread.h>
#include <sched.h>

#include "../loose.h"
#include "../parked.h"
#include "../slice.h"

static marcel_sem_t sem[2];
static marcel_barrier_t barrier;

static void forget(void)
{
	store_relaxed(&stop, 0);
	for (int i = 0; i < 2; i++)
		CHECK_INT(marcel_sem_init(&sem[i], 0, 0), 0);
}

static void join(marcel_t t)
{
	CHECK_INT(marcel_join(t, NULL), 0);
}

static void *nothing(void *arg)
{
	return arg;
}

static marcel_t start_on(int vp, void *(*fn)(void *), void *arg)
{
	marcel_attr_t attr;
	marcel_t t;

	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvp(&attr, vp), 0);
	CHECK_INT(marcel_create(&t, &attr, fn, arg), 0);
	return t;
}

static void *meets(void *arg)
{
	marcel_barrier_wait(&barrier);
	return arg;
}

static void *waits(void *arg)
{
	CHECK_INT(marcel_sem_wait(&sem[0]), 0);
	return arg;
}

/* --- which wakes --- */

static void sees_some_compute(bool yes)
{
	store_relaxed(&marcel_sched.some_compute, yes);
}

/* Says so, waits, says that no more, waits. */
static void *awaits_io_once(void *arg)
{
	marcel_await_io(1);
	CHECK_INT(marcel_sem_wait(&sem[0]), 0);
	marcel_await_io(0);
	CHECK_INT(marcel_sem_wait(&sem[0]), 0);
	return arg;
}

static bool is_favoured_when_woken(marcel_t t)
{
	bool is;

	until_parked_in_its_band(t);
	CHECK(!marcel_thread_has(t, MARCEL_F_BAND));
	CHECK_INT(marcel_sem_post(&sem[0]), 0);
	is = marcel_thread_has(t, MARCEL_F_BAND);
	CHECK_INT(marcel_favour(t, 0), 0);
	return is;
}

static void only_beside_who_computes(void)
{
	marcel_t t;

	for (int computes = 0; computes < 2; computes++) {
		forget();
		sees_some_compute(computes);
		t = start(awaits_io_once, NULL);
		CHECK(is_favoured_when_woken(t) == computes);
		CHECK(!is_favoured_when_woken(t));
		join(t);
	}
	sees_some_compute(false);
}

static void *awaits_io_for_ever(void *arg)
{
	marcel_await_io(1);
	for (;;)
		marcel_sem_wait(&sem[0]);
	return arg;
}

/* What it said was about itself: whoever has its stack next says his own. */
static void no_heirs_of_cancelled(void)
{
	marcel_t t;

	forget();
	t = start(awaits_io_for_ever, NULL);
	until_parked_in_its_band(t);
	CHECK_INT(marcel_cancel(t), 0);
	join(t);
	for (int i = 0; i < 100; i++) {
		t = start(waits, NULL);
		until_parked_in_its_band(t);
		CHECK(!marcel_thread_awaits_io(t));
		CHECK_INT(marcel_sem_post(&sem[0]), 0);
		join(t);
	}
}

static void many_await_io(void)
{
	marcel_t t[3];

	CHECK_INT(marcel_barrier_init(&barrier, NULL, 4), 0);
	for (int i = 0; i < 3; i++) {
		t[i] = start(meets, NULL);
		until_parked_in_its_band(t[i]);
		marcel_thread_set_awaits_io(t[i], i != 1);
	}
	sees_some_compute(true);
	marcel_barrier_wait(&barrier);
	sees_some_compute(false);
	for (int i = 0; i < 3; i++)
		CHECK(marcel_thread_has(t[i], MARCEL_F_BAND) == (i != 1));
	for (int i = 0; i < 3; i++)
		join(t[i]);
	CHECK_INT(marcel_barrier_destroy(&barrier), 0);
}

enum { MANY = 48, ROUNDS = 300 };

/* It says that some compute, and that none does, at any moment. */
static void *changes_its_mind(void *arg)
{
	while (load_relaxed(&stop) == 0)
		sees_some_compute(!load_relaxed(&marcel_sched.some_compute));
	sees_some_compute(false);
	return arg;
}

static void *meets_often(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		int was = marcel_await_io(i % 3 == 0);

		marcel_barrier_wait(&barrier);
		CHECK_INT(marcel_await_io(was), i % 3 == 0);
	}
	return arg;
}

/* Each fifth may run on one VP only, so no batch of them is large. */
static void many_while_that_changes(void)
{
	marcel_t t[MANY];
	pthread_t p;

	forget();
	CHECK_INT(marcel_barrier_init(&barrier, NULL, MANY + 1), 0);
	CHECK_INT(pthread_create(&p, NULL, changes_its_mind, NULL), 0);
	for (long i = 0; i < MANY; i++)
		t[i] = i % 5 == 0 ? start_on(0, meets_often, NULL)
				  : start(meets_often, NULL);
	meets_often(NULL);
	for (int i = 0; i < MANY; i++)
		join(t[i]);
	store_relaxed(&stop, 1);
	CHECK_INT(pthread_join(p, NULL), 0);
	CHECK_INT(marcel_barrier_destroy(&barrier), 0);
}

/* For so long that no clock ends it. */
TEST(who_awaits_io_is_favoured_when_woken_if_others_compute)
{
	uint64_t react_ns = marcel_thread_react_ns;

	marcel_thread_react_ns = UINT64_MAX;
	without_ticks(only_beside_who_computes);
	without_ticks(no_heirs_of_cancelled);
	without_ticks(many_await_io);
	without_ticks_on(2, many_while_that_changes);
	marcel_thread_react_ns = react_ns;
}

/* --- beside threads that compute --- */

enum { COMPUTING = 8, POSTS = 40 };

static ATOMIC(int) runs;  /* who ran last */
static ATOMIC(int) turns; /* changes of that */

static void *computes_by_turns(void *arg)
{
	int me = (int)(long)arg;

	while (load_relaxed(&stop) == 0) {
		if (load_relaxed(&runs) == me)
			continue;
		if (is_without_vp()) { /* this is no turn */
			marcel_yield();
			continue;
		}
		store_relaxed(&runs, me);
		fetch_add_relaxed(&turns, 1);
	}
	return arg;
}

static ATOMIC(int) posted_at; /* turns by then */

static void *posts_often(void *arg)
{
	for (int i = 0; i < POSTS; i++) {
		/* All have computed; some were interrupted, so it is known. */
		for (int at = load_relaxed(&turns);
		     load_relaxed(&turns) < at + (i == 0 ? COMPUTING : 1);)
			sched_yield();
		store_relaxed(&posted_at, load_relaxed(&turns));
		CHECK_INT(marcel_sem_post(&sem[0]), 0);
		while (marcel_sem_trywait(&sem[1]) != 0)
			sched_yield();
	}
	return arg;
}

/* However long it takes until it runs. */
static void reacts(void)
{
	uint64_t react_ns = marcel_thread_react_ns;
	marcel_t t[COMPUTING];
	int waited = 0;
	pthread_t p;

	forget();
	store_relaxed(&turns, 0);
	for (long i = 0; i < COMPUTING; i++)
		t[i] = start(computes_by_turns, (void *)(i + 1));
	CHECK_INT(pthread_create(&p, NULL, posts_often, NULL), 0);
	marcel_thread_react_ns = UINT64_MAX;
	marcel_await_io(1);
	for (int i = 0; i < POSTS; i++) {
		CHECK_INT(marcel_sem_wait(&sem[0]), 0);
		waited += load_relaxed(&turns) - load_relaxed(&posted_at);
		CHECK_INT(marcel_sem_post(&sem[1]), 0);
	}
	marcel_await_io(0);
	store_relaxed(&stop, 1);
	for (int i = 0; i < COMPUTING; i++)
		join(t[i]);
	CHECK_INT(pthread_join(p, NULL), 0);
	marcel_thread_react_ns = react_ns;
	/* All slices of all others each time, if not: twice as many as this. */
	CHECK(waited < POSTS * COMPUTING / 2);
}

TEST(who_awaits_io_does_not_wait_for_the_slices_of_all)
{
	with_slice("10000", 1, reacts);
}

/* Two that wake each other for ever, each time as if by a message. */
static void *reacts_to_the_other(void *arg)
{
	long i = (long)arg;

	marcel_await_io(1);
	while (load_relaxed(&stop) == 0) {
		CHECK_INT(marcel_sem_wait(&sem[i]), 0);
		store_relaxed(&runs, 0);
		CHECK_INT(marcel_sem_post(&sem[1 - i]), 0);
	}
	/* It may have been about to wait once more. */
	CHECK_INT(marcel_sem_post(&sem[1 - i]), 0);
	marcel_await_io(0);
	return arg;
}

static void *computes_ten_turns(void *arg)
{
	while (load_relaxed(&turns) < 10)
		if (load_relaxed(&runs) != 1) {
			store_relaxed(&runs, 1);
			fetch_add_relaxed(&turns, 1);
		}
	store_relaxed(&stop, 1);
	return arg;
}

/* All on the last VP; on the first, if it is another, slices end as ever. */
static void some_is_left(void)
{
	int last = marcel_nvp() - 1;
	marcel_t t[5];

	forget();
	store_relaxed(&turns, 0);
	store_relaxed(&runs, 1);
	t[2] = start_on(last, computes_ten_turns, NULL);
	for (long i = 0; i < 2; i++) {
		t[i] = start_on(last, reacts_to_the_other, (void *)i);
		t[3 + i] = start_on(0, last > 0 ? computes : nothing, NULL);
	}
	CHECK_INT(marcel_sem_post(&sem[0]), 0);
	for (int i = 0; i < 5; i++)
		join(t[i]);
}

TEST(those_who_react_without_end_leave_some_to_who_computes)
{
	with_slice("1000", 1, some_is_left);
	with_slice("1000", 2, some_is_left);
}
