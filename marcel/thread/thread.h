/*
 * The descriptor of a user thread, and of a foreign kernel thread that waits
 * on our objects.
 *
 *	        create             pick, given a stack
 *	FREE -----------> NEW --------------------> RUNNING --. a wake comes
 *	 ^                                           |  ^  ^  | before the
 *	 | join; or the end of a detached one        |  |  |  v sleep
 *	 |                                     park  |  |  '- WOKEN
 *	 |                  exit                     v  | wake
 *	 '------- ENDED <--------- RUNNING         PARKED
 *
 * RUNNING is a thread that runs or is queued to go on: a wake treats both
 * alike, and a VP's `current` tells them apart. Foreign threads know RUNNING,
 * PARKED (on a futex, the state word) and WOKEN only. A descriptor is
 * type-stable: its memory stays one for the life of the process, so a late
 * futex wake or a dump never touches anything else.
 */
#ifndef MARCEL_THREAD_THREAD_H
#define MARCEL_THREAD_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <base/list.h>
#include <base/mpsc.h>
#include <marcel/thread.h>
#include <marcel/topo.h>
#include "../arch/ctx.h"
#include "stack.h"
#include "waits.h"

struct marcel_cleanup;
struct marcel_detour;
struct marcel_lwp;
struct marcel_timer;
struct marcel_vp;

enum marcel_thread_state {
	MARCEL_T_FREE,
	MARCEL_T_NEW,
	MARCEL_T_RUNNING,
	MARCEL_T_PARKED,
	MARCEL_T_WOKEN,
	MARCEL_T_ENDED,
};

/* In the same word as those below: see cancel.h. */
enum marcel_cancel_flags {
	MARCEL_F_CANCEL = 4096,  /* somebody wants it to end */
	MARCEL_F_SHELTER = 8192, /* but it does not; only it sets that */
};

/* Likewise; only it sets that, while it is watched: marcel_polls(). */
#define MARCEL_F_POLLS ((unsigned)16384)

/* In `polled`: it stops at some time. */
#define MARCEL_POLLED_TIMED ((uint32_t)1 << 31)

enum marcel_thread_flags {
	MARCEL_F_FOREIGN = 1,   /* a kernel thread that drives no VP */
	MARCEL_F_MAIN = 2,      /* called marcel_init() */
	MARCEL_F_SUBSET = 4,    /* `set` and `level` say where it may run */
	MARCEL_F_STACK = 8,     /* `stacksize` is not the default */
	MARCEL_F_NAMED = 16,    /* `name` is not empty */
	MARCEL_F_KEYS = 32,     /* key.c has values to destroy at the end */
	MARCEL_F_KEPT = 64,     /* it can go on only on its `lwp` */
	MARCEL_F_USED = 128,    /* of `rest` more is set than other flags say */
	MARCEL_F_BAND = 256,    /* `band` says how urgent it is: not normal */
	MARCEL_F_MOVES = 512,   /* `wanted` is to become its set: place.c */
	MARCEL_F_SIGNAL = 1024, /* it has signals to take: signal.c */
	MARCEL_F_EAGER = 2048,  /* it is favoured when it is woken */
};

/* Why a pick has to look twice before the thread is entered. */
#define MARCEL_F_SLOW (MARCEL_F_KEPT | MARCEL_F_MOVES | MARCEL_F_SIGNAL)

/* Bands of priority; a smaller number comes first. */
enum marcel_band {
	MARCEL_BAND_REALTIME,
	MARCEL_BAND_NORMAL,
	MARCEL_BAND_IDLE,
	MARCEL_BANDS,
};

/* What `ended` holds that is no thread: see thread.c. DONE is added. */
enum { MARCEL_END_NONE, MARCEL_END_DONE, MARCEL_END_DETACHED };

/* Marks a thread there: it may stop waiting; only a wake resumes it. */
#define MARCEL_END_TIMED ((uintptr_t)4)

/*
 * What an ordinary life of a thread does not touch. It lies apart, so that
 * descriptors of threads that only run and end are dense: pool.c.
 */
