/*
 * Two ranks, N threads each: how long a message of 8 bytes takes when each
 * thread has 64 of them under way to its partner. Threads are the operating
 * system's, so that every MPI runs the same program; time per message over all
 * threads.
 *
 *   rate N ...
 */
#include <pthread.h>

#include "bench.h"

enum { REPEAT = 11, WINDOW = 64, TURNS = 100, THREADS_MAX = 64 };

struct partner {
	int tag;
	double begin[REPEAT], end[REPEAT]; /* s; its own part of each */
};

static int rank;
static pthread_barrier_t all;

/* A window of messages, then the receiver's answer. */
static void turn(int tag)
{
	MPI_Request reqs[WINDOW];
	char buf[WINDOW][8] = { "" }, answer = 0;

	for (int w = 0; w < WINDOW; w++) {
		if (rank == 0)
			MPI_Isend(buf[w], 8, MPI_BYTE, 1, tag, MPI_COMM_WORLD,
				  &reqs[w]);
		else
			MPI_Irecv(buf[w], 8, MPI_BYTE, 0, tag, MPI_COMM_WORLD,
				  &reqs[w]);
	}
	MPI_Waitall(WINDOW, reqs, MPI_STATUSES_IGNORE);
	if (rank == 0)
		MPI_Recv(&answer, 1, MPI_BYTE, 1, tag, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	else
		MPI_Send(&answer, 1, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
}

static void *talk(void *arg)
{
	struct partner *p = arg;

	for (int r = 0; r < REPEAT; r++) {
		pthread_barrier_wait(&all);
		p->begin[r] = MPI_Wtime();
		for (int i = 0; i < TURNS; i++)
			turn(p->tag);
		p->end[r] = MPI_Wtime();
	}
	return NULL;
}

/* From the first to begin to the last to end. */
static double took(const struct partner *p, int n, int r)
{
	double begin = p[0].begin[r], end = p[0].end[r];

	for (int i = 1; i < n; i++) {
		if (p[i].begin[r] < begin)
			begin = p[i].begin[r];
		if (p[i].end[r] > end)
			end = p[i].end[r];
	}
	return end - begin;
}

static void measure(int n)
{
	static struct partner partners[THREADS_MAX];
	pthread_t threads[THREADS_MAX];
	double t[REPEAT];

	pthread_barrier_init(&all, NULL, (unsigned)n);
	for (int i = 0; i < n; i++) {
		partners[i].tag = i;
		if (pthread_create(&threads[i], NULL, talk, &partners[i]) !=
		    0) {
			fprintf(stderr, "rate: no thread %d\n", i);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&all);
	for (int r = 0; r < REPEAT; r++)
		t[r] = took(partners, n, r) / TURNS / WINDOW / n * 1e6;
	if (rank == 0)
		printf("threads_%d %.4f us/message\n", n,
		       bench_median(t, REPEAT));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int size, provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != 2 || argc < 2 || provided != MPI_THREAD_MULTIPLE) {
		fprintf(stderr,
			"usage: rate N ..., with 2 ranks (now %d) and an MPI "
			"with MPI_THREAD_MULTIPLE\n",
			size);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	for (int i = 1; i < argc; i++) {
		int n = atoi(argv[i]);

		if (n < 1 || n > THREADS_MAX) {
			fprintf(stderr, "rate: '%s' is not 1 to %d threads\n",
				argv[i], THREADS_MAX);
			MPI_Abort(MPI_COMM_WORLD, 2);
		}
		measure(n);
	}
	MPI_Finalize();
	return 0;
}
