#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/diag.h>

#include "ranges.h"

/* How many begin before `at`. */
static unsigned before(const struct verbs_ranges *r, uintptr_t at)
{
	unsigned low = 0, high = r->n;

	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (r->range[middle].begin < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The one that reaches farthest of the first n. */
static const struct verbs_range *farthest(const struct verbs_ranges *r,
					  unsigned n)
{
	return &r->range[r->range[n - 1].farthest];
}

void *nm_verbs_ranges_find(const struct verbs_ranges *r, uintptr_t begin,
			   uintptr_t end)
{
	unsigned n = before(r, begin + 1);

	return n > 0 && farthest(r, n)->end >= end ? farthest(r, n)->of : NULL;
}

uintptr_t nm_verbs_ranges_reach(const struct verbs_ranges *r, uintptr_t at,
				uintptr_t *next)
{
	unsigned n = before(r, at + 1);

	if (n > 0 && farthest(r, n)->end > at)
		return farthest(r, n)->end;
	if (n < r->n && r->range[n].begin < *next)
		*next = r->range[n].begin;
	return at;
}

/* From this one on. */
static void learn_farthest(struct verbs_ranges *r, unsigned from)
{
	struct verbs_range *range = r->range;

	for (unsigned i = from; i < r->n; i++) {
		range[i].farthest = i;
		if (i > 0 && farthest(r, i)->end >= range[i].end)
			range[i].farthest = range[i - 1].farthest;
	}
}

void nm_verbs_ranges_put(struct verbs_ranges *r, uintptr_t begin, uintptr_t end,
			 void *of)
{
	unsigned i = before(r, begin);

	base_check(r->n < r->room && begin < end);
	memmove(&r->range[i + 1], &r->range[i], (r->n - i) * sizeof(*r->range));
	r->range[i].begin = begin;
	r->range[i].end = end;
	r->range[i].of = of;
	r->n++;
	learn_farthest(r, i);
}

void nm_verbs_ranges_take(struct verbs_ranges *r, uintptr_t begin,
			  uintptr_t end, bool (*leaves)(void *of, void *arg),
			  void *arg)
{
	unsigned n = before(r, end), first = r->n, to = 0;

	if (n == 0 || farthest(r, n)->end <= begin)
		return;
	for (unsigned i = 0; i < n; i++) {
		struct verbs_range *range = &r->range[i];

		if (range->end > begin && leaves(range->of, arg)) {
			if (first > i)
				first = i;
			continue;
		}
		if (to < i)
			r->range[to] = *range;
		to++;
	}
	memmove(&r->range[to], &r->range[n], (r->n - n) * sizeof(*r->range));
	r->n -= n - to;
	learn_farthest(r, first);
}

void nm_verbs_ranges_check(const struct verbs_ranges *r)
{
	base_check(r->n <= r->room);
	for (unsigned i = 0; i < r->n; i++) {
		base_check(r->range[i].begin < r->range[i].end);
		base_check(r->range[i].farthest <= i);
		base_check(farthest(r, i + 1)->end >= r->range[i].end);
		if (i == 0)
			continue;
		base_check(r->range[i].begin >= r->range[i - 1].begin);
		base_check(farthest(r, i + 1)->end >= farthest(r, i)->end);
	}
}

int nm_verbs_ranges_init(struct verbs_ranges *r, unsigned room)
{
	r->n = 0;
	r->room = room;
	r->range = calloc(room, sizeof(*r->range));
	return r->range != NULL ? 0 : -ENOMEM;
}

void nm_verbs_ranges_exit(struct verbs_ranges *r)
{
	free(r->range);
}
