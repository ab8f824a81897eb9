/*
 * Park and wake: the one way to sleep and the one way to become runnable.
 *
 * A park either brings an `after` action, which makes the thread visible to
 * its waker once the context is saved; or somebody can wake it already, and
 * then the wake may come before the thread has left. The state word tells the
 * waker which: order(park).
 *
 *	park(after)                     wake
 *	state = PARKED, relaxed
 *	context saved
 *	after publishes the thread ---> state is PARKED: RUNNING, push
 *
 *	park(NULL)                      wake
 *	context saved
 *	RUNNING -> PARKED by cas        PARKED: RUNNING, push
 *	  failed: it is WOKEN,          RUNNING -> WOKEN by cas: done
 *	  so RUNNING, push                failed: it is PARKED
 *
 * Between wake and run the queues hand the thread over, order(wake).
 *
 * A foreign thread runs `after` first, because its context needs no saving,
 * and then sleeps on its state word.
 */
#include <marcel/wait.h>

#include <errno.h>
#include <sched.h>

#include <base/diag.h>
#include "../os/os.h"
#include "../thread/look.h"
#include "enter.h"
#include "hook.h"
#include "runq.h"
#include "switch.h"
#include "wake.h"

enum { FOREIGN_SPINS = 200 }; /* a few us: cheaper than to sleep and be woken */

/* Its own timer, if it has one, it expires itself. */
static void sleep_foreign(struct marcel_thread *t, struct marcel_timers *alone)
{
	if (alone == NULL) {
		os_futex_wait(&t->state, MARCEL_T_PARKED);
	} else if (marcel_timers_sleep(alone, &t->state, MARCEL_T_PARKED)) {
		marcel_timers_run(alone);
		/* Unless somebody works on what we wait for. */
		if (load_relaxed(&t->state) == MARCEL_T_PARKED)
			sched_yield();
	}
}

static void park_foreign(struct marcel_thread *t, struct marcel_timers *alone)
{
	uint32_t s = MARCEL_T_RUNNING;

	if (unlikely(cpu_tls_in_handler()))
		base_handler_check("marcel", marcel_waits_name(load_relaxed(
						     &t->rest->waits)));
	for (int i = 0; i < FOREIGN_SPINS && !marcel_sched.oversubscribed;
	     i++) {
		if (load_relaxed(&t->state) == MARCEL_T_WOKEN)
			break; /* the compare-and-swap fails and acquires */
		cpu_relax();
	}
	if (cas_acquire(&t->state, &s, MARCEL_T_PARKED)) /* order(park) */
		while (load_acquire(&t->state) == MARCEL_T_PARKED)
			sleep_foreign(t, alone);
	store_relaxed(&t->state, MARCEL_T_RUNNING);
	marcel_san_acquire(t);
}

/* For park(NULL): the context is saved, wakers may push now. */
static void parked_after(void *arg)
{
	struct marcel_thread *t = arg;
	uint32_t s = MARCEL_T_RUNNING;

	if (cas_acq_rel(&t->state, &s, MARCEL_T_PARKED)) /* order(park): ctx */
		return;
	store_relaxed(&t->state, MARCEL_T_RUNNING);
	marcel_runq_push(marcel_vp_self(), t);
}

BASE_PUBLIC void marcel_park(marcel_after_fn after, void *arg)
{
	struct marcel_vp *vp = marcel_enter();
	struct marcel_thread *t;

	if (unlikely(vp == NULL)) {
		if (after != NULL)
			after(arg);
		park_foreign(marcel_foreign_self(), NULL);
		return;
	}
	t = marcel_vp_current(vp);
	marcel_hook_switch(vp, NULL);
	marcel_san_enter();
	if (after != NULL) {
		store_relaxed(&t->state, MARCEL_T_PARKED);
		vp->after = after;
		vp->after_arg = arg;
	} else if (load_acquire(&t->state) ==
		   MARCEL_T_WOKEN) { /* order(park) */
		store_relaxed(&t->state, MARCEL_T_RUNNING);
		goto woken;
	} else {
		vp->after = parked_after;
		vp->after_arg = t;
	}
	vp = marcel_switch_blocked(vp, t, marcel_switch_next(vp));
woken:
	marcel_san_leave();
	marcel_leave(vp);
	marcel_san_acquire(t);
}

