/*
 * marcel: Fibonacci numbers with a thread for every call, the classic way of
 * asking what a thread costs. A child that nobody has begun is run by the
 * thread that joins it, so the tree is walked as fast as it is deep.
 */
#include <marcel/marcel.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void *fib(void *arg)
{
	long n = (long)arg;
	void *a, *b;
	marcel_t child;

	if (n < 2)
		return (void *)n;
	if (marcel_create(&child, NULL, fib, (void *)(n - 1)) != 0)
		abort();
	b = fib((void *)(n - 2));
	marcel_join(child, &a);
	return (void *)((long)a + (long)b);
}

/* The same without threads; fib(n) makes plain(n + 1) - 1 of them. */
static long plain(long n)
{
	long a = 0, b = 1;

	for (; n > 0; n--) {
		long sum = a + b;

		a = b;
		b = sum;
	}
	return a;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 20, result, threads;
	double start;

	if (n < 0 || n > 32) {
		fprintf(stderr, "usage: fib [0..32]\n");
		return 2;
	}
	if (marcel_init(NULL) != 0)
		return 1;
	start = now();
	result = (long)fib((void *)n);
	start = now() - start;
	threads = plain(n + 1) - 1;
	printf("fib(%ld) = %ld, %ld threads, %.0f ns each\n", n, result,
	       threads, threads > 0 ? start * 1e9 / (double)threads : 0);
	marcel_end();
	return result != plain(n);
}
