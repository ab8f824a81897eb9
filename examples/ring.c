/*
 * MPI: a token goes round all ranks, growing by one at each.
 *
 *   mpirun -n 4 ring
 */
#include <mpi.h>
#include <stdio.h>

enum { ROUNDS = 100, TAG = 0 };

int main(int argc, char **argv)
{
	int rank, size, token = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Request req;
		int from = (rank + size - 1) % size, to = (rank + 1) % size;
		int next;

		if (rank != 0) {
			MPI_Recv(&token, 1, MPI_INT, from, TAG, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		}
		next = token + 1;
		MPI_Isend(&next, 1, MPI_INT, to, TAG, MPI_COMM_WORLD, &req);
		if (rank == 0)
			MPI_Recv(&token, 1, MPI_INT, from, TAG, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
	if (rank == 0)
		printf("%d rounds through %d ranks: %d\n", ROUNDS, size, token);
	MPI_Finalize();
	return rank == 0 && token != ROUNDS * size;
}
