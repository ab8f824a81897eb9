/*
 * Waiting for a condition in a call of MPI, which is no cancellation point: who
 * ended there would keep the mutex.
 */
#ifndef MADMPI_CORE_WAIT_H
#define MADMPI_CORE_WAIT_H

#include <marcel/marcel.h>

static inline void madmpi_cond_wait(marcel_cond_t *c, marcel_mutex_t *m)
{
	int old;

	marcel_setcancelstate(MARCEL_CANCEL_DISABLE, &old);
	marcel_cond_wait(c, m);
	marcel_setcancelstate(old, NULL);
}

#endif
