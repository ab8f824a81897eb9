/*
 * A deque that can be stolen from (Chase and Lev, SPAA 2005). The owner
 * pushes at the bottom; anyone takes the oldest entry from the top by
 * compare-and-swap; the owner may also take the newest from the bottom.
 *
 *	top                         bottom
 *	 | oldest  ...  ...  newest  |          index & mask -> slot
 *	 thieves ->               <- owner
 *
 * `top` only grows, so an entry that was read is ours exactly if the
 * compare-and-swap of `top` succeeds. Arrays grow by copying; an old one stays
 * readable until the deque ends, because a thief may still look at it.
 *
 * order(steal), store-load: the owner claims the newest by lowering `bottom`
 * and then looks at `top`; a thief moves `top` after it looked at `bottom`. If
 * both looked too early they would take the same entry, hence seq_cst.
 *
 * The *_sole variants are for a deque that no other thread can touch now.
 */
#ifndef MARCEL_SCHED_DEQUE_H
#define MARCEL_SCHED_DEQUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>

struct marcel_deque_array {
	int64_t size;                     /* -: entries, a power of two */
	struct marcel_deque_array *older; /* -: outgrown, kept to the end */
	ATOMIC(void *) slot[];            /* a: order(deque) */
};

struct marcel_deque {
	/* a: atomic, pair named    o: owner */
	ATOMIC(int64_t)
	top BASE_ALIGNED(BASE_CACHE_LINE); /* a: all takers; order(steal) */
	ATOMIC(int64_t)
	bottom BASE_ALIGNED(BASE_CACHE_LINE); /* a: owner; order(deque) */
	ATOMIC(struct marcel_deque_array *)
	array; /* a: owner; order(deque_array) */
};

/* Memory for an array; NULL: none. deque.c. */
struct marcel_deque_array *marcel_deque_array_new(int64_t size);
void marcel_deque_array_free(struct marcel_deque_array *a);

static inline int marcel_deque_init(struct marcel_deque *d, int64_t size)
{
	struct marcel_deque_array *a = marcel_deque_array_new(size);

	store_relaxed(&d->top, 0);
	store_relaxed(&d->bottom, 0);
	store_relaxed(&d->array, a);
	return a == NULL ? -1 : 0;
}

static inline void marcel_deque_exit(struct marcel_deque *d)
{
	struct marcel_deque_array *a = load_relaxed(&d->array), *older;

	for (; a != NULL; a = older) {
		older = a->older;
		marcel_deque_array_free(a);
	}
	store_relaxed(&d->array, NULL);
}

/* Racy, for hints and dumps. */
static inline int64_t marcel_deque_length(struct marcel_deque *d)
{
	int64_t n = load_relaxed(&d->bottom) - load_relaxed(&d->top);

	return n > 0 ? n : 0;
}

/* The look of who has published that it will sleep: order(idle). */
static inline bool marcel_deque_has_seq(struct marcel_deque *d)
{
	int64_t t = load_relaxed(&d->top); /* an old one errs for work */

	return load_seq(&d->bottom) > t;
}

/* Owner. The array, if it has room for the b-th; NULL: it is full. */
static inline struct marcel_deque_array *
marcel_deque_room(struct marcel_deque *d, int64_t b)
{
	/* order(deque_reuse): the thief that moved top has read its slot. */
	int64_t t = load_acquire(&d->top);
	struct marcel_deque_array *a = load_relaxed(&d->array);

	return likely(b - t < a->size) ? a : NULL;
}

static inline void marcel_deque_fill(struct marcel_deque_array *a, int64_t b,
				     void *x)
{
	store_relaxed(&a->slot[b & (a->size - 1)], x);
}

/* Owner. Twice the room, the same entries. */
static inline struct marcel_deque_array *
marcel_deque_grow(struct marcel_deque *d, int64_t b)
{
	int64_t t = load_relaxed(&d->top); /* an old one copies more */
	struct marcel_deque_array *a = load_relaxed(&d->array), *bigger;

	bigger = marcel_deque_array_new(2 * a->size);

	if (bigger == NULL)
		return NULL;
	for (int64_t i = t; i < b; i++)
		store_relaxed(&bigger->slot[i & (bigger->size - 1)],
			      load_relaxed(&a->slot[i & (a->size - 1)]));
	bigger->older = a;
	store_release(&d->array, bigger); /* order(deque_array): its slots */
	return bigger;
}

/*
 * Owner. Put x where the bottom is, or behind others that were so put since the
 * last push: b. Nobody sees it yet; false: full and no memory to grow.
 */
static inline bool marcel_deque_place(struct marcel_deque *d, int64_t b,
				      void *x)
{
	struct marcel_deque_array *a = marcel_deque_room(d, b);

	if (unlikely(a == NULL)) {
		a = marcel_deque_grow(d, b);
		if (a == NULL)
			return false;
	}
	marcel_deque_fill(a, b, x);
	return true;
}

/* Owner. What was placed below b is pushed; sleepers that look see it. */
static inline void marcel_deque_publish(struct marcel_deque *d, int64_t b)
{
	/* order(deque): the slots, *x; order(idle): before the look */
	store_seq(&d->bottom, b);
}

