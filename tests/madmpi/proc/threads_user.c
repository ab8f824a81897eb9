/*
 * Thousands of user threads that block in MPI.
 */
#include <marcel/marcel.h>

#define THREADS (2000 / FEWER)

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
