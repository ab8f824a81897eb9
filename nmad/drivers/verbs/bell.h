/*
 * A bell: an eventfd by which others wake who may sleep in poll(). It is
 * written to if it does not ring yet, and read if it does: who is awake anyway,
 * as most times, costs nobody a system call.
 *
 *   who rings     leaves something; rings; writes, if it did not ring
 *   who is rung   reads, if it rings; hushes, if he has read something;
 *                 looks at what was left; sleeps
 *
 * So each change to `rings` is one write, which is read before the change back.
 * Who reads in vain leaves it ringing: the write is yet to come, and wakes him.
 *                                                    Pair: doc/memory-order.md.
 */
#ifndef NMAD_DRIVERS_VERBS_BELL_H
#define NMAD_DRIVERS_VERBS_BELL_H

#include <base/atomic.h>

struct verbs_bell {
	int fd;
	ATOMIC(uint32_t) rings; /* a: order(rung) */
};

/* Anyone. True: it is to be written to. */
static inline bool verbs_bell_starts(struct verbs_bell *b)
{
	return xchg_release(&b->rings, 1) == 0; /* order(rung) */
}

/* Who is rung. True: it is to be read. */
static inline bool verbs_bell_rings(const struct verbs_bell *b)
{
	return load_relaxed(&b->rings) != 0;
}

/* Who has read it, not in vain. */
static inline void verbs_bell_stops(struct verbs_bell *b)
{
	xchg_acquire(&b->rings, 0); /* order(rung) */
}

#endif
