/*
 * Timers: waits that end at some time.
 *
 * A timer lies in the frame of the thread that waits. Of a user thread it is
 * in the heap of the VP on which it began to wait: whoever drives that looks
 * at the heap between two threads and while idle, and sleeps no longer than
 * until the first timer is due. A foreign thread has its timer to itself and
 * sees to it when its futex times out.
 *
 * A wait ends once: by who grants it, or by its timer. What is waited for
 * decides, and may be gone as soon as it was granted. So:
 *
 *	While a timer is in a heap, what it points to exists.
 *
 * Who grants a wait takes the timer out of the heap before the access that
 * lets others do away with the object; who expires a timer holds the heap's
 * lock until it has claimed the wait, by the guard of the object or by a
 * compare-and-swap of its word. From then on nobody can grant it.
 *
 *	grants				expires
 *	guard of the object		lock of the heap; first one is due
 *	  waiter out of its queue	  try the guard; held: later
 *	  lock of the heap		  timer out of the heap
 *	    timer out of the heap	unlock
 *	  unlock			waiter out of its queue
 *	give the guard back		give the guard back
 *	wake				wake
 *
 * The guard comes before the lock, and the other way round it is only tried.
 */
#ifndef MARCEL_SCHED_TIMER_H
#define MARCEL_SCHED_TIMER_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <base/spin.h>

struct marcel_timer;

struct marcel_timers {
	/* l: lock    o: who drives the VP    a: atomic */
	ATOMIC(uint64_t)
	next; /* a: when the first is due (ns), or 0: none;
	       *    written under lock; order(idle) */
	struct base_spin lock;
	struct marcel_timer *root; /* l: */
	uint64_t looked;           /* o: cpu_ticks() of the last look */
};

enum marcel_claim {
	MARCEL_CLAIM_LATER, /* somebody works on the object: try again */
	MARCEL_CLAIM_GONE,  /* the wait has been granted */
	MARCEL_CLAIM_MINE,  /* it has not, and will not be */
};

/* What a kind of wait does when its time has come. */
struct marcel_timer_kind {
	/* Under the heap's lock; must not wait. */
	enum marcel_claim (*claim)(struct marcel_timer *t);
	/* MINE: end the wait. The last access to the timer wakes. */
	void (*expire)(struct marcel_timer *t);
};

struct marcel_timer {
	/* -: const once set    l: lock of `in`
	 * e: who expires it, until the wake; then who waits */
	const struct marcel_timer_kind *kind; /* -: */
	struct marcel_thread *thread;         /* -: who waits */
	clockid_t clock;                      /* -: MONOTONIC or REALTIME */
	bool armed;                           /* l: in the heap */
	bool expired;                         /* e: it was not granted */
	bool shown;  /* -: the thread's `wait` named it: thread/cancel.h */
	uint64_t ns; /* -: when, by `clock` */
	uint64_t at; /* l: the same by our clock */
	struct marcel_timer *child;   /* l: first of those below */
	struct marcel_timer *sibling; /* l: */
	struct marcel_timer *back;    /* l: the sibling before, or the parent */
	struct marcel_timers *in;     /* -: of a VP; NULL: never armed; or: */
	struct marcel_timers alone;
};

/* When a call has to return; a NULL pointer to it: when it is done. */
struct marcel_until {
	clockid_t clock;
	const struct timespec *abs;
};

/* The last of expire(): the waiter goes on, its wait not granted. */
void marcel_timer_wake(struct marcel_timer *t);

/* Nothing is waited for but the time. */
extern BASE_HIDDEN const struct marcel_timer_kind marcel_timer_plain;

/* 0, or EINVAL: no clock that we wait by. */
int marcel_timer_check_clock(clockid_t clock);

/* In nanoseconds; a time out of reach is the last that is not. */
uint64_t marcel_timer_ns(const struct timespec *t);

/*
 * The caller will wait until then. 0; ETIMEDOUT: it has come, but the timer is
 * set nevertheless; EINVAL: no such time, or clock.
 */
int marcel_timer_set(struct marcel_timer *t, const struct marcel_timer_kind *k,
		     const struct marcel_until *until);

/* Likewise, nanoseconds by CLOCK_MONOTONIC; never EINVAL. */
int marcel_timer_set_ns(struct marcel_timer *t,
			const struct marcel_timer_kind *k, uint64_t ns);

/*
 * The calling thread will wait without an end in time; it may end as the kind
 * says nevertheless.
 */
static inline void marcel_timer_set_never(struct marcel_timer *t,
					  const struct marcel_timer_kind *k,
					  struct marcel_thread *self)
{
	t->kind = k;
	t->thread = self;
	t->armed = t->expired = t->shown = false;
	t->in = NULL;
}

/*
 * It may expire from now on. Whoever grants the wait afterwards must disarm
 * it; so with an object's guard held, or then the waiter disarms it itself.
 */
void marcel_timer_arm(struct marcel_timer *t);

/* As marcel_park(NULL), by the thread that armed it. wake.c */
void marcel_timer_park(struct marcel_timer *t);

/*
 * Take it out of the heap, if it is there; it will not expire. False: it had
 * been claimed. Anyone, perhaps with a guard held.
 */
bool marcel_timer_disarm(struct marcel_timer *t);

/* --- for who drives a VP, or waits alone --- */

void marcel_timers_init(struct marcel_timers *ts);

static inline bool marcel_timers_are_armed(struct marcel_timers *ts)
{
	return unlikely(load_relaxed(&ts->next) != 0);
}

/* Whether `counts` holds for one of them; it is called under the lock. */
bool marcel_timers_any(struct marcel_timers *ts,
		       bool (*counts)(const struct marcel_timer *t));

/* Whether the first has come; from signal handlers, too. */
bool marcel_timers_are_due(struct marcel_timers *ts);

/* Expire what is due; reads the clock every few microseconds only. */
void marcel_timers_look(struct marcel_timers *ts);

/* Expire what is due; anyone, also for a VP that somebody else drives. */
void marcel_timers_run(struct marcel_timers *ts);

/*
 * Sleep while the word is `value`, or until the first timer is due: true. May
 * return early.
 */
bool marcel_timers_sleep(struct marcel_timers *ts, void *word, uint32_t value);

/* For tests and gdb: dies if the heap is not one; returns its size. */
size_t marcel_timers_check(struct marcel_timers *ts);

#endif
