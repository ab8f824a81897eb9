/*
 * Locks of files.
 */
#include "io.h"

#include <stdarg.h>
#include <sys/file.h>

int marcel_io_flock(__typeof__(flock) *next, int fd, int op)
{
	int rc;

	if ((op & (LOCK_NB | LOCK_UN)) != 0 || likely(!io_holds()))
		return next(fd, op);
	rc = next(fd, op | LOCK_NB);
	if (!io_would_block(rc))
		return rc;
	marcel_call_enter();
	rc = next(fd, op);
	marcel_call_end(rc < 0);
	return rc;
}

/* Another process holds it: POSIX has two words for that. */
static bool is_locked(int rc)
{
	return io_would_block(rc) || (rc < 0 && *marcel_os_errno() == EACCES);
}

int marcel_io_lockf(marcel_lockf_fn *next, int fd, int what, off_t n)
{
	int rc;

	if (what != F_LOCK || likely(!io_holds()))
		return next(fd, what, n);
	rc = next(fd, F_TLOCK, n);
	if (!is_locked(rc))
		return rc;
	marcel_call_enter();
	rc = next(fd, what, n);
	marcel_call_end(rc < 0);
	return rc;
}

/* Two of its commands sleep. */
int marcel_io_fcntl(marcel_fcntl_fn *next, int fd, int what, void *arg)
{
	int rc;

	if (likely(what != F_SETLKW && what != F_OFD_SETLKW) || !io_holds())
		return next(fd, what, arg);
	rc = next(fd, what == F_SETLKW ? F_SETLK : F_OFD_SETLK, arg);
	if (!is_locked(rc))
		return rc;
	marcel_call_enter();
	rc = next(fd, what, arg);
	marcel_call_end(rc < 0);
	return rc;
}

/* --- the public names --- */

BASE_PUBLIC int marcel_flock(int fd, int op)
{
	return marcel_io_flock(flock, fd, op);
}

BASE_PUBLIC int marcel_lockf(int fd, int what, off_t n)
{
	return marcel_io_lockf(lockf, fd, what, n);
}

BASE_PUBLIC int marcel_fcntl(int fd, int what, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, what);
	arg = va_arg(ap, void *); /* as libc does, whatever it is */
	va_end(ap);
	return marcel_io_fcntl(fcntl, fd, what, arg);
}
