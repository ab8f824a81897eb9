/*
 * An MPI program of MPI-1, C and C++: only mpicc -compat compiles it. A macro
 * that the C library looks for still comes before its first header.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>
#include <string.h>

#include <mpi.h>

struct one {
	int key;
	double value;
	char name[5];
};

int main(int argc, char **argv)
{
	int rank, size, block[3] = { 1, 1, 1 }, sum = 0;
	MPI_Datatype types[3] = { MPI_INT, MPI_DOUBLE, MPI_UB }, type;
	MPI_Errhandler handler;
	MPI_Aint at[3], extent;
	MPI_Status status;
	struct one out[2], in[2];

	MPI_Init(&argc, &argv);
	MPI_Errhandler_get(MPI_COMM_WORLD, &handler);
	MPI_Errhandler_set(MPI_COMM_WORLD, handler);
	MPI_Errhandler_free(&handler);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Address(&out[0].key, &at[0]);
	MPI_Address(&out[0].value, &at[1]);
	MPI_Address(&out[1], &at[2]);
	at[2] -= at[0];
	at[1] -= at[0];
	at[0] = 0;
	MPI_Type_struct(3, block, at, types, &type);
	MPI_Type_commit(&type);
	MPI_Type_extent(type, &extent);
	out[0].key = out[1].key = 1;
	out[0].value = out[1].value = rank;
	MPI_Sendrecv(out, 2, type, (rank + 1) % size, 0, in, 2, type,
		     (rank + size - 1) % size, 0, MPI_COMM_WORLD, &status);
	MPI_Allreduce(&in[1].key, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (extent == sizeof(struct one) && *strchrnul("x", 'y') == '\0')
		printf("rank %d of %d, sum %d\n", rank, size, sum);
	MPI_Type_free(&type);
	MPI_Finalize();
	return sum != size;
}
