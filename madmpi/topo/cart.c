/*
 * Cartesian topologies. Ranks go through the grid row by row: the last
 * coordinate runs fastest.
 */
#include <stdlib.h>
#include <string.h>

#include "bodies.h"
#include "coll/coll.h"
#include "comm/comm.h"
#include "pt2pt/message.h"
#include "topo/place.h"
#include "topo/topo.h"

static void coords_of(int ndims, const int dims[], int rank, int *coords)
{
	for (int i = ndims - 1; i >= 0; i--) {
		coords[i] = rank % dims[i];
		rank /= dims[i];
	}
}

static int rank_of(int ndims, const int dims[], const int *coords)
{
	int rank = 0;

	for (int i = 0; i < ndims; i++)
		rank = rank * dims[i] + coords[i];
	return rank;
}

/* Whoever is so far away along one dimension, or MPI_PROC_NULL. */
static int neighbour(const struct madmpi_topo *t, int dim, long long away)
{
	int size = t->cart.dims[dim], below = 1;
	long long at = t->cart.coords[dim], to = at + away;

	if (t->cart.periods[dim])
		to = ((to % size) + size) % size;
	else if (to < 0 || to >= size)
		return MPI_PROC_NULL;
	for (int i = dim + 1; i < t->cart.ndims; i++)
		below *= t->cart.dims[i];
	return rank_of(t->cart.ndims, t->cart.dims, t->cart.coords) +
	       (int)(to - at) * below;
}

/* For the process with this rank. NULL: no memory. */
static struct madmpi_topo *cart_new(int ndims, const int dims[],
				    const int periods[], int rank)
{
	size_t n = (size_t)ndims;
	struct madmpi_topo *t = madmpi_topo_new(MPI_CART, 5 * n);

	if (t == NULL)
		return NULL;
	t->cart.ndims = ndims;
	t->cart.dims = t->memory;
	t->cart.periods = t->memory + n;
	t->cart.coords = t->memory + 2 * n;
	for (int i = 0; i < ndims; i++) {
		t->cart.dims[i] = dims[i];
		t->cart.periods[i] = periods[i] != 0;
	}
	coords_of(ndims, dims, rank, t->cart.coords);
	t->indegree = t->outdegree = 2 * ndims;
	t->sources = t->destinations = t->memory + 3 * n;
	for (int i = 0; i < ndims; i++) {
		t->sources[2 * i] = neighbour(t, i, -1);
		t->sources[2 * i + 1] = neighbour(t, i, 1);
	}
	return t;
}

/* A grid that the communicator has enough processes for; how many it takes. */
static int check_grid(const char *fn, struct madmpi_comm *c, int ndims,
		      const int dims[], const int periods[], int *nodes)
{
	long long n = 1;
	int rc;

	if (ndims < 0)
		return madmpi_error(c, MPI_ERR_DIMS, fn,
				    "ndims is negative (%d)", ndims);
	rc = madmpi_check_list(fn, c, "dims", dims, ndims);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_list(fn, c, "periods", periods, ndims);
	for (int i = 0; i < ndims && rc == MPI_SUCCESS; i++) {
		if (dims[i] < 1)
			return madmpi_error(c, MPI_ERR_DIMS, fn,
					    "dims[%d] is %d: not even one", i,
					    dims[i]);
		n *= dims[i];
		if (n > c->size)
			return madmpi_error(c, MPI_ERR_DIMS, fn,
					    "the grid up to dims[%d] has %lld "
					    "nodes, but the communicator %d "
					    "process%s",
					    i, n, c->size,
					    c->size > 1 ? "es" : "");
	}
	*nodes = (int)n;
	return rc;
}

/*
 * The nodes of a grid near each other: which one this process has. What closes
 * a dimension, or leads nowhere, is behind the other edges.
 */
static int place(struct madmpi_coll *x, int ndims, const int dims[],
		 const int periods[], int nodes)
{
	size_t n = (size_t)nodes * (size_t)ndims, front = 0, back = n;
	struct madmpi_edge *edge = calloc(n + 1, sizeof(*edge));
	int node;

	for (int v = 0; edge != NULL && v < nodes; v++)
		for (int i = ndims - 1, below = 1; i >= 0; i--) {
			int at = v / below % dims[i];
			int begin = periods[i] ? v - at * below : v;

			if (at < dims[i] - 1)
				edge[front++] =
					(struct madmpi_edge){ v, v + below, 1 };
			else
				edge[--back] =
					(struct madmpi_edge){ v, begin, 1 };
			below *= dims[i];
		}
	node = madmpi_topo_place(x, nodes,
				 &(struct madmpi_edges){ edge, n, front });
	free(edge);
	return node;
}

