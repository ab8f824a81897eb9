/*
 * The constructors of datatypes: each checks its arguments and hands a list of
 * parts to madmpi_type_build().
 */
#include <errno.h>
#include <stdlib.h>

#include "bodies.h"
#include "core/state.h"
#include "datatype/build.h"
#include "env/error.h"

/* What all constructors check. Returns the old type, or NULL after an error. */
static struct madmpi_type *check(const char *fn, MPI_Count count,
				 MPI_Datatype oldtype, MPI_Datatype *newtype,
				 int *rc)
{
	struct madmpi_type *t = madmpi_type_of(oldtype);

	if (count < 0)
		*rc = madmpi_error(NULL, MPI_ERR_COUNT, fn,
				   "count is negative (%lld)",
				   (long long)count);
	else if (t == NULL)
		*rc = madmpi_error(NULL, MPI_ERR_TYPE, fn,
				   "oldtype %p is not a datatype",
				   (void *)oldtype);
	else if (newtype == NULL)
		*rc = madmpi_null_arg(NULL, fn, "newtype");
	else
		return t;
	return NULL;
}

static int check_block(const char *fn, MPI_Count block)
{
	if (block >= 0)
		return MPI_SUCCESS;
	return madmpi_error(NULL, MPI_ERR_COUNT, fn,
			    "a block length is negative (%lld)",
			    (long long)block);
}

static int finish(const char *fn, int rc, struct madmpi_type *t,
		  MPI_Datatype *newtype)
{
	if (rc == -EOVERFLOW)
		return madmpi_error(NULL, MPI_ERR_COUNT, fn,
				    "the datatype would be too large");
	if (rc == -ELOOP)
		return madmpi_error(NULL, MPI_ERR_TYPE, fn,
				    "the datatype would nest more than %d deep",
				    MADMPI_TYPE_DEEPEST);
	if (rc < 0)
		return madmpi_error_errno(NULL, rc, fn, "new datatype");
	*newtype = madmpi_type_handle(t);
	return MPI_SUCCESS;
}

/* MPI_Type_contiguous, MPI_Type_contiguous_c */
int madmpi_type_contiguous(MPI_Count count, MPI_Datatype oldtype,
			   MPI_Datatype *newtype)
{
	const char *fn = "MPI_Type_contiguous";
	struct madmpi_part part = { .count = count };
	struct madmpi_type *t = NULL;
	int rc;

	part.type = check(fn, count, oldtype, newtype, &rc);
	if (part.type == NULL)
		return rc;
	rc = madmpi_type_build(&part, 1, false, &t);
	return finish(fn, rc, t, newtype);
}

static int vector(const char *fn, MPI_Count count, MPI_Count block,
		  MPI_Count stride, struct madmpi_type *old,
		  MPI_Datatype *newtype)
{
	struct madmpi_type *t = NULL;
	int rc = check_block(fn, block);

	if (rc != MPI_SUCCESS)
		return rc;
	rc = madmpi_type_build_vector(count, block, stride, old, &t);
	return finish(fn, rc, t, newtype);
}

/* MPI_Type_vector, MPI_Type_vector_c */
int madmpi_type_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
		       MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	const char *fn = "MPI_Type_vector";
	struct madmpi_type *old;
	int rc;

	old = check(fn, count, oldtype, newtype, &rc);
	if (old == NULL)
		return rc;
	if (__builtin_mul_overflow(stride, madmpi_type_extent(old), &stride))
		return finish(fn, -EOVERFLOW, NULL, newtype);
	return vector(fn, count, blocklength, stride, old, newtype);
}

/* MPI_Type_create_hvector, MPI_Type_create_hvector_c */
int madmpi_type_create_hvector(MPI_Count count, MPI_Count blocklength,
			       MPI_Count stride, MPI_Datatype oldtype,
			       MPI_Datatype *newtype)
{
	const char *fn = "MPI_Type_create_hvector";
	struct madmpi_type *old;
	int rc;

	old = check(fn, count, oldtype, newtype, &rc);
	if (old == NULL)
		return rc;
	return vector(fn, count, blocklength, stride, old, newtype);
}

