/*
 * Two ranks: the bandwidth of single large messages there and back, by size.
 */
#include "bench.h"

enum { REPEAT = 15, OFTEN = 4 << 20, LARGEST = 16 << 20 };

static int rank;

/* One message there and back; the sender has just written what it sends. */
static void round_trip(char *buf, int bytes)
{
	if (rank == 0) {
		buf[0]++;
		MPI_Send(buf, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(buf, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(buf, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		buf[0]++;
		MPI_Send(buf, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	char *buf, name[16];
	double t[REPEAT];
	int size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != 2) {
		fprintf(stderr, "rails needs 2 ranks, not %d\n", size);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	buf = bench_alloc(LARGEST);
	for (int bytes = 1 << 20; bytes <= LARGEST; bytes *= 2) {
		int repeat = bytes <= OFTEN ? REPEAT : REPEAT / 3;

		round_trip(buf, bytes);
		for (int r = 0; r < repeat; r++) {
			double start = MPI_Wtime();

			round_trip(buf, bytes);
			t[r] = (MPI_Wtime() - start) / 2 * 1e6;
		}
		if (rank == 0)
			printf("bandwidth_%s %.4f MB/s\n",
			       bench_size(name, (size_t)bytes),
			       bytes / bench_median(t, repeat));
	}
	free(buf);
	MPI_Finalize();
	return 0;
}
