/*
 * Tasklets: how a VP gets them, <marcel/tasklet.h> is for who makes them.
 *
 * `calls`, a word of the VP, is the chain of those that were pushed, newest
 * first, and `before_switch`, which a thread that leaves looks at for hooks and
 * real-time threads anyway, counts those of all VPs: so a switch tests no more
 * than it did. Anyone pushes, and anyone takes the whole chain: the VP to run
 * it, a killer to take one out and push the others again.
 */
#ifndef MARCEL_SCHED_TASKLET_H
#define MARCEL_SCHED_TASKLET_H

#include <marcel/tasklet.h>
#include "vp.h"

/* The owner, to act at once, or anyone, as a hint. */
static inline bool marcel_tasklets_are_pending(struct marcel_vp *vp)
{
	return unlikely(load_relaxed(&vp->calls) != 0);
}

/* The VP, after it said that it will sleep. */
static inline bool marcel_tasklets_look(struct marcel_vp *vp)
{
	return load_seq(&vp->calls) != 0; /* order(idle) */
}

/* The owner, in no tasklet: run each that has been pushed by now. */
void marcel_tasklets_run(struct marcel_vp *vp);

/* No VP runs any more: forget those that are scheduled. */
void marcel_tasklets_drop(void);

#endif
