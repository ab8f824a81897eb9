/*
 * Into the runtime: what a public function does that touches a VP's own fields
 * (an uncontended mutex, or an event that is set, touches none).
 *
 * A thread comes back from a blocking section to user code, whether or not the
 * VP went on without it meanwhile; here it learns that.
 */
#ifndef MARCEL_SCHED_ENTER_H
#define MARCEL_SCHED_ENTER_H

#include "vp.h"

/* The VP if the calling LWP drives it; NULL: it does not, or is not ours. */
static inline struct marcel_vp *marcel_try_enter(void)
{
	struct marcel_lwp *l = cpu_tls_word();
	struct marcel_vp *vp;

	if (unlikely(l == NULL))
		return NULL;
	vp = load_relaxed(&l->vp);
	return likely(load_relaxed(&vp->owner) == (uintptr_t)l) ? vp : NULL;
}

/*
 * The VP, driven by the calling LWP until the next switch; NULL: the caller is
 * foreign. A thread whose VP went away waits for one: not from hooks or
 * `after` actions, which have theirs.
 */
static inline struct marcel_vp *marcel_enter(void)
{
	struct marcel_lwp *l = cpu_tls_word();
	struct marcel_vp *vp;

	if (unlikely(l == NULL))
		return NULL;
	vp = load_relaxed(&l->vp);
	/* What another LWP writes there once it has taken the VP is not us. */
	if (likely(load_relaxed(&vp->owner) == (uintptr_t)l))
		return vp;
	return marcel_lwp_regain(l);
}

#endif
