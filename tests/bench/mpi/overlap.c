/*
 * Communication and computation at once (RenPar 2009, figures 8 and 9; PDP
 * 2015): from MPI_Isend until the receiver's answer that it has all of the
 * message. Nobody computes (transfer); or the sender, the receiver or both
 * compute between the call that starts the message and the one that waits for
 * it. The least that it can take is the longer one of transfer and
 * computation; without overlap it is the sum. With one rank the message goes to
 * itself, and what computes is both.
 *
 *   overlap US BYTES ...      0: computes as long as the transfer takes
 */
#include "bench.h"

enum { REPEAT = 51, READY = 1, MESSAGE, ANSWER };

enum who { NOBODY, SENDER, RECEIVER, BOTH };

static const char *const names[] = { "transfer", "sender", "receiver", "both" };

static int rank, size;

static void compute(double us)
{
	double end = MPI_Wtime() + us * 1e-6;

	while (MPI_Wtime() < end)
		;
}

static double send_one(char *buf, int bytes, double us)
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
		compute(us);
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
		compute(us);
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
		compute(us);
	MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE);
	return (MPI_Wtime() - begin) * 1e6;
}

/* One message, which has to be what was sent; us, at rank 0. */
static double once(enum who who, char *out, char *in, int bytes, double us)
{
	static char mark;
	double took = 0;

	mark++;
	out[0] = out[bytes - 1] = mark;
	if (size == 1)
		took = to_itself(out, in, bytes, who == BOTH ? us : 0);
	else if (rank == 0)
		took = send_one(out, bytes, who & SENDER ? us : 0);
	else
		receive_one(in, bytes, who & RECEIVER ? us : 0);
	if (rank == size - 1 && (in[0] != mark || in[bytes - 1] != mark)) {
		fprintf(stderr, "overlap: not what was sent\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return took;
}

static double measure(enum who who, char *out, char *in, int bytes, double us)
{
	double t[REPEAT];

	once(who, out, in, bytes, us);
	for (int r = 0; r < REPEAT; r++)
		t[r] = once(who, out, in, bytes, us);
	return bench_median(t, REPEAT);
}

static void measure_size(double us, size_t bytes)
{
	char *out = bench_alloc(bytes), *in = bench_alloc(bytes), name[16];

	for (int who = NOBODY; who <= BOTH; who++) {
		double took;

		if (size == 1 && (who == SENDER || who == RECEIVER))
			continue;
		took = measure((enum who)who, out, in, (int)bytes, us);
		if (who == NOBODY && us == 0) {
			us = took;
			MPI_Bcast(&us, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
		}
		if (rank == 0)
			printf("%s_%s %.2f us\n", bench_size(name, bytes),
			       names[who], took);
	}
	free(out);
	free(in);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size > 2 || argc < 3) {
		fprintf(stderr,
			"usage: overlap US BYTES ..., with 1 or 2 ranks (now "
			"%d)\n",
			size);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	for (int i = 2; i < argc; i++)
		measure_size(atof(argv[1]), bench_number("overlap", argv[i]));
	MPI_Finalize();
	return 0;
}
