/*
 * Bands of priority, by their public numbers; and who is not interrupted.
 */
#include <errno.h>

#include <marcel/marcel.h>
#include "attr.h"
#include "thread.h"

bool marcel_priority_exists(int priority)
{
	return priority >= MARCEL_PRIORITY_IDLE &&
	       priority <= MARCEL_PRIORITY_REALTIME;
}

/* Whoever sees but one of the two words changed finds a band that exists. */
void marcel_thread_set_priority(struct marcel_thread *t, int priority)
{
	int band = MARCEL_BAND_NORMAL - priority;

	store_relaxed(&t->rest->band, (uint32_t)band);
	if (band == MARCEL_BAND_NORMAL)
		fetch_and_relaxed(&t->flags, (uint16_t)~MARCEL_F_BAND);
	else
		fetch_or_relaxed(&t->flags, MARCEL_F_BAND);
}

BASE_PUBLIC int marcel_setpriority(marcel_t t, int priority)
{
	if (t == NULL)
		return ESRCH;
	if (!marcel_priority_exists(priority))
		return EINVAL;
	if (marcel_thread_has(t, MARCEL_F_FOREIGN))
		return ENOTSUP;
	marcel_thread_set_priority(t, priority);
	return 0;
}

BASE_PUBLIC int marcel_getpriority(marcel_t t, int *out)
{
	if (t == NULL)
		return ESRCH;
	if (out == NULL)
		return EINVAL;
	*out = MARCEL_BAND_NORMAL - (int)marcel_thread_band(t);
	return 0;
}

/* --- time slices --- */

void marcel_thread_set_preemptible(struct marcel_thread *t, bool on)
{
	marcel_thread_use_rest(t);
	store_relaxed(&t->rest->steady, !on);
}

BASE_PUBLIC int marcel_setpreemptible(int on, int *old)
{
	struct marcel_thread *self = marcel_self();

	if (on != 0 && on != 1)
		return EINVAL;
	if (marcel_thread_has(self, MARCEL_F_FOREIGN))
		return ENOTSUP;
	if (old != NULL)
		*old = marcel_thread_is_preemptible(self);
	marcel_thread_set_preemptible(self, on);
	return 0;
}
