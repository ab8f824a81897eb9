/*
 * What threads cost: marcel's on one VP and on two, beside pthreads on the
 * same number of CPUs. Runs of the four alternate; median and the middle half
 * of the runs are shown, in ns.
 *
 *   threads [REPETITIONS]
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <marcel/marcel.h>

enum { THREADS = 1000, REPETITIONS = 9, REPETITIONS_MAX = 101 };

typedef double (*bench_fn)(long ops);

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void must(int err)
{
	if (err != 0) {
		fprintf(stderr, "threads: %s\n", strerror(abs(err)));
		exit(1);
	}
}

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

static const struct {
	const char *name;
	long ops, ops_pthread;
} what[] = {
	{ "create + join", 200000, 2000 },
	{ "fork-join (100,000; pthreads 1,000)", 100000, 1000 },
	{ "yield, 2 threads", 1000000, 100000 },
	{ "yield, 1,000 threads", 2000000, 100000 },
	{ "hand-over by semaphores", 1000000, 20000 },
};

enum { WHAT = sizeof(what) / sizeof(what[0]) };

/* The columns: library and number of CPUs. */
enum { MARCEL_1, PTHREAD_1, MARCEL_2, PTHREAD_2, COLUMNS };

static double result[WHAT][COLUMNS][REPETITIONS_MAX];

/* Let this thread and those it makes use n of the CPUs it may use. */
static void use_cpus(const cpu_set_t *all, int n)
{
	cpu_set_t some;

	CPU_ZERO(&some);
	for (int cpu = 0; cpu < CPU_SETSIZE && n > 0; cpu++)
		if (CPU_ISSET(cpu, all)) {
			CPU_SET(cpu, &some);
			n--;
		}
	if (sched_setaffinity(0, sizeof(some), &some) != 0)
		perror("sched_setaffinity");
}

/* The programs that run in a user thread, as most of a program's code does. */
struct job {
	int column, repetition;
};

static void *run_all(void *arg)
{
	const struct job *job = arg;
	int is_marcel = job->column % 2 == MARCEL_1;

	for (int w = 0; w < WHAT; w++)
		result[w][job->column][job->repetition] =
			is_marcel ? marcel_benches[w](what[w].ops)
				  : pthread_benches[w](what[w].ops_pthread);
	return NULL;
}

static void run_once(const cpu_set_t *all, int column, int repetition)
{
	struct job job = { column, repetition };
	int cpus = column < MARCEL_2 ? 1 : 2;
	marcel_t t;

	use_cpus(all, cpus);
	if (column % 2 == PTHREAD_1) {
		run_all(&job);
		return;
	}
	must(marcel_init(&(struct marcel_config){ .nvp = cpus }));
	must(marcel_create(&t, NULL, run_all, &job));
	must(marcel_join(t, NULL));
	must(marcel_end());
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : REPETITIONS;
	cpu_set_t all;

	if (n < 1 || n > REPETITIONS_MAX) {
		fprintf(stderr, "usage: threads [1..%d repetitions]\n",
			REPETITIONS_MAX);
		return 2;
	}
	sched_getaffinity(0, sizeof(all), &all);
	for (int r = 0; r < n; r++)
		for (int c = 0; c < COLUMNS; c++)
			run_once(&all, c, r);
	printf("%-38s %23s %23s %23s %23s\n", "ns: median (middle half)",
	       "marcel, 1 VP", "pthreads, 1 CPU", "marcel, 2 VPs",
	       "pthreads, 2 CPUs");
	for (int w = 0; w < WHAT; w++) {
		printf("%-38s", what[w].name);
		for (int c = 0; c < COLUMNS; c++) {
			double *x = result[w][c];

			qsort(x, (size_t)n, sizeof(*x), by_value);
			printf(" %9.1f (%.4g-%.4g)", x[n / 2], x[n / 4],
			       x[3 * n / 4]);
		}
		printf("\n");
	}
	return 0;
}
