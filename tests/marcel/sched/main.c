/*
 * Main runs on its own kernel thread only, LWP 0. While it waits others compute
 * there; when it is woken it does not wait longer than any other.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <base/atomic.h>
#include "../slice.h"

enum { WAKES = 30, SLICES_MAX = 3 };

static pthread_t lwp_0;

/*
 * The linker puts this before every wake of an LWP: it takes the core from LWP
 * 0, which has woken it, as the kernel does when it likes.
 */
void __real_os_futex_wake(void *word, int n);
void __wrap_os_futex_wake(void *word, int n);

void __wrap_os_futex_wake(void *word, int n)
{
	struct timespec ms = { 0, 1000000 };

	__real_os_futex_wake(word, n);
	if (pthread_equal(pthread_self(), lwp_0))
		syscall(SYS_nanosleep, &ms, NULL);
}

static marcel_sem_t sem;
static ATOMIC(int) asked, answered;

/* Of the threads that compute on main's VP. */
static uint32_t slices(void)
{
	return load_relaxed(&marcel_sched.vps[0].preempted);
}

static void *wakes(void *arg)
{
	for (int i = 1; i <= WAKES; i++) {
		while (load_acquire(&asked) < i)
			sched_yield();
		/* Who has seen it wait computes by now. */
		while (load_relaxed(&ran) == 0)
			sched_yield();
		store_relaxed((ATOMIC(uint32_t) *)arg, slices());
		CHECK_INT(marcel_sem_post(&sem), 0);
		while (load_relaxed(&answered) < i)
			sched_yield();
	}
	return arg;
}

static void *computes_there(void *arg)
{
	store_relaxed(&ran, 1);
	return computes(arg);
}

TEST_TICK(it_waits_for_the_end_of_a_slice_and_no_longer, "1000")
{
	ATOMIC(uint32_t) before;
	marcel_t busy[2];
	marcel_attr_t attr;
	pthread_t p;
	int late = 0;

	lwp_0 = pthread_self();
	store_relaxed(&asked, 0);
	store_relaxed(&answered, 0);
	CHECK_INT(marcel_sem_init(&sem, 0, 0), 0);
	marcel_attr_init(&attr);
	for (int i = 0; i < marcel_nvp(); i++) {
		marcel_attr_setvp(&attr, i);
		CHECK_INT(marcel_create(&busy[i], &attr, computes_there, NULL),
			  0);
	}
	marcel_attr_destroy(&attr);
	CHECK_INT(pthread_create(&p, NULL, wakes, &before), 0);
	for (int i = 1; i <= WAKES; i++) {
		store_release(&asked, i);
		CHECK_INT(marcel_sem_wait(&sem), 0);
		late += slices() - load_relaxed(&before) > SLICES_MAX;
		store_relaxed(&answered, i);
	}
	/* Now and then the poster has lost its CPU since it looked. */
	CHECK(late < WAKES / 2);
	store_relaxed(&stop, 1);
	for (int i = 0; i < marcel_nvp(); i++)
		CHECK_INT(marcel_join(busy[i], NULL), 0);
	CHECK_INT(pthread_join(p, NULL), 0);
}
