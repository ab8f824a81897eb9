/*
 * Announced blocking sections: <marcel/blocking.h>.
 *
 * In a section the VP counts as asleep: order(idle) sees to it that work which
 * comes meanwhile wakes it, and to wake it means to tell its spare, who takes
 * the VP if the section has not ended.
 *
 *	begin				waker
 *	asleep = 1; look at the queues	push; asleep: 1 -> 0
 *	owner = L | SECTION		owner has SECTION: tell the spare
 *	asleep != 1, or work was found?
 *	tell the spare
 *
 * Both store, then look at what the other stores: order(section). Whoever has
 * the VP afterwards, the one that ends the section or the spare, by one
 * compare-and-swap of the owner, puts the sleeper in order.
 *
 * Main's LWP must not sleep for another thread, nor for main while one that was
 * interrupted there needs it (then main parks instead: poller.h), and a spare
 * has the lowest priority, which is not to delay a thread that comes back; so a
 * thread on one of these first moves to an LWP of the pool.
 */
#include "../thread/cputime.h"
#include "block.h"
#include "enter.h"
#include "hook.h"
#include "poller.h"
#include "runq.h"
#include "switch.h"
#include "tick.h"

/* On an LWP where the thread may sleep; NULL: there is none. */
static struct marcel_vp *settle_down(struct marcel_vp *vp)
{
	struct marcel_thread *t = marcel_vp_current(vp);
	struct marcel_lwp *l = marcel_vp_lwp(vp), *to;

	if (marcel_thread_has(t, MARCEL_F_MAIN))
		return marcel_lwps.nkept == 0 ? vp : NULL;
	if (!l->is_low && l != &marcel_lwps.first)
		return vp;
	to = marcel_lwp_get(false);
	if (to == NULL)
		return NULL;
	vp->give = to;
	vp->handed = t;
	if (marcel_sched.counts_cpu)
		marcel_cputime_leaves(marcel_vp_lwp(vp));
	vp = marcel_switch(vp, t, vp->idle);
	/* On the way it may have moved, or taken signals. */
	return settle_down(vp);
}

static struct marcel_lwp *spare_of(struct marcel_vp *vp)
{
	struct marcel_lwp *l = load_relaxed(&vp->stand_in);

	if (likely(l != NULL))
		return l;
	if (marcel_poller_start() < 0)
		return NULL; /* nobody would make LWPs for it: poller.h */
	l = marcel_lwp_get(load_relaxed(&marcel_lwps.lowers) != 0);
	if (l != NULL) {
		store_relaxed(&l->vp, vp);
		store_relaxed(&vp->stand_in, l); /* seen by order(section) */
	}
	return l;
}

static bool begin(struct marcel_vp *vp)
{
	struct marcel_lwp *l, *spare;
	bool busy;

	vp = settle_down(vp);
	if (vp == NULL || (spare = spare_of(vp)) == NULL)
		return false;
	l = marcel_vp_lwp(vp);
	if (marcel_trace_is_here())
		marcel_trace_vp_text(vp, MARCEL_TRACE_BLOCK,
				     marcel_vp_current(vp), "system call");
	marcel_idle_absent(&marcel_sched.idle, &vp->sleeper);
	/*
	 * The spare sleeps no longer than until the first timer. Whom a hook
	 * wakes is ready here, whatever it answers.
	 */
	busy = load_seq(&vp->timers.next) != 0 || /* order(idle) */
	       marcel_runq_look(vp) ||
	       marcel_hook_run(vp, MARCEL_HOOK_IDLE) != MARCEL_HOOK_NOTHING ||
	       marcel_runq_look(vp);
	if (!busy)
		marcel_monitor_vp_sleeps(vp);
	/* order(section): the VP, for who takes it */
	store_seq(&vp->owner, (uintptr_t)l | MARCEL_SECTION);
	/* order(section): a waker may have looked at the owner before */
	if (busy || load_seq(&vp->sleeper.asleep) != MARCEL_ASLEEP)
		marcel_lwp_tell(spare);
	return true;
}

BASE_NO_TSAN bool marcel_block_may(struct marcel_lwp *l)
{
	return load_relaxed(&l->inside) == 0 && marcel_tls.pins == 0 &&
	       load_relaxed(&load_relaxed(&l->vp)->owner) == (uintptr_t)l &&
	       load_relaxed(&l->self) != &l->idle;
}

BASE_NO_TSAN bool marcel_is_within(void)
{
	struct marcel_lwp *l = cpu_tls_word();

	return (l != NULL && load_relaxed(&l->inside) != 0) ||
	       marcel_tls.pins != 0;
}

bool marcel_block_begin(void)
{
	struct marcel_vp *vp = marcel_enter();
	bool done;
	int saved;

	if (vp == NULL)
		return false;
	marcel_san_enter();
	saved = *vp->errno_addr;
	done = begin(vp);
	*marcel_os_errno() = saved;
	marcel_san_leave();
	/* The VP may be another's by now; the LWP is ours. */
	marcel_lwp_leaves(cpu_tls_word(), 0);
	return done;
}

void marcel_block_rise(void)
{
	struct marcel_lwp *l = cpu_tls_word();
	struct marcel_vp *vp;
	int saved;

	if (likely(l == NULL || !l->is_low) || !marcel_block_may(l) ||
	    marcel_lwp_here() != l)
		return;
	vp = marcel_enter();
	marcel_san_enter();
	saved = *vp->errno_addr;
	if (marcel_vp_lwp(vp)->is_low)
		settle_down(vp);
	*marcel_os_errno() = saved;
	marcel_san_leave();
	marcel_lwp_leaves(cpu_tls_word(), 0);
}
