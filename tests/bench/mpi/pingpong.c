/*
 * Two ranks: half round trip by size, and the rate of small messages with 64
 * of them in flight.
 *
 *   pingpong [BYTES ...]      only round trips of these sizes
 */
#include "bench.h"

enum { REPEAT = 21, WINDOW = 64 };

static int rank;

/* One message there and back; the sender has just written what it sends. */
static void round_trip(char *buf, size_t bytes)
{
	if (rank == 0) {
		buf[0]++;
		MPI_Send(buf, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(buf, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(buf, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		buf[0]++;
		MPI_Send(buf, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
	}
}

static void latency(size_t bytes)
{
	int rounds = bytes <= 4096 ? 2000 : bytes <= 65536 ? 400 : 40;
	char *buf = bench_alloc(bytes), name[16];
	double t[REPEAT];

	for (int i = 0; i < rounds / 4 + 1; i++)
		round_trip(buf, bytes);
	for (int r = 0; r < REPEAT; r++) {
		double start = MPI_Wtime();

		for (int i = 0; i < rounds; i++)
			round_trip(buf, bytes);
		t[r] = (MPI_Wtime() - start) / rounds / 2 * 1e6;
	}
	if (rank == 0)
		printf("latency_%s %.4f us\n", bench_size(name, bytes),
		       bench_median(t, REPEAT));
	free(buf);
}

static void rate(size_t bytes)
{
	char *buf = bench_alloc(bytes);
	MPI_Request reqs[WINDOW];
	double t[REPEAT];
	char ack = 0;

	for (int r = 0; r < REPEAT; r++) {
		double start = MPI_Wtime();

		for (int i = 0; i < 100; i++) {
			for (int w = 0; w < WINDOW; w++) {
				if (rank == 0)
					MPI_Isend(buf, (int)bytes, MPI_BYTE, 1,
						  1, MPI_COMM_WORLD, &reqs[w]);
				else
					MPI_Irecv(buf, (int)bytes, MPI_BYTE, 0,
						  1, MPI_COMM_WORLD, &reqs[w]);
			}
			MPI_Waitall(WINDOW, reqs, MPI_STATUSES_IGNORE);
			if (rank == 0)
				MPI_Recv(&ack, 1, MPI_BYTE, 1, 2,
					 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			else
				MPI_Send(&ack, 1, MPI_BYTE, 0, 2,
					 MPI_COMM_WORLD);
		}
		t[r] = (MPI_Wtime() - start) / 100 / WINDOW * 1e6;
	}
	if (rank == 0)
		printf("rate_8B %.4f us/message\n", bench_median(t, REPEAT));
	free(buf);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 8,     256,     4096,   32768,
					65536, 1 << 20, 4 << 20 };
	size_t n = sizeof(sizes) / sizeof(sizes[0]);
	int size, given = argc > 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != 2) {
		fprintf(stderr, "pingpong needs 2 ranks, not %d\n", size);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	if (given)
		n = (size_t)argc - 1;
	for (size_t i = 0; i < n; i++)
		latency(given ? bench_number("pingpong", argv[i + 1])
			      : sizes[i]);
	if (!given)
		rate(8);
	MPI_Finalize();
	return 0;
}
