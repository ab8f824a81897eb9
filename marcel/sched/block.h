/*
 * Sections as the wrappers of marcel/io make them.
 */
#ifndef MARCEL_SCHED_BLOCK_H
#define MARCEL_SCHED_BLOCK_H

#include <signal.h>

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
 * As marcel_blocking_begin(), but ticks still come. False: no kernel thread can
 * be had, and there is no section.
 */
bool marcel_block_begin(void);

/*
 * Whether a call is for those below: the caller is a user thread that drives a
 * VP, as above, or that has lost it and runs on. Not what libc, or a wrapper,
 * calls in such a call: if that were a cancellation point, it would end the
 * thread there.
 */
bool marcel_call_may(struct marcel_lwp *l);

static inline bool marcel_call_holds(void)
{
	struct marcel_lwp *l = cpu_tls_word();

	return unlikely(l != NULL) && marcel_call_may(l);
}

/*
 * Around a call that is a cancellation point and that no tick ends: call.c. If
 * there is no section, the caller may wait in another way or, after alone(),
 * which does nothing in a section, make the call nevertheless. end() ends the
 * thread if the call has failed and somebody wants that.
 */
bool marcel_call_begin(void);
void marcel_call_alone(void);
void marcel_call_end(bool failed);

/* The caller ends, perhaps in the middle of such a call: in a handler. */
void marcel_call_abandon(void);

static inline void marcel_call_enter(void)
{
	marcel_call_begin();
	marcel_call_alone();
}

/* A mask for such a call, which that puts in the place of the thread's. */
void marcel_hush_mask(sigset_t *mask);

/* A set of signals to wait for, without ours. */
void marcel_hush_set(sigset_t *set);

/*
 * The caller makes a process or a kernel thread, which inherits its mask, or
 * becomes another program. After that, if it comes back: again().
 */
void marcel_hush_lift(void);
void marcel_hush_again(void);

/* The section on l has ended otherwise than by marcel_blocking_end(). */
void marcel_hush_end(struct marcel_lwp *l);

static inline void marcel_hush_over(struct marcel_lwp *l)
{
	if (unlikely(l->hushed == MARCEL_HUSH_SECTION))
		marcel_hush_end(l);
}

/* Take the signal that breaks calls, and let it through; 0 or -errno. */
int marcel_call_init(void);
void marcel_call_allow(void);
void marcel_call_exit(void);

/*
 * The calling thread is about to make a process or a kernel thread, which will
 * inherit the policy of this one: off an LWP of lowest priority, if another
 * can be had.
 */
void marcel_block_rise(void);

#endif
