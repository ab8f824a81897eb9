/*
 * Time for scenarios of marcel/sync: the real timers, each waiter's in the heap
 * of its VP, which the thread that calls time_passes() drives.
 */
#ifndef TESTS_EXPLORE_SYNC_TIMERS_H
#define TESTS_EXPLORE_SYNC_TIMERS_H

#include <setjmp.h>

#include "sync_world.h"

#define SPINS BASE_SPINS
#include "../../marcel/base/spin.c"
#undef SPINS
#include "../../marcel/sched/timer.c"
#include "../../marcel/sync/timed.c"
#include "../../marcel/thread/cancel.c"

int marcel_is_running(void)
{
	return 1;
}

/* When who waits waits until. */
static const struct timespec soon = { .tv_sec = 2 };

/* It is early for who waits, and late for who expires. */
static bool world_is_late[WORLD_THREADS];

int clock_gettime(clockid_t clock, struct timespec *out)
{
	*out = (struct timespec){ .tv_sec = world_is_late[explore_self()] ? 3
									  : 1 };
	return 0;
}

/* The threads of most scenarios, in this order. */
enum { WAITER = 1, GRANTER, EXPIRER, OTHER };

/* What who yields waits for; NULL: for others to go on. */
static void (*world_yield)(void);

int sched_yield(void)
{
	if (world_yield != NULL)
		world_yield();
	else
		explore_relax();
	return 0;
}

/* Accesses that are `light` are seq_cst here, as if each passed a barrier. */
bool os_barrier_init(void)
{
	return true;
}

void os_barrier_all(void)
{
}

void os_futex_wait_for(void *word, uint32_t value, uint64_t ns)
{
}

int marcel_thread_visit(int (*fn)(struct marcel_thread *t, void *arg),
			void *arg)
{
	return 0;
}

/* A descriptor is given back. */
static void (*world_put)(struct marcel_thread *t);

void marcel_thread_put(struct marcel_vp *vp, struct marcel_thread *t)
{
	if (world_put != NULL)
		world_put(t);
}

/* Where a thread that is cancelled goes. */
static jmp_buf world_end[WORLD_THREADS];

void marcel_exit(void *value)
{
	_longjmp(world_end[explore_self()], 1);
}

/* --- what a wait that may run out has come to --- */

static int granted, ran_out;
static BASE_UNUSED int others;
static ATOMIC(int) over; /* a: tells the time to stop */

static BASE_UNUSED void note(int rc)
{
	explore_check(rc == 0 || rc == ETIMEDOUT);
	if (rc == 0)
		granted++;
	else
		ran_out++;
	store_relaxed(&over, 1);
}

/*
 * The time of the waiter has come when it waits. With a guard: and nobody
 * holds that, so that it runs out for sure.
 */
static BASE_UNUSED void time_passes(void *arg)
{
	struct marcel_timers *ts = &world_vps[WAITER].timers;
	struct marcel_guard *g = arg;

	world_is_late[explore_self()] = true;
	do {
		while (!marcel_timers_are_armed(ts)) {
			if (load_relaxed(&over) != 0)
				return;
			explore_relax();
		}
		while (g != NULL && load_relaxed(&g->word) & MARCEL_GUARDED)
			explore_relax();
		marcel_timers_run(ts);
	} while (g != NULL);
}

/* The frames of the call that has just returned, where its timer was. */
static BASE_UNUSED void frames_are_gone(char *here)
{
	enum { DEPTH = 1024 };

	explore_gone(here - DEPTH, DEPTH);
}

static BASE_UNUSED void one_end(void)
{
	explore_check(granted + ran_out == 1);
	for (int i = 0; i < WORLD_THREADS; i++)
		explore_check(marcel_timers_check(&world_vps[i].timers) == 0);
}

static BASE_UNUSED void name_timers(void)
{
	for (int i = 0; i < WORLD_THREADS; i++)
		explore_name(&world_vps[i].timers, sizeof(struct marcel_timers),
			     "timers %d", i);
}

#endif
