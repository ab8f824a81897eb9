/*
 * Sub-arrays and distributed arrays against the definition: which elements of
 * the whole array belong to a process, one by one, in the order of memory.
 */
#include "../program.h"

#include <limits.h>

enum { DIMS = 4, MOST = 4096 };

static unsigned lot = 1;

static int number(int below)
{
	lot = lot * 1103515245 + 12345;
	return (int)((lot >> 16) % (unsigned)below);
}

static int total(const int *sizes, int ndims)
{
	int n = 1;

	for (int i = 0; i < ndims; i++)
		n *= sizes[i];
	return n;
}

/* The index along dimension d of the element at place `at` of the memory. */
static int index_of(int at, const int *sizes, int ndims, int order, int d)
{
	if (order == MPI_ORDER_FORTRAN) {
		for (int i = 0; i < d; i++)
			at /= sizes[i];
	} else {
		for (int i = ndims - 1; i > d; i--)
			at /= sizes[i];
	}
	return at % sizes[d];
}

/* The type picks exactly these n places, in this order. Frees it. */
static void expect_places(MPI_Datatype type, const int *places, int n,
			  int whole)
{
	static int memory[MOST], got[MOST];
	MPI_Aint lb, extent;
	int bytes, at = 0;

	for (int i = 0; i < whole; i++)
		memory[i] = i;
	MPI_Type_commit(&type);
	MPI_Type_get_extent(type, &lb, &extent);
	EXPECT_INT(lb, 0);
	EXPECT_INT(extent, whole * sizeof(int));
	MPI_Type_size(type, &bytes);
	EXPECT_INT(bytes, n * sizeof(int));
	MPI_Type_get_true_extent(type, &lb, &extent);
	EXPECT_INT(lb, n ? places[0] * sizeof(int) : 0);
	EXPECT_INT(extent,
		   n ? (places[n - 1] - places[0] + 1) * sizeof(int) : 0);
	EXPECT_INT(
		MPI_Pack(memory, 1, type, got, sizeof(got), &at, MPI_COMM_SELF),
		MPI_SUCCESS);
	EXPECT(memcmp(got, places, (size_t)bytes) == 0);
	MPI_Type_free(&type);
}

