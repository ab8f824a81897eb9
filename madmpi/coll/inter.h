/*
 * The steps of collective operations between the two groups of an
 * intercommunicator. What does not matter in a process that says MPI_PROC_NULL
 * is not looked at.
 */
#ifndef MADMPI_COLL_INTER_H
#define MADMPI_COLL_INTER_H

#include "coll/coll.h"

void madmpi_inter_barrier(struct madmpi_coll *c);
void madmpi_inter_bcast(struct madmpi_coll *c, void *buf, MPI_Count n,
			struct madmpi_type *t, int root);
void madmpi_inter_reduce(struct madmpi_coll *c, const void *from, void *to,
			 MPI_Count n, struct madmpi_type *t,
			 struct madmpi_op *op, int root);
void madmpi_inter_allreduce(struct madmpi_coll *c, const void *from, void *to,
			    MPI_Count n, struct madmpi_type *t,
			    struct madmpi_op *op);

/* total elements in s; the own part of what the others have goes to `to`. */
void madmpi_inter_reduce_scatter(struct madmpi_coll *c,
				 const struct madmpi_parts *s, MPI_Count total,
				 void *to, struct madmpi_type *t,
				 struct madmpi_op *op);
void madmpi_inter_allgather(struct madmpi_coll *c, const void *from,
			    MPI_Count n, const struct madmpi_type *t,
			    const struct madmpi_parts *r);
void madmpi_inter_alltoall(struct madmpi_coll *c, const struct madmpi_parts *s,
			   const struct madmpi_parts *r);

/*
 * Steps of what the library needs (coll.h). The bytes of a root in the first
 * group come to one process of each: who that is in the own one.
 */
int madmpi_inter_tell_bytes(struct madmpi_coll *c, void *bytes, MPI_Count n,
			    int root);

/* All of a group have `ours`, those of the other group will have it, too. */
void madmpi_inter_swap_bytes(struct madmpi_coll *c, const void *ours,
			     MPI_Count n, void *theirs, MPI_Count m);

#endif
