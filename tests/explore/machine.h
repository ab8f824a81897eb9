/*
 * The scheduler's own queues, search, sleep and hooks, on a machine of paper:
 * up to three VPs below one level, threads that are only descriptors.
 */
#ifndef TESTS_EXPLORE_MACHINE_H
#define TESTS_EXPLORE_MACHINE_H

#include "explore.h"

#include <string.h>

#include "../../marcel/sched/vp.c"
#include "../../marcel/sched/lwp.c"
#include "../../marcel/sched/monitor.c"
#include "../../marcel/sched/levelq.c"
#include "../../marcel/sched/runq.c"
#include "../../marcel/sched/hook.c"
#include "../../marcel/sched/tasklet.c"
#include "../../marcel/sched/enter.h"
#include "../../marcel/sched/timer.c"
#include "../../marcel/base/spin.c"

enum { VPS = 3, THREADS = 3, SLOTS = 4 };

struct marcel_sched marcel_sched;

static struct marcel_vp vps[VPS];
static struct marcel_lwp lwps[VPS];
static struct marcel_vp *victims[VPS][VPS];
static uint32_t slot_seen[VPS][VPS];
static struct marcel_levelq machine;
static struct marcel_level machine_level = { .vp = -1 };
static struct marcel_thread threads[THREADS];
static struct marcel_thread_rest rests[THREADS];
static int ran[THREADS];

/* Room for arrays with their slots. */
static char arrays[2 * VPS][sizeof(struct marcel_deque_array) +
			    SLOTS * sizeof(void *)] BASE_ALIGNED(8);
static int narrays;

/* --- what surrounds the scheduler --- */

void *explore_tls_word(void)
{
	return marcel_tls.lwp;
}

struct marcel_deque_array *marcel_deque_array_new(int64_t size)
{
	struct marcel_deque_array *a = (void *)arrays[narrays++];

	a->size = SLOTS;
	return a;
}

void marcel_deque_array_free(struct marcel_deque_array *a)
{
}

/* Time stands still. */
int clock_gettime(clockid_t clock, struct timespec *out)
{
	*out = (struct timespec){ .tv_sec = 1 };
	return 0;
}

int os_cpu_bind(int cpu)
{
	return 0;
}

/* Time passes as soon as nobody needs it. */
void os_futex_wait_for(void *word, uint32_t value, uint64_t ns)
{
}

/* Who yields lets others go on. */
int sched_yield(void)
{
	explore_relax();
	return 0;
}

int marcel_yield(void)
{
	explore_relax();
	return 0;
}

/* Nobody is favoured. */
bool marcel_thread_stays_urgent(struct marcel_thread *t)
{
	return true;
}

int marcel_nvp(void)
{
	return marcel_sched.nvp;
}

int marcel_is_running(void)
{
	return 1;
}

bool marcel_fork_is_left(void)
{
	return false;
}

void marcel_signal_arrive(struct marcel_thread *t)
{
}

void marcel_cputime_leaves(struct marcel_lwp *l)
{
}

bool marcel_place_arrive(struct marcel_vp *vp, struct marcel_thread *t)
{
	return true; /* none moves */
}

bool marcel_switch_equip(struct marcel_vp *vp, struct marcel_thread *t)
{
	return true;
}

void *marcel_ctx_switch(struct marcel_ctx *from, const struct marcel_ctx *to,
			void *vp)
{
	return vp;
}

void os_stack_bounds(char **low, size_t *bytes)
{
}

void marcel_thread_name(struct marcel_thread *t, const char *name)
{
}

int *marcel_os_errno(void)
{
	static int number;

	return &number;
}

/* Accesses that are `light` are seq_cst here, as if each passed a barrier. */
void os_barrier_all(void)
{
}

