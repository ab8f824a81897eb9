/*
 * From parts to the program of a type. Steps that continue each other become
 * one, loops of one block lose their loop, empty parts disappear.
 *
 * A step that repeats another type's program points into that program; the
 * run of the signature holds the reference that keeps it.
 */
#include "datatype/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "datatype/signature.h"

static MPI_Count lower(MPI_Count a, MPI_Count b)
{
	return a < b ? a : b;
}

static MPI_Count upper(MPI_Count a, MPI_Count b)
{
	return a > b ? a : b;
}

/* Blocks at equal distances. */
static bool is_regular(const struct madmpi_step *s)
{
	return s->body == NULL && s->places == NULL;
}

/* Repetitions at equal distances, which `stride` further on goes on with. */
static bool goes_on(const struct madmpi_step *s, MPI_Aint stride)
{
	MPI_Count all;

	return s->places == NULL &&
	       !__builtin_mul_overflow(s->count, s->stride, &all) &&
	       all == stride;
}

struct madmpi_step madmpi_type_step(const struct madmpi_type *t, MPI_Count disp,
				    MPI_Count count)
{
	MPI_Count extent = madmpi_type_extent(t);
	struct madmpi_step s = { .disp = disp,
				 .stride = extent,
				 .count = count,
				 .size = t->size,
				 .body = t->steps,
				 .nbody = t->nsteps };
	const struct madmpi_step *only = t->steps;

	if (madmpi_type_is_flat(t, count)) {
		s.disp += only->disp;
		s.size *= s.count;
		s.count = 1;
		s.body = NULL;
		s.nbody = 0;
	} else if (t->nsteps == 1 && count == 1) {
		s = *only;
		s.disp += disp;
	} else if (t->nsteps == 1 && only->count == 1) {
		s.disp += only->disp; /* single ones, a stride apart */
		s.body = only->body;
		s.nbody = only->nbody;
	} else if (t->nsteps == 1 && goes_on(only, extent)) {
		s = *only; /* a regular pattern that goes on regularly */
		s.disp += disp;
		s.count *= count;
	}
	return s;
}

static bool is_block(const struct madmpi_step *s)
{
	return s->body == NULL && s->count == 1;
}

/*
 * Append s to a list of n steps. A block that continues the last one joins it,
 * and one that keeps the distance of the blocks before joins their loop.
 */
static uint32_t append(struct madmpi_step *list, uint32_t n,
		       struct madmpi_step s)
{
	struct madmpi_step *last = n > 0 ? &list[n - 1] : NULL;
	MPI_Aint end; /* where the last block of the last step begins */

	if (last != NULL && is_regular(last) && is_block(&s)) {
		end = last->disp + (last->count - 1) * last->stride;
		if (end + last->size == s.disp) {
			if (last->count == 1) {
				last->size += s.size;
				return n;
			}
			last->count--; /* it leaves the loop for the larger */
			s.disp = end;
			s.size += last->size;
		} else if (s.size == last->size &&
			   (last->count == 1 || s.disp == end + last->stride)) {
			last->stride = s.disp - end;
			last->count++;
			return n;
		}
	}
	s.before = last ? last->before + last->count * last->size : 0;
	list[n] = s;
	return n + 1;
}

/* Bounds that move by disp and then `span` further: the hull of both. */
static bool move_overflows(MPI_Count disp, MPI_Count span, MPI_Count *low,
			   MPI_Count *high)
{
	return __builtin_add_overflow(*low, disp, low) ||
	       __builtin_add_overflow(*high, disp, high) ||
	       __builtin_add_overflow(*low, lower(span, 0), low) ||
	       __builtin_add_overflow(*high, upper(span, 0), high);
}

/* Where the bounds of a type come from: the higher outranks the lower. */
enum rank { NOWHERE, DATA, SET };

struct ranks {
	enum rank lb, ub;
};

/* MPI_LB says nothing of the upper bound, and MPI_UB nothing of the lower. */
static struct ranks ranks_of(const struct madmpi_type *t)
{
	bool is_marker = t->size == 0 && (t->sets_lb || t->sets_ub);
	enum rank otherwise = is_marker ? NOWHERE : DATA;

	return (struct ranks){ t->sets_lb ? SET : otherwise,
			       t->sets_ub ? SET : otherwise };
}

/* What a part adds to the bounds and the counts. 0 or -EOVERFLOW. */
static int add_bounds(struct madmpi_type *t, const struct madmpi_part *p,
		      struct ranks *have)
{
	struct ranks more = ranks_of(p->type);
	const struct madmpi_type *e = p->type;
	MPI_Count extent = madmpi_type_extent(e), span, x;
	MPI_Count low = e->lb, high = e->ub;

