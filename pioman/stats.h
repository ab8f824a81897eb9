/*
 * Counting, at next to no cost: who holds a queue adds to fields of that queue,
 * which is a load and a store. What is not done under a queue is waiting or
 * giving up: an atomic add, to a line that few others write.
 */
#ifndef PIOMAN_COUNT_H
#define PIOMAN_COUNT_H

#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>

typedef ATOMIC(uint64_t) piom_count_t;

/* Who makes a pass over a queue. */
enum piom_point {
	PIOM_POINT_IDLE,
	PIOM_POINT_SWITCH,
	PIOM_POINT_TICK,
	PIOM_POINT_POLL,
	PIOM_POINT_WAIT,
	PIOM_POINT_POLLER,
	PIOM_POINT_TIMER,
	PIOM_POINT_WATCHER,

	PIOM_POINTS,
};

/* Of a queue. */
struct piom_queue_stats {
	/* q: who holds the queue  a: he writes, relaxed; read by anybody */
	piom_count_t passes[PIOM_POINTS]; /* a: */
	piom_count_t polls;               /* a: */
	piom_count_t hits;                /* a: */
	piom_count_t armed;               /* a: so far */
	piom_count_t exported;            /* a: so far */
	piom_count_t armed_now;           /* a: since `armed_of` */
	piom_count_t armed_of;            /* a: of piom_watcher.fired */
	/* If PIOM_STATS=1: */
	piom_count_t took_ns; /* a: passes */
	piom_count_t gap_ns;  /* a: the longest */
	uint64_t left_at;     /* q: when it was let go PENDING, or 0 */
} BASE_ALIGNED(BASE_CACHE_PAIR);

/* Of the kernel threads that share a line. a: all, relaxed */
struct piom_stats_line {
	piom_count_t skipped_busy;
	piom_count_t naps;
	piom_count_t wakeups;
} BASE_ALIGNED(BASE_CACHE_PAIR);

enum { PIOM_STATS_LINES = 64 };

extern struct piom_stats_line piom_stats_lines[PIOM_STATS_LINES];

/* That of a VP, or of all foreign threads: -1. */
static inline struct piom_stats_line *piom_stats_line(int vp)
{
	return &piom_stats_lines[(unsigned)(vp + 1) % PIOM_STATS_LINES];
}

/* Whoever alone writes it. */
static inline void piom_stats_add(piom_count_t *to, uint64_t n)
{
	store_relaxed(to, load_relaxed(to) + n);
}

/* The queue that a VP came to is being asked already. */
static inline void piom_stats_skip(int vp)
{
	fetch_add_relaxed(&piom_stats_line(vp)->skipped_busy, 1);
}

/*
 * An ltask of the queue is armed, at that number of the watcher's; it is over
 * with it. Who holds the queue.
 */
static inline void piom_stats_armed(struct piom_queue_stats *s, uint64_t fired)
{
	piom_stats_add(&s->armed, 1);
	if (load_relaxed(&s->armed_of) != fired) {
		store_relaxed(&s->armed_now, 0);
		store_relaxed(&s->armed_of, fired);
	}
	piom_stats_add(&s->armed_now, 1);
}

static inline void piom_stats_unarmed(struct piom_queue_stats *s,
				      uint64_t fired)
{
	if (load_relaxed(&s->armed_of) == fired)
		piom_stats_add(&s->armed_now, UINT64_MAX);
}

/* From 0 on: pioman starts. */
void piom_stats_init(void);

/* All, as PIOM_STATS=1 wants it. */
void piom_stats_print(void);

/* Those that are not 0, in a dump: signal-safe. */
void piom_stats_dump(void);

/* How many ltasks of the queue are armed. Anyone; a hint. */
unsigned long piom_stats_armed_now(struct piom_queue_stats *s);

#endif
