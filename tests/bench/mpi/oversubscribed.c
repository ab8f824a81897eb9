/*
 * More ranks than cores, us. X is the number of ranks.
 *
 *   barrier     MPI_Barrier
 *   ring        a message of 8 bytes goes round: time of a round / ranks
 *   alltoall    MPI_Alltoall of 8 bytes to each
 *   allreduce   MPI_Allreduce of 8 bytes
 *   pairs       ranks 2i and 2i + 1 exchange 64 KB there and back: half of that
 */
#include "bench.h"

enum { PAIR_BYTES = 64 << 10 };

static long count;      /* of operations of the case, the same at all ranks */
static long long *in;   /* 8 bytes of each rank */
static long long *out;  /* likewise */
static char *pair_data; /* PAIR_BYTES */

static void barrier(void *arg, long rounds)
{
	(void)arg;
	for (long i = 0; i < rounds; i++)
		MPI_Barrier(MPI_COMM_WORLD);
}

/* Each rank adds 1 to what comes. */
static void ring(void *arg, long rounds)
{
	int next = (bench.rank + 1) % bench.size;
	int last = (bench.rank + bench.size - 1) % bench.size;
	long long n = 0;

	(void)arg;
	for (long i = 0; i < rounds; i++) {
		long long want = (long long)i * bench.size + bench.rank;

		if (bench.rank == 0) {
			n++;
			want += bench.size;
			MPI_Send(&n, 1, MPI_LONG_LONG, next, 0, MPI_COMM_WORLD);
		}
		MPI_Recv(&n, 1, MPI_LONG_LONG, last, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		if (n != want)
			bench_fail("ring: %lld came, not %lld", n, want);
		if (bench.rank != 0) {
			n++;
			MPI_Send(&n, 1, MPI_LONG_LONG, next, 0, MPI_COMM_WORLD);
		}
	}
}

static void alltoall(void *arg, long rounds)
{
	(void)arg;
	for (long i = 0; i < rounds; i++, count++) {
		for (int r = 0; r < bench.size; r++)
			out[r] = count * 1000000 + bench.rank * 1000 + r;
		MPI_Alltoall(out, 1, MPI_LONG_LONG, in, 1, MPI_LONG_LONG,
			     MPI_COMM_WORLD);
		for (int r = 0; r < bench.size; r++)
			if (in[r] != count * 1000000 + r * 1000 + bench.rank)
				bench_fail("alltoall: %lld came from rank %d",
					   in[r], r);
	}
}

static void allreduce(void *arg, long rounds)
{
	long long n = bench.size;

	(void)arg;
	for (long i = 0; i < rounds; i++, count++) {
		long long want = n * count + n * (n - 1) / 2;

		out[0] = count + bench.rank;
		MPI_Allreduce(out, in, 1, MPI_LONG_LONG, MPI_SUM,
			      MPI_COMM_WORLD);
		if (in[0] != want)
			bench_fail("allreduce: %lld, not %lld", in[0], want);
	}
}

/* The last of an odd number of ranks has none to talk to. */
static void pairs(void *arg, long rounds)
{
	int other = bench.rank ^ 1;

	(void)arg;
	for (long i = 0; i < rounds && other < bench.size; i++, count += 2) {
		int first = bench.rank < other;

		if (first) {
			bench_stamp(pair_data, PAIR_BYTES, count);
			MPI_Send(pair_data, PAIR_BYTES, MPI_BYTE, other, 0,
				 MPI_COMM_WORLD);
		}
		MPI_Recv(pair_data, PAIR_BYTES, MPI_BYTE, other, 0,
			 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		bench_stamped(pair_data, PAIR_BYTES, count + first);
		if (!first) {
			bench_stamp(pair_data, PAIR_BYTES, count + 1);
			MPI_Send(pair_data, PAIR_BYTES, MPI_BYTE, other, 0,
				 MPI_COMM_WORLD);
		}
	}
}

static void measure(const char *name, bench_fn *fn, double part)
{
	if (!bench_case(name))
		return;
	count = 0;
	bench_say(bench_time(fn, NULL) / part, "us", "%s_%d", name, bench.size);
}

int main(int argc, char **argv)
{
	static const struct bench_program program = {
		.name = "oversubscribed",
		.cases = "barrier,ring,alltoall,allreduce,pairs",
		.options = "rm",
		.ranks_least = 2,
		.ranks_most = 1000,
		.repeat = 5,
		.ms = 20,
	};

	bench_start(argc, argv, &program);
	in = bench_alloc(sizeof(*in) * (size_t)bench.size);
	out = bench_alloc(sizeof(*out) * (size_t)bench.size);
	pair_data = bench_alloc(PAIR_BYTES);
	bench_fill(pair_data, PAIR_BYTES, 1);
	measure("barrier", barrier, 1);
	measure("ring", ring, bench.size);
	measure("alltoall", alltoall, 1);
	measure("allreduce", allreduce, 1);
	measure("pairs", pairs, 2);
	bench_check(pair_data, PAIR_BYTES, 1);
	free(pair_data);
	free(out);
	free(in);
	MPI_Finalize();
	return 0;
}
