/*
 * A ring: where the events of one VP, or of all kernel threads without one, are
 * written, one writer at a time. What it writes into is a chunk of the mapped
 * file. A full one is handed to the writer's kernel thread, against the next:
 *
 *	mail		whose turn
 *	a chunk		the ring's: it is the next
 *	chunk | FULL	the writer's: it is done with, and the next is wanted
 *	0		the writer's: there was none to be had
 *
 * If the turn is the writer's when a chunk is full, events are lost; how many
 * stands in the head of that chunk.
 */
#ifndef MARCEL_TRACE_RING_H
#define MARCEL_TRACE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include "format.h"

/* struct marcel_trace_chunk, while it is written to. */
struct marcel_trace_head {
	uint32_t magic, type;
	uint64_t bytes;
	ATOMIC(uint64_t) used; /* a: the ring's; whoever maps the file */
	ATOMIC(uint64_t) lost; /* a: the same */
	uint32_t ring, zero;
	uint64_t offset, zeros[2];
};

_Static_assert(sizeof(struct marcel_trace_head) ==
			       sizeof(struct marcel_trace_chunk) &&
		       offsetof(struct marcel_trace_head, used) ==
			       offsetof(struct marcel_trace_chunk, used) &&
		       offsetof(struct marcel_trace_head, lost) ==
			       offsetof(struct marcel_trace_chunk, lost),
	       "the head of a chunk");
_Static_assert(sizeof(struct marcel_trace_record) == 24, "a record");

#define MARCEL_TRACE_FULL ((uintptr_t)1)

struct marcel_trace_ring {
	/* o: whose turn it is to record    a: atomic, pair named */
	struct marcel_trace_head *chunk; /* o: being filled */
	size_t room;                     /* -: of a chunk's payload */
	ATOMIC(uint64_t) lost;           /* a: relaxed; all in all */
	ATOMIC(uintptr_t) mail;          /* a: order(trace) */
} BASE_ALIGNED(BASE_CACHE_PAIR);

/* The chunk is full. False: there is no other one yet. */
static inline bool marcel_trace_ring_turn(struct marcel_trace_ring *r)
{
	uintptr_t next = load_acquire(&r->mail); /* order(trace): the chunk */

	if (next == 0 || next & MARCEL_TRACE_FULL)
		return false;
	/* order(trace): we are done with it */
	store_release(&r->mail, (uintptr_t)r->chunk | MARCEL_TRACE_FULL);
	r->chunk = (struct marcel_trace_head *)next;
	return true;
}

/* The writer: whether its turn is; *out is a full chunk, or NULL. */
static inline bool marcel_trace_ring_wants(struct marcel_trace_ring *r,
					   struct marcel_trace_head **out)
{
	uintptr_t full = load_acquire(&r->mail); /* order(trace): its owner */

	if (full != 0 && !(full & MARCEL_TRACE_FULL))
		return false;
	*out = (struct marcel_trace_head *)(full & ~MARCEL_TRACE_FULL);
	return true;
}

/* The writer, whose turn it is: the next chunk, or NULL. */
static inline void marcel_trace_ring_give(struct marcel_trace_ring *r,
					  struct marcel_trace_head *next)
{
	store_release(&r->mail, (uintptr_t)next); /* order(trace): its head */
}

#endif
