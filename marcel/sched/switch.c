/*
 * Which thread is entered next, and what a new one is given first.
 */
#include "switch.h"

#include <base/clock.h>
#include <base/diag.h>
#include "../thread/stack.h"
#include "place.h"
#include "runq.h"

static bool begin(struct marcel_vp *vp, struct marcel_thread *t,
		  struct marcel_stack *s)
{
	if (unlikely(s == NULL)) {
		marcel_runq_push_behind(vp, t);
		return false;
	}
	t->stack = s;
	s->fn = t->fn; /* the context takes its place */
	marcel_san_new(t);
	marcel_ctx_make(&t->ctx, s, marcel_thread_first);
	store_relaxed(&t->state, MARCEL_T_RUNNING);
	return true;
}

/* It has another place to run, or a stack of another size. */
static BASE_COLD bool begin_otherwise(struct marcel_vp *vp,
				      struct marcel_thread *t)
{
	struct marcel_stack *s = t->stack; /* if it had to be had early */

	if (marcel_thread_has(t, MARCEL_F_MOVES) && !marcel_place_arrive(vp, t))
		return false;
	if (s == NULL)
		s = marcel_stack_get(vp, marcel_thread_has(t, MARCEL_F_STACK)
						 ? t->rest->stacksize
						 : marcel_sched.stacksize);
	return begin(vp, t, s);
}

bool marcel_switch_equip(struct marcel_vp *vp, struct marcel_thread *t)
{
	if (unlikely(marcel_thread_has(t, MARCEL_F_STACK | MARCEL_F_MOVES)))
		return begin_otherwise(vp, t);
	return begin(vp, t, marcel_stack_get(vp, marcel_sched.stacksize));
}

BASE_NOINLINE struct marcel_vp *
marcel_switch_exceptions(struct marcel_vp *vp, struct marcel_thread *self,
			 struct marcel_thread *next)
{
	struct marcel_exceptions mine = *vp->exceptions;

	*vp->exceptions = (struct marcel_exceptions){ 0 };
	vp = marcel_switch_bare(vp, self, next);
	*vp->exceptions = mine;
	return vp;
}

enum { SLICE_NS = 10000000 }; /* where there is no tick */

/*
 * An LWP of lowest priority has driven the VP long enough: another process on
 * its CPU would starve it. One of ordinary priority goes on.
 */
static BASE_COLD bool passes(struct marcel_vp *vp)
{
	struct marcel_lwp *first = &marcel_lwps.first;

	uint64_t slice =
		marcel_sched.slice_ns ? marcel_sched.slice_ns : SLICE_NS;

	if (base_now_ns() - vp->taken_ns < slice)
		return false;
	if (load_relaxed(&first->vp) == vp &&
	    load_relaxed(&first->self) == &first->idle)
		vp->give = first;
	else
		vp->give = marcel_lwp_get(false);
	return vp->give != NULL;
}

/* To enter t, or NULL, or what has to come first. */
static struct marcel_thread *prepare(struct marcel_vp *vp,
				     struct marcel_thread *t)
{
	if (t == NULL)
		return vp->idle;
	if (load_relaxed(&t->state) != MARCEL_T_NEW)
		return marcel_vp_enters(vp, t) ? t : vp->idle;
	/* Without memory for a stack the others go on; it stays queued. */
	return likely(marcel_switch_equip(vp, t)) ? t : vp->idle;
}

struct marcel_thread *marcel_switch_other(struct marcel_vp *vp)
{
	if (unlikely(vp->is_low) && passes(vp))
		return vp->idle;
	if (marcel_timers_are_armed(&vp->timers))
		marcel_timers_look(&vp->timers);
	return prepare(vp, marcel_runq_pick(vp));
}

struct marcel_thread *marcel_switch_to(struct marcel_vp *vp,
				       struct marcel_thread *t)
{
	return prepare(vp, t);
}

/* t is what was woken last, or NULL. */
static BASE_NOINLINE struct marcel_thread *next_of(struct marcel_vp *vp,
						   struct marcel_thread *t)
{
	if (t == NULL && unlikely(vp->is_low) && passes(vp))
		return vp->idle;
	if (marcel_timers_are_armed(&vp->timers))
		marcel_timers_look(&vp->timers);
	if (t == NULL)
		t = marcel_runq_pick(vp);
	if (t == NULL && !vp->sole)
		t = marcel_runq_steal(vp);
	return prepare(vp, t);
}

struct marcel_thread *marcel_switch_next(struct marcel_vp *vp)
{
	struct marcel_thread *t = NULL;

	if (likely(!vp->is_low) && (t = marcel_runq_pick_next(vp)) != NULL &&
	    likely(!marcel_thread_has(t, MARCEL_F_KEPT | MARCEL_F_MOVES)))
		return t;
	return next_of(vp, t);
}
