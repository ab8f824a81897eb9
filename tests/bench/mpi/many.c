/*
 * Many requests at once (CCGrid 2019, section VI.B): N messages of 1 byte from
 * rank 0 to rank 1, time per message.
 *
 *   burst       one tag, receives in order
 *   shuffle     a tag each, receives posted in random order
 *   anysource   shuffle, receives from MPI_ANY_SOURCE
 *   wildcard    shuffle, every 8th message goes by a second communicator, where
 *               receives take any source and any tag
 *   unexpected  all sent before the receives are posted, in random order
 *
 *   many N ...
 */
#include "bench.h"

enum { BUDGET = 2000000 }; /* messages per pattern and N, at most */

static int rank;
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

static void send_all(enum pattern p, int n, char *buf, MPI_Request *reqs)
{
	for (int i = 0; i < n; i++)
		MPI_Isend(&buf[i], 1, MPI_BYTE, 1, p == BURST ? 0 : i,
			  is_wild(p, i) ? other : MPI_COMM_WORLD, &reqs[i]);
	MPI_Waitall(n, reqs, MPI_STATUSES_IGNORE);
}

static void recv_all(enum pattern p, int n, char *buf, MPI_Request *reqs,
		     const int *order)
{
	for (int i = 0; i < n; i++) {
		int wild = is_wild(p, order[i]);
		int tag = p == BURST ? 0 : wild ? MPI_ANY_TAG : order[i];
		int source = p == ANYSOURCE || wild ? MPI_ANY_SOURCE : 0;

		MPI_Irecv(&buf[i], 1, MPI_BYTE, source, tag,
			  wild ? other : MPI_COMM_WORLD, &reqs[i]);
	}
	MPI_Waitall(n, reqs, MPI_STATUSES_IGNORE);
}

static double once(enum pattern p, int n, char *buf, MPI_Request *reqs,
		   const int *order)
{
	char token = 0;
	double start;

	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	if (rank == 0) {
		send_all(p, n, buf, reqs);
		if (p == UNEXPECTED)
			MPI_Send(&token, 1, MPI_BYTE, 1, n, MPI_COMM_WORLD);
		MPI_Recv(&token, 1, MPI_BYTE, 1, n, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	} else {
		if (p == UNEXPECTED)
			MPI_Recv(&token, 1, MPI_BYTE, 0, n, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		recv_all(p, n, buf, reqs, order);
		MPI_Send(&token, 1, MPI_BYTE, 0, n, MPI_COMM_WORLD);
	}
	return (MPI_Wtime() - start) / n * 1e6;
}

static void measure(int n)
{
	int repeat = BUDGET / n;
	char *buf = bench_alloc((size_t)n);
	MPI_Request *reqs = bench_alloc(sizeof(MPI_Request) * (size_t)n);
	int *order = bench_alloc(sizeof(int) * (size_t)n);
	double t[15];

	if (repeat > 15)
		repeat = 15;
	if (repeat < 3)
		repeat = 3;
	for (int p = 0; p < PATTERNS; p++) {
		permute(order, n);
		once((enum pattern)p, n, buf, reqs, order);
		for (int r = 0; r < repeat; r++)
			t[r] = once((enum pattern)p, n, buf, reqs, order);
		if (rank == 0)
			printf("%s_%d %.4f us/message\n", names[p], n,
			       bench_median(t, repeat));
		fflush(stdout);
	}
	free(order);
	free(reqs);
	free(buf);
}

int main(int argc, char **argv)
{
	int size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != 2 || argc < 2) {
		fprintf(stderr, "usage: many N ..., with 2 ranks (now %d)\n",
			size);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	for (int i = 1; i < argc; i++) {
		int n = atoi(argv[i]);

		if (n < 1) {
			fprintf(stderr, "many: '%s' is not a count\n", argv[i]);
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
		measure(n);
	}
	MPI_Comm_free(&other);
	MPI_Finalize();
	return 0;
}
