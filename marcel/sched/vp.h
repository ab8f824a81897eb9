/*
 * A virtual processor: what schedules. One kernel thread (LWP) at a time
 * drives it: see lwp.h.
 *
 * Its queues, in the order in which they are looked at:
 *
 *	next    one thread that was just woken by the thread that runs here; a
 *		thief takes it if it lies there for long
 *	remote  threads bound to this VP, woken from elsewhere; goes to bound
 *	bound   threads that may run on this VP only
 *	fifo    threads that yielded or were woken here; thieves take from it
 *	seeds   threads that never ran, newest first; thieves take the oldest
 *	above   queues of the topology levels from its leaf up to the machine's
 *
 * A thread is in one queue at most. fifo and seeds hold only threads that may
 * run on every VP, so that thieves need not ask. All but `above` hold threads
 * of the normal band only. Real-time threads above come before everything, idle
 * ones when the VP has found nothing else anywhere.
 */
#ifndef MARCEL_SCHED_VP_H
#define MARCEL_SCHED_VP_H

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
#include "levelq.h"
#include "lwp.h"
#include "random.h"
#include "slot.h"
#include "timer.h"

enum {
	MARCEL_ABOVE_MAX = MARCEL_LEVEL_VP + 1, /* a leaf, levels above it */
	/* Hand-overs in a row before the other queues get their turn. */
	MARCEL_HANDOVERS_MAX = 16,
	/* Every so many picks the order of the queues is turned round. */
	MARCEL_PICKS_FAIR = 61,
};

/* Who runs hooks, or asks them: odd while it is in their table. */
struct marcel_hooking {
	ATOMIC(uint32_t) seq; /* a: order(hook) */
};

struct marcel_vp {
	/* -: const while it runs    o: who drives the VP
	 * a: atomic, pair named */
	ATOMIC(uintptr_t) owner;    /* a: lwp.h; order(section) */
	struct marcel_slot next;    /* a: order(slot) */
	marcel_after_fn after;      /* o: runs after the present switch */
	void *after_arg;            /* o: */
	struct marcel_thread *left; /* o: whose `after` that is; for TSan */
	struct marcel_thread *idle; /* o: of the LWP that drives it */
	int *errno_addr;            /* o: that one's, too */
	struct marcel_exceptions *exceptions; /* o: likewise */
	int id;                               /* -: */
	bool sole;                            /* -: there is no other VP */
	bool passes;       /* o: its LWP is to pass it on: switch.c */
	bool fifo_turn;    /* o: bound and fifo alternate */
	bool in_tasklet;   /* o: runs tasklets */
	uint8_t fair_turn; /* o: which queue is first next time */
	uint8_t above_turn[MARCEL_BANDS]; /* o: which of those above */
	ATOMIC(uint32_t) picks;           /* a: relaxed; owner, the monitor */
	uint32_t fair_at;  /* o: that many picks, then; or sooner: */
	uint32_t fair_due; /* o: if it was not brought forward */
	int handovers;     /* o: in a row */

	struct marcel_stack *stacks; /* o: cached, of the default size */
	struct marcel_thread *free;  /* o: cached descriptors */
	struct marcel_thread *spare; /* o: a full chain more, or NULL */
	unsigned nstacks, nfree;     /* o: */
	ATOMIC(uint64_t) created;    /* a: owner; order(end) */
	ATOMIC(uint64_t) ended;      /* a: owner; order(end) */
	struct base_list bound;      /* o: */
	ATOMIC(uint32_t) nbound;     /* a: relaxed; as next */

	struct marcel_lwp *give;              /* o: who shall drive it next */
	struct marcel_thread *handed;         /* o: what runs first there */
	uint64_t taken_ns;                    /* o: when, by a spare */
	ATOMIC(struct marcel_lwp *) stand_in; /* a: its spare LWP: lwp.h */
	struct marcel_timers timers;          /* of who waits, until when */

	struct marcel_deque fifo;
	struct marcel_deque seeds;

	/* Written by others. */
	struct base_mpsc remote BASE_ALIGNED(BASE_CACHE_PAIR);
	struct marcel_sleeper sleeper;
	ATOMIC(uint32_t) stop; /* a: seq_cst; order(idle) */
	/* Tasklets for it, the newest: tasklet.h. */
	ATOMIC(uintptr_t) calls; /* a: order(calls), order(idle) */
	struct marcel_hooking hooking BASE_ALIGNED(BASE_CACHE_PAIR);

