/*
 * The timer of a wait for a guarded object.
 */
#include "timed.h"

#include <errno.h>

#include <marcel/wait.h>
#include "../thread/cancel.h"

static struct marcel_timed *timed_of(struct marcel_timer *t)
{
	return container_of(t, struct marcel_timed, timer);
}

/* Who holds the guard may be about to grant, and wait for the heap's lock. */
static enum marcel_claim claim_guarded(struct marcel_timer *t)
{
	struct marcel_timed *d = timed_of(t);

	return marcel_guard_trylock(d->guard, &d->word) ? MARCEL_CLAIM_MINE
							: MARCEL_CLAIM_LATER;
}

static void expire_guarded(struct marcel_timer *t)
{
	struct marcel_timed *d = timed_of(t);

	marcel_cancel_hide(t);
	d->leave(d);
}

static const struct marcel_timer_kind guarded = { claim_guarded,
						  expire_guarded };

static void set_guarded(struct marcel_timed *d, struct marcel_waiter *w,
			struct marcel_guard *guard,
			void (*leave)(struct marcel_timed *d))
{
	d->guard = guard;
	d->waiter = w;
	d->leave = leave;
	w->timer = &d->timer;
}

int marcel_timed_set(struct marcel_timed *d, struct marcel_waiter *w,
		     struct marcel_guard *guard,
		     void (*leave)(struct marcel_timed *d),
		     const struct marcel_until *until)
{
	int rc;

	if (until == NULL)
		return 0;
	rc = marcel_timer_set(&d->timer, &guarded, until);
	if (rc != EINVAL)
		set_guarded(d, w, guard, leave);
	return rc;
}

int marcel_timed_set_point(struct marcel_timed *d, struct marcel_waiter *w,
			   struct marcel_guard *guard,
			   void (*leave)(struct marcel_timed *d),
			   const struct marcel_until *until)
{
	if (until != NULL)
		return marcel_timed_set(d, w, guard, leave, until);
	marcel_timer_set_never(&d->timer, &guarded);
	set_guarded(d, w, guard, leave);
	return 0;
}

void marcel_timed_arm_point(struct marcel_timed *d,
			    const struct marcel_until *until)
{
	if (until != NULL)
		marcel_timer_arm(&d->timer);
	marcel_cancel_show(&d->timer);
}

bool marcel_timed_park(struct marcel_timed *d)
{
	if (d == NULL) {
		marcel_park(NULL, NULL);
		return true;
	}
	marcel_cancel_look(&d->timer);
	marcel_timer_park(&d->timer);
	return !d->timer.expired;
}

void marcel_waitq_disarm(struct marcel_waiter *w)
{
	if (w->timer->in != NULL)
		marcel_timer_disarm(w->timer);
	marcel_cancel_hide(w->timer);
	w->timer = NULL;
}
