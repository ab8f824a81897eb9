/*
 * To join a kernel thread from main while others need main's core. With our
 * library main is a user thread, and ticks find out that it sleeps; where there
 * are none, as with TSan, it has to say so. Another MPI knows nothing of that.
 */
#ifndef TESTS_MADMPI_JOIN_H
#define TESTS_MADMPI_JOIN_H

#include <pthread.h>

extern void marcel_blocking_begin(void) __attribute__((weak));
extern void marcel_blocking_end(void) __attribute__((weak));

static inline int program_join(pthread_t t)
{
	int err;

	if (marcel_blocking_begin != NULL)
		marcel_blocking_begin();
	err = pthread_join(t, NULL);
	if (marcel_blocking_end != NULL)
		marcel_blocking_end();
	return err;
}

#endif
