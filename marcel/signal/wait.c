/*
 * To wait for signals: marcel_sigwait() and its kin.
 *
 * The wait ends by a compare-and-swap of its word: by who sends the signal, by
 * process.c, or by the timer. The waiter then takes its record out of the list,
 * under the lock, so whoever finds it there may look at it.
 */
#include <errno.h>
#include <string.h>

#include <base/clock.h>
#include "../sched/vp.h"
#include "../thread/cancel.h"
#include "signal.h"

#define SECOND ((uint64_t)1000000000)

struct base_list marcel_sigwaits = { { &marcel_sigwaits.head,
				       &marcel_sigwaits.head } };
static unsigned nwaiting[MARCEL_SIGNALS]; /* l: of those in the list */
static uint64_t waited_for;               /* l: nwaiting is not 0 */

/* --- who waits --- */

static void enter_locked(struct marcel_sigwait *w)
{
	for (uint64_t left = w->set; left != 0; left &= left - 1)
		nwaiting[__builtin_ctzll(left)]++;
	waited_for |= w->set;
	base_list_push_back(&marcel_sigwaits, &w->link);
	w->timer.thread->rest->sigwait = w;
}

static void leave_locked(struct marcel_sigwait *w)
{
	if (!base_link_is_on(&w->link))
		return;
	for (uint64_t left = w->set; left != 0; left &= left - 1)
		if (--nwaiting[__builtin_ctzll(left)] == 0)
			waited_for &= ~(left & -left);
	base_list_remove(&w->link);
	w->timer.thread->rest->sigwait = NULL;
}

uint64_t marcel_sigwaits_set(void)
{
	return waited_for;
}

uint64_t marcel_sigwaits_set_exactly(void)
{
	uint64_t set = 0;

	base_list_for_each (n, &marcel_sigwaits) {
		struct marcel_sigwait *w =
			container_of(n, struct marcel_sigwait, link);

		if (load_relaxed(&w->word) == MARCEL_SIGWAIT_NONE)
			set |= w->set;
	}
	return set;
}

void marcel_sigwaits_forked(void)
{
	base_list_init(&marcel_sigwaits);
	memset(nwaiting, 0, sizeof(nwaiting));
	waited_for = 0;
}

bool marcel_sigwait_grant_locked(struct marcel_sigwait *w, int signal,
				 const siginfo_t *info)
{
	struct marcel_thread *t = w->timer.thread;
	int none = MARCEL_SIGWAIT_NONE;

	if (load_relaxed(&w->word) != MARCEL_SIGWAIT_NONE)
		return false;
	/* Only we write it, and nobody reads it before the wake. */
	w->info = *info;
	if (!cas_relaxed(&w->word, &none, signal))
		return false;
	leave_locked(w);
	marcel_wake(t);
	return true;
}

static enum marcel_claim claim(struct marcel_timer *t)
{
	struct marcel_sigwait *w =
		container_of(t, struct marcel_sigwait, timer);
	int none = MARCEL_SIGWAIT_NONE;

	return cas_relaxed(&w->word, &none, MARCEL_SIGWAIT_LATE)
		       ? MARCEL_CLAIM_MINE
		       : MARCEL_CLAIM_GONE;
}

static const struct marcel_timer_kind kind = {
	.claim = claim,
	.expire = marcel_timer_wake,
};

/* A signal of the set that is pending for the caller; 0: none. */
static int take_pending_locked(struct marcel_thread *self, uint64_t set)
{
	uint64_t ready = self->rest->pending & set;
	int signal;

	if (ready == 0)
		return 0;
	signal = __builtin_ctzll(ready) + 1;
	self->rest->pending &= ~marcel_signal_bit(signal);
	return signal;
}

/* The same for the process, which has it if all kernel threads block it. */
static int take_from_process(uint64_t bits, siginfo_t *info)
{
	static const struct timespec now;
	sigset_t set;
	int signal;

	marcel_signal_set(bits, &set);
	signal = sigtimedwait(&set, info, &now);
	return signal > 0 ? signal : 0;
}

