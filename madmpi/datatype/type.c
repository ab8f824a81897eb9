/*
 * The life of a datatype, and what can be asked about it.
 */
#include "datatype/type.h"

#include <errno.h>
#include <stdlib.h>

#include "datatype/build.h"
#include "datatype/name.h"
#include "datatype/unnamed.h"

#include "bodies.h"
#include "core/pool.h"
#include "env/error.h"

static struct madmpi_pool pool;

MPI_Datatype madmpi_type_handle(struct madmpi_type *t)
{
	if (t->name == NULL)
		return (MPI_Datatype)t;
	return (MPI_Datatype)((uintptr_t)MPI_DATATYPE_NULL +
			      (uintptr_t)(t - madmpi_type_predefined));
}

void madmpi_type_get(struct madmpi_type *t)
{
	if (t->name == NULL)
		madmpi_object_get(&t->object);
}

/* What only t has; `forget`: the objects that it refers to have gone. */
static void release(struct madmpi_type *t, bool forget)
{
	bool shares = t->original != NULL;

	madmpi_attrs_forget(&t->attrs);
	free(t->given);
	if (!shares || t->contents != t->original->contents)
		(forget ? madmpi_contents_forget
			: madmpi_contents_free)(t->contents);
	if (shares)
		return;
	for (uint32_t i = 0; i < t->nruns && !forget; i++)
		madmpi_type_put(t->runs[i].type);
	free(t->runs);
	free(t->steps);
	free(t->places);
}

void madmpi_type_put(struct madmpi_type *t)
{
	struct madmpi_type *original;

	if (t->name != NULL || !madmpi_object_put(&t->object))
		return;
	original = t->original;
	release(t, false);
	madmpi_pool_put(&pool, t);
	if (original != NULL)
		madmpi_type_put(original);
}

struct madmpi_type *madmpi_type_new(void)
{
	struct madmpi_type *t = madmpi_pool_get(&pool);

	if (t == NULL)
		return NULL;
	store_relaxed(&t->committed, false);
	t->sets_lb = t->sets_ub = false;
	t->basic = MADMPI_NOT_BASIC;
	t->name = NULL;
	t->given = NULL;
	t->size = t->lb = t->ub = t->true_lb = t->true_ub = 0;
	t->elements = t->external = 0;
	t->align = 1;
	t->depth = 0;
	t->nsteps = t->nruns = 0;
	t->steps = NULL;
	t->places = NULL;
	t->runs = NULL;
	t->original = NULL;
	t->contents = NULL;
	t->attrs.newest = NULL;
	return t;
}

struct madmpi_type *madmpi_type_clone(struct madmpi_type *t)
{
	struct madmpi_type *c = madmpi_type_new(), *owner = t;

	if (c == NULL)
		return NULL;
	/* Clones of clones do not hold each other. */
	while (owner->original != NULL &&
	       owner->original->contents == t->contents)
		owner = owner->original;
	store_relaxed(&c->committed, load_relaxed(&t->committed));
	c->sets_lb = t->sets_lb;
	c->sets_ub = t->sets_ub;
	c->size = t->size;
	c->lb = t->lb;
	c->ub = t->ub;
	c->true_lb = t->true_lb;
	c->true_ub = t->true_ub;
	c->elements = t->elements;
	c->kinds = t->kinds;
	c->external = t->external;
	c->align = t->align;
	c->depth = t->depth;
	c->nsteps = t->nsteps;
	c->steps = t->steps;
	c->places = t->places;
	c->nruns = t->nruns;
	c->runs = t->runs;
	c->contents = t->contents;
	c->original = owner;
	madmpi_type_get(owner);
	return c;
}

MPI_Count madmpi_type_elements(const struct madmpi_type *t, MPI_Count bytes)
{
	MPI_Count n, here, part;

	if (t->size == 0)
		return bytes == 0 ? 0 : -1;
	n = bytes / t->size * t->elements;
	bytes %= t->size;
	if (bytes > 0 && t->nruns == 0)
		return -1;
	for (uint32_t i = 0; i < t->nruns && bytes > 0; i++) {
		here = t->runs[i].count * t->runs[i].type->size;
		if (here > bytes)
			here = bytes;
		part = madmpi_type_elements(t->runs[i].type, here);
		if (part < 0)
			return -1;
		n += part;
		bytes -= here;
	}
	return n;
}