/* MPI_Cart_create */
int madmpi_cart_create(MPI_Comm comm_old, int ndims, const int dims[],
		       const int periods[], int reorder, MPI_Comm *comm_cart)
{
	const char *fn = "MPI_Cart_create";
	struct madmpi_topo *t = NULL;
	struct madmpi_comm *c;
	struct madmpi_coll x;
	int rc = madmpi_check_new_comm(fn, comm_old, comm_cart, &c);
	int nodes, node;

	if (rc != MPI_SUCCESS)
		return rc;
	*comm_cart = MPI_COMM_NULL;
	rc = madmpi_check_intra(fn, c);
	if (rc == MPI_SUCCESS)
		rc = check_grid(fn, c, ndims, dims, periods, &nodes);
	if (rc != MPI_SUCCESS)
		return rc;
	if (!madmpi_coll_begin_call(&x, fn, c))
		return madmpi_coll_end(&x);
	node = madmpi_topo_stay(c->rank, nodes);
	if (reorder)
		node = place(&x, ndims, dims, periods, nodes);
	if (node >= 0)
		t = cart_new(ndims, dims, periods, node);
	return madmpi_topo_unite(&x, 0, node, t, comm_cart);
}

/* MPI_Cart_map: a local call, which cannot know where others run. */
int madmpi_cart_map(MPI_Comm comm, int ndims, const int dims[],
		    const int periods[], int *newrank)
{
	const char *fn = "MPI_Cart_map";
	struct madmpi_comm *c;
	int rc = madmpi_check_comm(fn, comm, &c), nodes;

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_intra(fn, c);
	if (rc == MPI_SUCCESS)
		rc = check_grid(fn, c, ndims, dims, periods, &nodes);
	if (rc != MPI_SUCCESS)
		return rc;
	if (newrank == NULL)
		return madmpi_null_arg(c, fn, "newrank");
	*newrank = madmpi_topo_stay(c->rank, nodes);
	return MPI_SUCCESS;
}

/* MPI_Cart_sub: of those dimensions that remain. */
int madmpi_cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm *newcomm)
{
	const char *fn = "MPI_Cart_sub";
	int n = 0, color = 0, key = 0, *dims, *periods, rc;
	struct madmpi_topo *t, *made = NULL;
	struct madmpi_comm *c;
	struct madmpi_coll x;

	rc = madmpi_check_topo(fn, comm, MPI_CART, &c, &t);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_list(fn, c, "remain_dims", remain_dims,
				       t->cart.ndims);
	if (rc == MPI_SUCCESS && newcomm == NULL)
		rc = madmpi_null_arg(c, fn, "newcomm");
	if (rc != MPI_SUCCESS)
		return rc;
	if (!madmpi_coll_begin_call(&x, fn, c))
		return madmpi_coll_end(&x);
	dims = malloc((2 * (size_t)t->cart.ndims + 1) * sizeof(*dims));
	periods = dims ? dims + t->cart.ndims : NULL;
	for (int i = 0; dims != NULL && i < t->cart.ndims; i++) {
		int *which = remain_dims[i] ? &key : &color;

		*which = *which * t->cart.dims[i] + t->cart.coords[i];
		if (!remain_dims[i])
			continue;
		dims[n] = t->cart.dims[i];
		periods[n++] = t->cart.periods[i];
	}
	if (dims != NULL)
		made = cart_new(n, dims, periods, key);
	free(dims);
	return madmpi_topo_unite(&x, color, key, made, newcomm);
}

/* MPI_Cartdim_get */
int madmpi_cartdim_get(MPI_Comm comm, int *ndims)
{
	const char *fn = "MPI_Cartdim_get";
	struct madmpi_comm *c;
	struct madmpi_topo *t;
	int rc = madmpi_check_topo(fn, comm, MPI_CART, &c, &t);

	if (rc != MPI_SUCCESS)
		return rc;
	if (ndims == NULL)
		return madmpi_null_arg(c, fn, "ndims");
	*ndims = t->cart.ndims;
	return MPI_SUCCESS;
}

