/*
 * The life of a virtual processor: its idle loop, its start and stop.
 */
#include "vp.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <base/clock.h>
#include <base/diag.h>
#include "../os/os.h"
#include "../signal/signal.h"
#include "../thread/cputime.h"
#include "../thread/overflow.h"
#include "../thread/stack.h"
#include "hook.h"
#include "place.h"
#include "runq.h"
#include "switch.h"
#include "tasklet.h"
#include "tick.h"

/* LWP 0 drives VP 0: whoever waited for it is ready. */
static BASE_COLD struct marcel_thread *take_stuck(struct marcel_vp *vp)
{
	struct base_link *n = base_list_take_front(&vp->stuck);

	store_relaxed(&vp->nstuck, load_relaxed(&vp->nstuck) - 1);
	return container_of(n, struct marcel_thread, link);
}

void marcel_vp_attach(struct marcel_vp *vp, struct marcel_lwp *l)
{
	if (unlikely(load_relaxed(&vp->nstuck) != 0) && l == &marcel_lwps.first)
		while (load_relaxed(&vp->nstuck) != 0)
			marcel_runq_push_to(vp, take_stuck(vp));
	vp->idle = &l->idle;
	vp->errno_addr = l->errno_addr;
	vp->exceptions = l->exceptions;
	vp->passes = l->is_low;
	if (unlikely(l->only != NULL) || (unlikely(l == &marcel_lwps.first) &&
					  marcel_lwps.ninterrupted != 0)) {
		vp->passes = true;
		/* No short ways. */
		vp->handovers = MARCEL_HANDOVERS_MAX;
		vp->fair_at = load_relaxed(&vp->picks) + 1;
	}
	if (marcel_sched.bind && l->cpu != vp->cpu && os_cpu_bind(vp->cpu) == 0)
		l->cpu = vp->cpu;
}

/* It slept, and is told that it does no more. */
static void rouse(struct marcel_vp *vp)
{
	struct marcel_lwp *spare;

	/* Whoever ends a section sleeps there, too, until the claim is over. */
	os_futex_wake(&vp->sleeper.asleep, 1);
	/* order(section): it says that it is in one, or looks at the sleeper */
	if (unlikely(load_seq(&vp->owner) & MARCEL_SECTION) &&
	    (spare = load_relaxed(&vp->stand_in)) != NULL) {
		marcel_monitor_vp_wakes(vp); /* it may be starved */
		marcel_lwp_tell(spare);
	}
}

/*
 * A user thread that has lost its VP may call this, and is not inside: a tick
 * would have it wait for a VP, which may be the one that it has not roused yet.
 */
bool marcel_vp_wake(struct marcel_vp *vp, bool own)
{
	bool slept;

	cpu_tls_pin(1);
	slept = marcel_idle_wake(&marcel_sched.idle, &vp->sleeper, own);
	if (slept)
		rouse(vp);
	cpu_tls_pin(-1);
	return slept;
}

/* --- idle --- */

enum {
	OVERSUBSCRIBED_YIELDS = 3, /* then sleep: others need this CPU */
	SPINS_PER_LOOK = 20,       /* cpu_relax() between two looks */
	LOOKS_PER_ROB = 8,         /* others' slots change all the time */
	WATCH_NS = 1000000,        /* from one look at the slots to the next */
};

/*
 * The word w that the caller leaves counts so many other VPs as idle: whether
 * the slot of one that is not idle holds what nobody would look at.
 */
static bool leaves_slots(struct marcel_vp *vp, uint64_t w, unsigned idle)
{
	return marcel_idle_is_unwatched(w) &&
	       idle < (unsigned)marcel_sched.nvp - 1 &&
	       marcel_runq_look_slots(vp);
}

/*
 * Found while searching: the last searcher wakes the next for more, which may
 * also be work for hooks that was kicked while we were the only searcher.
 */
static void found(struct marcel_vp *vp)
{
	uint64_t w = marcel_idle_found(&marcel_sched.idle);
	unsigned sleepers = marcel_idle_sleepers(w);

	if (marcel_idle_searchers(w) == 0 && sleepers != 0 &&
	    (marcel_runq_look_shared() || leaves_slots(vp, w, sleepers) ||
	     marcel_hook_run(vp, MARCEL_HOOK_IDLE) != MARCEL_HOOK_NOTHING))
		marcel_runq_wake_one(vp);
}

void marcel_vp_settle(struct marcel_vp *vp)
{
	marcel_monitor_vp_wakes(vp);
	if (marcel_idle_undoze(&marcel_sched.idle, &vp->sleeper, MARCEL_ASLEEP))
		found(vp);
}

