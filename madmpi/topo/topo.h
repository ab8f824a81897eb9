/*
 * Virtual topologies: who is a neighbour of whom in a communicator.
 *
 * What the program has described, and the neighbours of this process as the
 * neighbourhood collectives want them: a list to receive from and one to send
 * to, whatever the kind. A copy of the communicator shares it.
 */
#ifndef MADMPI_TOPO_TOPO_H
#define MADMPI_TOPO_TOPO_H

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

#include "core/object.h"

struct madmpi_coll;
struct madmpi_comm;

struct madmpi_topo {
	/* -: const once published */
	struct madmpi_object object; /* references: no handle leads here */
	int kind; /* -: MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH */
	union {
		struct {
			int ndims;
			int *dims, *periods, *coords; /* coords: of this one */
		} cart;
		struct {
			int nnodes;
			int *index, *edges;
		} graph;
		struct {
			bool is_weighted;
			int *source_weights, *dest_weights;
		} dist;
	};                       /* -: arrays are in memory[] */
	int indegree, outdegree; /* -: */
	int *sources;            /* -: or MPI_PROC_NULL */
	int *destinations;       /* -: */
	int memory[];            /* -: */
};

/* With that many ints of zero in memory[], one reference. NULL: no memory. */
struct madmpi_topo *madmpi_topo_new(int kind, size_t ints);

/* NULL is no topology. */
static inline struct madmpi_topo *madmpi_topo_get(struct madmpi_topo *t)
{
	if (t != NULL)
		madmpi_object_get(&t->object);
	return t;
}
void madmpi_topo_put(struct madmpi_topo *t);

/* The communicator and its topology, which is of that kind. */
int madmpi_check_topo(const char *fn, MPI_Comm comm, int kind,
		      struct madmpi_comm **c, struct madmpi_topo **t);

/* An array that is read, unless it is empty. */
int madmpi_check_list(const char *fn, struct madmpi_comm *c, const char *name,
		      const int *list, int n);

/*
 * The last steps of an operation, which end it: the processes with the same
 * color unite, in the order of their nodes. Their communicator has the topology
 * t, whose reference is taken over. t is NULL for a process that stays outside,
 * whose node is MPI_UNDEFINED, and for one that has no memory for a topology:
 * then, or after another failure, nobody unites.
 */
int madmpi_topo_unite(struct madmpi_coll *x, int color, int node,
		      struct madmpi_topo *t, MPI_Comm *newcomm);

#endif
