/*
 * The doorbell: how a process that waits in the kernel learns that a peer has
 * filled a slot of its ring. While it is awake that costs the peer one load of
 * a word that nobody writes.
 *
 *   sender                          receiver
 *   full = t                        asleep: 0 -> 1
 *                                   a barrier on every CPU
 *   asleep?                         full?
 *     1 -> 0, write a byte            yes: 1 -> 0, it does not sleep
 *                                     no: sleeps until the pipe is readable
 *
 * Both sides store, then look at what the other stores; at least one must see
 * the other. `asleep` is changed by read-modify-writes only, so if the sender
 * looks by one, too, there are two cases: his comes before the receiver's,
 * which then sees all that he did before, or after it, and then he reads 1.
 * That is order(doorbell). In place of his the receiver has the kernel run a
 * barrier on every CPU of the processes that have asked for it; where one of
 * the two could not, the sender pays for it himself.
 *
 * A process may wait for more than packets. What moves a large transfer asks
 * the peer's bell after each step as after a packet. Room in a ring, or a
 * buffer that comes back, is told to those who have said that they lack it:
 *
 *   sender, without room            receiver
 *   asleep: 0 -> 1                  makes room
 *   hungry there: 0 -> 1            hungry?
 *   a barrier on every CPU            1 -> 0, ring those who sleep hungry
 *   room?
 *
 * Whoever sleeps looks at all of this again once its bell is set. The receiver
 * may ring before it has made the room, and does so once: so who says that it
 * is hungry is asleep already, order(room), and says it again when it has been
 * rung in vain.
 *
 * Who brings `asleep` from 1 to 0 as a sender writes a byte, always. So a byte
 * may come late, when the receiver is awake or sleeps again: a look too much.
 * One that dies before it writes is a death, of which the receiver is told.
 */
#ifndef NMAD_DRIVERS_SHM_BELL_H
#define NMAD_DRIVERS_SHM_BELL_H

#include <stdbool.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>

#include "ring.h"

/* In the receiver's segment, on a line that is otherwise constant. */
struct shm_bell {
	/* -: const once published  a: atomic */
	ATOMIC(uint32_t) asleep; /* a: order(doorbell) */
	uint32_t barrier;        /* -: the receiver has a barrier run */
	ATOMIC(uint32_t) hungry; /* a: some peer lacks room; order(room) */
};

/* In a segment, for each process of the host: its owner and that one. */
struct shm_note {
	ATOMIC(uint32_t)
	bye; /* a: the owner has left it in good order; order(shm-bye) */
	ATOMIC(uint32_t) hungry; /* a: it lacks room here; order(room) */
};

/*
 * A barrier on every CPU that runs a process which has asked for that. False:
 * the kernel refuses it.
 */
bool nm_shm_bell_barrier(void);

/* Sender, after it has filled a slot: `light` if both have the barrier. */
static inline bool shm_bell_is_wanted(struct shm_bell *b, bool light)
{
	if (likely(light))
		return unlikely(load_newest_light(&b->asleep) != 0);
	return fetch_or_release(&b->asleep, 0) != 0; /* order(doorbell) */
}

/* Receiver, after it has made room: `light` if all have the barrier. */
static inline bool shm_bell_is_hungry(struct shm_bell *b, bool light)
{
	if (likely(light))
		return unlikely(load_newest_light(&b->hungry) != 0);
	return fetch_or_release(&b->hungry, 0) != 0; /* order(doorbell) */
}

/* Receiver: it rings those who have said that they are, next. */
static inline void shm_bell_feed(struct shm_bell *b)
{
	xchg_acquire(&b->hungry, 0); /* order(room) */
}

/*
 * Sender, whose own bell is set and who will sleep until that receiver has made
 * room: it says so there, in `mine`, and looks next.
 */
static inline void shm_bell_hunger(struct shm_bell *b, struct shm_note *mine)
{
	store_relaxed(&mine->hungry, 1);
	/* order(room): its bell, too; order(doorbell) */
	xchg_acq_rel(&b->hungry, 1);
}

/* Sender: true if it is his to write the byte. */
static inline bool shm_bell_take(struct shm_bell *b)
{
	return xchg_relaxed(&b->asleep, 0) != 0;
}

/* Receiver, it was set, and there is something else: it does not sleep. */
static inline void shm_bell_unset(struct shm_bell *b)
{
	xchg_relaxed(&b->asleep, 0);
}

/* Receiver, the pipe is empty: it will sleep, but looks first. */
static inline void shm_bell_set(struct shm_bell *b)
{
	xchg_acquire(&b->asleep, 1); /* order(doorbell) */
}

/*
 * Receiver, its bell is set, and it has said where it is hungry. False: a
 * packet is there, or it is not known; it must not sleep, and the bell is set
 * no more.
 */
static inline bool shm_bell_look(struct shm_bell *b, struct shm_ring_rx *rx)
{
	unsigned word;
	bool sure = true;

	if (b->barrier)
		sure = nm_shm_bell_barrier();
	if (sure && shm_ring_peek(rx, &word) == NULL)
		return true;
	shm_bell_unset(b);
	return false;
}

#endif
