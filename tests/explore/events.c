/*
 * marcel/trace/ring: chunks go to and fro between who fills them and who maps
 * them: nothing is written to a chunk before its head is there, nor after it
 * was unmapped, and what is lost is counted.
 *
 * covers: trace
 */
#include "explore.h"

#include "../../marcel/trace/ring.h"

enum { EVENTS = 3, CHUNKS = 3 };

static struct marcel_trace_ring ring;
static struct marcel_trace_head chunks[CHUNKS];
static uint64_t written[CHUNKS]; /* what a chunk holds: one event */
static int next, unmapped;

static uint64_t *place_of(struct marcel_trace_head *h)
{
	return &written[h - chunks];
}

/* As marcel_trace_file_map(). */
static struct marcel_trace_head *map(void)
{
	struct marcel_trace_head *h;

	if (next == CHUNKS)
		return NULL;
	h = &chunks[next++];
	h->magic = MARCEL_TRACE_CHUNK;
	*place_of(h) = 0;
	return h;
}

static void filler(void *arg)
{
	int done = 0, lost = 0;

	(void)arg;
	for (int i = 0; i < EVENTS; i++) {
		if (*place_of(ring.chunk) != 0 &&
		    !marcel_trace_ring_turn(&ring)) {
			lost++;
			continue;
		}
		explore_check(ring.chunk->magic == MARCEL_TRACE_CHUNK);
		explore_check(*place_of(ring.chunk) == 0);
		*place_of(ring.chunk) = 1;
		done++;
	}
	explore_check(done + lost == EVENTS && done >= 2);
}

/* A chunk that it unmaps is full, and is not written to any more. */
static void writer(void *arg)
{
	struct marcel_trace_head *full;

	(void)arg;
	for (int i = 0; i < 2; i++) {
		if (!marcel_trace_ring_wants(&ring, &full))
			continue;
		if (full != NULL) {
			explore_check(*place_of(full) == 1);
			*place_of(full) = 2;
			full->magic = 0;
			unmapped++;
		}
		marcel_trace_ring_give(&ring, map());
	}
}

/* order(trace) */
EXPLORE(a_chunk_is_one_sides_at_a_time)
{
	next = unmapped = 0;
	ring.chunk = map();
	store_relaxed(&ring.mail, (uintptr_t)map());
	explore_name(&ring.mail, sizeof(ring.mail), "mail");
	explore_spawn("filler", filler, NULL);
	explore_spawn("writer", writer, NULL);
}
