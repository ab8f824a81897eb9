/* sched/timer.c, sched/sleep.c: the heap, and who lets time pass. */
#include "../parked.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <base/atomic.h>
#include <base/clock.h>
#include "../../../marcel/sched/enter.h"
#include "../../../marcel/sched/timer.h"

enum { MANY = 500, MS = 1000000, SLEEPERS = 1000 };

/* --- the heap --- */

static uint64_t expired[MANY];
static int nexpired;

static enum marcel_claim claim(struct marcel_timer *t)
{
	/* Every third has been granted. */
	return t->ns % 3 == 0 ? MARCEL_CLAIM_GONE : MARCEL_CLAIM_MINE;
}

static void note(struct marcel_timer *t)
{
	expired[nexpired++] = t->ns;
}

static const struct marcel_timer_kind noted = { claim, note };

static struct marcel_timers *heap(void)
{
	return &marcel_sched.vps[0].timers;
}

/*
 * With the heap of a VP that nobody else comes to: the VP is inside, or a tick
 * would run its timers.
 */
static void with_heap(void (*body)(void))
{
	struct marcel_config config = { .nvp = 1 };
	struct marcel_vp *vp;

	CHECK_INT(marcel_init(&config), 0);
	vp = marcel_enter();
	body();
	marcel_leave(vp);
	CHECK_INT(marcel_end(), 0);
}

static void expire_many(void)
{
	static struct marcel_timer t[MANY];
	uint64_t last = 0;
	int out = 0, gone = 0;

	for (int i = 0; i < MANY; i++) {
		marcel_timer_set_ns(&t[i], &noted, check_random() % MANY + 1);
		marcel_timer_arm(&t[i]);
		CHECK_INT(marcel_timers_check(heap()), i + 1);
	}
	for (int i = 0; i < MANY; i += 1 + (int)(check_random() % 3)) {
		CHECK(marcel_timer_disarm(&t[i]));
		CHECK(!marcel_timer_disarm(&t[i]));
		out++;
		CHECK_INT(marcel_timers_check(heap()), MANY - out);
	}
	for (int i = 0; i < MANY; i++)
		gone += t[i].armed && t[i].ns % 3 == 0;
	nexpired = 0;
	marcel_timers_run(heap());
	CHECK_INT(nexpired, MANY - out - gone);
	for (int i = 0; i < nexpired; last = expired[i++])
		CHECK(expired[i] >= last);
	CHECK_INT(marcel_timers_check(heap()), 0);
}

/* Some leave before their time; all others come in the order of theirs. */
TEST(timers_expire_in_order)
{
	with_heap(expire_many);
}

static enum marcel_claim claim_later(struct marcel_timer *t)
{
	return t->expired ? MARCEL_CLAIM_MINE : MARCEL_CLAIM_LATER;
}

static void expire_later(void)
{
	static const struct marcel_timer_kind later = { claim_later, note };
	struct marcel_timer t;

	nexpired = 0;
	marcel_timer_set_ns(&t, &later, 1);
	marcel_timer_arm(&t);
	marcel_timers_run(heap());
	CHECK_INT(nexpired, 0);
	CHECK_INT(marcel_timers_check(heap()), 1);
	t.expired = true;
	marcel_timers_run(heap());
	CHECK_INT(nexpired, 1);
}

TEST(who_cannot_be_claimed_is_tried_again)
{
	with_heap(expire_later);
}

/* --- to sleep --- */

static struct timespec in(clockid_t clock, uint64_t ns)
{
	struct timespec t;

	clock_gettime(clock, &t);
	ns += (uint64_t)t.tv_nsec;
	t.tv_sec += (time_t)(ns / 1000000000);
	t.tv_nsec = (long)(ns % 1000000000);
	return t;
}

static bool has_come(clockid_t clock, struct timespec t)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec > t.tv_sec ||
	       (now.tv_sec == t.tv_sec && now.tv_nsec >= t.tv_nsec);
}