void marcel_timer_park(struct marcel_timer *t)
{
	if (unlikely(t->in == &t->alone))
		park_foreign(t->thread, &t->alone);
	else
		marcel_park(NULL, NULL);
}

static void wake_kernel_thread(struct marcel_thread *t)
{
	/* order(park): all that the waker did. */
	if (xchg_release(&t->state, MARCEL_T_WOKEN) != MARCEL_T_PARKED)
		return;
	marcel_san_enter();
	os_futex_wake(&t->state, 1);
	marcel_san_leave();
}

BASE_PUBLIC void marcel_wake(marcel_t t)
{
	uint16_t flags = load_relaxed(&t->flags);
	uint32_t s, was = 0;
	struct marcel_vp *vp;

	marcel_san_release(t);
	if (unlikely(flags & (MARCEL_F_FOREIGN | MARCEL_F_EAGER)) ||
	    unlikely(load_relaxed(&marcel_sched.some_compute))) {
		if (flags & MARCEL_F_FOREIGN) {
			wake_kernel_thread(t);
			return;
		}
		if (flags & MARCEL_F_EAGER || marcel_thread_awaits_io(t))
			marcel_thread_favour_woken(t);
	}
	if (marcel_trace_is_here())
		marcel_trace_put(MARCEL_TRACE_READY, 0, (uintptr_t)t);
	s = load_acquire(&t->state); /* order(park) */
	if (unlikely(s == MARCEL_T_RUNNING) &&
	    cas_acq_rel(&t->state, &s, MARCEL_T_WOKEN)) /* order(park) */
		return;
	/* Else a second wake for one park. */
	base_assert(s == MARCEL_T_PARKED || s == MARCEL_T_NEW);
	marcel_san_enter();
	if (s == MARCEL_T_PARKED)
		store_relaxed(&t->state, MARCEL_T_RUNNING);
	vp = marcel_nest(&was);
	marcel_runq_push(vp, t);
	marcel_unnest(vp, was);
	marcel_san_leave();
}

static bool is_favoured_if_woken(struct marcel_thread *t)
{
	return unlikely(load_relaxed(&marcel_sched.some_compute)) &&
	       marcel_thread_awaits_io(t);
}

/*
 * Of n threads, those at the beginning that sleep, and that any VP may run:
 * they are made ready, and their number is returned.
 */
static unsigned make_ready(struct marcel_vp *vp, struct marcel_thread **t,
			   unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (unlikely(t[i]->home >= 0 ||
			     marcel_thread_has(t[i], MARCEL_F_FOREIGN |
							     MARCEL_F_SUBSET |
							     MARCEL_F_BAND |
							     MARCEL_F_EAGER)) ||
		    is_favoured_if_woken(t[i]) ||
		    /* order(park) */
		    load_acquire(&t[i]->state) != MARCEL_T_PARKED)
			return i;
		marcel_san_release(t[i]);
		marcel_trace_vp(vp, MARCEL_TRACE_READY, 0, t[i]);
		store_relaxed(&t[i]->state, MARCEL_T_RUNNING);
	}
	return n;
}

void marcel_wake_many(struct marcel_thread **t, unsigned n)
{
	uint32_t was = 0;
	struct marcel_vp *vp = marcel_nest(&was);
	unsigned some = 0;

	for (unsigned i = 0; i < n; i++) {
		/* The last one is what should run next. */
		if (vp != NULL)
			some = make_ready(vp, t + i, n - 1 - i);
		if (some != 0) {
			marcel_san_enter();
			marcel_runq_push_many(vp, t + i, some);
			marcel_san_leave();
		}
		i += some;
		marcel_wake(t[i]);
	}
	marcel_unnest(vp, was);
}

