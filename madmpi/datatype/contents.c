/*
 * The arguments that a type was made with, kept and told.
 *
 * A derived type that was an argument is told as a new object with the same
 * program and contents, which the program frees; its attributes and name are
 * not those of the argument.
 */
#include "datatype/contents.h"

#include <stdlib.h>

#include "bodies.h"
#include "core/enter.h"
#include "datatype/type.h"
#include "env/error.h"

struct madmpi_contents *madmpi_contents_new(int combiner, bool is_large,
					    struct madmpi_arguments n)
{
	MPI_Count ints = n.ints + (is_large ? 0 : n.counts);
	MPI_Count addrs = is_large ? 0 : n.addrs;
	MPI_Count counts = is_large ? n.counts + n.addrs : 0;
	struct madmpi_contents *c;
	char *at;

	/* The longest lists come with arrays of the program's: no overflow. */
	c = calloc(1, sizeof(*c) + (size_t)n.types * sizeof(*c->types) +
			      (size_t)addrs * sizeof(*c->addrs) +
			      (size_t)counts * sizeof(*c->counts) +
			      (size_t)ints * sizeof(*c->ints));
	if (c == NULL)
		return NULL;
	c->combiner = combiner;
	c->is_large = is_large;
	at = (char *)(c + 1);
	c->types = (void *)at;
	at += (size_t)n.types * sizeof(*c->types);
	c->addrs = (void *)at;
	at += (size_t)addrs * sizeof(*c->addrs);
	c->counts = (void *)at;
	at += (size_t)counts * sizeof(*c->counts);
	c->ints = (void *)at;
	return c;
}

void madmpi_contents_int(struct madmpi_contents *c, int value)
{
	c->ints[c->nints++] = value;
}

void madmpi_contents_count(struct madmpi_contents *c, MPI_Count value)
{
	if (c->is_large)
		c->counts[c->ncounts++] = value;
	else
		c->ints[c->nints++] = (int)value;
}

void madmpi_contents_addr(struct madmpi_contents *c, MPI_Count value)
{
	if (c->is_large)
		c->counts[c->ncounts++] = value;
	else
		c->addrs[c->naddrs++] = value;
}

void madmpi_contents_type(struct madmpi_contents *c, struct madmpi_type *t)
{
	madmpi_type_get(t);
	c->types[c->ntypes++] = t;
}

void madmpi_contents_ints(struct madmpi_contents *c, const int *a, MPI_Count n)
{
	for (MPI_Count i = 0; i < n; i++)
		madmpi_contents_int(c, a[i]);
}

void madmpi_contents_counts(struct madmpi_contents *c, struct madmpi_array a,
			    MPI_Count n)
{
	for (MPI_Count i = 0; i < n; i++)
		madmpi_contents_count(c, madmpi_array_get(a, (size_t)i));
}

void madmpi_contents_addrs(struct madmpi_contents *c, const MPI_Count *a,
			   MPI_Count n)
{
	for (MPI_Count i = 0; i < n; i++)
		madmpi_contents_addr(c, a[i]);
}

void madmpi_contents_free(struct madmpi_contents *c)
{
	for (MPI_Count i = 0; c != NULL && i < c->ntypes; i++)
		madmpi_type_put(c->types[i]);
	madmpi_contents_forget(c);
}

void madmpi_contents_forget(struct madmpi_contents *c)
{
	free(c);
}

static int check_type(const char *fn, MPI_Datatype handle,
		      struct madmpi_type **out)
{
	*out = madmpi_type_of(handle);
	if (*out != NULL)
		return MPI_SUCCESS;
	return madmpi_error(NULL, MPI_ERR_TYPE, fn,
			    "datatype %p is not a datatype", (void *)handle);
}

/* The forms with int cannot tell of arguments that are no int. */
static int refuse_large(const char *fn, const struct madmpi_contents *c)
{
	if (c == NULL || c->ncounts == 0)
		return MPI_SUCCESS;
	return madmpi_error(NULL, MPI_ERR_TYPE, fn,
			    "the datatype was made by a large-count function: "
			    "%s_c tells of it",
			    fn);
}

/* MPI_Type_get_envelope_c */
int madmpi_type_get_envelope_c(MPI_Datatype datatype, MPI_Count *num_integers,
			       MPI_Count *num_addresses,
			       MPI_Count *num_large_counts,
			       MPI_Count *num_datatypes, int *combiner)
{
	const char *fn = "MPI_Type_get_envelope_c";
	static const struct madmpi_contents named = {
		.combiner = MPI_COMBINER_NAMED,
	};
	const struct madmpi_contents *c;
	struct madmpi_type *t;
	int rc = check_type(fn, datatype, &t);

	if (rc != MPI_SUCCESS)
		return rc;
	if (num_integers == NULL || num_addresses == NULL ||
	    num_large_counts == NULL || num_datatypes == NULL ||
	    combiner == NULL)
		return madmpi_null_arg(NULL, fn, "a result");
	c = t->contents != NULL ? t->contents : &named;
	*num_integers = c->nints;
	*num_addresses = c->naddrs;
	*num_large_counts = c->ncounts;
	*num_datatypes = c->ntypes;
	*combiner = c->combiner;
	return MPI_SUCCESS;
}

