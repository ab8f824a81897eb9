/*
 * Benchmarks in columns: marcel's threads on one VP and on two, beside
 * pthreads on the same number of CPUs. Runs of the four alternate; shown are
 * the median and the middle half of the runs, in ns.
 */
#ifndef TESTS_BENCH_COLUMNS_H
#define TESTS_BENCH_COLUMNS_H

/* Does it so many times; ns per operation. */
typedef double (*bench_fn)(long ops);

struct bench {
	const char *name;
	bench_fn marcel, pthread;
	long ops, ops_pthread;
};

enum { BENCH_MAX = 16 };

double now_ns(void);

/* Ends the program if err, an error number or the negative of one, is not 0. */
void must(int err);

/* main() of such a program; its argument is the number of repetitions. */
int bench_columns(int argc, char **argv, const struct bench *benches, int n);

#endif