/* The VP was not asleep, and is no searcher any more. */
static void called_away(struct marcel_vp *vp)
{
	/* order(idle): who took us out of the count; the slots are next */
	uint64_t w = fetch_add_seq(&marcel_sched.idle.word, 0);

	if (leaves_slots(vp, w, marcel_idle_sleepers(w)))
		marcel_runq_wake_one(vp);
}

static bool sleep_long(struct marcel_vp *vp)
{
	bool searches;

	marcel_trace_vp(vp, MARCEL_TRACE_SLEEP, 0, NULL);
	marcel_monitor_vp_sleeps(vp);
	searches = marcel_idle_sleep_timed(&marcel_sched.idle, &vp->sleeper,
					   &vp->timers);
	marcel_monitor_vp_wakes(vp);
	marcel_trace_vp(vp, MARCEL_TRACE_WAKE, 0, NULL);
	return searches;
}

/* No longer than until the first timer is due. */
static uint64_t watch_ns(struct marcel_vp *vp)
{
	uint64_t next = load_relaxed(&vp->timers.next), now;

	if (likely(next == 0))
		return WATCH_NS;
	now = base_now_ns();
	if (next <= now)
		return 0;
	return next - now < WATCH_NS ? next - now : WATCH_NS;
}

static bool watch(struct marcel_vp *vp)
{
	bool searches;

	marcel_trace_vp(vp, MARCEL_TRACE_SLEEP, 1, NULL);
	searches = marcel_idle_watch(&marcel_sched.idle, &vp->sleeper,
				     watch_ns(vp));
	marcel_trace_vp(vp, MARCEL_TRACE_WAKE, 0, NULL);
	return searches;
}

/*
 * Nothing was found for long enough. Publish that, look at everything once
 * more, and sleep, or watch. True: we still are, or again, a searcher. Hooks
 * come first: whom they wake, whatever they answer, is in queues of our own,
 * and nobody else looks there.
 */
static bool doze(struct marcel_vp *vp, uint32_t how)
{
	struct marcel_idle *idle = &marcel_sched.idle;
	uint64_t w = marcel_idle_doze(idle, &vp->sleeper, how);
	bool searches;

	if (load_seq(&vp->stop) || /* order(idle) */
	    marcel_hook_run(vp, MARCEL_HOOK_IDLE) != MARCEL_HOOK_NOTHING ||
	    marcel_runq_look(vp) ||
	    leaves_slots(vp, w, marcel_idle_sleepers(w) - 1))
		searches = marcel_idle_undoze(idle, &vp->sleeper, how);
	else if (how == MARCEL_WATCHING)
		searches = watch(vp);
	else
		return sleep_long(vp);
	if (!searches)
		called_away(vp);
	return searches;
}

/* To watch makes sense while somebody may push to a slot. */
static uint32_t how_to_doze(void)
{
	uint64_t w = load_relaxed(&marcel_sched.idle.word);

	return marcel_idle_sleepers(w) + marcel_idle_searchers(w) <
			       (unsigned)marcel_sched.nvp
		       ? MARCEL_WATCHING
		       : MARCEL_ASLEEP;
}

/* Whether others seem to have left something for this VP alone. */
static bool is_brought_some(struct marcel_vp *vp)
{
	return !base_mpsc_is_empty(&vp->remote) ||
	       load_relaxed(&vp->above[0]->bands) != 0 ||
	       marcel_tasklets_are_pending(vp) || marcel_hook_wants_idle(vp);
}

/*
 * Between two looks at what others have, which disturbs them; what is brought
 * to this VP ends it. While hooks poll, each look may bring a message.
 */
static void pause_search(struct marcel_vp *vp, enum marcel_hook_answer answer)
{
	int spins = answer == MARCEL_HOOK_PENDING ? 1 : SPINS_PER_LOOK;

	if (marcel_sched.oversubscribed) {
		sched_yield();
		return;
	}
	do
		cpu_relax();
	while (--spins > 0 && !is_brought_some(vp));
}

/* The VP counts as a searcher. Until a thread can run here; NULL: stop. */
static struct marcel_thread *search_on(struct marcel_vp *vp)
{
	enum marcel_hook_answer answer;
	struct marcel_thread *t;
	uint32_t how = MARCEL_AWAKE; /* it has dozed */
	unsigned tries = 0, looks = 0;
	uint64_t since = 0;

