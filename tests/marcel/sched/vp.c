/* marcel/sched/vp.c: idle VPs find work, and burn nothing when there is none.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <base/atomic.h>
#include "../parked.h"

static void *nothing(void *arg)
{
	return arg;
}

/* --- sleep --- */

static long cpu_ms(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000 +
	       (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1000;
}

enum { SPAN_MS = 300, QUIET_MS = 30 };

static ATOMIC(marcel_t) sleeper;

static void show_sleeper(void *arg)
{
	store_release(&sleeper, arg);
}

/* What the process uses of the CPU while this thread sleeps. */
static long burnt_ms(void)
{
	const struct timespec span = { .tv_nsec = SPAN_MS * 1000000 };
	long before = cpu_ms();

	nanosleep(&span, NULL);
	return cpu_ms() - before;
}

/*
 * A foreign thread: wait until all VPs sleep, see what that costs, wake. One
 * VP that spins would take all of each span. Who is on its way to sleep when
 * one begins has used something of that one.
 */
static void *look_and_wake(void *arg)
{
	marcel_t t;

	while ((t = load_acquire(&sleeper)) == NULL || !all_vps_sleep())
		sched_yield();
	while (burnt_ms() >= QUIET_MS)
		;
	CHECK(all_vps_sleep());
	marcel_wake(t);
	return arg;
}

TEST_VPS(a_process_whose_threads_are_all_blocked_uses_no_cpu)
{
	pthread_t p;

	store_relaxed(&sleeper, NULL);
	CHECK_INT(pthread_create(&p, NULL, look_and_wake, NULL), 0);
	marcel_park(show_sleeper, marcel_self());
	CHECK_INT(pthread_join(p, NULL), 0);
}

/* --- work is shared --- */

static ATOMIC(int) here, everywhere;

/* Ends when each VP has one of us: a VP that sleeps must be woken. */
static void *meet(void *arg)
{
	fetch_add_acq_rel(&here, 1);
	while (load_acquire(&here) < marcel_nvp())
		sched_yield(); /* keeps its VP: marcel_yield() would not */
	fetch_add_acq_rel(&everywhere, 1);
	return arg;
}

TEST(each_sleeping_vp_is_woken_for_work)
{
	struct marcel_config config = { .nvp = 4 };
	marcel_t t[3];

	CHECK_INT(marcel_init(&config), 0);
	for (int round = 0; round < HANDOVERS / 4; round++) {
		store_relaxed(&here, 0);
		store_relaxed(&everywhere, 0);
		for (int i = 0; i < 3; i++)
			CHECK_INT(marcel_create(&t[i], NULL, meet, NULL), 0);
		meet(NULL);
		for (int i = 0; i < 3; i++)
			CHECK_INT(marcel_join(t[i], NULL), 0);
		CHECK_INT(load_relaxed(&everywhere), 4);
	}
	CHECK_INT(marcel_end(), 0);
}

/* The same from outside, where threads go to the machine's queue. */
static void *meet_from_outside(void *arg)
{
	marcel_t t[4];

	for (int round = 0; round < HANDOVERS / 4; round++) {
		store_relaxed(&here, 0);
		for (int i = 0; i < 4; i++)
			CHECK_INT(marcel_create(&t[i], NULL, meet, NULL), 0);
		for (int i = 0; i < 4; i++)
			CHECK_INT(marcel_join(t[i], NULL), 0);
	}
	marcel_wake(arg);
	return NULL;
}

static void start_outside(void *arg)
{
	pthread_t p;

	CHECK_INT(pthread_create(&p, NULL, meet_from_outside, arg), 0);
	CHECK_INT(pthread_detach(p), 0);
}

TEST(work_of_foreign_threads_wakes_each_sleeping_vp)
{
	struct marcel_config config = { .nvp = 4 };

	CHECK_INT(marcel_init(&config), 0);
	marcel_park(start_outside, marcel_self());
	CHECK_INT(marcel_end(), 0);
}

/* Bound to one VP each: only that VP can be the one to wake. */
TEST(work_that_is_bound_wakes_its_own_vp)
{
	struct marcel_config config = { .nvp = 4 };
	marcel_attr_t attr;
	marcel_t t[4];

	CHECK_INT(marcel_init(&config), 0);
	for (int round = 0; round < HANDOVERS / 4; round++) {
		store_relaxed(&here, 0);
		for (int vp = 0; vp < 4; vp++) {
			CHECK_INT(marcel_attr_init(&attr), 0);
			CHECK_INT(marcel_attr_setvp(&attr, vp), 0);
			CHECK_INT(marcel_create(&t[vp], &attr, meet, NULL), 0);
		}
		for (int vp = 0; vp < 4; vp++)
			CHECK_INT(marcel_join(t[vp], NULL), 0);
	}
	CHECK_INT(marcel_end(), 0);
}

/* --- woken by who goes on --- */

static ATOMIC(int) woken;

static void *wait_for_post(void *arg)
{
	marcel_sem_wait(arg);
	store_release(&woken, 1);
	return NULL;
}

/* Whether the other VP sleeps at the post, or searches, or watches. */
static void post_and_compute(bool asleep)
{
	marcel_sem_t sem;
	marcel_t t;

	store_relaxed(&woken, 0);
	CHECK_INT(marcel_sem_init(&sem, 0, 0), 0);
	CHECK_INT(marcel_create(&t, NULL, wait_for_post, &sem), 0);
	until_parked(t);
	while (asleep && load_relaxed(&marcel_sched.vps[1].sleeper.asleep) !=
				 MARCEL_ASLEEP)
		sched_yield();
	CHECK_INT(marcel_sem_post(&sem), 0);
	while (load_acquire(&woken) == 0)
		sched_yield(); /* keeps its VP */
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST(a_thread_does_not_wait_for_who_woke_it)
{
	struct marcel_config config = { .nvp = 2 };

	CHECK_INT(marcel_init(&config), 0);
	for (int round = 0; round < HANDOVERS / 4; round++)
		post_and_compute(round % 2 == 0);
	CHECK_INT(marcel_end(), 0);
}

/* --- storms --- */

static void *grow(void *arg)
{
	long depth = (long)arg;
	marcel_t t[3];

	if (depth == 0)
		return NULL;
	for (int i = 0; i < 3; i++)
		CHECK_INT(marcel_create(&t[i], NULL, grow, (void *)(depth - 1)),
			  0);
	if (depth % 2 == 0)
		marcel_yield();
	for (int i = 0; i < 3; i++)
		CHECK_INT(marcel_join(t[2 - i], NULL), 0);
	return NULL;
}

TEST(a_storm_of_threads_on_many_vps_passes)
{
	struct marcel_config config = { .nvp = 7 };
	marcel_t t;

	CHECK_INT(marcel_init(&config), 0);
	for (int i = 0; i < 3; i++)
		grow((void *)(BASE_TSAN ? 4L : 6L));
	CHECK_INT(marcel_create(&t, NULL, nothing, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(marcel_end(), 0);
}
