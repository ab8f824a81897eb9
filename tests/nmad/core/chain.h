/*
 * How well a table of base/hash.h spreads its lists.
 */
#ifndef TESTS_NMAD_CORE_CHAIN_H
#define TESTS_NMAD_CORE_CHAIN_H

#include <base/hash.h>

/* How many lists a look-up compares until it finds the one of this link. */
static inline int chain_steps(const struct base_hash *h,
			      const struct base_link *first)
{
	const struct base_hash_slot *slot =
		base_hash_slot(h, h->hash_of(first, false, h->arg));
	const struct base_link *l = base_hash_plain(slot->first);
	int steps = 1;

	for (; l != first; steps++)
		l = base_hash_plain(l->prev->next);
	return steps;
}

#endif
