/*
 * Timers: see timer.h. The heap is a pairing heap: to arm a timer is O(1), to
 * take one out O(log n), and most are taken out before their time.
 *
 * Its order is by the monotonic clock. A wait by the realtime clock is put
 * where that stands now; if the clock is set back meanwhile, it is put again
 * when it comes first. If the clock is set forward, who sleeps for it notices
 * at once, because it sleeps by that clock; a VP that has others to run, or an
 * earlier timer, may be as late as it thought it had time.
 */
#include "timer.h"

#include <errno.h>

#include <base/clock.h>
#include <base/diag.h>
#include <marcel/wait.h>
#include "../os/os.h"
#include "../thread/fork.h"
#include "enter.h"
#include "vp.h"

#define SECOND ((uint64_t)1000000000)

/* --- time --- */

static uint64_t now_by(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* Before all, and 292 years on, are as good as any such time. */
uint64_t marcel_timer_ns(const struct timespec *t)
{
	if (t->tv_sec < 0)
		return 0;
	if ((uint64_t)t->tv_sec >= INT64_MAX / SECOND)
		return INT64_MAX;
	return (uint64_t)t->tv_sec * SECOND + (uint64_t)t->tv_nsec;
}

static bool is_due(struct marcel_timer *t, uint64_t now)
{
	return t->clock == CLOCK_MONOTONIC ? t->ns <= now
					   : t->ns <= now_by(t->clock);
}

/* Its place in the heap, never 0. True: its time has come. */
static bool place(struct marcel_timer *t, uint64_t now)
{
	uint64_t there = now;

	t->at = t->ns > 0 ? t->ns : 1;
	if (t->clock != CLOCK_MONOTONIC) {
		there = now_by(t->clock);
		t->at = t->ns > there ? now + (t->ns - there) : now;
	}
	return t->ns <= there;
}

/* --- the heap, under its lock --- */

/* Both without siblings, either may be NULL: the earlier becomes the root. */
static struct marcel_timer *meld(struct marcel_timer *a, struct marcel_timer *b)
{
	struct marcel_timer *later = b;

	if (a == NULL || b == NULL)
		return a != NULL ? a : b;
	if (b->at < a->at) {
		later = a;
		a = b;
	}
	later->sibling = a->child;
	if (a->child != NULL)
		a->child->back = later;
	later->back = a;
	a->child = later;
	return a;
}

/* A row of siblings: in pairs from the left, then all from the right. */
static struct marcel_timer *meld_row(struct marcel_timer *row)
{
	struct marcel_timer *a, *b, *pairs = NULL, *root = NULL;

	while (row != NULL) {
		a = row;
		b = a->sibling;
		row = NULL;
		if (b != NULL) {
			row = b->sibling;
			b->sibling = NULL;
		}
		a->sibling = NULL;
		a = meld(a, b);
		a->sibling = pairs;
		pairs = a;
	}
	while (pairs != NULL) {
		a = pairs;
		pairs = a->sibling;
		a->sibling = NULL;
		root = meld(root, a);
	}
	return root;
}

static void set_root(struct marcel_timers *ts, struct marcel_timer *root)
{
	uint64_t at = 0;

	ts->root = root;
	if (root != NULL) {
		root->back = NULL;
		at = root->at;
	}
	if (load_relaxed(&ts->next) != at)
		store_seq(&ts->next, at); /* order(idle): wake() may follow */
}

static void insert(struct marcel_timers *ts, struct marcel_timer *t)
{
	t->child = t->sibling = t->back = NULL;
	t->armed = true;
	set_root(ts, meld(ts->root, t));
}

static void take_out(struct marcel_timers *ts, struct marcel_timer *t)
{
	struct marcel_timer *below = meld_row(t->child);

	t->armed = false;
	if (t == ts->root) {
		set_root(ts, below);
		return;
	}
	if (t->back->child == t)
		t->back->child = t->sibling;
	else
		t->back->sibling = t->sibling;
	if (t->sibling != NULL)
		t->sibling->back = t->back;
	set_root(ts, meld(ts->root, below));
}

void marcel_timers_init(struct marcel_timers *ts)
{
	store_relaxed(&ts->next, 0);
	base_spin_init(&ts->lock, BASE_RANK_LEAF);
	ts->root = NULL;
	ts->looked = 0;
}

/* --- set, arm, disarm --- */

static enum marcel_claim claim_always(struct marcel_timer *t)
{
	(void)t;
	return MARCEL_CLAIM_MINE;
}

void marcel_timer_wake(struct marcel_timer *t)
{
	t->expired = true;
	marcel_wake(t->thread);
}

const struct marcel_timer_kind marcel_timer_plain = { claim_always,
						      marcel_timer_wake };

int marcel_timer_check_clock(clockid_t clock)
{
	return clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME ? 0 : EINVAL;
}

static int set_timer(struct marcel_timer *t, const struct marcel_timer_kind *k,
		     clockid_t clock, uint64_t ns)
{
	marcel_timer_set_never(t, k, marcel_thread_self());
	t->clock = clock;
	t->ns = ns;
	return place(t, base_now_ns()) ? ETIMEDOUT : 0;
}

int marcel_timer_set(struct marcel_timer *t, const struct marcel_timer_kind *k,
		     const struct marcel_until *until)
{
	if (until->abs == NULL || until->abs->tv_nsec < 0 ||
	    until->abs->tv_nsec >= (long)SECOND ||
	    marcel_timer_check_clock(until->clock) != 0)
		return EINVAL;
	return set_timer(t, k, until->clock, marcel_timer_ns(until->abs));
}

int marcel_timer_set_ns(struct marcel_timer *t,
			const struct marcel_timer_kind *k, uint64_t ns)
{
	return set_timer(t, k, CLOCK_MONOTONIC,
			 ns < INT64_MAX ? ns : INT64_MAX);
}

void marcel_timer_arm(struct marcel_timer *t)
{
	struct marcel_lwp *l = cpu_tls_word();
	struct marcel_vp *vp, *mine;
	uint32_t was = 0;

	if (l == NULL) {
		marcel_timers_init(&t->alone);
		t->in = &t->alone;
		t->child = t->sibling = t->back = NULL;
		t->armed = true;
		set_root(&t->alone, t);
		return;
	}
	mine = marcel_nest(&was);
	vp = load_relaxed(&l->vp);
	t->in = &vp->timers;
	base_spin_lock(&vp->timers.lock);
	insert(&vp->timers, t);
	base_spin_unlock(&vp->timers.lock);
	marcel_unnest(mine, was);
	/* Its driver may sleep already, and longer. */
	if (unlikely(mine == NULL))
		marcel_vp_wake(vp, true);
}

bool marcel_timer_disarm(struct marcel_timer *t)
{
	struct marcel_timers *ts = t->in;
	bool armed;

	/* Who waits there is no more, and who held the lock neither. */
	if (unlikely(marcel_fork_has_left(ts)) && ts != &t->alone)
		return true;
	base_spin_lock(&ts->lock);
	armed = t->armed;
	if (armed)
		take_out(ts, t);
	base_spin_unlock(&ts->lock);
	return armed;
}

/* --- expire --- */

/* A timer that is due, claimed and out of the heap; NULL: none, or later. */
static struct marcel_timer *take_due(struct marcel_timers *ts, uint64_t now)
{
	enum marcel_claim claim = MARCEL_CLAIM_GONE;
	struct marcel_timer *t = NULL;

	base_spin_lock(&ts->lock);
	while (claim == MARCEL_CLAIM_GONE && (t = ts->root) != NULL) {
		if (is_due(t, now)) {
			claim = t->kind->claim(t);
			if (claim != MARCEL_CLAIM_LATER)
				take_out(ts, t);
		} else if (t->at <= now) {
			take_out(ts, t);
			place(t, now); /* its clock was set back */
			insert(ts, t);
		} else {
			break;
		}
	}
	base_spin_unlock(&ts->lock);
	return claim == MARCEL_CLAIM_MINE ? t : NULL;
}

void marcel_timers_run(struct marcel_timers *ts)
{
	uint64_t now = base_now_ns();
	struct marcel_timer *t;

	while ((t = take_due(ts, now)) != NULL)
		t->kind->expire(t);
}

bool marcel_timers_are_due(struct marcel_timers *ts)
{
	uint64_t next = load_relaxed(&ts->next);

	return unlikely(next != 0) && base_now_ns() >= next;
}

void marcel_timers_look(struct marcel_timers *ts)
{
	uint64_t ticks = cpu_ticks();

	if (ticks - ts->looked < CPU_TICKS_FEW)
		return;
	ts->looked = ticks;
	if (base_now_ns() >= load_relaxed(&ts->next))
		marcel_timers_run(ts);
}

bool marcel_timers_sleep(struct marcel_timers *ts, void *word, uint32_t value)
{
	struct timespec abs = { 0 };
	clockid_t clock = CLOCK_MONOTONIC;
	bool any = false;

	if (load_seq(&ts->next) != 0) { /* order(idle) */
		base_spin_lock(&ts->lock);
		any = ts->root != NULL;
		if (any) {
			clock = ts->root->clock;
			abs.tv_sec = (time_t)(ts->root->ns / SECOND);
			abs.tv_nsec = (long)(ts->root->ns % SECOND);
		}
		base_spin_unlock(&ts->lock);
	}
	if (any)
		return !os_futex_wait_until(word, value, clock, &abs);
	os_futex_wait(word, value);
	return false;
}

/* The next in the heap, each after who is above it; NULL: that was the last. */
static const struct marcel_timer *after(const struct marcel_timer *t)
{
	if (t->child != NULL)
		return t->child;
	while (t != NULL && t->sibling == NULL) {
		while (t->back != NULL && t->back->child != t)
			t = t->back;
		t = t->back;
	}
	return t != NULL ? t->sibling : NULL;
}

bool marcel_timers_any(struct marcel_timers *ts,
		       bool (*counts)(const struct marcel_timer *t))
{
	const struct marcel_timer *t;

	if (!marcel_timers_are_armed(ts))
		return false;
	base_spin_lock(&ts->lock);
	t = ts->root;
	while (t != NULL && !counts(t))
		t = after(t);
	base_spin_unlock(&ts->lock);
	return t != NULL;
}

static size_t check_below(const struct marcel_timer *t)
{
	const struct marcel_timer *back = t, *c;
	size_t n = 1;

	base_check(t->armed);
	for (c = t->child; c != NULL; c = c->sibling) {
		base_check(c->at >= t->at);
		base_check(c->back == back);
		back = c;
		n += check_below(c);
	}
	return n;
}

size_t marcel_timers_check(struct marcel_timers *ts)
{
	size_t n = 0;

	base_spin_lock(&ts->lock);
	if (ts->root != NULL) {
		base_check(ts->root->back == NULL);
		base_check(ts->root->sibling == NULL);
		base_check(load_relaxed(&ts->next) == ts->root->at);
		n = check_below(ts->root);
	} else {
		base_check(load_relaxed(&ts->next) == 0);
	}
	base_spin_unlock(&ts->lock);
	return n;
}
