/*
 * The one-shot completion, one word:
 *
 *	0		empty: not set, nobody waits
 *	SET (1)		set, for ever
 *	thread		not set, this thread waits
 *	group | GROUP	not set, a thread waits for this one and others
 *	call | CALL	not set, this function is to be called
 *
 * marcel_event_set() is one exchange; what it finds tells whom to wake, and it
 * touches the event no more. The waiter publishes itself by compare-and-swap.
 *
 * Waiting for any of several: a group lies in the waiter's frame and counts.
 * Each setter that finds the group subtracts one from `left`, its last access
 * to the group; the one that takes it from 1 to 0 wakes. `left` begins with 1,
 * so the first setter wakes. Then the waiter takes the group out of every
 * event where it still is. The others, x of them, were set, and each of these
 * setters has touched the group or is about to; x - 1 is added to `left`, so
 * that it is 0 when all x have finished, and the waiter waits for that too
 * before its frame goes away:
 *
 *	left = 1 - finished  ->  left = x - finished
 *
 * Who waits until some time only has a timer (timer.h) that takes it out of
 * the word, or fires the group like a setter. The waiter disarms it before it
 * returns, whoever woke it, so that the timer finds the word and the group.
 */
#include <marcel/wait.h>

#include <errno.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <base/diag.h>
#include <base/hang.h>
#include <base/pin.h>
#include "../sched/timer.h"
#include "../sched/vp.h"

#define SET   ((uintptr_t)1)
#define GROUP ((uintptr_t)2)
#define CALL  ((uintptr_t)4)

struct event {
	ATOMIC(uintptr_t) word; /* a: order(event) */
} BASE_MAY_ALIAS;

_Static_assert(sizeof(struct event) <= sizeof(marcel_event_t),
	       "an event fits its public words");
_Static_assert(_Alignof(struct marcel_thread) > (SET | GROUP | CALL) &&
		       _Alignof(struct marcel_event_call) >
			       (SET | GROUP | CALL),
	       "addresses leave room for the marks");

/* -: const while it is attached    a: atomic */
struct group {
	struct marcel_thread *thread; /* -: */
	ATOMIC(int) left;             /* a: order(group) */
	struct marcel_events events;  /* -: for who looks at the thread */
} BASE_ALIGNED(16);

BASE_PUBLIC void marcel_event_init(marcel_event_t *e)
{
	store_relaxed(&((struct event *)e)->word, 0);
}

BASE_PUBLIC int marcel_event_test(const marcel_event_t *e)
{
	/* order(event): what was done before the set */
	return load_acquire(&((struct event *)e)->word) == SET;
}

static void group_fire(struct group *g)
{
	struct marcel_thread *t = g->thread;

	/* order(group): our read of it; the waiter may leave its frame */
	if (fetch_sub_acq_rel(&g->left, 1) == 1)
		marcel_wake(t);
}

/* It may free the record. */
static void call_fn(struct marcel_event_call *call)
{
	void (*fn)(struct marcel_event_call * call) = call->fn;
	const void *outer = base_pin_handler(&fn);

	fn(call);
	base_unpin_handler(outer);
}

BASE_PUBLIC void marcel_event_set(marcel_event_t *e)
{
	/* order(event): what was done before; who waits, its group or call */
	uintptr_t old = xchg_acq_rel(&((struct event *)e)->word, SET);

	base_assert(old != SET);
	if (likely(old == 0 || old == SET))
		return;
	if (old & GROUP)
		group_fire((struct group *)(old & ~GROUP));
	else if (old & CALL)
		call_fn((struct marcel_event_call *)(old & ~CALL));
	else
		marcel_wake((struct marcel_thread *)old);
}

/* False if it is set; then everything before the set is visible. */
static bool attach(struct event *e, uintptr_t who)
{
	uintptr_t empty = 0;

	/* order(event): who; or what was done before the set */
	if (likely(cas_acq_rel(&e->word, &empty, who)))
		return true;
	base_check(empty == SET); /* else it has another waiter */
	return false;
}

BASE_PUBLIC int marcel_event_call(marcel_event_t *e,
				  struct marcel_event_call *call)
{
	return attach((struct event *)e, (uintptr_t)call | CALL) ? 0
								 : -EALREADY;
}

/* One who waits for one event: in its frame. */
struct waiting {
	struct event *e;
	struct marcel_thread *thread;
};

/* The context is saved: publish, or go on at once if it was set meanwhile. */
static void wait_after(void *arg)
{
	struct waiting *w = arg;
	struct marcel_thread *t = w->thread;

	if (!attach(w->e, (uintptr_t)t))
		marcel_wake(t);
}

BASE_PUBLIC void marcel_event_wait(marcel_event_t *e)
{
	struct waiting w = { .e = (struct event *)e };

	if (marcel_event_test(e))
		return;
	w.thread = marcel_thread_self();
	marcel_thread_waits(w.thread, MARCEL_WAITS_EVENT, e);
	marcel_park(wait_after, &w);
	base_check(marcel_event_test(e));
}

