/*
 * Threads that all use MPI at once. The includer says of which kind they are:
 * thread_t, thread_create(), thread_join(), and how many there may be, THREADS.
 */
#ifndef TESTS_MADMPI_PROC_THREADS_H
#define TESTS_MADMPI_PROC_THREADS_H

#include "../program.h"

struct worker {
	thread_t thread;
	int id;
	MPI_Comm comm;
};

enum { ROUNDS = 20 };

/* Thread i of each process talks to thread i of its neighbours, blocking. */
static void *neighbours(void *arg)
{
	struct worker *w = arg;
	int next = (rank + 1) % size, previous = (rank - 1 + size) % size;
	int out[100], in[100];
	MPI_Status st;

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < 100; i++)
			out[i] = 10000 * rank + 100 * w->id + round;
		MPI_Sendrecv(out, 100, MPI_INT, next, w->id, in, 100, MPI_INT,
			     previous, w->id, MPI_COMM_WORLD, &st);
		EXPECT_INT(in[99], 10000 * previous + 100 * w->id + round);
		EXPECT_INT(st.MPI_TAG, w->id);
	}
	return NULL;
}

/* Half the threads wait in a receive for what the other half sends. */
static void *pairs(void *arg)
{
	struct worker *w = arg;
	MPI_Request r;
	int token = w->id, in;

	for (int round = 0; round < ROUNDS; round++) {
		if (w->id % 2 == 0) {
			MPI_Recv(&in, 1, MPI_INT, rank, 1000 + w->id,
				 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			EXPECT_INT(in, w->id + 1);
			MPI_Send(&in, 1, MPI_INT, rank, 1001 + w->id,
				 MPI_COMM_WORLD);
			continue;
		}
		MPI_Irecv(&in, 1, MPI_INT, rank, 1000 + w->id, MPI_COMM_WORLD,
			  &r);
		MPI_Send(&token, 1, MPI_INT, rank, 999 + w->id, MPI_COMM_WORLD);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		EXPECT_INT(in, token);
	}
	return NULL;
}

/* Each thread makes, uses and frees communicators of its own. */
static void *collectives(void *arg)
{
	struct worker *w = arg;
	MPI_Comm dup;
	int sum;

	for (int round = 0; round < 3; round++) {
		MPI_Comm_dup(w->comm, &dup);
		MPI_Allreduce(&w->id, &sum, 1, MPI_INT, MPI_SUM, dup);
		EXPECT_INT(sum, size * w->id);
		MPI_Comm_free(&dup);
		MPI_Barrier(w->comm);
	}
	return NULL;
}

/* Requests made by one thread may be completed by another. */
static void *receivers(void *arg)
{
	struct worker *w = arg;
	int out = w->id, in = -1;
	MPI_Request r[2];
	MPI_Status st[2];

	for (int round = 0; round < ROUNDS; round++) {
		MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 5000 + w->id,
			  MPI_COMM_WORLD, &r[0]);
		MPI_Isend(&out, 1, MPI_INT, (rank + 1) % size, 5000 + w->id,
			  MPI_COMM_WORLD, &r[1]);
		MPI_Waitall(2, r, st);
		EXPECT_INT(in, w->id);
		EXPECT_INT(st[0].MPI_SOURCE, (rank - 1 + size) % size);
	}
	return NULL;
}

static void all(struct worker *w, int n, void *(*fn)(void *))
{
	for (int i = 0; i < n; i++) {
		w[i].id = i;
		EXPECT(thread_create(&w[i].thread, fn, &w[i]) == 0);
	}
	for (int i = 0; i < n; i++)
		EXPECT(thread_join(w[i].thread) == 0);
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	struct worker *w = calloc(THREADS, sizeof(*w));
	int provided = -1;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	EXPECT_INT(provided, MPI_THREAD_MULTIPLE);
	all(w, THREADS, neighbours);
	all(w, THREADS, pairs);
	all(w, THREADS, receivers);
	for (int i = 0; i < 8; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &w[i].comm);
	all(w, 8, collectives);
	for (int i = 0; i < 8; i++)
		MPI_Comm_free(&w[i].comm);
	free(w);
	return program_end("threads");
}

#endif