struct marcel_thread_rest {
	/* The marks of struct marcel_thread. */
	ATOMIC(uint64_t) name[MARCEL_NAME_MAX / 8]; /* a: whoever sets it */
	void *keys;                                 /* o: key.c's */
	ATOMIC(uint64_t) waits;     /* a: if it has no stack of ours */
	void *fiber;                /* o: TSan's */
	uint64_t number;            /* q: of its creation; sched/random.h */
	struct marcel_level *level; /* q: lowest that covers `set` */
	struct marcel_lwp *lwp;     /* q: if KEPT, else NULL */
	const void *interrupted;    /* o: in the tick's handler; what by it */
	bool returns;               /* q: in marcel_lwp_regain() */
	marcel_vpset_t set;         /* q: if SUBSET */
	marcel_vpset_t wanted;      /* l: place.c's; if MOVES */
	size_t stacksize;           /* -: asked for, if STACK */
	uint64_t blocked, pending;  /* l: of marcel_kill(); signal.h */
	struct marcel_sigwait *sigwait; /* l: what it waits in, or NULL */
	struct marcel_detour *detours;  /* q: signal.c's; innermost first */
	ATOMIC(uint64_t) cpu_ns; /* a: relaxed; its LWP, under cpu_lock */
	char *stack_low;         /* o: of a kernel thread's stack, for ASan */
	size_t stack_bytes;      /* o: */
	struct marcel_cleanup *cleanup; /* o: exit.c's; innermost first */
	ATOMIC(uint32_t) band; /* a: relaxed; priority.c's lock; if BAND */
	enum marcel_band own;  /* l: priority.c's; its band after the favour */
	ATOMIC(uint64_t) favour; /* a: relaxed; as band; until when, or 0 */
	ATOMIC(uint64_t) eager;  /* a: relaxed; so long, if EAGER */
	ATOMIC(uint32_t) steady; /* a: relaxed; it; the tick leaves it alone */
	/* o: exit.c's, for the unwinder */
	uint64_t unwinding[4] BASE_ALIGNED(16);
	ATOMIC(struct marcel_timer *)
	wait;                    /* a: cancel.h; if it has no stack */
	ATOMIC(uint32_t) cancel; /* o: cancel.c's; who cancels it reads it */
	ATOMIC(bool) awaits_io;  /* a: if it has no stack of ours */
	/* Of hang.h, while it is watched. a: relaxed; it */
	ATOMIC(const char *) call; /* the function that it is in, or NULL */
	ATOMIC(uint32_t)
	polled; /* if POLLS: looks when its last round in
		 * vain began, and TIMED */
};

struct marcel_thread {
	/* -: const once created    o: owner only: the thread while it runs,
	 *                             the switch while it leaves or comes
	 * q: whoever holds it      a: atomic, pair named
	 *    queued or cached */
	union {
		struct marcel_ctx ctx; /* o: order(park), order(wake) */
		void *(*fn)(void *);   /* -: until it has a stack */
	};
	union {
		struct base_link link;      /* q: in a list */
		struct base_mpsc_node node; /* q: in a remote list */
		struct {
			struct marcel_thread *free;  /* q: in a chain */
			struct marcel_thread *chain; /* q: of its first */
		};
	};
	ATOMIC(uint32_t) state;     /* a: order(park) */
	ATOMIC(uint16_t) flags;     /* a: hints of what else is set */
	int16_t home;               /* q: the only VP it may run on, or -1 */
	struct marcel_stack *stack; /* o: NULL until it first runs */
	void *arg;                  /* o: argument, then result; order(join) */
	ATOMIC(uintptr_t) ended;    /* a: order(join) */
	struct marcel_thread_rest *rest; /* -: for the life of the process */
} BASE_ALIGNED(BASE_CACHE_LINE);

_Static_assert(sizeof(struct marcel_thread) == BASE_CACHE_LINE,
	       "an ordinary thread lives in one cache line");