int madmpi_type_bytes_of_elements(const struct madmpi_type *t, MPI_Count n,
				  MPI_Count *out)
{
	MPI_Count bytes, here, part, in_run;

	if (t->elements == 0)
		return n == 0 ? (*out = 0) : -EOVERFLOW;
	if (__builtin_mul_overflow(n / t->elements, t->size, &bytes))
		return -EOVERFLOW;
	n %= t->elements;
	for (uint32_t i = 0; i < t->nruns && n > 0; i++) {
		in_run = t->runs[i].count * t->runs[i].type->elements;
		here = n < in_run ? n : in_run;
		if (madmpi_type_bytes_of_elements(t->runs[i].type, here,
						  &part) < 0 ||
		    __builtin_add_overflow(bytes, part, &bytes))
			return -EOVERFLOW;
		n -= here;
	}
	*out = bytes;
	return 0;
}

static int bad_type(const char *function, MPI_Datatype handle)
{
	return madmpi_error(NULL, MPI_ERR_TYPE, function,
			    "datatype %p is not a datatype", (void *)handle);
}

static int null_out(const char *function, const char *name)
{
	return madmpi_null_arg(NULL, function, name);
}

/* MPI_Type_commit */
int madmpi_type_commit(MPI_Datatype *datatype)
{
	struct madmpi_type *t;

	if (datatype == NULL)
		return null_out("MPI_Type_commit", "datatype");
	t = madmpi_type_of(*datatype);
	if (t == NULL)
		return bad_type("MPI_Type_commit", *datatype);
	store_relaxed(&t->committed, true);
	return MPI_SUCCESS;
}

/* MPI_Type_free */
int madmpi_type_free(MPI_Datatype *datatype)
{
	struct madmpi_type *t;
	int rc;

	if (datatype == NULL)
		return null_out("MPI_Type_free", "datatype");
	t = madmpi_type_of(*datatype);
	if (t == NULL || madmpi_object_is_let_go(&t->object))
		return bad_type("MPI_Type_free", *datatype);
	if (madmpi_type_is_predefined(t))
		return madmpi_error(NULL, MPI_ERR_TYPE, "MPI_Type_free",
				    "%s is predefined and cannot be freed",
				    t->name ? t->name : "the datatype");
	rc = madmpi_attrs_delete("MPI_Type_free",
				 (struct madmpi_bearer){ .type = t });
	if (rc != MPI_SUCCESS)
		return rc;
	madmpi_object_let_go(&t->object);
	madmpi_type_put(t);
	*datatype = MPI_DATATYPE_NULL;
	return MPI_SUCCESS;
}

/* MPI_Type_size, MPI_Type_size_c, MPI_Type_size_x */
int madmpi_type_size(MPI_Datatype datatype, MPI_Count *size)
{
	struct madmpi_type *t = madmpi_type_of(datatype);

	if (t == NULL)
		return bad_type("MPI_Type_size", datatype);
	if (size == NULL)
		return null_out("MPI_Type_size", "size");
	*size = t->size;
	return MPI_SUCCESS;
}

/* MPI_Type_get_extent, MPI_Type_get_extent_c, MPI_Type_get_extent_x */
int madmpi_type_get_extent(MPI_Datatype datatype, MPI_Count *lb,
			   MPI_Count *extent)
{
	struct madmpi_type *t = madmpi_type_of(datatype);

	if (t == NULL)
		return bad_type("MPI_Type_get_extent", datatype);
	if (lb == NULL || extent == NULL)
		return null_out("MPI_Type_get_extent", lb ? "extent" : "lb");
	*lb = t->lb;
	*extent = madmpi_type_extent(t);
	return MPI_SUCCESS;
}

/* MPI_Type_get_true_extent, MPI_Type_get_true_extent_c, ..._x */
int madmpi_type_get_true_extent(MPI_Datatype datatype, MPI_Count *true_lb,
				MPI_Count *true_extent)
{
	struct madmpi_type *t = madmpi_type_of(datatype);

	if (t == NULL)
		return bad_type("MPI_Type_get_true_extent", datatype);
	if (true_lb == NULL || true_extent == NULL)
		return null_out("MPI_Type_get_true_extent",
				true_lb ? "true_extent" : "true_lb");
	*true_lb = t->true_lb;
	*true_extent = t->true_ub - t->true_lb;
	return MPI_SUCCESS;
}

void madmpi_type_init(void)
{
	madmpi_pool_init(&pool, MADMPI_TYPE, sizeof(struct madmpi_type));
	madmpi_type_fill_predefined();
}

/* Types the program did not free. */
static void reap(struct madmpi_object *o)
{
	release(container_of(o, struct madmpi_type, object), true);
}

void madmpi_type_exit(void)
{
	madmpi_pool_walk(&pool, reap);
	madmpi_pool_exit(&pool);
	madmpi_type_forget_names();
	madmpi_type_forget_unnamed();
}
