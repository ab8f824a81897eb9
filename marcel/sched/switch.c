/*
 * Which thread is entered next, and what a new one is given first.
 */
#include "switch.h"

#include <base/clock.h>
#include <base/diag.h>
#include "../signal/signal.h"
#include "../thread/stack.h"
#include "place.h"
#include "private.h"
#include "runq.h"

static inline void make_context(struct marcel_thread *t, struct marcel_stack *s,
				void *top)
{
	s->fn = t->fn; /* the context takes its place */
	marcel_san_new(t);
	marcel_ctx_make(&t->ctx, top, marcel_thread_first);
	store_relaxed(&t->state, MARCEL_T_RUNNING);
}

void marcel_switch_begin(struct marcel_thread *t)
{
	make_context(t, t->stack, t->stack->low + t->stack->bytes);
}

/* top: where s ends, known to most */
static inline bool begin(struct marcel_vp *vp, struct marcel_thread *t,
			 struct marcel_stack *s, void *top)
{
	if (unlikely(s == NULL)) {
		marcel_runq_push_behind(vp, t);
		return false;
	}
	t->stack = s;
	make_context(t, s, top);
	return true;
}

/* It has another place to run, signals, or a stack of another size. */
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
	if (!begin(vp, t, s, s != NULL ? s->low + s->bytes : NULL))
		return false;
	if (marcel_thread_has(t, MARCEL_F_SIGNAL))
		marcel_signal_arrive(t);
	return true;
}

bool marcel_switch_equip(struct marcel_vp *vp, struct marcel_thread *t)
{
	struct marcel_stack *s;

	if (unlikely(marcel_thread_has(t, MARCEL_F_STACK | MARCEL_F_SLOW)))
		return begin_otherwise(vp, t);
	s = marcel_stack_get(vp, marcel_sched.stacksize);
	return begin(vp, t, s, s);
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

/* An LWP that was to come to a VP only while it is in a section. */
static bool is_over_slice(struct marcel_vp *vp)
{
	uint64_t slice =
		marcel_sched.slice_ns ? marcel_sched.slice_ns : SLICE_NS;

	return base_now_ns() - vp->taken_ns >= slice;
}

/* LWP 0, if it may go on with VP 0, or one of the pool. */
struct marcel_lwp *marcel_switch_successor(struct marcel_vp *vp)
{
	struct marcel_lwp *first = &marcel_lwps.first;

	if (load_relaxed(&first->vp) == vp &&
	    load_relaxed(&first->self) == &first->idle &&
	    marcel_lwps.ninterrupted == 0)
		return first;
	return marcel_lwp_get(false);
}

/* They may wake whom nobody has seen yet. */
static void look_at_timers(struct marcel_vp *vp)
{
	marcel_timers_look(&vp->timers);
	marcel_runq_attend(vp);
}

/*
 * From the thread that the LWP is for: with whom the VP goes on, if somebody
 * is ready, and on which LWP; private.c finds one if there is none.
 */
static struct marcel_thread *leave_private(struct marcel_vp *vp,
					   struct marcel_thread *self)
{
	struct marcel_thread *t;

	if (marcel_timers_are_armed(&vp->timers))
		look_at_timers(vp);
	t = self != NULL && marcel_thread_is_urgent(self)
		    ? marcel_runq_pick_urgent(vp)
		    : marcel_runq_pick(vp);
	vp->handovers = MARCEL_HANDOVERS_MAX; /* no short ways */
	if (t == NULL || (load_relaxed(&t->state) != MARCEL_T_NEW &&
			  !marcel_vp_enters(vp, t)))
		return vp->idle;
	vp->give = marcel_switch_successor(vp);
	if (vp->give != NULL)
		vp->handed = t;
	else
		marcel_runq_push_behind(vp, t);
	return vp->idle;
}

/*
 * The VP goes to another LWP, by way of the idle thread, if its own is one of
 * lowest priority that has driven it long enough (another process on its CPU
 * would starve it), or LWP 0 on which threads sit interrupted. If there is none
 * for that, one of these goes on. Or its own is for one thread: private.h.
 * NULL: anyone may. self: if it could go on itself.
 */
static BASE_COLD struct marcel_thread *pass(struct marcel_vp *vp,
					    struct marcel_thread *self)
{
	bool is_first = marcel_vp_lwp(vp) == &marcel_lwps.first;

	if (marcel_vp_lwp(vp)->only != NULL)
		return leave_private(vp, self);
	if (!is_first && !is_over_slice(vp))
		return NULL;
	vp->give =
		is_first ? marcel_lwp_get(false) : marcel_switch_successor(vp);
	if (vp->give != NULL)
		return vp->idle;
	return is_first ? marcel_runq_take_kept(vp, &marcel_lwps.first, true)
			: NULL;
}

/* To enter t, or NULL, or what has to come first. */
static inline struct marcel_thread *prepare(struct marcel_vp *vp,
					    struct marcel_thread *t)
{
	if (t == NULL)
		return vp->idle;
	if (load_relaxed(&t->state) != MARCEL_T_NEW)
		return marcel_vp_enters(vp, t) ? t : vp->idle;
	/* Without memory for a stack the others go on; it stays queued. */
	return likely(marcel_switch_equip(vp, t)) ? t : vp->idle;
}

struct marcel_thread *marcel_switch_other(struct marcel_vp *vp,
					  struct marcel_thread *self)
{
	struct marcel_thread *t;

	if (unlikely(vp->passes) && (t = pass(vp, self)) != NULL)
		return t;
	if (marcel_timers_are_armed(&vp->timers))
		look_at_timers(vp);
	if (marcel_thread_is_urgent(self))
		return prepare(vp, marcel_runq_pick_urgent(vp));
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
	if (unlikely(vp->passes) && t == NULL && (t = pass(vp, NULL)) != NULL)
		return t;
	if (marcel_timers_are_armed(&vp->timers))
		look_at_timers(vp);
	if (t == NULL)
		t = marcel_runq_pick(vp);
	if (t == NULL && !vp->sole)
		t = marcel_runq_steal(vp);
	return prepare(vp, t);
}

struct marcel_thread *marcel_switch_next(struct marcel_vp *vp)
{
	struct marcel_thread *t = NULL;

	if (likely(!vp->passes) && (t = marcel_runq_pick_next(vp)) != NULL &&
	    likely(!marcel_thread_has(t, MARCEL_F_SLOW)))
		return t;
	return next_of(vp, t);
}
