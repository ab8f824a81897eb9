/*
 * Stacks that no guard page ends: whether their threads ran off them is looked
 * at when they switch.
 */
#ifndef MARCEL_THREAD_WATCH_H
#define MARCEL_THREAD_WATCH_H

/* There is a stack without a guard; there is none any more. Anyone. */
void marcel_watch_begin(void);
void marcel_watch_end(void);

#endif
