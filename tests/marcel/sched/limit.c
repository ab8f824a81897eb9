/*
 * marcel/sched/lwp.c, monitor.c, tick.c: no kernel thread is left
 * (MARCEL_LWP_MAX), and threads that were interrupted still take turns.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/atomic.h>
#include "../../../marcel/io/next.h"
#include "../with.h"

enum {
	THREADS = 8,
	TURNS = 20,
	WORK = BASE_TSAN || EMULATED ? 500000 : 2000000, /* about a slice */
};

static ATOMIC(int) turn, stop;

static void with_lwps(const char *max, int nvp, void (*body)(void))
{
	setenv("MARCEL_TIMESLICE_US", "1000", 1);
	setenv("MARCEL_LWP_MAX", max, 1);
	store_relaxed(&turn, 0);
	store_relaxed(&stop, 0);
	with_vps(nvp, body);
	unsetenv("MARCEL_LWP_MAX");
	unsetenv("MARCEL_TIMESLICE_US");
}

/* On one VP, and on more than can have a kernel thread each but two. */
#define TEST_LIMIT(name)                                                       \
	static void name##_body(void);                                         \
	TEST(name##_on_1_vp)                                                   \
	{                                                                      \
		with_lwps("1", 1, name##_body);                                \
		with_lwps("2", 1, name##_body);                                \
	}                                                                      \
	TEST(name##_on_2_vps)                                                  \
	{                                                                      \
		with_lwps("1", 2, name##_body);                                \
		with_lwps("2", 2, name##_body);                                \
	}                                                                      \
	static void name##_body(void)

static marcel_t start(void *(*fn)(void *), void *arg)
{
	marcel_t t;

	CHECK_INT(marcel_create(&t, NULL, fn, arg), 0);
	return t;
}

/* Makes no call: only the tick lets the other one on. */
static void *takes_turns(void *arg)
{
	int me = (int)(intptr_t)arg;

	for (int i = 0; i < TURNS; i++) {
		while (load_relaxed(&turn) % 2 != me)
			;
		fetch_add_relaxed(&turn, 1);
	}
	return arg;
}

TEST_LIMIT(two_that_compute_take_turns)
{
	marcel_t t[2];

	for (intptr_t i = 0; i < 2; i++)
		t[i] = start(takes_turns, (void *)i);
	for (int i = 0; i < 2; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(load_relaxed(&turn), 2 * TURNS);
}

TEST_LIMIT(main_and_one_that_computes_take_turns)
{
	marcel_t t = start(takes_turns, (void *)(intptr_t)1);

	takes_turns(NULL);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(load_relaxed(&turn), 2 * TURNS);
}

/* --- locks of kernel threads --- */

static pthread_mutex_t kernel_lock = PTHREAD_MUTEX_INITIALIZER;
static long inside;

/* It is interrupted while it holds the lock, if that can be. */
static void *locks(void *arg)
{

	for (int i = 0; i < TURNS / 2; i++) {
		pthread_mutex_lock(&kernel_lock);
		inside++;
		for (volatile int n = 0; n < WORK; n++)
			;
		pthread_mutex_unlock(&kernel_lock);
	}
	return arg;
}

TEST_LIMIT(the_holder_of_a_lock_runs_while_others_sleep_for_it)
{
	marcel_t t[THREADS];

	inside = 0;
	for (int i = 0; i < THREADS; i++)
		t[i] = start(locks, NULL);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(inside, THREADS * TURNS / 2);
}

/* --- main, on the only kernel thread that computes --- */

static int fds[2];

static void *sleeps_unannounced(void *arg)
{
	char c;

	CHECK_INT(syscall(SYS_read, fds[0], &c, 1), 1);
	return arg;
}

static void *computes(void *arg)
{
	while (load_relaxed(&stop) == 0)
		;
	return arg;
}

/* Each other one sleeps unannounced. Main sleeps, too, and comes back. */
static void sleep_beside(void *(*other)(void *))
{
	int n = marcel_nvp();
	marcel_t t[4];

	CHECK_INT(pipe(fds), 0);
	for (int i = 0; i < 2 * n; i++)
		t[i] = start(i % 2 ? other : sleeps_unannounced, NULL);
	for (int i = 0; i < 10; i++)
		CHECK_INT(marcel_usleep(2000), 0);
	store_relaxed(&stop, 1);
	for (int i = 0; i < 2 * n; i++)
		CHECK_INT(write(fds[1], "x", 1), 1);
	for (int i = 0; i < 2 * n; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	close(fds[0]);
	close(fds[1]);
}

TEST_LIMIT(main_comes_back_from_a_sleep)
{
	sleep_beside(computes);
}

/* LWP 0, too, with its VP. */
TEST_LIMIT(main_comes_back_though_all_others_sleep)
{
	sleep_beside(sleeps_unannounced);
}

/* --- main, asleep on the kernel thread that another needs --- */

/* It is interrupted on LWP 0, where it began, and ends main's sleep. */
static void *ends_the_sleep(void *arg)
{
	while (load_acquire(&stop) == 0)
		;
	CHECK_INT(write(fds[1], "x", 1), 1);
	return arg;
}

static void sleep_for_one_of(int priority)
{
	marcel_attr_t attr;
	marcel_t t;
	char c;

	CHECK_INT(pipe(fds), 0);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setpriority(&attr, priority), 0);
	CHECK_INT(marcel_create(&t, &attr, ends_the_sleep, NULL), 0);
	CHECK_INT(marcel_usleep(3000), 0);
	store_release(&stop, 1);
	CHECK_INT(syscall(SYS_read, fds[0], &c, 1), 1);
	CHECK_INT(marcel_join(t, NULL), 0);
	close(fds[0]);
	close(fds[1]);
}

TEST_LIMIT(main_asleep_makes_way_on_its_lwp)
{
	sleep_for_one_of(MARCEL_PRIORITY_NORMAL);
}

TEST_LIMIT(main_asleep_makes_way_for_the_idle_band_too)
{
	sleep_for_one_of(MARCEL_PRIORITY_IDLE);
}

/* --- who is to post waits for the VP of those that wait --- */

static sem_t units, none;

static void *waits(void *arg)
{
	CHECK_INT(marcel_io_sem_wait(sem_wait, &units), 0);
	return arg;
}

static void *posts(void *arg)
{
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(sem_post(&units), 0);
	return arg;
}

static void *is_late(void *arg)
{
	const struct timespec soon = { .tv_nsec = 1 };

	CHECK_INT(marcel_io_sem_timedwait(sem_timedwait, &none, &soon), -1);
	CHECK_INT(errno, ETIMEDOUT);
	return arg;
}

TEST_LIMIT(libcs_semaphores_hold_up_nobody)
{
	marcel_t t[THREADS], late, p;

	CHECK_INT(sem_init(&units, 0, 0), 0);
	CHECK_INT(sem_init(&none, 0, 0), 0);
	for (int i = 0; i < THREADS; i++)
		t[i] = start(waits, NULL);
	late = start(is_late, NULL);
	p = start(posts, NULL);
	CHECK_INT(marcel_join(late, NULL), 0);
	CHECK_INT(marcel_join(p, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(sem_destroy(&units), 0);
	CHECK_INT(sem_destroy(&none), 0);
}
