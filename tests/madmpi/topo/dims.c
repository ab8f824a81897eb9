/*
 * MPI_Dims_create: dimensions as close to each other as can be.
 */
#include <limits.h>

#include "../program.h"

enum { MOST = 40 };

/* The best that there is, found by trying all. */
static int spread, smallest;

static void try_all(int product, int n, int low, int first)
{
	if (n == 1) {
		int s = product - first;

		if (product >= low &&
		    (s < spread || (s == spread && first > smallest))) {
			spread = s;
			smallest = first;
		}
		return;
	}
	for (int d = low; d <= product; d++)
		if (product % d == 0)
			try_all(product / d, n - 1, d, first ? first : d);
}

static void check_shape(int nnodes, int ndims, const int *dims)
{
	long long product = 1;

	for (int i = 0; i < ndims; i++) {
		product *= dims[i];
		EXPECT(dims[i] >= 1);
		EXPECT(i == 0 || dims[i] <= dims[i - 1]);
	}
	EXPECT_INT(product, nnodes);
}

static void as_close_as_possible(void)
{
	for (int nnodes = 1; nnodes <= 720 / FEWER; nnodes++)
		for (int ndims = 2; ndims <= 4; ndims++) {
			int dims[4] = { 0 };

			spread = INT_MAX;
			smallest = 0;
			try_all(nnodes, ndims, 1, 0);
			EXPECT_INT(MPI_Dims_create(nnodes, ndims, dims),
				   MPI_SUCCESS);
			check_shape(nnodes, ndims, dims);
			EXPECT_INT(dims[0] - dims[ndims - 1], spread);
			EXPECT_INT(dims[ndims - 1], smallest);
		}
}

/* Where the roundest choice is not the one with the smallest maximum. */
static void known(void)
{
	static const struct {
		int nnodes, ndims, dims[10];
	} all[] = {
		{ 6, 2, { 3, 2 } },
		{ 7, 2, { 7, 1 } },
		{ 1000000000, 3, { 1000, 1000, 1000 } },
		{ 73920, 4, { 22, 16, 15, 14 } },
		{ 98784, 5, { 14, 14, 9, 8, 7 } },
		{ 110592, 10, { 4, 4, 4, 4, 4, 3, 3, 3, 2, 2 } },
		{ INT_MAX, 3, { INT_MAX, 1, 1 } },
		{ 1 << 30, 4, { 256, 256, 128, 128 } },
	};

	for (size_t t = 0; t < sizeof(all) / sizeof(all[0]); t++) {
		int dims[10] = { 0 };

		MPI_Dims_create(all[t].nnodes, all[t].ndims, dims);
		for (int i = 0; i < all[t].ndims; i++)
			EXPECT_INT(dims[i], all[t].dims[i]);
	}
}

/* Numbers with the most divisors, and more dimensions than any has factors. */
static void large(void)
{
	static const int most[] = { 2095133040, 1102701600, 140918400,
				    INT_MAX - 1 };

	for (int t = 0; t < 4; t++)
		for (int ndims = 1; ndims <= MOST; ndims += FEWER) {
			int dims[MOST] = { 0 };

			MPI_Dims_create(most[t], ndims, dims);
			check_shape(most[t], ndims, dims);
		}
}

static void what_is_given_stays(void)
{
	int dims[4] = { 0, 3, 0, 2 };

	MPI_Dims_create(6, 3, dims);
	EXPECT(dims[0] == 2 && dims[1] == 3 && dims[2] == 1);
	dims[0] = dims[2] = 0;
	MPI_Dims_create(216, 4, dims);
	EXPECT(dims[0] == 6 && dims[1] == 3 && dims[2] == 6 && dims[3] == 2);
	/* Nothing to find. */
	EXPECT_INT(MPI_Dims_create(216, 4, dims), MPI_SUCCESS);
	EXPECT_INT(MPI_Dims_create(1, 0, NULL), MPI_SUCCESS);
}

static void wrong(void)
{
	int dims[3] = { 0, 3, 0 };

	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	FAILS(MPI_Dims_create(7, 3, dims), MPI_ERR_DIMS);
	EXPECT(dims[0] == 0 && dims[1] == 3 && dims[2] == 0);
	dims[1] = -3;
	FAILS(MPI_Dims_create(6, 3, dims), MPI_ERR_DIMS);
	FAILS(MPI_Dims_create(6, -1, dims), MPI_ERR_DIMS);
	FAILS(MPI_Dims_create(0, 1, dims), MPI_ERR_ARG);
	FAILS(MPI_Dims_create(6, 1, NULL), MPI_ERR_ARG);
	/* Two that each divide it, but not together. */
	dims[0] = dims[1] = 4;
	FAILS(MPI_Dims_create(8, 2, dims), MPI_ERR_DIMS);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	as_close_as_possible();
	known();
	large();
	what_is_given_stays();
	wrong();
	return program_end("dims");
}
