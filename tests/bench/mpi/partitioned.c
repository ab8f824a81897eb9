/*
 * Two ranks, of which one has N threads and the other one receives: us for a
 * piece of -b bytes, from when the threads are let go until the receiver's
 * answer that it has all of them, divided by their number. Each thread has 16
 * pieces.
 *
 *   partitioned   they are partitions of one message, and each thread marks
 *                 its own ready (MPI_Pready); one request at either end
 *   sends         they are messages with the thread's tag (MPI_Isend), one
 *                 request each at either end
 *
 * An MPI before 4.0 has no partitions, and refuses them: there are only sends.
 */
#include "threads.h"

enum { PIECES = 16, THREADS_MAX = 1024, READY = THREADS_MAX, ANSWER };

/* One measurement; constant, but for what says whose it is. */
static struct {
	int threads, pieces;
	void (*give)(int thread);
	char *buf;
	MPI_Request *reqs;           /* the receiver's, or the message */
	long count;                  /* main's: rounds so far */
	struct bench_barrier before; /* threads and main */
	struct bench_barrier after;
	int is_over; /* main's until `before` */
} job;

static char *piece(int i)
{
	return job.buf + bench.bytes * (size_t)i;
}

static void *give_all(void *arg)
{
	int thread = *(int *)arg;

	for (;;) {
		bench_barrier_wait(&job.before);
		if (job.is_over)
			return NULL;
		job.give(thread);
		bench_barrier_wait(&job.after);
	}
}

/* The first and the last byte of all say which round it is. */
static void stamp_all(void)
{
	bench_stamp(job.buf, bench.bytes * (size_t)job.pieces, job.count);
}

static void stamped_all(void)
{
	bench_stamped(job.buf, bench.bytes * (size_t)job.pieces, job.count);
}

/* The threads do their part of a round, at the sender. */
static void let_go(void)
{
	bench_barrier_wait(&job.before);
	bench_barrier_wait(&job.after);
}

/* Tell the other rank, or hear from it. */
static void tell(int rank, int tag)
{
	char token = 0;

	if (bench.rank == rank)
		MPI_Send(&token, 1, MPI_BYTE, !rank, tag, MPI_COMM_WORLD);
	else
		MPI_Recv(&token, 1, MPI_BYTE, rank, tag, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
}

/* --- sends --- */

static void give_sends(int thread)
{
	MPI_Request reqs[PIECES];

	for (int i = 0; i < PIECES; i++)
		MPI_Isend(piece(thread * PIECES + i), (int)bench.bytes,
			  MPI_BYTE, 1, thread, MPI_COMM_WORLD, &reqs[i]);
	MPI_Waitall(PIECES, reqs, MPI_STATUSES_IGNORE);
}

static void sends(void *arg, long rounds)
{
	(void)arg;
	for (long k = 0; k < rounds; k++, job.count++) {
		for (int i = 0; i < job.pieces && bench.rank == 1; i++)
			MPI_Irecv(piece(i), (int)bench.bytes, MPI_BYTE, 0,
				  i / PIECES, MPI_COMM_WORLD, &job.reqs[i]);
		tell(1, READY);
		if (bench.rank == 0) {
			stamp_all();
			let_go();
		} else {
			MPI_Waitall(job.pieces, job.reqs, MPI_STATUSES_IGNORE);
			stamped_all();
		}
		tell(1, ANSWER);
	}
}

/* --- partitions --- */

#if MPI_VERSION >= 4
enum { HAS_PARTITIONS = 1 };

static void give_partitions(int thread)
{
	for (int i = 0; i < PIECES; i++)
		MPI_Pready(thread * PIECES + i, job.reqs[0]);
}

static void make_message(void)
{
	if (bench.rank == 0)
		MPI_Psend_init(job.buf, job.pieces, (MPI_Count)bench.bytes,
			       MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
			       &job.reqs[0]);
	else
		MPI_Precv_init(job.buf, job.pieces, (MPI_Count)bench.bytes,
			       MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
			       &job.reqs[0]);
}
#else
enum { HAS_PARTITIONS = 0 };

static void give_partitions(int thread)
{
	(void)thread;
}

static void make_message(void)
{
}
#endif

static void partitions(void *arg, long rounds)
{
	(void)arg;
	for (long k = 0; k < rounds; k++, job.count++) {
		if (bench.rank == 0)
			stamp_all();
		MPI_Start(&job.reqs[0]);
		tell(1, READY);
		if (bench.rank == 0)
			let_go();
		MPI_Wait(&job.reqs[0], MPI_STATUS_IGNORE);
		if (bench.rank == 1)
			stamped_all();
		tell(1, ANSWER);
	}
}

/* --- either way --- */

/* us a round, while the threads are there. */
static double with_threads(bench_fn *fn)
{
	int n = bench.rank == 0 ? job.threads : 0, numbers[THREADS_MAX];
	struct bench_thread *t = bench_alloc(sizeof(*t) * (size_t)(n + 1));
	double us;

	bench_barrier_init(&job.before, n + 1);
	bench_barrier_init(&job.after, n + 1);
	job.is_over = 0;
	for (int i = 0; i < n; i++) {
		numbers[i] = i;
		bench_create(&t[i], give_all, &numbers[i]);
	}
	us = bench_time(fn, NULL);
	job.is_over = 1;
	if (bench.rank == 0)
		bench_barrier_wait(&job.before);
	for (int i = 0; i < n; i++)
		bench_join(&t[i]);
	bench_barrier_destroy(&job.before);
	bench_barrier_destroy(&job.after);
	free(t);
	return us;
}

static void measure(const char *name, bench_fn *fn, void (*give)(int),
		    int threads)
{
	size_t bytes;
	double us;

	job.threads = threads;
	job.pieces = threads * PIECES;
	job.give = give;
	bytes = bench.bytes * (size_t)job.pieces;
	job.buf = bench_alloc(bytes);
	job.reqs = bench_alloc(sizeof(*job.reqs) * (size_t)job.pieces);
	bench_fill(job.buf, bytes, bench.rank == 0 ? 1 : 2);
	if (fn == partitions)
		make_message();
	us = with_threads(fn);
	if (bench.rank == 1)
		bench_check(job.buf, bytes, 1);
	if (fn == partitions)
		MPI_Request_free(&job.reqs[0]);
	bench_say(us / job.pieces, "us", "%s_%d", name, threads);
	free(job.reqs);
	free(job.buf);
}

int main(int argc, char **argv)
{
	static const struct bench_program program = {
		.name = "partitioned",
		.cases = "partitioned,sends",
		.options = "rmbt",
		.what = "THREADS",
		.ranks_least = 2,
		.ranks_most = 2,
		.least = 1,
		.most = THREADS_MAX,
		.repeat = 7,
		.ms = 20,
		.bytes = 64,
		.numbers = { 1, 8, 64 },
	};

	bench_start(argc, argv, &program);
	if (!HAS_PARTITIONS && bench_case("partitioned"))
		bench_refuse("this MPI has no partitions: -c sends");
	for (int i = 0; i < bench.n; i++) {
		int threads = (int)bench.numbers[i];

		if (bench_case("partitioned"))
			measure("partitioned", partitions, give_partitions,
				threads);
		if (bench_case("sends"))
			measure("sends", sends, give_sends, threads);
	}
	MPI_Finalize();
	return 0;
}
