/*
 *   stress [--vps N] [--seed S] [--round R] [--rounds N] [--seconds S]
 *          [--no-ticks]
 *
 * --no-ticks: no thread is preempted, whatever is drawn.
 *
 * Each round starts the runtime with settings that are drawn, lets the actors
 * draw their operations, ends it and holds all to account. The seed gives what
 * is drawn, not how the threads meet.
 */
#include "stress.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	ACTS = BASE_TSAN || BASE_ASAN ? 30 : 100, /* of an actor, in a round */
	WATCH_S = 5,                              /* between two looks */
	STANDSTILL = 24,                          /* looks at nothing new */
	WARM_UP = 4,                              /* rounds that fill caches */
	GROWTH_MIB = 48,
};

static struct {
	int vps;
	uint64_t seed, round, rounds;
	time_t seconds;
	int no_ticks;
} want = { .vps = 2, .rounds = UINT64_MAX };

static const struct op *const tables[] = {
	lock_ops,   thread_ops, team_ops,    kernel_ops,
	cancel_ops, affair_ops, tasklet_ops,
};

static const struct {
	const char *name, *values[4];
} settings[] = {
	{ "MARCEL_TIMESLICE_US", { "0", "1000", "1000", "10000" } },
	{ "MARCEL_LWP_MAX", { "2", "4", "64", "64" } },
	{ "MARCEL_SPIN_US", { "0", "50", "50", "50" } },
	{ "MARCEL_GUARDS", { "auto", "auto", "mprotect", "canary" } },
};

static struct actor actors[ACTORS + FOREIGN];
static marcel_t users[ACTORS];
static marcel_sem_t over; /* of an actor */
static ATOMIC(uint64_t) steps;
static uint64_t round_now;

/* --- when something is wrong --- */

static void tell_all(void)
{
	fprintf(stderr,
		"# again: stress --vps %d --seed %llu --round %llu --rounds "
		"1%s\n",
		want.vps, (unsigned long long)want.seed,
		(unsigned long long)round_now,
		want.no_ticks ? " --no-ticks" : "");
	for (size_t i = 0; i < BASE_ARRAY_LEN(settings); i++)
		fprintf(stderr, "# %s=%s\n", settings[i].name,
			getenv(settings[i].name));
	for (int i = 0; i < ACTORS + FOREIGN; i++) {
		const char *doing = load_relaxed(&actors[i].doing);

		if (doing != NULL)
			fprintf(stderr, "# actor %d: %s\n", i, doing);
	}
	fflush(NULL);
	raise(SIGUSR1); /* MARCEL_DUMP_SIGNAL */
}

void fail(const char *file, int line, const char *fmt, ...)
{
	int error = errno;
	va_list ap;

	fprintf(stderr, "# %s:%d: ", file, line);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (errno %d)\n", error);
	tell_all();
	abort();
}

/* A kernel thread; the kernel tells it the time. */
static void *watch(void *arg)
{
	uint64_t before = 0, now;
	int quiet = 0;

	for (;;) {
		sleep(WATCH_S);
		now = load_relaxed(&steps);
		quiet = now == before ? quiet + 1 : 0;
		before = now;
		if (quiet < STANDSTILL)
			continue;
		fprintf(stderr, "# nothing goes on since %d s\n",
			quiet * WATCH_S);
		tell_all();
		abort();
	}
	return arg;
}

/* --- actors --- */

static bool allowed(const struct op *op, const struct actor *a)
{
	return !(op->deep && a->depth >= DEPTH_MAX) &&
	       !(op->users && a->foreign);
}

static const struct op *draw_op(struct actor *a)
{
	unsigned sum = 0, n;

	for (size_t i = 0; i < BASE_ARRAY_LEN(tables); i++)
		for (const struct op *op = tables[i]; op->name != NULL; op++)
			sum += allowed(op, a) ? op->weight : 0;
	n = draw_below(a, sum);
	for (size_t i = 0; i < BASE_ARRAY_LEN(tables); i++)
		for (const struct op *op = tables[i]; op->name != NULL; op++) {
			if (!allowed(op, a))
				continue;
			if (n < op->weight)
				return op;
			n -= op->weight;
		}
	abort();
}

void act(struct actor *a)
{
	const struct op *op = draw_op(a);

	store_relaxed(&a->doing, op->name);
	op->fn(a);
	store_relaxed(&a->doing, NULL);
	fetch_add_relaxed(&steps, 1);
}

marcel_t draw_actor(struct actor *a)
{
	return load_acquire(&actors[draw_below(a, ACTORS)].self);
}

static void *actor_main(void *arg)
{
	struct actor *a = arg;

	store_release(&a->self, marcel_self());
	for (int i = 0; i < ACTS; i++)
		act(a);
	MUST_INT(marcel_sem_post(&over), 0);
	return NULL;
}

