/*
 * Collective operations between the two groups of an intercommunicator. The
 * arguments have been checked; what does not matter in a process that says
 * MPI_PROC_NULL is not looked at. MPI_SUCCESS or the class of the first
 * failure.
 */
#ifndef MADMPI_COLL_INTER_H
#define MADMPI_COLL_INTER_H

#include "coll/coll.h"

int madmpi_inter_barrier(const char *fn, struct madmpi_comm *comm);
int madmpi_inter_bcast(const char *fn, struct madmpi_comm *comm, void *buf,
		       MPI_Count n, struct madmpi_type *t, int root);
int madmpi_inter_reduce(const char *fn, struct madmpi_comm *comm,
			const void *from, void *to, MPI_Count n,
			struct madmpi_type *t, struct madmpi_op *op, int root);
int madmpi_inter_allreduce(const char *fn, struct madmpi_comm *comm,
			   const void *from, void *to, MPI_Count n,
			   struct madmpi_type *t, struct madmpi_op *op);

/* total elements in s; the own part of what the others have goes to `to`. */
int madmpi_inter_reduce_scatter(const char *fn, struct madmpi_comm *comm,
				const struct madmpi_parts *s, MPI_Count total,
				void *to, struct madmpi_type *t,
				struct madmpi_op *op);
int madmpi_inter_allgather(const char *fn, struct madmpi_comm *comm,
			   const void *from, MPI_Count n,
			   const struct madmpi_type *t,
			   const struct madmpi_parts *r);
int madmpi_inter_alltoall(const char *fn, struct madmpi_comm *comm,
			  const struct madmpi_parts *s,
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
