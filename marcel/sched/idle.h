/*
 * Who sleeps, who searches: order(idle), a store-load race.
 *
 * One word counts the VPs that search for work and the VPs that sleep. A
 * pusher makes its work visible and then looks at the word; a VP that goes to
 * sleep changes the word and then looks for work again. All four are seq_cst,
 * so at least one of the two sees the other.
 *
 *	pusher				VP
 *	push(work)			asleep = 1; word: searcher -> sleeper
 *	word: a sleeper and		look at every queue once more
 *	no searcher? wake one		nothing: futex sleep while asleep == 1
 *
 * A pusher that sees a searcher wakes nobody: the searcher finds the work, or
 * looks once more after it stopped being a searcher. That second look is also
 * owed by the last searcher when it stops because it found other work; what it
 * then sees is for one more sleeper, which it wakes (marcel_idle_found).
 *
 * `asleep`, a word per VP, is what the futex sleeps on:
 *	0  awake		2  woken for work of its own, not a searcher
 *	1  asleep		3  claimed: the waker is changing the count
 * Whoever takes it from 1 moves the count; the VP that wants to stay awake
 * does so itself (marcel_idle_undoze) unless a waker was faster.
 */
#ifndef MARCEL_SCHED_IDLE_H
#define MARCEL_SCHED_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include "../os/os.h"

#define MARCEL_IDLE_SEARCHER ((uint64_t)1)
#define MARCEL_IDLE_SLEEPER  ((uint64_t)1 << 32)

enum { MARCEL_AWAKE, MARCEL_ASLEEP, MARCEL_AWAKE_OWN, MARCEL_CLAIMED };

struct marcel_idle {
	ATOMIC(uint64_t) word; /* a: order(idle) */
};

struct marcel_sleeper {
	ATOMIC(uint32_t) asleep; /* a: order(idle), order(sleeper) */
};

static inline uint32_t marcel_idle_searchers(uint64_t word)
{
	return (uint32_t)word;
}

static inline uint32_t marcel_idle_sleepers(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

/* A pusher, after its push: whether a sleeper should be woken to search. */
static inline bool marcel_idle_wanted(struct marcel_idle *i)
{
	uint64_t w = load_seq(&i->word); /* order(idle) */

	return unlikely(marcel_idle_sleepers(w) != 0) &&
	       marcel_idle_searchers(w) == 0;
}

/* The VP begins to search. */
static inline void marcel_idle_search(struct marcel_idle *i)
{
	fetch_add_relaxed(&i->word, MARCEL_IDLE_SEARCHER);
}

/*
 * The VP searches no more, because it found something. True: it was the last
 * and others sleep, so it has to look at every queue and wake one for more.
 */
static inline bool marcel_idle_found(struct marcel_idle *i)
{
	/* order(idle): the caller looks at the queues next. */
	uint64_t w = fetch_sub_seq(&i->word, MARCEL_IDLE_SEARCHER);

	return marcel_idle_searchers(w) == 1 && marcel_idle_sleepers(w) != 0;
}

/* The VP, a searcher, says that it will sleep; now it must look once more. */
static inline void marcel_idle_doze(struct marcel_idle *i,
				    struct marcel_sleeper *s)
{
	store_seq(&s->asleep, MARCEL_ASLEEP); /* order(idle) */
	/* order(idle): the caller looks at the queues next. */
	fetch_add_seq(&i->word, MARCEL_IDLE_SLEEPER - MARCEL_IDLE_SEARCHER);
}

/* The VP, no searcher, counts as asleep from now on; it must look once more. */
static inline void marcel_idle_absent(struct marcel_idle *i,
				      struct marcel_sleeper *s)
{
	store_seq(&s->asleep, MARCEL_ASLEEP); /* order(idle) */
	/* order(idle): the caller looks at the queues next. */
	fetch_add_seq(&i->word, MARCEL_IDLE_SLEEPER);
}

/* Sleep until woken. True: we are a searcher again; false: own work. */
static inline bool marcel_idle_sleep(struct marcel_sleeper *s)
{
	uint32_t v;

	for (;;) {
		v = load_acquire(&s->asleep); /* order(sleeper) */
		if (v == MARCEL_AWAKE || v == MARCEL_AWAKE_OWN)
			return v == MARCEL_AWAKE;
		os_futex_wait(&s->asleep, v);
	}
}

/* The VP saw work after all. True: it is a searcher again; false: own work. */
static inline bool marcel_idle_undoze(struct marcel_idle *i,
				      struct marcel_sleeper *s)
{
	uint32_t v = MARCEL_ASLEEP;

	if (!cas_relaxed(&s->asleep, &v, MARCEL_AWAKE))
		return marcel_idle_sleep(s); /* a waker has claimed us */
	fetch_sub_relaxed(&i->word, MARCEL_IDLE_SLEEPER - MARCEL_IDLE_SEARCHER);
	return true;
}

/*
 * Wake this VP if it sleeps; true if it did, then the caller has to rouse who
 * waits for that. `own`: for work that only it may take (bound to it, or its
 * end); it does not count as a searcher then.
 */
static inline bool marcel_idle_wake(struct marcel_idle *i,
				    struct marcel_sleeper *s, bool own)
{
	uint32_t v = load_seq(&s->asleep); /* order(idle) */

	if (v != MARCEL_ASLEEP || !cas_relaxed(&s->asleep, &v, MARCEL_CLAIMED))
		return false;
	fetch_sub_relaxed(&i->word,
			  own ? MARCEL_IDLE_SLEEPER
			      : MARCEL_IDLE_SLEEPER - MARCEL_IDLE_SEARCHER);
	/* order(sleeper): the count; order(section): the caller looks next */
	store_seq(&s->asleep, own ? MARCEL_AWAKE_OWN : MARCEL_AWAKE);
	return true;
}

#endif
