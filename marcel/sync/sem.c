/*
 * Counting semaphores.
 *
 * `value` is the count while it is positive and minus the number of waiters
 * while it is negative; so post and wait are one compare-and-swap each when
 * nobody waits. A post that finds it negative owes one waiter its unit: it
 * takes the first out of the queue, or, if that one has been counted but is not
 * in the queue yet, leaves a token, which the waiter finds there.
 *
 * A post that owes touches the semaphore after it changed `value`. That is
 * safe: each such post frees exactly one waiter, after its last access, so the
 * semaphore has waiters until the last of these posts has done with it. A
 * waiter whose time has come leaves only if there are more waiters than such
 * posts: while `value` is negative.
 *
 * Where a post may have interrupted the runtime, it leaves to others what it
 * owes: late.h.
 *
 * In the child of a fork() nobody waits but threads of the child. So `value`
 * says in its upper half in which generation (guard.h) it was counted:
 *
 *	value = generation << 32 + count
 *
 * and a count of another generation is as good as max(count, 0). Who finds it 0
 * or less, or, to post, negative, has then neither taken nor given a unit by
 * what it added: it makes the value its own and begins again. Until somebody
 * does, a positive count is what it says. Units that were on their way to
 * waiters have been used by them.
 */
#include <marcel/sync.h>

#include <errno.h>
#include <limits.h>

#include <marcel/wait.h>
#include "../sched/enter.h"
#include "../thread/cancel.h"
#include "guard.h"
#include "late.h"
#include "timed.h"
#include "waitq.h"

struct sem {
	/* l: guard    a: atomic, pair named */
	ATOMIC(int64_t) value;     /* a: order(sem) */
	struct marcel_guard guard; /* a: the tokens, each TOKEN */
	struct marcel_waitq queue; /* l: */
	struct marcel_late late;   /* a: late.h */
} BASE_MAY_ALIAS;

_Static_assert(sizeof(struct sem) <= sizeof(marcel_sem_t),
	       "a semaphore fits its public words");

#define TOKEN ((uint32_t)2)

static int32_t count_of(int64_t value)
{
	return (int32_t)value;
}

/* The value of a count of this process. */
static int64_t value_of(int32_t count)
{
	uint64_t generation = marcel_generation;

	return (int64_t)((generation << 32) + (uint64_t)(int64_t)count);
}

/* Counted in another process. */
static bool is_left(int64_t value)
{
	return unlikely(marcel_generation != 0) &&
	       value != value_of(count_of(value));
}

/* Those of another process wait no more. Takes no lock: a handler may post. */
static void renew_value(struct sem *s)
{
	int64_t v = load_relaxed(&s->value);
	int32_t count;

	while (is_left(v)) {
		count = count_of(v) > 0 ? count_of(v) : 0;
		if (cas_weak_relaxed(&s->value, &v, value_of(count)))
			return;
	}
}

static uint32_t sem_adopt(struct marcel_guard *g, uint32_t w)
{
	(void)w;
	marcel_waitq_forget(&container_of(g, struct sem, guard)->queue);
	return 0;
}

BASE_PUBLIC int marcel_sem_init(marcel_sem_t *sem, int pshared, unsigned value)
{
	struct sem *s = (struct sem *)sem;

	if (pshared != 0)
		return ENOTSUP;
	if (value > INT32_MAX)
		return EINVAL;
	*sem = (marcel_sem_t){ { 0 } };
	store_relaxed(&s->value, value_of((int32_t)value));
	marcel_guard_init(&s->guard, 0);
	return 0;
}

BASE_PUBLIC int marcel_sem_destroy(marcel_sem_t *sem)
{
	struct sem *s = (struct sem *)sem;
	int64_t v = load_relaxed(&s->value);

	return count_of(v) < 0 && !is_left(v) ? EBUSY : 0;
}

BASE_PUBLIC int marcel_sem_trywait(marcel_sem_t *sem)
{
	struct sem *s = (struct sem *)sem;
	int64_t v = load_relaxed(&s->value);

	while (count_of(v) > 0)
		/* order(sem): what was done before the post */
		if (cas_weak_acquire(&s->value, &v, v - 1))
			return 0;
	return EAGAIN;
}

/*
 * The time has come: be counted no more. If nobody is, a post for the waiter is
 * on its way.
 */
static void sem_leave(struct marcel_timed *d)
{
	struct sem *s = container_of(d->guard, struct sem, guard);
	int64_t v = load_relaxed(&s->value);

	while (count_of(v) < 0)
		if (cas_weak_relaxed(&s->value, &v, v + 1)) {
			marcel_waitq_remove(&s->queue, d->waiter);
			marcel_guard_unlock(&s->guard, d->word);
			marcel_timer_wake(&d->timer);
			return;
		}
	marcel_guard_unlock(&s->guard, d->word);
}

