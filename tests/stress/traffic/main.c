/*
 *   soak_traffic [--seed S] [--seconds S | --rounds N] [--only WHAT]
 *
 * Random traffic (traffic.h) for so long, or so many rounds of each group. The
 * seed gives what is sent, and to whom, not how threads meet. Who does nothing
 * new for a while has all threads listed and ends the job.
 */
#include "traffic.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <marcel/marcel.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	REPORT_S = 10,
	STANDSTILL_S =
		120, /* no fault of a network that is survived lasts so */
};

static const struct activity {
	const char *name;
	void (*fn)(struct group *g);
	unsigned weight;
} activities[] = {
	{ "messages", messages, 5 },
	{ "cancel", cancel, 1 },
	{ "collectives", collectives, 3 },
	{ "onesided", onesided, 2 },
};

enum { ACTIVITIES = sizeof(activities) / sizeof(activities[0]) };

static struct {
	uint64_t seed, rounds;
	double seconds;
	const char *only;
} want = { .seed = 1, .rounds = UINT64_MAX, .seconds = 10 };

_Atomic uint64_t counts[COUNTS];
static struct group groups[GROUPS];
static int rank, size;
static double begin;

/* --- when something is wrong --- */

static void tell_all(void)
{
	fprintf(stderr, "# rank %d, process %d, seed %" PRIu64 "\n", rank,
		(int)getpid(), want.seed);
	for (int i = 0; i < GROUPS; i++)
		fprintf(stderr, "#   group %d, round %" PRIu64 ": %s\n", i,
			groups[i].round, groups[i].doing);
}

void fail(const struct group *g, const char *file, int line, const char *fmt,
	  ...)
{
	va_list ap;

	fprintf(stderr, "# %s:%d: rank %d", file, line, rank);
	if (g != NULL)
		fprintf(stderr,
			", which is %d of %d in group %d, round %" PRIu64,
			g->rank, g->size, g->id, g->round);
	fprintf(stderr, ": ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	tell_all();
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

void *must_alloc(const struct group *g, size_t bytes)
{
	void *p = malloc(bytes + 1);

	MUST(g, p != NULL);
	return p;
}

static uint64_t all_counts(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < COUNTS; i++)
		sum += counts[i];
	return sum;
}

/* A kernel thread; the kernel tells it the time. */
static void *watch(void *arg)
{
	uint64_t before = 0, now;
	int quiet = 0;

	for (int s = REPORT_S;; s += REPORT_S) {
		sleep(REPORT_S);
		now = all_counts();
		quiet = now == before ? quiet + REPORT_S : 0;
		before = now;
		if (rank == 0)
			fprintf(stderr,
				"# %d s: rank 0 has sent %" PRIu64
				" messages, %" PRIu64 " MB\n",
				s, counts[SENT], counts[SENT_BYTES] >> 20);
		if (quiet < STANDSTILL_S)
			continue;
		fprintf(stderr, "# nothing goes on since %d s\n", quiet);
		tell_all();
		fflush(NULL);
		raise(SIGUSR1); /* MARCEL_DUMP_SIGNAL */
		sleep(2);
		abort();
	}
	return arg;
}

/* --- groups --- */

/* Who is in which: all; all, the last first; one of each host; halves. */
static void group_make(struct group *g, int id)
{
	static const char *const names[] = { "all", "reversed", "across",
					     "half" };
	int colour = id == 2 ? rank % 2 : id == 3 ? 2 * rank / size : 0;
	MPI_Aint bytes;

	g->id = id;
	g->doing = names[id];
	if (id == 0)
		MPI_Comm_dup(MPI_COMM_WORLD, &g->comm);
	else
		MPI_Comm_split(MPI_COMM_WORLD, colour, id == 1 ? -rank : rank,
			       &g->comm);
	MPI_Comm_rank(g->comm, &g->rank);
	MPI_Comm_size(g->comm, &g->size);
	g->key = mix(mix(want.seed, (uint64_t)id), (uint64_t)colour);
	bytes = (MPI_Aint)onesided_bytes(g->size);
	if (id % 2 == 0) {
		MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, g->comm, &g->memory,
				 &g->win);
	} else {
		g->memory = must_alloc(g, (size_t)bytes);
		MPI_Win_create(g->memory, bytes, 8, MPI_INFO_NULL, g->comm,
			       &g->win);
	}
	memset(g->memory, 0, (size_t)bytes);
	MPI_Barrier(g->comm);
}

