/*
 * Bands of priority, by their public numbers; and who is not interrupted.
 *
 * A thread that is favoured is in the real-time band: `band` says so, which is
 * all that who pushes or picks looks at, and `own` keeps what it was. Nothing
 * happens when the time is over until somebody asks: is_urgent(), which only
 * threads of the real-time band get to the bottom of.
 */
#include <errno.h>

#include <base/clock.h>
#include <base/spin.h>
#include <marcel/marcel.h>
#include "attr.h"
#include "thread.h"

bool marcel_priority_exists(int priority)
{
	return priority >= MARCEL_PRIORITY_IDLE &&
	       priority <= MARCEL_PRIORITY_REALTIME;
}

uint64_t marcel_thread_react_ns = 200 * 1000;

/*
 * Of a thread, by its descriptor. Nothing else is called while one is held.
 * Descriptors of one chunk of memory are spread over all.
 */
enum { LOCKS = 16 };
static struct {
	struct base_spin spin BASE_ALIGNED(BASE_CACHE_LINE);
} locks[LOCKS] = {
	[0 ... LOCKS - 1] = { BASE_SPIN_INIT(BASE_RANK_LEAF) },
};

static struct base_spin *lock_of(const struct marcel_thread *t)
{
	return &locks[(uintptr_t)t / sizeof(*t) % LOCKS].spin;
}

/* Whoever sees but one of the two words changed finds a band that exists. */
static void set_band_locked(struct marcel_thread *t, enum marcel_band band)
{
	store_relaxed(&t->rest->band, (uint32_t)band);
	if (band == MARCEL_BAND_NORMAL)
		fetch_and_relaxed(&t->flags, (uint16_t)~MARCEL_F_BAND);
	else
		fetch_or_relaxed(&t->flags, MARCEL_F_BAND);
}

static bool is_favoured_locked(struct marcel_thread *t)
{
	return load_relaxed(&t->rest->favour) != 0;
}

static enum marcel_band own_band_locked(struct marcel_thread *t)
{
	return is_favoured_locked(t) ? t->rest->own : marcel_thread_band(t);
}

static void end_favour_locked(struct marcel_thread *t)
{
	if (!is_favoured_locked(t))
		return;
	set_band_locked(t, t->rest->own);
	store_relaxed(&t->rest->favour, 0);
}

void marcel_thread_set_priority(struct marcel_thread *t, int priority)
{
	enum marcel_band band = MARCEL_BAND_NORMAL - priority;

	base_spin_lock(lock_of(t));
	if (is_favoured_locked(t))
		t->rest->own = band;
	else
		set_band_locked(t, band);
	base_spin_unlock(lock_of(t));
}

static bool is_over(uint64_t until)
{
	return until != 0 && base_now_ns() >= until;
}

BASE_COLD bool marcel_thread_stays_urgent(struct marcel_thread *t)
{
	if (!is_over(load_relaxed(&t->rest->favour)))
		return true;
	base_spin_lock(lock_of(t));
	/* It may have been favoured anew. */
	if (is_over(load_relaxed(&t->rest->favour)))
		end_favour_locked(t);
	base_spin_unlock(lock_of(t));
	return marcel_thread_band(t) == MARCEL_BAND_REALTIME;
}

void marcel_thread_no_favour(struct marcel_thread *t)
{
	/* Who ends it may not have done, of one that is not normal then. */
	if (load_relaxed(&t->rest->favour) == 0 &&
	    !marcel_thread_has(t, MARCEL_F_BAND))
		return;
	base_spin_lock(lock_of(t));
	store_relaxed(&t->rest->favour, 0);
	base_spin_unlock(lock_of(t));
}

/* Who was at its favour just now is not here, and has set or left that. */
void marcel_priority_forked(struct marcel_thread *t)
{
	for (int i = 0; i < LOCKS; i++)
		base_spin_init(&locks[i].spin, BASE_RANK_LEAF);
	if (t != NULL && is_favoured_locked(t))
		set_band_locked(t, MARCEL_BAND_REALTIME);
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
	*out = MARCEL_PRIORITY_NORMAL;
	if (likely(!marcel_thread_has(t, MARCEL_F_BAND)))
		return 0; /* as all who are favoured have */
	base_spin_lock(lock_of(t));
	*out = MARCEL_BAND_NORMAL - (int)own_band_locked(t);
	base_spin_unlock(lock_of(t));
	return 0;
}

/* Until then by CLOCK_MONOTONIC; a time that no clock will see is no end. */
static uint64_t time_after(uint64_t ns)
{
	uint64_t now = base_now_ns();

	return ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
}

static void favour_until(struct marcel_thread *t, uint64_t until)
{
	base_spin_lock(lock_of(t));
	if (until == 0) {
		end_favour_locked(t);
	} else {
		t->rest->own = own_band_locked(t);
		store_relaxed(&t->rest->favour, until);
		set_band_locked(t, MARCEL_BAND_REALTIME);
	}
	base_spin_unlock(lock_of(t));
}

/* Whether it may be favoured. */
static int check_user(struct marcel_thread *t)
{
	if (t == NULL)
		return ESRCH;
	return marcel_thread_has(t, MARCEL_F_FOREIGN) ? ENOTSUP : 0;
}

BASE_PUBLIC int marcel_favour(marcel_t t, uint64_t ns)
{
	int err = check_user(t);

	if (err != 0)
		return err;
	marcel_thread_use_rest(t);
	favour_until(t, ns != 0 ? time_after(ns) : 0);
	return 0;
}

BASE_PUBLIC int marcel_favour_woken(marcel_t t, uint64_t ns)
{
	int err = check_user(t);

	if (err != 0)
		return err;
	marcel_thread_use_rest(t);
	store_relaxed(&t->rest->eager, ns);
	if (ns != 0)
		fetch_or_relaxed(&t->flags, MARCEL_F_EAGER);
	else
		fetch_and_relaxed(&t->flags, (uint16_t)~MARCEL_F_EAGER);
	return 0;
}

BASE_PUBLIC int marcel_await_io(int on)
{
	struct marcel_thread *self = marcel_self();
	int was = marcel_thread_awaits_io(self);

	marcel_thread_set_awaits_io(self, on != 0);
	return was;
}

BASE_COLD void marcel_thread_favour_woken(struct marcel_thread *t)
{
	uint64_t ns = marcel_thread_has(t, MARCEL_F_EAGER)
			      ? load_relaxed(&t->rest->eager)
			      : marcel_thread_react_ns;

	if (ns == 0) /* it was told to stop that just now */
		return;
	marcel_thread_use_rest(t);
	favour_until(t, time_after(ns));
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
