/*
 * Which process becomes which node of a topology, if the program lets us
 * choose.
 */
#ifndef MADMPI_TOPO_PLACE_H
#define MADMPI_TOPO_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

struct madmpi_coll;

/* Messages go along it, in either direction; weight 0 or more. */
struct madmpi_edge {
	int from, to, weight;
};

/* Of all nodes of a topology. */
struct madmpi_edges {
	const struct madmpi_edge *edge;
	size_t n;
	/* Parts grow along the first ones only: what closes a grid would round
	 * them off where they have to fit together. */
	size_t grow;
};

/* Where the processes of a communicator run. */
struct madmpi_places {
	int n;      /* processes */
	int levels; /* of hardware: hosts, then smaller and smaller parts */
	int *at;    /* [rank * levels + level]: in which one; -1: in several */
	int *order; /* ranks: who share a part are together */
};

/*
 * All processes tell all, as steps of an operation. *p must be freed, and can
 * be used if nothing has failed.
 */
void madmpi_places_find(struct madmpi_coll *x, struct madmpi_places *p);
void madmpi_places_free(struct madmpi_places *p);

/* Whether some processes are nearer to each other than others. */
bool madmpi_places_differ(const struct madmpi_places *p);

/*
 * node[rank], or MPI_UNDEFINED for those left over: all processes find the
 * same. Everybody keeps his rank where nothing better is found. 0 or -ENOMEM.
 */
int madmpi_places_assign(const struct madmpi_places *p, int nnodes,
			 const struct madmpi_edges *edges, int *node);

/*
 * All this for a topology that every process knows, as steps of an operation.
 * Returns the node of this process. Edges of NULL mean that there is no memory
 * for them: the operation fails everywhere.
 */
int madmpi_topo_place(struct madmpi_coll *x, int nnodes,
		      const struct madmpi_edges *edges);

/* The node of a process that keeps its rank. */
static inline int madmpi_topo_stay(int rank, int nnodes)
{
	return rank < nnodes ? rank : MPI_UNDEFINED;
}

#endif
