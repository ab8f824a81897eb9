/*
 * MPI: a large message travels while everybody computes. With and without
 * computation in between, the exchange should take little more than the longer
 * of the two.
 *
 *   mpirun -n 2 overlap
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 8 << 20, TAG = 0 };

static char *out, *in;
static int rank;

/* About a millisecond of work that the compiler cannot leave out. */
static double compute(int pieces)
{
	double x = 1;

	for (int i = 0; i < pieces * 300000; i++)
		x = x * 1.0000001 + 1e-9;
	return x;
}

/* Exchange with the other rank, computing meanwhile. Returns the seconds. */
static double exchange(int pieces, double *x)
{
	MPI_Request reqs[2];
	double start;

	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	MPI_Irecv(in, BYTES, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD, &reqs[0]);
	MPI_Isend(out, BYTES, MPI_BYTE, 1 - rank, TAG, MPI_COMM_WORLD,
		  &reqs[1]);
	*x += compute(pieces);
	MPI_Waitall(2, reqs, MPI_STATUSES_IGNORE);
	return MPI_Wtime() - start;
}

int main(int argc, char **argv)
{
	double both, alone, work, x = 0;
	int size, bad;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	out = malloc(BYTES);
	in = malloc(BYTES);
	if (size != 2 || in == NULL || out == NULL) {
		fprintf(stderr, "overlap: run it as two processes\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	memset(out, 'a' + rank, BYTES);
	exchange(0, &x);
	alone = exchange(0, &x);
	work = MPI_Wtime();
	x += compute(10);
	work = MPI_Wtime() - work;
	both = exchange(10, &x);
	bad = in[0] != 'b' - rank || in[BYTES - 1] != 'b' - rank;
	if (rank == 0)
		printf("message %.2f ms, work %.2f ms, both %.2f ms "
		       "(result %g)\n",
		       alone * 1e3, work * 1e3, both * 1e3, x);
	free(in);
	free(out);
	MPI_Finalize();
	return bad;
}
