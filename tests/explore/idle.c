/*
 * A VP that goes to sleep against who pushes work, with the scheduler's own
 * queues, search and sleep: wherever the work comes from and however the steps
 * fall, a VP that may run it does not sleep over it.
 *
 * covers: idle, sleeper, mpsc
 */
#include "explore.h"

#include <string.h>

#include "../../marcel/sched/vp.c"
#include "../../marcel/sched/runq.c"
#include "../../marcel/base/spin.c"

enum { VPS = 3, THREADS = 3, SLOTS = 4 };

struct marcel_sched marcel_sched;

static struct marcel_vp vps[VPS];
static struct marcel_vp *victims[VPS][VPS];
static struct marcel_levelq machine;
static struct marcel_thread threads[THREADS];
static int ran[THREADS];

static struct {
	struct marcel_deque_array array;
	ATOMIC(void *) slot[SLOTS];
} arrays[2 * VPS];
static int narrays;

/* --- what surrounds the scheduler --- */

void *explore_tls_word(void)
{
	return marcel_tls.vp;
}

struct marcel_deque_array *marcel_deque_array_new(int64_t size)
{
	arrays[narrays].array.size = SLOTS;
	return &arrays[narrays++].array;
}

void marcel_deque_array_free(struct marcel_deque_array *a)
{
}

uint64_t os_now_ns(void)
{
	return 0;
}

void os_stack_bounds(char **low, size_t *bytes)
{
}

int os_thread_create(pthread_t *out, void *(*fn)(void *), void *arg)
{
	return 0;
}

int os_cpu_bind(int cpu)
{
	return 0;
}

void *marcel_overflow_lwp_init(void)
{
	return NULL;
}

void marcel_overflow_lwp_exit(void *stack)
{
}

enum marcel_hook_answer marcel_hook_run(struct marcel_vp *vp,
					enum marcel_hook_point point)
{
	return MARCEL_HOOK_NOTHING;
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

void marcel_thread_name(struct marcel_thread *t, const char *name)
{
}

/* --- the machine --- */

static void set_up(int nvp)
{
	marcel_sched.vps = vps;
	marcel_sched.nvp = nvp;
	marcel_sched.levelqs = &machine;
	marcel_sched.topo.nlevels = 1;
	marcel_levelq_init(&machine);
	explore_name(&marcel_sched.idle, sizeof(marcel_sched.idle), "idle");
	explore_name(&machine, sizeof(machine), "machine queue");
	for (int i = 0; i < nvp; i++) {
		struct marcel_vp *vp = &vps[i];

		vp->id = i;
		vp->fair_countdown = MARCEL_PICKS_FAIR;
		base_list_init(&vp->bound);
		base_mpsc_init(&vp->remote);
		marcel_deque_init(&vp->fifo, SLOTS);
		marcel_deque_init(&vp->seeds, SLOTS);
		vp->above[vp->nabove++] = &machine;
		vp->victims = victims[i];
		for (int k = 0; k < nvp - 1; k++)
			victims[i][k] = &vps[(i + k + 1) % nvp];
		explore_name(&vp->seeds, sizeof(vp->seeds), "seeds %d", i);
		explore_name(&vp->fifo, sizeof(vp->fifo), "fifo %d", i);
		explore_name(&vp->remote, sizeof(vp->remote), "remote %d", i);
		explore_name(&vp->sleeper, sizeof(vp->sleeper), "sleeper %d",
			     i);
	}
	for (int i = 0; i < THREADS; i++) {
		store_relaxed(&threads[i].state, MARCEL_T_NEW);
		threads[i].home = -1;
		explore_name(&threads[i], sizeof(threads[i]), "thread %d", i);
	}
}

/* A VP with nothing to do: it runs one thread, which then keeps it busy. */
static void take_one(struct marcel_vp *vp)
{
	struct marcel_thread *t;

	marcel_tls.vp = vp;
	t = marcel_runq_pick(vp);
	if (t == NULL)
		t = search(vp);
	if (t != NULL)
		ran[t - threads]++;
}

static void one(void *arg)
{
	take_one(arg);
}

static void two(void *arg)
{
	take_one(arg);
	take_one(arg);
}

/* It sleeps already. */
static void wakes(void *arg)
{
	struct marcel_vp *vp = arg;
	struct marcel_thread *t;

	marcel_tls.vp = vp;
	if (!marcel_idle_sleep(&vp->sleeper))
		marcel_idle_search(&marcel_sched.idle);
	t = search_on(vp);
	if (t != NULL)
		ran[t - threads]++;
}

/* A busy VP that makes threads. */
static void push_one(void *arg)
{
	marcel_tls.vp = &vps[0];
	marcel_runq_push(&threads[0]);
}

static void push_two(void *arg)
{
	push_one(arg);
	marcel_runq_push(&threads[1]);
}

static void push_foreign(void *arg)
{
	marcel_runq_push(&threads[1]);
}

static void push_bound(void *arg)
{
	threads[0].home = 1;
	marcel_tls.vp = &vps[0];
	marcel_runq_push(&threads[0]);
}

static void stop(void *arg)
{
	store_seq(&vps[1].stop, 1);
	marcel_idle_wake(&marcel_sched.idle, &vps[1].sleeper, true);
}

static void one_ran(void)
{
	explore_check(ran[0] + ran[1] + ran[2] == 1);
}

static void two_ran(void)
{
	explore_check(ran[0] == 1 && ran[1] == 1);
	explore_check(load_relaxed(&marcel_sched.idle.word) == 0);
}

EXPLORE(a_push_is_seen_by_who_falls_asleep)
{
	set_up(2);
	explore_spawn("pusher", push_one, NULL);
	explore_spawn("vp 1", one, &vps[1]);
	explore_finish(one_ran);
}

EXPLORE(two_pushes_are_two_threads_to_run)
{
	set_up(2);
	explore_spawn("pusher", push_two, NULL);
	explore_spawn("vp 1", two, &vps[1]);
	explore_finish(two_ran);
}

EXPLORE(a_foreign_push_is_seen)
{
	set_up(2);
	explore_spawn("foreign", push_foreign, NULL);
	explore_spawn("vp 1", one, &vps[1]);
	explore_finish(one_ran);
}

EXPLORE(a_push_to_a_bound_vp_is_seen)
{
	set_up(2);
	explore_spawn("pusher", push_bound, NULL);
	explore_spawn("vp 1", one, &vps[1]);
	explore_finish(one_ran);
}

EXPLORE(the_end_is_seen)
{
	set_up(2);
	explore_spawn("stopper", stop, NULL);
	explore_spawn("vp 1", one, &vps[1]);
}

EXPLORE(two_sleepers_get_two_threads)
{
	set_up(3);
	store_relaxed(&marcel_sched.idle.word, 2 * MARCEL_IDLE_SLEEPER);
	store_relaxed(&vps[1].sleeper.asleep, MARCEL_ASLEEP);
	store_relaxed(&vps[2].sleeper.asleep, MARCEL_ASLEEP);
	explore_spawn("pusher", push_two, NULL);
	explore_spawn("vp 1", wakes, &vps[1]);
	explore_spawn("vp 2", wakes, &vps[2]);
	explore_finish(two_ran);
}
