/*
 * Two ranks and N threads (MPI_THREAD_MULTIPLE): how many round trips of 8
 * bytes there are in a second, of all threads together.
 *
 *   one    one thread of rank 0 sends to N threads of rank 1 in turn, which
 * wait with a tag each, and has one message under way at a time each   N
 * threads of rank 0, each with a partner of its own in rank 1
 */
#include <stdint.h>

#include "threads.h"

enum { THREADS_MAX = 4096, REPEAT_MAX = 64 };

/* Round trips of one repetition; of the thread that makes them. */
struct span {
	long trips;
	double begin, end; /* s */
};

/* A thread; all of it is its own, and main's once it has ended. */
struct actor {
	int tag;
	int receivers;                     /* of a sender: this tag and so on */
	struct span spans[REPEAT_MAX + 1]; /* of a sender */
};

static struct bench_barrier senders;

/* There and back. What is sent is 2n; 2n + 1 is the last for a receiver. */
static void trip(int tag, long n)
{
	uint64_t out = (uint64_t)n << 1, in;

	MPI_Send(&out, 8, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
	MPI_Recv(&in, 8, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (in != ~out)
		bench_fail("tag %d: not the answer to message %ld", tag, n);
}

/* The last message of each receiver: all at once, of no repetition. */
static void end_receivers(const struct actor *a, long n)
{
	size_t many = (size_t)a->receivers;
	MPI_Request *reqs = bench_alloc(sizeof(*reqs) * 2 * many);
	uint64_t *in = bench_alloc(sizeof(*in) * many);
	uint64_t out = (uint64_t)n << 1 | 1;

	for (int i = 0; i < a->receivers; i++) {
		MPI_Irecv(&in[i], 8, MPI_BYTE, 1, a->tag + i, MPI_COMM_WORLD,
			  &reqs[2 * i]);
		MPI_Isend(&out, 8, MPI_BYTE, 1, a->tag + i, MPI_COMM_WORLD,
			  &reqs[2 * i + 1]);
	}
	MPI_Waitall(2 * a->receivers, reqs, MPI_STATUSES_IGNORE);
	for (int i = 0; i < a->receivers; i++)
		if (in[i] != ~out)
			bench_fail("tag %d: not the last answer", a->tag + i);
	free(in);
	free(reqs);
}

static void *answer(void *arg)
{
	const struct actor *a = arg;
	uint64_t in = 0, before = 0;

	do {
		MPI_Recv(&in, 8, MPI_BYTE, 0, a->tag, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		if (in < before)
			bench_fail("tag %d: an old message", a->tag);
		before = in;
		in = ~in;
		MPI_Send(&in, 8, MPI_BYTE, 0, a->tag, MPI_COMM_WORLD);
	} while ((before & 1) == 0);
	return NULL;
}

/* The first repetition is not counted. */
static void *ask(void *arg)
{
	struct actor *a = arg;
	long n = 1;

	for (int r = 0; r <= bench.repeat; r++) {
		struct span *s = &a->spans[r];

		bench_barrier_wait(&senders);
		*s = (struct span){ .begin = MPI_Wtime() };
		do {
			trip(a->tag + (int)(n % a->receivers), n);
			n++;
			s->trips++;
			s->end = MPI_Wtime();
		} while ((s->end - s->begin) * 1e3 < bench.ms);
	}
	bench_barrier_wait(&senders);
	end_receivers(a, n);
	return NULL;
}

/* Trips a second of n senders, from the first to begin to the last to end. */
static double speed(const struct actor *a, int n, int r)
{
	double begin = a[0].spans[r].begin, end = a[0].spans[r].end;
	long trips = 0;

	for (int i = 0; i < n; i++) {
		const struct span *s = &a[i].spans[r];

		begin = s->begin < begin ? s->begin : begin;
		end = s->end > end ? s->end : end;
		trips += s->trips;
	}
	return (double)trips / (end - begin);
}

static void measure(const char *name, int asking, int answering)
{
	int n = bench.rank == 0 ? asking : answering;
	struct actor *a = bench_alloc(sizeof(*a) * (size_t)n);
	double speeds[REPEAT_MAX];

	if (!bench_case(name)) {
		free(a);
		return;
	}
	for (int i = 0; i < n; i++) {
		a[i].tag = i;
		a[i].receivers = answering / asking;
	}
	bench_barrier_init(&senders, asking);
	bench_threads(n, bench.rank == 0 ? ask : answer, a, sizeof(*a));
	bench_barrier_destroy(&senders);
	for (int r = 0; bench.rank == 0 && r < bench.repeat; r++)
		speeds[r] = speed(a, n, r + 1);
	if (bench.rank == 0)
		bench_say(bench_median(speeds, bench.repeat), "trips/s",
			  "%s_%d", name, answering);
	free(a);
}

int main(int argc, char **argv)
{
	static const struct bench_program program = {
		.name = "threads",
		.cases = "one,each",
		.options = "rmt",
		.what = "THREADS",
		.ranks_least = 2,
		.ranks_most = 2,
		.least = 1,
		.most = THREADS_MAX,
		.repeat = 5,
		.ms = 20,
		.numbers = { 1, 2, 8, 32, 128 },
	};

	bench_start(argc, argv, &program);
	if (bench.repeat > REPEAT_MAX)
		bench_refuse("at most %d repetitions", REPEAT_MAX);
	for (int i = 0; i < bench.n; i++) {
		measure("one", 1, (int)bench.numbers[i]);
		measure("each", (int)bench.numbers[i], (int)bench.numbers[i]);
	}
	MPI_Finalize();
	return 0;
}
