/*
 * The constructors of datatypes: each checks its arguments, hands a list of
 * parts to madmpi_type_build(), and writes down what it was called with.
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

static int refuse(const char *fn, int rc)
{
	if (rc == -EOVERFLOW)
		return madmpi_error(NULL, MPI_ERR_COUNT, fn,
				    "the datatype would be too large");
	if (rc == -ELOOP)
		return madmpi_error(NULL, MPI_ERR_TYPE, fn,
				    "the datatype would nest more than %d deep",
				    MADMPI_TYPE_DEEPEST);
	return madmpi_error_errno(NULL, rc, fn, "new datatype");
}

int madmpi_type_finish(const char *fn, int rc, struct madmpi_type *t,
		       struct madmpi_contents *contents, MPI_Datatype *newtype)
{
	if (rc == 0 && contents == NULL) {
		madmpi_type_put(t);
		rc = -ENOMEM;
	}
	if (rc < 0)
		madmpi_contents_free(contents);
	if (rc < 0)
		return refuse(fn, rc);
	t->contents = contents;
	*newtype = madmpi_type_handle(t);
	return MPI_SUCCESS;
}

/* MPI_Type_contiguous, MPI_Type_contiguous_c */
int madmpi_type_contiguous(MPI_Count count, MPI_Datatype oldtype,
			   MPI_Datatype *newtype, bool is_large)
{
	const char *fn = "MPI_Type_contiguous";
	struct madmpi_part part = { .count = count };
	struct madmpi_contents *c = NULL;
	struct madmpi_type *t = NULL;
	int rc;

	part.type = check(fn, count, oldtype, newtype, &rc);
	if (part.type == NULL)
		return rc;
	rc = madmpi_type_build(&part, 1, false, &t);
	if (rc == 0)
		c = madmpi_contents_new(
			MPI_COMBINER_CONTIGUOUS, is_large,
			(struct madmpi_arguments){ .counts = 1, .types = 1 });
	if (c != NULL) {
		madmpi_contents_count(c, count);
		madmpi_contents_type(c, part.type);
	}
	return madmpi_type_finish(fn, rc, t, c, newtype);
}

/* MPI_Type_vector, MPI_Type_vector_c */
int madmpi_type_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride,
		       MPI_Datatype oldtype, MPI_Datatype *newtype,
		       bool is_large)
{
	const char *fn = "MPI_Type_vector";
	struct madmpi_contents *c = NULL;
	struct madmpi_type *old, *t = NULL;
	MPI_Count bytes;
	int rc;

	old = check(fn, count, oldtype, newtype, &rc);
	if (old == NULL)
		return rc;
	rc = check_block(fn, blocklength);
	if (rc != MPI_SUCCESS)
		return rc;
	if (__builtin_mul_overflow(stride, madmpi_type_extent(old), &bytes))
		return refuse(fn, -EOVERFLOW);
	rc = madmpi_type_build_vector(count, blocklength, bytes, old, &t);
	if (rc == 0)
		c = madmpi_contents_new(
			MPI_COMBINER_VECTOR, is_large,
			(struct madmpi_arguments){ .counts = 3, .types = 1 });
	if (c != NULL) {
		madmpi_contents_count(c, count);
		madmpi_contents_count(c, blocklength);
		madmpi_contents_count(c, stride);
		madmpi_contents_type(c, old);
	}
	return madmpi_type_finish(fn, rc, t, c, newtype);
}