/* The timer of who waits for one event. */
struct event_timer {
	struct marcel_timer timer;
	struct event *e;
};

/* Whoever takes the waiter out of the word ends the wait. */
static enum marcel_claim claim_event(struct marcel_timer *t)
{
	struct event_timer *w = container_of(t, struct event_timer, timer);
	uintptr_t who = (uintptr_t)t->thread;

	return cas_relaxed(&w->e->word, &who, 0) ? MARCEL_CLAIM_MINE
						 : MARCEL_CLAIM_GONE;
}

BASE_PUBLIC int marcel_event_wait_until(marcel_event_t *e, uint64_t ns)
{
	static const struct marcel_timer_kind kind = {
		.claim = claim_event,
		.expire = marcel_timer_wake,
	};
	struct event_timer w = { .e = (struct event *)e };

	if (marcel_event_test(e))
		return 0;
	if (marcel_timer_set_ns(&w.timer, &kind, ns) != 0)
		return -ETIMEDOUT;
	if (!attach(w.e, (uintptr_t)w.timer.thread))
		return 0;
	marcel_thread_waits(w.timer.thread, MARCEL_WAITS_EVENT, e);
	marcel_timer_arm(&w.timer);
	marcel_timer_park(&w.timer);
	marcel_timer_disarm(&w.timer);
	return marcel_event_test(e) ? 0 : -ETIMEDOUT;
}

/*
 * Take the group out of the first n events. How many of them were set instead,
 * and the lowest index of one.
 */
static int detach(marcel_event_t *const events[], size_t n, uintptr_t who,
		  size_t *first)
{
	int fired = 0;

	for (size_t i = n; i-- > 0;) {
		uintptr_t seen = who;

		/* Who set it orders through `left`. */
		if (events[i] == NULL ||
		    cas_relaxed(&((struct event *)events[i])->word, &seen, 0))
			continue;
		base_check(seen == SET);
		*first = i;
		fired++;
	}
	return fired;
}

/* The timer of a group fires it as a setter does. */
struct group_timer {
	struct marcel_timer timer;
	struct group *g;
};

static enum marcel_claim claim_group(struct marcel_timer *t)
{
	struct group *g = container_of(t, struct group_timer, timer)->g;

	/* The lock of the heap orders it, unlike a setter. */
	return fetch_sub_relaxed(&g->left, 1) == 1 ? MARCEL_CLAIM_MINE
						   : MARCEL_CLAIM_GONE;
}

/* Until somebody fires the group. True: the timer did. */
static bool wait_for_group(struct group *g, struct group_timer *t)
{
	marcel_thread_waits(g->thread, MARCEL_WAITS_EVENTS, &g->events);
	if (t == NULL) {
		marcel_park(NULL, NULL);
		return false;
	}
	t->g = g;
	marcel_timer_arm(&t->timer);
	marcel_timer_park(&t->timer);
	return !marcel_timer_disarm(&t->timer);
}

/* t is set, or NULL: for ever. */
static size_t wait_any(marcel_event_t *const events[], size_t n,
		       struct group_timer *t)
{
	struct marcel_thread *self = marcel_thread_self();
	struct group g = { .thread = self,
			   .left = ATOMIC_INIT(1),
			   .events = { (const void *const *)events, n } };
	uintptr_t who = (uintptr_t)&g | GROUP;
	bool parked = false, any = false;
	size_t i, found = n;
	int fired = 0;

	for (i = 0; i < n; i++) {
		if (events[i] == NULL)
			continue;
		any = true;
		if (!attach((struct event *)events[i], who))
			break;
	}
	base_check(any);
	if (i == n) {
		fired = wait_for_group(&g, t);
		parked = true;
	}
	found = i;
	fired += detach(events, i, who, &found);
	if (fired == 0)
		return found;
	/* The first of these setters wakes us; take that wake. */
	if (!parked)
		marcel_park(NULL, NULL);
	/* order(group): all setters have read it */
	if (fetch_add_acquire(&g.left, fired - 1) + fired - 1 != 0)
		marcel_park(NULL, NULL);
	return found;
}

BASE_PUBLIC size_t marcel_event_wait_any(marcel_event_t *const events[],
					 size_t n)
{
	return wait_any(events, n, NULL);
}

BASE_PUBLIC size_t marcel_event_wait_any_until(marcel_event_t *const events[],
					       size_t n, uint64_t ns)
{
	static const struct marcel_timer_kind kind = {
		.claim = claim_group,
		.expire = marcel_timer_wake,
	};
	struct group_timer t;

	if (marcel_timer_set_ns(&t.timer, &kind, ns) == 0)
		return wait_any(events, n, &t);
	for (size_t i = 0; i < n; i++)
		if (events[i] != NULL && marcel_event_test(events[i]))
			return i;
	return n;
}
