/*
 * What threads cost: marcel's beside pthreads. columns.h says what is shown.
 *
 *   threads [REPETITIONS]
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>

#include <marcel/marcel.h>
#include "columns.h"

enum { THREADS = 1000 };

#define P(name) marcel_##name
#include "threads_body.h"
#undef P

/* libc's names differ a little. */
typedef sem_t pthread_sem_t;
#define pthread_yield    sched_yield
#define pthread_sem_init sem_init
#define pthread_sem_wait sem_wait
#define pthread_sem_post sem_post
#define P(name)          pthread_##name
#include "threads_body.h"
#undef P

#define BOTH(name) marcel_bench_##name, pthread_bench_##name

static const struct bench benches[] = {
	{ "create + join", BOTH(create_join), 200000, 2000 },
	{ "fork-join (100,000; pthreads 1,000)", BOTH(fork_join), 100000,
	  1000 },
	{ "yield, 2 threads", BOTH(yield_2), 1000000, 100000 },
	{ "yield, 1,000 threads", BOTH(yield_1000), 2000000, 100000 },
	{ "hand-over by semaphores", BOTH(sem), 1000000, 20000 },
};

int main(int argc, char **argv)
{
	return bench_columns(argc, argv, benches,
			     sizeof(benches) / sizeof(benches[0]));
}