/* MPI_Type_create_hvector, MPI_Type_create_hvector_c */
int madmpi_type_create_hvector(MPI_Count count, MPI_Count blocklength,
			       MPI_Count stride, MPI_Datatype oldtype,
			       MPI_Datatype *newtype, bool is_large)
{
	const char *fn = "MPI_Type_create_hvector";
	struct madmpi_contents *c = NULL;
	struct madmpi_type *old, *t = NULL;
	int rc;

	old = check(fn, count, oldtype, newtype, &rc);
	if (old == NULL)
		return rc;
	rc = check_block(fn, blocklength);
	if (rc != MPI_SUCCESS)
		return rc;
	rc = madmpi_type_build_vector(count, blocklength, stride, old, &t);
	if (rc == 0)
		c = madmpi_contents_new(
			MPI_COMBINER_HVECTOR, is_large,
			(struct madmpi_arguments){
				.counts = 2, .addrs = 1, .types = 1 });
	if (c != NULL) {
		madmpi_contents_count(c, count);
		madmpi_contents_count(c, blocklength);
		madmpi_contents_addr(c, stride);
		madmpi_contents_type(c, old);
	}
	return madmpi_type_finish(fn, rc, t, c, newtype);
}

/*
 * The four indexed constructors. blocks.at NULL: all blocks have `block`
 * elements. Displacements are in units of extents, or bytes.
 */
struct indexed {
	int combiner;
	bool is_large, in_bytes;
	MPI_Count count;
	struct madmpi_array blocks;
	MPI_Count block;
	struct madmpi_array displs;
};

static int indexed_parts(const char *fn, const struct indexed *x,
			 struct madmpi_type *old, struct madmpi_part *parts)
{
	MPI_Count block = x->block;
	MPI_Count unit = x->in_bytes ? 1 : madmpi_type_extent(old);
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
			    madmpi_array_get(x->displs, (size_t)i), unit,
			    &parts[i].disp))
			return refuse(fn, -EOVERFLOW);
	}
	return MPI_SUCCESS;
}

static struct madmpi_contents *indexed_contents(const struct indexed *x,
						struct madmpi_type *old)
{
	bool each = x->blocks.at != NULL;
	struct madmpi_arguments n = {
		.counts = 1 + (each ? x->count : 1),
		.types = 1,
	};
	struct madmpi_contents *c;

	*(x->in_bytes ? &n.addrs : &n.counts) += x->count;
	c = madmpi_contents_new(x->combiner, x->is_large, n);
	if (c == NULL)
		return NULL;
	madmpi_contents_count(c, x->count);
	if (each)
		madmpi_contents_counts(c, x->blocks, x->count);
	else
		madmpi_contents_count(c, x->block);
	if (x->in_bytes)
		madmpi_contents_addrs(c, x->displs.at, x->count);
	else
		madmpi_contents_counts(c, x->displs, x->count);
	madmpi_contents_type(c, old);
	return c;
}

static int indexed(const char *fn, const struct indexed *x,
		   MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	struct madmpi_contents *c = NULL;
	struct madmpi_type *old, *t = NULL;
	struct madmpi_part *parts;
	int rc;

	old = check(fn, x->count, oldtype, newtype, &rc);
	if (old == NULL)
		return rc;
	rc = x->blocks.at == NULL ? check_block(fn, x->block) : MPI_SUCCESS;
	if (rc != MPI_SUCCESS)
		return rc;
	if (x->count > 0 && x->displs.at == NULL)
		return madmpi_null_arg(NULL, fn, "array_of_displacements");
	parts = calloc((size_t)x->count + 1, sizeof(*parts));
	if (parts == NULL)
		return refuse(fn, -ENOMEM);
	rc = indexed_parts(fn, x, old, parts);
	if (rc == MPI_SUCCESS) {
		rc = madmpi_type_build(parts, x->count, false, &t);
		if (rc == 0)
			c = indexed_contents(x, old);
		rc = madmpi_type_finish(fn, rc, t, c, newtype);
	}
	free(parts);
	return rc;
}

/* An array of block lengths that is not read may be a null pointer. */
static int check_blocks(const char *fn, MPI_Count count,
			struct madmpi_array *blocks)
{
	static const int none;

	if (blocks->at != NULL)
		return MPI_SUCCESS;
	if (count > 0)
		return madmpi_null_arg(NULL, fn, "array_of_blocklengths");
	blocks->at = &none;
	return MPI_SUCCESS;
}

