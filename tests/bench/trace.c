/*
 * What an event of MARCEL_TRACE costs, in ns of CPU time, on one VP:
 *
 *   off      events are not recorded: a branch
 *   event    one record
 *   more     a record and another one behind it
 *   outside  a kernel thread that drives no VP
 *   switch   one of two threads that yield to each other, without and with a
 *            trace: two records each (YIELD, RUN)
 *
 * One chunk holds all of it: the writer is not waited for.
 */
#include <base/trace.h>

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <marcel/marcel.h>

#include "measure.h"

enum { REPEATS = 9, EVENTS = 20000 };

static double ns[REPEATS];

static void print(const char *what, int n, double *ns_of)
{
	double least, most, middle = median(ns_of, n);

	least = ns_of[0];
	most = ns_of[n - 1];
	printf("%-28s %8.1f  (%.1f .. %.1f)\n", what, middle, least, most);
	fflush(stdout);
}

/* Of the calling kernel thread; on one VP that is who does it all. */
static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* --- single events --- */

static void put(void)
{
	for (uint64_t i = 0; i < EVENTS; i++)
		marcel_trace(MARCEL_TRACE_MPI_ENTER, 1, i);
}

static void put_more(void)
{
	for (uint64_t i = 0; i < EVENTS; i++)
		marcel_trace_more(MARCEL_TRACE_SEND, 1, i, 2, 3, 4);
}

static void time_events(const char *what, void (*fn)(void))
{
	fn();
	for (int i = 0; i < REPEATS; i++) {
		uint64_t begin = cpu_ns();

		fn();
		ns[i] = (double)(cpu_ns() - begin) / EVENTS;
	}
	print(what, REPEATS, ns);
}

static void *outside(void *arg)
{
	time_events("event, outside", put);
	return arg;
}

/* --- switches --- */

static void *yield(void *arg)
{
	for (int i = 0; i < EVENTS / 4; i++)
		marcel_yield();
	return arg;
}

static void time_switches(const char *what)
{
	marcel_t t[2];

	for (int i = 0; i < REPEATS; i++) {
		uint64_t begin = cpu_ns();

		for (int k = 0; k < 2; k++)
			must(marcel_create(&t[k], NULL, yield, NULL) == 0,
			     "marcel_create");
		for (int k = 0; k < 2; k++)
			marcel_join(t[k], NULL);
		ns[i] = (double)(cpu_ns() - begin) / (EVENTS / 2);
	}
	print(what, REPEATS, ns);
}

/* --- */

static void start(void)
{
	struct marcel_config config = { .nvp = 1 };

	must(marcel_init(&config) == 0, "marcel_init");
}

static void stop(void)
{
	must(marcel_end() == 0, "marcel_end");
}

int main(void)
{
	char folder[] = "/tmp/bench-trace-XXXXXX", path[64];
	pthread_t p;

	setenv("MARCEL_TIMESLICE_US", "0", 1);
	start();
	time_events("event, off", put);
	time_switches("switch, off");
	stop();

	must(mkdtemp(folder) != NULL, "mkdtemp");
	snprintf(path, sizeof(path), "%s/t", folder);
	setenv("MARCEL_TRACE", path, 1);
	setenv("MARCEL_TRACE_BUFFER", "24m", 1);
	start();
	time_events("event", put);
	time_events("event and more", put_more);
	must(pthread_create(&p, NULL, outside, NULL) == 0, "pthread_create");
	pthread_join(p, NULL);
	time_switches("switch, two records");
	stop();
	unlink(path);
	rmdir(folder);
	return 0;
}
