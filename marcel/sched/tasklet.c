/*
 * Tasklets: their state, and their way to a VP and back.
 *
 * The state is one word:
 *
 *	PENDING  to run		LISTED   in a chain, or in somebody's hands
 *	HI       before others	RUNNING  a VP is in its function
 *	KILLED   for ever	above    how often it was disabled
 *
 *	            schedule                 taken from the chain
 *	(nothing) -----------> PENDING ---------------------------> RUNNING
 *	    ^                  LISTED <----------------------------'   |  ^
 *	    |                   |  ^      the end, if scheduled        |  |
 *	    |     taken, but it |  | enable     meanwhile              |  |
 *	    |       is disabled v  |                                   |  |
 *	    |                  PENDING                     schedule:   v  |
 *	    '--------------------------------- the end --- RUNNING, PENDING
 *
 * Who sets LISTED pushes it, and only who took it out of a chain clears that;
 * so it is in one chain at most. Who clears RUNNING without setting LISTED, or
 * LISTED without setting RUNNING, touches it no more: a killer waits until it
 * has neither, order(tasklet). The same word brings what was done before a
 * schedule to the run, even if it was pending: so a schedule always writes.
 *
 * A type is one word too, order(type): 0, or HELD, with the chain of those that
 * came meanwhile. They are still LISTED, and are pushed again by the holder.
 */
#include "tasklet.h"

#include <errno.h>
#include <sched.h>

#include <marcel/marcel.h>
#include "enter.h"
#include "hook.h"
#include "runq.h"
#include "sanitizer.h"

#define PENDING  ((uint32_t)1)
#define LISTED   ((uint32_t)2)
#define HI       ((uint32_t)4)
#define RUNNING  ((uint32_t)8)
#define KILLED   ((uint32_t)16)
#define DISABLED ((uint32_t)1 << 12)

#define HELD ((uintptr_t)1)

struct type {
	ATOMIC(uintptr_t) word; /* a: order(type) */
} BASE_MAY_ALIAS;

struct tasklet {
	/* -: const while it is scheduled    a: atomic, pair named
	 * q: who has it in hand, or pushed it */
	ATOMIC(uint32_t) state; /* a: order(tasklet) */
	bool anywhere;          /* -: `set` means nothing */
	struct tasklet *next;   /* q: in a chain */
	void (*fn)(void *);     /* -: */
	void *arg;              /* -: */
	struct type *type;      /* -: or NULL */
	marcel_vpset_t set;     /* -: */
} BASE_MAY_ALIAS;

_Static_assert(sizeof(struct tasklet) <= sizeof(marcel_tasklet_t),
	       "the public type has room for it");

/* --- to a VP --- */

static bool may_run(struct tasklet *t, int vp)
{
	return t->anywhere || marcel_vpset_has(&t->set, vp);
}

static bool seems_idle(struct marcel_vp *vp)
{
	uint32_t asleep = load_relaxed(&vp->sleeper.asleep);

	return asleep == MARCEL_ASLEEP || asleep == MARCEL_WATCHING;
}

/* One that is idle, else the caller's (or NULL), else any. NULL: none. */
static struct marcel_vp *choose(struct tasklet *t, struct marcel_vp *self)
{
	struct marcel_sched *s = &marcel_sched;
	struct marcel_vp *any = NULL;

	if (self != NULL && may_run(t, self->id)) {
		any = self;
		if (marcel_idle_sleepers(load_relaxed(&s->idle.word)) == 0)
			return self;
	}
	for (int i = 0; i < s->nvp; i++) {
		if (!may_run(t, i))
			continue;
		if (seems_idle(&s->vps[i]))
			return &s->vps[i];
		if (any == NULL)
			any = &s->vps[i];
	}
	return any;
}

static bool can_run(struct tasklet *t)
{
	bool can = t->anywhere;

	for (int i = 0; i < marcel_nvp() && !can; i++)
		can = may_run(t, i);
	return can && marcel_is_running();
}

