/* The programs, and main(): bench.h says what for. */
#include <pthread.h>
#include <semaphore.h>

/* With -n, how often instead of what the table says. */
static long ops_wanted;

static long ops_or(long ops)
{
	return ops_wanted != 0 ? ops_wanted : ops;
}

#include "threads.h"
#include "tree.h"
#include "locks.h"
#include "blocked.h"
#include "waking.h"

/* Either one figure, of which the second run counts, or what run() reports. */
struct bench {
	const char *name;
	double (*fn)(long ops);
	long ops;
	void (*run)(void);
	int same; /* as many for every library: nobody waits */
};

static void fork_join_cold(void)
{
	report("fork_join_cold", fork_join(ops_or(100000 / RT_SLOW)), "ns");
}

static const struct bench benches[] = {
	{ "fork_join_cold", NULL, 0, fork_join_cold },
	{ "create_join", create_join, 200000, NULL },
	{ "fork_join", fork_join, 100000, NULL },
	{ "fork_join_16k", fork_join_16k, 100000, NULL },
	{ "fork_join_1m", fork_join_1m, 100000, NULL },
	{ "yield_2", yield_2, 1000000, NULL },
	{ "yield_1000", yield_1000, 2000000, NULL },
	{ "yield_private", yield_private, 50000, NULL },
	{ "hand_over", hand_over, 1000000, NULL },
	{ "hand_over_pinned", hand_over_pinned, 400000, NULL },
	{ "mutex_cond", mutex_cond, 1000000, NULL },
	{ "mutex", uncontended, 2000000, NULL, 1 },
	{ "mutex_short", mutex_short, 2000000, NULL },
	{ "mutex_yielding", mutex_yielding, 500000, NULL },
	{ "barrier", barrier, 1000000, NULL },
	{ "fib", fib_threads, 1, NULL },
	{ "tree", tree, 1, NULL },
	{ "tree_working", tree_working, 1, NULL },
	{ "tree_serial", tree_serial, 1, NULL },
	{ "blocked", NULL, 0, blocked },
	{ "idle", NULL, 0, idle },
	{ "wake_up", NULL, 0, wake_up },
	{ "wake_busy", NULL, 0, wake_busy },
	{ "blocking", NULL, 0, blocking },
	{ "preempt", NULL, 0, preempt },
};

/* Run only if it is named. */
static const struct bench silent = { "create_only", create_only, 100000, NULL };

static int wanted;
static char **want;

static int is_wanted(const char *name)
{
	for (int i = 0; i < wanted; i++)
		if (strcmp(want[i], name) == 0)
			return 1;
	return 0;
}

static void run(const struct bench *b)
{
	int whole = b->same || b->ops < RT_SLOW;
	long ops = ops_or(whole ? b->ops : b->ops / RT_SLOW);

	if (b->run != NULL) {
		b->run();
		return;
	}
	b->fn(ops);
	report(b->name, b->fn(ops), "ns");
}

static void *run_all(void *arg)
{
	size_t n = sizeof(benches) / sizeof(benches[0]);

	for (size_t i = 0; i < n; i++)
		if (wanted == 0 || is_wanted(benches[i].name))
			run(&benches[i]);
	if (is_wanted(silent.name))
		run(&silent);
	return arg;
}

static int usage(const char *program)
{
	fprintf(stderr, "usage: %s [-m] [-n OPERATIONS] CPUS [PROGRAM ...]\n",
		program);
	return 2;
}

int main(int argc, char **argv)
{
	int option, in_main = 0;

	while ((option = getopt(argc, argv, "mn:")) != -1)
		if (option == 'm')
			in_main = 1;
		else if (option != 'n' || (ops_wanted = atol(optarg)) < 1)
			return usage(argv[0]);
	if (optind == argc || (workers = atoi(argv[optind])) < 1)
		return usage(argv[0]);
	wanted = argc - optind - 1;
	want = argv + optind + 1;
	sched_getaffinity(0, sizeof(all_cpus), &all_cpus);
	use_cpus(0, workers);
	if (rt_begin() != 0) {
		fprintf(stderr, "%s: not on %d CPUs\n", argv[0], workers);
		return 77;
	}
	if (in_main) {
		run_all(NULL);
	} else {
		rt_thread t;

		must(rt_create(&t, NULL, run_all, NULL));
		must(rt_join(&t));
	}
	must(rt_end());
	return 0;
}
