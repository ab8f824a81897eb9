/* pioman/wait/cost: who asks what a sleep costs is answered, or gives up. */
#include "../../check.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <base/atomic.h>

#include "../../../pioman/wait/cost.h"

enum { TIMES = 100 };

static ATOMIC(int) answerers;

static void *answer(void *arg)
{
	piom_cost_answer();
	fetch_add_relaxed(&answerers, 1);
	return arg;
}

static pthread_t answerer(void)
{
	pthread_t t;

	CHECK_INT(pthread_create(&t, NULL, answer, NULL), 0);
	return t;
}

/* A neighbour may have our core each time; but then it is a guess, not this. */
TEST(it_is_within_bounds_or_not_known)
{
	pthread_t t;
	uint64_t ns;

	for (int i = 0; i < TIMES; i++) {
		piom_cost_prepare(true);
		t = answerer();
		ns = piom_cost_measure();
		CHECK(ns == 0 || (ns >= 2000 && ns <= 50000));
		CHECK_INT(pthread_join(t, NULL), 0);
	}
}

/* The linker puts this before libc's: a clock that goes on when it is read. */
static bool is_slow;

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
	static long ns; /* the caller's alone, who measures */

	if (!is_slow)
		return __real_clock_gettime(clock, out);
	*out = (struct timespec){ .tv_sec = 1, .tv_nsec = ++ns };
	return 0;
}

/* However long the kernel takes: by this clock it is a few ns. */
TEST(it_comes_out_when_all_are_answered_in_time)
{
	pthread_t t;

	piom_cost_prepare(true);
	t = answerer();
	is_slow = true;
	CHECK_INT(piom_cost_measure(), 2000); /* the least that it says */
	is_slow = false;
	CHECK_INT(pthread_join(t, NULL), 0);
}

TEST(who_is_not_answered_gives_up)
{
	piom_cost_prepare(true);
	CHECK_INT(piom_cost_measure(), 0);
	CHECK_INT(pthread_join(answerer(), NULL), 0); /* too late for it */
}

TEST(nobody_answers_who_does_not_ask)
{
	piom_cost_prepare(false);
	store_relaxed(&answerers, 0);
	CHECK_INT(pthread_join(answerer(), NULL), 0);
	CHECK_INT(load_relaxed(&answerers), 1);
}

/* The answerer sleeps before anybody asks, or comes later. */
TEST(an_answerer_waits_for_who_asks)
{
	pthread_t t;

	for (int i = 0; i < TIMES; i++) {
		piom_cost_prepare(true);
		t = answerer();
		for (int y = 0; y < i % 4; y++)
			sched_yield();
		piom_cost_measure();
		CHECK_INT(pthread_join(t, NULL), 0);
	}
}
