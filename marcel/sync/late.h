/*
 * Posts of a semaphore from a signal handler that came inside the runtime.
 *
 * sem_post() may be called by handlers (POSIX calls it async-signal-safe), and
 * a handler may have come to this kernel thread anywhere: while it holds the
 * guard of that very semaphore, or has half a thread in a queue. So a post that
 * owes a waiter something (sem.c) is counted there, its semaphore goes into a
 * list, and a tasklet pays, as soon as a VP is where it may. Semaphores stay as
 * long as posts are owed, so the link is in them.
 *
 * Tasklets and hooks are inside as well, and pay like that: nothing tells them
 * from a handler that interrupted them.
 */
#ifndef MARCEL_SYNC_LATE_H
#define MARCEL_SYNC_LATE_H

#include <stdbool.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/mpsc.h>

struct marcel_late {
	/* q: order(late), who counts the first, then who takes the list */
	struct base_mpsc_node node; /* q: */
	ATOMIC(uint64_t) posts;     /* a: order(late); see late.c */
};

/*
 * Anyone, at any instruction: the post is paid later. False: marcel does not
 * run, nothing was done.
 */
bool marcel_late_post(struct marcel_late *l);

/* Marcel is about to run; does no more, and pays what is left. */
void marcel_late_init(void);
void marcel_late_exit(void);

/* thread/fork.c: in a child, to whose threads nothing is owed yet. */
void marcel_late_forked(void);

/* sem.c: pay so many. After the last the semaphore may be gone. */
void marcel_sem_pay(struct marcel_late *l, uint32_t posts);

#endif
