/*
 * Threads of the MPI benchmarks: user threads of our library or the system's,
 * as bench.user says. Other libraries' programs have only the latter; what
 * stands for user threads there is never called.
 */
#ifndef BENCH_MPI_THREADS_H
#define BENCH_MPI_THREADS_H

#include <pthread.h>
#include <stdint.h>

#include "bench.h"

#ifdef BENCH_USER_THREADS
#include <marcel/marcel.h>
#else
typedef pthread_t marcel_t;
typedef pthread_barrier_t marcel_barrier_t;
#define marcel_create                   pthread_create
#define marcel_join                     pthread_join
#define marcel_self                     pthread_self
#define marcel_favour_woken(thread, ns) ((void)(thread), (void)(ns), 1)
#define marcel_barrier_init             pthread_barrier_init
#define marcel_barrier_destroy          pthread_barrier_destroy
#define marcel_barrier_wait             pthread_barrier_wait
#endif

struct bench_thread {
	pthread_t kernel; /* one of them is in use */
	marcel_t user;
};

struct bench_barrier {
	pthread_barrier_t kernel; /* one of them is in use */
	marcel_barrier_t user;
};

static inline void bench_create(struct bench_thread *t, void *(*fn)(void *),
				void *arg)
{
	int wrong = bench.user ? marcel_create(&t->user, NULL, fn, arg)
			       : pthread_create(&t->kernel, NULL, fn, arg);

	if (wrong != 0)
		bench_fail("no thread: %s", strerror(wrong));
}

static inline void bench_join(struct bench_thread *t)
{
	if (bench.user)
		marcel_join(t->user, NULL);
	else
		pthread_join(t->kernel, NULL);
}

/* By a thread that communicates, about itself. */
static inline void bench_favour(void)
{
	if (bench.favour > 0 &&
	    marcel_favour_woken(marcel_self(),
				(uint64_t)(bench.favour * 1000)) != 0)
		bench_fail("a thread is not favoured");
}

static inline void bench_barrier_init(struct bench_barrier *b, int n)
{
	if (bench.user)
		marcel_barrier_init(&b->user, NULL, (unsigned)n);
	else
		pthread_barrier_init(&b->kernel, NULL, (unsigned)n);
}

static inline void bench_barrier_destroy(struct bench_barrier *b)
{
	if (bench.user)
		marcel_barrier_destroy(&b->user);
	else
		pthread_barrier_destroy(&b->kernel);
}

static inline void bench_barrier_wait(struct bench_barrier *b)
{
	if (bench.user)
		marcel_barrier_wait(&b->user);
	else
		pthread_barrier_wait(&b->kernel);
}

/* n threads, each with an element of args, from their first to their end. */
static inline void bench_threads(int n, void *(*fn)(void *), void *args,
				 size_t size)
{
	struct bench_thread *t = bench_alloc(sizeof(*t) * (size_t)n);

	for (int i = 0; i < n; i++)
		bench_create(&t[i], fn, (char *)args + size * (size_t)i);
	for (int i = 0; i < n; i++)
		bench_join(&t[i]);
	free(t);
}

#endif
