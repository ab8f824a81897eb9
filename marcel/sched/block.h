/*
 * Sections as the wrappers of marcel/io make them.
 */
#ifndef MARCEL_SCHED_BLOCK_H
#define MARCEL_SCHED_BLOCK_H

#include "enter.h"

/*
 * Whether a VP waits with the caller while that sleeps in the kernel. Not with
 * a foreign thread, nor with one in a section or without its VP after one. In
 * the runtime, in a hook, in a signal handler that came there and with a lock
 * of ours nobody is to sleep, and there too the answer is no.
 */
bool marcel_block_may(struct marcel_lwp *l);

static inline bool marcel_block_holds(void)
{
	struct marcel_lwp *l = cpu_tls_word();

	return unlikely(l != NULL) && marcel_block_may(l);
}

/*
 * As marcel_blocking_begin(), for a caller of whom marcel_block_holds() is
 * true. False: no kernel thread can be had, and there is no section.
 */
bool marcel_block_begin(void);

/*
 * The same around a call that is a cancellation point; end() ends the thread if
 * the call has failed and somebody wants that. call.c
 */
bool marcel_call_begin(void);
void marcel_call_end(bool failed);

/* The handler of the tick: have the call that it has interrupted fail. */
void marcel_call_break(struct marcel_lwp *l, void *context);

/*
 * The calling thread is about to make a process or a kernel thread, which will
 * inherit the policy of this one: off an LWP of lowest priority, if another
 * can be had.
 */
void marcel_block_rise(void);

#endif