/* MPI_Type_get_envelope */
int madmpi_type_get_envelope(MPI_Datatype datatype, int *num_integers,
			     int *num_addresses, int *num_datatypes,
			     int *combiner)
{
	const char *fn = "MPI_Type_get_envelope";
	MPI_Count ints, addrs, counts, types;
	struct madmpi_type *t;
	int rc = check_type(fn, datatype, &t);

	if (rc == MPI_SUCCESS)
		rc = refuse_large(fn, t->contents);
	if (rc != MPI_SUCCESS)
		return rc;
	if (num_integers == NULL || num_addresses == NULL ||
	    num_datatypes == NULL || combiner == NULL)
		return madmpi_null_arg(NULL, fn, "a result");
	rc = madmpi_type_get_envelope_c(datatype, &ints, &addrs, &counts,
					&types, combiner);
	/* Lists of up to 2^31 - 1 elements each; ints may be two of them. */
	if (rc == MPI_SUCCESS)
		rc = madmpi_narrow_fit(fn, ints, num_integers);
	if (rc == MPI_SUCCESS)
		rc = madmpi_narrow_fit(fn, addrs, num_addresses);
	if (rc == MPI_SUCCESS)
		rc = madmpi_narrow_fit(fn, types, num_datatypes);
	return rc;
}

/* The types of c, as the program's. On failure none is left. */
static int tell_types(const char *fn, const struct madmpi_contents *c,
		      MPI_Datatype out[])
{
	struct madmpi_type *t;

	for (MPI_Count i = 0; i < c->ntypes; i++) {
		t = c->types[i];
		if (!madmpi_type_is_predefined(t))
			t = madmpi_type_clone(t);
		if (t != NULL) {
			out[i] = madmpi_type_handle(t);
			continue;
		}
		while (i-- > 0)
			if (!madmpi_type_is_predefined(c->types[i]))
				madmpi_type_put(madmpi_type_of(out[i]));
		return madmpi_error(NULL, MPI_ERR_NO_MEM, fn,
				    "no memory for a datatype");
	}
	return MPI_SUCCESS;
}

static int check_room(const char *fn, const char *what, MPI_Count room,
		      MPI_Count n, const void *array)
{
	if (room < n)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "max_%s is %lld, but there are %lld", what,
				    (long long)room, (long long)n);
	if (n > 0 && array == NULL)
		return madmpi_error(NULL, MPI_ERR_ARG, fn,
				    "array_of_%s is a null pointer", what);
	return MPI_SUCCESS;
}

/* What both forms have in common; room for large counts may be 0. */
static int contents(const char *fn, const struct madmpi_contents *c,
		    struct madmpi_arguments room, int ints[], MPI_Aint addrs[],
		    MPI_Count counts[], MPI_Datatype types[])
{
	int rc = check_room(fn, "integers", room.ints, c->nints, ints);

	if (rc == MPI_SUCCESS)
		rc = check_room(fn, "addresses", room.addrs, c->naddrs, addrs);
	if (rc == MPI_SUCCESS)
		rc = check_room(fn, "large_counts", room.counts, c->ncounts,
				counts);
	if (rc == MPI_SUCCESS)
		rc = check_room(fn, "datatypes", room.types, c->ntypes, types);
	if (rc == MPI_SUCCESS)
		rc = tell_types(fn, c, types);
	if (rc != MPI_SUCCESS)
		return rc;
	for (MPI_Count i = 0; i < c->nints; i++)
		ints[i] = c->ints[i];
	for (MPI_Count i = 0; i < c->naddrs; i++)
		addrs[i] = c->addrs[i];
	for (MPI_Count i = 0; i < c->ncounts; i++)
		counts[i] = c->counts[i];
	return MPI_SUCCESS;
}

static int check_contents(const char *fn, MPI_Datatype datatype,
			  struct madmpi_type **t)
{
	int rc = check_type(fn, datatype, t);

	if (rc != MPI_SUCCESS || (*t)->contents != NULL)
		return rc;
	return madmpi_error(NULL, MPI_ERR_TYPE, fn,
			    "%s is predefined and has no contents", (*t)->name);
}

/* MPI_Type_get_contents */
int madmpi_type_get_contents(MPI_Datatype datatype, int max_integers,
			     int max_addresses, int max_datatypes,
			     int array_of_integers[],
			     MPI_Aint array_of_addresses[],
			     MPI_Datatype array_of_datatypes[])
{
	const char *fn = "MPI_Type_get_contents";
	struct madmpi_arguments room = { .ints = max_integers,
					 .addrs = max_addresses,
					 .types = max_datatypes };
	struct madmpi_type *t;
	int rc = check_contents(fn, datatype, &t);

	if (rc == MPI_SUCCESS)
		rc = refuse_large(fn, t->contents);
	if (rc != MPI_SUCCESS)
		return rc;
	return contents(fn, t->contents, room, array_of_integers,
			array_of_addresses, NULL, array_of_datatypes);
}

/* MPI_Type_get_contents_c */
int madmpi_type_get_contents_c(MPI_Datatype datatype, MPI_Count max_integers,
			       MPI_Count max_addresses,
			       MPI_Count max_large_counts,
			       MPI_Count max_datatypes, int array_of_integers[],
			       MPI_Aint array_of_addresses[],
			       MPI_Count array_of_large_counts[],
			       MPI_Datatype array_of_datatypes[])
{
	const char *fn = "MPI_Type_get_contents_c";
	struct madmpi_arguments room = { .ints = max_integers,
					 .counts = max_large_counts,
					 .addrs = max_addresses,
					 .types = max_datatypes };
	struct madmpi_type *t;
	int rc = check_contents(fn, datatype, &t);

	if (rc != MPI_SUCCESS)
		return rc;
	return contents(fn, t->contents, room, array_of_integers,
			array_of_addresses, array_of_large_counts,
			array_of_datatypes);
}
