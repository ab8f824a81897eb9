/*
 * Counting, at next to no cost: who holds the core's lock or owns a rail adds
 * to fields of his own, which is a load and a store. Who finds either busy, and
 * who makes a system call, adds atomically.
 */
#ifndef NMAD_CORE_STATS_H
#define NMAD_CORE_STATS_H

#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>

struct nm_core;

typedef ATOMIC(uint64_t) nm_count_t;

/* System calls of drivers. */
enum nm_syscall {
	NM_CALL_SEND,
	NM_CALL_RECEIVE,
	NM_CALL_LOOK,
	NM_CALL_COPY,
	NM_CALL_BELL,

	NM_CALLS,
};

/* Of the core; what is counted elsewhere is with what it counts. */
struct nm_stats {
	/* l: core lock: he writes, relaxed, anybody reads  a: anybody adds */
	nm_count_t lock_taken;                              /* l: */
	nm_count_t refills;                                 /* l: */
	nm_count_t sends;                                   /* l: */
	nm_count_t receives;                                /* l: */
	nm_count_t eager_out;                               /* l: */
	nm_count_t eager_in;                                /* l: */
	nm_count_t cut_out;                                 /* l: */
	nm_count_t cut_in;                                  /* l: */
	nm_count_t rdv_out;                                 /* l: */
	nm_count_t rdv_in;                                  /* l: */
	nm_count_t early;                                   /* l: */
	nm_count_t unexpected;                              /* l: */
	nm_count_t lost;                                    /* l: */
	nm_count_t resent_out;                              /* l: */
	nm_count_t resent_in;                               /* l: */
	nm_count_t redone;                                  /* l: */
	BASE_ALIGNED(BASE_CACHE_PAIR) nm_count_t lock_busy; /* a: */
} BASE_ALIGNED(BASE_CACHE_PAIR);

/* Of a rail, and of that which it wraps. */
struct nm_rail_stats {
	/* o: the rail's owner: he writes, relaxed, anybody reads
	 * a: anybody adds */
	nm_count_t taken;           /* o: */
	nm_count_t busy;            /* a: */
	nm_count_t calls[NM_CALLS]; /* a: */
} BASE_ALIGNED(BASE_CACHE_PAIR);

/* One more. Whoever alone writes it. */
static inline void nm_count(nm_count_t *to)
{
	store_relaxed(to, load_relaxed(to) + 1);
}

/* One more. Anybody. */
static inline void nm_count_shared(nm_count_t *to)
{
	fetch_add_relaxed(to, 1);
}

/* All, as NMAD_STATS=1 wants it. */
void nm_stats_print(struct nm_core *core);

/* Those that are not 0, in a dump: signal-safe. */
void nm_stats_dump(struct nm_core *core);

#endif
