/*
 * Wake several threads at once.
 */
#ifndef MARCEL_SCHED_WAKE_H
#define MARCEL_SCHED_WAKE_H

#include "../thread/thread.h"

/* As marcel_wake() for each of the n, in order, and by fewer steps. */
void marcel_wake_many(struct marcel_thread **t, unsigned n);

#endif
