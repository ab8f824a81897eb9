/*
 * Hashing signatures. An element changes a number, x -> x * mul + add, and so
 * does a sequence of elements: n times the same costs log n steps. The number
 * depends on the sequence alone, not on how types were put together.
 */
#include "datatype/signature.h"

#include <stdio.h>

enum { SEVERAL = -1, NONE = -2 };

struct change {
	uint64_t mul, add;
};

static const struct change nothing = { 1, 0 };

static struct change then(struct change a, struct change b)
{
	return (struct change){ a.mul * b.mul, a.add * b.mul + b.add };
}

static struct change times(struct change a, MPI_Count n)
{
	struct change all = nothing;

	for (; n > 0; n /= 2, a = then(a, a))
		if (n % 2 != 0)
			all = then(all, a);
	return all;
}

static bool is_basic(const struct madmpi_type *t)
{
	return t->nruns == 0 && t->size > 0;
}

/* A duplicate of a predefined type counts as that. */
static const struct madmpi_type *of_clone(const struct madmpi_type *t)
{
	while (t->original != NULL)
		t = t->original;
	return t;
}

static struct change elements(const struct madmpi_type *t)
{
	struct change all = nothing;

	if (is_basic(t))
		return (struct change){ 0x9e3779b97f4a7c15u,
					(uint64_t)of_clone(t)->basic * 257 +
						(uint64_t)t->size };
	for (uint32_t i = 0; i < t->nruns; i++)
		all = then(all,
			   times(elements(t->runs[i].type), t->runs[i].count));
	return all;
}

/*
 * The first *n basic elements of many t, `most` at most; *n becomes what is
 * left of it. One t that is cut is entered, down to a basic one.
 */
static struct change first(const struct madmpi_type *t, MPI_Count most,
			   MPI_Count *n)
{
	struct change all = nothing;
	MPI_Count whole;

	if (t->elements == 0)
		return all;
	whole = *n / t->elements < most ? *n / t->elements : most;
	*n -= whole * t->elements;
	all = times(elements(t), whole);
	if (whole == most)
		return all;
	for (uint32_t i = 0; i<t->nruns && * n> 0; i++)
		all = then(all, first(t->runs[i].type, t->runs[i].count, n));
	return all;
}

static int64_t packed(void)
{
	return madmpi_type_of(MPI_PACKED) - madmpi_type_predefined;
}

/* The predefined type that all elements are; MPI_PACKED if any is. */
static int64_t only(const struct madmpi_type *t)
{
	int64_t all = NONE, next;

	if (is_basic(t))
		return of_clone(t) - madmpi_type_predefined;
	for (uint32_t i = 0; i < t->nruns; i++) {
		next = only(t->runs[i].type);
		if (next == packed())
			return next;
		all = all == NONE || all == next ? next : SEVERAL;
	}
	return all;
}

struct madmpi_signature madmpi_signature_of(const struct madmpi_type *t,
					    MPI_Count n)
{
	struct madmpi_signature s = { .elements = n * t->elements,
				      .only = only(t) };

	s.kinds = s.only == packed() ? 0 : times(elements(t), n).add;
	return s;
}

bool madmpi_signature_fits(const struct madmpi_signature *sent,
			   const struct madmpi_type *t, MPI_Count n)
{
	MPI_Count left = sent->elements;
	struct change same;

	if (sent->kinds == 0 || only(t) == packed())
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
