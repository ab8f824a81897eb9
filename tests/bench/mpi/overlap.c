/*
 * Communication and computation at once (RenPar 2009, figures 8 and 9; PDP
 * 2015): us from MPI_Isend until the receiver's answer that it has all of the
 * message. Nobody computes (transfer); or the sender, the receiver or both
 * compute, for -u us (0: as long as the transfer takes), between the call that
 * starts the message and the one that waits for it. The least that it can take
 * is the longer one of transfer and computation; without overlap it is the sum.
 * With one rank the message goes to itself, and what computes is both.
 *
 *   hidden_WHO   the share of the transfer that the computation hides:
 *                (computation + transfer - time) / transfer
 */
#include "bench.h"

enum { READY = 1, MESSAGE, ANSWER };

enum who { NOBODY, SENDER, RECEIVER, BOTH };

static const char *const names[] = { "transfer", "sender", "receiver", "both" };

static double send_one(const char *buf, int bytes, double us)
{
	MPI_Request reqs[2];
	char ready, answer;
	double begin;

	MPI_Irecv(&answer, 1, MPI_BYTE, 1, ANSWER, MPI_COMM_WORLD, &reqs[1]);
	MPI_Recv(&ready, 1, MPI_BYTE, 1, READY, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	begin = MPI_Wtime();
	MPI_Isend(buf, bytes, MPI_BYTE, 1, MESSAGE, MPI_COMM_WORLD, &reqs[0]);
	if (us > 0)
		bench_compute(us);
	MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE);
	return (MPI_Wtime() - begin) * 1e6;
}

static void receive_one(char *buf, int bytes, double us)
{
	MPI_Request req;
	char token = 0;

	MPI_Irecv(buf, bytes, MPI_BYTE, 0, MESSAGE, MPI_COMM_WORLD, &req);
	MPI_Send(&token, 1, MPI_BYTE, 0, READY, MPI_COMM_WORLD);
	if (us > 0)
		bench_compute(us);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	MPI_Send(&token, 1, MPI_BYTE, 0, ANSWER, MPI_COMM_WORLD);
}

static double to_itself(const char *buf, char *in, int bytes, double us)
{
	MPI_Request reqs[2];
	double begin = MPI_Wtime();

	MPI_Irecv(in, bytes, MPI_BYTE, 0, MESSAGE, MPI_COMM_WORLD, &reqs[0]);
	MPI_Isend(buf, bytes, MPI_BYTE, 0, MESSAGE, MPI_COMM_WORLD, &reqs[1]);
	if (us > 0)
		bench_compute(us);
	MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE);
	return (MPI_Wtime() - begin) * 1e6;
}

/* One message, which has to be what was sent; us, at rank 0. */
static double once(enum who who, char *out, char *in, size_t bytes, double us)
{
	static long n;
	double took = 0;

	bench_stamp(out, bytes, ++n);
	if (bench.size == 1)
		took = to_itself(out, in, (int)bytes, who == BOTH ? us : 0);
	else if (bench.rank == 0)
		took = send_one(out, (int)bytes, who & SENDER ? us : 0);
	else
		receive_one(in, (int)bytes, who & RECEIVER ? us : 0);
	if (bench.rank == bench.size - 1)
		bench_stamped(in, bytes, n);
	return took;
}

static double measure(enum who who, char *out, char *in, size_t bytes,
		      double us)
{
	double *t = bench_alloc(sizeof(*t) * (size_t)bench.repeat), median;

	once(who, out, in, bytes, us);
	for (int r = 0; r < bench.repeat; r++)
		t[r] = once(who, out, in, bytes, us);
	median = bench_of(bench_median(t, bench.repeat), 0);
	free(t);
	return median;
}

static void measure_size(size_t bytes)
{
	char *out = bench_alloc(bytes), *in = bench_alloc(bytes), x[16];
	double transfer, us;

	bench_fill(out, bytes, 0);
	bench_size(x, bytes);
	transfer = measure(NOBODY, out, in, bytes, 0);
	us = bench.us > 0 ? bench.us : transfer;
	bench_say(transfer, "us", "transfer_%s", x);
	for (int who = SENDER; who <= BOTH; who++) {
		double took;

		if (bench.size == 1 && who != BOTH)
			continue;
		took = measure((enum who)who, out, in, bytes, us);
		bench_say(took, "us", "%s_%s", names[who], x);
		bench_say((us + transfer - took) / transfer, "share",
			  "hidden_%s_%s", names[who], x);
	}
	if (bench.rank == bench.size - 1)
		bench_check(in, bytes, 0);
	free(out);
	free(in);
}

int main(int argc, char **argv)
{
	static const struct bench_program program = {
		.name = "overlap",
		.options = "ru",
		.what = "BYTES",
		.ranks_least = 1,
		.ranks_most = 2,
		.least = 1,
		.most = INT_MAX,
		.repeat = 51,
		.numbers = { 32768, 262144, 1 << 20, 4 << 20 },
	};

	bench_start(argc, argv, &program);
	for (int i = 0; i < bench.n; i++)
		measure_size((size_t)bench.numbers[i]);
	MPI_Finalize();
	return 0;
}
