/*
 * A kernel thread of ours (LWP), and how a VP goes from one to another.
 *
 *	owner, a word of the VP		who drives it
 *	L		LWP L does; only code on L touches the VP's own fields
 *	L | SECTION	L is in an announced blocking section; any LWP may
 *			take the VP by compare-and-swap
 *	L | REVOKING	the monitor tries to take it from L: monitor.c
 *
 *	inside, a word of the LWP	not 0 while it is in the runtime
 *
 * Who enters the runtime stores `inside` and then looks at the owner; only if
 * that is its own LWP may it go on (enter.h), and nobody takes a VP whose LWP
 * is inside: the handler of the tick, which runs on that LWP, looks at it, and
 * the monitor after a barrier on every CPU, order(revoke).
 *
 * A thread whose VP was taken runs on, on its LWP, until it enters the runtime
 * (enter.h). Then it is *kept* by that LWP: it is ready like any other, and to
 * pick it means to give the VP to its LWP, on which it goes on. The thread that
 * called marcel_init() is kept by LWP 0 for ever.
 *
 * LWP 0 runs other threads than main, too, while main waits; and main when one
 * of these was interrupted there by the tick, if that may be left where it is
 * (os_may_leave()). While one sits so, half way through whatever it did, LWP 0
 * runs none that has not sat there itself, but main: else that one could find
 * a lock taken by its own kernel thread, and the holder below it on the stack
 * of signal handlers. It passes the VP on instead (switch.c).
 *
 * An LWP that drives nothing waits on `told`: for a VP that is given to it, or,
 * if it is the spare of a VP, for a hint that the VP can be taken.
 */
#ifndef MARCEL_SCHED_LWP_H
#define MARCEL_SCHED_LWP_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <base/spin.h>
#include <marcel/tasklet.h>
#include "../thread/thread.h"
#include "timer.h"

struct marcel_exceptions;
struct marcel_vp;

#define MARCEL_SECTION  ((uintptr_t)1)
#define MARCEL_REVOKING ((uintptr_t)2)

/* Who has blocked the tick on an LWP, for a call that may sleep there. */
enum marcel_hush {
	MARCEL_HUSH_NONE,
	MARCEL_HUSH_CALL,    /* marcel_call_begin() */
	MARCEL_HUSH_SECTION, /* marcel_blocking_begin() */
	MARCEL_HUSH_OVER,    /* that, and the section has ended */
};

struct marcel_lwp {
	/* -: const    o: code that runs on it    a: atomic, pair named
	 * g: itself, or who has taken it out of the pool and not told it yet
	 * l: lock of the pool */
	ATOMIC(uint32_t) inside;              /* a: order(revoke) */
	ATOMIC(uint32_t) told;                /* a: a futex; order(give) */
	ATOMIC(uint32_t) waits;               /* a: relaxed; on told */
	ATOMIC(struct marcel_thread *) self;  /* a: relaxed; who runs on it */
	ATOMIC(struct marcel_vp *) vp;        /* g: drives it, or did last */
	int *errno_addr;                      /* -: */
	struct marcel_exceptions *exceptions; /* -: */
	int cpu;                              /* o: bound to, or -1 */
	bool is_low;                          /* -: of lowest priority */
	ATOMIC(uint32_t) raised;              /* a: relaxed; low, but not now */
	bool stop;                            /* g: end when told */
	bool is_fair;                         /* g: begins with a fair pick */
	bool in_call;                         /* o: call.c */
	bool ends;                            /* o: of private.h */
	enum marcel_hush hushed;              /* o: by whom: call.c */
	bool was_adrift;                      /* -: the monitor's */
	int again;                            /* o: os_signal_soon()'s, or 0 */
	struct marcel_timer call;  /* o: what the caller's `wait` names */
	ATOMIC(uint32_t) ticked;   /* a: relaxed; if a tick may come: tick.c */
	ATOMIC(pid_t) tid;         /* a: relaxed; the kernel's number */
	ATOMIC(uint32_t) is_loose; /* a: relaxed; go on without a VP: told */
	ATOMIC(uint32_t) is_given; /* a: relaxed; LWP 0 will be told of VP 0 */
	struct base_spin cpu_lock; /* of what the thread that runs here used */
	uint32_t preempted;        /* o: so often was what ran here */
	uint64_t cpu_since;        /* l: cpu_lock; since it was switched to */
	/* a: relaxed; whoever that is makes way himself while he runs here */
	ATOMIC(struct marcel_thread *) makes_way;
	ATOMIC(uint32_t) asked;  /* a: relaxed; in vain, by whoever ran here */
	pthread_t kernel_thread; /* -: not of LWP 0 */
	struct marcel_lwp *next; /* l: in the pool */
	struct marcel_lwp *all;  /* l: every one but LWP 0 */
	struct marcel_thread *only; /* g: it runs no other: private.h */
	marcel_tasklet_t end;       /* that thread's: private.c */
	int turns;                  /* o: of its destructors */
	bool is_joined;             /* g: the kernel thread; it has ended */
	struct marcel_thread idle;  /* o: its loop */
	struct marcel_thread_rest idle_rest; /* o: */
} BASE_ALIGNED(BASE_CACHE_LINE);

