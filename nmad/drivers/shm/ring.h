/*
 * The ring: how a process gets small packets from all peers of its host. One
 * ring per receiver, in its segment; every peer may fill it; looking whether
 * something came is one load of one word.
 *
 * A *ticket* is a place in the stream of packets; ticket t uses slot t mod
 * nslots. Tickets start at nslots, so that zeroed memory is an empty ring.
 *
 *   claim[i]  ticket << 20 | rank    who has taken ticket t, by compare-and-
 *                                    swap: no claimed slot is anonymous
 *   slot.full ticket << 16 | kind << 12 | length    the packet of t is whole
 *   head      all tickets below are consumed; published every nslots / 8,
 *             which must be less than a peer's quota, and for who is hungry
 *
 * The claims stand apart from the slots, because the receiver spins on `full`
 * of the slot that comes next: a compare-and-swap there would lose the line to
 * it before the payload is written. So a small packet costs one line transfer
 * for flag, header and payload together.
 *
 *   sender     claim t: CAS claim[t mod n]    may be filled once head > t - n
 *              write the slot
 *              full = t       release half of order(ring)
 *   receiver   full == head?  acquire half of order(ring)
 *              read the slot
 *              head = head + 1, published: release half of order(ring-free)
 *   sender     head           acquire half of order(ring-free)
 *
 * Tickets are claimed in order: a sender steps from t to t + 1 only when it has
 * seen t claimed. Hence a receiver that knows the owner of a claimed slot to
 * be dead skips that slot and loses nothing else.
 *
 * What lies behind a slot that is claimed and not filled waits for it, though
 * its sender has told the receiver. So who fills a slot and would not tell asks
 * whether the next one is claimed: if not, whoever claims it has seen ours
 * filled and tells, order(followed).
 */
#ifndef NMAD_DRIVERS_SHM_RING_H
#define NMAD_DRIVERS_SHM_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>

enum {
	SHM_SLOTS = 256,           /* a power of two */
	SHM_QUOTA = SHM_SLOTS / 4, /* slots that one peer may fill */
	SHM_SLOT_BYTES = 512,
	SHM_INLINE = SHM_SLOT_BYTES - 16,
	SHM_FIRST_LINE = BASE_CACHE_LINE - 16, /* of it, beside full */
	SHM_RANK_BITS = 20,
};

struct shm_slot {
	/* a: see above  s: the claimer's until full, then the receiver's */
	ATOMIC(uint64_t) full;          /* a: order(ring) */
	uint32_t rank;                  /* s: who wrote it */
	uint32_t spare;                 /* s: */
	unsigned char data[SHM_INLINE]; /* s: 48 bytes share full's line */
} BASE_ALIGNED(BASE_CACHE_LINE);

/* Where a ring lies. In the explorer nslots is small. */
struct shm_ring {
	ATOMIC(uint64_t) * head;  /* a: the receiver's; order(ring-free) */
	ATOMIC(uint64_t) * tail;  /* a: a hint; at most the first free ticket */
	ATOMIC(uint64_t) * claim; /* a: */
	struct shm_slot *slot;
	uint32_t nslots; /* a power of two */
};

/* The receiving end: the owner of the rail. */
struct shm_ring_rx {
	struct shm_ring ring;
	uint64_t head, published;
	ATOMIC(uint64_t) hint; /* a: head, for those who do not own the end */
};

/* One peer's sending end: the owner of the rail. */
struct shm_ring_tx {
	struct shm_ring ring;
	uint32_t rank;            /* mine */
	uint32_t quota;           /* a power of two, at most SHM_QUOTA */
	uint64_t next;            /* at most the first free ticket */
	uint64_t seen;            /* of head */
	uint64_t mine[SHM_QUOTA]; /* my tickets that may be unconsumed */
	uint32_t first, nmine;
};

static inline void shm_ring_rx_init(struct shm_ring_rx *rx,
				    struct shm_ring ring)
{
	rx->ring = ring;
	rx->head = rx->published = ring.nslots;
	store_relaxed(&rx->hint, rx->head);
	store_relaxed(ring.head, rx->head); /* before anyone else maps it */
	store_relaxed(ring.tail, rx->head);
}

static inline void shm_ring_tx_init(struct shm_ring_tx *tx,
				    struct shm_ring ring, uint32_t rank,
				    uint32_t quota)
{
	tx->ring = ring;
	tx->rank = rank;
	tx->quota = quota;
	tx->next = tx->seen = ring.nslots;
	tx->first = tx->nmine = 0;
}

/* Look at the receiver's head again; forget those of mine below it. */
static inline void shm_ring_look(struct shm_ring_tx *tx)
{
	tx->seen = load_acquire(tx->ring.head); /* order(ring-free) */
	while (tx->nmine > 0 && tx->mine[tx->first] < tx->seen) {
		tx->first = (tx->first + 1) & (tx->quota - 1);
		tx->nmine--;
	}
}

/*
 * Take the next ticket; its slot is then mine to fill and must be filled.
 * False: the ring is full, or I have my share of it already.
 */