/*
 * The four indexed constructors. blocks.at NULL: all blocks have `block`
 * elements. Displacements are in units of `unit` bytes.
 */
struct indexed {
	MPI_Count count;
	struct madmpi_array blocks;
	MPI_Count block;
	struct madmpi_array displs;
	MPI_Count unit;
};

static int indexed_parts(const char *fn, const struct indexed *x,
			 struct madmpi_type *old, struct madmpi_part *parts)
{
	MPI_Count block = x->block;
	int rc;

	for (MPI_Count i = 0; i < x->count; i++) {
		if (x->blocks.at != NULL)
			block = madmpi_array_get(x->blocks, (size_t)i);
		rc = check_block(fn, block);
		if (rc != MPI_SUCCESS)
			return rc;
		parts[i].count = block;
		parts[i].type = old;
		if (__builtin_mul_overflow(
			    madmpi_array_get(x->displs, (size_t)i), x->unit,
			    &parts[i].disp))
			return finish(fn, -EOVERFLOW, NULL, NULL);
	}
	return MPI_SUCCESS;
}

static int indexed(const char *fn, const struct indexed *x,
		   struct madmpi_type *old, MPI_Datatype *newtype)
{
	struct madmpi_part *parts;
	struct madmpi_type *t = NULL;
	int rc;

	if (x->count > 0 &&
	    (x->displs.at == NULL || (x->blocks.at == NULL && x->block < 0)))
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "an array is a null pointer");
	parts = calloc((size_t)x->count + 1, sizeof(*parts));
	if (parts == NULL)
		return finish(fn, -ENOMEM, NULL, newtype);
	rc = indexed_parts(fn, x, old, parts);
	if (rc == MPI_SUCCESS) {
		rc = madmpi_type_build(parts, x->count, false, &t);
		rc = finish(fn, rc, t, newtype);
	}
	free(parts);
	return rc;
}

/* MPI_Type_indexed, MPI_Type_indexed_c */
int madmpi_type_indexed(MPI_Count count, struct madmpi_array blocklengths,
			struct madmpi_array displacements, MPI_Datatype oldtype,
			MPI_Datatype *newtype)
{
	const char *fn = "MPI_Type_indexed";
	struct indexed x = { count, blocklengths, -1, displacements, 0 };
	struct madmpi_type *old;
	int rc;

	old = check(fn, count, oldtype, newtype, &rc);
	if (old == NULL)
		return rc;
	x.unit = madmpi_type_extent(old);
	return indexed(fn, &x, old, newtype);
}

/* MPI_Type_create_hindexed, MPI_Type_create_hindexed_c */
int madmpi_type_create_hindexed(MPI_Count count,
				struct madmpi_array blocklengths,
				const MPI_Count displacements[],
				MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	const char *fn = "MPI_Type_create_hindexed";
	struct indexed x = { count, blocklengths, -1,
			     madmpi_array_count(displacements), 1 };
	struct madmpi_type *old;
	int rc;

	old = check(fn, count, oldtype, newtype, &rc);
	return old ? indexed(fn, &x, old, newtype) : rc;
}

/* MPI_Type_create_indexed_block, MPI_Type_create_indexed_block_c */
int madmpi_type_create_indexed_block(MPI_Count count, MPI_Count blocklength,
				     struct madmpi_array displacements,
				     MPI_Datatype oldtype,
				     MPI_Datatype *newtype)
{
	const char *fn = "MPI_Type_create_indexed_block";
	struct indexed x = { count, { 0 }, blocklength, displacements, 0 };
	struct madmpi_type *old;
	int rc;

	old = check(fn, count, oldtype, newtype, &rc);
	if (old == NULL)
		return rc;
	rc = check_block(fn, blocklength);
	x.unit = madmpi_type_extent(old);
	return rc ? rc : indexed(fn, &x, old, newtype);
}

