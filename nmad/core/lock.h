/*
 * The core's lock and the two lists beside it. Nobody has to wait for the lock
 * on the way of a message: who finds it busy leaves what he has on a list and
 * goes, because whoever releases the lock looks at the lists afterwards.
 *
 * That is a store-load race, order(core): the pusher writes a list and then
 * reads `held`; the holder writes `held` and then reads the lists. All four
 * are seq_cst, so at least one of the two sees the other.
 */
#ifndef NMAD_CORE_LOCK_H
#define NMAD_CORE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <base/diag.h>
#include <base/mpsc.h>
#include <base/pin.h>

/*
 * NMAD_LOCK: what who finds the core or a rail busy does, and what the core's
 * lock covers. Those who may not wait do under each scheme what `deferred`
 * says: who is pinned, and so all handlers (ltasks, ticks), and whoever holds
 * one of these locks. Nobody waits, then, who holds anything.
 */
enum nm_lock_scheme {
	NM_LOCK_DEFERRED, /* he leaves what he has on a list, and goes */
	NM_LOCK_FINE,     /* he waits for that lock */
	NM_LOCK_COARSE,   /* likewise, and the core's lock is the rails', too */
	NM_LOCK_LOST,     /* in the child of a fork(): nobody gets it */
};

/* What a lock's word says. */
enum {
	NM_LOCK_FREE,
	NM_LOCK_HELD,
	/* Coarse: free, but not to those who want the core or a rail alone.
	 * A rail's word always says so. */
	NM_LOCK_OUTER,
};

struct nm_core_lock {
	/* -: const while running  a: atomic */
	ATOMIC(uint32_t) held;   /* a: order(core) */
	struct base_mpsc submit; /* a: requests; order(core), order(mpsc) */
	struct base_mpsc events; /* a: rails' news; order(core), order(mpsc) */
	ATOMIC(uint32_t) again;  /* a: wishes, bits; order(core) */
	enum nm_lock_scheme scheme; /* -: */
};

/* What the core's word says while nobody is inside. */
static inline uint32_t nm_core_idle_word(const struct nm_core_lock *l)
{
	return l->scheme == NM_LOCK_COARSE ? NM_LOCK_OUTER : NM_LOCK_FREE;
}

static inline void nm_core_lock_init(struct nm_core_lock *l,
				     enum nm_lock_scheme scheme)
{
	l->scheme = scheme;
	store_relaxed(&l->held, nm_core_idle_word(l));
	base_mpsc_init(&l->submit);
	base_mpsc_init(&l->events);
	store_relaxed(&l->again, 0);
}

/*
 * From this word to HELD. Never waits. After a push it must be tried once more.
 * Whoever takes this lock or a rail's is pinned, and stays so until he has left
 * it.
 */
static inline bool nm_core_enter_from(struct nm_core_lock *l, uint32_t idle)
{
	uint32_t held = load_seq(&l->held); /* order(core), the pusher's look */

	base_assert(base_is_pinned());
	return held == idle &&
	       cas_acquire(&l->held, &held, NM_LOCK_HELD); /* order(core) */
}

/* The core alone; true: held now. Under `coarse` it is never to be had. */
static inline bool nm_core_enter(struct nm_core_lock *l)
{
	return nm_core_enter_from(l, NM_LOCK_FREE);
}

/* The same under any scheme, with the rails if it is so. Never waits. */
static inline bool nm_core_try(struct nm_core_lock *l)
{
	return nm_core_enter_from(l, nm_core_idle_word(l));
}

/*
 * In the child of a fork(), which is no part of the job: nobody gets the core
 * any more, and whoever asks for it comes to nm_core_check_lost(). The way of
 * who gets it knows nothing of that.
 */
static inline void nm_core_lose(struct nm_core_lock *l)
{
	l->scheme = NM_LOCK_LOST;
	store_relaxed(&l->held, NM_LOCK_HELD);
}

/* lock.c: says what has been done, and ends the process. */
void nm_core_refuse_child(void) BASE_NORETURN BASE_COLD;

static inline void nm_core_check_lost(const struct nm_core_lock *l)
{
	if (unlikely(l->scheme == NM_LOCK_LOST))
		nm_core_refuse_child();
}

/*
 * lock.c. `fine`, `coarse`: the same, waiting, if the caller may, who was not
 * pinned when he came to nmad. *busy: it was not to be had at once.
 */
bool nm_core_wait(struct nm_core_lock *l, bool waits, bool *busy);

/* Release, of the word that was entered from. */
static inline bool nm_core_leave_to(struct nm_core_lock *l, uint32_t idle)
{
	store_seq(&l->held, idle);                    /* order(core) */
	return !base_mpsc_is_empty_seq(&l->submit) || /* order(core) */
	       !base_mpsc_is_empty_seq(&l->events) || /* order(core) */
	       load_seq(&l->again) != 0;              /* order(core) */
}

/*
 * After nm_core_enter(). True: something lies on a list or was asked for,
 * perhaps by one who found the lock busy; the caller must try to enter again.
 */
