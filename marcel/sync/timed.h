/*
 * To wait for an object until some time: what its functions have in common.
 *
 * The object has a guard and a queue, and grants as waitq.h says. Taking a
 * waiter out of the queue disarms its timer, under the guard. The timer, when
 * its time has come, takes the guard in turn, and the object's `leave` takes
 * the waiter out. So it is either granted or leaves, and after the guard was
 * given back neither the object nor the record is touched for it any more but
 * by the wake.
 */
#ifndef MARCEL_SYNC_TIMED_H
#define MARCEL_SYNC_TIMED_H

#include <marcel/wait.h>
#include "../sched/timer.h"
#include "../thread/cancel.h"
#include "guard.h"
#include "waitq.h"

struct marcel_timed {
	/* -: const once set    l: lock of the heap, then guard */
	struct marcel_timer timer;
	struct marcel_guard *guard;   /* -: the object's */
	struct marcel_waiter *waiter; /* -: */
	uint32_t word;                /* l: what the guard found */
	uint32_t generation;          /* l: of the queue; guard.h */
	/*
	 * The guard is held, the waiter in the queue. Take it out, give the
	 * guard back, wake it; or leave it there, if a grant is on its way.
	 */
	void (*leave)(struct marcel_timed *d);
};

/*
 * w will wait, until then; NULL: for ever. 0; EINVAL: no such time; ETIMEDOUT:
 * it has come, but the timer is set and may be armed nevertheless.
 */
int marcel_timed_set(struct marcel_timed *d, struct marcel_waiter *w,
		     struct marcel_guard *guard,
		     void (*leave)(struct marcel_timed *d),
		     const struct marcel_until *until);

/* timed.c */
extern BASE_HIDDEN const struct marcel_timer_kind marcel_timed_kind;

/* The part of the two above and below that says what is waited for. */
static inline void marcel_timed_link(struct marcel_timed *d,
				     struct marcel_waiter *w,
				     struct marcel_guard *guard,
				     void (*leave)(struct marcel_timed *d))
{
	d->guard = guard;
	d->waiter = w;
	d->leave = leave;
	w->timer = &d->timer;
}

/* The same for a cancellation point: NULL, or w ends for that alone. */
static inline int marcel_timed_set_point(struct marcel_timed *d,
					 struct marcel_waiter *w,
					 struct marcel_guard *guard,
					 void (*leave)(struct marcel_timed *d),
					 const struct marcel_until *until)
{
	if (until != NULL)
		return marcel_timed_set(d, w, guard, leave, until);
	marcel_timer_set_never(&d->timer, &marcel_timed_kind, w->thread);
	marcel_timed_link(d, w, guard, leave);
	return 0;
}

/* It is in the queue; the guard is held, and the object is ours. */
static inline void marcel_timed_arm(struct marcel_waiter *w)
{
	if (w->timer == NULL)
		return;
	container_of(w->timer, struct marcel_timed, timer)->generation =
		marcel_generation;
	marcel_timer_arm(w->timer);
}

/* The same at a cancellation point. */
static inline void marcel_timed_arm_point(struct marcel_timed *d,
					  const struct marcel_until *until)
{
	d->generation = marcel_generation;
	if (until != NULL)
		marcel_timer_arm(&d->timer);
	marcel_cancel_show(&d->timer);
}

/*
 * Until the waiter is granted (true), or its time has come, or it is cancelled.
 * NULL: it has no timer.
 */
static inline bool marcel_timed_park(struct marcel_timed *d)
{
	if (d == NULL) {
		marcel_park(NULL, NULL);
		return true;
	}
	marcel_cancel_look(&d->timer);
	marcel_timer_park(&d->timer);
	return !d->timer.expired;
}

#endif