/* t is LISTED, by the caller. It may run, and be gone, at once. */
static void push(struct marcel_vp *vp, struct tasklet *t)
{
	uintptr_t w = load_relaxed(&vp->calls);

	fetch_add_relaxed(&marcel_sched.before_switch, MARCEL_BEFORE_TASKLET);
	do
		t->next = (struct tasklet *)w;
	while (!cas_weak_seq(&vp->calls, &w, /* order(calls), order(idle) */
			     (uintptr_t)t));
	marcel_vp_wake(vp, true);
}

/* Oldest first; *n: how many. */
static struct tasklet *turn(struct tasklet *t, unsigned *n)
{
	struct tasklet *next, *first = NULL;

	for (*n = 0; t != NULL; t = next, ++*n) {
		next = t->next;
		t->next = first;
		first = t;
	}
	return first;
}

/* The whole chain of the VP, oldest first. */
static struct tasklet *take(struct marcel_vp *vp)
{
	struct tasklet *t;
	unsigned n;

	if (!marcel_tasklets_are_pending(vp))
		return NULL;
	/* order(calls): those that are in it */
	t = turn((struct tasklet *)xchg_acquire(&vp->calls, 0), &n);
	fetch_sub_relaxed(&marcel_sched.before_switch,
			  n * MARCEL_BEFORE_TASKLET);
	return t;
}

/* t is LISTED, by the caller, who may be anyone. */
static void enqueue(struct tasklet *t)
{
	uint32_t was = 0;
	struct marcel_vp *vp = marcel_nest(&was);

	if (vp == NULL)
		marcel_runq_guest_begin();
	push(choose(t, vp), t);
	if (vp == NULL)
		marcel_runq_guest_end();
	marcel_unnest(vp, was);
}

/* --- types --- */

/* Whether t may run now; else it is the holder's. */
static bool hold(struct type *y, struct tasklet *t)
{
	uintptr_t w = load_relaxed(&y->word);

	for (;;) {
		if (w == 0) {
			/* order(type): what the last of the type did */
			if (cas_weak_acquire(&y->word, &w, HELD))
				return true;
			continue;
		}
		t->next = (struct tasklet *)(w & ~HELD);
		/* order(type): t, in the chain */
		if (cas_weak_release(&y->word, &w, (uintptr_t)t | HELD))
			return false;
	}
}

static void let_go(struct type *y)
{
	/* order(type): what was done; the chain */
	uintptr_t w = xchg_acq_rel(&y->word, 0);
	struct tasklet *t, *next;
	unsigned n;

	t = turn((struct tasklet *)(w & ~HELD), &n);

	for (; t != NULL; t = next) {
		next = t->next;
		enqueue(t);
	}
}

/* --- run --- */

/*
 * Taken from a chain: whether it is to run. If not, it is others', unless the
 * caller keeps it RUNNING: a type lives as long as its tasklets.
 */
static bool begin_run(struct tasklet *t, uint32_t keep)
{
	uint32_t w = load_relaxed(&t->state), to;

	do {
		to = (w & ~LISTED) | keep;
		if (w & KILLED)
			to &= ~(PENDING | HI);
		else if (w < DISABLED)
			to = (to & ~(PENDING | HI)) | RUNNING;
		/* order(tasklet): what was done before; we have done with it */
	} while (!cas_weak_acq_rel(&t->state, &w, to));
	return !(w & KILLED) && w < DISABLED;
}

/* It has run: whether it is LISTED again. If not, it is others'. */
static bool end_run(struct tasklet *t)
{
	uint32_t w = load_relaxed(&t->state), to;

	do {
		to = w & ~RUNNING;
		if ((w & PENDING) && w < DISABLED && !(w & KILLED))
			to |= LISTED;
		/* order(tasklet): what the run did; we have done with it */
	} while (!cas_weak_release(&t->state, &w, to));
	return (to & LISTED) != 0;
}

