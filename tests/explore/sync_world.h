/*
 * What marcel/sync stands on, as a scenario gives it: threads that are numbers,
 * and a park and wake that order as the real ones promise. Included before the
 * sources, it takes the place of the scheduler's headers.
 */
#ifndef TESTS_EXPLORE_SYNC_WORLD_H
#define TESTS_EXPLORE_SYNC_WORLD_H

#include "explore.h"

#include <base/compiler.h>
#include <marcel/sync.h>
#include <marcel/wait.h>
#include "../../marcel/sched/timer.h"
#include "../../marcel/sync/guard.h"
#include "../../marcel/thread/waits.h"

#define MARCEL_SCHED_ENTER_H
#define MARCEL_SCHED_RUNQ_H
#define MARCEL_SCHED_TICK_H
#define MARCEL_SCHED_VP_H
#define MARCEL_THREAD_THREAD_H

enum {
	MARCEL_F_FOREIGN = 1, /* nobody is */
	MARCEL_F_CANCEL = 2,
	MARCEL_F_SHELTER = 4,
	WORLD_THREADS = 8
};

enum { MARCEL_T_FREE, MARCEL_T_RUNNING, MARCEL_T_PARKED, MARCEL_T_ENDED };
enum { MARCEL_END_NONE };

struct marcel_stack {
	ATOMIC(struct marcel_timer *) wait;
};

struct marcel_thread_rest {
	ATOMIC(struct marcel_timer *) wait;
	ATOMIC(uint32_t) cancel;
};

struct marcel_thread {
	int number;
	struct marcel_thread *free;
	ATOMIC(uint16_t) flags;
	ATOMIC(uint32_t) state;
	ATOMIC(uintptr_t) ended;
	struct marcel_stack *stack;
	struct marcel_thread_rest *rest;
} BASE_ALIGNED(BASE_CACHE_LINE);

struct marcel_vp {
	int id;
	bool sole;
	struct marcel_timers timers;
};

struct marcel_lwp {
	ATOMIC(struct marcel_vp *) vp;
	ATOMIC(struct marcel_thread *) self;
	ATOMIC(uint32_t) inside;
};

#include "../../marcel/sched/wake.h"
#include "../../marcel/sync/adopt.c"

static struct marcel_thread world_threads[WORLD_THREADS];
static struct marcel_thread_rest world_rests[WORLD_THREADS];

/* Every thread has a VP of its own and always runs. */
static struct marcel_vp world_vps[WORLD_THREADS];
static struct marcel_lwp world_lwps[WORLD_THREADS];

static struct marcel_sched {
	bool oversubscribed;
	int nvp;
	struct marcel_vp *vps;
} marcel_sched;

static inline struct marcel_thread *marcel_thread_self(void)
{
	return &world_threads[explore_self()];
}

static inline struct marcel_vp *marcel_vp_self(void)
{
	return &world_vps[explore_self()];
}

static inline bool marcel_thread_here(struct marcel_thread **self,
				      struct marcel_vp **vp)
{
	*self = marcel_thread_self();
	*vp = marcel_vp_self();
	return true;
}

static inline struct marcel_vp *marcel_nest(uint32_t *was)
{
	return marcel_vp_self();
}

static inline void marcel_unnest(struct marcel_vp *vp, uint32_t was)
{
}

/* Who is a handler of signals that came anywhere. */
static bool world_within[WORLD_THREADS];

static inline bool marcel_is_within(void)
{
	return world_within[explore_self()];
}

static inline struct marcel_thread *marcel_vp_current(struct marcel_vp *vp)
{
	return &world_threads[vp->id];
}

static inline bool marcel_thread_has(struct marcel_thread *t, unsigned flags)
{
	return flags != MARCEL_F_FOREIGN && load_relaxed(&t->flags) & flags;
}

static inline void marcel_thread_use_rest(struct marcel_thread *t)
{
}

static inline struct marcel_lwp *marcel_vp_lwp(struct marcel_vp *vp)
{
	return &world_lwps[vp->id];
}

static inline void marcel_thread_waits(struct marcel_thread *t,
				       enum marcel_waits kind,
				       const void *object)
{
}

BASE_UNUSED void marcel_park(marcel_after_fn after, void *arg)
{
	if (after != NULL)
		after(arg);
	explore_park();
}

BASE_UNUSED void marcel_wake(marcel_t t)
{
	explore_unpark(t->number, true);
}

BASE_UNUSED void marcel_wake_many(struct marcel_thread **t, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		marcel_wake(t[i]);
}

BASE_UNUSED void marcel_timer_park(struct marcel_timer *t)
{
	explore_park();
}

void marcel_thread_put(struct marcel_vp *vp, struct marcel_thread *t);

int marcel_thread_visit(int (*fn)(struct marcel_thread *t, void *arg),
			void *arg);

static inline void marcel_monitor_wake(void)
{
}

/* Nobody is foreign. */
static inline void marcel_runq_guest_begin(void)
{
}

static inline void marcel_runq_guest_end(void)
{
}

bool marcel_vp_wake(struct marcel_vp *vp, bool own);
bool marcel_fork_has_left(const struct marcel_timers *ts);

BASE_UNUSED bool marcel_vp_wake(struct marcel_vp *vp, bool own)
{
	explore_fail("every thread has its VP");
}

BASE_UNUSED bool marcel_fork_has_left(const struct marcel_timers *ts)
{
	return false;
}

void *explore_tls_word(void)
{
	return &world_lwps[explore_self()];
}

/* guard.c's, without an end: who holds a guard always goes on. */
BASE_UNUSED void marcel_guard_pause(unsigned *turn)
{
	explore_relax();
}

/*
 * In the body of each scenario. Nobody is cancelled, unless the scenario lets
 * it; nobody spins for a holder that runs elsewhere,
 * and a weak compare-and-swap that fails for no reason is only tried again.
 */
BASE_UNUSED static void world_init(void)
{
	for (int i = 0; i < WORLD_THREADS; i++)
		world_threads[i].number = i;
	for (int i = 0; i < WORLD_THREADS; i++)
		world_threads[i].rest = &world_rests[i];
	for (int i = 0; i < WORLD_THREADS; i++) {
		store_relaxed(&world_threads[i].state, MARCEL_T_RUNNING);
		store_relaxed(&world_threads[i].flags, MARCEL_F_SHELTER);
	}
	for (int i = 0; i < WORLD_THREADS; i++)
		store_relaxed(&world_lwps[i].vp, &world_vps[i]);
	marcel_sched.vps = world_vps;
	marcel_sched.nvp = WORLD_THREADS;
	marcel_sched.oversubscribed = true;
	explore_spurious(0, 0);
	explore_name(world_threads, sizeof(world_threads), "threads");
}

#endif
