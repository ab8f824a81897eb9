/*
 * Describing a type to another process: the program that it was compiled to,
 * not how the program's calls have made it.
 *
 *   words:  size lb ub true_lb true_ub, lists, steps, places
 *           then each list:  n, then its n steps:
 *           disp stride count size before, body, places
 *           then those places
 *
 * The body of a step is the number of a list, or -1. Each list that steps share
 * is told once, so a type whose parts repeat each other stays small.
 */
#include "rma/type.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bodies.h"

/* --- elements --- */

struct madmpi_type *madmpi_rma_element(struct madmpi_type *t)
{
	struct madmpi_type *found = NULL, *one;

	if (t->basic != MADMPI_NOT_BASIC)
		return t;
	if (t->nruns == 0)
		return t->original ? madmpi_rma_element(t->original) : NULL;
	for (uint32_t i = 0; i < t->nruns; i++) {
		one = madmpi_rma_element(t->runs[i].type);
		if (one == NULL || (found != NULL && one != found))
			return NULL;
		found = one;
	}
	return found;
}

/* One with a name that is the same to operations. */
static uint32_t named_like(const struct madmpi_type *t)
{
	const struct madmpi_type *p = madmpi_type_predefined;
	uint32_t i = 0;

	if (t->name != NULL)
		i = (uint32_t)(t - p);
	else
		while (i < MADMPI_TYPE_CONSTANTS - 1 &&
		       (p[i].name == NULL || p[i].basic != t->basic ||
			p[i].size != t->size))
			i++;
	return i + (uint32_t)(uintptr_t)MPI_DATATYPE_NULL;
}

void madmpi_rma_tell_element(struct madmpi_type *elem, uint32_t out[2])
{
	bool is_pair = elem->basic == MADMPI_VALUE_INDEX;

	out[0] = named_like(is_pair ? elem->contents->types[0] : elem);
	out[1] = is_pair ? named_like(elem->contents->types[1]) : 0;
}

struct madmpi_type *madmpi_rma_told_element(const uint32_t in[2])
{
	MPI_Datatype pair, value = (MPI_Datatype)(uintptr_t)in[0];

	if (in[1] == 0)
		return madmpi_type_of(value);
	if (madmpi_type_get_value_index(value, (MPI_Datatype)(uintptr_t)in[1],
					&pair) != MPI_SUCCESS)
		return NULL;
	return madmpi_type_of(pair);
}

/* --- layouts --- */

enum { HEAD = 8, STEP = 7 }; /* words */

/* The lists of steps of a type, each once, found by a hash. */
struct lists {
	const struct madmpi_step **first;
	uint32_t *length;
	int64_t *slot; /* 2 * room: the number of a list and 1, or 0 */
	int64_t n, room;
	int64_t steps, places; /* of all */
};

/* Where its number is, or goes. */
static int64_t *slot_of(struct lists *l, const struct madmpi_step *first,
			uint32_t length)
{
	uint64_t mask = (uint64_t)(2 * l->room) - 1;
	uint64_t at = ((uintptr_t)first / 16 + length) * 0x9e3779b97f4a7c15u;
	int64_t *slot, i;

	for (at >>= 32;; at++) {
		slot = &l->slot[at & mask];
		i = *slot - 1;
		if (i < 0 || (l->first[i] == first && l->length[i] == length))
			return slot;
	}
}

/* Room for twice as many. False: no memory. */
static bool make_room(struct lists *l)
{
	size_t room = l->room > 0 ? 2 * (size_t)l->room : 16;
	void *first = realloc(l->first, room * sizeof(*l->first)), *length;

	if (first == NULL)
		return false;
	l->first = first;
	length = realloc(l->length, room * sizeof(*l->length));
	if (length == NULL)
		return false;
	l->length = length;
	free(l->slot);
	l->slot = calloc(2 * room, sizeof(*l->slot));
	if (l->slot == NULL)
		return false;
	l->room = (int64_t)room;
	for (int64_t i = 0; i < l->n; i++)
		*slot_of(l, l->first[i], l->length[i]) = i + 1;
	return true;
}

/* The number of a list, noted if it is new; -1: no memory. */
static int64_t list_number(struct lists *l, const struct madmpi_step *first,
			   uint32_t length)
{
	int64_t *slot;

	if (l->n == l->room && !make_room(l))
		return -1;
	slot = slot_of(l, first, length);
	if (*slot > 0)
		return *slot - 1;
	*slot = l->n + 1;
	l->first[l->n] = first;
	l->length[l->n] = length;
	l->steps += length;
	return l->n++;
}

/* All that can be reached from the first. 0, or -1: no memory. */
static int collect(struct lists *l)
{
	const struct madmpi_step *s;

	for (int64_t i = 0; i < l->n; i++)
		for (uint32_t k = 0; k < l->length[i]; k++) {
			s = &l->first[i][k];
			if (s->places != NULL)
				l->places += s->count;
			if (s->body != NULL &&
			    list_number(l, s->body, s->nbody) < 0)
				return -1;
		}
	return 0;
}