	/* The monitor looks at it: it does not sleep. a: order(monitor) */
	ATOMIC(uint32_t) is_watched;
	struct base_list stuck;    /* o: kept by LWP 0, which is busy */
	ATOMIC(uint32_t) nstuck;   /* a: relaxed; as nbound */
	ATOMIC(uint32_t) hook_due; /* a: relaxed; that of the tick is wanted */
	ATOMIC(uint32_t)
	entered;                   /* a: relaxed; owner: threads after idling,
				    * but those that poll: thread/hang.c */
	ATOMIC(uint32_t) searched; /* a: relaxed; owner: rounds of its search */
	ATOMIC(uint32_t)
	settled;                      /* a: relaxed; owner: its picks when who
				       * polls there was last in a round */
	ATOMIC(uint32_t) preempted;   /* a: relaxed; how often */
	ATOMIC(uint32_t) unpreempted; /* a: relaxed; for want of an LWP */
	ATOMIC(uint32_t) revoked;     /* a: relaxed; how often */

	/* Seldom used. */
	struct marcel_stack *odd_stack; /* o: cached, of another size */
	struct marcel_levelq *above[MARCEL_ABOVE_MAX]; /* -: nearest first */
	unsigned nabove;                               /* -: */
	struct marcel_vp **victims; /* -: other VPs, nearest first */
	uint32_t *slot_seen; /* o: of each, its picks when its slot was full */
	int cpu;             /* -: */
} BASE_ALIGNED(BASE_CACHE_PAIR);

/* Why a thread may not be made: bits of `scarce`. */
enum {
	MARCEL_SCARCE_THREADS = 1, /* there is a limit: `threads_max` */
	MARCEL_SCARCE_STACKS = 2,  /* one could not be had */
	MARCEL_SCARCE_SIGNALS = 4, /* it may, but inherits a mask of signals */
};

/* All of the runtime that is not per VP. */
struct marcel_sched {
	/* -: const between init and end    a: atomic */
	struct marcel_idle idle BASE_ALIGNED(BASE_CACHE_PAIR); /* a: */
	/* What a switch has to look at first. a: relaxed; below */
	ATOMIC(uint64_t) before_switch BASE_ALIGNED(BASE_CACHE_PAIR);
	struct marcel_thread *main BASE_ALIGNED(BASE_CACHE_PAIR); /* -: */
	ATOMIC(struct marcel_thread *) ender; /* a: order(end) */
	struct marcel_vp *vps;                /* -: */
	struct marcel_levelq *levelqs;        /* -: by level's number */
	struct marcel_topo topo;              /* -: */
	int nvp;                              /* -: */
	bool oversubscribed;                  /* -: */
	bool bind;                            /* -: */
	bool robs;                            /* -: slots can be stolen from */
	bool counts_cpu;                      /* -: CPU time of threads */
	size_t stacksize;                     /* -: */
	uint64_t spin_ns;                     /* -: */
	uint64_t slice_ns;                    /* -: of a thread; 0: no tick */
	int signal;                           /* -: of the tick */
	int break_signal;                     /* -: of call.c */
	unsigned lwp_max;                     /* -: kernel threads per VP */
	long threads_max;                     /* -: if SCARCE_THREADS */
	int nested;                           /* main's: inits not yet ended */
	ATOMIC(int) running;                  /* a: order(running) */
	ATOMIC(unsigned) scarce;              /* a: relaxed; a hint */
	ATOMIC(bool) some_compute;            /* a: relaxed; monitor.c's */
	struct marcel_random random;          /* random.h */
	/* Threads made by foreign threads. a: order(end) */
	ATOMIC(uint64_t) created BASE_ALIGNED(BASE_CACHE_PAIR);
	/* Foreign threads that push or cancel. a: order(guest) */
	ATOMIC(uint32_t) guests;
	ATOMIC(long) threads; /* a: relaxed; that exist, if SCARCE_THREADS */
	ATOMIC(uint64_t)
	polls; /* a: relaxed; how often threads began, and
		* ended, to poll: thread/hang.c */
};

