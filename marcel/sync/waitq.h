/*
 * Who waits for an object, in which order.
 *
 * A waiter is a record in the frame of the thread that waits, user thread or
 * foreign alike: waiting allocates nothing, and the object holds one pointer
 * for any number of waiters. The queue is a ring, named by its last element,
 * so that all zero is an empty queue:
 *
 *	last -> w3 -> w1 -> w2 -> (w3)		w1 has waited longest
 *
 * It is guarded by the guard of its object. To wait: with the guard held look
 * once more, push, give the guard back, marcel_park(NULL). To wake: with the
 * guard held take a waiter and note what it needs, give the guard back, then
 * marcel_wake() its thread. A wake that comes before the sleep is not lost, and
 * until the wake the record stays: it may be read after the guard was given
 * back, but nothing of the object may. Who takes a waiter to wake it disarms
 * its timer, if it has one, before it gives the guard back.
 *
 * In the child of a fork() the records are those of threads that are no more,
 * on stacks that others may use: guard.h says who forgets them, and when.
 */
#ifndef MARCEL_SYNC_WAITQ_H
#define MARCEL_SYNC_WAITQ_H

#include <stdbool.h>
#include <stddef.h>

#include <base/compiler.h>
#include "../sched/timer.h"
#include "../thread/cancel.h"

struct marcel_mutex;

struct marcel_waiter {
	/* -: const while it waits    l: guard of the queue it is in
	 * w: who took it out, until the wake; then the waiter itself */
	struct marcel_waiter *next;   /* l: then w */
	struct marcel_waiter *prev;   /* l: */
	struct marcel_thread *thread; /* -: */
	struct marcel_mutex *mutex;   /* -: a condition's: to lock again */
	struct marcel_timer *timer; /* -: or NULL: it waits for ever; timed.h */
	bool granted;               /* w: it was given what it waits for */
	bool chosen;                /* w: mutex.c: the one on its way */
	bool writer;                /* -: rwlock.c */
} BASE_ALIGNED(16);                 /* barrier.c packs its address */

struct marcel_waitq {
	struct marcel_waiter *last; /* l: NULL: nobody waits */
};

static inline bool marcel_waitq_is_empty(const struct marcel_waitq *q)
{
	return q->last == NULL;
}

/* Those in it are no threads of this process. */
static inline void marcel_waitq_forget(struct marcel_waitq *q)
{
	q->last = NULL;
}

/* Who has waited longest; the queue is not empty. */
static inline struct marcel_waiter *
marcel_waitq_first(const struct marcel_waitq *q)
{
	return q->last->next;
}

static inline void marcel_waitq_push_front(struct marcel_waitq *q,
					   struct marcel_waiter *w)
{
	struct marcel_waiter *last = q->last;

	if (last == NULL) {
		w->next = w;
		w->prev = w;
		q->last = w;
		return;
	}
	w->next = last->next;
	w->prev = last;
	last->next->prev = w;
	last->next = w;
}

static inline void marcel_waitq_push(struct marcel_waitq *q,
				     struct marcel_waiter *w)
{
	marcel_waitq_push_front(q, w);
	q->last = w;
}

/* Take this one out; it is in the queue. */
static inline void marcel_waitq_remove(struct marcel_waitq *q,
				       struct marcel_waiter *w)
{
	if (w->next == w) {
		q->last = NULL;
		return;
	}
	w->next->prev = w->prev;
	w->prev->next = w->next;
	if (q->last == w)
		q->last = w->prev;
}

/* Take w, which has a timer, out of its heap. */
static inline void marcel_waitq_disarm(struct marcel_waiter *w)
{
	if (unlikely(w->timer->in != NULL))
		marcel_timer_disarm(w->timer);
	marcel_cancel_hide(w->timer);
	w->timer = NULL;
}

/* Take this one to wake it. */
static inline void marcel_waitq_take_this(struct marcel_waitq *q,
					  struct marcel_waiter *w)
{
	marcel_waitq_remove(q, w);
	if (unlikely(w->timer != NULL))
		marcel_waitq_disarm(w);
}

/* Take who has waited longest; the queue is not empty. */
static inline struct marcel_waiter *marcel_waitq_take(struct marcel_waitq *q)
{
	struct marcel_waiter *w = marcel_waitq_first(q);

	marcel_waitq_take_this(q, w);
	return w;
}

/*
 * Take all, in order, chained by `next` up to NULL. Their timers are the
 * caller's to disarm.
 */
static inline struct marcel_waiter *
marcel_waitq_take_all(struct marcel_waitq *q)
{
	struct marcel_waiter *first;

	if (q->last == NULL)
		return NULL;
	first = q->last->next;
	q->last->next = NULL;
	q->last = NULL;
	return first;
}

/* Move all of `from` behind those in q. */
static inline void marcel_waitq_append(struct marcel_waitq *q,
				       struct marcel_waitq *from)
{
	struct marcel_waiter *first, *last = from->last;

	if (last == NULL)
		return;
	from->last = NULL;
	if (q->last != NULL) {
		first = last->next;
		last->next = q->last->next;
		last->next->prev = last;
		q->last->next = first;
		first->prev = q->last;
	}
	q->last = last;
}

/* Wake the threads of a chain. No guard is held; the records are gone after. */
void marcel_waitq_wake(struct marcel_waiter *chain);

/* For tests and gdb: dies if the ring is not whole; returns its length. */
size_t marcel_waitq_check(const struct marcel_waitq *q);

#endif
