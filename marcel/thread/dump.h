/*
 * What the threads and VPs do, for a person who asks by a signal.
 */
#ifndef MARCEL_THREAD_DUMP_H
#define MARCEL_THREAD_DUMP_H

/*
 * The number of a signal from "", a number or a name such as SIGUSR2; *out is
 * 0 for none. 0; -EINVAL after a line on stderr: it is none that a handler can
 * return from.
 */
int marcel_dump_signal(const char *text, int *out);

/* Register marcel's part of dumps; signal 0: no handler. Undo it. */
void marcel_dump_init(int signal);
void marcel_dump_exit(void);

/* In the child of a fork, whose first runtime finds it as the parent had it. */
void marcel_dump_anew(void);

#endif
