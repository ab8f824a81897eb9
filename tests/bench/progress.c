/*
 * What pioman takes from threads that compute, in % of what the computation
 * takes: the same on each CPU without pioman and beside it, A B B A ..., while
 * an ltask is submitted that finds nothing. By the clock, which counts what
 * other processes take: least shows least of that; by the CPU time of the
 * threads that compute; and the CPU time of all others, which may be that of
 * CPUs with nothing to do.
 *
 *   progress [-n PAIRS] [-m MS] [ENGINE [MODE]]
 *
 * PAIRS (21) of computations of MS (20) on each CPU: by user threads, with
 * engine pthread by kernel threads, which are bound: where the kernel puts them
 * is not what is measured. The ltask answers AGAIN: "polled" has
 * nothing but that, "armed" a descriptor. At the end engine pthread for several
 * PIOM_IDLE_US, all CPUs computing and all but one (PDP 2015: < 0.5 % for 0 to
 * 1,000 us).
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <base/compiler.h>

#include <marcel/marcel.h>
#include <pioman/pioman.h>

#include "measure.h"

enum { PAIRS_MAX = 1001, THREADS_MAX = 256, WARM_UP = 2 };

static int pairs = 21, ms = 20;
static long steps;                     /* of a computation */
static int cpu_of[CPU_SETSIZE], ncpus; /* those that we may use */

static double cpu_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* --- the computation --- */

static double sink[THREADS_MAX][16];

static void compute(double *out)
{
	double x = 0.5;

	for (long i = 0; i < steps; i++)
		x = 3.9 * x * (1 - x);
	*out = x;
}

/* A computing thread's CPU time, behind its result. */
static void *compute_thread(void *out)
{
	double *result = out, begin = cpu_ns(CLOCK_THREAD_CPUTIME_ID);

	compute(result);
	result[1] = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
	return NULL;
}

/* So many steps that it takes about that long. */
static void calibrate(void)
{
	uint64_t begin, took = 0;

	for (steps = 1000; took < (uint64_t)ms * 1000000; steps *= 2) {
		begin = now_ns();
		compute(sink[0]);
		took = now_ns() - begin;
	}
	steps = (long)((double)steps / 2 * ms * 1e6 / (double)took);
}

/* Before marcel binds main. */
static void find_cpus(void)
{
	cpu_set_t set;

	must(sched_getaffinity(0, sizeof(set), &set) == 0, "affinity");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpu_of[ncpus++] = cpu;
}

struct took {
	double wall, threads, others; /* ns; CPU time */
};

static void make_bound(pthread_t *k, int cpu, double *out)
{
	pthread_attr_t attr;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	must(pthread_attr_init(&attr) == 0, "attributes");
	must(pthread_attr_setaffinity_np(&attr, sizeof(set), &set) == 0,
	     "affinity");
	must(pthread_create(k, &attr, compute_thread, out) == 0, "thread");
	pthread_attr_destroy(&attr);
}

static struct took compute_all(int n, int kernel)
{
	static pthread_t k[THREADS_MAX];
	static marcel_t u[THREADS_MAX];
	uint64_t begin = now_ns();
	double cpu = cpu_ns(CLOCK_PROCESS_CPUTIME_ID), threads = 0;
	marcel_attr_t attr;

	marcel_attr_init(&attr);
	for (int i = 0; i < n; i++) {
		marcel_attr_setvp(&attr, i);
		if (kernel)
			make_bound(&k[i], cpu_of[i], sink[i]);
		else
			must(marcel_create(&u[i], &attr, compute_thread,
					   sink[i]) == 0,
			     "marcel_create");
	}
	for (int i = 0; i < n; i++) {
		if (kernel)
			pthread_join(k[i], NULL);
		else
			marcel_join(u[i], NULL);
		threads += sink[i][1];
	}
	marcel_attr_destroy(&attr);
	cpu = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	return (struct took){ (double)(now_ns() - begin), threads,
			      cpu - threads };
}

/* --- beside it --- */

struct beside {
	const char *engine, *mode, *idle_us;
	int armed; /* the ltask has a descriptor */
	int idle;  /* so many CPUs do not compute */
};

static enum piom_ltask_result nothing(void *arg)
{
	(void)arg;
	return PIOM_LTASK_AGAIN;
}

static struct took compute_beside(const struct beside *b, int n, int kernel)
{
	struct piom_blocking how = { .delay_ns = PIOM_BLOCKING_AUTO };
	struct piom_ltask t;
	struct took took;

