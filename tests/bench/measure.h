/*
 * What the benchmarks of pioman share: time, order statistics, errors that end
 * the program.
 */
#ifndef TESTS_BENCH_MEASURE_H
#define TESTS_BENCH_MEASURE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Ends the program if not, with what errno says. */
static inline void must(int ok, const char *what)
{
	if (ok)
		return;
	fflush(stdout);
	perror(what);
	_Exit(1);
}

static inline int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts them; the value that a share of 0 to 1 of them is below. */
static inline double quantile(double *x, int n, double share)
{
	int i = (int)(share * n);

	qsort(x, (size_t)n, sizeof(*x), by_value);
	return x[i < n ? i : n - 1];
}

static inline double median(double *x, int n)
{
	return quantile(x, n, 0.5);
}

#endif