	if (__builtin_mul_overflow(extent, p->count - 1, &span) ||
	    move_overflows(p->disp, span, &low, &high) ||
	    __builtin_mul_overflow(e->size, p->count, &x) ||
	    __builtin_add_overflow(t->size, x, &t->size))
		return -EOVERFLOW;
	t->elements += p->count * e->elements;
	t->external += p->count * e->external; /* never more than the size */
	if (e->align > t->align)
		t->align = e->align;
	if (more.lb >= have->lb && more.lb != NOWHERE)
		t->lb = more.lb > have->lb ? low : lower(t->lb, low);
	if (more.ub >= have->ub && more.ub != NOWHERE)
		t->ub = more.ub > have->ub ? high : upper(t->ub, high);
	have->lb = more.lb > have->lb ? more.lb : have->lb;
	have->ub = more.ub > have->ub ? more.ub : have->ub;
	t->sets_lb = have->lb == SET;
	t->sets_ub = have->ub == SET;
	return 0;
}

/* 0 or -ELOOP. */
static int add_depth(struct madmpi_type *t, const struct madmpi_type *part)
{
	if (part->depth >= MADMPI_TYPE_DEEPEST)
		return -ELOOP;
	if (part->depth >= t->depth)
		t->depth = part->depth + 1;
	return 0;
}

/* After add_bounds(). 0 or -EOVERFLOW. */
static int add_true_bounds(struct madmpi_type *t, const struct madmpi_part *p,
			   bool first)
{
	const struct madmpi_type *e = p->type;
	MPI_Count span = madmpi_type_extent(e) * (p->count - 1);
	MPI_Count low = e->true_lb, high = e->true_ub;

	if (move_overflows(p->disp, span, &low, &high))
		return -EOVERFLOW;
	t->true_lb = first ? low : lower(t->true_lb, low);
	t->true_ub = first ? high : upper(t->true_ub, high);
	return 0;
}

/* Whether the distance between two of its bytes may not fit. */
static bool is_too_wide(const struct madmpi_type *t)
{
	MPI_Count x;

	return __builtin_sub_overflow(t->ub, t->lb, &x) ||
	       __builtin_sub_overflow(t->true_ub, t->true_lb, &x);
}

/* The signature: parts of the same type that follow each other are one run. */
static void add_run(struct madmpi_type *t, const struct madmpi_part *p)
{
	if (t->nruns > 0 && t->runs[t->nruns - 1].type == p->type) {
		t->runs[t->nruns - 1].count += p->count;
		return;
	}
	madmpi_type_get(p->type);
	t->runs[t->nruns++] = (struct madmpi_run){ p->count, p->type };
}

enum {
	LISTED = 8, /* blocks from which on they are listed ... */
	LOOSE = 3   /* ... unless more of them are a step of their own */
};

/* How many steps from this one on may be listed together, and their blocks. */
static uint32_t alike(const struct madmpi_step *s, uint32_t n,
		      MPI_Count *blocks)
{
	uint32_t i;

	*blocks = 0;
	for (i = 0; i < n && is_regular(&s[i]) && s[i].count <= LOOSE &&
		    s[i].size == s->size;
	     i++)
		*blocks += s[i].count;
	return i;
}

/* The blocks of n steps as one. Returns where the next places go. */
static MPI_Aint *list(const struct madmpi_step *s, uint32_t n, MPI_Count blocks,
		      MPI_Aint *places, struct madmpi_step *out)
{
	struct madmpi_step all = { .disp = s->disp,
				   .count = blocks,
				   .size = s->size,
				   .before = s->before,
				   .places = places };

	for (uint32_t i = 0; i < n; i++)
		for (MPI_Count k = 0; k < s[i].count; k++)
			*places++ = s[i].disp + k * s[i].stride - all.disp;
	*out = all;
	return places;
}

/* Blocks of one size at irregular places need these places only. */
static void compress(struct madmpi_type *t)
{
	MPI_Count blocks, all = 0;
	MPI_Aint *places;
	uint32_t n, to = 0;

	for (uint32_t i = 0; i < t->nsteps; i += n ? n : 1) {
		n = alike(&t->steps[i], t->nsteps - i, &blocks);
		all += blocks >= LISTED ? blocks : 0;
	}
	if (all == 0)
		return;
	places = malloc((size_t)all * sizeof(*places));
	if (places == NULL)
		return; /* it is but longer without */
	t->places = places;
	for (uint32_t i = 0; i < t->nsteps; i += n) {
		n = alike(&t->steps[i], t->nsteps - i, &blocks);
		if (blocks >= LISTED) {
			places = list(&t->steps[i], n, blocks, places,
				      &t->steps[to++]);
			continue;
		}
		n = n ? n : 1;
		memmove(&t->steps[to], &t->steps[i], n * sizeof(*t->steps));
		to += n;
	}
	t->nsteps = to;
}

/* Give back what the merging has left over; a vector needs one step more. */
static void trim(struct madmpi_type *t, MPI_Count n)
{
	void *less;

	if (t->nsteps < n / 2) {
		less = realloc(t->steps, (t->nsteps + 1) * sizeof(*t->steps));
		t->steps = less != NULL ? less : t->steps;
	}
	if (t->nruns < n / 2) {
		less = realloc(t->runs, (t->nruns + 1) * sizeof(*t->runs));
		t->runs = less != NULL ? less : t->runs;
	}
}