static void run_one(struct tasklet *t)
{
	struct type *y = t->type;
	const void *outer;
	void (*fn)(void *);

	if (y != NULL && !hold(y, t))
		return;
	if (!begin_run(t, y != NULL ? RUNNING : 0)) {
		if (y == NULL)
			return;
		let_go(y);
		if (end_run(t))
			enqueue(t);
		return;
	}
	marcel_san_acquire(t);
	if (y != NULL)
		marcel_san_acquire(y);
	marcel_san_leave();
	fn = t->fn;
	outer = base_pin_handler(&fn);
	fn(t->arg);
	base_unpin_handler(outer);
	marcel_san_enter();
	marcel_san_release(t);
	if (y != NULL) {
		marcel_san_release(y);
		let_go(y);
	}
	if (end_run(t))
		enqueue(t);
}

/* Those of the chain that are in a hurry, or the others. */
static struct tasklet *run_some(struct tasklet *t, uint32_t hi)
{
	struct tasklet *next, *rest = NULL;
	unsigned n;

	for (; t != NULL; t = next) {
		next = t->next;
		if ((load_relaxed(&t->state) & HI) == hi) {
			run_one(t);
		} else {
			t->next = rest;
			rest = t;
		}
	}
	return turn(rest, &n);
}

BASE_COLD void marcel_tasklets_run(struct marcel_vp *vp)
{
	int saved = *vp->errno_addr;
	struct tasklet *t;

	marcel_san_enter();
	vp->in_tasklet = true;
	t = run_some(take(vp), HI);
	for (struct tasklet *next; t != NULL; t = next) {
		next = t->next;
		run_one(t);
	}
	vp->in_tasklet = false;
	*vp->errno_addr = saved;
	marcel_san_leave();
}

void marcel_tasklets_drop(void)
{
	for (int i = 0; i < marcel_sched.nvp; i++) {
		struct tasklet *t = take(&marcel_sched.vps[i]), *next;

		for (; t != NULL; t = next) {
			next = t->next;
			/* order(tasklet): we have done with it */
			fetch_and_release(&t->state, ~(PENDING | HI | LISTED));
		}
	}
}

/* --- schedule --- */

BASE_PUBLIC int marcel_tasklet_init(marcel_tasklet_t *tasklet,
				    void (*fn)(void *), void *arg)
{
	struct tasklet *t = (struct tasklet *)tasklet;

	if (fn == NULL)
		return -EINVAL;
	*t = (struct tasklet){ .anywhere = true, .fn = fn, .arg = arg };
	return 0;
}

static bool is_busy(struct tasklet *t)
{
	return (load_relaxed(&t->state) & (PENDING | LISTED | RUNNING)) != 0;
}

BASE_PUBLIC int marcel_tasklet_set_type(marcel_tasklet_t *tasklet,
					marcel_tasklet_type_t *type)
{
	struct tasklet *t = (struct tasklet *)tasklet;

	if (is_busy(t))
		return -EBUSY;
	t->type = (struct type *)type;
	return 0;
}

BASE_PUBLIC int marcel_tasklet_set_vpset(marcel_tasklet_t *tasklet,
					 const marcel_vpset_t *set)
{
	struct tasklet *t = (struct tasklet *)tasklet;

	if (is_busy(t))
		return -EBUSY;
	for (int i = 0; i < marcel_nvp(); i++) {
		if (marcel_vpset_has(set, i)) {
			t->set = *set;
			t->anywhere = false;
			return 0;
		}
	}
	return -EINVAL;
}

static int schedule(struct tasklet *t, uint32_t how)
{
	uint32_t w = load_relaxed(&t->state), to;

	if (unlikely(!marcel_is_running()))
		return -EPERM;
	if (unlikely(!can_run(t)))
		return -EINVAL;
	marcel_san_release(t);
	do {
		if (w & KILLED)
			return -ECANCELED;
		to = w | how;
		if (!(w & RUNNING) && w < DISABLED)
			to |= LISTED;
		/* order(tasklet): what was done before; who had it last */
	} while (!cas_weak_acq_rel(&t->state, &w, to));
	if ((to & ~w) & LISTED)
		enqueue(t);
	return 0;
}

