/*
 * The monitor lets a thread go on without a VP if whatever is to run in its
 * place sleeps in the kernel: on a lock, perhaps, whose holder gets no CPU.
 */
#ifndef TESTS_MARCEL_LOOSE_H
#define TESTS_MARCEL_LOOSE_H

#include "../../marcel/sched/tick.h"
#include "../../marcel/sched/vp.h"

/* How often it has done so. */
static inline uint64_t loosened(void)
{
	return load_relaxed(&marcel_monitor.loosened);
}

/* Whether it has done so with the caller, who has called nothing since. */
static inline bool is_without_vp(void)
{
	struct marcel_lwp *l = marcel_tls.lwp;

	return marcel_vp_lwp(load_relaxed(&l->vp)) != l;
}

#endif
