/*
 * Two ranks: half a round trip of one message, by its size. us = time of the
 * round trips / their number / 2.
 */
#include "bench.h"

struct ends {
	char *buf;
	size_t bytes;
	long n; /* of the message */
};

/* There and back; the sender has just written what it sends. */
static void round_trips(void *arg, long rounds)
{
	struct ends *e = arg;
	int bytes = (int)e->bytes;

	for (long i = 0; i < rounds; i++, e->n++) {
		if (bench.rank == 0) {
			bench_stamp(e->buf, e->bytes, e->n);
			MPI_Send(e->buf, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
			MPI_Recv(e->buf, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			bench_stamped(e->buf, e->bytes, e->n + 1);
		} else {
			MPI_Recv(e->buf, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			bench_stamped(e->buf, e->bytes, e->n);
			bench_stamp(e->buf, e->bytes, e->n + 1);
			MPI_Send(e->buf, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct bench_program program = {
		.name = "latency",
		.options = "rm",
		.what = "BYTES",
		.ranks_least = 2,
		.ranks_most = 2,
		.least = 1,
		.most = INT_MAX,
		.repeat = 11,
		.ms = 5,
		.numbers = { 8, 256, 4096, 32768, 65536, 1 << 20, 4 << 20 },
	};

	bench_start(argc, argv, &program);
	for (int i = 0; i < bench.n; i++) {
		struct ends e = { .bytes = (size_t)bench.numbers[i] };
		double us;
		char x[16];

		e.buf = bench_alloc(e.bytes);
		if (bench.rank == 0)
			bench_fill(e.buf, e.bytes, i);
		us = bench_time(round_trips, &e) / 2;
		bench_check(e.buf, e.bytes, i);
		bench_say(us, "us", "latency_%s", bench_size(x, e.bytes));
		free(e.buf);
	}
	MPI_Finalize();
	return 0;
}
