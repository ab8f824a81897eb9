/*
 * Into the runtime: what a public function does that touches a VP's own fields
 * (an uncontended mutex, or an event that is set, touches none).
 *
 * A thread that was in a blocking section, or in the kernel, or interrupted by
 * the tick, runs on in user code whether or not the VP went on without it; here
 * it learns that.
 */
#ifndef MARCEL_SCHED_ENTER_H
#define MARCEL_SCHED_ENTER_H

#include "vp.h"

/*
 * The VP, driven by the calling LWP until marcel_leave(); NULL: the caller is
 * foreign. A thread whose VP went away waits for one. Not from within.
 */
static inline struct marcel_vp *marcel_enter(void)
{
	struct marcel_lwp *l = cpu_tls_word();
	struct marcel_vp *vp;

	if (unlikely(l == NULL))
		return NULL;
	store_light(&l->inside, 1); /* order(revoke) */
	vp = load_relaxed(&l->vp);
	/* order(revoke) */
	if (unlikely(!cpu_word_is(&vp->owner, (uintptr_t)l)))
		return marcel_lwp_regain(l);
	base_assume(vp != NULL); /* callers do not test for it again */
	return vp;
}

/* The thread may be on another LWP than the one on which it entered. */
static inline void marcel_leave(struct marcel_vp *vp)
{
	marcel_lwp_leaves(marcel_vp_lwp(vp), 0);
}

/*
 * The same without waiting, and from within as well; the caller does not
 * switch. NULL: it drives none. *was is for marcel_unnest().
 */
static inline struct marcel_vp *marcel_nest(uint32_t *was)
{
	struct marcel_lwp *l = cpu_tls_word();
	struct marcel_vp *vp;

	if (unlikely(l == NULL))
		return NULL;
	*was = load_relaxed(&l->inside);
	store_light(&l->inside, 1); /* order(revoke) */
	vp = load_relaxed(&l->vp);
	/* order(revoke) */
	if (unlikely(!cpu_word_is(&vp->owner, (uintptr_t)l))) {
		store_light(&l->inside, *was);
		return NULL;
	}
	base_assume(vp != NULL);
	return vp;
}

static inline void marcel_unnest(struct marcel_vp *vp, uint32_t was)
{
	if (likely(vp != NULL))
		marcel_lwp_leaves(marcel_vp_lwp(vp), was);
}

/*
 * Whether the calling kernel thread is inside, or holds a lock of ours: a
 * handler of signals that finds this may have interrupted anything.
 */
bool marcel_is_within(void); /* block.c */

#endif