/* MPI_Type_indexed, MPI_Type_indexed_c */
int madmpi_type_indexed(MPI_Count count, struct madmpi_array blocklengths,
			struct madmpi_array displacements, MPI_Datatype oldtype,
			MPI_Datatype *newtype, bool is_large)
{
	struct indexed x = { .combiner = MPI_COMBINER_INDEXED,
			     .is_large = is_large,
			     .count = count,
			     .blocks = blocklengths,
			     .displs = displacements };
	int rc = check_blocks("MPI_Type_indexed", count, &x.blocks);

	return rc ? rc : indexed("MPI_Type_indexed", &x, oldtype, newtype);
}

/* MPI_Type_create_hindexed, MPI_Type_create_hindexed_c */
int madmpi_type_create_hindexed(MPI_Count count,
				struct madmpi_array blocklengths,
				const MPI_Count displacements[],
				MPI_Datatype oldtype, MPI_Datatype *newtype,
				bool is_large)
{
	const char *fn = "MPI_Type_create_hindexed";
	struct indexed x = { .combiner = MPI_COMBINER_HINDEXED,
			     .is_large = is_large,
			     .in_bytes = true,
			     .count = count,
			     .blocks = blocklengths,
			     .displs = madmpi_array_count(displacements) };
	int rc = check_blocks(fn, count, &x.blocks);

	return rc ? rc : indexed(fn, &x, oldtype, newtype);
}

/* MPI_Type_create_indexed_block, MPI_Type_create_indexed_block_c */
int madmpi_type_create_indexed_block(MPI_Count count, MPI_Count blocklength,
				     struct madmpi_array displacements,
				     MPI_Datatype oldtype,
				     MPI_Datatype *newtype, bool is_large)
{
	struct indexed x = { .combiner = MPI_COMBINER_INDEXED_BLOCK,
			     .is_large = is_large,
			     .count = count,
			     .block = blocklength,
			     .displs = displacements };

	return indexed("MPI_Type_create_indexed_block", &x, oldtype, newtype);
}

