/*
 * What threads cost, by the same programs for every thread library: a file for
 * each (marcel.c, pthread.c, pth.c, boost.cpp) says how the library does what
 * the programs need, and includes them; go/main.go is the same in Go.
 *
 *   bench_LIBRARY [-m] [-n OPERATIONS] CPUS [PROGRAM ...]
 *
 * The programs run on so many CPUs, in a thread of the library's, with -m in
 * main(). They print "name value unit" for each thing that they measure, and
 * nothing for what the library does not have. In one process the first ones
 * warm up the later ones: tools/bench/run.py makes one for each.
 *
 * What a library's file defines before it includes programs.h:
 *
 *   rt_thread, rt_mutex, rt_cond, rt_sem, rt_barrier, rt_attr
 *   RT_SLOW     operations are divided by this, but those that no thread
 *               waits in
 *   RT_MANY     how many threads it can hold at a time
 *   RT_FIB, RT_TREE   how large a recursion, and of how many subtrees a tree,
 *             it can do in a second
 *   RT_PREEMPTS, RT_FOREIGN   whether threads that compute are interrupted, and
 *             whether a kernel thread may post a semaphore
 *   RT_FAVOURS  whether a thread can be favoured, by rt_favour()
 *   RT_SECTIONS, RT_PRIVATE   whether calls that may sleep are announced, by
 *             rt_section_begin() and _end(), and whether a thread that shares
 *             its kernel thread with others can have one of its own, by
 *             rt_attr_private()
 *   rt_...      the functions below; they return 0 or an error number, positive
 *             or negative, and those of locks nothing
 */
#ifndef TESTS_BENCH_MARCEL_BENCH_H
#define TESTS_BENCH_MARCEL_BENCH_H

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static cpu_set_t all_cpus;
static int workers;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Ends the program if err, an error number or the negative of one, is not 0. */
static inline void must(int err)
{
	if (err == 0)
		return;
	fprintf(stderr, "benchmark: %s\n", strerror(abs(err)));
	exit(1);
}

static inline void *must_have(void *memory)
{
	if (memory == NULL)
		must(ENOMEM);
	return memory;
}

static inline void report(const char *name, double value, const char *unit)
{
	if (!isnan(value))
		printf("%s %.4f %s\n", name, value, unit);
	fflush(stdout);
}

/*
 * Let this thread and those it makes use n of the CPUs that the process may
 * use, not the first `skip` of them; all if none is left.
 */
static inline void use_cpus(int skip, int n)
{
	cpu_set_t some;

	CPU_ZERO(&some);
	for (int cpu = 0; cpu < CPU_SETSIZE && n > 0; cpu++)
		if (CPU_ISSET(cpu, &all_cpus) && skip-- <= 0) {
			CPU_SET(cpu, &some);
			n--;
		}
	if (CPU_COUNT(&some) == 0)
		some = all_cpus;
	if (sched_setaffinity(0, sizeof(some), &some) != 0)
		must(errno);
}

#endif