static int64_t *write_step(struct lists *l, const struct madmpi_step *s,
			   int64_t *at)
{
	*at++ = s->disp;
	*at++ = s->stride;
	*at++ = s->count;
	*at++ = s->size;
	*at++ = s->before;
	*at++ = s->body ? *slot_of(l, s->body, s->nbody) - 1 : -1;
	*at++ = s->places ? s->count : 0;
	for (MPI_Count i = 0; s->places != NULL && i < s->count; i++)
		*at++ = s->places[i];
	return at;
}

static void write_all(struct lists *l, const struct madmpi_type *t, int64_t *at)
{
	*at++ = t->size;
	*at++ = t->lb;
	*at++ = t->ub;
	*at++ = t->true_lb;
	*at++ = t->true_ub;
	*at++ = l->n;
	*at++ = l->steps;
	*at++ = l->places;
	for (int64_t i = 0; i < l->n; i++) {
		*at++ = l->length[i];
		for (uint32_t k = 0; k < l->length[i]; k++)
			at = write_step(l, &l->first[i][k], at);
	}
}

void *madmpi_rma_describe(const struct madmpi_type *t, size_t room,
			  size_t *bytes)
{
	struct lists l = { NULL };
	char *out = NULL;
	size_t n;

	if (list_number(&l, t->steps, t->nsteps) == 0 && collect(&l) == 0) {
		n = (size_t)(HEAD + l.n + STEP * l.steps + l.places);
		*bytes = (n * sizeof(int64_t) + 15) / 16 * 16;
		out = calloc(1, room + *bytes);
		if (out != NULL)
			write_all(&l, t, (int64_t *)(void *)(out + room));
	}
	free(l.first);
	free(l.length);
	free(l.slot);
	return out;
}

/* --- and back --- */

/* In one piece of memory. */
struct told {
	struct madmpi_type type;
	struct madmpi_step steps[];
	/* then the lists' first steps and lengths, then the places */
};

/* What is read, with where its parts go. */
struct reading {
	const int64_t *at, *end;
	struct madmpi_step *steps;
	int64_t *first, *length; /* by list; of `steps` */
	MPI_Aint *places;
	int64_t nlists, nsteps, nplaces;
};

/* The body is the number of its list, until all are known. */
static bool read_step(struct reading *r, struct madmpi_step *s, int64_t *body,
		      int64_t *places_used)
{
	const int64_t *at = r->at;
	int64_t n;

	if (r->end - at < STEP)
		return false;
	s->disp = at[0];
	s->stride = at[1];
	s->count = at[2];
	s->size = at[3];
	s->before = at[4];
	*body = at[5];
	n = at[6];
	r->at += STEP;
	if (n == 0)
		return true;
	if (n != s->count || n > r->end - r->at ||
	    n > r->nplaces - *places_used)
		return false;
	s->places = &r->places[*places_used];
	for (int64_t i = 0; i < n; i++)
		r->places[(*places_used)++] = *r->at++;
	return true;
}

/* The lists; body[] by step. */
static bool read_lists(struct reading *r, int64_t *body)
{
	int64_t steps = 0, places = 0;

	for (int64_t i = 0; i < r->nlists; i++) {
		if (r->at == r->end || *r->at < 0 || *r->at > r->nsteps - steps)
			return false;
		r->first[i] = steps;
		r->length[i] = *r->at++;
		for (int64_t k = 0; k < r->length[i]; k++, steps++)
			if (!read_step(r, &r->steps[steps], &body[steps],
				       &places))
				return false;
	}
	for (int64_t i = 0; i < steps; i++) {
		if (body[i] < 0)
			continue;
		if (body[i] >= r->nlists)
			return false;
		r->steps[i].body = &r->steps[r->first[body[i]]];
		r->steps[i].nbody = (uint32_t)r->length[body[i]];
	}
	return true;
}

static bool sizes_are_good(const struct reading *r, int64_t words)
{
	return r->nlists >= 1 && r->nsteps >= 0 && r->nplaces >= 0 &&
	       r->nlists <= words && r->nsteps <= words && r->nplaces <= words;
}

int madmpi_rma_described(const void *from, size_t bytes,
			 struct madmpi_type **out)
{
	struct reading r = { .at = from };
	int64_t words = (int64_t)(bytes / sizeof(int64_t)), *body;
	struct told *t;

	*out = NULL;
	if (words < HEAD)
		return 0;
	r.end = r.at + words;
	r.nlists = r.at[5];
	r.nsteps = r.at[6];
	r.nplaces = r.at[7];
	if (!sizes_are_good(&r, words))
		return 0;
	t = calloc(1, sizeof(*t) + (size_t)r.nsteps * sizeof(t->steps[0]) +
			      (size_t)(2 * r.nlists + r.nsteps + r.nplaces) *
				      sizeof(int64_t));
	if (t == NULL)
		return -ENOMEM;
	r.steps = t->steps;
	r.first = (int64_t *)&t->steps[r.nsteps];
	r.length = r.first + r.nlists;
	body = r.length + r.nlists;
	r.places = (MPI_Aint *)(body + r.nsteps);
	t->type.size = r.at[0];
	t->type.lb = r.at[1];
	t->type.ub = r.at[2];
	t->type.true_lb = r.at[3];
	t->type.true_ub = r.at[4];
	r.at += HEAD;
	if (!read_lists(&r, body)) {
		free(t);
		return 0;
	}
	t->type.steps = t->steps;
	t->type.nsteps = (uint32_t)r.length[0];
	*out = &t->type;
	return 0;
}
