/*
 * Neighbourhood collectives, in each form: which part goes where.
 */
#include <stdbool.h>

#include "../program.h"

enum { MOST = 32, UNTOUCHED = -7 };

/* Compilers warn of constant addresses that are read as an array. */
int *unweighted = MPI_UNWEIGHTED;

enum form { BLOCKING, NON_BLOCKING, PERSISTENT, FORMS };

/* The same call in a form; a persistent one runs twice. */
#define CALL(form, name, ...) CALL_OF(form, name, , __VA_ARGS__)
#define CALL_OF(form, name, large, ...)                                        \
	do {                                                                   \
		MPI_Request r_;                                                \
                                                                               \
		if ((form) == BLOCKING) {                                      \
			MPI_Neighbor_##name##large(__VA_ARGS__);               \
		} else if ((form) == NON_BLOCKING) {                           \
			MPI_Ineighbor_##name##large(__VA_ARGS__, &r_);         \
			MPI_Wait(&r_, MPI_STATUS_IGNORE);                      \
		} else {                                                       \
			MPI_Neighbor_##name##_init##large(__VA_ARGS__,         \
							  MPI_INFO_NULL, &r_); \
			for (int i_ = 0; i_ < 2; i_++) {                       \
				MPI_Start(&r_);                                \
				MPI_Wait(&r_, MPI_STATUS_IGNORE);              \
			}                                                      \
			MPI_Request_free(&r_);                                 \
		}                                                              \
	} while (0)

/* Who is next to this process, and which part of his comes into each place. */
struct place {
	int in, out;
	int source[MOST];
	int part[MOST];
};

/* Of two ints: what process p sends as its part k. */
static void fill(int *at, int p, int k)
{
	at[0] = 1000 * p + k;
	at[1] = -at[0];
}

static void clear(int *got)
{
	for (int i = 0; i < 4 * MOST; i++)
		got[i] = UNTOUCHED;
}

/* Place i begins at got[at(i)]; part is -1 where all parts are the same. */
static void expect(const struct place *x, const int *got, int stride, bool same)
{
	int want[2];

	for (int i = 0; i < x->in; i++) {
		const int *at = got + (size_t)(stride * i);

		want[0] = want[1] = UNTOUCHED;
		if (x->source[i] != MPI_PROC_NULL)
			fill(want, x->source[i], same ? 0 : x->part[i]);
		EXPECT_INT(at[0], want[0]);
		EXPECT_INT(at[1], want[1]);
		for (int gap = 2; gap < stride; gap++)
			EXPECT_INT(at[gap], UNTOUCHED);
	}
	EXPECT_INT(got[stride * x->in], UNTOUCHED);
}

static void gathering(MPI_Comm comm, const struct place *x, enum form form)
{
	int mine[2], got[4 * MOST], counts[MOST], displs[MOST], me;

	MPI_Comm_rank(comm, &me);
	fill(mine, me, 0);
	clear(got);
	CALL(form, allgather, mine, 2, MPI_INT, got, 2, MPI_INT, comm);
	expect(x, got, 2, true);
	for (int i = 0; i < x->in; i++) {
		counts[i] = 2;
		displs[i] = 3 * i;
	}
	clear(got);
	CALL(form, allgatherv, mine, 2, MPI_INT, got, counts, displs, MPI_INT,
	     comm);
	expect(x, got, 3, true);
}

static void to_each(MPI_Comm comm, const struct place *x, enum form form)
{
	int mine[4 * MOST], got[4 * MOST], me, n;
	int counts[2][MOST], displs[2][MOST];
	MPI_Aint bytes[2][MOST];
	MPI_Datatype types[2][MOST], pair;

	MPI_Comm_rank(comm, &me);
	MPI_Type_contiguous(2, MPI_INT, &pair);
	MPI_Type_commit(&pair);
	for (int i = 0; i < x->out; i++)
		fill(mine + 2 * i, me, i);
	clear(got);
	CALL(form, alltoall, mine, 1, pair, got, 2, MPI_INT, comm);
	expect(x, got, 2, false);
	/* From parts of two ints, the last one first, to parts of three. */
	n = x->in > x->out ? x->in : x->out;
	for (int i = 0; i < n; i++) {
		counts[0][i] = counts[1][i] = 2;
		displs[0][i] = 2 * (x->out - 1 - i);
		displs[1][i] = 3 * i;
		if (i < x->out)
			fill(mine + displs[0][i], me, i);
	}
	clear(got);
	CALL(form, alltoallv, mine, counts[0], displs[0], MPI_INT, got,
	     counts[1], displs[1], MPI_INT, comm);
	expect(x, got, 3, false);
	for (int i = 0; i < n; i++) {
		types[0][i] = i % 2 ? MPI_INT : pair;
		counts[0][i] = i % 2 ? 2 : 1;
		types[1][i] = i % 3 ? MPI_INT : pair;
		counts[1][i] = i % 3 ? 2 : 1;
		bytes[0][i] = (MPI_Aint)sizeof(int) * displs[0][i];
		bytes[1][i] = (MPI_Aint)sizeof(int) * displs[1][i];
	}
	clear(got);
	CALL(form, alltoallw, mine, counts[0], bytes[0], types[0], got,
	     counts[1], bytes[1], types[1], comm);
	expect(x, got, 3, false);
	MPI_Type_free(&pair);
}

