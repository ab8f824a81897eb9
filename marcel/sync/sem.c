/*
 * Counting semaphores. One word is the count, beside the guard; the queue is
 * empty while there is a unit. So a wait that finds one, and a post that finds
 * one there already, are a compare-and-swap each; a post that finds none takes
 * the guard, and gives its unit to who waits first.
 *
 * Who finds none leaves first and joins the queue then, by an after action. So
 * its context is saved when it is first seen, and to wait costs no more than
 * taking the guard; nor does to post: a hand-over from thread to thread is two
 * compare-and-swaps. A unit that comes in between is found by that action.
 *
 * Giving the guard back is the last access to the semaphore.
 */
#include <marcel/sync.h>

#include <errno.h>
#include <limits.h>

#include <marcel/wait.h>
#include "../sched/vp.h"
#include "../thread/cancel.h"
#include "guard.h"
#include "timed.h"
#include "waitq.h"

struct sem {
	/* l: guard    a: atomic, pair named */
	struct marcel_guard guard; /* a: UNITs; order(sem), order(guard) */
	struct marcel_waitq queue; /* l: empty if there are units */
} BASE_MAY_ALIAS;

/* In the guard's word, which holds INT32_MAX of them. */
#define UNIT ((uint32_t)2)
#define FULL (UNIT * INT32_MAX)

_Static_assert(sizeof(struct sem) <= sizeof(marcel_sem_t),
	       "a semaphore fits its public words");

BASE_PUBLIC int marcel_sem_init(marcel_sem_t *sem, int pshared, unsigned value)
{
	struct sem *s = (struct sem *)sem;

	if (pshared != 0)
		return ENOTSUP;
	if (value > INT32_MAX)
		return EINVAL;
	*sem = (marcel_sem_t){ { 0 } };
	store_relaxed(&s->guard.word, value * UNIT);
	return 0;
}

BASE_PUBLIC int marcel_sem_destroy(marcel_sem_t *sem)
{
	struct sem *s = (struct sem *)sem;
	uint32_t w = marcel_guard_lock(&s->guard);
	bool is_waited_for = !marcel_waitq_is_empty(&s->queue);

	marcel_guard_unlock(&s->guard, w);
	return is_waited_for ? EBUSY : 0;
}

/* The word once nobody holds the guard, or has only just taken it. */
static inline uint32_t look(struct sem *s)
{
	uint32_t w = load_relaxed(&s->guard.word);
	unsigned turn = 0;

	while (unlikely(w & MARCEL_GUARDED)) {
		marcel_guard_pause(&turn);
		w = load_relaxed(&s->guard.word);
	}
	return w;
}

static inline bool try_wait(struct sem *s)
{
	uint32_t w = look(s);

	while (w >= UNIT) {
		/* order(sem): what was done before the post */
		if (cas_weak_acquire(&s->guard.word, &w, w - UNIT))
			return true;
		if (w & MARCEL_GUARDED)
			w = look(s);
	}
	return false;
}

BASE_PUBLIC int marcel_sem_trywait(marcel_sem_t *sem)
{
	return try_wait((struct sem *)sem) ? 0 : EAGAIN;
}

/* Who waits, in its frame. */
struct wait {
	struct marcel_waiter me;
	struct marcel_timed timed;
	const struct marcel_until *until; /* NULL: for ever */
};

/* The time has come, or the thread is cancelled. */
static void sem_leave(struct marcel_timed *d)
{
	struct sem *s = container_of(d->guard, struct sem, guard);

	marcel_waitq_remove(&s->queue, d->waiter);
	marcel_guard_unlock(&s->guard, d->word);
	marcel_timer_wake(&d->timer);
}

/* The thread has left: let it be seen, or take a unit that came meanwhile. */
static void wait_after(void *arg)
{
	struct wait *wait = arg;
	struct marcel_thread *t = wait->me.thread;
	struct sem *s = container_of(wait->timed.guard, struct sem, guard);
	uint32_t w = marcel_guard_lock(&s->guard);
	bool shown;

	if (unlikely(w >= UNIT)) {
		marcel_guard_unlock(&s->guard, w - UNIT);
		marcel_wake(t);
		return;
	}
	marcel_waitq_push(&s->queue, &wait->me);
	shown = marcel_timed_arm_point(&wait->timed, wait->until);
	marcel_guard_unlock(&s->guard, 0);
	/* Its frame may be gone. */
	marcel_cancel_look_at(t, shown);
}

/* There was none. False: none came in time. */
static bool wait_for_post(struct wait *wait)
{
	struct marcel_timer *t = &wait->timed.timer;

	marcel_thread_waits(t->thread, "semaphore");
	marcel_timer_park_after(t, wait_after, wait);
	if (likely(!t->expired))
		return true;
	marcel_cancel_point();
	return false;
}

static BASE_NOINLINE void wait_for_ever(struct sem *s)
{
	struct wait wait;

	wait.me = (struct marcel_waiter){ .thread = marcel_thread_self() };
	wait.until = NULL;
	marcel_timed_set_point(&wait.timed, &wait.me, &s->guard, sem_leave,
			       NULL);
	wait_for_post(&wait);
}

BASE_PUBLIC int marcel_sem_wait(marcel_sem_t *sem)
{
	struct sem *s = (struct sem *)sem;

	marcel_cancel_point();
	if (unlikely(!try_wait(s)))
		wait_for_ever(s);
	return 0;
}

BASE_PUBLIC int marcel_sem_clockwait(marcel_sem_t *sem, clockid_t clock,
				     const struct timespec *abs)
{
	struct sem *s = (struct sem *)sem;
	struct marcel_until until = { clock, abs };
	struct wait wait = { .me.thread = marcel_thread_self(),
			     .until = &until };
	int rc;

	if (marcel_timer_check_clock(clock) != 0)
		return EINVAL;
	marcel_cancel_point();
	if (try_wait(s))
		return 0;
	rc = marcel_timed_set_point(&wait.timed, &wait.me, &s->guard, sem_leave,
				    &until);
	if (rc != 0)
		return rc;
	return wait_for_post(&wait) ? 0 : ETIMEDOUT;
}

BASE_PUBLIC int marcel_sem_timedwait(marcel_sem_t *sem,
				     const struct timespec *abs)
{
	return marcel_sem_clockwait(sem, CLOCK_REALTIME, abs);
}

/* There was no unit: perhaps somebody waits for one. */
static inline int post_first(struct sem *s)
{
	uint32_t w = marcel_guard_lock(&s->guard);
	struct marcel_thread *t;

	if (marcel_waitq_is_empty(&s->queue)) {
		marcel_guard_unlock(&s->guard, w < FULL ? w + UNIT : w);
		return w < FULL ? 0 : EOVERFLOW;
	}
	t = marcel_waitq_take(&s->queue)->thread;
	marcel_guard_unlock(&s->guard, 0);
	marcel_wake(t);
	return 0;
}

BASE_PUBLIC int marcel_sem_post(marcel_sem_t *sem)
{
	struct sem *s = (struct sem *)sem;
	uint32_t w = load_relaxed(&s->guard.word);

	while (w >= UNIT && !(w & MARCEL_GUARDED)) {
		if (unlikely(w >= FULL))
			return EOVERFLOW;
		/* order(sem): all */
		if (cas_weak_release(&s->guard.word, &w, w + UNIT))
			return 0;
	}
	return post_first(s);
}

BASE_PUBLIC int marcel_sem_getvalue(marcel_sem_t *sem, int *out)
{
	*out = (int)(load_relaxed(&((struct sem *)sem)->guard.word) / UNIT);
	return 0;
}