static void *sleep_in_all_ways(void *arg)
{
	static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC,
					    CLOCK_BOOTTIME };
	struct timespec ms = { 0, MS }, left = { 7, 7 }, t;

	t = in(CLOCK_MONOTONIC, MS);
	CHECK_INT(marcel_nanosleep(&ms, &left), 0);
	CHECK(has_come(CLOCK_MONOTONIC, t));
	CHECK_INT(left.tv_sec, 7);
	t = in(CLOCK_MONOTONIC, 1500000);
	CHECK_INT(marcel_usleep(1500), 0);
	CHECK(has_come(CLOCK_MONOTONIC, t));
	for (size_t i = 0; i < BASE_ARRAY_LEN(clocks); i++) {
		t = in(clocks[i], MS);
		CHECK_INT(marcel_clock_nanosleep(clocks[i], 0, &ms, NULL), 0);
		CHECK(has_come(clocks[i], t));
		t = in(clocks[i], MS);
		CHECK_INT(marcel_clock_nanosleep(clocks[i], TIMER_ABSTIME, &t,
						 NULL),
			  0);
		CHECK(has_come(clocks[i], t));
		/* A time that has passed. */
		CHECK_INT(marcel_clock_nanosleep(clocks[i], TIMER_ABSTIME, &ms,
						 NULL),
			  0);
	}
	return NULL;
}

TEST_VPS(no_sleep_ends_before_its_time)
{
	marcel_t t[8];
	pthread_t p;

	sleep_in_all_ways(NULL);
	for (int i = 0; i < 8; i++)
		CHECK_INT(marcel_create(&t[i], NULL, sleep_in_all_ways, NULL),
			  0);
	CHECK_INT(pthread_create(&p, NULL, sleep_in_all_ways, NULL), 0);
	for (int i = 0; i < 8; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(pthread_join(p, NULL), 0);
}

TEST_VPS(times_that_are_none_are_refused)
{
	static const struct timespec bad[] = { { 0, -1 },
					       { 0, 1000000000 },
					       { -1, 0 } };
	struct timespec none = { 0 };

	for (size_t i = 0; i < BASE_ARRAY_LEN(bad); i++) {
		errno = 0;
		CHECK_INT(marcel_nanosleep(&bad[i], NULL), -1);
		CHECK_INT(errno, EINVAL);
		CHECK_INT(marcel_clock_nanosleep(CLOCK_MONOTONIC, 0, &bad[i],
						 NULL),
			  EINVAL);
	}
	CHECK_INT(
		marcel_clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &none, NULL),
		EINVAL);
	CHECK_INT(marcel_clock_nanosleep(12345, 0, &none, NULL), EINVAL);
	CHECK_INT(marcel_nanosleep(&none, NULL), 0);
	CHECK_INT(marcel_usleep(0), 0);
	CHECK_INT(marcel_sleep(0), 0);
}

/* --- whatever else the VP does --- */

static ATOMIC(int) awake;

static void *sleep_a_little(void *arg)
{
	marcel_usleep(1000 + (unsigned)(uintptr_t)arg);
	fetch_add_relaxed(&awake, 1);
	return NULL;
}

static marcel_t one_sleeps(void)
{
	marcel_t t;

	store_relaxed(&awake, 0);
	CHECK_INT(marcel_create(&t, NULL, sleep_a_little, NULL), 0);
	return t;
}