/*
 * A line, closed or not, and two dimensions of one process: what goes one way
 * comes from the other way, also where both lead to the same process.
 */
static void grids(enum form form, int which)
{
	int dims[3] = { size, 1, 1 }, periods[3];
	struct place x = { .in = 6, .out = 6 };
	MPI_Comm comm, copy;

	for (int d = 0; d < 3; d++)
		periods[d] = which >> d & 1;
	MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &comm);
	MPI_Comm_dup(comm, &copy);
	for (int d = 0; d < 3; d++) {
		MPI_Cart_shift(comm, d, 1, &x.source[2 * d],
			       &x.source[2 * d + 1]);
		x.part[2 * d] = 2 * d + 1;
		x.part[2 * d + 1] = 2 * d;
	}
	MPI_Comm_free(&comm);
	gathering(copy, &x, form);
	to_each(copy, &x, form);
	MPI_Comm_free(&copy);
}

/*
 * Everybody leads to 0, to the next one, to 0 twice more, and to the next one
 * again: the first edge of a pair is the first one at the other end, too.
 */
static void several_edges(enum form form)
{
	int next = (rank + 1) % size, previous = (rank + size - 1) % size;
	int out[5] = { 0, next, 0, 0, next };
	static const int to_0[3] = { 0, 2, 3 }, to_next[2] = { 1, 4 };
	struct place x = { .out = 5 };
	MPI_Comm comm;

	if (size == 1) {
		/* All five are the same pair. */
		for (; x.in < 5; x.in++) {
			x.source[x.in] = 0;
			x.part[x.in] = x.in;
		}
	} else {
		for (int k = 0; k < 3; k++)
			for (int p = 0; rank == 0 && p < size; p++) {
				x.source[x.in] = p;
				/* The one before it is led to 0 as the next. */
				x.part[x.in++] = p == size - 1 ? k : to_0[k];
			}
		for (int k = 0; k < 2; k++) {
			x.source[x.in] = previous;
			x.part[x.in++] = rank == 0 ? 3 + k : to_next[k];
		}
	}
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, x.in, x.source,
				       unweighted, 5, out, unweighted,
				       MPI_INFO_NULL, 0, &comm);
	gathering(comm, &x, form);
	to_each(comm, &x, form);
	MPI_Comm_free(&comm);
}

/* All to all, and each edge twice. */
static void graph(enum form form)
{
	int indx[MOST], edges[MOST * MOST];
	struct place x = { .in = 2 * size, .out = 2 * size };
	MPI_Comm comm;

	for (int v = 0; v < size; v++) {
		for (int i = 0; i < 2 * size; i++)
			edges[2 * size * v + i] = i % size;
		indx[v] = 2 * size * (v + 1);
	}
	for (int i = 0; i < 2 * size; i++) {
		x.source[i] = i % size;
		x.part[i] = rank + (i < size ? 0 : size);
	}
	MPI_Graph_create(MPI_COMM_WORLD, size, indx, edges, 0, &comm);
	gathering(comm, &x, form);
	to_each(comm, &x, form);
	MPI_Comm_free(&comm);
}

/* Who has no neighbours needs no buffers and no arrays. */
static void nobody(enum form form)
{
	MPI_Comm comm;

	MPI_Dist_graph_create(MPI_COMM_WORLD, 0, NULL, NULL, NULL, unweighted,
			      MPI_INFO_NULL, 0, &comm);
	CALL(form, allgather, NULL, 1, MPI_INT, NULL, 1, MPI_INT, comm);
	CALL(form, allgatherv, NULL, 1, MPI_INT, NULL, NULL, NULL, MPI_INT,
	     comm);
	CALL(form, alltoall, NULL, 1, MPI_INT, NULL, 1, MPI_INT, comm);
	CALL(form, alltoallv, NULL, NULL, NULL, MPI_INT, NULL, NULL, NULL,
	     MPI_INT, comm);
	CALL(form, alltoallw, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
	     comm);
	MPI_Comm_free(&comm);
}

