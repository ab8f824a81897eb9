/*
 * A lock for short, bounded stretches: no parking, no driver, no user callback
 * inside. It spins about 1 us and then sleeps on a futex, because the holder
 * may have lost its CPU; but the tick does not take it. Zero is unlocked.
 *
 * Ranks: a thread may only take locks of rising rank; debug builds check it.
 */
#ifndef BASE_SPIN_H
#define BASE_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <base/pin.h>

enum base_spin_rank {
	BASE_RANK_NONE, /* not checked */
	BASE_RANK_SYNC, /* pioman's semaphores, signals */
	BASE_RANK_RUNQ, /* a level's run queue */
	BASE_RANK_POOL, /* descriptors, stacks */
	BASE_RANK_LEAF, /* nothing is taken inside */
};

struct base_spin {
	ATOMIC(uint32_t)
	word;          /* a: 0 free, 1 held, 2 held and waited for, else held
			*    by whom that names; order(spin) */
	uint32_t rank; /* -: */
};

#define BASE_SPIN_INIT(r)                                                      \
	{                                                                      \
		.rank = (r)                                                    \
	}

void base_spin_lock_slow(struct base_spin *s);
void base_spin_unlock_slow(struct base_spin *s);

/*
 * The next turn of who looks at a word of his own until its holder, who is
 * pinned, has left: *turn begins at 0. A pause; after about 1 us the CPU is
 * given to others; later the kernel thread sleeps 50 us a turn, for a holder
 * whom the kernel would not run beside us. A handler holds up whom it has
 * interrupted, so let it wait only where nothing else will do.
 */
void base_spin_turn(unsigned *turn);

#ifdef NDEBUG
static inline void base_spin_rank_push(struct base_spin *s)
{
	(void)s;
}

static inline void base_spin_rank_pop(struct base_spin *s)
{
	(void)s;
}
#else
void base_spin_rank_push(struct base_spin *s);
void base_spin_rank_pop(struct base_spin *s);
#endif

static inline void base_spin_init(struct base_spin *s, enum base_spin_rank rank)
{
	store_relaxed(&s->word, 0);
	s->rank = rank;
}

/*
 * From a word, so that it is held now: from 0, which is free, or from the name
 * of a holder who is dead and will not leave. By 1, or by a name, from
 * BASE_SPIN_NAMES on; nobody may sleep until such a one leaves. False: the word
 * is another one. Never spins.
 */
#define BASE_SPIN_NAMES 3u
static inline bool base_spin_take(struct base_spin *s, uint32_t from,
				  uint32_t by)
{
	base_pin();
	if (!cas_acquire(&s->word, &from, by)) { /* order(spin), taker's end */
		base_unpin();
		return false;
	}
	base_spin_rank_push(s);
	return true;
}

/* True if it was free and is now held. Never spins. */
static inline bool base_spin_trylock(struct base_spin *s)
{
	return base_spin_take(s, 0, 1);
}

static inline void base_spin_lock(struct base_spin *s)
{
	uint32_t free = 0;

	base_pin();
	if (unlikely(!cas_acquire(&s->word, &free, 1))) /* order(spin) */
		base_spin_lock_slow(s);
	base_spin_rank_push(s);
}

/* The exchange is the last access to the lock. */
static inline void base_spin_unlock(struct base_spin *s)
{
	base_spin_rank_pop(s);
	if (unlikely(xchg_release(&s->word, 0) == 2)) /* order(spin): all */
		base_spin_unlock_slow(s);
	base_unpin();
}

#endif
