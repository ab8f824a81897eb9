/*
 * Two ranks, of which one computes: how long MPI_Send takes to a receiver that
 * has posted MPI_Irecv and computes for 5 ms then, without a look at MPI. The
 * least that it can take is the transfer.
 */
#include "bench.h"

enum { REPEAT = 51, COMPUTE_US = 5000, AFTER_US = 1000 };

static const size_t sizes[] = { 32 << 10, 256 << 10, 1 << 20, 4 << 20 };

static void compute(double us)
{
	double end = MPI_Wtime() + us * 1e-6;

	while (MPI_Wtime() < end)
		;
}

/* Both begin at once; the message comes when the receiver is at it. */
static double send_one(char *buf, int bytes)
{
	double begin;

	MPI_Barrier(MPI_COMM_WORLD);
	compute(AFTER_US);
	begin = MPI_Wtime();
	MPI_Send(buf, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
	return (MPI_Wtime() - begin) * 1e6;
}

static void receive_one(char *buf, int bytes)
{
	MPI_Request req;

	MPI_Irecv(buf, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &req);
	MPI_Barrier(MPI_COMM_WORLD);
	compute(COMPUTE_US);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != 2) {
		fprintf(stderr, "computes: 2 ranks, not %d\n", size);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *buf = bench_alloc(sizes[i]), name[16];
		double t[REPEAT];

		for (int r = 0; r < REPEAT; r++) {
			if (rank == 0)
				t[r] = send_one(buf, (int)sizes[i]);
			else
				receive_one(buf, (int)sizes[i]);
		}
		bench_size(name, sizes[i]);
		if (rank == 0) {
			printf("%s %.1f us\n", name, bench_median(t, REPEAT));
			printf("%s_most %.1f us\n", name, t[REPEAT - 1]);
		}
		free(buf);
	}
	MPI_Finalize();
	return 0;
}
