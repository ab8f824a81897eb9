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
 * last access to the condition. No waiter comes back to it either.
 */
#include <marcel/sync.h>

#include <errno.h>

#include <marcel/wait.h>
#include "../sched/vp.h"
#include "mutex.h"

#define QUEUED ((uint32_t)2)

struct cond {
	/* l: guard    a: atomic */
	struct marcel_guard guard; /* a: */
	struct marcel_waitq queue; /* l: */
} BASE_MAY_ALIAS;

_Static_assert(sizeof(struct cond) <= sizeof(marcel_cond_t),
	       "a condition fits its public words");

BASE_PUBLIC int marcel_cond_init(marcel_cond_t *cond, const void *attr)
{
	if (attr != NULL)
		return EINVAL;
	*cond = (marcel_cond_t)MARCEL_COND_INITIALIZER;
	return 0;
}

BASE_PUBLIC int marcel_cond_destroy(marcel_cond_t *cond)
{
	struct cond *c = (struct cond *)cond;

	return load_relaxed(&c->guard.word) != 0 ? EBUSY : 0;
}

BASE_PUBLIC int marcel_cond_wait(marcel_cond_t *cond, marcel_mutex_t *mutex)
{
	struct cond *c = (struct cond *)cond;
	struct marcel_mutex *m = (struct marcel_mutex *)mutex;
	struct marcel_thread *self = marcel_thread_self();
	struct marcel_waiter me = { .thread = self, .mutex = m };
	uint32_t count = 0;

	if (marcel_mutex_check_held(m, self) != 0)
		return EPERM;
	marcel_guard_lock(&c->guard);
	marcel_waitq_push(&c->queue, &me);
	marcel_guard_unlock(&c->guard, QUEUED);
	marcel_mutex_unlock_to_park(m, self, &count);
	marcel_thread_waits(self, "condition");
	marcel_park(NULL, NULL);
	marcel_mutex_relock(m, &me, count);
	return 0;
}

BASE_PUBLIC int marcel_cond_signal(marcel_cond_t *cond)
{
	struct cond *c = (struct cond *)cond;
	struct marcel_waiter *w = NULL;

	if (load_relaxed(&c->guard.word) == 0)
		return 0;
	if (marcel_guard_lock(&c->guard) & QUEUED)
		w = marcel_waitq_take(&c->queue);
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

	if (load_relaxed(&c->guard.word) == 0)
		return 0;
	marcel_guard_lock(&c->guard);
	w = marcel_waitq_take_all(&c->queue);
	marcel_guard_unlock(&c->guard, 0);
	for (; w != NULL; w = next) {
		next = w->next;
		marcel_mutex_requeue(w->mutex, w, marcel_thread_self());
	}
	return 0;
}
