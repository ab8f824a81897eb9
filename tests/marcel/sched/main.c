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
#include <marcel/hook.h>
#include "../slice.h"

enum { WAKES = 30, SLICES_MAX = 1 };

static pthread_t lwp_0;

/*
 * Whom LWP 0 wakes takes its core, as the kernel gives it when it likes; or
 * gets none for a while, and LWP 0 goes on.
 */
static bool woken_are_first;

static void lose_core(void)
{
	struct timespec ms = { 0, 1000000 };

	syscall(SYS_nanosleep, &ms, NULL);
}

/* The linker puts these before every wake and every sleep of an LWP. */
void __real_os_futex_wake(void *word, int n);
void __wrap_os_futex_wake(void *word, int n);
void __real_os_futex_wait(void *word, uint32_t value);
void __wrap_os_futex_wait(void *word, uint32_t value);

void __wrap_os_futex_wake(void *word, int n)
{
	__real_os_futex_wake(word, n);
	if (woken_are_first && pthread_equal(pthread_self(), lwp_0))
		lose_core();
}

void __wrap_os_futex_wait(void *word, uint32_t value)
{
	__real_os_futex_wait(word, value);
	if (!woken_are_first && !pthread_equal(pthread_self(), lwp_0))
		lose_core();
}

static marcel_sem_t sem;
static ATOMIC(int) asked, posted, answered;

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
		/* Main waits, and another computes in its place. */
		while (load_relaxed(&ran) == 0)
			sched_yield();
		CHECK_INT(marcel_sem_post(&sem), 0);
		store_relaxed((ATOMIC(uint32_t) *)arg, slices());
		store_release(&posted, i);
		while (load_relaxed(&answered) < i)
			sched_yield();
	}
	return arg;
}

static void *computes_there(void *arg)
{
	while (load_relaxed(&stop) == 0)
		if (arg == NULL)
			store_relaxed(&ran, 1);
	return NULL;
}

static void wait_beside_computing(bool first)
{
	ATOMIC(uint32_t) after; /* the post */
	marcel_t busy[2];
	marcel_attr_t attr;
	pthread_t p;
	uint32_t now;
	int late = 0;

	lwp_0 = pthread_self();
	woken_are_first = first;
	store_relaxed(&asked, 0);
	store_relaxed(&posted, 0);
	store_relaxed(&answered, 0);
	CHECK_INT(marcel_sem_init(&sem, 0, 0), 0);
	marcel_attr_init(&attr);
	for (int i = 0; i < marcel_nvp(); i++) {
		marcel_attr_setvp(&attr, i);
		CHECK_INT(marcel_create(&busy[i], &attr, computes_there,
					(void *)(intptr_t)i),
			  0);
	}
	marcel_attr_destroy(&attr);
	CHECK_INT(pthread_create(&p, NULL, wakes, &after), 0);
	for (int i = 1; i <= WAKES; i++) {
		store_relaxed(&ran, 0);
		store_release(&asked, i);
		CHECK_INT(marcel_sem_wait(&sem), 0);
		now = slices();
		while (load_acquire(&posted) < i)
			sched_yield();
		late += (int32_t)(now - load_relaxed(&after)) > SLICES_MAX;
		store_relaxed(&answered, i);
	}
	/* Now and then a slice ends just then. */
	CHECK(late < WAKES / 2);
	store_relaxed(&stop, 1);
	for (int i = 0; i < marcel_nvp(); i++)
		CHECK_INT(marcel_join(busy[i], NULL), 0);
	CHECK_INT(pthread_join(p, NULL), 0);
}

TEST_TICK(it_waits_for_the_end_of_a_slice_and_no_longer, "1000")
{
	wait_beside_computing(true);
}

TEST_TICK(whoever_is_first_to_get_a_core, "1000")
{
	wait_beside_computing(false);
}

static enum marcel_hook_answer polls(void *arg, int vp)
{
	(void)arg;
	(void)vp;
	return MARCEL_HOOK_NOTHING;
}

/* At every tick it wants to be run, on another LWP, before anybody goes on. */
static void wait_beside_hook(bool first)
{
	struct marcel_hook hook = { .fn = polls };

	CHECK_INT(marcel_hook_add(MARCEL_HOOK_TICK, &hook), 0);
	wait_beside_computing(first);
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_TICK, &hook), 0);
}

TEST_TICK(beside_a_hook_that_polls_neither, "1000")
{
	wait_beside_hook(true);
}

TEST_TICK(beside_a_hook_whoever_is_first, "1000")
{
	wait_beside_hook(false);
}
