/*
 * A queue of ltasks, one for each level of the machine: a lock-free list of
 * submissions, and a main list that belongs to whoever holds the queue.
 *
 *   submit --> [ submissions ] --> holder moves them --> [ main list ]
 *   anybody     base_mpsc           before each pass       runs each once
 *
 * The queue is held by setting a bit of its word, tried once and never waited
 * for: who finds it held goes on, because whoever holds it looks at the
 * submissions again after letting go (store-load, order(queue)). So a
 * submission is never left behind.
 *
 *   word:  | kicks ... | MINDED | CALLED | PENDING | HELD |
 *
 * PENDING says that some ltask of the main list wants to be asked again soon:
 * no VP of the level falls asleep then. The holder sets it as he lets go, from
 * what the ltasks answered, now or, if this VP may not run them, when they were
 * last asked; a kick sets it and changes the word, so that a holder who ran the
 * ltask before the kick cannot clear it: order(ltask).
 *
 * CALLED is a kick by who has no time to wait until the queue is let go, nor
 * knows whether its holder asks again: he does, all of them, before he goes,
 * and has them armed as who called would. But who holds it to cancel or mask
 * may not run ltasks: he rings for the watcher.
 *
 * MINDED: its holder wakes who sleeps, if anything is left. So a VP may fall
 * asleep meanwhile. One that may run what is left: if any may, any, else all.
 *
 * An ltask that is armed (io/blocking.h) does not want to be asked, whatever it
 * answers.
 */
#ifndef PIOMAN_LTASK_QUEUE_H
#define PIOMAN_LTASK_QUEUE_H

#include <stdbool.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <base/list.h>
#include <base/mpsc.h>

#include <marcel/topo.h>

#include <pioman/cond.h>
#include <pioman/ltask.h>

#include "../stats.h"

enum {
	PIOM_QUEUE_HELD = 1,
	PIOM_QUEUE_PENDING = 2,
	PIOM_QUEUE_CALLED = 4,
	PIOM_QUEUE_MINDED = 8,
	PIOM_QUEUE_KICK = 16, /* one kick, counted modulo 2^28 */
};

/*
 * How long who asks has polled in vain, in nanoseconds, and other answers to
 * "when will you ask again?": io/patience.h.
 */
#define PIOM_PASSING ((uint64_t)0)    /* between threads that run */
#define PIOM_TICK    (UINT64_MAX - 1) /* at the next tick: threads compute */
#define PIOM_LAST    UINT64_MAX       /* not soon: I am going to sleep */

/*
 * What a state means is drawn in <pioman/ltask.h>. A task that is SUBMITTED may
 * be masked:
 *
 *   state:  | how often it is masked | MET | state |
 *
 * so that what may be run is one value, to which a pass compares. Who holds the
 * queue and finds a masked one sets MET: then the masker, who waits for a run
 * in progress, knows that there is none, order(mask). Nobody else holds the
 * queue meanwhile, and all who hold it later see the mask, order(hold); so the
 * masker may as well hold it once himself.
 */
enum piom_state {
	PIOM_STATE_IDLE,
	PIOM_STATE_SUBMITTED,  /* running: its queue's `running` says so */
	PIOM_STATE_CANCELLING, /* who meets it in a queue throws it out */
	PIOM_STATE_CANCELLED,
	PIOM_STATE_DONE,

	PIOM_STATE_BITS = 7,
	PIOM_STATE_MET = 8,
	PIOM_STATE_MASK = 16, /* one mask */
	PIOM_STATE_MASKS = 0xfff0,
};

/* How an ltask waits in the kernel: io/blocking.h, io/patience.h. */
struct piom_waits {
	/* -: const while submitted  q: who holds the queue  a: atomic */
	int fd;                  /* -: -1: wait() */
	bool watched;            /* q: fd is in the set */
	bool unarmable;          /* q: the kernel does not take fd */
	bool unasked;            /* -: */
	int8_t lwp;              /* q: waits for it, if `armed_at` is not 0 */
	int (*arm)(void *arg);   /* -: */
	void (*wait)(void *arg); /* -: */
	void (*wake)(void *arg); /* -: */
	uint64_t delay_ns;       /* -: */
	uint64_t armed_at;       /* q: order(ltask), order(export); 0: never */
	uint64_t since;          /* q: when it began to be asked, if armed */
	ATOMIC(uint64_t) due;    /* a: relaxed; the time hinted at, or 0 */
	uint32_t usual_ns;       /* q: asked for so long, most times; 0: ? */
	ATOMIC(int32_t) urgency; /* a: relaxed */
};

/* What is inside a struct piom_ltask. */
struct piom_task {
	/* -: const while submitted  q: who holds the queue  a: atomic */
	struct base_mpsc_node node; /* q: in the submissions */
	struct base_link link;      /* q: in the main list */
	piom_ltask_fn fn;           /* -: */
	void *arg;                  /* -: */
	struct piom_queue *queue;   /* -: NULL before the first submission */
	ATOMIC(uint16_t)
	state;            /* a: the submitter, then the queue's holder;
			   *    a canceller from SUBMITTED to CANCELLING, who
			   *    masks; order(mask) */
	uint16_t start;   /* -: in which run of pioman `queue` was found */
	uint8_t options;  /* -: */
	bool picky;       /* -: not every VP of the level may run it */
	bool wanted;      /* q: if picky, it wants to be asked again */
	piom_cond_t done; /* a: signalled as the last access to the task */
	union {
		marcel_vpset_t set;      /* -: who may run it, if HAS_SET */
		struct piom_waits waits; /* if BLOCKING */
	};
} BASE_MAY_ALIAS;