static void random_subarray(void)
{
	static int places[MOST];
	int sizes[DIMS], sub[DIMS], starts[DIMS], n = 0, inside;
	int ndims = 1 + number(DIMS), order;
	MPI_Datatype type;

	order = number(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
	for (int i = 0; i < ndims; i++) {
		sizes[i] = 1 + number(7);
		sub[i] = 1 + number(sizes[i]);
		starts[i] = number(sizes[i] - sub[i] + 1);
	}
	for (int at = 0; at < total(sizes, ndims); at++) {
		inside = 1;
		for (int d = 0; d < ndims; d++) {
			int x = index_of(at, sizes, ndims, order, d);

			inside &= x >= starts[d] && x < starts[d] + sub[d];
		}
		if (inside)
			places[n++] = at;
	}
	EXPECT_INT(MPI_Type_create_subarray(ndims, sizes, sub, starts, order,
					    MPI_INT, &type),
		   MPI_SUCCESS);
	expect_places(type, places, n, total(sizes, ndims));
}

/* The process of a row of `procs` that has index x of `size`. */
static int owner(int x, int size, int how, int arg, int procs)
{
	if (how == MPI_DISTRIBUTE_NONE)
		return 0;
	if (how == MPI_DISTRIBUTE_BLOCK)
		return x / (arg == MPI_DISTRIBUTE_DFLT_DARG
				    ? (size + procs - 1) / procs
				    : arg);
	return x / (arg == MPI_DISTRIBUTE_DFLT_DARG ? 1 : arg) % procs;
}

static void random_darray(void)
{
	static int places[MOST];
	static const int ways[] = { MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC,
				    MPI_DISTRIBUTE_NONE };
	int sizes[DIMS], how[DIMS], args[DIMS], procs[DIMS], order, all = 0;
	int ndims = 1 + number(DIMS), processes;
	MPI_Datatype type;

	order = number(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
	for (int i = 0; i < ndims; i++) {
		sizes[i] = 1 + number(7);
		how[i] = ways[number(3)];
		procs[i] = how[i] == MPI_DISTRIBUTE_NONE ? 1 : 1 + number(3);
		args[i] = how[i] == MPI_DISTRIBUTE_BLOCK
				  ? (sizes[i] + procs[i] - 1) / procs[i] +
					    number(3)
				  : 1 + number(4);
		if (number(3) == 0)
			args[i] = MPI_DISTRIBUTE_DFLT_DARG;
	}
	processes = total(procs, ndims);
	for (int r = 0; r < processes; r++) {
		int n = 0;

		for (int at = 0; at < total(sizes, ndims); at++) {
			int who = 0; /* the last dimension varies fastest */

			for (int d = 0; d < ndims; d++)
				who = who * procs[d] +
				      owner(index_of(at, sizes, ndims, order,
						     d),
					    sizes[d], how[d], args[d],
					    procs[d]);
			if (who == r)
				places[n++] = at;
		}
		EXPECT_INT(MPI_Type_create_darray(processes, r, ndims, sizes,
						  how, args, procs, order,
						  MPI_INT, &type),
			   MPI_SUCCESS);
		expect_places(type, places, n, total(sizes, ndims));
		all += n;
	}
	EXPECT_INT(all, total(sizes, ndims));
}

/* Elements are types themselves, and several arrays follow each other. */
static void arrays_of_types(void)
{
	int sizes[] = { 3, 4 }, sub[] = { 2, 2 }, starts[] = { 1, 1 }, at = 0;
	int memory[2 * 12 * 2], got[2 * 4], n = 0;
	MPI_Datatype every_other, type;

	for (int i = 0; i < 48; i++)
		memory[i] = i;
	MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every_other);
	MPI_Type_create_subarray(2, sizes, sub, starts, MPI_ORDER_C,
				 every_other, &type);
	MPI_Type_commit(&type);
	MPI_Pack(memory, 2, type, got, sizeof(got), &at, MPI_COMM_SELF);
	for (int k = 0; k < 2; k++)
		for (int i = 1; i < 3; i++)
			for (int j = 1; j < 3; j++)
				EXPECT_INT(got[n++], 2 * (12 * k + 4 * i + j));
	MPI_Type_free(&every_other);
	MPI_Type_free(&type);
}

/* More elements than an int counts: nothing of it is in memory. */
static void huge(void)
{
	MPI_Count sizes[] = { 1 << 20, 1 << 20, 1 << 10 };
	MPI_Count sub[] = { 1 << 19, 1 << 19, 1 << 9 };
	MPI_Count starts[] = { 1 << 18, 0, 1 << 9 }, lb, extent, bytes;
	int how[] = { MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK,
		      MPI_DISTRIBUTE_NONE };
	int args[] = { 1 << 10, 1 << 19, MPI_DISTRIBUTE_DFLT_DARG };
	int procs[] = { 2, 2, 1 }, small;
	MPI_Datatype type;

	MPI_Type_create_subarray_c(3, sizes, sub, starts, MPI_ORDER_C, MPI_INT,
				   &type);
	MPI_Type_size_c(type, &bytes);
	EXPECT_INT(bytes, (MPI_Count)4 << 47);
	MPI_Type_get_extent_c(type, &lb, &extent);
	EXPECT_INT(extent, (MPI_Count)4 << 50);
	MPI_Type_get_true_extent_c(type, &lb, &extent);
	EXPECT_INT(lb, 4 * (((MPI_Count)1 << 48) + (1 << 9)));
	MPI_Type_size(type, &small);
	EXPECT_INT(small, MPI_UNDEFINED);
	MPI_Type_free(&type);
	MPI_Type_create_darray_c(4, 2, 3, sizes, how, args, procs, MPI_ORDER_C,
				 MPI_INT, &type);
	MPI_Type_size_c(type, &bytes);
	EXPECT_INT(bytes, (MPI_Count)1 << 50);
	MPI_Type_get_true_extent_c(type, &lb, &extent);
	EXPECT_INT(lb, (MPI_Count)4 << 40);
	MPI_Type_free(&type);
	sizes[0] = sizes[1] = (MPI_Count)1 << 40;
	FAILS(MPI_Type_create_subarray_c(3, sizes, sub, starts, MPI_ORDER_C,
					 MPI_INT, &type),
	      MPI_ERR_COUNT);
}

/* A block that is larger than the dimension is that dimension. */
static void blocks_beyond_the_end(void)
{
	MPI_Count sizes[] = { 4, (MPI_Count)1 << 31 }, bytes;
	int how[] = { MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE };
	int args[] = { INT_MAX, MPI_DISTRIBUTE_DFLT_DARG };
	int procs[] = { 2, 1 };
	MPI_Datatype type;

	for (int i = 0; i < 2; i++) {
		how[0] = i ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC;
		for (int r = 0; r < 2; r++) {
			EXPECT_INT(MPI_Type_create_darray_c(
					   2, r, 2, sizes, how, args, procs,
					   MPI_ORDER_C, MPI_INT, &type),
				   MPI_SUCCESS);
			MPI_Type_size_c(type, &bytes);
			EXPECT_INT(bytes, r ? 0 : (MPI_Count)16 << 31);
			MPI_Type_free(&type);
		}
	}
}

static void refused(void)
{
	int s[] = { 4, 4 }, sub[] = { 2, 2 }, at[] = { 0, 2 }, bad[] = { 3, 0 };
	int how[] = { MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC };
	int none[] = { MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_NONE };
	int args[] = { 2, 1 }, procs[] = { 2, 2 }, less[] = { 1, 1 };
	const int c = MPI_ORDER_C, arg = MPI_ERR_ARG;
	MPI_Datatype t;

	FAILS(MPI_Type_create_subarray(0, s, sub, at, c, MPI_INT, &t), arg);
	FAILS(MPI_Type_create_subarray(2, s, sub, at, 7, MPI_INT, &t), arg);
	FAILS(MPI_Type_create_subarray(2, s, bad, at, c, MPI_INT, &t), arg);
	FAILS(MPI_Type_create_subarray(2, s, sub, bad, c, MPI_INT, &t), arg);
	FAILS(MPI_Type_create_subarray(2, sub, s, at, c, MPI_INT, &t), arg);
	FAILS(MPI_Type_create_subarray(2, NULL, sub, at, c, MPI_INT, &t), arg);
	FAILS(MPI_Type_create_subarray(2, s, sub, at, c, MPI_INT, NULL), arg);
	FAILS(MPI_Type_create_subarray(2, s, sub, at, c, MPI_DATATYPE_NULL, &t),
	      MPI_ERR_TYPE);
#define DARRAY(size, r, n, s, how, args, procs)                                \
	MPI_Type_create_darray(size, r, n, s, how, args, procs, c, MPI_INT, &t)
	FAILS(DARRAY(0, 0, 2, s, how, args, procs), arg);
	FAILS(DARRAY(4, 4, 2, s, how, args, procs), MPI_ERR_RANK);
	FAILS(DARRAY(4, -1, 2, s, how, args, procs), MPI_ERR_RANK);
	FAILS(DARRAY(4, 0, 0, s, how, args, procs), arg);
	FAILS(DARRAY(5, 0, 2, s, how, args, procs), arg);
	FAILS(DARRAY(8, 0, 2, s, how, args, procs), arg);
	FAILS(DARRAY(4, 0, 2, at, how, args, procs), arg);
	FAILS(DARRAY(4, 0, 2, s, args, args, procs), arg);
	FAILS(DARRAY(4, 0, 2, s, none, args, procs), arg);
	FAILS(DARRAY(4, 0, 2, s, how, less, procs), arg);
	FAILS(DARRAY(4, 0, 2, s, how, at, procs), arg);
	FAILS(DARRAY(4, 0, 2, s, how, args, at), arg);
	FAILS(DARRAY(4, 0, 2, s, how, NULL, procs), arg);
	FAILS(MPI_Type_create_darray(4, 0, 2, s, how, args, procs, c, NULL, &t),
	      MPI_ERR_TYPE);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (int i = 0; i < 500; i++) {
		random_subarray();
		random_darray();
	}
	arrays_of_types();
	huge();
	blocks_beyond_the_end();
	refused();
	return program_end("datatype/arrays");
}
