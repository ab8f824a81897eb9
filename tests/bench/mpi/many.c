/*
 * Many requests at once (CCGrid 2019, section VI.B): N messages of 1 byte from
 * rank 0 to rank 1, time per message. With one rank, to itself.
 *
 *   burst       one tag, receives in order
 *   shuffle     a tag each, receives posted in random order
 *   anysource   shuffle, receives from MPI_ANY_SOURCE
 *   wildcard    shuffle, every 8th message goes by a second communicator, where
 *               receives take any source and any tag
 *   unexpected  all sent before the receives are posted, in random order
 *
 *   many N ...              all patterns
 *   many PATTERN N TIMES    one alone, measured once: for callgrind
 */
#include "bench.h"

/* Messages per pattern and N, at most, but for repetitions that have to be. */
enum { BUDGET = 100000, REPEAT_MIN = 3, REPEAT_MAX = 101 };

static int rank, size;
static char *out, *in; /* a byte of each message */
static MPI_Request *sends, *recvs;
static int *order;     /* of receives */
static MPI_Comm other; /* the wildcards' */

enum pattern { BURST, SHUFFLE, ANYSOURCE, WILDCARD, UNEXPECTED, PATTERNS };

static const char *const names[PATTERNS] = { "burst", "shuffle", "anysource",
					     "wildcard", "unexpected" };

/* A permutation of 0..n-1, the same in every run. */
static void permute(int *order, int n)
{
	unsigned long long x = 88172645463325252ull;

	for (int i = 0; i < n; i++)
		order[i] = i;
	for (int i = n - 1; i > 0; i--) {
		int j, t = order[i];

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		j = (int)(x % (unsigned)(i + 1));
		order[i] = order[j];
		order[j] = t;
	}
}

static int is_wild(enum pattern p, int i)
{
	return p == WILDCARD && i % 8 == 7;
}

static void send_all(enum pattern p, int n)
{
	for (int i = 0; i < n; i++)
		MPI_Isend(&out[i], 1, MPI_BYTE, size - 1, p == BURST ? 0 : i,
			  is_wild(p, i) ? other : MPI_COMM_WORLD, &sends[i]);
}

static void post_all(enum pattern p, int n)
{
	for (int i = 0; i < n; i++) {
		int wild = is_wild(p, order[i]);
		int tag = p == BURST ? 0 : wild ? MPI_ANY_TAG : order[i];
		int source = p == ANYSOURCE || wild ? MPI_ANY_SOURCE : 0;

		MPI_Irecv(&in[i], 1, MPI_BYTE, source, tag,
			  wild ? other : MPI_COMM_WORLD, &recvs[i]);
	}
}

static void to_itself(enum pattern p, int n)
{
	if (p == UNEXPECTED)
		send_all(p, n);
	post_all(p, n);
	if (p != UNEXPECTED)
		send_all(p, n);
	MPI_Waitall(n, sends, MPI_STATUSES_IGNORE);
	MPI_Waitall(n, recvs, MPI_STATUSES_IGNORE);
}

static void to_the_other(enum pattern p, int n)
{
	char token = 0;

	if (rank == 0) {
		send_all(p, n);
		MPI_Waitall(n, sends, MPI_STATUSES_IGNORE);
		if (p == UNEXPECTED)
			MPI_Send(&token, 1, MPI_BYTE, 1, n, MPI_COMM_WORLD);
		MPI_Recv(&token, 1, MPI_BYTE, 1, n, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	} else {
		if (p == UNEXPECTED)
			MPI_Recv(&token, 1, MPI_BYTE, 0, n, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		post_all(p, n);
		MPI_Waitall(n, recvs, MPI_STATUSES_IGNORE);
		MPI_Send(&token, 1, MPI_BYTE, 0, n, MPI_COMM_WORLD);
	}
}

/* Each receive that names its message has got that one. */
static void check(enum pattern p, int n)
{
	for (int i = 0; i < n; i++) {
		int from = p == BURST ? i : order[i];

		if (is_wild(p, from) || in[i] == (char)from)
			continue;
		fprintf(stderr, "many: %s: receive %d has another message\n",
			names[p], i);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

static double once(enum pattern p, int n)
{
	double start, took;

	memset(in, -1, (size_t)n);
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	if (size == 1)
		to_itself(p, n);
	else
		to_the_other(p, n);
	took = MPI_Wtime() - start;
	if (rank == size - 1)
		check(p, n);
	return took / n * 1e6;
}

static void prepare(int n)
{
	out = bench_alloc((size_t)n);
	in = bench_alloc((size_t)n);
	sends = bench_alloc(sizeof(*sends) * (size_t)n);
	recvs = bench_alloc(sizeof(*recvs) * (size_t)n);
	order = bench_alloc(sizeof(*order) * (size_t)n);
	for (int i = 0; i < n; i++)
		out[i] = (char)i;
}

static void measure(int n)
{
	int repeat = BUDGET / n;
	double t[REPEAT_MAX];

	if (repeat > REPEAT_MAX)
		repeat = REPEAT_MAX;
	if (repeat < REPEAT_MIN)
		repeat = REPEAT_MIN;
	prepare(n);
	permute(order, n);
	for (int p = 0; p < PATTERNS; p++) {
		once((enum pattern)p, n);
		for (int r = 0; r < repeat; r++)
			t[r] = once((enum pattern)p, n);
		if (rank == 0)
			printf("%s_%d %.4f us/message\n", names[p], n,
			       bench_median(t, repeat));
		fflush(stdout);
	}
	free(order);
	free(recvs);
	free(sends);
	free(in);
	free(out);
}

static void measure_one(const char *name, int n, size_t times)
{
	int p = 0;
	double t = 0;

	while (p < PATTERNS && strcmp(names[p], name) != 0)
		p++;
	if (p == PATTERNS) {
		fprintf(stderr, "many: no pattern %s\n", name);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	prepare(n);
	permute(order, n);
	for (size_t i = 0; i < times; i++)
		t = once((enum pattern)p, n);
	if (rank == 0)
		printf("%s_%d %.4f us/message\n", name, n, t);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size > 2 || argc < 2) {
		fprintf(stderr,
			"usage: many N ..., or many PATTERN N TIMES, with 1 or "
			"2 ranks (now %d)\n",
			size);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	if (argc == 4 && atoi(argv[1]) == 0)
		measure_one(argv[1], (int)bench_number("many", argv[2]),
			    bench_number("many", argv[3]));
	else
		for (int i = 1; i < argc; i++)
			measure((int)bench_number("many", argv[i]));
	MPI_Comm_free(&other);
	MPI_Finalize();
	return 0;
}