static inline bool shm_ring_claim(struct shm_ring_tx *tx, uint64_t *out)
{
	uint32_t n = tx->ring.nslots, i;
	uint64_t t = tx->next, word, hint;

	if (unlikely(tx->nmine == tx->quota)) {
		shm_ring_look(tx);
		if (tx->nmine == tx->quota)
			return false;
	}
	for (;;) {
		i = (uint32_t)t & (n - 1);
		word = load_relaxed(&tx->ring.claim[i]);
		if (unlikely(word >> SHM_RANK_BITS >= t)) {
			hint = load_relaxed(tx->ring.tail);
			t = hint > t ? hint : t + 1;
			continue;
		}
		if (unlikely(t - tx->seen >= n)) {
			shm_ring_look(tx);
			if (t - tx->seen >= n) {
				tx->next = t;
				return false;
			}
		}
		/* order(followed): what is before us */
		if (likely(cas_acquire(&tx->ring.claim[i], &word,
				       t << SHM_RANK_BITS | tx->rank)))
			break;
	}
	tx->next = t + 1;
	store_relaxed(tx->ring.tail, t + 1);
	tx->mine[(tx->first + tx->nmine++) & (tx->quota - 1)] = t;
	*out = t;
	return true;
}

/*
 * Whether it is worth while to claim again. A claim that fails leaves `next`
 * where the receiver must make room, or others were faster.
 */
static inline bool shm_ring_has_room(struct shm_ring_tx *tx)
{
	shm_ring_look(tx);
	return tx->nmine < tx->quota && tx->next - tx->seen < tx->ring.nslots;
}

static inline struct shm_slot *shm_ring_slot(struct shm_ring_tx *tx, uint64_t t)
{
	return &tx->ring.slot[(uint32_t)t & (tx->ring.nslots - 1)];
}

/* The slot is written: give it to the receiver. */
static inline void shm_ring_fill(struct shm_ring_tx *tx, uint64_t t,
				 unsigned kind, unsigned length)
{
	struct shm_slot *s = shm_ring_slot(tx, t);

	s->rank = tx->rank;
	store_release(&s->full, t << 16 | kind << 12 | length); /* order(ring):
								 * *s */
}

/* t is filled: whether others wait behind it for that. */
static inline bool shm_ring_is_followed(struct shm_ring_tx *tx, uint64_t t)
{
	uint32_t i = (uint32_t)(t + 1) & (tx->ring.nslots - 1);

	/* order(followed): *slot of t */
	return fetch_or_release(&tx->ring.claim[i], 0) >> SHM_RANK_BITS > t;
}

/* The packet that comes next, or NULL. Kind and length out of `word`. */
static inline struct shm_slot *shm_ring_peek(struct shm_ring_rx *rx,
					     unsigned *word)
{
	uint32_t i = (uint32_t)rx->head & (rx->ring.nslots - 1);
	struct shm_slot *s = &rx->ring.slot[i];
	uint64_t full = load_acquire(&s->full); /* order(ring) */

	if (full >> 16 != rx->head)
		return NULL;
	*word = (unsigned)(full & 0xffff);
	return s;
}

static inline unsigned shm_ring_kind(unsigned word)
{
	return word >> 12;
}

static inline unsigned shm_ring_length(unsigned word)
{
	return word & 0xfff;
}

/*
 * Anyone: is there perhaps a packet? Then its other lines are sent for, so that
 * they travel together, while the caller is on his way to read them.
 */
static inline bool shm_ring_has(struct shm_ring_rx *rx)
{
	uint64_t head = load_relaxed(&rx->hint);
	struct shm_slot *s =
		&rx->ring.slot[(uint32_t)head & (rx->ring.nslots - 1)];
	uint64_t full = load_relaxed(&s->full);
	size_t length = shm_ring_length((unsigned)full), at = SHM_FIRST_LINE;

	if (full >> 16 != head)
		return false;
	for (; at < length && at < SHM_INLINE; at += BASE_CACHE_LINE)
		__builtin_prefetch(&s->data[at]);
	return true;
}

/* All that has been read may be filled again. */
static inline void shm_ring_publish(struct shm_ring_rx *rx)
{
	rx->published = rx->head;
	store_release(rx->ring.head, rx->head); /* order(ring-free): reads */
}

/* What peek() gave has been read. */
static inline void shm_ring_pop(struct shm_ring_rx *rx)
{
	rx->head++;
	store_relaxed(&rx->hint, rx->head);
	if (rx->head - rx->published >= rx->ring.nslots / 8)
		shm_ring_publish(rx);
}

/* Who has claimed the slot that comes next, or -1. */
static inline int shm_ring_claimer(struct shm_ring_rx *rx)
{
	uint32_t i = (uint32_t)rx->head & (rx->ring.nslots - 1);
	uint64_t word = load_relaxed(&rx->ring.claim[i]);

	if (word >> SHM_RANK_BITS != rx->head)
		return -1;
	return (int)(word & ((1u << SHM_RANK_BITS) - 1));
}

/* The first ticket that nobody has claimed, as of now. */
static inline uint64_t shm_ring_end(struct shm_ring_rx *rx)
{
	uint64_t t = rx->head;
	uint32_t n = rx->ring.nslots;

	while (t - rx->head < n &&
	       load_relaxed(&rx->ring.claim[t & (n - 1)]) >> SHM_RANK_BITS == t)
		t++;
	return t;
}

#endif