	must(piom_init() == 0, "piom_init");
	how.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	must(how.fd >= 0, "eventfd");
	piom_ltask_init(&t, nothing, NULL, PIOM_LTASK_REPEAT, NULL);
	if (b->armed)
		must(piom_ltask_set_blocking(&t, &how) == 0, "set_blocking");
	piom_ltask_submit(&t);
	took = compute_all(n, kernel);
	must(piom_ltask_cancel(&t) == 0, "cancel");
	must(piom_exit() == 0, "piom_exit");
	close(how.fd);
	return took;
}

static void print(double *percent)
{
	qsort(percent, (size_t)pairs, sizeof(percent[0]), by_value);
	printf(" %8.2f (%6.2f ..%6.2f)", percent[pairs / 2], percent[pairs / 4],
	       percent[3 * pairs / 4]);
}

static void measure(const struct beside *b)
{
	int kernel = strcmp(b->engine, "pthread") == 0, n;
	double wall[PAIRS_MAX], threads[PAIRS_MAX], others[PAIRS_MAX];
	double least_without = 0, least_with = 0;
	struct took without, with;

	setenv("PIOM_ENGINE", b->engine, 1);
	setenv("PIOM_MODE", b->mode, 1);
	if (b->idle_us != NULL)
		setenv("PIOM_IDLE_US", b->idle_us, 1);
	must(marcel_init(NULL) == 0, "marcel_init");
	n = marcel_nvp() - b->idle;
	n = n < THREADS_MAX ? n : THREADS_MAX;
	n = n < ncpus ? n : ncpus;
	for (int i = -WARM_UP; n > 0 && i < pairs; i++) {
		if (i & 1)
			with = compute_beside(b, n, kernel);
		without = compute_all(n, kernel);
		if (!(i & 1))
			with = compute_beside(b, n, kernel);
		if (i < 0)
			continue;
		if (i == 0 || without.wall < least_without)
			least_without = without.wall;
		if (i == 0 || with.wall < least_with)
			least_with = with.wall;
		wall[i] = 100 * (with.wall / without.wall - 1);
		threads[i] = 100 * (with.threads / without.threads - 1);
		others[i] =
			100 * (with.others - without.others) / without.threads;
	}
	must(marcel_end() == 0, "marcel_end");
	if (b->idle_us != NULL)
		unsetenv("PIOM_IDLE_US");
	if (n <= 0)
		return;
	printf("  %-8s %-10s %-7s %5s %4d", b->engine, b->mode,
	       b->armed ? "armed" : "polled",
	       b->idle_us != NULL ? b->idle_us : "-", n);
	print(wall);
	printf(" %8.2f", 100 * (least_with / least_without - 1));
	print(threads);
	print(others);
	printf("\n");
	fflush(stdout);
}

static const char *const engines[] = { "marcel", "pthread", "none" };
static const char *const modes[] = { "auto", "poll", "interrupt" };
static const char *const idles[] = { "0", "10", "100", "1000" };

static void measure_all(const char *engine, const char *mode)
{
	struct beside b = { 0 };

	for (int i = 0; i < 9; i++) {
		b.engine = engines[i / 3];
		b.mode = modes[i % 3];
		if ((engine != NULL && strcmp(engine, b.engine) != 0) ||
		    (mode != NULL && strcmp(mode, b.mode) != 0))
			continue;
		for (b.armed = 0; b.armed < 2; b.armed++)
			measure(&b);
	}
	if (engine != NULL && strcmp(engine, "pthread") != 0)
		return;
	b = (struct beside){ .engine = "pthread", .mode = "poll" };
	for (b.idle = 0; b.idle < 2; b.idle++) {
		for (size_t i = 0; i < BASE_ARRAY_LEN(idles); i++) {
			b.idle_us = idles[i];
			measure(&b);
		}
	}
}

int main(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "n:m:")) != -1) {
		if (option == 'n')
			pairs = atoi(optarg);
		else if (option == 'm')
			ms = atoi(optarg);
		else
			pairs = 0;
	}
	if (pairs < 1 || pairs > PAIRS_MAX || ms < 1 || argc - optind > 2) {
		fprintf(stderr,
			"progress [-n PAIRS] [-m MS] [ENGINE [MODE]]\n");
		return 2;
	}
	find_cpus();
	calibrate();
	printf("# %% slower than without pioman: median (quarter .. three "
	       "quarters) of %d pairs\n"
	       "# %-8s %-10s %-7s %5s %4s %26s %8s %26s %26s\n",
	       pairs, "engine", "mode", "ltask", "idle", "CPUs", "by the clock",
	       "least", "threads' CPU time", "others' CPU time");
	measure_all(optind < argc ? argv[optind] : NULL,
		    optind + 1 < argc ? argv[optind + 1] : NULL);
	return 0;
}
