/*
 * Cartesian topologies: who is where, and who is next to whom.
 */
#include <limits.h>
#include <stdbool.h>

#include "../program.h"

/* A grid of all processes. */
static MPI_Comm grid(int ndims, int *dims, const int *periods, int reorder)
{
	MPI_Comm comm;

	memset(dims, 0, (size_t)ndims * sizeof(int));
	MPI_Dims_create(size, ndims, dims);
	MPI_Cart_create(MPI_COMM_WORLD, ndims, dims, periods, reorder, &comm);
	return comm;
}

static void rows_first(void)
{
	int dims[3], periods[3] = { 0, 7, 0 }, got[3], of[3], at[3], me, r;
	MPI_Comm comm = grid(3, dims, periods, 0);
	int n, kind;

	MPI_Topo_test(comm, &kind);
	EXPECT_INT(kind, MPI_CART);
	MPI_Comm_rank(comm, &me);
	EXPECT_INT(me, rank);
	MPI_Cartdim_get(comm, &n);
	EXPECT_INT(n, 3);
	MPI_Cart_get(comm, 3, got, of, at);
	for (int i = 0; i < 3; i++) {
		EXPECT_INT(got[i], dims[i]);
		EXPECT_INT(of[i], periods[i] != 0);
	}
	EXPECT_INT((at[0] * dims[1] + at[1]) * dims[2] + at[2], me);
	for (int i = 0; i < size; i++) {
		MPI_Cart_coords(comm, i, 3, got);
		EXPECT_INT((got[0] * dims[1] + got[1]) * dims[2] + got[2], i);
		MPI_Cart_rank(comm, got, &r);
		EXPECT_INT(r, i);
		/* Around and around where there is no end. */
		got[1] -= 5 * dims[1];
		MPI_Cart_rank(comm, got, &r);
		EXPECT_INT(r, i);
		got[1] += 8 * dims[1];
		MPI_Cart_rank(comm, got, &r);
		EXPECT_INT(r, i);
	}
	MPI_Comm_free(&comm);
}

static void shifts(bool is_periodic)
{
	static const int by[] = { 0, 1, -1, 2, -3, INT_MAX, INT_MIN };
	int dims[2], periods[2] = { is_periodic, is_periodic }, at[2], me[2];
	MPI_Comm comm = grid(2, dims, periods, 0);
	int from, to, r;

	MPI_Cart_coords(comm, rank, 2, me);
	for (int d = 0; d < 2; d++)
		for (int i = 0; i < 7; i++)
			for (int way = -1; way <= 1; way += 2) {
				long long c = me[d] + (long long)way * by[i];

				MPI_Cart_shift(comm, d, by[i], &from, &to);
				memcpy(at, me, sizeof(at));
				at[d] = (int)((c % dims[d] + dims[d]) %
					      dims[d]);
				MPI_Cart_rank(comm, at, &r);
				if (!is_periodic && (c < 0 || c >= dims[d]))
					r = MPI_PROC_NULL;
				EXPECT_INT(way < 0 ? from : to, r);
			}
	MPI_Comm_free(&comm);
}

static void sub(void)
{
	int dims[3], periods[3] = { 1, 0, 1 }, me[3], remain[3], n, r;
	MPI_Comm comm = grid(3, dims, periods, 0), part;

	MPI_Cart_coords(comm, rank, 3, me);
	for (int which = 0; which < 8; which++) {
		int got[3], of[3], at[3], members = 1, place = 0, k = 0;

		for (int i = 0; i < 3; i++) {
			remain[i] = which >> i & 1;
			if (remain[i]) {
				members *= dims[i];
				place = place * dims[i] + me[i];
			}
		}
		MPI_Cart_sub(comm, remain, &part);
		MPI_Comm_size(part, &n);
		EXPECT_INT(n, members);
		MPI_Comm_rank(part, &r);
		EXPECT_INT(r, place);
		MPI_Cartdim_get(part, &n);
		EXPECT_INT(n, remain[0] + remain[1] + remain[2]);
		MPI_Cart_get(part, 3, got, of, at);
		for (int i = 0; i < 3; i++)
			if (remain[i]) {
				EXPECT_INT(got[k], dims[i]);
				EXPECT_INT(of[k], periods[i]);
				EXPECT_INT(at[k++], me[i]);
			}
		MPI_Comm_free(&part);
	}
	MPI_Comm_free(&comm);
}

/* A single process, and nothing to say about it. */
static void no_dimension(void)
{
	MPI_Comm comm, part;
	int n = 7, r = 7;

	MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &comm);
	EXPECT((comm == MPI_COMM_NULL) == (rank > 0));
	if (comm == MPI_COMM_NULL)
		return;
	MPI_Comm_size(comm, &n);
	EXPECT_INT(n, 1);
	MPI_Cartdim_get(comm, &n);
	EXPECT_INT(n, 0);
	EXPECT_INT(MPI_Cart_get(comm, 0, NULL, NULL, NULL), MPI_SUCCESS);
	EXPECT_INT(MPI_Cart_coords(comm, 0, 0, NULL), MPI_SUCCESS);
	MPI_Cart_rank(comm, NULL, &r);
	EXPECT_INT(r, 0);
	MPI_Cart_sub(comm, NULL, &part);
	MPI_Cartdim_get(part, &n);
	EXPECT_INT(n, 0);
	MPI_Comm_free(&part);
	MPI_Comm_free(&comm);
}

