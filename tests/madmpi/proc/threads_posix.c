/*
 * Kernel threads that MPI did not make, all calling it.
 */
#include <pthread.h>

#define THREADS 16

typedef pthread_t thread_t;

static int thread_create(thread_t *out, void *(*fn)(void *), void *arg)
{
	return pthread_create(out, NULL, fn, arg);
}

static int thread_join(thread_t t)
{
	return pthread_join(t, NULL);
}

#include "threads.h"
