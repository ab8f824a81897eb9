/*
 * Parts of arrays: MPI_Type_create_subarray and MPI_Type_create_darray.
 *
 * The type of one element along the dimensions done so far is wrapped in the
 * next one, from that which is contiguous in memory to that with the largest
 * stride. For each dimension there is a list of the indices that belong to the
 * type: a regular pattern of blocks, and perhaps a shorter one at the end. The
 * displacements of the first index add up to that of the whole.
 */
#include <errno.h>
#include <stdlib.h>

#include "bodies.h"
#include "datatype/build.h"
#include "env/error.h"

/* The indices of one dimension: n blocks, and `rest` indices after the last. */
struct along {
	MPI_Count size;   /* of the whole array */
	MPI_Count start;  /* of the first block */
	MPI_Count n;      /* of blocks ... */
	MPI_Count block;  /* ... of so many indices ... */
	MPI_Count stride; /* ... which begin so far apart */
	MPI_Count rest;   /* indices of one block more, a stride further on */
};

/*
 * The type of the dimension d, whose indices are `unit` bytes apart, with an
 * `each` at each of its indices. 0 or -errno.
 */
static int wrap(struct madmpi_type *each, const struct along *d, MPI_Count unit,
		struct madmpi_type **out)
{
	MPI_Count stride = d->stride * unit; /* within the array: it fits */
	struct madmpi_type *block, *blocks, *rest;
	struct madmpi_part parts[2] = { { .count = 1 }, { .count = 1 } };
	int rc = madmpi_type_build_vector(d->block, 1, unit, each, &block);

	if (rc < 0)
		return rc;
	if (d->n == 1 && d->rest == 0) {
		*out = block;
		return 0;
	}
	rc = madmpi_type_build_vector(d->n, 1, stride, block, &blocks);
	madmpi_type_put(block);
	if (rc < 0 || d->rest == 0) {
		*out = blocks;
		return rc;
	}
	rc = madmpi_type_build_vector(d->rest, 1, unit, each, &rest);
	if (rc == 0) {
		parts[0].type = blocks;
		parts[1].type = rest;
		parts[1].disp = d->n * stride;
		rc = madmpi_type_build(parts, 2, false, out);
		madmpi_type_put(rest);
	}
	madmpi_type_put(blocks);
	return rc;
}

/* The type of these dimensions, which follow each other in memory. */
static int build(const struct along *dims, int ndims, bool is_fortran,
		 struct madmpi_type *old, struct madmpi_type **out)
{
	MPI_Count unit = madmpi_type_extent(old), disp = 0, part;
	struct madmpi_type *t = old, *wrapped, *placed;
	struct madmpi_part all = { .count = 1 };
	int rc;

	madmpi_type_get(t);
	for (int i = 0; i < ndims; i++) {
		const struct along *d = &dims[is_fortran ? i : ndims - 1 - i];
		MPI_Count next;

		if (__builtin_mul_overflow(unit, d->size, &next) ||
		    __builtin_mul_overflow(unit, d->start, &part) ||
		    __builtin_add_overflow(disp, part, &disp))
			rc = -EOVERFLOW;
		else
			rc = wrap(t, d, unit, &wrapped);
		madmpi_type_put(t);
		if (rc < 0)
			return rc;
		t = wrapped;
		unit = next;
	}
	all.disp = disp;
	all.type = t;
	rc = madmpi_type_build(&all, 1, false, &placed);
	madmpi_type_put(t);
	if (rc < 0)
		return rc;
	placed->sets_lb = placed->sets_ub = true;
	placed->lb = 0;
	placed->ub = unit;
	*out = placed;
	return 0;
}

/* What both constructors check of their common arguments. */
static int check(const char *fn, int ndims, int order, MPI_Datatype oldtype,
		 MPI_Datatype *newtype, struct madmpi_type **old)
{
	*old = madmpi_type_of(oldtype);
	if (ndims < 1)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "ndims is %d, which is not positive",
				    ndims);
	if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "order %d is neither MPI_ORDER_C nor "
				    "MPI_ORDER_FORTRAN",
				    order);
	if (*old == NULL)
		return madmpi_error(NULL, MPI_ERR_TYPE, fn,
				    "oldtype %p is not a datatype",
				    (void *)oldtype);
	if (newtype == NULL)
		return madmpi_null_arg(NULL, fn, "newtype");
	return MPI_SUCCESS;
}