	for (;;) {
		store_relaxed(&vp->searched, load_relaxed(&vp->searched) + 1);
		if (marcel_timers_are_armed(&vp->timers))
			marcel_timers_look(&vp->timers);
		if (marcel_tasklets_are_pending(vp)) {
			marcel_tasklets_run(vp);
			tries = 0;
		}
		marcel_runq_attend(vp);
		t = marcel_runq_pick(vp);
		if (t == NULL)
			t = marcel_runq_steal(vp);
		if (t == NULL && looks++ % LOOKS_PER_ROB == 0)
			t = marcel_runq_rob(vp);
		if (t != NULL || load_relaxed(&vp->stop)) {
			found(vp);
			return t;
		}
		answer = marcel_hook_run(vp, MARCEL_HOOK_IDLE);
		if (answer == MARCEL_HOOK_WORKED) {
			tries = 0;
			continue;
		}
		t = marcel_runq_pick_idle(vp);
		if (t != NULL) {
			found(vp);
			return t;
		}
		if (tries++ == 0)
			since = base_now_ns();
		if (marcel_sched.oversubscribed
			    ? tries <= OVERSUBSCRIBED_YIELDS
			    : base_now_ns() - since < marcel_sched.spin_ns) {
			pause_search(vp, answer);
		} else if (answer == MARCEL_HOOK_PENDING) {
			sched_yield();
		} else {
			how = how == MARCEL_WATCHING ? MARCEL_ASLEEP
						     : how_to_doze();
			if (!doze(vp, how))
				marcel_idle_search(&marcel_sched.idle);
			if (how == MARCEL_ASLEEP)
				tries = 0;
			looks = 0;
		}
	}
}

static struct marcel_thread *search(struct marcel_vp *vp)
{
	marcel_idle_search(&marcel_sched.idle);
	return search_on(vp);
}

/* Not on its way into the runtime, where it may wait for something already. */
static void take_signals(struct marcel_thread *t)
{
	if (marcel_thread_has(t, MARCEL_F_SIGNAL) && !t->rest->returns)
		marcel_signal_arrive(t);
}

/*
 * t is kept by an LWP that waits: for t itself, which then goes on by itself;
 * or, as LWP 0 may, in its idle thread or another thread that it keeps, which
 * then switches to t. If LWP 0 is busy with a thread that has lost its VP, t
 * has to wait until that one comes back, and then is first.
 */
bool marcel_vp_enters_slow(struct marcel_vp *vp, struct marcel_thread *t)
{
	struct marcel_lwp *l = t->rest->lwp;
	struct marcel_thread *self;

	if (marcel_thread_has(t, MARCEL_F_MOVES) && !marcel_place_arrive(vp, t))
		return false;
	if (!marcel_thread_has(t, MARCEL_F_KEPT) || l == marcel_vp_lwp(vp)) {
		take_signals(t);
		return true;
	}
	self = load_relaxed(&l->self);
	if (self == t) {
		vp->give = l;
		if (unlikely(load_relaxed(&vp->nstuck) != 0) &&
		    l == &marcel_lwps.first) {
			/* t, in no queue now, cannot be let loose. */
			store_relaxed(&l->is_given, 1);
			vp->handed = take_stuck(vp);
			marcel_runq_push_to(vp, t);
		}
	} else if (self == &l->idle || marcel_levelq_claim(vp->above[0], l)) {
		vp->give = l;
		vp->handed = t;
	} else {
		base_list_push_back(&vp->stuck, &t->link);
		store_relaxed(&vp->nstuck, load_relaxed(&vp->nstuck) + 1);
	}
	return false;
}

/*
 * Picked, and not run after all. As one that an LWP keeps is queued when that
 * begins: any VP may run it, but for what LWP 0 keeps, which VP 0 runs.
 */
static void put_back(struct marcel_vp *vp, struct marcel_thread *t)
{
	if (!marcel_thread_has(t, MARCEL_F_KEPT))
		marcel_runq_push(vp, t);
	else if (t->rest->lwp == &marcel_lwps.first)
		marcel_runq_push_to(vp, t);
	else
		marcel_runq_push(NULL, t);
}

/*
 * t came with the VP. What ran before it here, hooks and tasklets, may have
 * woken a real-time thread, which nobody else sees while this VP drives none.
 */
static struct marcel_thread *before(struct marcel_vp *vp,
				    struct marcel_thread *t)
{
	struct marcel_thread *urgent;

	if (likely(!marcel_runq_is_urgent()) || marcel_thread_is_urgent(t))
		return t;
	urgent = marcel_runq_pick_urgent(vp);
	if (urgent == NULL)
		return t;
	put_back(vp, t);
	return urgent;
}

/* What came with the VP, or is ready, or turns up. NULL: stop. */
static struct marcel_thread *next_thread(struct marcel_vp *vp)
{
	struct marcel_thread *t = vp->handed;