#define UNREACHED(type, name, ...)                                             \
	type name(__VA_ARGS__)                                                 \
	{                                                                      \
		explore_fail("%s is not part of this scenario", #name);        \
	}

UNREACHED(int, marcel_poller_create, pthread_t *out, void *(*fn)(void *),
	  void *arg)
UNREACHED(int, marcel_poller_start, void)
UNREACHED(void, marcel_poller_stop, void)
UNREACHED(void, marcel_poller_want_lwp, void)
UNREACHED(struct marcel_thread *, marcel_foreign_self, void)
UNREACHED(int, pthread_join, pthread_t t, void **out)
UNREACHED(void, os_thread_lowest, void)
UNREACHED(bool, os_thread_ordinary, pid_t tid)
UNREACHED(struct marcel_vp *, marcel_switch_exceptions, struct marcel_vp *vp,
	  struct marcel_thread *self, struct marcel_thread *next)
UNREACHED(pid_t, os_tid, void)
UNREACHED(void, marcel_tick_block, bool block)
UNREACHED(void, marcel_hush_end, struct marcel_lwp *l)
UNREACHED(void, marcel_call_allow, void)
UNREACHED(void, marcel_tick_send, struct marcel_lwp *l)
UNREACHED(bool, os_barrier_init, void)
UNREACHED(bool, os_thread_sleeps, pid_t tid)
UNREACHED(bool, os_thread_sleeps_on, pid_t tid)
UNREACHED(bool, os_may_leave, const void *context)
UNREACHED(void, os_thread_no_signals, void)
UNREACHED(void *, marcel_overflow_lwp_init, void)
UNREACHED(void, marcel_overflow_lwp_exit, void *stack)

/* --- the machine --- */

static struct marcel_exceptions no_exceptions;

static void set_up(int nvp)
{
	marcel_sched.vps = vps;
	marcel_sched.nvp = nvp;
	marcel_sched.robs = nvp > 1;
	marcel_sched.levelqs = &machine;
	marcel_sched.topo.levels = &machine_level;
	marcel_sched.topo.nlevels = 1;
	marcel_levelq_init(&machine);
	base_spin_init(&marcel_lwps.lock, BASE_RANK_POOL);
	explore_name(&marcel_sched.idle, sizeof(marcel_sched.idle), "idle");
	explore_name(&machine, sizeof(machine), "machine queue");
	for (int i = 0; i < nvp; i++) {
		struct marcel_vp *vp = &vps[i];

		vp->id = i;
		store_relaxed(&lwps[i].vp, vp);
		store_relaxed(&lwps[i].self, &lwps[i].idle);
		store_relaxed(&vp->owner, (uintptr_t)&lwps[i]);
		lwps[i].errno_addr = marcel_os_errno();
		lwps[i].exceptions = &no_exceptions;
		marcel_vp_attach(vp, &lwps[i]);
		vp->fair_at = vp->fair_due = MARCEL_PICKS_FAIR;
		base_list_init(&vp->bound);
		base_list_init(&vp->stuck);
		base_mpsc_init(&vp->remote);
		marcel_timers_init(&vp->timers);
		marcel_deque_init(&vp->fifo, SLOTS);
		marcel_deque_init(&vp->seeds, SLOTS);
		vp->above[vp->nabove++] = &machine;
		vp->victims = victims[i];
		vp->slot_seen = slot_seen[i];
		for (int k = 0; k < nvp - 1; k++)
			victims[i][k] = &vps[(i + k + 1) % nvp];
		explore_name(&vp->seeds, sizeof(vp->seeds), "seeds %d", i);
		explore_name(&vp->fifo, sizeof(vp->fifo), "fifo %d", i);
		explore_name(&vp->remote, sizeof(vp->remote), "remote %d", i);
		explore_name(&vp->timers, sizeof(vp->timers), "timers %d", i);
		explore_name(&vp->sleeper, sizeof(vp->sleeper), "sleeper %d",
			     i);
		explore_name(&vp->next, sizeof(vp->next), "slot %d", i);
		explore_name(&vp->calls, sizeof(vp->calls), "calls %d", i);
	}
	for (int i = 0; i < THREADS; i++) {
		store_relaxed(&threads[i].state, MARCEL_T_NEW);
		threads[i].home = -1;
		threads[i].rest = &rests[i];
		explore_name(&threads[i], sizeof(threads[i]), "thread %d", i);
	}
}

/* The caller drives this VP. */
static void be(struct marcel_vp *vp)
{
	marcel_tls.lwp = &lwps[vp->id];
}

/* Of a thread that lost the VP: somebody else drives that. */
static void expire_first(struct marcel_timer *t)
{
	marcel_runq_push(marcel_vp_self(), &threads[0]);
}

static BASE_UNUSED void arm_from_outside(struct marcel_vp *vp)
{
	static const struct marcel_timer_kind kind = { claim_always,
						       expire_first };
	static struct marcel_lwp lost;
	static struct marcel_timer timer;

	store_relaxed(&lost.vp, vp);
	marcel_tls.lwp = &lost;
	marcel_timer_set_ns(&timer, &kind, 1);
	marcel_timer_arm(&timer);
}

/* A VP with nothing to do: it runs one thread, which then keeps it busy. */
static void take_one_of(struct marcel_vp *vp)
{
	struct marcel_thread *t = marcel_runq_pick(vp);

	if (t == NULL)
		t = search(vp);
	if (t != NULL)
		ran[t - threads]++;
}

static BASE_UNUSED void take_one(struct marcel_vp *vp)
{
	be(vp);
	take_one_of(vp);
}

#endif
