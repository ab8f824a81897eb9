/*
 * Lock-free list with many producers, taken whole by one consumer.
 *
 * Producers push on top; the taker exchanges the top for NULL and turns the
 * chain round, so that it gets the nodes in the order in which they were
 * pushed. It can never be full, nothing is allocated, and because the list is
 * only ever taken whole, a node that comes back cannot be mistaken for its
 * earlier self (no ABA).
 *
 *   push: top -> n3 -> n2 -> n1      take: n1 -> n2 -> n3
 *
 * An empty list costs one relaxed load to look at.
 */
#ifndef BASE_MPSC_H
#define BASE_MPSC_H

#include <stdbool.h>
#include <stddef.h>

#include <base/atomic.h>

struct base_mpsc_node {
	struct base_mpsc_node *next; /* the pusher's, then the taker's */
};

struct base_mpsc {
	ATOMIC(struct base_mpsc_node *) top; /* a: order(mpsc) */
};

static inline void base_mpsc_init(struct base_mpsc *q)
{
	store_relaxed(&q->top, NULL);
}

/* A hint: true may be out of date at once. */
static inline bool base_mpsc_is_empty(struct base_mpsc *q)
{
	return load_relaxed(&q->top) == NULL;
}

/* The looking half of a store-load race whose other half is a push_seq. */
static inline bool base_mpsc_is_empty_seq(struct base_mpsc *q)
{
	return load_seq(&q->top) == NULL;
}

/* Anyone. Returns true if the list was empty before. */
static inline bool base_mpsc_push(struct base_mpsc *q, struct base_mpsc_node *n)
{
	struct base_mpsc_node *top = load_relaxed(&q->top);

	do
		n->next = top;
	while (!cas_weak_release(&q->top, &top, n)); /* order(mpsc): *n */
	return top == NULL;
}

/*
 * Anyone. As above, and the push is in the single order of seq_cst operations:
 * for the store-load races in which the pusher then looks at another word.
 */
static inline bool base_mpsc_push_seq(struct base_mpsc *q,
				      struct base_mpsc_node *n)
{
	struct base_mpsc_node *top = load_relaxed(&q->top);

	do
		n->next = top;
	while (!cas_weak_seq(&q->top, &top, n)); /* order(mpsc): *n */
	return top == NULL;
}

/* One taker at a time. The chain in the order of the pushes, or NULL. */
static inline struct base_mpsc_node *base_mpsc_take(struct base_mpsc *q)
{
	struct base_mpsc_node *n, *next, *first = NULL;

	if (base_mpsc_is_empty(q))
		return NULL;
	n = xchg_acquire(&q->top, NULL); /* order(mpsc), the taker's end */
	for (; n != NULL; n = next) {
		next = n->next;
		n->next = first;
		first = n;
	}
	return first;
}

/* Walk a chain that was taken; `n` may be reused inside the loop. */
#define base_mpsc_for_each(n, chain)                                           \
	for (struct base_mpsc_node *n = (chain),                               \
				   *n##_next = n ? n->next : NULL;             \
	     n != NULL; n = n##_next, n##_next = n ? n->next : NULL)

#endif