/*
 * before_switch: there are hooks of that point; pending tasklets, 31 bits;
 * ready real-time threads.
 */
#define MARCEL_BEFORE_HOOKS   ((uint64_t)1)
#define MARCEL_BEFORE_TASKLET ((uint64_t)2)
#define MARCEL_BEFORE_URGENT  ((uint64_t)1 << 32)

extern BASE_HIDDEN struct marcel_sched marcel_sched;

/* start.c: of a default stack, before marcel_init() too. */
size_t marcel_sched_stacksize(void);

/* The LWP that drives it; for code on that LWP, or to guess. */
static inline struct marcel_lwp *marcel_vp_lwp(struct marcel_vp *vp)
{
	return (struct marcel_lwp *)(load_relaxed(&vp->owner) &
				     ~(MARCEL_SECTION | MARCEL_REVOKING));
}

/* The thread that runs on it, its idle thread too; or a guess. */
static inline struct marcel_thread *marcel_vp_current(struct marcel_vp *vp)
{
	return load_relaxed(&marcel_vp_lwp(vp)->self);
}

/* Inside the runtime: the VP that the caller drives; NULL: it is foreign. */
static inline struct marcel_vp *marcel_vp_self(void)
{
	struct marcel_lwp *l = cpu_tls_word();

	return likely(l != NULL) ? load_relaxed(&l->vp) : NULL;
}

/* The calling thread: user, main or foreign. */
static inline struct marcel_thread *marcel_thread_self(void)
{
	struct marcel_lwp *l = cpu_tls_word();

	return likely(l != NULL) ? load_relaxed(&l->self)
				 : marcel_foreign_self();
}

/*
 * Both by one look, for code that does not switch before it has used them; the
 * VP is a guess outside of the runtime. False: the caller is foreign.
 */
static inline bool marcel_thread_here(struct marcel_thread **self,
				      struct marcel_vp **vp)
{
	struct marcel_lwp *l = cpu_tls_word();

	if (unlikely(l == NULL))
		return false;
	*self = load_relaxed(&l->self);
	*vp = load_relaxed(&l->vp);
	return true;
}

/* The calling LWP, which owns the VP, drives it from now on. */
void marcel_vp_attach(struct marcel_vp *vp, struct marcel_lwp *l);

/*
 * The loop of an LWP that drives a VP, on its idle thread: run what is ready,
 * search, sleep; give the VP away and wait for another. Returns when the VP is
 * to stop (never VP 0), or the LWP.
 */
void marcel_vp_idle(struct marcel_lwp *l);

/* Whether t cannot just be entered on that VP by its LWP. */
static inline bool marcel_vp_is_kept(struct marcel_vp *vp,
				     struct marcel_thread *t)
{
	return unlikely(marcel_thread_has(t, MARCEL_F_SLOW)) &&
	       (t->rest->lwp != marcel_vp_lwp(vp) ||
		marcel_thread_has(t, MARCEL_F_SIGNAL));
}

/* vp.c */
bool marcel_vp_enters_slow(struct marcel_vp *vp, struct marcel_thread *t);

/*
 * Whether its LWP may switch to t at once. If not, t waits in the VP, which
 * goes to t's LWP, or t is in another VP's queue: switch to the idle thread.
 */
static inline bool marcel_vp_enters(struct marcel_vp *vp,
				    struct marcel_thread *t)
{
	return likely(!marcel_vp_is_kept(vp, t)) ||
	       marcel_vp_enters_slow(vp, t);
}

/*
 * A VP whose driver called itself asleep, in a section, is driven again. The
 * caller owns it.
 */
void marcel_vp_settle(struct marcel_vp *vp);

/* Wake it if it sleeps, or is in a section; true if it did. As idle_wake(). */
bool marcel_vp_wake(struct marcel_vp *vp, bool own);

/* Set up one VP; the topology is known. 0 or -ENOMEM. */
int marcel_vp_init(struct marcel_vp *vp, int id);
void marcel_vp_exit(struct marcel_vp *vp);

/* Start and stop a VP other than 0. start(): 0 or -EAGAIN. */
int marcel_vp_start(struct marcel_vp *vp);
void marcel_vp_stop(struct marcel_vp *vp);

#endif