/* Who has no place in a grid that is too small gets nothing. */
static void some_are_left_over(int reorder)
{
	int dims[1] = { (size + 1) / 2 }, periods[1] = { 1 }, n, newrank, in;
	MPI_Comm comm;

	MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, reorder, &comm);
	if (comm != MPI_COMM_NULL) {
		MPI_Comm_size(comm, &n);
		EXPECT_INT(n, dims[0]);
	}
	in = comm != MPI_COMM_NULL;
	MPI_Allreduce(MPI_IN_PLACE, &in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	EXPECT_INT(in, dims[0]);
	MPI_Cart_map(MPI_COMM_WORLD, 1, dims, periods, &newrank);
	if (reorder)
		EXPECT((newrank == MPI_UNDEFINED) == (rank >= dims[0]));
	else
		EXPECT((newrank == MPI_UNDEFINED) == (comm == MPI_COMM_NULL));
	if (comm != MPI_COMM_NULL)
		MPI_Comm_free(&comm);
}

static int kind_of(MPI_Comm comm)
{
	int kind;

	MPI_Topo_test(comm, &kind);
	return kind;
}

/* Copies have it, and keep it when the original has gone; parts do not. */
static void copies(void)
{
	int dims[2], periods[2] = { 0, 1 }, got[2], of[2], at[2], n;
	MPI_Comm comm = grid(2, dims, periods, 0), copy[3], part;
	MPI_Request request;

	MPI_Comm_dup(comm, &copy[0]);
	MPI_Comm_idup(comm, &copy[1], &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, &copy[2]);
	MPI_Comm_split(comm, 0, 0, &part);
	EXPECT_INT(kind_of(part), MPI_UNDEFINED);
	EXPECT_INT(kind_of(MPI_COMM_WORLD), MPI_UNDEFINED);
	MPI_Comm_free(&part);
	MPI_Comm_free(&comm);
	for (int i = 0; i < 3; i++) {
		EXPECT_INT(kind_of(copy[i]), MPI_CART);
		MPI_Cartdim_get(copy[i], &n);
		EXPECT_INT(n, 2);
		MPI_Cart_get(copy[i], 2, got, of, at);
		EXPECT(memcmp(got, dims, sizeof(dims)) == 0);
		EXPECT(memcmp(of, periods, sizeof(periods)) == 0);
		EXPECT_INT(at[0] * dims[1] + at[1], rank);
		MPI_Comm_free(&copy[i]);
	}
}

static void wrong(void)
{
	int dims[2] = { size, 1 }, periods[2] = { 0, 1 }, r, coords[2] = { 0 };
	MPI_Comm comm, none = MPI_COMM_WORLD;

	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	coords[0] = size;
	FAILS(MPI_Cart_rank(comm, coords, &r), MPI_ERR_ARG);
	coords[0] = -1;
	FAILS(MPI_Cart_rank(comm, coords, &r), MPI_ERR_ARG);
	FAILS(MPI_Cart_coords(comm, size, 2, coords), MPI_ERR_RANK);
	FAILS(MPI_Cart_coords(comm, -1, 2, coords), MPI_ERR_RANK);
	FAILS(MPI_Cart_coords(comm, 0, 1, coords), MPI_ERR_ARG);
	FAILS(MPI_Cart_shift(comm, 2, 1, &r, &r), MPI_ERR_DIMS);
	FAILS(MPI_Cart_shift(comm, -1, 1, &r, &r), MPI_ERR_DIMS);
	FAILS(MPI_Cartdim_get(MPI_COMM_WORLD, &r), MPI_ERR_TOPOLOGY);
	FAILS(MPI_Cart_sub(MPI_COMM_WORLD, dims, &none), MPI_ERR_TOPOLOGY);
	FAILS(MPI_Graphdims_get(comm, &r, &r), MPI_ERR_TOPOLOGY);
	dims[1] = 2;
	FAILS(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &none),
	      MPI_ERR_DIMS);
	EXPECT(none == MPI_COMM_NULL);
	dims[1] = 0;
	FAILS(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &none),
	      MPI_ERR_DIMS);
	dims[0] = dims[1] = INT_MAX;
	FAILS(MPI_Cart_map(MPI_COMM_WORLD, 2, dims, periods, &r), MPI_ERR_DIMS);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	rows_first();
	shifts(false);
	shifts(true);
	sub();
	no_dimension();
	some_are_left_over(0);
	some_are_left_over(1);
	copies();
	wrong();
	return program_end("cart");
}