/* MPI_Type_create_hindexed_block, MPI_Type_create_hindexed_block_c */
int madmpi_type_create_hindexed_block(MPI_Count count, MPI_Count blocklength,
				      const MPI_Count displacements[],
				      MPI_Datatype oldtype,
				      MPI_Datatype *newtype)
{
	const char *fn = "MPI_Type_create_hindexed_block";
	struct indexed x = {
		count, { 0 }, blocklength, madmpi_array_count(displacements), 1
	};
	struct madmpi_type *old;
	int rc;

	old = check(fn, count, oldtype, newtype, &rc);
	if (old == NULL)
		return rc;
	rc = check_block(fn, blocklength);
	return rc ? rc : indexed(fn, &x, old, newtype);
}

static int struct_parts(const char *fn, MPI_Count count,
			struct madmpi_array blocks, const MPI_Count displs[],
			const MPI_Datatype types[], struct madmpi_part *parts)
{
	int rc;

	for (MPI_Count i = 0; i < count; i++) {
		parts[i].disp = displs[i];
		parts[i].count = madmpi_array_get(blocks, (size_t)i);
		parts[i].type = madmpi_type_of(types[i]);
		if (parts[i].type == NULL)
			return madmpi_error(NULL, MPI_ERR_TYPE, fn,
					    "array_of_types[%lld] (%p) is not "
					    "a datatype",
					    (long long)i, (void *)types[i]);
		rc = check_block(fn, parts[i].count);
		if (rc != MPI_SUCCESS)
			return rc;
	}
	return MPI_SUCCESS;
}

/* MPI_Type_create_struct, MPI_Type_create_struct_c */
int madmpi_type_create_struct(MPI_Count count, struct madmpi_array blocklengths,
			      const MPI_Count displacements[],
			      const MPI_Datatype types[], MPI_Datatype *newtype)
{
	const char *fn = "MPI_Type_create_struct";
	struct madmpi_part *parts;
	struct madmpi_type *t = NULL;
	int rc;

	if (check(fn, count, MPI_BYTE, newtype, &rc) == NULL)
		return rc;
	if (count > 0 && (!blocklengths.at || !displacements || !types))
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "an array is a null pointer");
	parts = calloc((size_t)count + 1, sizeof(*parts));
	if (parts == NULL)
		return finish(fn, -ENOMEM, NULL, newtype);
	rc = struct_parts(fn, count, blocklengths, displacements, types, parts);
	if (rc == MPI_SUCCESS) {
		rc = madmpi_type_build(parts, count, true, &t);
		rc = finish(fn, rc, t, newtype);
	}
	free(parts);
	return rc;
}

/* MPI_Type_create_resized, MPI_Type_create_resized_c */
int madmpi_type_create_resized(MPI_Datatype oldtype, MPI_Count lb,
			       MPI_Count extent, MPI_Datatype *newtype)
{
	const char *fn = "MPI_Type_create_resized";
	struct madmpi_type *old, *t = NULL;
	int rc;

	old = check(fn, 0, oldtype, newtype, &rc);
	if (old == NULL)
		return rc;
	rc = madmpi_type_build_resized(old, lb, extent, &t);
	return finish(fn, rc, t, newtype);
}

/* MPI_Type_dup */
int madmpi_type_dup(MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	const char *fn = "MPI_Type_dup";
	struct madmpi_part part = { .count = 1 };
	struct madmpi_type *t = NULL;
	int rc;

	part.type = check(fn, 0, oldtype, newtype, &rc);
	if (part.type == NULL)
		return rc;
	rc = madmpi_type_build(&part, 1, false, &t);
	if (rc < 0)
		return finish(fn, rc, NULL, newtype);
	t->has_bounds = part.type->has_bounds;
	store_relaxed(&t->committed, load_relaxed(&part.type->committed));
	rc = madmpi_attrs_copy(fn, (struct madmpi_bearer){ .type = part.type },
			       (struct madmpi_bearer){ .type = t });
	if (rc != MPI_SUCCESS) {
		madmpi_attrs_delete(fn, (struct madmpi_bearer){ .type = t });
		madmpi_type_put(t);
		*newtype = MPI_DATATYPE_NULL;
		return rc;
	}
	*newtype = madmpi_type_handle(t);
	return MPI_SUCCESS;
}
