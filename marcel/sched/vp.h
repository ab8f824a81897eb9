/*
 * A virtual processor: what schedules. One kernel thread (LWP) drives it.
 *
 * Its queues, in the order in which they are looked at:
 *
 *	next    one thread that was just woken by the thread that runs here
 *	remote  threads bound to this VP, woken from elsewhere; goes to bound
 *	bound   threads that may run on this VP only
 *	fifo    threads that yielded or were woken here; thieves take from it
 *	seeds   threads that never ran, newest first; thieves take the oldest
 *	above   queues of the topology levels above, up to the machine's
 *
 * A thread is in one queue at most. fifo and seeds hold only threads that may
 * run on every VP, so that thieves need not ask.
 */
#ifndef MARCEL_SCHED_VP_H
#define MARCEL_SCHED_VP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <base/list.h>
#include <base/mpsc.h>
#include <base/spin.h>
#include <marcel/hook.h>
#include <marcel/wait.h>
#include "../arch/cpu.h"
#include "../os/tls.h"
#include "../thread/thread.h"
#include "../topo/topo.h"
#include "deque.h"
#include "idle.h"

enum {
	MARCEL_ABOVE_MAX = MARCEL_LEVEL_VP, /* levels above a leaf, or itself */
	/* Hand-overs in a row before the other queues get their turn. */
	MARCEL_HANDOVERS_MAX = 16,
	/* Every so many picks the order of the queues is turned round. */
	MARCEL_PICKS_FAIR = 61,
};

/* A level's queue: threads that may run on some VP below it. */
struct marcel_levelq {
	/* l: lock    a: atomic */
	struct base_spin lock;
	struct base_list list;   /* l: */
	ATOMIC(uint32_t) length; /* a: written under lock; order(idle) */
} BASE_ALIGNED(BASE_CACHE_LINE);

struct marcel_vp {
	/* -: const while it runs    o: who drives the VP
	 * a: atomic, pair named */
	/* a: relaxed; owner, others to guess who runs; the idle thread too */
	ATOMIC(struct marcel_thread *) current;
	struct marcel_thread *next; /* o: */
	marcel_after_fn after;      /* o: runs after the present switch */
	void *after_arg;            /* o: */
	struct marcel_thread *left; /* o: whose `after` that is */
	int *errno_addr;            /* o: of the LWP that drives it */
	int id;                     /* -: */
	bool sole;                  /* -: there is no other VP */
	bool fifo_turn;             /* o: bound and fifo alternate */
	uint8_t fair_turn;          /* o: which queue is first next time */
	int fair_countdown;         /* o: picks until then */
	int handovers;              /* o: in a row */

	struct marcel_stack *stacks; /* o: cached, of the default size */
	struct marcel_thread *free;  /* o: cached descriptors */
	struct marcel_thread *spare; /* o: a full chain more, or NULL */
	unsigned nstacks, nfree;     /* o: */
	ATOMIC(uint64_t) created;    /* a: owner; order(end) */
	ATOMIC(uint64_t) ended;      /* a: owner; order(end) */
	struct base_list bound;      /* o: */

	struct marcel_deque fifo;
	struct marcel_deque seeds;

	/* Written by others. */
	struct base_mpsc remote BASE_ALIGNED(BASE_CACHE_PAIR);
	struct marcel_sleeper sleeper;
	ATOMIC(uint32_t) stop; /* a: seq_cst; order(idle) */
	/* Hooks run: odd while it is in a list. a: order(hook) */
	ATOMIC(uint32_t) hooking BASE_ALIGNED(BASE_CACHE_PAIR);

	/* Seldom used. */
	struct marcel_levelq *above[MARCEL_ABOVE_MAX]; /* -: nearest first */
	unsigned nabove;                               /* -: */
	struct marcel_vp **victims;          /* -: other VPs, nearest first */
	int cpu;                             /* -: */
	pthread_t lwp;                       /* -: not of VP 0 */
	struct marcel_thread idle;           /* o: the idle loop */
	struct marcel_thread_rest idle_rest; /* o: */
} BASE_ALIGNED(BASE_CACHE_PAIR);

/* All of the runtime that is not per VP. */
struct marcel_sched {
	/* -: const between init and end    a: atomic */
	struct marcel_idle idle BASE_ALIGNED(BASE_CACHE_PAIR);    /* a: */
	struct marcel_thread *main BASE_ALIGNED(BASE_CACHE_PAIR); /* -: */
	ATOMIC(struct marcel_thread *) ender; /* a: order(end) */
	struct marcel_vp *vps;                /* -: */
	struct marcel_levelq *levelqs;        /* -: by level's number */
	struct marcel_topo topo;              /* -: */
	int nvp;                              /* -: */
	bool oversubscribed;                  /* -: */
	bool bind;                            /* -: */
	size_t stacksize;                     /* -: */
	uint64_t spin_ns;                     /* -: */
	int nested;                           /* main's: inits not yet ended */
	ATOMIC(int) running;                  /* a: order(running) */
	/* Threads made by foreign threads. a: order(end) */
	ATOMIC(uint64_t) created BASE_ALIGNED(BASE_CACHE_PAIR);
	/* Foreign threads that push. a: order(guest) */
	ATOMIC(uint32_t) guests;
};

extern struct marcel_sched marcel_sched;

/* The VP that the caller runs on now, or NULL: read anew after a switch. */
static inline struct marcel_vp *marcel_vp_self(void)
{
	return cpu_tls_word();
}

/* The calling thread: user, main or foreign. */
static inline struct marcel_thread *marcel_thread_self(void)
{
	struct marcel_vp *vp = marcel_vp_self();

	return likely(vp != NULL) ? load_relaxed(&vp->current)
				  : marcel_foreign_self();
}

/* Drive `vp` on the calling kernel thread, or none: out of line, for TLS. */
void marcel_vp_attach(struct marcel_vp *vp);

/*
 * The idle loop, first function of a VP's idle thread: run what is ready,
 * search, sleep. Returns when the VP is to stop (never on VP 0).
 */
void marcel_vp_idle(struct marcel_vp *vp);

/* Set up one VP; the topology is known. 0 or -ENOMEM. */
int marcel_vp_init(struct marcel_vp *vp, int id);
void marcel_vp_exit(struct marcel_vp *vp);

/* Start and stop the LWP of a VP other than 0. */
int marcel_vp_start(struct marcel_vp *vp);
void marcel_vp_stop(struct marcel_vp *vp);

#endif
