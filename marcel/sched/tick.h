/*
 * Preemption: the signal that interrupts a thread, and the monitor, a kernel
 * thread that looks at the VPs once a time slice and sends it.
 */
#ifndef MARCEL_SCHED_TICK_H
#define MARCEL_SCHED_TICK_H

#include <base/atomic.h>
#include "vp.h"

/* tick.c: take the signal; 0 or -errno. From then on ticks may come. */
int marcel_tick_init(void);
void marcel_tick_exit(void);

/* Whether the calling LWP takes the signal, whatever it has inherited. */
void marcel_tick_block(bool block);

/* The LWP, which should drive its VP, interrupts what it runs. */
void marcel_tick_send(struct marcel_lwp *l);

/*
 * The caller is about to become another program, which has no handler and would
 * be killed by a tick: none is on its way to this LWP any more, nor pending,
 * and none is sent until release(). NULL: none comes anyway, or somebody on
 * this LWP holds them already.
 */
struct marcel_lwp *marcel_tick_hold(void);
void marcel_tick_release(struct marcel_lwp *l);

/* monitor.c: start and stop it. 0 or -errno. */
int marcel_monitor_init(void);
void marcel_monitor_exit(void);

/* thread/fork.c: in a child, which has no monitor. */
void marcel_monitor_forked(void);

/*
 * The monitor sleeps while every VP does. A VP that will sleep says so before
 * it looks for work for the last time, and not after it was woken.
 */
struct marcel_monitor {
	ATOMIC(uint32_t) asleep; /* a: a futex; order(monitor) */
	ATOMIC(uint32_t) hurry;  /* a: a futex, 1: look now; order(hurry) */
	ATOMIC(uint64_t) looks;  /* a: relaxed; at all VPs, so far */
	ATOMIC(uint64_t) early;  /* a: relaxed; for who is urgent, so far */
	ATOMIC(uint64_t) ticks;  /* a: relaxed; sent, so far */
	/* a: relaxed; threads that were to go on without a VP, so far */
	ATOMIC(uint64_t) loosened;
};

extern BASE_HIDDEN struct marcel_monitor marcel_monitor;

void marcel_monitor_wake(void);

/* Anyone, who wants something of a thread that may compute without a VP, and
 * has said so: it is called, also while all VPs sleep. */
void marcel_monitor_call_adrift(void);

/*
 * Anyone, who has just pushed a real-time thread, and has woken no VP for it:
 * it may run on VPs of the set (NULL: all). If one of these computes something
 * less urgent the monitor looks at once.
 */
void marcel_monitor_urgent(const marcel_vpset_t *set);

static inline void marcel_monitor_vp_sleeps(struct marcel_vp *vp)
{
	store_release(&vp->is_watched, 0); /* order(monitor): nstuck */
}

static inline void marcel_monitor_vp_wakes(struct marcel_vp *vp)
{
	/* order(monitor): we say that we are up, then look whether it sleeps */
	store_seq(&vp->is_watched, 1);
	if (unlikely(load_seq(&marcel_monitor.asleep) !=
		     0)) /* order(monitor) */
		marcel_monitor_wake();
}

#endif
