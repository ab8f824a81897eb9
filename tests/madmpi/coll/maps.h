/*
 * Affine maps x -> a x + b, as an operation: composing them does not commute.
 */
#ifndef TESTS_MADMPI_COLL_MAPS_H
#define TESTS_MADMPI_COLL_MAPS_H

#include <mpi.h>

struct map {
	unsigned a, b;
};

static void compose(void *in, void *inout, int *len, MPI_Datatype *type)
{
	struct map *x = in, *y = inout;

	(void)type;
	for (int i = 0; i < *len; i++) {
		y[i].b = x[i].a * y[i].b + x[i].b;
		y[i].a = x[i].a * y[i].a;
	}
}

#endif
