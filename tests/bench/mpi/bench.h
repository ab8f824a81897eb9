/*
 * What the MPI benchmarks share. Each prints lines "name value unit", the
 * value being the median over its repetitions; tools/bench/run.py compares the
 * lines of several MPIs. Plain MPI-3, so that peers compile the same source.
 */
#ifndef BENCH_MPI_H
#define BENCH_MPI_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median; sorts the values. */
static inline double bench_median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), bench_compare);
	return values[n / 2];
}

/* "8B", "4K", "1M" in out. */
static inline const char *bench_size(char out[16], size_t bytes)
{
	if (bytes >= 1 << 20)
		snprintf(out, 16, "%zuM", bytes >> 20);
	else if (bytes >= 1 << 10)
		snprintf(out, 16, "%zuK", bytes >> 10);
	else
		snprintf(out, 16, "%zuB", bytes);
	return out;
}

/* A number from 1 on, of an argument; else the job ends. */
static inline size_t bench_number(const char *program, const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (*end != '\0' || n < 1) {
		fprintf(stderr, "%s: '%s' is not a number from 1 on\n", program,
			text);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	return (size_t)n;
}

static inline void *bench_alloc(size_t bytes)
{
	void *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

	if (p == NULL) {
		fprintf(stderr, "no memory for %zu bytes\n", bytes);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	memset(p, 1, bytes);
	return p;
}

#endif
