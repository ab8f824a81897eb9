/*
 * Two ranks, of which one computes: us that MPI_Send takes to a receiver that
 * has posted MPI_Irecv and computes for -u us then, without a look at MPI. The
 * message comes when the receiver is at it.
 *
 *   send    the median
 *   most    the longest
 *   plain   to a receiver that waits: the least that it can take
 */
#include "bench.h"

enum { AFTER_US = 1000 };

static long n; /* of the message, at both ends */

static double send_one(char *buf, size_t bytes)
{
	double begin;

	bench_stamp(buf, bytes, n);
	MPI_Barrier(MPI_COMM_WORLD);
	bench_compute(AFTER_US);
	begin = MPI_Wtime();
	MPI_Send(buf, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
	return (MPI_Wtime() - begin) * 1e6;
}

static void receive_one(char *buf, size_t bytes, double us)
{
	MPI_Request req;

	MPI_Irecv(buf, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &req);
	MPI_Barrier(MPI_COMM_WORLD);
	if (us > 0)
		bench_compute(us);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	bench_stamped(buf, bytes, n);
}

/* The median, and the longest in *most; at rank 0. */
static double measure(char *buf, size_t bytes, double us, double *most)
{
	double *t = bench_alloc(sizeof(*t) * (size_t)bench.repeat), median;

	for (int r = 0; r < bench.repeat; r++, n++) {
		t[r] = 0;
		if (bench.rank == 0)
			t[r] = send_one(buf, bytes);
		else
			receive_one(buf, bytes, us);
	}
	median = bench_median(t, bench.repeat);
	*most = t[bench.repeat - 1];
	free(t);
	return median;
}

int main(int argc, char **argv)
{
	static const struct bench_program program = {
		.name = "computes",
		.options = "ru",
		.what = "BYTES",
		.ranks_least = 2,
		.ranks_most = 2,
		.least = 1,
		.most = INT_MAX,
		.repeat = 51,
		.us = 5000,
		.numbers = { 32768, 262144, 1 << 20, 4 << 20 },
	};

	bench_start(argc, argv, &program);
	for (int i = 0; i < bench.n; i++) {
		size_t bytes = (size_t)bench.numbers[i];
		char *buf = bench_alloc(bytes), x[16];
		double us, most;

		bench_size(x, bytes);
		if (bench.rank == 0)
			bench_fill(buf, bytes, i);
		us = measure(buf, bytes, 0, &most);
		bench_say(us, "us", "plain_%s", x);
		us = measure(buf, bytes, bench.us, &most);
		bench_say(us, "us", "send_%s", x);
		bench_say(most, "us", "most_%s", x);
		bench_check(buf, bytes, i);
		free(buf);
	}
	MPI_Finalize();
	return 0;
}
