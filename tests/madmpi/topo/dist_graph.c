/*
 * Distributed graph topologies: what each process says of some edges, both ends
 * of each know.
 */
#include "../program.h"

enum { MOST = 64 };

/* Compilers warn of constant addresses that are read as an array. */
int *unweighted = MPI_UNWEIGHTED, *no_weights = MPI_WEIGHTS_EMPTY;

struct lists {
	int in, out, weighted;
	int sources[MOST], destinations[MOST];
	int source_weights[MOST], dest_weights[MOST];
};

static void ask(MPI_Comm comm, struct lists *l)
{
	int kind;

	MPI_Topo_test(comm, &kind);
	EXPECT_INT(kind, MPI_DIST_GRAPH);
	memset(l, -1, sizeof(*l));
	MPI_Dist_graph_neighbors_count(comm, &l->in, &l->out, &l->weighted);
	EXPECT(l->in <= MOST && l->out <= MOST);
	MPI_Dist_graph_neighbors(comm, l->in, l->sources, l->source_weights,
				 l->out, l->destinations, l->dest_weights);
}

static int weight(int from, int to)
{
	return 100 * from + to + 1;
}

/* To the next one, and thrice to rank 0. */
static void adjacent(int weighted, int reorder)
{
	int in[MOST], out[4] = { 0, (rank + 1) % size, 0, 0 }, n = 0, me;
	int win[MOST], wout[4];
	struct lists l, again;
	MPI_Comm comm, copy;

	in[n++] = (rank + size - 1) % size;
	for (int p = 0; rank == 0 && p < size; p++)
		for (int k = 0; k < 3; k++)
			in[n++] = p;
	for (int i = 0; i < 4; i++)
		wout[i] = weight(rank, out[i]);
	for (int i = 0; i < n; i++)
		win[i] = weight(in[i], rank);
	MPI_Dist_graph_create_adjacent(
		MPI_COMM_WORLD, n, in, weighted ? win : unweighted, 4, out,
		weighted ? wout : unweighted, MPI_INFO_NULL, reorder, &comm);
	MPI_Comm_rank(comm, &me);
	MPI_Comm_dup(comm, &copy);
	ask(comm, &l);
	MPI_Comm_free(&comm);
	ask(copy, &again);
	EXPECT(memcmp(&l, &again, sizeof(l)) == 0);
	EXPECT_INT(l.weighted, weighted);
	EXPECT_INT(l.in, me == 0 ? 1 + 3 * size : 1);
	EXPECT_INT(l.out, 4);
	EXPECT_INT(l.sources[0], (me + size - 1) % size);
	/* In the order that was given by who had this rank. */
	for (int i = 1; i < l.in; i++)
		EXPECT_INT(l.sources[i], (i - 1) / 3);
	for (int i = 0; i < 4; i++)
		EXPECT_INT(l.destinations[i], i == 1 ? (me + 1) % size : 0);
	for (int i = 0; i < 4; i++)
		EXPECT_INT(l.dest_weights[i],
			   weighted ? weight(me, l.destinations[i]) : -1);
	for (int i = 0; i < l.in; i++)
		EXPECT_INT(l.source_weights[i],
			   weighted ? weight(l.sources[i], me) : -1);
	/* Only the first ones, and no weights, if the caller likes. */
	memset(&l, -1, sizeof(l));
	MPI_Dist_graph_neighbors(copy, 0, l.sources, unweighted, 2,
				 l.destinations, unweighted);
	EXPECT(l.sources[0] == -1 && l.destinations[1] == (me + 1) % size &&
	       l.destinations[2] == -1);
	MPI_Comm_free(&copy);
}

static int count(const int *list, int n, int what)
{
	int found = 0;

	for (int i = 0; i < n; i++)
		found += list[i] == what;
	return found;
}

/* Each process describes the edges of the one before it: to all. */
static void described_by_others(int weighted, int reorder)
{
	int node = (rank + size - 1) % size, degree = size, me;
	int destinations[MOST], weights[MOST];
	struct lists l;
	MPI_Comm comm;

	for (int i = 0; i < size; i++) {
		destinations[i] = i;
		weights[i] = weight(node, i);
	}
	MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &node, &degree, destinations,
			      weighted ? weights : unweighted, MPI_INFO_NULL,
			      reorder, &comm);
	MPI_Comm_rank(comm, &me);
	ask(comm, &l);
	EXPECT_INT(l.weighted, weighted);
	EXPECT(l.in == size && l.out == size);
	for (int i = 0; i < size; i++) {
		EXPECT_INT(count(l.sources, size, i), 1);
		EXPECT_INT(count(l.destinations, size, i), 1);
		EXPECT_INT(l.source_weights[i],
			   weighted ? weight(l.sources[i], me) : -1);
		EXPECT_INT(l.dest_weights[i],
			   weighted ? weight(me, l.destinations[i]) : -1);
	}
	MPI_Comm_free(&comm);
}

/*
 * One edge from 0 to the last one, told by each process, with its own weight:
 * both ends have them in the same order.
 */
