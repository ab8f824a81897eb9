/*
 * The queue of a topology level: threads that may run on some VP below it. One
 * list for each band of priority; the lock is taken only if a look without it
 * says that there is something.
 *
 * Here are preempted threads, those of foreign threads, those with a set of
 * VPs, and every thread that is not of the normal band: a leaf's queue has
 * those of one VP.
 */
#ifndef MARCEL_SCHED_LEVELQ_H
#define MARCEL_SCHED_LEVELQ_H

#include <stdbool.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <base/list.h>
#include <base/spin.h>
#include "../thread/thread.h"

struct marcel_levelq {
	/* l: lock    a: atomic */
	struct base_spin lock;
	ATOMIC(uint32_t) length; /* a: written under lock; order(idle) */
	ATOMIC(uint32_t) bands;  /* a: likewise, relaxed; a bit: not empty */
	struct base_list list[MARCEL_BANDS]; /* l: */
} BASE_ALIGNED(BASE_CACHE_LINE);

void marcel_levelq_init(struct marcel_levelq *q);

/* Anyone. From then on t may run, and end. */
void marcel_levelq_push(struct marcel_levelq *q, struct marcel_thread *t);

/* The slow half of take(). */
struct marcel_thread *marcel_levelq_take_slow(struct marcel_levelq *q,
					      enum marcel_band band, int vp);

/* Whether a thread of this band seems to wait there. */
static inline bool marcel_levelq_has(struct marcel_levelq *q,
				     enum marcel_band band)
{
	return load_relaxed(&q->bands) >> band & 1;
}

/* The same, and one that may run on this VP (-1: any), for certain. */
bool marcel_levelq_has_for(struct marcel_levelq *q, enum marcel_band band,
			   int vp);

/* The first thread of a band that may run on this VP (-1: any); or NULL. */
static inline struct marcel_thread *
marcel_levelq_take(struct marcel_levelq *q, enum marcel_band band, int vp)
{
	return likely(!marcel_levelq_has(q, band))
		       ? NULL
		       : marcel_levelq_take_slow(q, band, vp);
}

/*
 * Anyone, for the monitor: take out a thread that was interrupted, and whose
 * LWP waits for it; that LWP is to be told, and goes on without a VP. NULL:
 * there is none.
 */
struct marcel_lwp *marcel_levelq_let_loose(struct marcel_levelq *q);

/*
 * LWP 0, which waits for a thread in q or elsewhere, is to be given VP 0 for
 * another: then nothing is let loose there. False: that has been.
 */
bool marcel_levelq_claim(struct marcel_levelq *q, struct marcel_lwp *l);

/* LWP 0, which waits no more: nothing is let loose any more. */
void marcel_levelq_settle(struct marcel_levelq *q, struct marcel_lwp *l);

/* Take out t, if it is there and may run on this VP (-1: any). */
bool marcel_levelq_fetch(struct marcel_levelq *q, struct marcel_thread *t,
			 int vp);

/* Whoever holds t: whether l keeps it; if not `by`, whether another LWP does.
 */
static inline bool marcel_levelq_is_kept(struct marcel_thread *t,
					 struct marcel_lwp *l, bool by)
{
	return marcel_thread_has(t, MARCEL_F_KEPT) && (t->rest->lwp == l) == by;
}

/*
 * A thread of any band that l keeps, or if not `by` any LWP but l, and that may
 * run on this VP (-1: any); or NULL.
 */
struct marcel_thread *marcel_levelq_take_kept(struct marcel_levelq *q, int vp,
					      struct marcel_lwp *l, bool by);

/* Whether a thread waits there that may run on this VP; order(idle). */
bool marcel_levelq_look(struct marcel_levelq *q, int vp);

#endif
