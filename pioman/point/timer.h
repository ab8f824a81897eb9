/*
 * The timer: a kernel thread that looks, every so often while an ltask wants to
 * be asked, whether somebody has asked it. Engine pthread always has one
 * (PIOM_TIMER_US); engine marcel, whose VPs ask at ticks, if a bound on
 * reaction is wanted: PIOM_REACTION_US.
 *
 * With a bound, what wants to be asked is asked once in that time: who looks
 * twice as often, and finds that nobody has asked between two looks, does it
 * himself. The kernel has to give him a core in time, io/blocking.h. He runs a
 * queue as one VP of its level: so what only some VPs of a level may run is not
 * bounded, unless the level is one VP.
 */
#ifndef PIOMAN_POINT_TIMER_H
#define PIOMAN_POINT_TIMER_H

#include <stdint.h>

#include "sleeper.h"

struct piom_queue;

/* look() is what it does every period_ns. 0 or -errno. */
int piom_point_timer_init(uint64_t period_ns, void (*look)(void));
void piom_point_timer_exit(void); /* also if there is none */

/* In the child of a fork(): it is the parent's. */
void piom_point_timer_forked(void);

/* For look(): run the queue as one of its VPs; run those not run since. */
void piom_point_timer_run(struct piom_queue *q, void *arg);
void piom_point_timer_run_stale(void);

extern struct piom_sleeper piom_timer; /* wakes nobody if there is none */

/*
 * A queue was submitted to, kicked, or left with what wants to be asked again.
 * Anyone; never blocks; a load if it is awake.
 */
static inline void piom_point_timer_kick(void)
{
	piom_sleeper_wake(&piom_timer);
}

#endif
