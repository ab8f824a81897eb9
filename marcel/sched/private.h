/*
 * Threads with thread-local storage of their own: kept by an LWP for life.
 *
 * Such a thread is ready like any other, and to pick it means to give the VP to
 * its LWP, which runs no other: when the thread leaves, the LWP passes the VP
 * on before anybody learns of that. So the action of the switch is left in the
 * VP, for the next LWP to do: lwp.c, takes(). When the thread ends, so does the
 * kernel thread; what its destructors do still belongs to the thread, so that
 * is seen to have ended afterwards.
 *
 * It always has a set of VPs, be it all, which keeps it out of deques: what is
 * in those may be entered without a look at who keeps it.
 */
#ifndef MARCEL_SCHED_PRIVATE_H
#define MARCEL_SCHED_PRIVATE_H

#include "vp.h"

/* t, which is new, is for an LWP of its own. 0 or EAGAIN: none can be had. */
int marcel_private_set(struct marcel_thread *t);

static inline bool marcel_private_is(struct marcel_thread *t)
{
	return marcel_thread_has(t, MARCEL_F_KEPT) && t->rest->lwp->only == t;
}

/* What such an LWP does all its life. */
void marcel_private_run(struct marcel_lwp *l);

/* It has nothing of ours any more, and its kernel thread ends. */
void marcel_private_leave(struct marcel_lwp *l);

/* The caller's thread, on its own LWP: nothing more will be entered there. */
static inline void marcel_private_end(struct marcel_thread *t)
{
	t->rest->lwp->ends = true;
}

/* switch.c: an LWP that can drive vp, or NULL. */
struct marcel_lwp *marcel_switch_successor(struct marcel_vp *vp);

#endif
