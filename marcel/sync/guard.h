/*
 * The guard: bit 0 of an object's own word. Who holds it owns the whole word
 * and the object's wait queue; everybody else leaves the word alone, so it is
 * given back by one plain store of the word's next value. That store is the
 * holder's last access to the object: where it also says "unlocked", the next
 * owner may destroy the object at once.
 *
 * It is held for a few instructions, never across a park, a wake or a call,
 * and the tick does not interrupt them.
 * A kernel thread that holds it may lose its CPU; so who waits spins a bounded
 * time and then gives its own CPU away between looks. There is no bit for
 * sleepers: it would turn the store into a second read-modify-write. The lock
 * of a heap of timers (timer.h) may be taken inside.
 *
 * The child of a fork() has the object, and none of the threads that wait for
 * it, nor the one that held the guard at that instant. So the object says whose
 * it is, by the generation of the process:
 *
 *	whoever takes the guard makes the object its process's before;
 *
 * hence the waiters in the queue are of the process that the object names, and
 * in any other nobody waits, nobody is on the way, nobody holds the guard. To
 * make it one's own is to empty the queue, with its records unread, and to
 * clear what the word says of waiters. An object of zeros is generation 0's: in
 * a child that costs one adoption that finds nothing.
 */
#ifndef MARCEL_SYNC_GUARD_H
#define MARCEL_SYNC_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include "../arch/cpu.h"

#define MARCEL_GUARDED ((uint32_t)1)

struct marcel_guard {
	ATOMIC(uint32_t) word; /* a: order(guard); the object's own bits */
	ATOMIC(uint32_t) generation; /* a: order(adopt); whose it is */
};

/*
 * How many processes forked one another, and knew of it, up to this one.
 * Written by the only thread of a new process.
 */
extern BASE_HIDDEN uint32_t marcel_generation;

/*
 * The object is this process's from now on: empty its queue. What its word,
 * here w, becomes.
 */
typedef uint32_t (*marcel_adopt_fn)(struct marcel_guard *g, uint32_t w);

/*
 * Of another process: take it over, with its guard, which nobody alive holds.
 * False: somebody else has done it.
 */
bool marcel_guard_adopt(struct marcel_guard *g, marcel_adopt_fn adopt,
			uint32_t *out);

/* thread/fork.c: in the child. */
void marcel_guard_forked(void);

/* A new object, for which nobody waits, is ours at once. */
static inline void marcel_guard_init(struct marcel_guard *g, uint32_t w)
{
	store_relaxed(&g->word, w);
	store_relaxed(&g->generation, marcel_generation);
}

/* Whether who waits, if anybody, does so in this process. */
static inline bool marcel_guard_is_ours(struct marcel_guard *g)
{
	if (likely(marcel_generation == 0))
		return true;
	/* order(adopt): the queue, empty */
	return load_acquire(&g->generation) == marcel_generation;
}

/* One pause of somebody who finds it held; *turn counts them, from 0. */
void marcel_guard_pause(unsigned *turn);

/* Take the guard; the object's bits, without the guard's. */
static inline uint32_t marcel_guard_lock(struct marcel_guard *g,
					 marcel_adopt_fn adopt)
{
	uint32_t w = load_relaxed(&g->word), left;
	unsigned turn = 0;

	cpu_tls_pin(1);
	if (unlikely(!marcel_guard_is_ours(g)) &&
	    marcel_guard_adopt(g, adopt, &left))
		return left;
	for (;;) {
		if (unlikely(w & MARCEL_GUARDED)) {
			marcel_guard_pause(&turn);
			w = load_relaxed(&g->word);
			continue;
		}
		/* order(guard): the queue, as the last holder left it */
		if (likely(cas_weak_acquire(&g->word, &w, w | MARCEL_GUARDED)))
			return w;
	}
}

/*
 * The same if nobody holds it: true, and the bits go to *out. The object is
 * ours.
 */
static inline bool marcel_guard_trylock(struct marcel_guard *g, uint32_t *out)
{
	uint32_t w = load_relaxed(&g->word);

	cpu_tls_pin(1);
	/* order(guard): the queue, as the last holder left it */
	if (w & MARCEL_GUARDED ||
	    !cas_acquire(&g->word, &w, w | MARCEL_GUARDED)) {
		cpu_tls_pin(-1);
		return false;
	}
	*out = w;
	return true;
}

/* Give it back; the object's bits become w. The last access. */
static inline void marcel_guard_unlock(struct marcel_guard *g, uint32_t w)
{
	store_release(&g->word, w); /* order(guard): the queue */
	cpu_tls_pin(-1);
}

/*
 * For who does not take it: what the word says of waiters, and of who holds the
 * guard, is true after. The caller holds none.
 */
static inline void marcel_guard_renew(struct marcel_guard *g,
				      marcel_adopt_fn adopt)
{
	if (unlikely(!marcel_guard_is_ours(g)))
		marcel_guard_unlock(g, marcel_guard_lock(g, adopt));
}

#endif
