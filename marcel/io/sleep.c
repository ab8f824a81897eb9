/*
 * To let time pass, for who calls libc's functions and relies on EINTR: others
 * use <marcel/time.h>.
 */
#include "io.h"

#include <base/pin.h>

/* Past the bound; false: it cannot be done. */
static bool sleep_for(const struct timespec *time)
{
	uint64_t deadline = io_deadline(time);

	do
		if (!io_sleep_ns(NULL, 0, deadline))
			return false;
	while (base_now_ns() < deadline);
	return true;
}

int marcel_io_nanosleep(__typeof__(nanosleep) *next,
			const struct timespec *time, struct timespec *left)
{
	int rc;

	base_handler_check("marcel", "nanosleep()");
	if (likely(!io_holds()) || !io_is_time(time))
		return next(time, left);
	if (!marcel_call_begin() && sleep_for(time))
		return 0;
	marcel_call_alone();
	rc = next(time, left);
	marcel_call_end(rc != 0);
	return rc;
}

/* CLOCK_REALTIME may be set meanwhile: then a time is not an interval. */
int marcel_io_clock_nanosleep(__typeof__(clock_nanosleep) *next,
			      clockid_t clock, int flags,
			      const struct timespec *time,
			      struct timespec *left)
{
	bool is_until = (flags & TIMER_ABSTIME) != 0;
	int rc;

	base_handler_check("marcel", "clock_nanosleep()");
	if (likely(!io_holds()) || !io_is_time(time))
		return next(clock, flags, time, left);
	if (!marcel_call_begin()) {
		if (!is_until && clock != CLOCK_PROCESS_CPUTIME_ID &&
		    sleep_for(time))
			return 0;
		if (is_until && io_sleep_set(NULL, 0, clock, time))
			return 0;
	}
	marcel_call_alone();
	rc = next(clock, flags, time, left);
	marcel_call_end(rc != 0);
	return rc;
}

int marcel_io_usleep(__typeof__(usleep) *next, unsigned us)
{
	struct timespec t = { us / 1000000, (long)(us % 1000000) * 1000 };
	int rc;

	base_handler_check("marcel", "usleep()");
	if (likely(!io_holds()))
		return next(us);
	if (!marcel_call_begin() && sleep_for(&t))
		return 0;
	marcel_call_alone();
	rc = next(us);
	marcel_call_end(rc != 0);
	return rc;
}

unsigned marcel_io_sleep(__typeof__(sleep) *next, unsigned s)
{
	struct timespec t = { .tv_sec = (time_t)s };
	unsigned rc;

	base_handler_check("marcel", "sleep()");
	if (likely(!io_holds()))
		return next(s);
	if (!marcel_call_begin() && sleep_for(&t))
		return 0;
	marcel_call_alone();
	rc = next(s);
	marcel_call_end(rc != 0);
	return rc;
}
