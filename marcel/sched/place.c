/*
 * Where a thread may run, changed while it lives.
 *
 * Whoever pushes a thread reads where it may run, so only who holds it may
 * change that: the thread itself, or the VP that has picked it. Others leave
 * what they want in `wanted`, under a lock, and the flag MOVES, which a pick
 * looks at together with KEPT.
 */
#include "place.h"

#include <errno.h>
#include <stddef.h>

#include "../thread/look.h"
#include "enter.h"
#include "hook.h"
#include "private.h"
#include "runq.h"
#include "switch.h"
#include "tick.h"

struct base_spin marcel_place_lock = BASE_SPIN_INIT(BASE_RANK_LEAF);

/* The VPs of the set that exist; how many, and the last. */
static int cut(const marcel_vpset_t *set, marcel_vpset_t *out, int *last)
{
	int n = 0;

	marcel_vpset_zero(out);
	for (int i = 0; i < marcel_sched.nvp; i++) {
		if (!marcel_vpset_has(set, i))
			continue;
		marcel_vpset_add(out, i);
		*last = i;
		n++;
	}
	return n;
}

int marcel_place_set(struct marcel_thread *t, const marcel_vpset_t *set)
{
	marcel_vpset_t there;
	int last = -1, n = cut(set, &there, &last);

	if (n == 0)
		return EINVAL;
	fetch_and_relaxed(&t->flags,
			  (uint16_t) ~(MARCEL_F_SUBSET | MARCEL_F_MOVES));
	t->home = -1;
	if (n == 1 && marcel_sched.nvp > 1) {
		t->home = (int16_t)last;
	} else if (n < marcel_sched.nvp || marcel_private_is(t)) {
		t->rest->set = there;
		t->rest->level = marcel_topo_cover(&there);
		fetch_or_relaxed(&t->flags, MARCEL_F_SUBSET);
	}
	return 0;
}

bool marcel_place_arrive(struct marcel_vp *vp, struct marcel_thread *t)
{
	if (marcel_thread_has(t, MARCEL_F_KEPT) &&
	    t->rest->lwp == &marcel_lwps.first)
		return true;
	base_spin_lock(&marcel_place_lock);
	marcel_place_set(t, &t->rest->wanted);
	base_spin_unlock(&marcel_place_lock);
	if (marcel_thread_may_run(t, vp->id))
		return true;
	marcel_runq_push_behind(vp, t);
	return false;
}

/* --- for others --- */

static void want(struct marcel_thread *t, const marcel_vpset_t *set)
{
	base_spin_lock(&marcel_place_lock);
	t->rest->wanted = *set;
	fetch_or_relaxed(&t->flags, MARCEL_F_MOVES);
	base_spin_unlock(&marcel_place_lock);
	marcel_monitor_call_adrift();
}

/* --- for oneself --- */

static void moved_after(void *arg)
{
	marcel_runq_push_behind(marcel_vp_self(), arg);
}

static void go(struct marcel_thread *self, const marcel_vpset_t *set)
{
	struct marcel_vp *vp = marcel_enter();

	marcel_hook_switch(vp, "move");
	marcel_san_enter();
	base_spin_lock(&marcel_place_lock);
	marcel_place_set(self, set);
	base_spin_unlock(&marcel_place_lock);
	if (!marcel_thread_may_run(self, vp->id)) {
		vp->after = moved_after;
		vp->after_arg = self;
		vp = marcel_switch_ready(vp, self, marcel_switch_next(vp));
	}
	marcel_san_leave();
	marcel_leave(vp);
}

static int check(struct marcel_thread *t)
{
	if (!marcel_thread_is_alive(t))
		return ESRCH;
	return marcel_thread_has(t, MARCEL_F_FOREIGN) ? EINVAL : 0;
}

BASE_PUBLIC int marcel_setaffinity(marcel_t t, const marcel_vpset_t *set)
{
	int rc = check(t);

	if (rc != 0)
		return rc;
	if (set == NULL || marcel_topo_cover(set) == NULL)
		return EINVAL;
	if (marcel_thread_has(t, MARCEL_F_MAIN))
		return marcel_vpset_has(set, 0) ? 0 : EINVAL;
	if (marcel_sched.nvp == 1)
		return 0;
	if (t == marcel_thread_self())
		go(t, set);
	else
		want(t, set);
	return 0;
}

BASE_PUBLIC int marcel_getaffinity(marcel_t t, marcel_vpset_t *out)
{
	marcel_vpset_t set;
	int last, rc = check(t);

	if (rc != 0)
		return rc;
	marcel_vpset_zero(&set);
	marcel_san_enter();
	base_spin_lock(&marcel_place_lock);
	if (marcel_thread_has(t, MARCEL_F_MOVES))
		cut(&t->rest->wanted, &set, &last);
	else
		for (int i = 0; i < marcel_sched.nvp; i++)
			if (marcel_thread_may_run(t, i))
				marcel_vpset_add(&set, i);
	base_spin_unlock(&marcel_place_lock);
	marcel_san_leave();
	*out = set;
	return 0;
}
