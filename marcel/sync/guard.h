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
};

/* One pause of somebody who finds it held; *turn counts them, from 0. */
void marcel_guard_pause(unsigned *turn);

/* Take the guard; the object's bits, without the guard's. */
static inline uint32_t marcel_guard_lock(struct marcel_guard *g)
{
	uint32_t w = load_relaxed(&g->word);
	unsigned turn = 0;

	cpu_tls_pin(1);
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

/* The same if nobody holds it: true, and the bits go to *out. */
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

#endif