/* The LWP, on which the caller runs, is as far inside as it was before. */
static inline void marcel_lwp_leaves(struct marcel_lwp *l, uint32_t was)
{
	store_release(&l->inside, was); /* order(revoke): what was done */
}

/* What is not per LWP: free ones, and how many there are. */
struct marcel_lwps {
	struct base_spin lock;
	struct marcel_lwp *normal, *low; /* l: that drive nothing */
	struct marcel_lwp *all;          /* l: every one but LWP 0 */
	struct marcel_lwp *ended;        /* l: that were for one thread */
	unsigned left;                   /* l: that may still be made */
	sigset_t mask;                   /* -: main's, at the start */
	/* a: relaxed; spares have the lowest priority, and can be raised */
	ATOMIC(uint32_t) lowers;
	/* o: of LWP 0: threads that wait there in the tick's handler */
	unsigned ninterrupted;
	unsigned nkept;          /* o: of LWP 0: but main, that wait for it */
	struct marcel_lwp first; /* LWP 0 */
};

extern BASE_HIDDEN struct marcel_lwps marcel_lwps;

/*
 * The calling kernel thread is, or ceases to be, LWP 0, on which main runs.
 * init() says how many others there may be.
 */
void marcel_lwp_init(unsigned max, struct marcel_vp *vp,
		     struct marcel_thread *main);
void marcel_lwp_exit(void);

/* An LWP that drives nothing, made if there is none; NULL: it cannot be had. */
struct marcel_lwp *marcel_lwp_get(bool low);

/* It drives nothing, and was not told anything since it was taken. */
void marcel_lwp_put(struct marcel_lwp *l);

/*
 * One for a single thread, whose end is `end(lwp)`, always the same, by the
 * tasklet. NULL: none can be had. start() makes its kernel thread, which waits
 * for a VP: 0, or an error, and it is given back.
 */
struct marcel_lwp *marcel_lwp_make_for(struct marcel_thread *t,
				       void (*end)(void *));
int marcel_lwp_start(struct marcel_lwp *l);

/* That thread has ended; the kernel thread is about to. */
void marcel_lwp_ended(struct marcel_lwp *l);

/* Without making one; also from a signal handler that is not inside. */
struct marcel_lwp *marcel_lwp_take(bool low);

/* take(false) will find one, if it can be had. */
void marcel_lwp_provide(void);

/* Whether there is none, but one could be made. */
bool marcel_lwp_may_provide(void);

/* Anyone: the LWP on which t seems to run, with or without a VP; or NULL. */
struct marcel_lwp *marcel_lwp_of(struct marcel_thread *t);

/*
 * Anyone: an LWP whose thread has lost its VP, or been let loose, and has not
 * noticed, the first, or the next after that one; NULL: no more.
 */
struct marcel_lwp *marcel_lwp_adrift(struct marcel_lwp *after);

/*
 * Nobody but main is left, and no VP but the first runs: end the others. A
 * guest that wakes a VP may tell one still; exit() frees them.
 */
void marcel_lwp_stop(void);

/*
 * The LWP that the caller is; NULL: none, or a process that has the storage of
 * one but not the kernel thread, as a child of _Fork() or of clone(), which may
 * even share it. One system call.
 */
struct marcel_lwp *marcel_lwp_here(void);

/* Tell an LWP to look at its VP: it was given that, or may take it. */
void marcel_lwp_tell(struct marcel_lwp *l);

/*
 * On the idle thread of the LWP that drives vp: give it to vp->give, and wait
 * for another. The VP that the caller drives then; NULL: it should end.
 */
struct marcel_vp *marcel_lwp_give(struct marcel_vp *vp);

/* Whom marcel_vp_enters_slow() would have drive vp next, or NULL. */
struct marcel_lwp *marcel_lwp_take_give(struct marcel_vp *vp);

/* The caller, who may dispose of vp, has `to` drive it. */
void marcel_lwp_hand(struct marcel_vp *vp, struct marcel_lwp *to);

/*
 * There is no LWP to be had. The owner of vp, on its LWP or in its place: one
 * that keeps a ready thread, and that will go on with that if vp is handed to
 * it; NULL: none but the LWP of vp.
 */
struct marcel_lwp *marcel_lwp_of_kept(struct marcel_vp *vp);

/*
 * The calling thread was interrupted on LWP 0: main, or what else that keeps
 * and is ready, or was handed to it, runs first, on top of it. False: nothing.
 */
bool marcel_lwp_make_way(struct marcel_lwp *l, struct marcel_vp *vp);

/* Until the calling LWP, which drives nothing, drives a VP; NULL: end. */
struct marcel_vp *marcel_lwp_wait(struct marcel_lwp *l);

/* The calling thread's section ends; false: there is none, or the VP went. */
bool marcel_lwp_end_section(struct marcel_lwp *l);

/* The slow half of marcel_enter(): the calling thread has lost its VP. */
struct marcel_vp *marcel_lwp_regain(struct marcel_lwp *l);

/* thread/fork.c: in a child, which has none yet. */
void marcel_lwp_forked(void);

#endif
