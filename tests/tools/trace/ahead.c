/*
 * Loaded before a program, it has the time of a host whose clock is an hour
 * ahead. No time namespace has one of CLOCK_REALTIME.
 */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { AHEAD_S = 3600 };

__attribute__((visibility("default"))) int clock_gettime(clockid_t id,
							 struct timespec *out)
{
	int rc = (int)syscall(SYS_clock_gettime, id, out);

	if (rc == 0 && id == CLOCK_REALTIME)
		out->tv_sec += AHEAD_S;
	return rc;
}
