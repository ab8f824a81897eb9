/*
 * MPI: heat in a rod, cut into pieces of equal length, one a rank; borders
 * travel with MPI_Sendrecv. See heat/ for two dimensions and many threads.
 *
 *   mpirun -n 4 stencil
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 1000, STEPS = 500 };

/* The borders of the neighbours become the cells 0 and CELLS + 1. */
static void exchange(double *rod, int left, int right)
{
	MPI_Sendrecv(&rod[1], 1, MPI_DOUBLE, left, 0, &rod[CELLS + 1], 1,
		     MPI_DOUBLE, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(&rod[CELLS], 1, MPI_DOUBLE, right, 1, &rod[0], 1,
		     MPI_DOUBLE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	static double rod[CELLS + 2], next[CELLS + 2];
	double here = 0, all, change, most;
	int rank, size, left, right;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	/* A ring: no end of the rod loses heat. */
	left = (rank + size - 1) % size;
	right = (rank + 1) % size;
	if (rank == 0)
		rod[1] = 1000;
	for (int step = 0; step < STEPS; step++) {
		exchange(rod, left, right);
		change = 0;
		for (int i = 1; i <= CELLS; i++) {
			double flow = rod[i - 1] - 2 * rod[i] + rod[i + 1];

			next[i] = rod[i] + 0.25 * flow;
			if (flow * flow > change)
				change = flow * flow;
		}
		memcpy(rod, next, sizeof(rod));
		MPI_Allreduce(&change, &most, 1, MPI_DOUBLE, MPI_MAX,
			      MPI_COMM_WORLD);
	}
	for (int i = 1; i <= CELLS; i++)
		here += rod[i];
	MPI_Reduce(&here, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d cells, %d steps: heat %.6f, last change %.2e\n",
		       size * CELLS, STEPS, all, most);
	MPI_Finalize();
	return rank == 0 && (all < 999.999999 || all > 1000.000001);
}
