/*
 * Joins that do not wait for ever.
 *
 * Who joins until some time says so in `ended` by a mark. Its timer takes it
 * out of that word again, if the thread has not ended: whoever changes the
 * word has to wake it. It does not run a seed in its own place, and an end does
 * not switch to it, because it may be running already.
 */
#include <marcel/thread.h>

#include <errno.h>

#include "../sched/timer.h"
#include "cancel.h"
#include "thread.h"

struct timed_join {
	struct marcel_timer timer;
	struct marcel_thread *target;
	uintptr_t mark; /* what stands in its `ended` */
};

static enum marcel_claim claim_join(struct marcel_timer *t)
{
	struct timed_join *j = container_of(t, struct timed_join, timer);
	uintptr_t mark = j->mark;

	return cas_relaxed(&j->target->ended, &mark, MARCEL_END_NONE)
		       ? MARCEL_CLAIM_MINE
		       : MARCEL_CLAIM_GONE;
}

/* 0: it has ended, and is ours to collect; EBUSY: it has not. */
static int look(struct marcel_thread *t, struct marcel_thread *self)
{
	if (t == NULL)
		return ESRCH;
	if (t == self)
		return EDEADLK;
	if (load_relaxed(&t->ended) == MARCEL_END_NONE)
		return EBUSY;
	return marcel_thread_claim(t, (uintptr_t)self)
		       ? 0
		       : marcel_thread_refuses(t);
}

BASE_PUBLIC int marcel_tryjoin_np(marcel_t t, void **out)
{
	int rc = look(t, marcel_self());

	if (rc == 0)
		marcel_thread_collect(t, out);
	return rc;
}

static int wait_for_end(struct timed_join *j)
{
	uintptr_t w = MARCEL_END_NONE;

	j->mark = (uintptr_t)j->timer.thread | MARCEL_END_TIMED;
	if (!cas_relaxed(&j->target->ended, &w, j->mark))
		return look(j->target, j->timer.thread);
	marcel_thread_waits(j->timer.thread, MARCEL_WAITS_JOIN, j->target);
	marcel_timer_arm(&j->timer);
	marcel_cancel_show(&j->timer);
	marcel_cancel_look(&j->timer);
	marcel_timer_park(&j->timer);
	marcel_timer_disarm(&j->timer);
	marcel_cancel_hide(&j->timer);
	if (!j->timer.expired)
		return 0;
	marcel_cancel_point();
	return ETIMEDOUT;
}

BASE_PUBLIC int marcel_clockjoin_np(marcel_t t, void **out, clockid_t clock,
				    const struct timespec *abs)
{
	static const struct marcel_timer_kind kind = {
		.claim = claim_join,
		.expire = marcel_timer_wake,
	};
	struct marcel_until until = { clock, abs };
	struct timed_join j = { .target = t };
	int rc;

	marcel_cancel_point();
	if (marcel_timer_check_clock(clock) != 0)
		return EINVAL;
	rc = look(t, marcel_self());
	if (rc == EBUSY) {
		rc = marcel_timer_set(&j.timer, &kind, &until);
		if (rc == 0)
			rc = wait_for_end(&j);
	}
	if (rc == 0)
		marcel_thread_collect(t, out);
	return rc;
}

BASE_PUBLIC int marcel_timedjoin_np(marcel_t t, void **out,
				    const struct timespec *abs)
{
	return marcel_clockjoin_np(t, out, CLOCK_REALTIME, abs);
}