enum { MARCEL_SLAB = 1024 }; /* descriptors allocated at once */

struct marcel_slab {
	/* -: const once in the list */
	struct marcel_slab *next;        /* -: */
	struct marcel_thread_rest *rest; /* -: SLAB of them */
	struct marcel_thread *thread;    /* -: SLAB of them */
};

/* All descriptors, for walks. */
struct marcel_slabs {
	/* a: relaxed; written under pool.c's lock */
	ATOMIC(struct marcel_slab *) newest;
};

extern BASE_HIDDEN struct marcel_slabs marcel_slabs;

static inline bool marcel_thread_has(struct marcel_thread *t, unsigned flags)
{
	return load_relaxed(&t->flags) & flags;
}

/* The caller will set something in `rest`: for who frees the descriptor. */
static inline void marcel_thread_use_rest(struct marcel_thread *t)
{
	if (!marcel_thread_has(t, MARCEL_F_USED))
		fetch_or_relaxed(&t->flags, MARCEL_F_USED);
}

/*
 * What the thread is about to wait for: a word for dumps, which read it if the
 * state is PARKED. It lies on the page of the stack that is touched anyway.
 */
static inline void marcel_thread_waits(struct marcel_thread *t,
				       enum marcel_waits kind,
				       const void *object)
{
	uint64_t word = marcel_waits(kind, object);

	if (likely(t->stack != NULL))
		store_relaxed(&t->stack->waits, word);
	else
		store_relaxed(&t->rest->waits, word);
}

static inline uint64_t marcel_thread_waits_for(struct marcel_thread *t)
{
	struct marcel_stack *stack = t->stack; /* it may be given back now */

	return stack != NULL ? load_relaxed(&stack->waits)
			     : load_relaxed(&t->rest->waits);
}

/* Only itself says so; whoever wakes it reads it. It lies where `waits` does.*/
static inline void marcel_thread_set_awaits_io(struct marcel_thread *t, bool on)
{
	if (likely(t->stack != NULL))
		store_relaxed(&t->stack->awaits_io, on);
	else
		store_relaxed(&t->rest->awaits_io, on);
}

static inline bool marcel_thread_awaits_io(struct marcel_thread *t)
{
	return t->stack != NULL ? load_relaxed(&t->stack->awaits_io)
				: load_relaxed(&t->rest->awaits_io);
}

static inline enum marcel_band marcel_thread_band(struct marcel_thread *t)
{
	return likely(!marcel_thread_has(t, MARCEL_F_BAND))
		       ? MARCEL_BAND_NORMAL
		       : (enum marcel_band)load_relaxed(&t->rest->band);
}

/* The slow half of is_urgent(), of one that is in the real-time band. */
bool marcel_thread_stays_urgent(struct marcel_thread *t);

/*
 * Anyone: whether t is real-time, now. Only here does it turn out that the time
 * of one that is favoured is over, and then it is in its own band again: so who
 * decides for long by the band of a thread asks here first.
 */
static inline bool marcel_thread_is_urgent(struct marcel_thread *t)
{
	return unlikely(marcel_thread_band(t) == MARCEL_BAND_REALTIME) &&
	       marcel_thread_stays_urgent(t);
}

static inline enum marcel_band marcel_thread_band_now(struct marcel_thread *t)
{
	return marcel_thread_is_urgent(t) ? MARCEL_BAND_REALTIME
					  : marcel_thread_band(t);
}

static inline bool marcel_thread_is_preemptible(struct marcel_thread *t)
{
	return load_relaxed(&t->rest->steady) == 0;
}

/* Whether a thread that is ready may run on this VP. */
static inline bool marcel_thread_may_run(struct marcel_thread *t, int vp)
{
	if (t->home >= 0)
		return t->home == vp;
	return likely(!marcel_thread_has(t, MARCEL_F_SUBSET)) ||
	       marcel_vpset_has(&t->rest->set, vp);
}

/*
 * Anyone. A descriptor with no attribute set, or NULL. vp NULL: none. It is put
 * back when marcel_cancel_keeps() has said that it is free.
 */
