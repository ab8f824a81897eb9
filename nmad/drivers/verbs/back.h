/*
 * Receives that others give back, and the owner of the rail, who may sleep over
 * those that a peer waits for: he says that he wants them and looks once more;
 * who gives one back looks whether it is wanted.     Pair: doc/memory-order.md.
 */
#ifndef NMAD_DRIVERS_VERBS_BACK_H
#define NMAD_DRIVERS_VERBS_BACK_H

#include <base/atomic.h>
#include <base/compiler.h>
#include <base/mpsc.h>

struct verbs_back {
	struct base_mpsc list;   /* a: order(mpsc), order(given-back) */
	ATOMIC(uint32_t) wanted; /* a: order(given-back) */
};

/* Anyone. True: the owner is to be woken, once. */
static inline bool verbs_back_give(struct verbs_back *b,
				   struct base_mpsc_node *n)
{
	base_mpsc_push_seq(&b->list, n); /* order(given-back), order(mpsc) */
	return unlikely(load_seq(&b->wanted) != 0) && /* order(given-back) */
	       xchg_relaxed(&b->wanted, 0) != 0;
}

/* The owner, before he sleeps. False: some are there already. */
static inline bool verbs_back_want(struct verbs_back *b)
{
	store_seq(&b->wanted, 1);                /* order(given-back) */
	return base_mpsc_is_empty_seq(&b->list); /* order(given-back) */
}

#endif
