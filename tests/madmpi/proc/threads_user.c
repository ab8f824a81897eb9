/*
 * Thousands of user threads that block in MPI.
 */
#include <marcel/marcel.h>

/* TSan takes a millisecond to make a thread. */
#define THREADS (FEWER > 1 ? 100 : 2000)

typedef marcel_t thread_t;

static int thread_create(thread_t *out, void *(*fn)(void *), void *arg)
{
	return marcel_create(out, NULL, fn, arg);
}

static int thread_join(thread_t t)
{
	return marcel_join(t, NULL);
}

#include "threads.h"
