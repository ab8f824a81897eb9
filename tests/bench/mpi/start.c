/*
 * The start of a job and its end, which tools/bench/run.py startup times from
 * outside. Prints nothing. "start barrier" meets the others between.
 */
#include <mpi.h>
#include <string.h>

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	if (argc > 1 && strcmp(argv[1], "barrier") == 0)
		MPI_Barrier(MPI_COMM_WORLD);
	return MPI_Finalize();
}
