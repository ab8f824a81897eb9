/*
 * Stacks that no guard page ends: whether their threads ran off them is looked
 * at when they switch, or are interrupted by a tick.
 */
#ifndef MARCEL_THREAD_WATCH_H
#define MARCEL_THREAD_WATCH_H

struct marcel_thread;

/*
 * t, which calls and stands on its stack, or in a handler there: if it ran off
 * that, say so and die. Signal-safe.
 */
void marcel_watch_look(struct marcel_thread *t);

/* There is a stack without a guard; there is none any more. Anyone. */
void marcel_watch_begin(void);
void marcel_watch_end(void);

/* The child of a fork has no hooks. */
void marcel_watch_forked(void);

#endif
