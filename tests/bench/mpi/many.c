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
 * Without -r there are as many repetitions as fit into -m ms, but 3 to 101. A
 * first time is not counted.
 */
#include "bench.h"

enum { REPEAT_LEAST = 3, REPEAT_MOST = 101 };

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
		MPI_Isend(&out[i], 1, MPI_BYTE, bench.size - 1,
			  p == BURST ? 0 : i,
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

	if (bench.rank == 0) {
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

/* Each receive has its message; wildcards take theirs as they were sent. */
static void check(enum pattern p, int n)
{
	int wild = 0;

	for (int i = 0; i < n; i++) {
		int from = p == BURST ? i : order[i];

		if (is_wild(p, from))
			from = 8 * wild++ + 7;
		if (in[i] != (char)from)
			bench_fail("%s: receive %d has another message",
				   names[p], i);
	}
}

static double once(enum pattern p, int n)
{
	double start, took;

	memset(in, -1, (size_t)n);
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	if (bench.size == 1)
		to_itself(p, n);
	else
		to_the_other(p, n);
	took = MPI_Wtime() - start;
	if (bench.rank == bench.size - 1)
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

/* us a message: the median of its repetitions; at rank 0. */
static double measure(enum pattern p, int n)
{
	int repeat = bench.repeat;
	double first = bench_of(once(p, n), 0), *t, median;

	if (repeat == 0) {
		double fit = bench.ms * 1e3 / (first * n);

		repeat = fit < REPEAT_LEAST  ? REPEAT_LEAST
			 : fit > REPEAT_MOST ? REPEAT_MOST
					     : (int)fit;
	}
	t = bench_alloc(sizeof(*t) * (size_t)repeat);
	for (int r = 0; r < repeat; r++)
		t[r] = once(p, n);
	median = bench_median(t, repeat);
	free(t);
	return median;
}

static void measure_all(int n)
{
	prepare(n);
	permute(order, n);
	for (int p = 0; p < PATTERNS; p++)
		if (bench_case(names[p]))
			bench_say(measure((enum pattern)p, n), "us/message",
				  "%s_%d", names[p], n);
	free(order);
	free(recvs);
	free(sends);
	free(in);
	free(out);
}

int main(int argc, char **argv)
{
	static const struct bench_program program = {
		.name = "many",
		.cases = "burst,shuffle,anysource,wildcard,unexpected",
		.options = "rm",
		.what = "MESSAGES",
		.ranks_least = 1,
		.ranks_most = 2,
		.least = 1,
		.most = 100000000,
		.ms = 50,
		.numbers = { 10, 100, 1000, 10000 },
	};

	bench_start(argc, argv, &program);
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	for (int i = 0; i < bench.n; i++)
		measure_all((int)bench.numbers[i]);
	MPI_Comm_free(&other);
	MPI_Finalize();
	return 0;
}
