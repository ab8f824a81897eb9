/*
 * Types found by what they can hold: MPI_Type_match_size, and the predefined
 * types without a name, which are made when they are first asked for.
 *
 * Fortran's kinds are those of IEEE: they have the names of MPI_REAL4 and so
 * on, which is where precision and range are looked up.
 */
#include "datatype/unnamed.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include <marcel/marcel.h>

#include "bodies.h"
#include "datatype/build.h"
#include "env/error.h"

struct kind {
	MPI_Datatype type;
	int precision, range; /* decimal digits; decimal exponent */
};

enum { NEVER = -1 }; /* chosen: few compilers have it */

static const struct kind integers[] = {
	{ MPI_INTEGER1, 0, 2 },   { MPI_INTEGER2, 0, 4 },
	{ MPI_INTEGER4, 0, 9 },   { MPI_INTEGER8, 0, 18 },
	{ MPI_INTEGER16, 0, 38 },
};

static const struct kind reals[] = {
	{ MPI_REAL2, NEVER, NEVER },
	{ MPI_REAL4, 6, 37 },
	{ MPI_REAL8, 15, 307 },
	{ MPI_REAL16, 33, 4931 },
};

static const struct kind complexes[] = {
	{ MPI_COMPLEX4, NEVER, NEVER },
	{ MPI_COMPLEX8, 6, 37 },
	{ MPI_COMPLEX16, 15, 307 },
	{ MPI_COMPLEX32, 33, 4931 },
};

static const struct kind logicals[] = {
	{ MPI_LOGICAL1, 0, 0 }, { MPI_LOGICAL2, 0, 0 },  { MPI_LOGICAL4, 0, 0 },
	{ MPI_LOGICAL8, 0, 0 }, { MPI_LOGICAL16, 0, 0 },
};

static const struct class
{
	int class;
	size_t n;
	const struct kind *kinds;
} classes[] = {
	{ MPI_TYPECLASS_INTEGER, BASE_ARRAY_LEN(integers), integers },
	{ MPI_TYPECLASS_REAL, BASE_ARRAY_LEN(reals), reals },
	{ MPI_TYPECLASS_COMPLEX, BASE_ARRAY_LEN(complexes), complexes },
	{ MPIX_TYPECLASS_LOGICAL, BASE_ARRAY_LEN(logicals), logicals },
};

static const struct class *class_of(int typeclass)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(classes); i++)
		if (classes[i].class == typeclass)
			return &classes[i];
	return NULL;
}

/* MPI_Type_match_size */
int madmpi_type_match_size(int typeclass, int size, MPI_Datatype *datatype)
{
	const char *fn = "MPI_Type_match_size";
	const struct class *c = class_of(typeclass);

	if (datatype == NULL)
		return madmpi_null_arg(NULL, fn, "datatype");
	if (c == NULL)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "typeclass is %d, which is no class",
				    typeclass);
	for (size_t i = 0; i < c->n; i++) {
		*datatype = c->kinds[i].type;
		if (madmpi_type_of(*datatype)->size == size)
			return MPI_SUCCESS;
	}
	*datatype = MPI_DATATYPE_NULL;
	return madmpi_error(NULL, MPI_ERR_ARG, fn,
			    "no type of the class has a size of %d", size);
}

/*
 * The types that were made so far, and stay. One is found by its combiner and
 * its arguments: precision and range, or the types of value and index.
 */
struct sought {
	int combiner;
	int n, args[2];
	MPI_Datatype types[2];
};

enum { MORE = 32 };

static marcel_mutex_t mutex = MARCEL_MUTEX_INITIALIZER;
static struct madmpi_type **made; /* l: */
static unsigned nmade;            /* l: */

static bool is_sought(const struct madmpi_contents *c, const struct sought *s)
{
	if (c->combiner != s->combiner)
		return false;
	for (int i = 0; i < c->nints; i++)
		if (c->ints[i] != s->args[i])
			return false;
	for (int i = 0; i < c->ntypes; i++)
		if (madmpi_type_handle(c->types[i]) != s->types[i])
			return false;
	return true;
}

/* With the mutex held. NULL: there is none yet. */
static struct madmpi_type *find(const struct sought *s)
{
	for (unsigned i = 0; i < nmade; i++)
		if (is_sought(made[i]->contents, s))
			return made[i];
	return NULL;
}

/* With the mutex held: room for one more. 0 or -ENOMEM. */
static int make_room(void)
{
	struct madmpi_type **larger;

	if (nmade % MORE != 0)
		return 0;
	larger = realloc(made, (nmade + MORE) * sizeof(*made));
	if (larger == NULL)
		return -ENOMEM;
	made = larger;
	return 0;
}

static struct madmpi_contents *contents_of(const struct sought *s)
{
	bool is_pair = s->combiner == MPI_COMBINER_VALUE_INDEX;
	struct madmpi_contents *c = madmpi_contents_new(
		s->combiner, false,
		(struct madmpi_arguments){ .ints = s->n,
					   .types = is_pair ? 2 : 0 });

	if (c == NULL)
		return NULL;
	madmpi_contents_ints(c, s->args, s->n);
	for (int i = 0; is_pair && i < 2; i++)
		madmpi_contents_type(c, madmpi_type_of(s->types[i]));
	return c;
}