static void the_same_edge(void)
{
	int from = 0, to = size - 1, degree = 1, w = rank + 1, got[MOST];
	struct lists l;
	MPI_Comm comm;

	MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &from, &degree, &to, &w,
			      MPI_INFO_NULL, 0, &comm);
	ask(comm, &l);
	EXPECT_INT(l.out, rank == 0 ? size : 0);
	EXPECT_INT(l.in, rank == size - 1 ? size : 0);
	memcpy(got, l.dest_weights, sizeof(got));
	MPI_Bcast(got, MOST, MPI_INT, 0, MPI_COMM_WORLD);
	for (int i = 0; i < l.in; i++) {
		EXPECT_INT(l.source_weights[i], got[i]);
		EXPECT_INT(count(l.source_weights, l.in, i + 1), 1);
	}
	MPI_Comm_free(&comm);
}

/* Only the first process knows, or there is nothing to know. */
static void who_says_nothing(void)
{
	int degrees[MOST], sources[MOST], destinations[MOST];
	struct lists l;
	MPI_Comm comm;

	for (int i = 0; i < size; i++) {
		sources[i] = i;
		degrees[i] = 1;
		destinations[i] = (i + 1) % size;
	}
	MPI_Dist_graph_create(MPI_COMM_WORLD, rank ? 0 : size, sources, degrees,
			      destinations, rank ? no_weights : destinations,
			      MPI_INFO_NULL, 1, &comm);
	ask(comm, &l);
	EXPECT(l.in == 1 && l.out == 1 && l.weighted == 1);
	EXPECT_INT(l.dest_weights[0], l.destinations[0]);
	MPI_Comm_free(&comm);
	MPI_Dist_graph_create(MPI_COMM_WORLD, 0, NULL, NULL, NULL, unweighted,
			      MPI_INFO_NULL, 0, &comm);
	ask(comm, &l);
	EXPECT(l.in == 0 && l.out == 0 && l.weighted == 0);
	MPI_Comm_free(&comm);
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, no_weights, 0,
				       NULL, no_weights, MPI_INFO_NULL, 1,
				       &comm);
	ask(comm, &l);
	EXPECT(l.in == 0 && l.out == 0 && l.weighted == 1);
	MPI_Comm_free(&comm);
}

static void wrong(void)
{
	int self = 0, one = 1, minus = -1, other = 1, degree, n;
	MPI_Comm comm;

#define ADJACENT(in, s, sw, out, d, dw)                                        \
	MPI_Dist_graph_create_adjacent(MPI_COMM_SELF, in, s, sw, out, d, dw,   \
				       MPI_INFO_NULL, 0, &comm)
#define ANY(k, s, g, d, w)                                                     \
	MPI_Dist_graph_create(MPI_COMM_SELF, k, s, g, d, w, MPI_INFO_NULL, 0,  \
			      &comm)
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	FAILS(ADJACENT(1, &other, &one, 1, &self, &one), MPI_ERR_RANK);
	FAILS(ADJACENT(1, &self, &one, 1, &minus, &one), MPI_ERR_RANK);
	FAILS(ADJACENT(1, &self, &minus, 1, &self, &one), MPI_ERR_ARG);
	FAILS(ADJACENT(1, &self, &one, 1, &self, no_weights), MPI_ERR_ARG);
	FAILS(ADJACENT(1, &self, &one, 1, &self, unweighted), MPI_ERR_ARG);
	FAILS(ADJACENT(-1, &self, &one, 1, &self, &one), MPI_ERR_ARG);
	FAILS(ADJACENT(1, NULL, &one, 1, &self, &one), MPI_ERR_ARG);
	FAILS(ANY(-1, &self, &one, &self, &one), MPI_ERR_ARG);
	FAILS(ANY(1, &other, &one, &self, &one), MPI_ERR_RANK);
	FAILS(ANY(1, &self, &one, &other, &one), MPI_ERR_RANK);
	FAILS(ANY(1, &self, &minus, &self, &one), MPI_ERR_ARG);
	FAILS(ANY(1, &self, &one, &self, &minus), MPI_ERR_ARG);
	FAILS(ANY(1, &self, &one, &self, NULL), MPI_ERR_ARG);
	FAILS(MPI_Dist_graph_neighbors_count(MPI_COMM_SELF, &n, &n, &n),
	      MPI_ERR_TOPOLOGY);
	/* Nothing is looked at but what there is. */
	degree = 0;
	EXPECT_INT(ANY(1, &self, &degree, NULL, no_weights), MPI_SUCCESS);
	FAILS(MPI_Dist_graph_neighbors(comm, -1, &n, &n, 0, &n, &n),
	      MPI_ERR_ARG);
	FAILS(MPI_Graphdims_get(comm, &n, &n), MPI_ERR_TOPOLOGY);
	MPI_Comm_free(&comm);
	/* Nothing is written if one side is wrong. */
	EXPECT_INT(ADJACENT(1, &self, &one, 1, &self, &one), MPI_SUCCESS);
	n = degree = -7;
	FAILS(MPI_Dist_graph_neighbors(comm, 1, &n, &degree, -1, &other, &one),
	      MPI_ERR_ARG);
	FAILS(MPI_Dist_graph_neighbors(comm, 1, &n, &degree, 1, NULL, &one),
	      MPI_ERR_ARG);
	EXPECT(n == -7 && degree == -7);
	MPI_Comm_free(&comm);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	for (int reorder = 0; reorder < 2; reorder++)
		for (int weighted = 0; weighted < 2; weighted++) {
			adjacent(weighted, reorder);
			described_by_others(weighted, reorder);
		}
	the_same_edge();
	who_says_nothing();
	wrong();
	return program_end("dist_graph");
}