/* Owner. False: no room. Visible to sleepers that look: order(idle). */
static inline bool marcel_deque_push(struct marcel_deque *d, void *x)
{
	int64_t b = load_relaxed(&d->bottom);

	if (unlikely(!marcel_deque_place(d, b, x)))
		return false;
	marcel_deque_publish(d, b + 1);
	return true;
}

static inline void marcel_deque_publish_sole(struct marcel_deque *d, int64_t b)
{
	store_relaxed(&d->bottom, b);
}

static inline bool marcel_deque_push_sole(struct marcel_deque *d, void *x)
{
	int64_t b = load_relaxed(&d->bottom);

	if (unlikely(!marcel_deque_place(d, b, x)))
		return false;
	marcel_deque_publish_sole(d, b + 1);
	return true;
}

/* Anyone. The oldest, or NULL: empty, or lost to another taker. */
static inline void *marcel_deque_steal(struct marcel_deque *d)
{
	int64_t t = load_acquire(&d->top); /* order(steal): other takers */
	int64_t b = load_seq(&d->bottom);  /* order(steal), order(deque) */
	struct marcel_deque_array *a;
	void *x;

	if (t >= b)
		return NULL;
	a = load_acquire(&d->array); /* order(deque_array) */
	x = load_relaxed(&a->slot[t & (a->size - 1)]);
	/* order(deque_reuse): our read of the slot; order(steal) */
	return cas_seq(&d->top, &t, t + 1) ? x : NULL;
}

/* Owner. The oldest, or NULL: empty. */
static inline void *marcel_deque_take_oldest(struct marcel_deque *d)
{
	int64_t b = load_relaxed(&d->bottom);
	int64_t t = load_relaxed(&d->top);
	struct marcel_deque_array *a;
	void *x;

	while (t < b) {
		a = load_relaxed(&d->array);
		x = load_relaxed(&a->slot[t & (a->size - 1)]);
		/* order(steal): the bottom as we have lowered it before */
		if (cas_release(&d->top, &t, t + 1))
			return x;
	}
	return NULL;
}

static inline void *marcel_deque_take_oldest_sole(struct marcel_deque *d)
{
	int64_t t = load_relaxed(&d->top);
	struct marcel_deque_array *a = load_relaxed(&d->array);

	if (t >= load_relaxed(&d->bottom))
		return NULL;
	store_relaxed(&d->top, t + 1);
	return load_relaxed(&a->slot[t & (a->size - 1)]);
}

/* The oldest, and x becomes the newest; NULL: empty, and x is not in it. */
static inline void *marcel_deque_rotate_sole(struct marcel_deque *d, void *x)
{
	int64_t t = load_relaxed(&d->top), b = load_relaxed(&d->bottom);
	struct marcel_deque_array *a = load_relaxed(&d->array);
	void *oldest;

	if (t >= b)
		return NULL;
	oldest = load_relaxed(&a->slot[t & (a->size - 1)]);
	store_relaxed(&a->slot[b & (a->size - 1)], x);
	store_relaxed(&d->top, t + 1);
	store_relaxed(&d->bottom, b + 1);
	return oldest;
}

/* The n-th oldest there is, from 0, and the oldest takes its place. */
static inline void *marcel_deque_take_nth_sole(struct marcel_deque *d,
					       int64_t n)
{
	int64_t t = load_relaxed(&d->top);
	struct marcel_deque_array *a = load_relaxed(&d->array);
	int64_t mask = a->size - 1;
	void *x = load_relaxed(&a->slot[(t + n) & mask]);

	store_relaxed(&a->slot[(t + n) & mask],
		      load_relaxed(&a->slot[t & mask]));
	store_relaxed(&d->top, t + 1);
	return x;
}

/* Owner. The newest without taking it, or NULL. */
static inline void *marcel_deque_newest(struct marcel_deque *d)
{
	int64_t b = load_relaxed(&d->bottom);
	struct marcel_deque_array *a = load_relaxed(&d->array);

	if (b <= load_relaxed(&d->top))
		return NULL;
	return load_relaxed(&a->slot[(b - 1) & (a->size - 1)]);
}

/* Owner. The newest, or NULL: empty, or a thief took the last. */
static inline void *marcel_deque_take_newest(struct marcel_deque *d)
{
	int64_t b = load_relaxed(&d->bottom) - 1;
	int64_t t = load_relaxed(&d->top);
	struct marcel_deque_array *a = load_relaxed(&d->array);
	void *x;

	if (t > b) /* no entry can come meanwhile: we are who pushes */
		return NULL;
	store_seq(&d->bottom, b); /* order(steal) */
	t = load_seq(&d->top);    /* order(steal) */
	if (t < b)
		return load_relaxed(&a->slot[b & (a->size - 1)]);
	x = NULL;
	if (t == b) { /* the last: as a thief takes it */
		x = load_relaxed(&a->slot[b & (a->size - 1)]);
		/* order(steal): the bottom as we have lowered it */
		if (!cas_release(&d->top, &t, t + 1))
			x = NULL;
	}
	store_relaxed(&d->bottom, b + 1);
	return x;
}

static inline void *marcel_deque_take_newest_sole(struct marcel_deque *d)
{
	int64_t b = load_relaxed(&d->bottom) - 1;
	struct marcel_deque_array *a = load_relaxed(&d->array);

	if (b < load_relaxed(&d->top))
		return NULL;
	store_relaxed(&d->bottom, b);
	return load_relaxed(&a->slot[b & (a->size - 1)]);
}

#endif
