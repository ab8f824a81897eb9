/*
 * Which process becomes which node of a topology, if the program lets us
 * choose.
 */
#ifndef MADMPI_TOPO_PLACE_H
#define MADMPI_TOPO_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

struct madmpi_comm;

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
 * All processes tell all; or that one is not able to go on, for want of memory.
 * MPI_SUCCESS or the class of what was reported.
 */
int madmpi_places_find(const char *fn, struct madmpi_comm *c, bool able,
		       struct madmpi_places *p);
void madmpi_places_free(struct madmpi_places *p);

/* Whether some processes are nearer to each other than others. */
bool madmpi_places_differ(const struct madmpi_places *p);

/*
 * node[rank], or MPI_UNDEFINED for those left over: all processes find the
 * same. Everybody keeps his rank where nothing better is found. 0 or -ENOMEM.
 */
int madmpi_places_assign(const struct madmpi_places *p, int nnodes,
			 const struct madmpi_edges *edges, int *node);

/* A node that there was no memory to find: it is to have no topology. */
enum { MADMPI_NO_NODE = -1 };

/*
 * All this for a topology that every process knows: the node of this one. Edges
 * of NULL: there was no memory for them. MPI_SUCCESS or the class of what was
 * reported to all.
 */
int madmpi_topo_place(const char *fn, struct madmpi_comm *c, int nnodes,
		      const struct madmpi_edges *edges, int *node);

/* The node of a process that keeps its rank. */
static inline int madmpi_topo_stay(int rank, int nnodes)
{
	return rank < nnodes ? rank : MPI_UNDEFINED;
}

#endif