static inline bool nm_core_leave(struct nm_core_lock *l)
{
	return nm_core_leave_to(l, NM_LOCK_FREE);
}

/* The same under any scheme. */
static inline bool nm_core_end(struct nm_core_lock *l)
{
	return nm_core_leave_to(l, nm_core_idle_word(l));
}

/* Leave something for the holder; the caller then tries to enter. */
static inline void nm_core_push(struct base_mpsc *list,
				struct base_mpsc_node *n)
{
	base_mpsc_push_seq(list, n); /* order(core), order(mpsc) */
}

/* What the holder may be asked for. */
enum {
	NM_WISH_TURN = 1, /* another look at the turns: one has ended */
	NM_WISH_POLL = 2, /* the end of a burst, as if he polled */
};

/* Leave a wish for the holder; then try to enter. */
static inline void nm_core_ask(struct nm_core_lock *l, uint32_t wish)
{
	fetch_or_seq(&l->again, wish); /* order(core) */
}

/*
 * Anyone, a hint: nothing is left for the holder. It may stay there while the
 * holder is a thread that was preempted, or a signal handler that dumps.
 */
static inline bool nm_core_is_heeded(struct nm_core_lock *l)
{
	return base_mpsc_is_empty(&l->submit) &&
	       base_mpsc_is_empty(&l->events) && load_relaxed(&l->again) == 0;
}

/*
 * The holder, before he looks at the lists: what he is asked for. A turn's own
 * order does for turns. The end of a burst may be granted before what its owner
 * has left is seen: then that gathers, and who polls is kicked.
 */
static inline uint32_t nm_core_heed(struct nm_core_lock *l)
{
	if (likely(load_relaxed(&l->again) == 0))
		return 0;
	return xchg_relaxed(&l->again, 0);
}

/*
 * A rail's ownership follows the same rule, order(rail), with its list of
 * posts: who finds the rail owned leaves his post there and tries once more.
 */
struct nm_rail_lock {
	/* a: atomic */
	ATOMIC(uint32_t) owned; /* a: order(rail) */
	struct base_mpsc posts; /* a: order(rail), order(mpsc) */
};

/* Under `coarse` who holds the core's lock owns all rails. */
static inline void nm_rail_lock_init(struct nm_rail_lock *l,
				     enum nm_lock_scheme scheme)
{
	store_relaxed(&l->owned,
		      scheme == NM_LOCK_COARSE ? NM_LOCK_OUTER : NM_LOCK_FREE);
	base_mpsc_init(&l->posts);
}

static inline bool nm_rail_enter(struct nm_rail_lock *l)
{
	uint32_t owned = load_seq(&l->owned); /* order(rail), pusher's look */

	base_assert(base_is_pinned());
	return owned == NM_LOCK_FREE &&
	       cas_acquire(&l->owned, &owned, NM_LOCK_HELD); /* order(rail) */
}

/* lock.c. `fine`: the same, waiting, if the caller may. */
bool nm_rail_wait(struct nm_rail_lock *l, bool waits, bool *busy);

/* True: a post was left meanwhile; the caller must try to enter again. */
static inline bool nm_rail_leave(struct nm_rail_lock *l)
{
	store_seq(&l->owned, NM_LOCK_FREE);        /* order(rail) */
	return !base_mpsc_is_empty_seq(&l->posts); /* order(rail) */
}

static inline void nm_rail_push(struct nm_rail_lock *l,
				struct base_mpsc_node *n)
{
	base_mpsc_push_seq(&l->posts, n); /* order(rail), order(mpsc) */
}

/*
 * A link carries one small packet at a time: the holder of the core's lock
 * takes the turn and forms a packet, the rail's owner ends the turn when the
 * packet has left. Who wants to send and finds no turn free says so in
 * `hungry` and looks once more; who ends a turn then looks at `hungry`: the
 * same kind of race, order(hungry).
 */
struct nm_turn {
	ATOMIC(uint32_t) busy; /* a: core takes, rail's owner ends */
};

struct nm_hunger {
	ATOMIC(uint32_t) word; /* a: core's; order(hungry) */
};

/* Core lock held. What the sender of the last packet did is visible. */
static inline bool nm_turn_is_free(struct nm_turn *t)
{
	return load_acquire(&t->busy) == 0; /* order(hungry) */
}

static inline void nm_turn_take(struct nm_turn *t)
{
	store_relaxed(&t->busy, 1);
}

/* Core lock held, the turn is taken: ask for its end. True: it is free now. */
static inline bool nm_turn_want(struct nm_turn *t, struct nm_hunger *h)
{
	store_seq(&h->word, 1);         /* order(hungry) */
	return load_seq(&t->busy) == 0; /* order(hungry) */
}

/* Rail's owner. True: somebody wants it, the caller must enter the core. */
static inline bool nm_turn_end(struct nm_turn *t, struct nm_hunger *h)
{
	store_seq(&t->busy, 0);         /* order(hungry) */
	return load_seq(&h->word) != 0; /* order(hungry) */
}

#endif
