/*
 * What processes of one node tell each other through memory that they share:
 * the words of it, and how one sleeps until another has told.
 *
 * A process writes data, then tells: it stores a number that only grows into a
 * word of its own. Others wait until the word has come to a number. Who waits
 * looks at the word for a while; then it asks the teller to ring, and sleeps
 * until a message of that process comes.
 *
 *   teller                          waiter
 *   data, word = k                  sleepers: my bit 0 -> 1
 *   sleepers: all -> 0              word >= k?
 *     a message to each that was      yes: my bit 1 -> 0, or it was taken, and
 *                                          the message is received
 *                                     no:  sleeps until the message comes
 *
 * Both change `sleepers` by read-modify-writes. If the teller's comes first,
 * the waiter's reads from it and sees the word; else the teller finds the bit.
 * That is order(coll-bell). Each bit that is taken is one message, and each
 * message is received by who set the bit: none is left over.
 */
#ifndef MADMPI_COLL_SLOTS_H
#define MADMPI_COLL_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>

/* Slots are of two sizes, so that whoever gives little may be far ahead. */
enum { MADMPI_LITTLE, MADMPI_MUCH, MADMPI_LANES };

/* Of a process, in the shared memory. */
struct madmpi_line {
	/* a: atomic, written by its owner, and by who sets a bit */
	/* a: by lane, what it needs no more; order(coll-slot) */
	ATOMIC(uint64_t) done[MADMPI_LANES];
	/* a: a bit for each rank; order(coll-bell) */
	ATOMIC(uint32_t) sleepers;
} BASE_ALIGNED(BASE_CACHE_PAIR);

/* What little there is shares a cache line with its number. */
struct madmpi_slot {
	ATOMIC(uint64_t) number; /* a: of what is in it; order(coll-slot) */
	uint32_t bytes;          /* -: of the data; once it is told */
	int16_t error; /* -: as `bytes`: its process has failed, or 0 */
	uint16_t call; /* -: as `bytes`: the last bits of the call's number */
	char data[];   /* -: as `bytes`; aligned for any type */
};

_Static_assert(sizeof(struct madmpi_slot) == 16, "data are aligned");

/*
 * Numbers do not go round: the word of a process may stay as it is for any
 * time, as the slots of one that is never a root.
 */
typedef ATOMIC(uint64_t) madmpi_word_t;

static inline bool madmpi_word_has_come(const void *word, uint64_t number)
{
	madmpi_word_t *w = (void *)word;

	/* order(coll-slot): the data; or that they are read */
	return load_acquire(w) >= number;
}

/* The owner; next it asks who sleeps. */
static inline void madmpi_word_tell(void *word, uint64_t number)
{
	madmpi_word_t *w = word;

	store_release(w, number); /* order(coll-slot) */
}

/* The owner, after it has told: whom it must send a message each. */
static inline uint32_t madmpi_sleepers_take(struct madmpi_line *l)
{
	return xchg_release(&l->sleepers, 0); /* order(coll-bell) */
}

/* A waiter; it looks at the word next. */
static inline void madmpi_sleepers_join(struct madmpi_line *l, int rank)
{
	fetch_or_acquire(&l->sleepers, 1u << rank); /* order(coll-bell) */
}

/* It has seen the number. False: a message is under way nevertheless. */
static inline bool madmpi_sleepers_leave(struct madmpi_line *l, int rank)
{
	uint32_t bit = 1u << rank;

	return (fetch_and_relaxed(&l->sleepers, ~bit) & bit) != 0;
}

#endif