static int subarray_dims(const char *fn, int ndims, struct madmpi_array sizes,
			 struct madmpi_array subsizes,
			 struct madmpi_array starts, struct along *dims)
{
	for (int i = 0; i < ndims; i++) {
		MPI_Count size = madmpi_array_get(sizes, (size_t)i);
		MPI_Count sub = madmpi_array_get(subsizes, (size_t)i);
		MPI_Count start = madmpi_array_get(starts, (size_t)i);

		if (size < 1 || sub < 1 || sub > size)
			return madmpi_error(NULL, MPI_ERR_ARG, fn,
					    "array_of_subsizes[%d] is %lld, "
					    "which is not within 1..%lld",
					    i, (long long)sub, (long long)size);
		if (start < 0 || start > size - sub)
			return madmpi_error(NULL, MPI_ERR_ARG, fn,
					    "array_of_starts[%d] is %lld, "
					    "which is not within 0..%lld",
					    i, (long long)start,
					    (long long)(size - sub));
		dims[i] = (struct along){
			.size = size, .start = start, .n = 1, .block = sub
		};
	}
	return MPI_SUCCESS;
}

/* MPI_Type_create_subarray, MPI_Type_create_subarray_c */
int madmpi_type_create_subarray(int ndims, struct madmpi_array sizes,
				struct madmpi_array subsizes,
				struct madmpi_array starts, int order,
				MPI_Datatype oldtype, MPI_Datatype *newtype,
				bool is_large)
{
	const char *fn = "MPI_Type_create_subarray";
	struct madmpi_contents *c = NULL;
	struct madmpi_type *old, *t = NULL;
	struct along *dims;
	int rc = check(fn, ndims, order, oldtype, newtype, &old);

	if (rc != MPI_SUCCESS)
		return rc;
	if (sizes.at == NULL || subsizes.at == NULL || starts.at == NULL)
		return madmpi_null_arg(NULL, fn, "an array");
	dims = calloc((size_t)ndims, sizeof(*dims));
	if (dims == NULL)
		return madmpi_type_finish(fn, -ENOMEM, NULL, NULL, newtype);
	rc = subarray_dims(fn, ndims, sizes, subsizes, starts, dims);
	if (rc == MPI_SUCCESS) {
		rc = build(dims, ndims, order == MPI_ORDER_FORTRAN, old, &t);
		if (rc == 0)
			c = madmpi_contents_new(
				MPI_COMBINER_SUBARRAY, is_large,
				(struct madmpi_arguments){
					.ints = 2,
					.counts = 3 * (MPI_Count)ndims,
					.types = 1 });
		if (c != NULL) {
			madmpi_contents_int(c, ndims);
			madmpi_contents_counts(c, sizes, ndims);
			madmpi_contents_counts(c, subsizes, ndims);
			madmpi_contents_counts(c, starts, ndims);
			madmpi_contents_int(c, order);
			madmpi_contents_type(c, old);
		}
		rc = madmpi_type_finish(fn, rc, t, c, newtype);
	}
	free(dims);
	return rc;
}

/* Of one dimension: the argument of its distribution, made explicit. */
struct distribution {
	MPI_Count size;
	int how, procs, where; /* the process's place among procs */
	MPI_Count block;       /* of MPI_DISTRIBUTE_BLOCK and _CYCLIC */
};

static int check_distribution(const char *fn, int i, int arg,
			      struct distribution *d)
{
	if (d->size < 1)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "array_of_gsizes[%d] is %lld, which is not "
				    "positive",
				    i, (long long)d->size);
	if (d->how != MPI_DISTRIBUTE_BLOCK && d->how != MPI_DISTRIBUTE_CYCLIC &&
	    d->how != MPI_DISTRIBUTE_NONE)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "array_of_distribs[%d] is %d, which is no "
				    "distribution",
				    i, d->how);
	if (d->how == MPI_DISTRIBUTE_NONE && d->procs != 1)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "array_of_psizes[%d] is %d, but the "
				    "dimension is not distributed",
				    i, d->procs);
	/* It means something to MPI_DISTRIBUTE_BLOCK and _CYCLIC only. */
	if (arg == MPI_DISTRIBUTE_DFLT_DARG || d->how == MPI_DISTRIBUTE_NONE)
		d->block = d->how == MPI_DISTRIBUTE_CYCLIC
				   ? 1
				   : (d->size - 1) / d->procs + 1;
	else
		d->block = arg;
	if (d->block < 1)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "array_of_dargs[%d] is %d, which is not "
				    "positive",
				    i, arg);
	if (d->how == MPI_DISTRIBUTE_BLOCK &&
	    d->block < (d->size - 1) / d->procs + 1)
		return madmpi_error(
			NULL, MPI_ERR_ARG, fn,
			"array_of_dargs[%d] is %lld: %d such blocks "
			"do not hold %lld",
			i, (long long)d->block, d->procs, (long long)d->size);
	if (d->block > d->size) /* the rest of it does not exist */
		d->block = d->size;
	return MPI_SUCCESS;
}

/*
 * Which indices the process at this place has: of block b, of all those of
 * d->block indices, if b mod procs is its place.
 */
