/*
 * For trace.py: user threads of two ranks exchange messages, small ones and one
 * by rendezvous; with "abort" rank 0 ends the job instead, after some calls.
 */
#include <stdlib.h>
#include <string.h>

#include <marcel/marcel.h>
#include <mpi.h>

enum { THREADS = 20, LARGE = 1 << 20, CALLS = 100 };

static char large[LARGE];

static void *chat(void *arg)
{
	int rank, got, tag = (int)(long)arg;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Sendrecv(&rank, 1, MPI_INT, !rank, tag, &got, 1, MPI_INT, !rank,
		     tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return got == !rank ? NULL : arg;
}

static void exchange(int rank)
{
	marcel_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		marcel_create(&t[i], NULL, chat, (void *)i);
	for (int i = 0; i < THREADS; i++)
		marcel_join(t[i], NULL);
	if (rank == 0)
		MPI_Send(large, LARGE, MPI_CHAR, 1, 99, MPI_COMM_WORLD);
	else
		MPI_Recv(large, LARGE, MPI_CHAR, 0, 99, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (argc > 1 && strcmp(argv[1], "abort") == 0) {
		for (int i = 0; i < CALLS && rank == 0; i++)
			MPI_Comm_rank(MPI_COMM_WORLD, &rank);
		if (rank == 0)
			MPI_Abort(MPI_COMM_WORLD, 7);
	}
	exchange(rank);
	MPI_Barrier(MPI_COMM_WORLD);
	return MPI_Finalize();
}
