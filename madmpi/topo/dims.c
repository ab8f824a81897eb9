/*
 * MPI_Dims_create.
 *
 * Balanced means: the largest and the smallest of the dimensions that are to be
 * found differ as little as possible; of several such choices, the one whose
 * smallest is largest, then the one before it, and so on. All of them are
 * divisors of one number, of which there are few. So each that may be the
 * largest dimension is tried in turn, and the others are filled in from the
 * smallest on. What cannot be filled is remembered: each search takes steps
 * that the divisors and dimensions bound, not their combinations.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "bodies.h"
#include "env/error.h"

enum {
	DIVISORS = 1600, /* of 2095133040; no int has more */
	FACTORS = 31,    /* an int has fewer: further dimensions are 1 */
};

struct search {
	int n; /* of divisors, which increase */
	int divisor[DIVISORS];
	int high; /* no dimension is larger */
	/* So many dimensions of this product cannot all be that large. */
	int too_low[FACTORS][DIVISORS];
};

static void find_divisors(struct search *s, int of)
{
	int low = 0, high = DIVISORS;

	for (int i = 1; i <= of / i; i++)
		if (of % i == 0) {
			s->divisor[low++] = i;
			if (i != of / i)
				s->divisor[--high] = of / i;
		}
	while (high < DIVISORS)
		s->divisor[low++] = s->divisor[high++];
	s->n = low;
}

/* base to the power of n, or more than any int. */
static int64_t power(int64_t base, int n)
{
	int64_t p = 1;

	for (; n > 0 && p <= INT_MAX && base > 1; n--)
		p *= base;
	return p;
}

/* The largest divisor whose power of n is at most that: which one it is. */
static int root(const struct search *s, int product, int n)
{
	int low = 0, high = s->n, middle;

	while (high - low > 1) {
		middle = (low + high) / 2;
		if (power(s->divisor[middle], n) <= product)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/*
 * The n numbers with this product that do not increase, all of them at least
 * `low` and at most s->high; the smallest is as large as it can be, then the
 * one before it, and so on. False: there are none.
 */
static bool fill(struct search *s, int product, int n, int low, int *out)
{
	int *too_low = &s->too_low[n][root(s, product, 1)], d;

	if (n == 0)
		return product == 1;
	if (low >= *too_low)
		return false;
	for (int i = root(s, product, n); i >= 0; i--) {
		d = s->divisor[i];
		if (d < low)
			break;
		if (product % d != 0)
			continue;
		/* The others would have to be larger than they may be. */
		if (power(s->high, n - 1) < product / d)
			break;
		out[n - 1] = d;
		if (fill(s, product / d, n - 1, d, out))
			return true;
	}
	*too_low = low;
	return false;
}

/* n of them, in out. */
static void balance(struct search *s, int product, int n, int *out)
{
	int tried[FACTORS], spread = INT_MAX, low;

	find_divisors(s, product);
	for (int i = 0; i < s->n; i++) {
		s->high = s->divisor[i];
		if (power(s->high, n) < product)
			continue;
		/* No worse than what there is, then better: all are larger. */
		low = s->high > spread ? s->high - spread : 1;
		if (power(low, n) > product)
			break;
		for (int k = 0; k < n; k++)
			for (int j = 0; j < s->n; j++)
				s->too_low[k][j] = INT_MAX;
		tried[0] = s->high;
		if (!fill(s, product / s->high, n - 1, low, tried + 1))
			continue;
		spread = s->high - tried[n - 1];
		memcpy(out, tried, (size_t)n * sizeof(*out));
	}
}

/* How many dimensions are to be found, with which product; or an error. */
static int check(const char *fn, int nnodes, int ndims, const int dims[],
		 int *missing, int *product)
{
	*missing = 0;
	*product = nnodes;
	if (nnodes < 1)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "nnodes is %d: not even one", nnodes);
	if (ndims < 0)
		return madmpi_error(NULL, MPI_ERR_DIMS, fn,
				    "ndims is negative (%d)", ndims);
	if (ndims > 0 && dims == NULL)
		return madmpi_null_arg(NULL, fn, "dims");
	for (int i = 0; i < ndims; i++) {
		if (dims[i] < 0)
			return madmpi_error(NULL, MPI_ERR_DIMS, fn,
					    "dims[%d] is negative (%d)", i,
					    dims[i]);
		if (dims[i] > 0 && *product % dims[i] != 0)
			return madmpi_error(NULL, MPI_ERR_DIMS, fn,
					    "nnodes is %d, no multiple of the "
					    "given dimensions up to dims[%d], "
					    "which is %d",
					    nnodes, i, dims[i]);
		if (dims[i] > 0)
			*product /= dims[i];
		else
			++*missing;
	}
	return MPI_SUCCESS;
}

/* MPI_Dims_create */
int madmpi_dims_create(int nnodes, int ndims, int dims[])
{
	const char *fn = "MPI_Dims_create";
	int found[FACTORS], n, product, next = 0;
	struct search *s;
	int rc = check(fn, nnodes, ndims, dims, &n, &product);

	if (rc != MPI_SUCCESS || n == 0)
		return rc;
	s = malloc(sizeof(*s));
	if (s == NULL)
		return madmpi_error(NULL, MPI_ERR_NO_MEM, fn,
				    "no memory to look for %d dimensions", n);
	n = n < FACTORS ? n : FACTORS;
	balance(s, product, n, found);
	free(s);
	for (int i = 0; i < ndims; i++)
		if (dims[i] == 0)
			dims[i] = next < n ? found[next++] : 1;
	return MPI_SUCCESS;
}
