/*
 * To wait for signals of the process, by libc's functions: on the kernel
 * thread, in whose mask they are or are not. For marcel_kill() and threads that
 * move: <marcel/signal.h>.
 */
#include "io.h"

#include <signal.h>

/* Ours are not there to be waited for. */
static const sigset_t *others(const sigset_t *set, sigset_t *room)
{
	*room = *set;
	marcel_hush_set(room);
	return room;
}

int marcel_io_sigtimedwait(__typeof__(sigtimedwait) *next, const sigset_t *set,
			   siginfo_t *info, const struct timespec *timeout)
{
	static const struct timespec no_time;
	sigset_t room;
	int rc;

	if (likely(!io_holds()) || (timeout != NULL && !io_is_time(timeout)))
		return next(set, info, timeout);
	set = others(set, &room);
	rc = next(set, info, &no_time);
	if (!io_would_block(rc) ||
	    (timeout != NULL && timeout->tv_sec == 0 && timeout->tv_nsec == 0))
		return rc;
	marcel_call_enter();
	rc = next(set, info, timeout);
	marcel_call_end(rc < 0);
	return rc;
}

int marcel_io_sigwaitinfo(__typeof__(sigwaitinfo) *next, const sigset_t *set,
			  siginfo_t *info)
{
	sigset_t room;
	int rc;

	if (likely(!io_holds()))
		return next(set, info);
	set = others(set, &room);
	marcel_call_enter();
	rc = next(set, info);
	marcel_call_end(rc < 0);
	return rc;
}

/* libc's begins again after a signal, so it could not be cancelled. */
int marcel_io_sigwait(__typeof__(sigwait) *next, const sigset_t *set, int *out)
{
	int rc;

	if (likely(!io_holds()))
		return next(set, out);
	do
		rc = marcel_io_sigwaitinfo(sigwaitinfo, set, NULL);
	while (rc < 0 && *marcel_os_errno() == EINTR);
	if (rc < 0)
		return *marcel_os_errno();
	*out = rc;
	return 0;
}

int marcel_io_pause(__typeof__(pause) *next)
{
	if (likely(!io_holds()))
		return next();
	marcel_call_enter();
	next();
	marcel_call_end(true);
	return -1;
}

int marcel_io_sigsuspend(__typeof__(sigsuspend) *next, const sigset_t *mask)
{
	sigset_t room;

	if (likely(!io_holds()))
		return next(mask);
	marcel_call_enter();
	next(io_mask(mask, &room));
	marcel_call_end(true);
	return -1;
}