/* Along a ring in one direction: edges that carry nothing have no type. */
static void one_way(enum form form)
{
	int dims[1] = { size }, periods[1] = { 1 }, in = UNTOUCHED;
	int out_counts[2] = { 0, 1 }, in_counts[2] = { 1, 0 };
	MPI_Aint at[2] = { 0, 0 };
	MPI_Datatype out_types[2] = { MPI_DATATYPE_NULL, MPI_INT };
	MPI_Datatype in_types[2] = { MPI_INT, MPI_DATATYPE_NULL };
	MPI_Comm comm;

	MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &comm);
	CALL(form, alltoallw, &rank, out_counts, at, out_types, &in, in_counts,
	     at, in_types, comm);
	EXPECT_INT(in, (rank + size - 1) % size);
#if MPI_VERSION >= 4
	MPI_Count wide[2][2] = { { 0, 1 }, { 1, 0 } };

	in = UNTOUCHED;
	CALL_OF(form, alltoallw, _c, &rank, wide[0], at, out_types, &in,
		wide[1], at, in_types, comm);
	EXPECT_INT(in, (rank + size - 1) % size);
#endif
	MPI_Comm_free(&comm);
}

/* Several at once, and large: the order of calls decides what belongs where. */
static void at_once(void)
{
	enum { N = 4, LARGE = 100000 / FEWER };
	int dims[1] = { size }, periods[1] = { 1 }, source, dest;
	int *mine = malloc(sizeof(int[N][2][LARGE]));
	int *got = malloc(sizeof(int[N][2][LARGE]));
	MPI_Request requests[N];
	MPI_Comm comm;

	MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &comm);
	MPI_Cart_shift(comm, 0, 1, &source, &dest);
	for (int i = 0; i < N * 2 * LARGE; i++)
		mine[i] = 100 * rank + i / LARGE;
	for (int k = 0; k < N; k++)
		MPI_Ineighbor_alltoall(mine + 2 * k * LARGE, LARGE, MPI_INT,
				       got + 2 * k * LARGE, LARGE, MPI_INT,
				       comm, &requests[k]);
	MPI_Comm_free(&comm);
	MPI_Waitall(N, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < N * 2 * LARGE; i++) {
		int part = i / LARGE;

		EXPECT_INT(got[i],
			   100 * (part % 2 ? dest : source) + (part ^ 1));
	}
	free(mine);
	free(got);
}

static void wrong(void)
{
	int dims[1] = { 1 }, periods[1] = { 1 }, a[4] = { 0 }, b[4];
	MPI_Request request;
	MPI_Comm comm;

	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	FAILS(MPI_Neighbor_alltoall(a, 1, MPI_INT, b, 1, MPI_INT,
				    MPI_COMM_SELF),
	      MPI_ERR_TOPOLOGY);
	FAILS(MPI_Ineighbor_allgather(a, 1, MPI_INT, b, 1, MPI_INT,
				      MPI_COMM_SELF, &request),
	      MPI_ERR_TOPOLOGY);
	MPI_Cart_create(MPI_COMM_SELF, 1, dims, periods, 0, &comm);
	FAILS(MPI_Neighbor_alltoall(MPI_IN_PLACE, 1, MPI_INT, b, 1, MPI_INT,
				    comm),
	      MPI_ERR_BUFFER);
	FAILS(MPI_Neighbor_alltoall(a, 1, MPI_INT, a, 1, MPI_INT, comm),
	      MPI_ERR_BUFFER);
	FAILS(MPI_Neighbor_alltoall(a, 2, MPI_INT, b, 1, MPI_INT, comm),
	      MPI_ERR_TRUNCATE);
	FAILS(MPI_Neighbor_alltoall(a, -1, MPI_INT, b, 1, MPI_INT, comm),
	      MPI_ERR_COUNT);
	MPI_Comm_free(&comm);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	for (int form = 0; form < FORMS; form++) {
		for (int which = 0; which < 8; which++)
			grids(form, which);
		several_edges(form);
		graph(form);
		nobody(form);
		one_way(form);
	}
	at_once();
	wrong();
	return program_end("neighbor");
}
