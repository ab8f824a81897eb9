/*
 * Hashing signatures. An element changes a number, x -> x * mul + add, and so
 * does a sequence of elements: n times the same costs log n steps. The number
 * depends on the sequence alone, not on how types were put together.
 */
#include "datatype/signature.h"

#include <stdio.h>

enum { SEVERAL = -1, NONE = -2 };

static const struct madmpi_kinds nothing = { 1, 0, NONE };

static int64_t number_of(MPI_Datatype constant)
{
	return madmpi_type_of(constant) - madmpi_type_predefined;
}

/* One of both is MPI_PACKED, or both are the same, or several. */
static int64_t only_of(int64_t a, int64_t b)
{
	if (a == NONE || b == number_of(MPI_PACKED))
		return b;
	if (b == NONE || a == number_of(MPI_PACKED) || a == b)
		return a;
	return SEVERAL;
}

static struct madmpi_kinds then(struct madmpi_kinds a, struct madmpi_kinds b)
{
	return (struct madmpi_kinds){ a.mul * b.mul, a.add * b.mul + b.add,
				      only_of(a.only, b.only) };
}

static struct madmpi_kinds times(struct madmpi_kinds a, MPI_Count n)
{
	struct madmpi_kinds all = nothing;

	for (; n > 0; n /= 2, a = then(a, a))
		if (n % 2 != 0)
			all = then(all, a);
	return all;
}

/*
 * Returns the same number for predefined types whose elements fit each other.
 * MPI_CHARACTER is an MPI_CHAR; another type on which no operation is
 * defined fits only itself.
 */
static uint64_t kind_of(const struct madmpi_type *t)
{
	int64_t number = t - madmpi_type_predefined;

	if (number == number_of(MPI_CHARACTER))
		return MADMPI_I8;
	if (t->basic == MADMPI_RAW)
		return MADMPI_BASICS + (uint64_t)number;
	return t->basic;
}

void madmpi_signature_set(struct madmpi_type *t)
{
	const struct madmpi_run *r;

	t->kinds = nothing;
	if (t->nruns == 0 && t->size > 0)
		t->kinds = (struct madmpi_kinds){
			0x9e3779b97f4a7c15u,
			kind_of(t) * 257 + (uint64_t)t->size,
			t - madmpi_type_predefined,
		};
	for (r = t->runs; r < t->runs + t->nruns; r++)
		t->kinds = then(t->kinds, times(r->type->kinds, r->count));
}

/*
 * The first *n basic elements of many t, `most` at most; *n becomes the number
 * of elements that are missing. Of the sub-types only one is cut, and entered:
 * a walk goes down once.
 */
static struct madmpi_kinds first(const struct madmpi_type *t, MPI_Count most,
				 MPI_Count *n)
{
	struct madmpi_kinds all;
	MPI_Count whole;

	if (t->elements == 0)
		return nothing;
	whole = *n / t->elements < most ? *n / t->elements : most;
	*n -= whole * t->elements;
	all = times(t->kinds, whole);
	if (whole == most)
		return all;
	for (uint32_t i = 0; *n > 0 && i < t->nruns; i++)
		all = then(all, first(t->runs[i].type, t->runs[i].count, n));
	return all;
}

static bool fits_anything(const struct madmpi_type *t)
{
	return t->kinds.only == number_of(MPI_PACKED);
}

struct madmpi_signature madmpi_signature_of(const struct madmpi_type *t,
					    MPI_Count n)
{
	return (struct madmpi_signature){
		.kinds = fits_anything(t) ? 0 : times(t->kinds, n).add,
		.elements = n * t->elements,
		.only = t->kinds.only,
	};
}

bool madmpi_signature_fits(const struct madmpi_signature *sent,
			   const struct madmpi_type *t, MPI_Count n)
{
	MPI_Count left = sent->elements;
	struct madmpi_kinds same;

	if (sent->kinds == 0 || fits_anything(t))
		return true;
	same = first(t, n, &left);
	return left == 0 && same.add == sent->kinds;
}

void madmpi_signature_describe(const struct madmpi_signature *s, char *out,
			       size_t room)
{
	if (s->only >= 0 && s->only < MADMPI_TYPE_CONSTANTS &&
	    madmpi_type_predefined[s->only].name != NULL)
		snprintf(out, room, "%lld x %s", (long long)s->elements,
			 madmpi_type_predefined[s->only].name);
	else
		snprintf(out, room, "%lld elements of several types",
			 (long long)s->elements);
}