/* Take a unit or be counted as a waiter; the count before. */
static inline int32_t count_down(struct sem *s)
{
	int64_t v;

	do {
		/* order(sem): what was done before the post */
		v = fetch_add_acquire(&s->value, -1);
		if (likely(count_of(v) > 0 || !is_left(v)))
			return count_of(v);
		renew_value(s);
	} while (true);
}

/*
 * Counted as a waiter: take the token that a post left, or wait for one. False:
 * none came in time. NULL: for ever.
 */
static bool wait_slow(struct sem *s, struct marcel_waiter *me,
		      struct marcel_timed *d, const struct marcel_until *until)
{
	uint32_t w = marcel_guard_lock(&s->guard, sem_adopt);
	bool got;

	if (w >= TOKEN) {
		marcel_guard_unlock(&s->guard, w - TOKEN);
		return true;
	}
	marcel_waitq_push(&s->queue, me);
	marcel_timed_arm_point(d, until);
	marcel_guard_unlock(&s->guard, w);
	marcel_thread_waits(me->thread, MARCEL_WAITS_SEMAPHORE, s);
	got = marcel_timed_park(d);
	if (unlikely(!got))
		marcel_cancel_point();
	return got;
}

static BASE_NOINLINE void wait_for_ever(struct sem *s)
{
	struct marcel_waiter me = { .thread = marcel_thread_self() };
	struct marcel_timed d;

	marcel_timed_set_point(&d, &me, &s->guard, sem_leave, NULL);
	wait_slow(s, &me, &d, NULL);
}

BASE_PUBLIC int marcel_sem_wait(marcel_sem_t *sem)
{
	struct sem *s = (struct sem *)sem;

	marcel_cancel_point();
	if (unlikely(count_down(s) <= 0))
		wait_for_ever(s);
	return 0;
}

BASE_PUBLIC int marcel_sem_clockwait(marcel_sem_t *sem, clockid_t clock,
				     const struct timespec *abs)
{
	struct sem *s = (struct sem *)sem;
	struct marcel_until until = { clock, abs };
	struct marcel_waiter me = { .thread = marcel_thread_self() };
	struct marcel_timed d;
	int rc;

	if (marcel_timer_check_clock(clock) != 0)
		return EINVAL;
	marcel_cancel_point();
	if (marcel_sem_trywait(sem) == 0)
		return 0;
	rc = marcel_timed_set_point(&d, &me, &s->guard, sem_leave, &until);
	if (rc != 0)
		return rc;
	if (count_down(s) > 0 || wait_slow(s, &me, &d, &until))
		return 0;
	return ETIMEDOUT;
}

BASE_PUBLIC int marcel_sem_timedwait(marcel_sem_t *sem,
				     const struct timespec *abs)
{
	return marcel_sem_clockwait(sem, CLOCK_REALTIME, abs);
}

/* A waiter has been counted, and no other post frees it. */
static void post_owed(struct sem *s)
{
	uint32_t w = marcel_guard_lock(&s->guard, sem_adopt);
	struct marcel_thread *t;

	if (marcel_waitq_is_empty(&s->queue)) {
		marcel_guard_unlock(&s->guard, w + TOKEN);
		return;
	}
	t = marcel_waitq_take(&s->queue)->thread;
	marcel_guard_unlock(&s->guard, w);
	marcel_wake(t);
}

void marcel_sem_pay(struct marcel_late *l, uint32_t posts)
{
	struct sem *s = container_of(l, struct sem, late);

	while (posts-- > 0)
		post_owed(s);
}

BASE_PUBLIC int marcel_sem_post(marcel_sem_t *sem)
{
	struct sem *s = (struct sem *)sem;
	int64_t v = load_relaxed(&s->value);

	do
		if (unlikely(count_of(v) == INT32_MAX))
			return EOVERFLOW;
	while (!cas_weak_release(&s->value, &v, v + 1)); /* order(sem): all */
	if (unlikely(count_of(v) < 0)) {
		if (is_left(v)) {
			renew_value(s);
			return marcel_sem_post(sem);
		}
		if (likely(!marcel_is_within() || !marcel_late_post(&s->late)))
			post_owed(s);
	}
	return 0;
}

BASE_PUBLIC int marcel_sem_getvalue(marcel_sem_t *sem, int *out)
{
	int32_t count = count_of(load_relaxed(&((struct sem *)sem)->value));

	*out = count > 0 ? count : 0;
	return 0;
}