/* With the mutex held: the type that is sought, of these parts. */
static int make(const struct sought *s, const struct madmpi_part *parts, int n,
		enum madmpi_basic basic, struct madmpi_type **out)
{
	struct madmpi_type *t;
	int rc = make_room();

	if (rc == 0)
		rc = madmpi_type_build(parts, n, true, &t);
	if (rc < 0)
		return rc;
	t->contents = contents_of(s);
	if (t->contents == NULL) {
		madmpi_type_put(t);
		return -ENOMEM;
	}
	t->basic = basic;
	store_relaxed(&t->committed, true);
	made[nmade++] = *out = t;
	return 0;
}

static int find_or_make(const char *fn, const struct sought *s,
			const struct madmpi_part *parts, int n,
			enum madmpi_basic basic, MPI_Datatype *out)
{
	struct madmpi_type *t;
	int rc = 0;

	marcel_mutex_lock(&mutex);
	t = find(s);
	if (t == NULL)
		rc = make(s, parts, n, basic, &t);
	marcel_mutex_unlock(&mutex);
	if (rc < 0)
		return madmpi_error_errno(NULL, rc, fn, "new datatype");
	*out = madmpi_type_handle(t);
	return MPI_SUCCESS;
}

/* Fortran's type of the smallest kind that has this precision and range. */
static int create_f90(const char *fn, int combiner, int typeclass, int n,
		      int precision, int range, MPI_Datatype *newtype)
{
	const struct class *c = class_of(typeclass);
	struct sought s = { .combiner = combiner,
			    .n = n,
			    .args = { n == 1 ? range : precision, range } };
	struct madmpi_part part = { .count = 1 };

	if (newtype == NULL)
		return madmpi_null_arg(NULL, fn, "newtype");
	if (precision == MPI_UNDEFINED && range == MPI_UNDEFINED)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "neither precision nor range is defined");
	for (size_t i = 0; i < c->n; i++) {
		if (c->kinds[i].range == NEVER ||
		    precision > c->kinds[i].precision ||
		    range > c->kinds[i].range)
			continue;
		part.type = madmpi_type_of(c->kinds[i].type);
		return find_or_make(fn, &s, &part, 1, part.type->basic,
				    newtype);
	}
	*newtype = MPI_DATATYPE_NULL;
	return madmpi_error(NULL, MPI_ERR_ARG, fn,
			    "no type has precision %d and range %d", precision,
			    range);
}

/* MPI_Type_create_f90_integer */
int madmpi_type_create_f90_integer(int r, MPI_Datatype *newtype)
{
	return create_f90("MPI_Type_create_f90_integer",
			  MPI_COMBINER_F90_INTEGER, MPI_TYPECLASS_INTEGER, 1,
			  MPI_UNDEFINED, r, newtype);
}

/* MPI_Type_create_f90_real */
int madmpi_type_create_f90_real(int p, int r, MPI_Datatype *newtype)
{
	return create_f90("MPI_Type_create_f90_real", MPI_COMBINER_F90_REAL,
			  MPI_TYPECLASS_REAL, 2, p, r, newtype);
}

/* MPI_Type_create_f90_complex */
int madmpi_type_create_f90_complex(int p, int r, MPI_Datatype *newtype)
{
	return create_f90("MPI_Type_create_f90_complex",
			  MPI_COMBINER_F90_COMPLEX, MPI_TYPECLASS_COMPLEX, 2, p,
			  r, newtype);
}

/* The pair of these two that has a name, or NULL. */
static struct madmpi_type *named_pair(const struct madmpi_type *value,
				      const struct madmpi_type *index)
{
	for (int i = 0; i < MADMPI_TYPE_CONSTANTS; i++) {
		struct madmpi_type *t = &madmpi_type_predefined[i];

		if (t->nruns == 2 && t->runs[0].type == value &&
		    t->runs[1].type == index)
			return t;
	}
	return NULL;
}

/* MPI_Type_get_value_index */
int madmpi_type_get_value_index(MPI_Datatype value_type,
				MPI_Datatype index_type,
				MPI_Datatype *pair_type)
{
	const char *fn = "MPI_Type_get_value_index";
	struct sought s = { .combiner = MPI_COMBINER_VALUE_INDEX,
			    .types = { value_type, index_type } };
	struct madmpi_type *value = madmpi_type_of(value_type), *named;
	struct madmpi_type *index = madmpi_type_of(index_type);
	struct madmpi_part parts[2] = { { 0, 1, value }, { 0, 1, index } };

	if (value == NULL || index == NULL)
		return madmpi_error(
			NULL, MPI_ERR_TYPE, fn, "%s %p is not a datatype",
			value == NULL ? "value_type" : "index_type",
			(void *)(value == NULL ? value_type : index_type));
	if (pair_type == NULL)
		return madmpi_null_arg(NULL, fn, "pair_type");
	named = named_pair(value, index);
	*pair_type = named ? madmpi_type_handle(named) : MPI_DATATYPE_NULL;
	if (named != NULL || value->name == NULL || index->name == NULL ||
	    !madmpi_basic_is_number(value->basic) ||
	    !madmpi_basic_is_integer(index->basic))
		return MPI_SUCCESS;
	parts[1].disp =
		(value->size + index->align - 1) / index->align * index->align;
	return find_or_make(fn, &s, parts, 2, MADMPI_VALUE_INDEX, pair_type);
}

void madmpi_type_forget_unnamed(void)
{
	free(made);
	made = NULL;
	nmade = 0;
}
