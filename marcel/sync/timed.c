/*
 * The timer of a wait for a guarded object.
 */
#include "timed.h"

#include <errno.h>

#include "../thread/cancel.h"

static struct marcel_timed *timed_of(struct marcel_timer *t)
{
	return container_of(t, struct marcel_timed, timer);
}

/* A handler of signals has forked in the middle: no queue names the waiter. */
static bool is_forgotten(struct marcel_timed *d)
{
	return unlikely(d->generation != marcel_generation);
}

/* Who holds the guard may be about to grant, and wait for the heap's lock. */
static enum marcel_claim claim_guarded(struct marcel_timer *t)
{
	struct marcel_timed *d = timed_of(t);

	if (is_forgotten(d))
		return MARCEL_CLAIM_MINE;
	return marcel_guard_trylock(d->guard, &d->word) ? MARCEL_CLAIM_MINE
							: MARCEL_CLAIM_LATER;
}

static void expire_guarded(struct marcel_timer *t)
{
	struct marcel_timed *d = timed_of(t);

	marcel_cancel_hide(t);
	if (is_forgotten(d))
		marcel_timer_wake(t);
	else
		d->leave(d);
}

const struct marcel_timer_kind marcel_timed_kind = { claim_guarded,
						     expire_guarded };

int marcel_timed_set(struct marcel_timed *d, struct marcel_waiter *w,
		     struct marcel_guard *guard,
		     void (*leave)(struct marcel_timed *d),
		     const struct marcel_until *until)
{
	int rc;

	if (until == NULL)
		return 0;
	rc = marcel_timer_set(&d->timer, &marcel_timed_kind, until);
	if (rc != EINVAL)
		marcel_timed_link(d, w, guard, leave);
	return rc;
}
