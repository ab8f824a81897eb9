/*
 * Conditions. The word has one bit besides the guard: QUEUED, somebody waits.
 *
 * To wait is: into the condition's queue, unlock the mutex, park. Whoever
 * locks the mutex afterwards finds the waiter in the queue, so no signal is
 * lost. A signal moves the waiter on to the mutex's queue when the mutex is
 * held, and wakes it else; so a broadcast wakes one thread and not a herd, and
 * a waiter runs when it can have the mutex.
 *
 * A signal takes its waiters out under the guard; giving the guard back is its
 * last access to the condition. No waiter comes back to it either, nor does its
 * timer, which is disarmed under the guard: timed.h. Who is signalled has been,
 * however long the mutex then takes.
 */
#include <marcel/sync.h>

#include <errno.h>

#include <marcel/wait.h>
#include "../sched/vp.h"
#include "../thread/cancel.h"
#include "mutex.h"
#include "timed.h"

#define QUEUED ((uint32_t)2)

struct cond {
	/* l: guard    a: atomic */
	struct marcel_guard guard; /* a: */
	int clock;                 /* -: of timedwait; 0: CLOCK_REALTIME */
	struct marcel_waitq queue; /* l: */
} BASE_MAY_ALIAS;

_Static_assert(sizeof(struct cond) <= sizeof(marcel_cond_t),
	       "a condition fits its public words");

_Static_assert(CLOCK_REALTIME == 0, "the clock of MARCEL_COND_INITIALIZER");

static uint32_t cond_adopt(struct marcel_guard *g, uint32_t w)
{
	(void)w;
	marcel_waitq_forget(&container_of(g, struct cond, guard)->queue);
	return 0;
}

BASE_PUBLIC int marcel_cond_init(marcel_cond_t *cond,
				 const marcel_condattr_t *attr)
{
	struct cond *c = (struct cond *)cond;
	clockid_t clock = CLOCK_REALTIME;

	if (attr != NULL && marcel_condattr_getclock(attr, &clock) != 0)
		return EINVAL;
	*cond = (marcel_cond_t)MARCEL_COND_INITIALIZER;
	marcel_guard_init(&c->guard, 0);
	c->clock = clock;
	return 0;
}

BASE_PUBLIC int marcel_cond_destroy(marcel_cond_t *cond)
{
	struct cond *c = (struct cond *)cond;

	marcel_guard_renew(&c->guard, cond_adopt);
	return load_relaxed(&c->guard.word) != 0 ? EBUSY : 0;
}

/* The time has come before a signal has, or the end of the thread. */
static void cond_leave(struct marcel_timed *d)
{
	struct cond *c = container_of(d->guard, struct cond, guard);

	marcel_waitq_remove(&c->queue, d->waiter);
	marcel_guard_unlock(&c->guard,
			    marcel_waitq_is_empty(&c->queue) ? 0 : QUEUED);
	marcel_timer_wake(&d->timer);
}

/* NULL: until a signal comes. */
static inline int wait_until(struct cond *c, struct marcel_mutex *m,
			     const struct marcel_until *until)
{
	struct marcel_thread *self = marcel_thread_self();
	struct marcel_waiter me = { .thread = self, .mutex = m };
	struct marcel_timed d;
	uint32_t count = 0;
	bool signalled;

	if (marcel_timed_set_point(&d, &me, &c->guard, cond_leave, until) ==
	    EINVAL)
		return EINVAL;
	if (marcel_mutex_check_held(m, self) != 0)
		return EPERM;
	marcel_cancel_point();
	marcel_guard_lock(&c->guard, cond_adopt);
	marcel_waitq_push(&c->queue, &me);
	marcel_timed_arm_point(&d, until);
	marcel_guard_unlock(&c->guard, QUEUED);
	marcel_mutex_unlock_to_park(m, self, &count);
	marcel_thread_waits(self, MARCEL_WAITS_CONDITION, &me);
	signalled = marcel_timed_park(&d);
	me.timer = NULL;
	marcel_mutex_relock(m, &me, count);
	if (signalled)
		return 0;
	marcel_cancel_point();
	return ETIMEDOUT;
}

