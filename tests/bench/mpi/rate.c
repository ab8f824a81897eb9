/*
 * Two ranks, N threads each: what a message of 8 bytes takes when each thread
 * has 64 of them under way to its partner. us = time / messages of all threads;
 * a partner answers each 64.
 */
#include <stdint.h>

#include "threads.h"

enum { WINDOW = 64, THREADS_MAX = 1024, REPEAT_MAX = 64 };

/* A thread; all of it is its own, and main's once it has ended. */
struct partner {
	int tag;
	long turns[REPEAT_MAX + 1];                        /* windows */
	double begin[REPEAT_MAX + 1], end[REPEAT_MAX + 1]; /* s */
};

static struct bench_barrier all;

/* What a message says: which one it is, and whether its window is the last. */
static uint64_t content(long turn, int w, int last)
{
	return ((uint64_t)turn * WINDOW + (uint64_t)w) << 1 | (uint64_t)last;
}

static void send_window(int tag, long turn, int last)
{
	MPI_Request reqs[WINDOW];
	uint64_t buf[WINDOW], answer;

	for (int w = 0; w < WINDOW; w++) {
		buf[w] = content(turn, w, last);
		MPI_Isend(&buf[w], 8, MPI_BYTE, 1, tag, MPI_COMM_WORLD,
			  &reqs[w]);
	}
	MPI_Waitall(WINDOW, reqs, MPI_STATUSES_IGNORE);
	MPI_Recv(&answer, 8, MPI_BYTE, 1, tag, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	if (answer != buf[WINDOW - 1])
		bench_fail("thread %d: not the answer to turn %ld", tag, turn);
}

/* True if it was the last. */
static int receive_window(int tag, long turn)
{
	MPI_Request reqs[WINDOW];
	uint64_t buf[WINDOW];
	int last;

	for (int w = 0; w < WINDOW; w++)
		MPI_Irecv(&buf[w], 8, MPI_BYTE, 0, tag, MPI_COMM_WORLD,
			  &reqs[w]);
	MPI_Waitall(WINDOW, reqs, MPI_STATUSES_IGNORE);
	last = (int)(buf[0] & 1);
	for (int w = 0; w < WINDOW; w++)
		if (buf[w] != content(turn, w, last))
			bench_fail("thread %d: message %d of turn %ld is "
				   "another one",
				   tag, w, turn);
	MPI_Send(&buf[WINDOW - 1], 8, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
	return last;
}

/* The first repetition is not counted. */
static void *send_all(void *arg)
{
	struct partner *p = arg;
	long turn = 0;

	for (int r = 0; r <= bench.repeat; r++) {
		int over;

		bench_barrier_wait(&all);
		p->begin[r] = MPI_Wtime();
		p->turns[r] = 0;
		do {
			over = (MPI_Wtime() - p->begin[r]) * 1e3 >= bench.ms;
			send_window(p->tag, turn++, over && r == bench.repeat);
			p->turns[r]++;
		} while (!over);
		p->end[r] = MPI_Wtime();
	}
	return NULL;
}

static void *receive_all(void *arg)
{
	struct partner *p = arg;

	for (long turn = 0; !receive_window(p->tag, turn); turn++)
		;
	return NULL;
}

/* us a message, from the first to begin to the last to end. */
static double took(const struct partner *p, int n, int r)
{
	double begin = p[0].begin[r], end = p[0].end[r];
	long turns = 0;

	for (int i = 0; i < n; i++) {
		begin = p[i].begin[r] < begin ? p[i].begin[r] : begin;
		end = p[i].end[r] > end ? p[i].end[r] : end;
		turns += p[i].turns[r];
	}
	return (end - begin) * 1e6 / (double)turns / WINDOW;
}

static void measure(int n)
{
	struct partner *p = bench_alloc(sizeof(*p) * (size_t)n);
	double us[REPEAT_MAX];

	for (int i = 0; i < n; i++)
		p[i].tag = i;
	bench_barrier_init(&all, n);
	bench_threads(n, bench.rank == 0 ? send_all : receive_all, p,
		      sizeof(*p));
	bench_barrier_destroy(&all);
	for (int r = 0; bench.rank == 0 && r < bench.repeat; r++)
		us[r] = took(p, n, r + 1);
	if (bench.rank == 0)
		bench_say(bench_median(us, bench.repeat), "us/message",
			  "rate_%d", n);
	free(p);
}

int main(int argc, char **argv)
{
	static const struct bench_program program = {
		.name = "rate",
		.options = "rmt",
		.what = "THREADS",
		.ranks_least = 2,
		.ranks_most = 2,
		.least = 1,
		.most = THREADS_MAX,
		.repeat = 7,
		.ms = 10,
		.numbers = { 1, 2, 8 },
	};

	bench_start(argc, argv, &program);
	if (bench.repeat > REPEAT_MAX)
		bench_refuse("at most %d repetitions", REPEAT_MAX);
	for (int i = 0; i < bench.n; i++)
		measure((int)bench.numbers[i]);
	MPI_Finalize();
	return 0;
}
