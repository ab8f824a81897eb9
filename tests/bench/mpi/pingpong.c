/*
 * Two ranks: N messages there and back, no more and no fewer, so that what one
 * of them takes can be counted from outside, by two runs of different N. us is
 * half a round trip, as of latency.
 */
#include "bench.h"

static void round_trips(void *arg, long rounds)
{
	char *buf = arg;
	int bytes = (int)bench.bytes, to = !bench.rank;

	for (long i = 0; i < rounds; i++) {
		if (bench.rank == 0) {
			bench_stamp(buf, bench.bytes, i);
			MPI_Send(buf, bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD);
		}
		MPI_Recv(buf, bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		bench_stamped(buf, bench.bytes, i);
		if (bench.rank == 1)
			MPI_Send(buf, bytes, MPI_BYTE, to, 0, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	static const struct bench_program program = {
		.name = "pingpong",
		.options = "b",
		.what = "ROUNDS",
		.ranks_least = 2,
		.ranks_most = 2,
		.least = 1,
		.most = 1000000,
		.bytes = 8,
		.numbers = { 64 },
	};
	char *buf;

	bench_start(argc, argv, &program);
	buf = bench_alloc(bench.bytes);
	for (int i = 0; i < bench.n; i++) {
		long rounds = bench.numbers[i];

		if (bench.rank == 0)
			bench_fill(buf, bench.bytes, i);
		bench_say(bench_once(round_trips, buf, rounds) * 5e5 /
				  (double)rounds,
			  "us", "pingpong_%ld", rounds);
		bench_check(buf, bench.bytes, i);
	}
	free(buf);
	MPI_Finalize();
	return 0;
}
