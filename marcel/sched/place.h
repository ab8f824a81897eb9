/*
 * Where a thread may run, changed while it lives.
 */
#ifndef MARCEL_SCHED_PLACE_H
#define MARCEL_SCHED_PLACE_H

#include <base/spin.h>
#include "vp.h"

/* l: every thread's `wanted`, and MOVES. */
extern BASE_HIDDEN struct base_spin marcel_place_lock;

/* Who holds t: it runs on VPs of the set. EINVAL: there are none. */
int marcel_place_set(struct marcel_thread *t, const marcel_vpset_t *set);

/*
 * The owner of vp has picked t, which moves: t has the set that is wanted of
 * it. False: that does not have vp, and t is in a queue again.
 */
bool marcel_place_arrive(struct marcel_vp *vp, struct marcel_thread *t);

/*
 * Whether t, which runs on l, should be interrupted so that it moves. What LWP
 * 0 keeps can go on only there.
 */
static inline bool marcel_place_leaves(struct marcel_lwp *l,
				       struct marcel_thread *t)
{
	return unlikely(marcel_thread_has(t, MARCEL_F_MOVES)) &&
	       l != &marcel_lwps.first;
}

#endif