static struct along along(const struct distribution *d)
{
	MPI_Count full = d->size / d->block, rest = d->size % d->block;
	struct along a = { .size = d->size, .block = d->block };

	if (d->where < full)
		a.n = (full - d->where - 1) / d->procs + 1;
	if (rest > 0 && full % d->procs == d->where)
		a.rest = rest;
	/* With one block the stride, which may be huge, means nothing. */
	if (a.n > 1 || (a.n == 1 && a.rest > 0))
		a.stride = (MPI_Count)d->procs * d->block;
	if (a.n > 0 || a.rest > 0)
		a.start = (MPI_Count)d->where * d->block;
	return a;
}

struct darray {
	int size, rank, ndims;
	struct madmpi_array gsizes;
	const int *distribs, *dargs, *psizes;
	int order;
};

/* Places in the grid of processes are by rows, whatever the order. */
static int darray_dims(const char *fn, const struct darray *x,
		       struct along *dims)
{
	MPI_Count below = x->size;
	int rank = x->rank, rc;

	for (int i = 0; i < x->ndims; i++) {
		struct distribution d = {
			.size = madmpi_array_get(x->gsizes, (size_t)i),
			.how = x->distribs[i],
			.procs = x->psizes[i],
		};

		if (d.procs < 1 || below % d.procs != 0)
			return madmpi_error(NULL, MPI_ERR_ARG, fn,
					    "array_of_psizes[%d] is %d, which "
					    "does not divide %lld processes",
					    i, d.procs, (long long)below);
		below /= d.procs;
		d.where = rank / (int)below;
		rank %= (int)below;
		rc = check_distribution(fn, i, x->dargs[i], &d);
		if (rc != MPI_SUCCESS)
			return rc;
		dims[i] = along(&d);
	}
	if (below != 1)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "the product of array_of_psizes is not "
				    "size, which is %d",
				    x->size);
	return MPI_SUCCESS;
}

static struct madmpi_contents *
darray_contents(const struct darray *x, struct madmpi_type *old, bool is_large)
{
	struct madmpi_contents *c = madmpi_contents_new(
		MPI_COMBINER_DARRAY, is_large,
		(struct madmpi_arguments){ .ints = 4 + 3 * (MPI_Count)x->ndims,
					   .counts = x->ndims,
					   .types = 1 });

	if (c == NULL)
		return NULL;
	madmpi_contents_int(c, x->size);
	madmpi_contents_int(c, x->rank);
	madmpi_contents_int(c, x->ndims);
	madmpi_contents_counts(c, x->gsizes, x->ndims);
	madmpi_contents_ints(c, x->distribs, x->ndims);
	madmpi_contents_ints(c, x->dargs, x->ndims);
	madmpi_contents_ints(c, x->psizes, x->ndims);
	madmpi_contents_int(c, x->order);
	madmpi_contents_type(c, old);
	return c;
}

static int darray(const char *fn, const struct darray *x,
		  struct madmpi_type *old, bool is_large, MPI_Datatype *newtype)
{
	struct madmpi_contents *c = NULL;
	struct madmpi_type *t = NULL;
	struct along *dims = calloc((size_t)x->ndims, sizeof(*dims));
	int rc;

	if (dims == NULL)
		return madmpi_type_finish(fn, -ENOMEM, NULL, NULL, newtype);
	rc = darray_dims(fn, x, dims);
	if (rc == MPI_SUCCESS) {
		rc = build(dims, x->ndims, x->order == MPI_ORDER_FORTRAN, old,
			   &t);
		if (rc == 0)
			c = darray_contents(x, old, is_large);
		rc = madmpi_type_finish(fn, rc, t, c, newtype);
	}
	free(dims);
	return rc;
}

/* MPI_Type_create_darray, MPI_Type_create_darray_c */
int madmpi_type_create_darray(int size, int rank, int ndims,
			      struct madmpi_array gsizes, const int distribs[],
			      const int dargs[], const int psizes[], int order,
			      MPI_Datatype oldtype, MPI_Datatype *newtype,
			      bool is_large)
{
	const char *fn = "MPI_Type_create_darray";
	struct darray x = { size,     rank,  ndims,  gsizes,
			    distribs, dargs, psizes, order };
	struct madmpi_type *old;
	int rc = check(fn, ndims, order, oldtype, newtype, &old);

	if (rc != MPI_SUCCESS)
		return rc;
	if (size < 1)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "size is %d, which is not positive", size);
	if (rank < 0 || rank >= size)
		return madmpi_error(NULL, MPI_ERR_RANK, fn,
				    "rank is %d, which is not within 0..%d",
				    rank, size - 1);
	if (gsizes.at == NULL || distribs == NULL || dargs == NULL ||
	    psizes == NULL)
		return madmpi_null_arg(NULL, fn, "an array");
	return darray(fn, &x, old, is_large, newtype);
}
