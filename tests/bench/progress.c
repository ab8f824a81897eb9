/*
 * What pioman takes from threads that compute: the same computation on each CPU
 * beside it, while an ltask is submitted that finds nothing, and without it,
 * A B B A ...; how many times as much it takes beside it.
 *
 *   progress [-n PAIRS] [-m MS] ENGINE polled|armed
 *   progress [-n PAIRS] [-m MS] idle all|others
 *
 * PAIRS (21) of computations of MS (20) on each CPU: by user threads, with
 * engine pthread by kernel threads, which are bound: where the kernel puts them
 * is not what is measured. The ltask answers AGAIN: "polled" has nothing but
 * that, "armed" a descriptor; both in each PIOM_MODE. "idle" is engine pthread,
 * polling, with PIOM_IDLE_US of 0 to 1,000, while all CPUs compute or all but
 * one (PDP 2015: < 0.5 %).
 *
 * Lines "NAME VALUE ratio": clock_MODE by the clock, which counts what other
 * processes take; least_MODE, the least with to the least without, which shows
 * least of that; threads_MODE, the CPU time of the threads that compute;
 * process_MODE, that of the process, also on CPUs with nothing to do. Or, with
 * "idle", clock_US and so on.
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
	double wall, threads, process; /* ns; CPU time */
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
	return (struct took){ (double)(now_ns() - begin), threads, cpu };
}

/* --- beside it --- */

struct beside {
	const char *engine, *mode, *idle_us;
	const char *name; /* what of these it is called after */
	int armed;        /* the ltask has a descriptor */
	int idle;         /* so many CPUs do not compute */
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

static void print(const char *what, const struct beside *b, double times)
{
	printf("%s_%s %.5f ratio\n", what, b->name, times);
}

static void set(const struct beside *b)
{
	setenv("PIOM_ENGINE", b->engine, 1);
	setenv("PIOM_MODE", b->mode, 1);
	if (b->idle_us != NULL)
		setenv("PIOM_IDLE_US", b->idle_us, 1);
}

static void measure(const struct beside *b)
{
	int kernel = strcmp(b->engine, "pthread") == 0, n;
	double wall[PAIRS_MAX], threads[PAIRS_MAX], process[PAIRS_MAX];
	double least_without = 0, least_with = 0;
	struct took without, with;

	set(b);
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
		wall[i] = with.wall / without.wall;
		threads[i] = with.threads / without.threads;
		process[i] = with.process / without.process;
	}
	must(marcel_end() == 0, "marcel_end");
	if (n <= 0)
		return;
	print("clock", b, median(wall, pairs));
	print("least", b, least_with / least_without);
	print("threads", b, median(threads, pairs));
	print("process", b, median(process, pairs));
	fflush(stdout);
}

static void measure_modes(const char *engine, int armed)
{
	static const char *const modes[] = { "auto", "poll", "interrupt" };

	for (size_t i = 0; i < BASE_ARRAY_LEN(modes); i++)
		measure(&(struct beside){ .engine = engine,
					  .mode = modes[i],
					  .name = modes[i],
					  .armed = armed });
}

static void measure_idle(int idle)
{
	static const char *const us[] = { "0", "10", "100", "1000" };

	for (size_t i = 0; i < BASE_ARRAY_LEN(us); i++)
		measure(&(struct beside){ .engine = "pthread",
					  .mode = "poll",
					  .name = us[i],
					  .idle_us = us[i],
					  .idle = idle });
}

/* Which of these it is; -1: none. */
static int which(const char *const *of, const char *word)
{
	for (int i = 0; of[i] != NULL; i++)
		if (strcmp(of[i], word) == 0)
			return i;
	return -1;
}

/* Whether there is such a thing. */
static int run(const char *what, const char *how)
{
	static const char *const engines[] = { "marcel", "pthread", "none",
					       NULL };
	static const char *const ltasks[] = { "polled", "armed", NULL };
	static const char *const computing[] = { "all", "others", NULL };
	int idle = strcmp(what, "idle") == 0;
	int at = which(idle ? computing : ltasks, how);

	if (at < 0 || (!idle && which(engines, what) < 0))
		return 0;
	find_cpus();
	calibrate();
	if (idle)
		measure_idle(at);
	else
		measure_modes(what, at);
	return 1;
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
	if (pairs >= 1 && pairs <= PAIRS_MAX && ms >= 1 && argc - optind == 2 &&
	    run(argv[optind], argv[optind + 1]))
		return 0;
	fprintf(stderr, "progress [-n PAIRS] [-m MS] marcel|pthread|none "
			"polled|armed\n"
			"progress [-n PAIRS] [-m MS] idle all|others\n");
	return 2;
}