static void group_free(struct group *g)
{
	MPI_Win_free(&g->win);
	if (g->id % 2 != 0)
		free(g->memory);
	MPI_Comm_free(&g->comm);
}

static const struct activity *activity_of(const struct group *g)
{
	uint64_t lot = lot_of(g, 8);
	unsigned sum = 0, n, i;

	for (i = 0; i < ACTIVITIES; i++)
		if (want.only != NULL &&
		    strcmp(activities[i].name, want.only) == 0)
			return &activities[i];
	for (i = 0; i < ACTIVITIES; i++)
		sum += activities[i].weight;
	n = draw_below(&lot, sum);
	for (i = 0; n >= activities[i].weight; i++)
		n -= activities[i].weight;
	return &activities[i];
}

/* Its first member says when it is over. */
static void *live(void *arg)
{
	struct group *g = arg;
	const struct activity *a;
	int more;

	for (;; g->round++) {
		more = g->round < want.rounds &&
		       MPI_Wtime() - begin < want.seconds;
		g->doing = "whether to go on";
		MPI_Bcast(&more, 1, MPI_INT, 0, g->comm);
		if (!more)
			break;
		a = activity_of(g);
		g->doing = a->name;
		a->fn(g);
		counts[ROUNDS]++;
	}
	g->doing = "nothing any more";
	return NULL;
}

/* --- all --- */

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno != 0 || *text == '\0' || *end != '\0') {
		fprintf(stderr, "soak_traffic: '%s' is no number\n", text);
		exit(2);
	}
	return n;
}

static void options(int argc, char **argv)
{
	static const struct option known[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "seconds", required_argument, NULL, 't' },
		{ "rounds", required_argument, NULL, 'r' },
		{ "only", required_argument, NULL, 'o' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1)
		switch (c) {
		case 's':
			want.seed = number(optarg);
			break;
		case 't':
			want.seconds = (double)number(optarg);
			break;
		case 'r':
			want.rounds = number(optarg);
			want.seconds = 1e9;
			break;
		case 'o':
			want.only = optarg;
			break;
		default:
			exit(2);
		}
}

/* What was sent has come, and nothing else. */
static void account(void)
{
	static const char *const names[] = {
		"messages sent",      "bytes sent",         "messages received",
		"bytes received",     "sends cancelled",    "collectives",
		"one-sided accesses", "rounds of a member",
	};
	uint64_t mine[COUNTS], all[COUNTS];

	for (int i = 0; i < COUNTS; i++)
		mine[i] = counts[i];
	MPI_Allreduce(mine, all, COUNTS, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	MUST_INT(NULL, all[RECEIVED], all[SENT]);
	MUST_INT(NULL, all[RECEIVED_BYTES], all[SENT_BYTES]);
	for (int i = 0; rank == 0 && i < COUNTS; i++)
		printf("%s: %" PRIu64 "\n", names[i], all[i]);
	if (rank == 0)
		printf("seed %" PRIu64 ": %d processes agree\n", want.seed,
		       size);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	marcel_t threads[GROUPS];
	pthread_t watcher;
	int provided;

	options(argc, argv);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 0; i < GROUPS; i++)
		group_make(&groups[i], i);
	begin = MPI_Wtime();
	if (rank == 0) {
		printf("seed %" PRIu64 ": %d processes begin\n", want.seed,
		       size);
		fflush(stdout);
	}
	MUST_INT(NULL, pthread_create(&watcher, NULL, watch, NULL), 0);
	for (int i = 0; i < GROUPS; i++)
		MUST_INT(NULL,
			 marcel_create(&threads[i], NULL, live, &groups[i]), 0);
	for (int i = 0; i < GROUPS; i++)
		MUST_INT(NULL, marcel_join(threads[i], NULL), 0);
	account();
	for (int i = 0; i < GROUPS; i++)
		group_free(&groups[i]);
	return MPI_Finalize();
}
