/*
 * Waiting in the kernel instead of polling: ltasks are *armed*, and one kernel
 * thread, the watcher, sleeps for all of them in an epoll set. (What waits for
 * no descriptor is exported to a kernel thread for itself: export.h.)
 *
 *   asked in vain                 fd is readable
 *   POLLED ------------> ARMED ------------------> all POLLED again
 *     ^   by who holds      |     by the watcher
 *     |   the queue         |
 *     +---------------------+  done, cancelled
 *
 * An ltask is armed if its number is that of `fired`. So the watcher un-arms
 * all of them by one store and touches none: they may be cancelled and freed
 * meanwhile. Nothing that comes is lost:
 *
 *   1. Who arms an ltask has run it, holds its queue, and reads the number
 *      before he turns to the kernel. From then on what comes makes the
 *      descriptor readable, and what had come already, too (level-triggered).
 *   2. An entry fires once. The watcher counts, and then kicks the queue. So a
 *      holder who still took the ltask for armed either lets go after the kick,
 *      which keeps PENDING true, or before, and then the kick makes it true:
 *      order(ltask). The next one sees the new number.
 *   3. Who goes to sleep over a queue that is not PENDING is woken by whoever
 *      makes it so: order(idle).
 *
 * The watcher then runs the ltasks itself, so that what has come is seen even
 * if every VP computes. Whether it arms them again at once or leaves that to an
 * idle VP, which polls a while before it does, follows from how often events
 * come. What it leaves it looks at again, because the VP may get a thread that
 * computes.
 *
 * Only ltasks of the machine's queue that any VP may run are armed: the watcher
 * drives no VP.
 */
#ifndef PIOMAN_IO_BLOCKING_H
#define PIOMAN_IO_BLOCKING_H

#include <stdbool.h>

#include <base/atomic.h>
#include <base/compiler.h>

#include "../ltask/queue.h"
#include "export.h"

struct piom_watcher {
	ATOMIC(uint64_t) fired; /* a: so often, from 1 on; order(ltask) */
};

extern struct piom_watcher piom_watcher;

/* Who holds its queue. */
static inline bool piom_blocking_is_armed(const struct piom_task *t)
{
	if (unlikely(t->waits.wait != NULL))
		return piom_export_is_out(t);
	return t->waits.armed_at == load_relaxed(&piom_watcher.fired);
}

/*
 * The task was asked and had nothing: arm it, if it is time. True if it is.
 * Who holds its queue.
 */
bool piom_blocking_arm(struct piom_task *t, uint64_t vain_ns);

/* It is submitted: nothing of its last life is left. The submitter. */
void piom_blocking_begin(struct piom_task *t);

/*
 * Who holds its queue, and has stored its last state: the task ends. False if
 * its LWP will signal that, when it is back.
 */
bool piom_blocking_leave(struct piom_task *t);

/*
 * An LWP is back: run what has come, and have it looked after; a kernel thread
 * that drives no VP.
 */
void piom_blocking_fire(void);

/* Ask the watcher to look what is to be done. Anyone; never blocks. */
void piom_blocking_ring(void);

/*
 * The calling kernel thread is to run soon when it wakes, also where all CPUs
 * compute: by the shortest slice, and a higher priority where that is allowed.
 */
void piom_blocking_be_prompt(void);

/*
 * Start and stop the watcher, and as many as `lwps` others; no ltask is
 * submitted. 0 or -errno.
 */
int piom_blocking_init(int lwps);
void piom_blocking_exit(void);

/* In the child of a fork(): the watcher and the set are the parent's. */
void piom_blocking_forked(void);

#endif
