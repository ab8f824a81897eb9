/*
 * Ranges of addresses that may overlap, each of something.
 *
 * An array by where they begin. Each also knows which of those up to it reaches
 * farthest: of all that begin at or before an address that one covers most of
 * what follows, so that a look-up is one binary search. To put in and to take
 * out moves what is behind: there are some thousands at most, and each has cost
 * more than that to be had.
 *
 * Whoever calls has a lock.
 */
#ifndef NMAD_DRIVERS_VERBS_RANGES_H
#define NMAD_DRIVERS_VERBS_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct verbs_range {
	uintptr_t begin, end;
	void *of;
	unsigned farthest; /* which of those up to here */
};

struct verbs_ranges {
	struct verbs_range *range;
	unsigned n, room;
};

/* 0, -ENOMEM. These two allocate and free, nothing else does. */
int nm_verbs_ranges_init(struct verbs_ranges *r, unsigned room);
void nm_verbs_ranges_exit(struct verbs_ranges *r);

/* There must be room. */
void nm_verbs_ranges_put(struct verbs_ranges *r, uintptr_t begin, uintptr_t end,
			 void *of);

/* Of those that share a byte with [begin, end), take out which leave. */
void nm_verbs_ranges_take(struct verbs_ranges *r, uintptr_t begin,
			  uintptr_t end, bool (*leaves)(void *of, void *arg),
			  void *arg);

/* What one that covers all of [begin, end) is of; or NULL. */
void *nm_verbs_ranges_find(const struct verbs_ranges *r, uintptr_t begin,
			   uintptr_t end);

/*
 * How far one that covers `at` reaches; or `at`. Then *next is lowered to where
 * the next one begins.
 */
uintptr_t nm_verbs_ranges_reach(const struct verbs_ranges *r, uintptr_t at,
				uintptr_t *next);

void nm_verbs_ranges_check(const struct verbs_ranges *r);

#endif