/* Beside the public options. */
enum { PIOM_TASK_BLOCKING = 64, PIOM_TASK_HAS_SET = 128 };

struct piom_queue {
	/* -: const  q: who holds the queue  a: atomic, see name */
	struct base_mpsc submitted; /* a: order(mpsc), order(queue) */
	ATOMIC(uint32_t) word;      /* a: order(hold), order(ltask) */
	ATOMIC(uint32_t) length;    /* q: of the main list; read by anybody */
	uint32_t kicks;        /* q: of the word, when all were last asked */
	struct base_list list; /* q: the main list */
	struct piom_queue *parent;  /* -: NULL for the machine's */
	struct marcel_level *level; /* -: */
	unsigned siblings;          /* -: children of the parent */
	ATOMIC(bool)
	is_picky; /* a: relaxed, before the submission; an ltask
		   * came that not all VPs of the level may run */
	ATOMIC(uint32_t)
	rounds;                        /* a: times somebody went on from here;
					*    may miss some */
	ATOMIC(piom_ltask_fn) running; /* q: for the dump, and who blocks */
	const void *outer;             /* q: base_unpin_handler() */
	uint64_t looked;               /* the timer's: of stats.polls */
	struct piom_queue_stats stats; /* q: what was done so far */
} BASE_ALIGNED(BASE_CACHE_PAIR);

void piom_queue_init(struct piom_queue *q, struct piom_queue *parent,
		     struct marcel_level *level);

/* Anybody; the task is not in a queue. Wakes nobody. */
void piom_queue_submit(struct piom_queue *q, struct piom_task *t);

/*
 * Run every ltask once that the VP may run (vp < 0: a foreign thread), unless
 * somebody else is doing so. Returns how many did work. `vain_ns`: how long the
 * caller has polled in vain; who will not come again soon says PIOM_LAST.
 */
int piom_queue_run_slow(struct piom_queue *q, int vp, uint64_t vain_ns,
			enum piom_point point);

/* Make PENDING true; whoever runs next sees what the caller did before. */
void piom_queue_kick(struct piom_queue *q);
/* And if somebody holds it, he asks all before he goes. */
void piom_queue_call(struct piom_queue *q);

/* Whether the caller runs an ltask of this queue. */
bool piom_queue_is_ours(const struct piom_queue *q);

/*
 * A task of the queue is being cancelled or masked: take it out, or note that
 * it does not run now. However many others there are, only this one is looked
 * at. Returns false if somebody holds the queue, who does it on meeting t.
 */
bool piom_queue_meet(struct piom_queue *q, struct piom_task *t);

/*
 * Fn for each task of the main list, with the queue held; it must not touch the
 * list. False if somebody else holds it.
 */
bool piom_queue_walk(struct piom_queue *q,
		     void (*fn)(struct piom_task *t, void *arg), void *arg);

/* Nothing submitted and nothing in the main list. A hint. */
static inline bool piom_queue_is_empty(struct piom_queue *q)
{
	return base_mpsc_is_empty(&q->submitted) &&
	       load_relaxed(&q->length) == 0;
}

/* Nothing to run, nor a PENDING left by a kick that came too late. A hint. */
static inline bool piom_queue_is_idle(struct piom_queue *q)
{
	return piom_queue_is_empty(q) &&
	       !(load_relaxed(&q->word) & PIOM_QUEUE_PENDING);
}

/* Whether somebody asks its ltasks, or is to. */
static inline bool piom_queue_is_pending(struct piom_queue *q)
{
	return load_seq(&q->submitted.top) != NULL || /* order(idle) */
	       load_seq(&q->word) & (PIOM_QUEUE_HELD | PIOM_QUEUE_PENDING);
}

/*
 * Whether a VP that may run its ltasks must not sleep. A VP first says that it
 * sleeps and then asks this; who submits or kicks, or has minded it, does so
 * and then looks for sleepers: order(idle), store-load. In this order: what has
 * left the submissions is seen in the word.
 */
static inline bool piom_queue_keeps_awake(struct piom_queue *q)
{
	bool submitted = load_seq(&q->submitted.top) != NULL; /* order(idle) */
	uint32_t w = load_seq(&q->word);                      /* order(idle) */

	return submitted || ((w & (PIOM_QUEUE_HELD | PIOM_QUEUE_PENDING)) &&
			     !(w & PIOM_QUEUE_MINDED));
}

/* Not an empty one, unless it is held: one of its ltasks may have called us. */
static inline int piom_queue_run(struct piom_queue *q, int vp, uint64_t vain_ns,
				 enum piom_point point)
{
	if (piom_queue_is_empty(q) &&
	    !(load_relaxed(&q->word) & (PIOM_QUEUE_PENDING | PIOM_QUEUE_HELD)))
		return 0;
	return piom_queue_run_slow(q, vp, vain_ns, point);
}

#endif