	if (unlikely(load_relaxed(&vp->hook_due) != 0)) {
		store_relaxed(&vp->hook_due, 0);
		marcel_hook_run(vp, MARCEL_HOOK_TICK);
	}
	if (marcel_tasklets_are_pending(vp))
		marcel_tasklets_run(vp);
	if (t != NULL) {
		vp->handed = NULL;
		return before(vp, t);
	}
	/* Threads that compute, one after the other, look at none. */
	if (marcel_timers_are_armed(&vp->timers))
		marcel_timers_look(&vp->timers);
	marcel_runq_attend(vp);
	t = marcel_runq_pick(vp);
	return t != NULL ? t : search(vp);
}

static struct marcel_vp *leave_idle(struct marcel_vp *vp, struct marcel_lwp *l,
				    struct marcel_thread *t)
{
	if (unlikely(marcel_sched.counts_cpu))
		marcel_cputime_leaves(l);
	return marcel_switch(vp, &l->idle, t);
}

void marcel_vp_idle(struct marcel_lwp *l)
{
	struct marcel_vp *vp = load_relaxed(&l->vp);
	struct marcel_thread *t;

	for (;;) {
		if (unlikely(vp->give != NULL)) {
			vp = marcel_lwp_give(vp);
			if (vp == NULL)
				return;
		}
		t = next_thread(vp);
		if (t == NULL)
			return;
		if (!marcel_thread_has(t, MARCEL_F_POLLS))
			store_relaxed(&vp->entered,
				      load_relaxed(&vp->entered) + 1);
		if (load_relaxed(&t->state) == MARCEL_T_NEW &&
		    unlikely(!marcel_switch_equip(vp, t)))
			sched_yield();
		else if (likely(marcel_vp_enters(vp, t)))
			vp = leave_idle(vp, l, t);
	}
}

/* --- start, stop --- */

int marcel_vp_start(struct marcel_vp *vp)
{
	struct marcel_lwp *l = marcel_lwp_get(false);

	if (l == NULL)
		return -EAGAIN;
	marcel_lwp_hand(vp, l);
	return 0;
}

void marcel_vp_stop(struct marcel_vp *vp)
{
	store_seq(&vp->stop, 1); /* order(idle) */
	marcel_vp_wake(vp, true);
}

/* --- init, exit --- */

enum { DEQUE_SIZE = 1 << 10 };

static void init_above(struct marcel_vp *vp)
{
	struct marcel_topo *topo = &marcel_sched.topo;
	struct marcel_level *l = marcel_topo_leaf(topo, vp->id);

	for (; l != NULL; l = l->parent) {
		unsigned n = marcel_topo_number(topo, l);

		base_check(vp->nabove < MARCEL_ABOVE_MAX);
		vp->above[vp->nabove++] = &marcel_sched.levelqs[n];
	}
}

int marcel_vp_init(struct marcel_vp *vp, int id)
{
	memset(vp, 0, sizeof(*vp));
	vp->id = id;
	vp->sole = marcel_sched.nvp == 1;
	vp->fair_due = MARCEL_PICKS_FAIR;
	vp->fair_at = marcel_sched.random.on ? 1 : vp->fair_due;
	vp->handovers = marcel_sched.random.on ? MARCEL_HANDOVERS_MAX : 0;
	base_list_init(&vp->bound);
	base_list_init(&vp->stuck);
	store_relaxed(&vp->is_watched, 1);
	base_mpsc_init(&vp->remote);
	marcel_timers_init(&vp->timers);
	init_above(vp);
	vp->victims = calloc((size_t)marcel_sched.nvp, sizeof(*vp->victims));
	vp->slot_seen =
		calloc((size_t)marcel_sched.nvp, sizeof(*vp->slot_seen));
	if (vp->victims == NULL || vp->slot_seen == NULL ||
	    marcel_deque_init(&vp->fifo, DEQUE_SIZE) < 0 ||
	    marcel_deque_init(&vp->seeds, DEQUE_SIZE) < 0) {
		marcel_vp_exit(vp);
		return -ENOMEM;
	}
	for (int i = 0; i < marcel_sched.nvp - 1; i++) {
		int n = marcel_topo_neighbour(&marcel_sched.topo, id, i);

		vp->victims[i] = &marcel_sched.vps[n];
	}
	return 0;
}

void marcel_vp_exit(struct marcel_vp *vp)
{
	marcel_deque_exit(&vp->fifo);
	marcel_deque_exit(&vp->seeds);
	free(vp->slot_seen);
	free(vp->victims);
	vp->victims = NULL;
}