struct marcel_thread *marcel_thread_get(struct marcel_vp *vp);
void marcel_thread_put(struct marcel_vp *vp, struct marcel_thread *t);

/* Give a VP's cached descriptors back. Only when nobody drives the VP. */
void marcel_thread_flush(struct marcel_vp *vp);

/* Calls fn for every descriptor ever made, free ones too. Signal-safe. */
void marcel_thread_walk(void (*fn)(struct marcel_thread *t, void *arg),
			void *arg);

/* Until fn answers other than 0; takes a lock, and not while fn runs. */
int marcel_thread_visit(int (*fn)(struct marcel_thread *t, void *arg),
			void *arg);

/* In a child of fork(): descriptors can be had, whoever was at it then. */
void marcel_thread_forked(void);

/* Set a name that fits. */
void marcel_thread_name(struct marcel_thread *t, const char *name);
void marcel_thread_get_name(struct marcel_thread *t, char *out);

/* In a child of fork(), for the thread that forked, or NULL if foreign. */
void marcel_priority_forked(struct marcel_thread *t);

/* Who is about to wake t, which is EAGER, or awaits IO while others compute. */
void marcel_thread_favour_woken(struct marcel_thread *t);

/* How long who has awaited IO goes before others; set while no VP runs. */
extern uint64_t marcel_thread_react_ns;

/*
 * Who gives the descriptor back: t is favoured no more. Who looks at it too
 * late, as the monitor may, changes nothing of the thread that has it next.
 */
void marcel_thread_no_favour(struct marcel_thread *t);

/* Set a priority that exists: priority.c. For when t is next pushed. */
void marcel_thread_set_priority(struct marcel_thread *t, int priority);

/* priority.c: it is new, or the caller. */
void marcel_thread_set_preemptible(struct marcel_thread *t, bool on);

/* The first function of a thread; value is its VP. marcel_ctx_make()'s. */
void marcel_thread_first(void *value);

/* The last that a user thread does; nothing of its stack is needed. */
void marcel_thread_end(void *value) BASE_NORETURN;

/* exit.c: the main thread has; the process does when the others have. */
void marcel_thread_end_main(struct marcel_thread *t) BASE_NORETURN;

/* On a VP: t, which ended with its LWP, has ended. */
void marcel_thread_ended(struct marcel_thread *t);

/* foreign.c: the descriptor of a calling kernel thread. Never NULL. */
struct marcel_thread *marcel_foreign_self(void);

/* t is the calling kernel thread's, which gives it back when it ends. */
void marcel_foreign_keep(struct marcel_thread *t);

/* A foreign thread begins, or ceases, to be a user thread. */
void marcel_foreign_to_main(struct marcel_thread *t);
void marcel_foreign_from_main(struct marcel_thread *t);

/*
 * A thread without a VP makes one. False: the runtime does not run; else it
 * does not end before marcel_foreign_made().
 */
bool marcel_foreign_makes(void);
void marcel_foreign_made(void);

/* The runtime runs no more. False: there are threads, or just made. */
bool marcel_foreign_shut(void);

/* In the child of a fork. */
void marcel_foreign_forked(void);

/*
 * Whether t has ended, nobody else has claimed it, and it is now the caller's
 * to collect; `who` says so in `ended`: the caller, or DETACHED. Else why not,
 * of one that is not joinable or no thread any more: EINVAL, ESRCH.
 */
bool marcel_thread_claim(struct marcel_thread *t, uintptr_t who);
int marcel_thread_refuses(struct marcel_thread *t);

/* t has ended, and the caller joins it: its result, and the end of it. */
void marcel_thread_collect(struct marcel_thread *t, void **out);

/* Block until no user thread but the caller is left. */
void marcel_thread_wait_all(void);

/* Whether there are any that have not ended, but main. */
bool marcel_thread_any(void);

/* key.c: run the destructors of a thread that ends, and free its values. */
void marcel_key_exit(struct marcel_thread *t);

#endif
