/*
 * MPI: five hundred user threads in each rank, each with a partner thread in
 * the next rank, each blocking in MPI for itself. Their messages are told
 * apart by the tag.
 *
 *   mpirun -n 2 threads_isend
 */
#include <marcel/marcel.h>
#include <mpi.h>
#include <stdio.h>

enum { THREADS = 500, ROUNDS = 20 };

static int rank, size, wrong[THREADS];

static void *talk(void *arg)
{
	int tag = (int)(long)arg, out, in;
	int to = (rank + 1) % size, from = (rank + size - 1) % size;

	for (int i = 0; i < ROUNDS; i++) {
		MPI_Request reqs[2];

		out = rank * 1000000 + tag * 100 + i;
		MPI_Irecv(&in, 1, MPI_INT, from, tag, MPI_COMM_WORLD, &reqs[0]);
		MPI_Isend(&out, 1, MPI_INT, to, tag, MPI_COMM_WORLD, &reqs[1]);
		MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE);
		wrong[tag] += in != from * 1000000 + tag * 100 + i;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	marcel_t threads[THREADS];
	int provided, here = 0, all;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (long i = 0; i < THREADS; i++)
		if (marcel_create(&threads[i], NULL, talk, (void *)i) != 0)
			MPI_Abort(MPI_COMM_WORLD, 1);
	for (int i = 0; i < THREADS; i++)
		marcel_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++)
		here += wrong[i];
	MPI_Allreduce(&here, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d messages between %d threads, %d wrong\n",
		       size * THREADS * ROUNDS, size * THREADS, all);
	MPI_Finalize();
	return all != 0;
}
