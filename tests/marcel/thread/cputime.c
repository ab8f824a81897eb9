/* marcel/thread/cputime.c: what each thread has used of the CPUs. */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include <base/atomic.h>
#include "../with.h"

enum { MS = 1000000 };

static ATOMIC(int) stop;

static void counting(int nvp, void (*body)(void))
{
	setenv("MARCEL_CPUTIME", "1", 1);
	with_vps(nvp, body);
	unsetenv("MARCEL_CPUTIME");
}

static uint64_t used(marcel_t t)
{
	uint64_t ns = 0;

	CHECK_INT(marcel_cputime(t, &ns), 0);
	return ns;
}

static uint64_t used_by_all(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

static marcel_t make(void *(*fn)(void *), void *arg)
{
	marcel_t t;

	CHECK_INT(marcel_create(&t, NULL, fn, arg), 0);
	return t;
}

/* Until it has used that much, without a switch of its own. */
static void *compute(void *arg)
{
	uint64_t ns = (uint64_t)(uintptr_t)arg;

	while (used(marcel_self()) < ns)
		;
	return NULL;
}

static uint64_t waiter_used;

static void *wait_for(void *arg)
{
	for (int i = 0; i < 10; i++)
		marcel_sem_wait(arg);
	waiter_used = used(marcel_self());
	return NULL;
}

/* All of them, one after the other or preempted, and somebody who waits. */
static void share_the_vps(void)
{
	enum { N = 4 };
	uint64_t before = used_by_all(), mine = used(marcel_self());
	marcel_t t[N], waiter;
	marcel_sem_t sem;

	CHECK_INT(marcel_sem_init(&sem, 0, 0), 0);
	waiter = make(wait_for, &sem);
	for (int i = 0; i < N; i++)
		t[i] = make(compute, (void *)(uintptr_t)(25 * MS));
	for (int i = 0; i < 10; i++)
		CHECK_INT(marcel_sem_post(&sem), 0);
	for (int i = 0; i < N; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(marcel_join(waiter, NULL), 0);
	/* Nobody was given what another one, or nobody, has used. */
	CHECK(used_by_all() - before >= N * 25 * (uint64_t)MS);
	mine = used(marcel_self()) - mine + waiter_used;
	CHECK(mine < used_by_all() - before - N * 25 * (uint64_t)MS);
}

TEST(each_has_what_it_used_itself)
{
	setenv("MARCEL_TIMESLICE_US", "1000", 1);
	counting(1, share_the_vps);
	counting(2, share_the_vps);
	counting(4, share_the_vps);
	unsetenv("MARCEL_TIMESLICE_US");
}

static void *run_until_stop(void *arg)
{
	while (!load_relaxed(&stop))
		if (arg != NULL)
			marcel_yield();
	return arg;
}

/* Of one that yields, and one that does not, if something interrupts it. */
static void look_from_outside(void)
{
	marcel_t t;
	int n = BASE_TSAN ? 1 : 2;

	for (int i = 0; i < n; i++) {
		uint64_t last = 0, now;

		store_relaxed(&stop, 0);
		t = make(run_until_stop, i == 0 ? &stop : NULL);
		do {
			now = used(t);
			CHECK(now >= last);
			last = now;
			marcel_yield();
		} while (now < 5 * MS);
		store_relaxed(&stop, 1);
		CHECK_INT(marcel_join(t, NULL), 0);
	}
}

TEST(others_see_it_grow)
{
	counting(1, look_from_outside);
	counting(2, look_from_outside);
	counting(4, look_from_outside);
}

static void *nothing(void *arg)
{
	return arg;
}

static uint64_t used_before; /* by all, when the thread was made */

/*
 * No more than all together since then: who has a CPU that a hypervisor takes
 * away may be said to have used it.
 */
static void *begin_with_little(void *arg)
{
	uint64_t mine = used(marcel_self());

	CHECK(mine <= used_by_all() - used_before);
	return arg;
}

static void follow_one_that_used_much(void)
{
	marcel_t t = make(compute, (void *)(uintptr_t)(25 * MS));

	CHECK_INT(marcel_join(t, NULL), 0);
	for (int i = 0; i < 200; i++) {
		used_before = used_by_all();
		t = make(begin_with_little, NULL);
		CHECK_INT(marcel_join(t, NULL), 0);
	}
}

TEST(a_new_thread_has_used_nothing)
{
	counting(1, follow_one_that_used_much);
	counting(4, follow_one_that_used_much);
}

static void *foreign(void *arg)
{
	marcel_t *me = arg;
	uint64_t ns;

	*me = marcel_self();
	CHECK_INT(marcel_cputime(*me, &ns), 0);
	return NULL;
}

static void ask_wrongly(void)
{
	marcel_t t = make(nothing, NULL), kernel = NULL;
	pthread_t thread;
	uint64_t ns;

	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(marcel_cputime(t, &ns), ESRCH);
	CHECK_INT(pthread_create(&thread, NULL, foreign, &kernel), 0);
	CHECK_INT(pthread_join(thread, NULL), 0);
	CHECK_INT(marcel_cputime(kernel, &ns), ESRCH);
}

static void not_counted(void)
{
	uint64_t ns;

	CHECK_INT(marcel_cputime(marcel_self(), &ns), ENOENT);
	ask_wrongly();
}

TEST(who_has_ended_and_what_is_not_counted_are_errors)
{
	counting(1, ask_wrongly);
	counting(4, ask_wrongly);
	with_vps(1, not_counted);
	with_vps(4, not_counted);
}
