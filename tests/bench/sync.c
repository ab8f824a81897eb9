/*
 * What locks cost: marcel's on one VP and on two, beside those of pthreads on
 * the same number of CPUs. Runs of the three alternate; median and the middle
 * half of the runs are shown, in ns.
 *
 *   sync [REPETITIONS]
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <marcel/marcel.h>

enum { THREADS = 64, REPETITIONS = 9, REPETITIONS_MAX = 101 };

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
		fprintf(stderr, "sync: %s\n", strerror(err < 0 ? -err : err));
		exit(1);
	}
}

static int pthread_yield_(void)
{
	return sched_yield();
}

#define P(name) marcel_##name
#include "sync_body.h"
#undef P

#define pthread_yield pthread_yield_
#define P(name)       pthread_##name
#include "sync_body.h"
#undef P

static const struct {
	const char *name;
	long ops, ops_pthread;
} what[] = {
	{ "mutex: lock + unlock, uncontended", 2000000, 2000000 },
	{ "hand-over by mutex + cond, 2 threads", 1000000, 20000 },
	{ "mutex: 64 threads, short section", 2000000, 1000000 },
	{ "mutex: 64 threads, yield inside", 500000, 50000 },
	{ "barrier of 64", 1000000, 6400 },
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

static void run_once(const cpu_set_t *all, int column, int repetition)
{
	int cpus = column < MARCEL_2 ? 1 : 2;
	int library = column % 2;

	use_cpus(all, cpus);
	if (library == MARCEL_1)
		must(marcel_init(&(struct marcel_config){ .nvp = cpus }));
	for (int w = 0; w < WHAT; w++)
		result[w][column][repetition] =
			library == MARCEL_1
				? marcel_benches[w](what[w].ops)
				: pthread_benches[w](what[w].ops_pthread);
	if (library == MARCEL_1)
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
		fprintf(stderr, "usage: sync [1..%d repetitions]\n",
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
