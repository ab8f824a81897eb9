/*
 * What locks cost: marcel's beside those of pthreads. columns.h says what is
 * shown.
 *
 *   sync [REPETITIONS]
 */
#include <pthread.h>
#include <sched.h>

#include <marcel/marcel.h>
#include "columns.h"

enum { THREADS = 64 };

#define P(name) marcel_##name
#include "sync_body.h"
#undef P

static int pthread_yield_(void)
{
	return sched_yield();
}

#define pthread_yield pthread_yield_
#define P(name)       pthread_##name
#include "sync_body.h"
#undef P

#define BOTH(name) marcel_bench_##name, pthread_bench_##name

static const struct bench benches[] = {
	{ "mutex: lock + unlock, uncontended", BOTH(uncontended), 2000000,
	  2000000 },
	{ "hand-over by mutex + cond, 2 threads", BOTH(ping_pong), 1000000,
	  20000 },
	{ "mutex: 64 threads, short section", BOTH(short), 2000000, 1000000 },
	{ "mutex: 64 threads, yield inside", BOTH(yielding), 500000, 50000 },
	{ "barrier of 64", BOTH(barrier), 1000000, 6400 },
};

int main(int argc, char **argv)
{
	return bench_columns(argc, argv, benches,
			     sizeof(benches) / sizeof(benches[0]));
}