/* Arrays of the caller's that hold a number for each dimension. */
static int check_maxdims(const char *fn, struct madmpi_comm *c,
			 const struct madmpi_topo *t, int maxdims)
{
	if (maxdims >= t->cart.ndims)
		return MPI_SUCCESS;
	return madmpi_error(c, MPI_ERR_ARG, fn,
			    "maxdims is %d, but there are %d dimensions",
			    maxdims, t->cart.ndims);
}

/* MPI_Cart_get */
int madmpi_cart_get(MPI_Comm comm, int maxdims, int dims[], int periods[],
		    int coords[])
{
	const char *fn = "MPI_Cart_get";
	struct madmpi_comm *c;
	struct madmpi_topo *t;
	int rc = madmpi_check_topo(fn, comm, MPI_CART, &c, &t);
	size_t bytes;

	if (rc == MPI_SUCCESS)
		rc = check_maxdims(fn, c, t, maxdims);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_list(fn, c, "dims", dims, t->cart.ndims);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_list(fn, c, "periods", periods,
				       t->cart.ndims);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_list(fn, c, "coords", coords, t->cart.ndims);
	bytes = rc == MPI_SUCCESS ? (size_t)t->cart.ndims * sizeof(int) : 0;
	if (bytes > 0) {
		memcpy(dims, t->cart.dims, bytes);
		memcpy(periods, t->cart.periods, bytes);
		memcpy(coords, t->cart.coords, bytes);
	}
	return rc;
}

/* MPI_Cart_rank: of a dimension without an end any coordinate will do. */
int madmpi_cart_rank(MPI_Comm comm, const int coords[], int *rank)
{
	const char *fn = "MPI_Cart_rank";
	struct madmpi_comm *c;
	struct madmpi_topo *t;
	int rc = madmpi_check_topo(fn, comm, MPI_CART, &c, &t), found = 0;

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_list(fn, c, "coords", coords, t->cart.ndims);
	if (rc == MPI_SUCCESS && rank == NULL)
		rc = madmpi_null_arg(c, fn, "rank");
	if (rc != MPI_SUCCESS)
		return rc;
	for (int i = 0; i < t->cart.ndims; i++) {
		int size = t->cart.dims[i], at = coords[i] % size;

		if (at < 0)
			at += size;
		if (at != coords[i] && !t->cart.periods[i])
			return madmpi_error(c, MPI_ERR_ARG, fn,
					    "coords[%d] is %d, but that "
					    "dimension ends with %d",
					    i, coords[i], size - 1);
		found = found * size + at;
	}
	*rank = found;
	return MPI_SUCCESS;
}

/* MPI_Cart_coords */
int madmpi_cart_coords(MPI_Comm comm, int rank, int maxdims, int coords[])
{
	const char *fn = "MPI_Cart_coords";
	struct madmpi_comm *c;
	struct madmpi_topo *t;
	int rc = madmpi_check_topo(fn, comm, MPI_CART, &c, &t);

	if (rc == MPI_SUCCESS && (rank < 0 || rank >= c->size))
		rc = madmpi_error(c, MPI_ERR_RANK, fn,
				  "rank is %d, but the grid has %d node%s",
				  rank, c->size, c->size > 1 ? "s" : "");
	if (rc == MPI_SUCCESS)
		rc = check_maxdims(fn, c, t, maxdims);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_list(fn, c, "coords", coords, t->cart.ndims);
	if (rc == MPI_SUCCESS)
		coords_of(t->cart.ndims, t->cart.dims, rank, coords);
	return rc;
}

/* MPI_Cart_shift */
int madmpi_cart_shift(MPI_Comm comm, int direction, int disp, int *rank_source,
		      int *rank_dest)
{
	const char *fn = "MPI_Cart_shift";
	struct madmpi_comm *c;
	struct madmpi_topo *t;
	int rc = madmpi_check_topo(fn, comm, MPI_CART, &c, &t);

	if (rc != MPI_SUCCESS)
		return rc;
	if (direction < 0 || direction >= t->cart.ndims)
		return madmpi_error(c, MPI_ERR_DIMS, fn,
				    "direction is %d, but there are %d "
				    "dimensions",
				    direction, t->cart.ndims);
	if (rank_source == NULL || rank_dest == NULL)
		return madmpi_null_arg(
			c, fn, rank_source ? "rank_dest" : "rank_source");
	*rank_source = neighbour(t, direction, -(long long)disp);
	*rank_dest = neighbour(t, direction, disp);
	return MPI_SUCCESS;
}
