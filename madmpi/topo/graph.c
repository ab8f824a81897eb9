/*
 * Graph topologies, which every process describes whole: node v has the
 * neighbours edges[index[v - 1]] to edges[index[v] - 1], the first one those
 * from edges[0] on.
 */
#include <stdlib.h>
#include <string.h>

#include "bodies.h"
#include "coll/coll.h"
#include "comm/comm.h"
#include "pt2pt/message.h"
#include "topo/place.h"
#include "topo/topo.h"

static int begin_of(const int indx[], int v)
{
	return v > 0 ? indx[v - 1] : 0;
}

static int check_edges(const char *fn, struct madmpi_comm *c, int nnodes,
		       const int indx[], const int edges[])
{
	int rc;

	for (int v = 0; v < nnodes; v++)
		if (indx[v] < begin_of(indx, v))
			return madmpi_error(c, MPI_ERR_ARG, fn,
					    "indx[%d] is %d, less than what "
					    "is before it",
					    v, indx[v]);
	rc = madmpi_check_list(fn, c, "edges", edges, begin_of(indx, nnodes));
	if (rc != MPI_SUCCESS)
		return rc;
	for (int i = 0; i < begin_of(indx, nnodes); i++)
		if (edges[i] < 0 || edges[i] >= nnodes)
			return madmpi_error(c, MPI_ERR_ARG, fn,
					    "edges[%d] is %d, but the graph "
					    "has %d node%s",
					    i, edges[i], nnodes,
					    nnodes > 1 ? "s" : "");
	return MPI_SUCCESS;
}

/* A graph that the communicator has enough processes for. */
static int check_graph(const char *fn, struct madmpi_comm *c, int nnodes,
		       const int indx[], const int edges[])
{
	int rc = madmpi_check_intra(fn, c);

	if (rc != MPI_SUCCESS)
		return rc;
	if (nnodes < 0)
		return madmpi_error(c, MPI_ERR_ARG, fn,
				    "nnodes is negative (%d)", nnodes);
	if (nnodes > c->size)
		return madmpi_error(c, MPI_ERR_ARG, fn,
				    "nnodes is %d, but the communicator has %d "
				    "process%s",
				    nnodes, c->size, c->size > 1 ? "es" : "");
	rc = madmpi_check_list(fn, c, "indx", indx, nnodes);
	return rc ? rc : check_edges(fn, c, nnodes, indx, edges);
}

/* For the process that has this node. NULL: no memory. */
static struct madmpi_topo *graph_new(int nnodes, const int indx[],
				     const int edges[], int node)
{
	size_t nedges = (size_t)begin_of(indx, nnodes);
	struct madmpi_topo *t =
		madmpi_topo_new(MPI_GRAPH, (size_t)nnodes + nedges);

	if (t == NULL)
		return NULL;
	t->graph.nnodes = nnodes;
	t->graph.index = t->memory;
	t->graph.edges = t->memory + nnodes;
	for (int v = 0; v < nnodes; v++)
		t->graph.index[v] = indx[v];
	if (nedges > 0)
		memcpy(t->graph.edges, edges, nedges * sizeof(int));
	t->sources = t->destinations = t->graph.edges + begin_of(indx, node);
	t->indegree = t->outdegree = indx[node] - begin_of(indx, node);
	return t;
}

/* The nodes of a graph near each other: which one this process has. */
static int place(struct madmpi_coll *x, int nnodes, const int indx[],
		 const int edges[])
{
	size_t n = (size_t)begin_of(indx, nnodes);
	struct madmpi_edge *all = malloc((n + 1) * sizeof(*all));
	int node;

	for (int v = 0; all != NULL && v < nnodes; v++)
		for (int i = begin_of(indx, v); i < indx[v]; i++)
			all[i] = (struct madmpi_edge){ v, edges[i], 1 };
	node = madmpi_topo_place(x, nnodes,
				 &(struct madmpi_edges){ all, n, n });
	free(all);
	return node;
}

/* MPI_Graph_create */
int madmpi_graph_create(MPI_Comm comm_old, int nnodes, const int indx[],
			const int edges[], int reorder, MPI_Comm *comm_graph)
{
	const char *fn = "MPI_Graph_create";
	struct madmpi_topo *t = NULL;
	struct madmpi_comm *c;
	struct madmpi_coll x;
	int rc = madmpi_check_new_comm(fn, comm_old, comm_graph, &c), node;

	if (rc != MPI_SUCCESS)
		return rc;
	*comm_graph = MPI_COMM_NULL;
	rc = check_graph(fn, c, nnodes, indx, edges);
	if (rc != MPI_SUCCESS || nnodes == 0)
		return rc;
	if (!madmpi_coll_begin_call(&x, fn, c))
		return madmpi_coll_end(&x);
	node = madmpi_topo_stay(c->rank, nnodes);
	if (reorder)
		node = place(&x, nnodes, indx, edges);
	if (node >= 0)
		t = graph_new(nnodes, indx, edges, node);
	return madmpi_topo_unite(&x, 0, node, t, comm_graph);
}