/* To the alignment, unless the upper bound was set. 0 or -EOVERFLOW. */
static int add_padding(struct madmpi_type *t)
{
	MPI_Count over = madmpi_type_extent(t) % t->align;

	if (t->sets_ub || over <= 0)
		return 0;
	if (__builtin_add_overflow(t->ub, t->align - over, &t->ub) ||
	    is_too_wide(t))
		return -EOVERFLOW;
	return 0;
}

int madmpi_type_build(const struct madmpi_part *parts, MPI_Count n, bool pad,
		      struct madmpi_type **out)
{
	struct madmpi_type *t;
	struct ranks ranks = { NOWHERE, NOWHERE };
	int rc = -ENOMEM;

	if (n >= UINT32_MAX)
		return -EOVERFLOW;
	t = madmpi_type_new();
	if (t == NULL)
		return -ENOMEM;
	t->steps = calloc((size_t)n + 1, sizeof(*t->steps));
	t->runs = calloc((size_t)n + 1, sizeof(*t->runs));
	if (t->steps == NULL || t->runs == NULL)
		goto err;
	for (MPI_Count i = 0; i < n; i++) {
		if (parts[i].count == 0)
			continue;
		rc = add_bounds(t, &parts[i], &ranks);
		if (rc == 0)
			rc = add_depth(t, parts[i].type);
		if (rc == 0 && parts[i].type->size > 0)
			rc = add_true_bounds(t, &parts[i], t->nsteps == 0);
		if (rc == 0 && is_too_wide(t))
			rc = -EOVERFLOW;
		if (rc < 0)
			goto err;
		if (parts[i].type->size == 0)
			continue;
		add_run(t, &parts[i]);
		t->nsteps =
			append(t->steps, t->nsteps,
			       madmpi_type_step(parts[i].type, parts[i].disp,
						parts[i].count));
	}
	compress(t);
	trim(t, n);
	rc = pad ? add_padding(t) : 0;
	if (rc < 0)
		goto err;
	madmpi_signature_set(t);
	*out = t;
	return 0;
err:
	madmpi_type_put(t);
	return rc;
}

/* Repeat the one step of a block: in place if that keeps it one loop. */
static void repeat(struct madmpi_type *t, MPI_Count n, MPI_Count stride)
{
	struct madmpi_step *outer = &t->steps[0], *inner = &t->steps[1];

	if (t->nsteps == 0 || n == 1)
		return;
	if (outer->count > 1 && goes_on(outer, stride)) {
		outer->count *= n;
		return;
	}
	if (outer->count == 1) {
		outer->count = n;
		outer->stride = stride;
		if (outer->body == NULL && stride == outer->size) {
			outer->size *= n;
			outer->count = 1;
		}
		return;
	}
	*inner = *outer;
	*outer = (struct madmpi_step){ .stride = stride,
				       .count = n,
				       .size = inner->count * inner->size,
				       .body = inner,
				       .nbody = 1 };
}

int madmpi_type_build_vector(MPI_Count n, MPI_Count block, MPI_Count stride,
			     struct madmpi_type *type, struct madmpi_type **out)
{
	struct madmpi_part part = { 0, n > 0 ? block : 0, type };
	struct madmpi_type *t;
	MPI_Count span;
	int rc;

	/* Two steps are allocated for one part: repeat() needs the second. */
	rc = madmpi_type_build(&part, 1, false, &t);
	if (rc < 0)
		return rc;
	if (part.count == 0)
		goto done;
	if (__builtin_mul_overflow(stride, n - 1, &span) ||
	    __builtin_mul_overflow(t->size, n, &t->size) ||
	    move_overflows(0, span, &t->lb, &t->ub) ||
	    (t->nsteps > 0 &&
	     move_overflows(0, span, &t->true_lb, &t->true_ub)) ||
	    is_too_wide(t)) {
		madmpi_type_put(t);
		return -EOVERFLOW;
	}
	t->elements *= n;
	t->external *= n;
	if (t->nruns > 0)
		t->runs[0].count *= n;
	madmpi_signature_set(t);
	repeat(t, n, stride);
done:
	*out = t;
	return 0;
}

int madmpi_type_build_resized(struct madmpi_type *type, MPI_Count lb,
			      MPI_Count extent, struct madmpi_type **out)
{
	struct madmpi_part part = { 0, 1, type };
	MPI_Count ub;
	int rc;

	if (__builtin_add_overflow(lb, extent, &ub))
		return -EOVERFLOW;
	rc = madmpi_type_build(&part, 1, false, out);
	if (rc < 0)
		return rc;
	(*out)->sets_lb = (*out)->sets_ub = true;
	(*out)->lb = lb;
	(*out)->ub = ub;
	return 0;
}
