/*
 * Going round the queues that a VP may run, from its own up to the machine's.
 */
#ifndef PIOMAN_LTASK_POLL_H
#define PIOMAN_LTASK_POLL_H

#include <stdbool.h>
#include <stdint.h>

#include "../stats.h"

/*
 * Run every ltask of every queue on the way up once. Returns how many did
 * work. vp < 0: a foreign thread, the machine's queue only. vain_ns: as of
 * piom_queue_run_slow().
 */
int piom_poll_all(int vp, uint64_t vain_ns, enum piom_point point);

/*
 * A round of a scheduler hook: a parent with k children is run in every k-th
 * round that comes from each, so that all together run it as often as one
 * would alone. *pending is whether the VP must not sleep.
 */
int piom_poll_round(int vp, uint64_t vain_ns, enum piom_point point,
		    bool *pending);

/*
 * The VP whose queues are the caller's: its own; with engine pthread that of
 * the CPU that it runs on; else -1.
 */
int piom_poll_here(void);

/* Whether there is nothing to run for this VP. Some loads, no store. */
bool piom_poll_is_idle(int vp);

/* Whether something of it wants to be run soon. Anyone. */
bool piom_poll_is_pending(int vp);

/* Whether who polls for it must not sleep: order(idle), queue.h. */
bool piom_poll_keeps_awake(int vp);

/* As piom_poll_is_pending(), of what only this VP may run. */
bool piom_poll_is_called(int vp);

#endif