/* MPI_Type_create_hindexed_block, MPI_Type_create_hindexed_block_c */
int madmpi_type_create_hindexed_block(MPI_Count count, MPI_Count blocklength,
				      const MPI_Count displacements[],
				      MPI_Datatype oldtype,
				      MPI_Datatype *newtype, bool is_large)
{
	struct indexed x = { .combiner = MPI_COMBINER_HINDEXED_BLOCK,
			     .is_large = is_large,
			     .in_bytes = true,
			     .count = count,
			     .block = blocklength,
			     .displs = madmpi_array_count(displacements) };

	return indexed("MPI_Type_create_hindexed_block", &x, oldtype, newtype);
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

static struct madmpi_contents *struct_contents(const struct madmpi_part *parts,
					       MPI_Count n, bool is_large)
{
	struct madmpi_contents *c = madmpi_contents_new(
		MPI_COMBINER_STRUCT, is_large,
		(struct madmpi_arguments){
			.counts = 1 + n, .addrs = n, .types = n });

	if (c == NULL)
		return NULL;
	madmpi_contents_count(c, n);
	for (MPI_Count i = 0; i < n; i++)
		madmpi_contents_count(c, parts[i].count);
	for (MPI_Count i = 0; i < n; i++)
		madmpi_contents_addr(c, parts[i].disp);
	for (MPI_Count i = 0; i < n; i++)
		madmpi_contents_type(c, parts[i].type);
	return c;
}

/* MPI_Type_create_struct, MPI_Type_create_struct_c */
int madmpi_type_create_struct(MPI_Count count, struct madmpi_array blocklengths,
			      const MPI_Count displacements[],
			      const MPI_Datatype types[], MPI_Datatype *newtype,
			      bool is_large)
{
	const char *fn = "MPI_Type_create_struct";
	struct madmpi_contents *c = NULL;
	struct madmpi_part *parts;
	struct madmpi_type *t = NULL;
	int rc;

	if (check(fn, count, MPI_BYTE, newtype, &rc) == NULL)
		return rc;
	if (count > 0 && (!blocklengths.at || !displacements || !types))
		return madmpi_null_arg(NULL, fn,
				       !blocklengths.at
					       ? "array_of_blocklengths"
				       : types ? "array_of_displacements"
					       : "array_of_types");
	parts = calloc((size_t)count + 1, sizeof(*parts));
	if (parts == NULL)
		return refuse(fn, -ENOMEM);
	rc = struct_parts(fn, count, blocklengths, displacements, types, parts);
	if (rc == MPI_SUCCESS) {
		rc = madmpi_type_build(parts, count, true, &t);
		if (rc == 0)
			c = struct_contents(parts, count, is_large);
		rc = madmpi_type_finish(fn, rc, t, c, newtype);
	}
	free(parts);
	return rc;
}

/* MPI_Type_create_resized, MPI_Type_create_resized_c */
int madmpi_type_create_resized(MPI_Datatype oldtype, MPI_Count lb,
			       MPI_Count extent, MPI_Datatype *newtype,
			       bool is_large)
{
	const char *fn = "MPI_Type_create_resized";
	struct madmpi_contents *c = NULL;
	struct madmpi_type *old, *t = NULL;
	int rc;

	old = check(fn, 0, oldtype, newtype, &rc);
	if (old == NULL)
		return rc;
	rc = madmpi_type_build_resized(old, lb, extent, &t);
	if (rc == 0)
		c = madmpi_contents_new(
			MPI_COMBINER_RESIZED, is_large,
			(struct madmpi_arguments){ .addrs = 2, .types = 1 });
	if (c != NULL) {
		madmpi_contents_addr(c, lb);
		madmpi_contents_addr(c, extent);
		madmpi_contents_type(c, old);
	}
	return madmpi_type_finish(fn, rc, t, c, newtype);
}

/*
 * The equivalent type that a duplicate of t holds, so that duplicates of
 * duplicates do not hold all before them. It is predefined only if t is: the
 * program frees what MPI_Type_get_contents tells of a type that is not.
 */
static struct madmpi_type *first_of(struct madmpi_type *t)
{
	while (t->contents != NULL &&
	       t->contents->combiner == MPI_COMBINER_DUP &&
	       !madmpi_type_is_predefined(t->contents->types[0]))
		t = t->contents->types[0];
	return t;
}

/* A clone of the type, which remembers that it is one. 0; -errno. */
static int duplicate(struct madmpi_type *of, struct madmpi_type **out)
{
	struct madmpi_type *t, *old = first_of(of);
	struct madmpi_contents *c;

	if (old->depth >= MADMPI_TYPE_DEEPEST)
		return -ELOOP;
	c = madmpi_contents_new(MPI_COMBINER_DUP, false,
				(struct madmpi_arguments){ .types = 1 });
	if (c == NULL)
		return -ENOMEM;
	t = madmpi_type_clone(old);
	if (t == NULL) {
		madmpi_contents_free(c);
		return -ENOMEM;
	}
	madmpi_contents_type(c, old);
	store_relaxed(&t->committed, load_relaxed(&of->committed));
	t->contents = c;
	t->depth++;
	*out = t;
	return 0;
}

/* MPI_Type_dup */
int madmpi_type_dup(MPI_Datatype oldtype, MPI_Datatype *newtype)
{
	const char *fn = "MPI_Type_dup";
	struct madmpi_type *old, *t = NULL;
	int rc;

	old = check(fn, 0, oldtype, newtype, &rc);
	if (old == NULL)
		return rc;
	rc = duplicate(old, &t);
	if (rc < 0)
		return refuse(fn, rc);
	rc = madmpi_attrs_copy(fn, (struct madmpi_bearer){ .type = old },
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
