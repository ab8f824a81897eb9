/*
 * Stacks that were too small: found by their guards.
 */
#ifndef MARCEL_THREAD_OVERFLOW_H
#define MARCEL_THREAD_OVERFLOW_H

#include <base/compiler.h>

struct marcel_thread;

/* Take SIGSEGV; undo it. The thread that starts and ends the runtime. */
int marcel_overflow_init(void);
void marcel_overflow_exit(void);

/*
 * Give the calling LWP a stack to handle the fault on, unless it has one.
 * Returns what exit wants; NULL: nothing was done.
 */
void *marcel_overflow_lwp_init(void);
void marcel_overflow_lwp_exit(void *altstack);

/* The calling thread, which is t, ran off its stack: say so and die. */
void marcel_overflow_found(struct marcel_thread *t) BASE_NORETURN;

#endif