static int wait_in_list(struct marcel_sigwait *w, struct marcel_thread *self,
			bool timed)
{
	int signal;

	base_spin_lock(&marcel_signal_lock);
	signal = take_pending_locked(self, w->set);
	if (signal == 0)
		enter_locked(w);
	base_spin_unlock(&marcel_signal_lock);
	if (signal != 0) {
		w->info =
			(siginfo_t){ .si_signo = signal, .si_code = SI_TKILL };
		return signal;
	}
	marcel_process_signals_look();
	marcel_thread_waits(self, MARCEL_WAITS_SIGNAL, NULL);
	if (timed)
		marcel_timer_arm(&w->timer);
	marcel_cancel_show(&w->timer);
	marcel_cancel_look(&w->timer);
	marcel_timer_park(&w->timer);
	marcel_cancel_hide(&w->timer);
	if (timed)
		marcel_timer_disarm(&w->timer);
	base_spin_lock(&marcel_signal_lock);
	leave_locked(w);
	base_spin_unlock(&marcel_signal_lock);
	return load_relaxed(&w->word);
}

/* What is there already; 0: nothing. */
static int take_now(struct marcel_sigwait *w, struct marcel_thread *self)
{
	int signal;

	base_spin_lock(&marcel_signal_lock);
	signal = take_pending_locked(self, w->set);
	base_spin_unlock(&marcel_signal_lock);
	if (signal == 0)
		return take_from_process(w->set, &w->info);
	w->info = (siginfo_t){ .si_signo = signal, .si_code = SI_TKILL };
	return signal;
}

/* 0 or the error; ns: by CLOCK_MONOTONIC, if it is timed. */
static int wait_for(const sigset_t *set, siginfo_t *info, bool timed,
		    uint64_t ns)
{
	struct marcel_sigwait w = { .word = ATOMIC_INIT(MARCEL_SIGWAIT_NONE) };
	struct marcel_thread *self = marcel_thread_self();
	bool late;

	w.set = marcel_signal_bits(set) & ~marcel_signal_reserved();
	if (w.set == 0 && !timed)
		return EINVAL;
	marcel_cancel_point();
	if (!timed)
		marcel_timer_set_never(&w.timer, &kind, self);
	late = timed && marcel_timer_set_ns(&w.timer, &kind, ns) != 0;
	if (take_now(&w, self) == 0) {
		if (late || marcel_process_signals_start() < 0)
			return EAGAIN;
		if (wait_in_list(&w, self, timed) == MARCEL_SIGWAIT_LATE) {
			marcel_cancel_point();
			return EAGAIN;
		}
	}
	*info = w.info;
	return 0;
}

static bool is_foreign(void)
{
	return marcel_thread_has(marcel_thread_self(), MARCEL_F_FOREIGN);
}

static int result(int rc, const siginfo_t *info)
{
	if (rc == 0)
		return info->si_signo;
	*marcel_errno_location() = rc;
	return -1;
}

BASE_PUBLIC int marcel_sigwait(const sigset_t *set, int *out)
{
	siginfo_t info;
	int rc;

	if (set == NULL || out == NULL)
		return EINVAL;
	if (is_foreign())
		return sigwait(set, out);
	rc = wait_for(set, &info, false, 0);
	if (rc == 0)
		*out = info.si_signo;
	return rc;
}

BASE_PUBLIC int marcel_sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	siginfo_t mine;

	if (info == NULL)
		info = &mine;
	if (is_foreign())
		return sigwaitinfo(set, info);
	return result(wait_for(set, info, false, 0), info);
}

BASE_PUBLIC int marcel_sigtimedwait(const sigset_t *set, siginfo_t *info,
				    const struct timespec *time)
{
	siginfo_t mine;

	if (time == NULL)
		return marcel_sigwaitinfo(set, info);
	if (info == NULL)
		info = &mine;
	if (is_foreign())
		return sigtimedwait(set, info, time);
	if (time->tv_sec < 0 || time->tv_nsec < 0 ||
	    time->tv_nsec >= (long)SECOND)
		return result(EINVAL, info);
	return result(wait_for(set, info, true,
			       base_now_ns() + marcel_timer_ns(time)),
		      info);
}
