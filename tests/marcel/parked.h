/*
 * Until a thread waits: its state says so, and then whoever uses what it waits
 * for finds it there.
 */
#ifndef TESTS_MARCEL_PARKED_H
#define TESTS_MARCEL_PARKED_H

#include <sched.h>

#include <base/atomic.h>
#include "../../marcel/sched/vp.h"
#include "../../marcel/thread/thread.h"
#include "with.h"

static inline void until_parked(marcel_t t)
{
	while (load_acquire(&t->state) != MARCEL_T_PARKED) {
		marcel_yield();
		sched_yield();
	}
}

/* The same of a thread of any band, of which there may be one VP. */
static inline void until_parked_in_its_band(marcel_t t)
{
	CHECK_INT(marcel_setpriority(marcel_self(), MARCEL_PRIORITY_IDLE), 0);
	until_parked(t);
	CHECK_INT(marcel_setpriority(marcel_self(), MARCEL_PRIORITY_NORMAL), 0);
}

/* Each has, when it was looked at. */
static inline bool all_vps_sleep(void)
{
	for (int i = 0; i < marcel_nvp(); i++)
		if (load_relaxed(&marcel_sched.vps[i].sleeper.asleep) !=
		    MARCEL_ASLEEP)
			return false;
	return true;
}

#endif