BASE_PUBLIC int marcel_tasklet_schedule(marcel_tasklet_t *t)
{
	return schedule((struct tasklet *)t, PENDING);
}

BASE_PUBLIC int marcel_tasklet_hi_schedule(marcel_tasklet_t *t)
{
	return schedule((struct tasklet *)t, PENDING | HI);
}

/* --- disable, kill --- */

/* The caller runs on top of somebody's switch: it cannot wait. */
static bool may_wait(void)
{
	uint32_t was = 0;
	struct marcel_vp *vp = marcel_nest(&was);
	bool may = vp == NULL || (!vp->in_tasklet &&
				  (load_relaxed(&vp->hooking.seq) & 1) == 0);

	marcel_unnest(vp, was);
	return may;
}

/* Take those that are killed out of a chain, or leave it to who has it. */
static void sift(struct marcel_vp *vp)
{
	struct tasklet *t = take(vp), *next;

	for (; t != NULL; t = next) {
		next = t->next;
		if (load_relaxed(&t->state) & KILLED)
			begin_run(t, 0);
		else
			push(vp, t);
	}
}

static void sift_all(void)
{
	uint32_t was = 0;
	struct marcel_vp *vp = marcel_nest(&was);

	marcel_san_enter();
	for (int i = 0; i < marcel_nvp(); i++)
		sift(&marcel_sched.vps[i]);
	marcel_san_leave();
	marcel_unnest(vp, was);
}

BASE_PUBLIC int marcel_tasklet_disable_nosync(marcel_tasklet_t *tasklet)
{
	struct tasklet *t = (struct tasklet *)tasklet;
	uint32_t w = load_relaxed(&t->state);

	do
		if (w > UINT32_MAX - DISABLED)
			return -EOVERFLOW;
	while (!cas_weak_relaxed(&t->state, &w, w + DISABLED));
	return 0;
}

BASE_PUBLIC int marcel_tasklet_disable(marcel_tasklet_t *tasklet)
{
	struct tasklet *t = (struct tasklet *)tasklet;
	int rc = marcel_tasklet_disable_nosync(tasklet);

	if (rc < 0)
		return rc;
	/* order(tasklet): what its last run did */
	while (load_acquire(&t->state) & RUNNING) {
		if (!may_wait())
			return -EDEADLK;
		marcel_yield();
		sched_yield();
	}
	marcel_san_acquire(t);
	return 0;
}

BASE_PUBLIC int marcel_tasklet_enable(marcel_tasklet_t *tasklet)
{
	struct tasklet *t = (struct tasklet *)tasklet;
	uint32_t w = load_relaxed(&t->state), to;
	bool can = can_run(t);

	marcel_san_release(t);
	do {
		if (w < DISABLED)
			return -EINVAL;
		to = w - DISABLED;
		if ((to & (PENDING | RUNNING | KILLED)) == PENDING &&
		    to < DISABLED && can)
			to |= LISTED;
		/* order(tasklet): what was done meanwhile; who had it last */
	} while (!cas_weak_acq_rel(&t->state, &w, to));
	if ((to & ~w) & LISTED)
		enqueue(t);
	return 0;
}

/* Until nobody has it. */
static void wait_until_free(struct tasklet *t)
{
	/* order(tasklet): who had it has done with it */
	while (load_acquire(&t->state) & (RUNNING | LISTED)) {
		sift_all();
		marcel_yield();
		sched_yield();
	}
}

BASE_PUBLIC int marcel_tasklet_kill(marcel_tasklet_t *tasklet)
{
	struct tasklet *t = (struct tasklet *)tasklet;
	bool is_guest = cpu_tls_word() == NULL, waits = may_wait();
	uint32_t w = load_relaxed(&t->state);

	do
		if (!waits && (w & (RUNNING | LISTED)))
			return -EDEADLK;
	while (!cas_weak_relaxed(&t->state, &w, w | KILLED));
	if (is_guest)
		marcel_runq_guest_begin();
	wait_until_free(t);
	if (is_guest)
		marcel_runq_guest_end();
	marcel_san_acquire(t);
	return 0;
}
