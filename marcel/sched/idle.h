/*
 * Who sleeps, who searches: order(idle), a store-load race.
 *
 * One word counts the VPs that search for work, those that watch and those that
 * sleep. A pusher makes its work visible and then looks at the word; a VP that
 * goes to sleep changes the word and then looks for work again. All four are
 * seq_cst, so at least one of the two sees the other.
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
 * To watch is to sleep for a short time only. For what lies in the slot of a VP
 * (slot.h), and will most often be gone in a moment, a pusher wakes nobody
 *while somebody searches or watches, because that one looks again soon; else it
 * wakes a sleeper, which will watch later. Such a push is no atomic operation:
 * the last who sleeps, or finds work while others sleep, has the kernel run a
 * barrier on every CPU before it looks at the slots.
 *
 * `asleep`, a word per VP, is what the futex sleeps on:
 *	0  awake		2  woken for work of its own, not a searcher
 *	1  asleep		3  claimed: the waker is changing the count
 *	4  watching
 * Whoever takes it from 1 or 4 moves the count; the VP that wants to stay awake
 * does so itself (marcel_idle_undoze) unless a waker was faster.
 */
#ifndef MARCEL_SCHED_IDLE_H
#define MARCEL_SCHED_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include "../os/os.h"
#include "timer.h"

/* The word: sleepers, 32 bits; watchers, 16; searchers, 16. */
#define MARCEL_IDLE_SEARCHER ((uint64_t)1)
#define MARCEL_IDLE_WATCHER  ((uint64_t)1 << 16)
#define MARCEL_IDLE_SLEEPER  ((uint64_t)1 << 32)

enum {
	MARCEL_AWAKE,
	MARCEL_ASLEEP,
	MARCEL_AWAKE_OWN,
	MARCEL_CLAIMED,
	MARCEL_WATCHING,
};

struct marcel_idle {
	ATOMIC(uint64_t) word; /* a: order(idle) */
};

struct marcel_sleeper {
	ATOMIC(uint32_t) asleep; /* a: order(idle), order(sleeper) */
};

static inline unsigned marcel_idle_searchers(uint64_t word)
{
	return (uint16_t)word;
}

/* Watchers too: whoever a wake finds. */
static inline unsigned marcel_idle_sleepers(uint64_t word)
{
	return (unsigned)(word >> 32) + (uint16_t)(word >> 16);
}

/* Somebody sleeps and nobody looks at the slots. */
static inline bool marcel_idle_is_unwatched(uint64_t word)
{
	return word != 0 && (uint32_t)word == 0;
}

static inline uint64_t marcel_idle_weight(uint32_t asleep)
{
	return asleep == MARCEL_WATCHING ? MARCEL_IDLE_WATCHER
					 : MARCEL_IDLE_SLEEPER;
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
 * The VP searches no more, because it found something: the word that it
 * leaves. If it was the last searcher and others sleep, it has to look at every
 * queue and wake one for more; if nobody watches, also at the slots.
 */
static inline uint64_t marcel_idle_found(struct marcel_idle *i)
{
	/* order(idle): the caller looks at the queues next. */
	return fetch_sub_seq(&i->word, MARCEL_IDLE_SEARCHER) -
	       MARCEL_IDLE_SEARCHER;
}

/*
 * The VP, a searcher, says that it will sleep or watch; now it must look once
 * more: at the slots, too, if nobody watches the word that it leaves.
 */
static inline uint64_t marcel_idle_doze(struct marcel_idle *i,
					struct marcel_sleeper *s, uint32_t how)
{
	uint64_t change = marcel_idle_weight(how) - MARCEL_IDLE_SEARCHER;

	store_seq(&s->asleep, how); /* order(idle) */
	/* order(idle): the caller looks at the queues next. */
	return fetch_add_seq(&i->word, change) + change;
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

/*
 * The VP, which dozes like that, saw work after all. True: it is a searcher
 * again; false: own work.
 */
static inline bool marcel_idle_undoze(struct marcel_idle *i,
				      struct marcel_sleeper *s, uint32_t how)
{
	uint32_t v = how;

	if (!cas_relaxed(&s->asleep, &v, MARCEL_AWAKE))
		return marcel_idle_sleep(s); /* a waker has claimed us */
	fetch_sub_relaxed(&i->word,
			  marcel_idle_weight(how) - MARCEL_IDLE_SEARCHER);
	return true;
}

/* Sleep until woken, or so long. As marcel_idle_undoze(). */
static inline bool marcel_idle_watch(struct marcel_idle *i,
				     struct marcel_sleeper *s, uint64_t ns)
{
	os_futex_wait_for(&s->asleep, MARCEL_WATCHING, ns);
	return marcel_idle_undoze(i, s, MARCEL_WATCHING);
}

/*
 * Sleep until woken, or until a timer is due. True: we are a searcher again;
 * false: own work.
 */
static inline bool marcel_idle_sleep_timed(struct marcel_idle *i,
					   struct marcel_sleeper *s,
					   struct marcel_timers *timers)
{
	uint32_t v;

	for (;;) {
		v = load_acquire(&s->asleep); /* order(sleeper) */
		if (v == MARCEL_AWAKE || v == MARCEL_AWAKE_OWN)
			return v == MARCEL_AWAKE;
		if (marcel_timers_sleep(timers, &s->asleep, v))
			return marcel_idle_undoze(i, s, MARCEL_ASLEEP);
	}
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

	uint64_t weight = marcel_idle_weight(v);

	if ((v != MARCEL_ASLEEP && v != MARCEL_WATCHING) ||
	    !cas_relaxed(&s->asleep, &v, MARCEL_CLAIMED))
		return false;
	fetch_sub_relaxed(&i->word,
			  own ? weight : weight - MARCEL_IDLE_SEARCHER);
	/* order(sleeper): the count; order(section): the caller looks next */
	store_seq(&s->asleep, own ? MARCEL_AWAKE_OWN : MARCEL_AWAKE);
	return true;
}

#endif