static void *yield_until_awake(void *arg)
{
	while (load_relaxed(&awake) == 0)
		marcel_yield();
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

TEST_VPS(a_sleeper_wakes_while_others_only_yield)
{
	marcel_t t = one_sleeps(), other;

	CHECK_INT(marcel_create(&other, NULL, yield_until_awake, NULL), 0);
	yield_until_awake(NULL);
	CHECK_INT(marcel_join(other, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST_VPS(a_sleeper_wakes_while_others_come_and_go)
{
	marcel_t t = one_sleeps(), other;

	while (load_relaxed(&awake) == 0) {
		CHECK_INT(marcel_create(&other, NULL, nothing, NULL), 0);
		CHECK_INT(marcel_join(other, NULL), 0);
	}
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST_VPS(a_sleeper_wakes_while_another_polls)
{
	marcel_t t = one_sleeps();

	while (load_relaxed(&awake) == 0)
		if (marcel_others_ready())
			marcel_yield();
	CHECK_INT(marcel_join(t, NULL), 0);
}

/* Its VP comes to look at its timers by the tick only. */
static void beside_one_that_computes(void)
{
	marcel_attr_t attr;
	marcel_t t;

	store_relaxed(&awake, 0);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvp(&attr, 0), 0);
	CHECK_INT(marcel_create(&t, &attr, sleep_a_little, NULL), 0);
	marcel_yield();
	while (load_relaxed(&awake) == 0)
		;
	CHECK_INT(marcel_join(t, NULL), 0);
}

static void with_ticks(int nvp)
{
	if (BASE_TSAN)
		check_skip("TSan has no tick");
	with_vps(nvp, beside_one_that_computes);
}

TEST(a_sleeper_wakes_while_another_only_computes_on_1_vp)
{
	with_ticks(1);
}

TEST(a_sleeper_wakes_while_another_only_computes_on_4_vps)
{
	with_ticks(4);
}

static void *sleep_and_write(void *arg)
{
	marcel_usleep(2000);
	CHECK_INT(write(*(int *)arg, "", 1), 1);
	return NULL;
}

TEST_VPS(a_sleeper_wakes_while_its_vp_is_in_a_blocking_section)
{
	marcel_attr_t attr;
	int fds[2];
	char c;

	CHECK_INT(pipe(fds), 0);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvp(&attr, 0), 0);
	for (int i = 0; i < 20; i++) {
		marcel_t t;

		CHECK_INT(marcel_create(&t, &attr, sleep_and_write, &fds[1]),
			  0);
		if (i % 2 != 0)
			marcel_yield();
		marcel_blocking_begin();
		CHECK_INT(read(fds[0], &c, 1), 1);
		marcel_blocking_end();
		CHECK_INT(marcel_join(t, NULL), 0);
	}
	close(fds[0]);
	close(fds[1]);
}

TEST_VPS(many_sleepers_all_wake)
{
	static marcel_t t[SLEEPERS];
	int n = SLEEPERS / FEWER;

	store_relaxed(&awake, 0);
	for (int i = 0; i < n; i++)
		CHECK_INT(marcel_create(&t[i], NULL, sleep_a_little,
					(void *)(check_random() % 10000)),
			  0);
	for (int i = 0; i < n; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(load_relaxed(&awake), n);
}

/* Switches of our kernel threads that gave their CPU away. */
static long switches(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_nvcsw;
}

/* Of a span; one that looked each millisecond would have one for each. */
enum { SPAN_MS = 50, SWITCHES_MAX = 10 };

static long switches_of_a_span(void)
{
	const struct timespec span = { .tv_nsec = SPAN_MS * MS };
	long before = switches();

	nanosleep(&span, NULL);
	return switches() - before;
}

/* Foreign. Some span, in which all slept until its end; NULL: there was none.*/
static void *sees_all_sleep(void *arg)
{
	const struct timespec *until = arg;
	long n;

	do {
		while (!all_vps_sleep()) {
			if (has_come(CLOCK_MONOTONIC, *until))
				return NULL;
			sched_yield();
		}
		n = switches_of_a_span();
		if (has_come(CLOCK_MONOTONIC, *until))
			return NULL;
		if (n >= SWITCHES_MAX)
			printf("# rejected: %ld switches in %d ms\n", n,
			       SPAN_MS);
	} while (n >= SWITCHES_MAX);
	return arg;
}

static void *sleep_until(void *arg)
{
	CHECK_INT(marcel_clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, arg,
					 NULL),
		  0);
	return NULL;
}

static bool all_sleep_for(uint64_t ns)
{
	enum { N = 20 };
	struct timespec t = in(CLOCK_MONOTONIC, ns);
	marcel_t s[N];
	pthread_t p;
	void *seen;

	CHECK_INT(pthread_create(&p, NULL, sees_all_sleep, &t), 0);
	for (int i = 0; i < N; i++)
		CHECK_INT(marcel_create(&s[i], NULL, sleep_until, &t), 0);
	sleep_until(&t);
	for (int i = 0; i < N; i++)
		CHECK_INT(marcel_join(s[i], NULL), 0);
	CHECK_INT(pthread_join(p, &seen), 0);
	return seen != NULL;
}

/* As long as it takes until all do, whatever else has the CPUs. */
static void all_sleep(void)
{
	uint64_t ns = 200 * MS;

	while (!all_sleep_for(ns))
		ns *= 2;
}

/* Without the monitor, which looks while a VP that falls asleep is late. */
TEST(a_vp_whose_threads_sleep_sleeps_on_1_vp)
{
	without_ticks_on(1, all_sleep);
}

TEST(a_vp_whose_threads_sleep_sleeps_on_4_vps)
{
	without_ticks_on(4, all_sleep);
}
