/*
 * Graph topologies.
 */
#include "../program.h"

enum { MOST = 64 };

/* Node v leads to 0, 1, ... v, and back: a graph of n nodes. */
static int describe(int n, int *indx, int *edges)
{
	int k = 0;

	for (int v = 0; v < n; v++) {
		for (int to = 0; to <= v; to++)
			edges[k++] = to;
		for (int to = v + 1; to < n; to++)
			edges[k++] = to;
		indx[v] = k;
	}
	return k;
}

static void what_was_described(int reorder)
{
	int indx[MOST], edges[MOST * MOST], n, m, kind;
	int its_indx[MOST], its_edges[MOST * MOST];
	int nedges = describe(size, indx, edges);
	MPI_Comm comm, copy;

	MPI_Graph_create(MPI_COMM_WORLD, size, indx, edges, reorder, &comm);
	MPI_Comm_dup(comm, &copy);
	MPI_Comm_free(&comm);
	MPI_Topo_test(copy, &kind);
	EXPECT_INT(kind, MPI_GRAPH);
	MPI_Graphdims_get(copy, &n, &m);
	EXPECT_INT(n, size);
	EXPECT_INT(m, nedges);
	MPI_Graph_get(copy, MOST, MOST * MOST, its_indx, its_edges);
	EXPECT(memcmp(indx, its_indx, (size_t)n * sizeof(int)) == 0);
	EXPECT(memcmp(edges, its_edges, (size_t)m * sizeof(int)) == 0);
	for (int v = 0; v < size; v++) {
		MPI_Graph_neighbors_count(copy, v, &m);
		EXPECT_INT(m, size);
		MPI_Graph_neighbors(copy, v, MOST, its_edges);
		for (int i = 0; i < m; i++)
			EXPECT_INT(its_edges[i], edges[v * size + i]);
	}
	MPI_Comm_free(&copy);
}

/* Loops, the same edge twice, one way only, a node without any. */
static void odd_ones(void)
{
	int indx[MOST] = { 0 }, edges[4] = { 0, 0, 0, 0 }, n, newrank;
	MPI_Comm comm;

	for (int v = 1; v < size; v++)
		indx[v] = 3;
	if (size == 1)
		indx[0] = 2;
	MPI_Graph_create(MPI_COMM_WORLD, size, indx, edges, 0, &comm);
	MPI_Graph_neighbors_count(comm, size - 1, &n);
	EXPECT_INT(n, size == 1 ? 2 : size == 2 ? 3 : 0);
	MPI_Comm_free(&comm);
	/* Fewer nodes than processes, down to none. */
	indx[0] = 1;
	MPI_Graph_create(MPI_COMM_WORLD, 1, indx, edges, 1, &comm);
	MPI_Graph_map(MPI_COMM_WORLD, 1, indx, edges, &newrank);
	EXPECT_INT(newrank, rank == 0 ? 0 : MPI_UNDEFINED);
	if (comm != MPI_COMM_NULL)
		MPI_Comm_free(&comm);
	MPI_Graph_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &comm);
	EXPECT(comm == MPI_COMM_NULL);
	/* And no edges. */
	indx[0] = 0;
	MPI_Graph_create(MPI_COMM_SELF, 1, indx, NULL, 0, &comm);
	MPI_Graphdims_get(comm, &n, &newrank);
	EXPECT(n == 1 && newrank == 0);
	MPI_Comm_free(&comm);
}

static void wrong(void)
{
	int indx[2] = { 1, 0 }, edges[2] = { 0, 0 }, n;
	MPI_Comm comm, none;

	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	FAILS(MPI_Graph_create(MPI_COMM_SELF, 2, indx, edges, 0, &none),
	      MPI_ERR_ARG);
	FAILS(MPI_Graph_create(MPI_COMM_SELF, -1, indx, edges, 0, &none),
	      MPI_ERR_ARG);
	if (size > 1)
		FAILS(MPI_Graph_create(MPI_COMM_WORLD, 2, indx, edges, 0,
				       &none),
		      MPI_ERR_ARG);
	edges[0] = 1;
	FAILS(MPI_Graph_create(MPI_COMM_SELF, 1, indx, edges, 0, &none),
	      MPI_ERR_ARG);
	edges[0] = -1;
	FAILS(MPI_Graph_map(MPI_COMM_SELF, 1, indx, edges, &n), MPI_ERR_ARG);
	edges[0] = 0;
	MPI_Graph_create(MPI_COMM_SELF, 1, indx, edges, 0, &comm);
	FAILS(MPI_Graph_get(comm, 0, 1, indx, edges), MPI_ERR_ARG);
	FAILS(MPI_Graph_get(comm, 1, 0, indx, edges), MPI_ERR_ARG);
	FAILS(MPI_Graph_neighbors(comm, 0, 0, edges), MPI_ERR_ARG);
	FAILS(MPI_Graph_neighbors(comm, 1, 1, edges), MPI_ERR_RANK);
	FAILS(MPI_Graph_neighbors_count(comm, -1, &n), MPI_ERR_RANK);
	FAILS(MPI_Graphdims_get(MPI_COMM_SELF, &n, &n), MPI_ERR_TOPOLOGY);
	FAILS(MPI_Cartdim_get(comm, &n), MPI_ERR_TOPOLOGY);
	MPI_Comm_free(&comm);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	what_was_described(0);
	what_was_described(1);
	odd_ones();
	wrong();
	return program_end("graph");
}
