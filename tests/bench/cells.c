/*
 * The match tables, which count here how many cells a look-up visits: the slot
 * of the index, and the first of each list that is looked at in its chain.
 * bench_match with this file in the place of nmad/core/match.c is bench_cells.
 */
#include <base/hash.h>

#include "cells.h"

uint64_t bench_cells;

/* From the slot up to where the look-up has ended. */
static void count(struct base_hash_place p, uint64_t hash)
{
	const struct base_link *n = p.slot->first;

	bench_cells++;
	if (n == NULL ||
	    (p.slot->hash != hash && !base_hash_has(n, BASE_HASH_MORE)))
		return;
	for (n = base_hash_plain(n); n != NULL;
	     n = base_hash_plain(n->prev->next)) {
		bench_cells++;
		if (p.at != NULL && base_hash_first(p) == n)
			return;
	}
}

BASE_INLINE struct base_hash_place
counted_find(const struct base_hash *h, uint64_t hash,
	     bool (*is_it)(const struct base_link *first, bool mark,
			   const void *key),
	     const void *key)
{
	struct base_hash_place p = base_hash_find(h, hash, is_it, key);

	count(p, hash);
	return p;
}

static struct base_hash_place counted_find_end(const struct base_hash *h,
					       uint64_t hash,
					       const struct base_link *n)
{
	struct base_hash_place p = base_hash_find_end(h, hash, n);

	count(p, hash);
	return p;
}

#define base_hash_find     counted_find
#define base_hash_find_end counted_find_end

#include "../../nmad/core/match.c"