/* --- a round --- */

static void draw_settings(struct actor *a)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(settings); i++)
		setenv(settings[i].name, settings[i].values[draw_below(a, 4)],
		       1);
	if (want.no_ticks)
		setenv("MARCEL_TIMESLICE_US", "0", 1);
	setenv("MARCEL_DUMP_SIGNAL", "USR1", 1);
}

static void play_round(struct actor *director)
{
	pthread_t foreign[FOREIGN];

	MUST_INT(marcel_sem_init(&over, 0, 0), 0);
	for (int i = 0; i < ACTORS + FOREIGN; i++)
		actors[i] = (struct actor){ .random = draw(director),
					    .id = i,
					    .foreign = i >= ACTORS,
					    .is_main = i == 0 };
	for (int i = 0; i < FOREIGN; i++)
		MUST_INT(pthread_create(&foreign[i], NULL, actor_main,
					&actors[ACTORS + i]),
			 0);
	for (int i = 1; i < ACTORS; i++)
		MUST_INT(marcel_create(&users[i], NULL, actor_main, &actors[i]),
			 0);
	actor_main(&actors[0]);
	for (int i = 0; i < ACTORS + FOREIGN; i++)
		MUST_INT(marcel_sem_wait(&over), 0);
	for (int i = 0; i < FOREIGN; i++)
		MUST_INT(pthread_join(foreign[i], NULL), 0);
	MUST_INT(marcel_sem_destroy(&over), 0);
	threads_end();
	/* Nobody is left who could draw them. */
	for (int i = 1; i < ACTORS; i++)
		MUST_INT(marcel_join(users[i], NULL), 0);
}

static void run_round(uint64_t number)
{
	struct marcel_config config = { .nvp = want.vps };
	struct actor director = { .random = want.seed * 1000003 + number };

	round_now = number;
	draw_settings(&director);
	MUST_INT(marcel_init(&config), 0);
	locks_begin(&director);
	threads_begin();
	teams_begin();
	kernel_begin();
	affairs_begin();
	tasklets_begin(&director);
	play_round(&director);
	tasklets_end();
	locks_end();
	MUST_INT(marcel_end(), 0);
	affairs_over();
	kernel_over();
	teams_over();
	threads_over();
}

/* --- what a round leaves --- */

static long count_entries(const char *path)
{
	DIR *d = opendir(path);
	long n = 0;

	MUST(d != NULL);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static long resident_mib(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long size, resident;

	MUST(f != NULL && fscanf(f, "%ld %ld", &size, &resident) == 2);
	fclose(f);
	return resident * (sysconf(_SC_PAGESIZE) >> 10) >> 10;
}

/* A kernel thread that was joined stays in /proc for a moment. */
static void check_left(long files, long mib)
{
	const bool counted = !BASE_TSAN && !BASE_ASAN;

	MUST_INT(count_entries("/proc/self/fd"), files);
	if (counted && mib > 0)
		MUST(resident_mib() < mib + GROWTH_MIB);
}

/* --- the program --- */

static void read_arguments(int argc, char **argv)
{
	static const struct option options[] = {
		{ "vps", required_argument, NULL, 'v' },
		{ "seed", required_argument, NULL, 's' },
		{ "round", required_argument, NULL, 'r' },
		{ "rounds", required_argument, NULL, 'n' },
		{ "seconds", required_argument, NULL, 't' },
		{ "no-ticks", no_argument, &want.no_ticks, 1 },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 'v':
			want.vps = atoi(optarg);
			break;
		case 's':
			want.seed = strtoull(optarg, NULL, 0);
			break;
		case 'r':
			want.round = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			want.rounds = strtoull(optarg, NULL, 0);
			break;
		case 't':
			want.seconds = atoi(optarg);
			break;
		case 0:
			break;
		default:
			exit(2);
		}
}

static bool goes_on(uint64_t n, time_t start)
{
	if (want.seconds > 0 && time(NULL) >= start + want.seconds)
		return false;
	return n < want.rounds;
}

int main(int argc, char **argv)
{
	time_t start = time(NULL);
	long files, mib = 0;
	uint64_t n = 0;
	pthread_t p;

	want.seed = (uint64_t)start;
	read_arguments(argc, argv);
	printf("# %d vps, seed %llu\n", want.vps,
	       (unsigned long long)want.seed);
	fflush(stdout);
	MUST_INT(pthread_create(&p, NULL, watch, NULL), 0);
	files = count_entries("/proc/self/fd");
	for (; goes_on(n, start); n++) {
		run_round(want.round + n);
		check_left(files, mib);
		if (n == WARM_UP)
			mib = resident_mib();
	}
	printf("# %llu rounds, %llu operations\n", (unsigned long long)n,
	       (unsigned long long)load_relaxed(&steps));
	return 0;
}
