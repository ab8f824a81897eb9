/*
 * Which algorithm for which size: all choices of the library in one place.
 */
#include "coll/coll.h"

/* Few processes or few bytes: fewest steps. Else: least data per process. */
madmpi_bcast_fn madmpi_choose_bcast(const struct madmpi_coll *c,
				    MPI_Count bytes)
{
	return c->size <= 3 || bytes <= 128 * 1024 ? madmpi_bcast_binomial
						   : madmpi_bcast_scatter_ring;
}

/* The ring adds in another order, and cuts only what it can count. */
madmpi_allreduce_fn madmpi_choose_allreduce(const struct madmpi_coll *c,
					    MPI_Count n,
					    const struct madmpi_type *t,
					    const struct madmpi_op *op)
{
	if (c->size <= 2 || !op->commutes || n < c->size ||
	    n * t->size <= 64 * 1024)
		return madmpi_allreduce_doubling;
	return madmpi_allreduce_ring;
}

/* `bytes` from each process. */
madmpi_allgather_fn madmpi_choose_allgather(const struct madmpi_coll *c,
					    MPI_Count bytes)
{
	return c->size <= 2 || bytes * c->size > 64 * 1024
		       ? madmpi_allgather_ring
		       : madmpi_allgather_bruck;
}
