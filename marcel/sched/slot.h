/*
 * The slot for the thread that was woken last, which the owner enters as soon
 * as the thread that runs leaves: no queue, no atomic operation. If that one
 * computes on, a thief may take the entry.
 *
 *	thief, a word		owner takes			thief
 *	NONE			entry = 0			NONE -> WANTS
 *	WANTS			(light)				barrier on all
 *CPUs DENIED			thief is NONE: it is mine	entry is there?
 *	TOOK			WANTS -> DENIED: it is mine	WANTS -> TOOK:
 *mine TOOK -> NONE: it is gone	else -> NONE
 *
 * Each stores, then looks at what the other stores: order(slot), where the
 * thief pays for both. Only the owner writes the entry: one that was stolen
 * stays there, without meaning, until the owner comes by.
 */
#ifndef MARCEL_SCHED_SLOT_H
#define MARCEL_SCHED_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include "../os/os.h"

enum {
	MARCEL_SLOT_NONE,
	MARCEL_SLOT_WANTS,
	MARCEL_SLOT_DENIED,
	MARCEL_SLOT_TOOK
};

/* A bit of an entry: it is for the owner alone. */
#define MARCEL_SLOT_STAYS ((uintptr_t)1)

struct marcel_slot {
	ATOMIC(uintptr_t) entry; /* a: owner; order(slot), order(idle) */
	ATOMIC(uint32_t) thief;  /* a: order(slot) */
};

/* The entry that the owner has just removed; 0 if it had been stolen. */
static inline uintptr_t marcel_slot_keep(struct marcel_slot *s, uintptr_t x)
{
	uint32_t v = MARCEL_SLOT_WANTS;

	if (likely(load_light(&s->thief) == MARCEL_SLOT_NONE)) /* order(slot) */
		return x;
	if (cas_relaxed(&s->thief, &v, MARCEL_SLOT_DENIED) ||
	    v != MARCEL_SLOT_TOOK)
		return x;
	store_relaxed(&s->thief, MARCEL_SLOT_NONE);
	return 0;
}

/* Owner. The entry, or 0. */
static inline uintptr_t marcel_slot_take(struct marcel_slot *s)
{
	uintptr_t x = load_relaxed(&s->entry);

	if (x == 0)
		return 0;
	store_light(&s->entry, 0); /* order(slot) */
	return marcel_slot_keep(s, x);
}

/*
 * Owner. Nothing is in it: who puts one entry in the place of another takes
 * that first, or a thief that took the new one would seem to have the old.
 */
static inline void marcel_slot_put(struct marcel_slot *s, uintptr_t x)
{
	store_light(&s->entry,
		    x); /* order(slot); order(idle): a look follows */
}

static inline bool marcel_slot_is_open(uintptr_t x)
{
	return x != 0 && (x & MARCEL_SLOT_STAYS) == 0;
}

/* Anyone, after os_barrier_all(): is there an entry for thieves? */
static inline bool marcel_slot_has_seq(struct marcel_slot *s)
{
	return marcel_slot_is_open(load_seq(&s->entry)) &&
	       load_relaxed(&s->thief) != MARCEL_SLOT_TOOK;
}

/* Anyone but the owner. The entry, or 0. It interrupts all CPUs for it. */
static inline uintptr_t marcel_slot_rob(struct marcel_slot *s)
{
	uint32_t v = MARCEL_SLOT_NONE;
	uintptr_t x;

	if (!cas_seq(&s->thief, &v, MARCEL_SLOT_WANTS)) /* order(slot) */
		return 0;
	os_barrier_all();
	x = load_seq(&s->entry); /* order(slot): the thread, as it was pushed */
	v = MARCEL_SLOT_WANTS;
	if (marcel_slot_is_open(x) &&
	    cas_relaxed(&s->thief, &v, MARCEL_SLOT_TOOK))
		return x;
	store_relaxed(&s->thief, MARCEL_SLOT_NONE);
	return 0;
}

#endif
