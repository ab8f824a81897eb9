/*
 * Leave one thread, enter the next, run what the one that left wants done.
 *
 * Invariant: a thread becomes visible to others only after its context is
 * completely saved. So whatever publishes a thread that leaves (putting it on
 * a queue, releasing a queue's lock, giving its stack back) is an "after"
 * action: it is left in the VP and runs first thing on the other stack.
 */
#ifndef MARCEL_SCHED_SWITCH_H
#define MARCEL_SCHED_SWITCH_H

#include "../thread/exception.h"
#include "../trace/trace.h"
#include "sanitizer.h"
#include "vp.h"

/* On the new stack: the action of the thread that left. */
static inline void marcel_switch_after(struct marcel_vp *vp)
{
	marcel_after_fn after = vp->after;

	if (after != NULL) {
		vp->after = NULL;
		marcel_san_acquire(vp->left);
		after(vp->after_arg);
	}
}

/* The last of what `self` does on vp. */
static inline void marcel_switch_leave(struct marcel_vp *vp,
				       struct marcel_thread *self,
				       struct marcel_thread *next)
{
	/* The monitor may be trying just now: REVOKING, until it sees us. */
	struct marcel_lwp *l = marcel_vp_lwp(vp);

	store_release(&l->self, next); /* order(settle): what was done */
	if (BASE_TSAN)
		vp->left = self;
	marcel_san_release(self);
}

/* marcel_switch() of a thread that has no exceptions, or has put them by. */
static inline struct marcel_vp *marcel_switch_bare(struct marcel_vp *vp,
						   struct marcel_thread *self,
						   struct marcel_thread *next)
{
	int err = *vp->errno_addr; /* errno, kept on our stack */
	void *fake;

	marcel_switch_leave(vp, self, next);
	marcel_san_start(&fake, next);
	vp = marcel_ctx_switch(&self->ctx, &next->ctx, vp);
	marcel_san_finish(fake);
	*vp->errno_addr = err;
	marcel_switch_after(vp);
	return vp;
}

/* marcel_switch() of one that has: they stay on its stack. switch.c. */
struct marcel_vp *marcel_switch_exceptions(struct marcel_vp *vp,
					   struct marcel_thread *self,
					   struct marcel_thread *next);

/* marcel_switch(); what: as marcel_trace_leave() has it. */
static inline struct marcel_vp *marcel_switch_told(struct marcel_vp *vp,
						   struct marcel_thread *self,
						   enum marcel_trace_kind what,
						   struct marcel_thread *next)
{
	marcel_trace_leave(vp, self, what, next);
	if (unlikely(marcel_exceptions_any(vp->exceptions)))
		return marcel_switch_exceptions(vp, self, next);
	return marcel_switch_bare(vp, self, next);
}

/*
 * From `self`, which runs on vp, to `next`, which has a stack. Returns when
 * somebody switches back to self; the result is the VP on which it then runs.
 */
static inline struct marcel_vp *marcel_switch(struct marcel_vp *vp,
					      struct marcel_thread *self,
					      struct marcel_thread *next)
{
	return marcel_switch_told(vp, self, MARCEL_TRACE_NONE, next);
}

/* The same of one that stays ready: it makes way. */
static inline struct marcel_vp *marcel_switch_ready(struct marcel_vp *vp,
						    struct marcel_thread *self,
						    struct marcel_thread *next)
{
	return marcel_switch_told(vp, self, MARCEL_TRACE_YIELD, next);
}

/* The same of one that sleeps until it is woken. */
static inline struct marcel_vp *
marcel_switch_blocked(struct marcel_vp *vp, struct marcel_thread *self,
		      struct marcel_thread *next)
{
	return marcel_switch_told(vp, self, MARCEL_TRACE_BLOCK, next);
}

/* The same of one that has ended: nobody will ever switch back. */
static inline BASE_NORETURN void marcel_switch_last(struct marcel_vp *vp,
						    struct marcel_thread *self,
						    struct marcel_thread *next)
{
	marcel_trace_leave(vp, self, MARCEL_TRACE_ENDED, next);
	marcel_switch_leave(vp, self, next);
	marcel_san_start(NULL, next);
	marcel_ctx_switch(&self->ctx, &next->ctx, vp);
	__builtin_unreachable();
}

/*
 * The thread to enter next, with a stack; the idle thread if none is ready
 * here or with another VP. switch.c.
 */
struct marcel_thread *marcel_switch_next(struct marcel_vp *vp);

/*
 * The same for a thread that could go on itself: nothing is stolen, and who is
 * real-time makes way for its like only. switch.c.
 */
struct marcel_thread *marcel_switch_other(struct marcel_vp *vp,
					  struct marcel_thread *self);

/* t, which was taken out of its queue, or the idle thread, if that has to come
 * first or t is in a queue again. switch.c. */
struct marcel_thread *marcel_switch_to(struct marcel_vp *vp,
				       struct marcel_thread *t);

/* t, which has its stack, begins when it is first entered. switch.c. */
void marcel_switch_begin(struct marcel_thread *t);

/* Give a seed its stack. False: none, or it is to run elsewhere; it is queued
 * again. switch.c. */
bool marcel_switch_equip(struct marcel_vp *vp, struct marcel_thread *t);

#endif
