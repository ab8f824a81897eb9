/*
 * The CPU time of threads, if MARCEL_CPUTIME asks for it.
 *
 * A thread has used what its LWP has used, by the kernel's clock, between the
 * switch to it and the switch away from it; so what it waits in the handler of
 * the tick, in the kernel or for another process costs it nothing. The switch
 * away is a switch hook, which is there only then.
 */
#ifndef MARCEL_THREAD_CPUTIME_H
#define MARCEL_THREAD_CPUTIME_H

struct marcel_lwp;
struct marcel_thread;

/* The caller is main, and the only thread. */
void marcel_cputime_init(struct marcel_thread *main);
void marcel_cputime_exit(void);

/* On l: what runs there leaves it, and no switch hook is run. */
void marcel_cputime_leaves(struct marcel_lwp *l);

#endif
