/*
 * To let time pass: nothing but a timer.
 */
#include <marcel/time.h>

#include <errno.h>

#include <base/clock.h>
#include <base/compiler.h>
#include <marcel/blocking.h>
#include "../thread/cancel.h"
#include "block.h"
#include "timer.h"

#define SECOND ((uint64_t)1000000000)

static void sleep_on(struct marcel_timer *t)
{
	marcel_thread_waits(t->thread, MARCEL_WAITS_SLEEP, NULL);
	marcel_timer_arm(t);
	marcel_cancel_show(t);
	marcel_cancel_look(t);
	marcel_timer_park(t);
	marcel_cancel_hide(t);
	marcel_cancel_point();
}

static void sleep_for(uint64_t ns)
{
	struct marcel_timer t;

	marcel_cancel_point();
	/* Each is at most half of what fits. */
	if (ns != 0 && marcel_timer_set_ns(&t, &marcel_timer_plain,
					   base_now_ns() + ns) == 0)
		sleep_on(&t);
}

static bool is_time(const struct timespec *t)
{
	return t != NULL && t->tv_sec >= 0 && t->tv_nsec >= 0 &&
	       t->tv_nsec < (long)SECOND;
}

/* The kernel knows more clocks than we do. */
static int sleep_in_kernel(clockid_t clock, int flags,
			   const struct timespec *time, struct timespec *left)
{
	int rc;

	marcel_cancel_point();
	if (!marcel_call_holds())
		return clock_nanosleep(clock, flags, time, left);
	marcel_call_enter();
	rc = clock_nanosleep(clock, flags, time, left);
	marcel_call_end(rc != 0);
	return rc;
}

BASE_PUBLIC int marcel_clock_nanosleep(clockid_t clock, int flags,
				       const struct timespec *time,
				       struct timespec *left)
{
	struct marcel_until until = { clock, time };
	struct marcel_timer t;

	if (marcel_timer_check_clock(clock) != 0)
		return sleep_in_kernel(clock, flags, time, left);
	if (!is_time(time))
		return EINVAL;
	marcel_cancel_point();
	/* What somebody sets a clock to does not change an interval. */
	if (!(flags & TIMER_ABSTIME))
		sleep_for(marcel_timer_ns(time));
	else if (marcel_timer_set(&t, &marcel_timer_plain, &until) == 0)
		sleep_on(&t);
	return 0;
}

BASE_PUBLIC int marcel_nanosleep(const struct timespec *time,
				 struct timespec *left)
{
	(void)left;
	if (!is_time(time)) {
		*marcel_errno_location() = EINVAL;
		return -1;
	}
	sleep_for(marcel_timer_ns(time));
	return 0;
}

BASE_PUBLIC int marcel_usleep(unsigned us)
{
	sleep_for((uint64_t)us * 1000);
	return 0;
}

BASE_PUBLIC unsigned marcel_sleep(unsigned seconds)
{
	sleep_for(seconds * SECOND);
	return 0;
}
