/*
 * Two ranks: half a round trip of 1 byte beside N threads in each rank that
 * compute; us of the mean, of 99 % and of the longest, over all round trips
 * that are begun in -m ms. Who sends and receives is a thread of the same kind.
 *
 *   hole_N   where a thread of the same kind beside N - 1 that compute only
 * reads the clock: the longest time between two looks, us
 */
#include <stdatomic.h>

#include "threads.h"

enum { TRIPS_MAX = 1 << 20, THREADS_MAX = 4096, LAST = 128 };

static atomic_int over;    /* the threads that compute may end */
static double *took;       /* us of each round trip; the sender's */
static int trips;          /* their number; likewise */
static double hole;        /* us; the looker's */
static volatile long sink; /* of no use */

static void *compute(void *arg)
{
	(void)arg;
	while (!atomic_load_explicit(&over, memory_order_relaxed))
		for (int i = 0; i < 1000; i++)
			sink = i;
	return NULL;
}

/* The byte is the number of the message, and LAST with the last one. */
static void *send_bytes(void *arg)
{
	double begin, before, now;
	unsigned char out, in;

	(void)arg;
	bench_favour();
	MPI_Barrier(MPI_COMM_WORLD);
	begin = before = MPI_Wtime();
	do {
		int last = trips == TRIPS_MAX - 1 ||
			   (before - begin) * 1e3 >= bench.ms;

		out = (unsigned char)(trips % LAST | (last ? LAST : 0));
		MPI_Send(&out, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(&in, 1, MPI_BYTE, 1, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		now = MPI_Wtime();
		if (in != (unsigned char)~out)
			bench_fail("not the answer to message %d", trips);
		took[trips++] = (now - before) * 1e6;
		before = now;
	} while (out < LAST);
	return NULL;
}

static void *answer_bytes(void *arg)
{
	unsigned char in, out;

	(void)arg;
	bench_favour();
	MPI_Barrier(MPI_COMM_WORLD);
	do {
		MPI_Recv(&in, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		if (in % LAST != trips++ % LAST)
			bench_fail("message %d is another one", trips - 1);
		out = (unsigned char)~in;
		MPI_Send(&out, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
	} while (in < LAST);
	return NULL;
}

static void *look(void *arg)
{
	double begin = MPI_Wtime(), before = begin, now;

	(void)arg;
	for (hole = 0; (before - begin) * 1e3 < bench.ms; before = now) {
		now = MPI_Wtime();
		if ((now - before) * 1e6 > hole)
			hole = (now - before) * 1e6;
	}
	return NULL;
}

/* One thread does that beside n that compute. */
static void beside(int n, void *(*fn)(void *))
{
	struct bench_thread *t = bench_alloc(sizeof(*t) * (size_t)(n + 1));

	atomic_store(&over, 0);
	trips = 0;
	for (int i = 0; i < n; i++)
		bench_create(&t[i], compute, NULL);
	bench_create(&t[n], fn, NULL);
	bench_join(&t[n]);
	atomic_store(&over, 1);
	for (int i = 0; i < n; i++)
		bench_join(&t[i]);
	free(t);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void measure(int n)
{
	double sum = 0;

	beside(n, bench.rank == 0 ? send_bytes : answer_bytes);
	if (bench.rank != 0)
		return;
	for (int i = 0; i < trips; i++)
		sum += took[i] / 2;
	bench_say(sum / trips, "us", "mean_%d", n);
	qsort(took, (size_t)trips, sizeof(*took), bench_compare);
	bench_say(took[trips * 99l / 100] / 2, "us", "p99_%d", n);
	bench_say(took[trips - 1] / 2, "us", "most_%d", n);
}

int main(int argc, char **argv)
{
	static const struct bench_program program = {
		.name = "load",
		.options = "mtf",
		.what = "THREADS",
		.ranks_least = 2,
		.ranks_most = 2,
		.least = 1,
		.most = THREADS_MAX,
		.ms = 500,
		.numbers = { 1, 8, 32 },
	};

	bench_start(argc, argv, &program);
	took = bench_alloc(sizeof(*took) * TRIPS_MAX);
	beside(0, look);
	bench_say(hole, "us", "hole");
	for (int i = 0; i < bench.n; i++)
		measure((int)bench.numbers[i]);
	free(took);
	MPI_Finalize();
	return 0;
}