/* MPI_Graph_map: a local call, which cannot know where others run. */
int madmpi_graph_map(MPI_Comm comm, int nnodes, const int indx[],
		     const int edges[], int *newrank)
{
	const char *fn = "MPI_Graph_map";
	struct madmpi_comm *c;
	int rc = madmpi_check_comm(fn, comm, &c);

	if (rc == MPI_SUCCESS)
		rc = check_graph(fn, c, nnodes, indx, edges);
	if (rc != MPI_SUCCESS)
		return rc;
	if (newrank == NULL)
		return madmpi_null_arg(c, fn, "newrank");
	*newrank = madmpi_topo_stay(c->rank, nnodes);
	return MPI_SUCCESS;
}

/* MPI_Graphdims_get */
int madmpi_graphdims_get(MPI_Comm comm, int *nnodes, int *nedges)
{
	const char *fn = "MPI_Graphdims_get";
	struct madmpi_comm *c;
	struct madmpi_topo *t;
	int rc = madmpi_check_topo(fn, comm, MPI_GRAPH, &c, &t);

	if (rc != MPI_SUCCESS)
		return rc;
	if (nnodes == NULL || nedges == NULL)
		return madmpi_null_arg(c, fn, nnodes ? "nedges" : "nnodes");
	*nnodes = t->graph.nnodes;
	*nedges = begin_of(t->graph.index, t->graph.nnodes);
	return MPI_SUCCESS;
}

/* Copy n numbers to the caller's array, which holds max. */
static int give(const char *fn, struct madmpi_comm *c, const char *name,
		const int *list, int n, int *to, int max)
{
	if (n > max)
		return madmpi_error(c, MPI_ERR_ARG, fn,
				    "%s has room for %d, but there are %d",
				    name, max, n);
	if (n > 0 && to == NULL)
		return madmpi_null_arg(c, fn, name);
	if (n > 0)
		memcpy(to, list, (size_t)n * sizeof(int));
	return MPI_SUCCESS;
}

/* MPI_Graph_get */
int madmpi_graph_get(MPI_Comm comm, int maxindex, int maxedges, int indx[],
		     int edges[])
{
	const char *fn = "MPI_Graph_get";
	struct madmpi_comm *c;
	struct madmpi_topo *t;
	int rc = madmpi_check_topo(fn, comm, MPI_GRAPH, &c, &t);

	if (rc == MPI_SUCCESS)
		rc = give(fn, c, "indx", t->graph.index, t->graph.nnodes, indx,
			  maxindex);
	if (rc == MPI_SUCCESS)
		rc = give(fn, c, "edges", t->graph.edges,
			  begin_of(t->graph.index, t->graph.nnodes), edges,
			  maxedges);
	return rc;
}

static int check_node(const char *fn, MPI_Comm comm, int rank,
		      struct madmpi_comm **c, struct madmpi_topo **t)
{
	int rc = madmpi_check_topo(fn, comm, MPI_GRAPH, c, t);

	if (rc != MPI_SUCCESS || (rank >= 0 && rank < (*c)->size))
		return rc;
	return madmpi_error(*c, MPI_ERR_RANK, fn,
			    "rank is %d, but the graph has %d node%s", rank,
			    (*c)->size, (*c)->size > 1 ? "s" : "");
}

/* MPI_Graph_neighbors_count */
int madmpi_graph_neighbors_count(MPI_Comm comm, int rank, int *nneighbors)
{
	const char *fn = "MPI_Graph_neighbors_count";
	struct madmpi_comm *c;
	struct madmpi_topo *t;
	int rc = check_node(fn, comm, rank, &c, &t);

	if (rc != MPI_SUCCESS)
		return rc;
	if (nneighbors == NULL)
		return madmpi_null_arg(c, fn, "nneighbors");
	*nneighbors = t->graph.index[rank] - begin_of(t->graph.index, rank);
	return MPI_SUCCESS;
}

/* MPI_Graph_neighbors */
int madmpi_graph_neighbors(MPI_Comm comm, int rank, int maxneighbors,
			   int neighbors[])
{
	const char *fn = "MPI_Graph_neighbors";
	struct madmpi_comm *c;
	struct madmpi_topo *t;
	int rc = check_node(fn, comm, rank, &c, &t), begin;

	if (rc != MPI_SUCCESS)
		return rc;
	begin = begin_of(t->graph.index, rank);
	return give(fn, c, "neighbors", t->graph.edges + begin,
		    t->graph.index[rank] - begin, neighbors, maxneighbors);
}