BASE_PUBLIC int marcel_cond_wait(marcel_cond_t *cond, marcel_mutex_t *mutex)
{
	return wait_until((struct cond *)cond, (struct marcel_mutex *)mutex,
			  NULL);
}

BASE_PUBLIC int marcel_cond_clockwait(marcel_cond_t *cond,
				      marcel_mutex_t *mutex, clockid_t clock,
				      const struct timespec *abs)
{
	struct marcel_until until = { clock, abs };

	return wait_until((struct cond *)cond, (struct marcel_mutex *)mutex,
			  &until);
}

BASE_PUBLIC int marcel_cond_timedwait(marcel_cond_t *cond,
				      marcel_mutex_t *mutex,
				      const struct timespec *abs)
{
	return marcel_cond_clockwait(cond, mutex, ((struct cond *)cond)->clock,
				     abs);
}

/* Then the caller may free it, though somebody has only just left. */
static bool nobody_waits(struct cond *c)
{
	return load_acquire(&c->guard.word) == 0; /* order(guard) */
}

BASE_PUBLIC int marcel_cond_signal(marcel_cond_t *cond)
{
	struct cond *c = (struct cond *)cond;
	struct marcel_waiter *w = NULL;

	if (nobody_waits(c))
		return 0;
	if (marcel_guard_lock(&c->guard, cond_adopt) & QUEUED) {
		w = marcel_waitq_first(&c->queue);
		marcel_waitq_take_this(&c->queue, w);
	}
	marcel_guard_unlock(&c->guard,
			    marcel_waitq_is_empty(&c->queue) ? 0 : QUEUED);
	if (w != NULL)
		marcel_mutex_requeue(w->mutex, w, marcel_thread_self());
	return 0;
}

BASE_PUBLIC int marcel_cond_broadcast(marcel_cond_t *cond)
{
	struct cond *c = (struct cond *)cond;
	struct marcel_waiter *w, *next;

	if (nobody_waits(c))
		return 0;
	marcel_guard_lock(&c->guard, cond_adopt);
	w = marcel_waitq_take_all(&c->queue);
	/* One after the other, in whichever heaps they are. */
	for (next = w; next != NULL; next = next->next)
		marcel_waitq_disarm(next);
	marcel_guard_unlock(&c->guard, 0);
	for (; w != NULL; w = next) {
		next = w->next;
		marcel_mutex_requeue(w->mutex, w, marcel_thread_self());
	}
	return 0;
}

/* words[0]: the clock; words[1]: whether it was initialised. */
enum { CONDATTR_VALID = 0x636f6e64 };

BASE_PUBLIC int marcel_condattr_init(marcel_condattr_t *attr)
{
	attr->marcel_words[0] = CLOCK_REALTIME;
	attr->marcel_words[1] = CONDATTR_VALID;
	return 0;
}

BASE_PUBLIC int marcel_condattr_destroy(marcel_condattr_t *attr)
{
	attr->marcel_words[1] = 0;
	return 0;
}

BASE_PUBLIC int marcel_condattr_setclock(marcel_condattr_t *attr,
					 clockid_t clock)
{
	if (attr->marcel_words[1] != CONDATTR_VALID ||
	    marcel_timer_check_clock(clock) != 0)
		return EINVAL;
	attr->marcel_words[0] = (uint64_t)clock;
	return 0;
}

BASE_PUBLIC int marcel_condattr_getclock(const marcel_condattr_t *attr,
					 clockid_t *out)
{
	if (attr->marcel_words[1] != CONDATTR_VALID)
		return EINVAL;
	*out = (clockid_t)attr->marcel_words[0];
	return 0;
}