static void yield_after(void *arg)
{
	marcel_runq_push_behind(marcel_vp_self(), arg);
}

BASE_PUBLIC int marcel_yield(void)
{
	struct marcel_vp *vp = marcel_enter();
	struct marcel_thread *t, *next;

	if (unlikely(vp == NULL)) {
		sched_yield();
		return 0;
	}
	t = marcel_vp_current(vp);
	marcel_hook_switch(vp, "yield");
	marcel_san_enter();
	if (likely(vp->sole)) {
		next = marcel_runq_rotate_sole(vp, t);
		if (likely(next != NULL)) {
			vp = marcel_switch_ready(vp, t, next);
			goto yielded;
		}
		if (marcel_sched.random.on && marcel_runq_draws_stay(vp, t))
			goto yielded;
	}
	next = marcel_switch_other(vp, t);
	/* A thread of the idle band goes on if the idle loop finds no other. */
	if (next != vp->idle || vp->give != NULL ||
	    unlikely(marcel_thread_has(t, MARCEL_F_MOVES | MARCEL_F_SIGNAL)) ||
	    marcel_thread_band(t) == MARCEL_BAND_IDLE) {
		vp->after = yield_after;
		vp->after_arg = t;
		vp = marcel_switch_ready(vp, t, next);
	}
yielded:
	marcel_san_leave();
	marcel_leave(vp);
	return 0;
}

/* False: t is not to be had here, or others have waited long enough. */
static bool yield_to(struct marcel_vp **where, struct marcel_thread *t)
{
	struct marcel_vp *vp = *where;
	struct marcel_thread *self = marcel_vp_current(vp), *next;

	if (vp->handovers >= MARCEL_HANDOVERS_MAX || !marcel_runq_fetch(vp, t))
		return false;
	vp->handovers++;
	next = marcel_switch_to(vp, t);
	vp->after = yield_after;
	vp->after_arg = self;
	*where = marcel_switch_ready(vp, self, next);
	return true;
}

BASE_PUBLIC int marcel_yield_to(marcel_t t)
{
	struct marcel_vp *vp;
	bool yielded;

	if (!marcel_thread_is_alive(t))
		return ESRCH;
	vp = marcel_enter();
	if (vp == NULL || t == marcel_vp_current(vp)) {
		if (vp != NULL)
			marcel_leave(vp);
		return marcel_yield();
	}
	marcel_hook_switch(vp, "yield");
	marcel_san_enter();
	yielded = yield_to(&vp, t);
	marcel_san_leave();
	marcel_leave(vp);
	return yielded ? 0 : marcel_yield();
}

/* It stays on its LWP, whichever VP that drives, until it switches. */
BASE_PUBLIC int marcel_make_way(int on)
{
	struct marcel_lwp *l = cpu_tls_word();

	if (l == NULL)
		return 0;
	store_relaxed(&l->makes_way, on ? load_relaxed(&l->self) : NULL);
	return marcel_runq_is_urgent();
}

BASE_PUBLIC int marcel_asked_in_vain(void)
{
	enum { PATIENCE = 64 };
	struct marcel_lwp *l = cpu_tls_word();
	uint32_t n;

	if (l == NULL)
		return 0;
	if (unlikely(marcel_runq_is_urgent()))
		return 1;
	n = load_relaxed(&l->asked) + 1;
	store_relaxed(&l->asked, n);
	return unlikely(n % PATIENCE == 0) && marcel_others_ready();
}

BASE_PUBLIC int marcel_others_ready(void)
{
	struct marcel_vp *vp = marcel_enter();
	int others;

	if (vp == NULL)
		return 0;
	others = marcel_runq_seems_ready(
		vp, marcel_thread_band_now(marcel_vp_current(vp)));
	marcel_leave(vp);
	return others;
}
