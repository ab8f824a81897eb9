/* Benchmarks in columns. */
#include "columns.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <marcel/marcel.h>

enum { REPETITIONS = 9, REPETITIONS_MAX = 101 };

/* Library and number of CPUs. */
enum { MARCEL_1, PTHREAD_1, MARCEL_2, PTHREAD_2, COLUMNS };

static double result[BENCH_MAX][COLUMNS][REPETITIONS_MAX];

double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

void must(int err)
{
	if (err != 0) {
		fprintf(stderr, "benchmark: %s\n", strerror(abs(err)));
		exit(1);
	}
}

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

/* The programs run in a user thread, as most of a program's code does. */
struct job {
	const struct bench *benches;
	int n, column, repetition;
};

static void *run_all(void *arg)
{
	const struct job *job = arg;
	int is_marcel = job->column % 2 == MARCEL_1;

	for (int i = 0; i < job->n; i++) {
		const struct bench *b = &job->benches[i];

		result[i][job->column][job->repetition] =
			is_marcel ? b->marcel(b->ops)
				  : b->pthread(b->ops_pthread);
	}
	return NULL;
}

static void run_once(const cpu_set_t *all, struct job *job)
{
	int cpus = job->column < MARCEL_2 ? 1 : 2;
	marcel_t t;

	use_cpus(all, cpus);
	if (job->column % 2 == PTHREAD_1) {
		run_all(job);
		return;
	}
	must(marcel_init(&(struct marcel_config){ .nvp = cpus }));
	must(marcel_create(&t, NULL, run_all, job));
	must(marcel_join(t, NULL));
	must(marcel_end());
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print(const struct bench *benches, int n, int repetitions)
{
	printf("%-38s %23s %23s %23s %23s\n", "ns: median (middle half)",
	       "marcel, 1 VP", "pthreads, 1 CPU", "marcel, 2 VPs",
	       "pthreads, 2 CPUs");
	for (int i = 0; i < n; i++) {
		printf("%-38s", benches[i].name);
		for (int c = 0; c < COLUMNS; c++) {
			double *x = result[i][c];

			qsort(x, (size_t)repetitions, sizeof(*x), by_value);
			printf(" %9.1f (%.4g-%.4g)", x[repetitions / 2],
			       x[repetitions / 4], x[3 * repetitions / 4]);
		}
		printf("\n");
	}
}

int bench_columns(int argc, char **argv, const struct bench *benches, int n)
{
	int repetitions = argc > 1 ? atoi(argv[1]) : REPETITIONS;
	struct job job = { benches, n, 0, 0 };
	cpu_set_t all;

	if (repetitions < 1 || repetitions > REPETITIONS_MAX) {
		fprintf(stderr, "usage: %s [1..%d repetitions]\n", argv[0],
			REPETITIONS_MAX);
		return 2;
	}
	sched_getaffinity(0, sizeof(all), &all);
	for (; job.repetition < repetitions; job.repetition++)
		for (job.column = 0; job.column < COLUMNS; job.column++)
			run_once(&all, &job);
	print(benches, n, repetitions);
	return 0;
}
