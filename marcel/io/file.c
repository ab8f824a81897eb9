/*
 * Files: to open one may wait for a disk, or for the other end of a FIFO; what
 * was written may have to reach the disk or the terminal; and what libc reads
 * and writes meanwhile is waited for.
 */
#include "io.h"

int marcel_io_open(marcel_open_fn *next, const char *path, int flags,
		   mode_t mode)
{
	int fd;

	if (likely(!io_holds()) || (flags & (O_NONBLOCK | O_PATH)) != 0)
		return next(path, flags, mode);
	marcel_call_enter();
	fd = next(path, flags, mode);
	marcel_call_end(fd < 0);
	return fd;
}

int marcel_io_openat(marcel_openat_fn *next, int dir, const char *path,
		     int flags, mode_t mode)
{
	int fd;

	if (likely(!io_holds()) || (flags & (O_NONBLOCK | O_PATH)) != 0)
		return next(dir, path, flags, mode);
	marcel_call_enter();
	fd = next(dir, path, flags, mode);
	marcel_call_end(fd < 0);
	return fd;
}

int marcel_io_sync(__typeof__(fsync) *next, int fd)
{
	int rc;

	if (likely(!io_holds()))
		return next(fd);
	marcel_call_enter();
	rc = next(fd);
	marcel_call_end(rc < 0);
	return rc;
}

/* A look at what is done by now may be interrupted, too. */
static int look(__typeof__(aio_suspend) *next, const struct aiocb *const *list,
		int n)
{
	static const struct timespec no_time;
	int rc;

	do
		rc = next(list, n, &no_time);
	while (rc < 0 && *marcel_os_errno() == EINTR);
	return rc;
}

int marcel_io_aio_suspend(__typeof__(aio_suspend) *next,
			  const struct aiocb *const *list, int n,
			  const struct timespec *timeout)
{
	int rc;

	if (likely(!io_holds()) || (timeout != NULL && !io_is_time(timeout)))
		return next(list, n, timeout);
	rc = look(next, list, n);
	if (!io_would_block(rc) || io_is_none(timeout))
		return rc;
	marcel_call_enter();
	rc = next(list, n, timeout);
	marcel_call_end(rc < 0);
	return rc;
}

/* So much is had at once; of more a signal leaves a part. */
enum { RANDOM_AT_ONCE = 256 };

ssize_t marcel_io_getrandom(__typeof__(getrandom) *next, void *buf, size_t n,
			    unsigned flags)
{
	ssize_t rc;

	if ((n <= RANDOM_AT_ONCE && (flags & GRND_RANDOM) == 0) ||
	    likely(!io_holds()))
		return next(buf, n, flags);
	marcel_call_enter();
	rc = next(buf, n, flags);
	marcel_call_end(rc < 0);
	return rc;
}

/* True: it is asked to let another thread run here, which it refused before. */
static BASE_NOINLINE BASE_NO_ASAN bool count_lock(int by)
{
	bool asked;

	marcel_tls.locks += by;
	asked = marcel_tls.asked && marcel_tls.locks == 0;
	if (asked)
		marcel_tls.asked = false;
	return asked;
}

BASE_NO_ASAN void marcel_io_holds_lock(int by)
{
	if (unlikely(count_lock(by)) && marcel_block_holds())
		marcel_yield();
}

/* --- the public names --- */

BASE_PUBLIC int marcel_open(const char *path, int flags, ...)
{
	return marcel_io_open(open, path, flags, MARCEL_IO_MODE(flags));
}

BASE_PUBLIC int marcel_openat(int dir, const char *path, int flags, ...)
{
	return marcel_io_openat(openat, dir, path, flags,
				MARCEL_IO_MODE(flags));
}

BASE_PUBLIC int marcel_fsync(int fd)
{
	return marcel_io_sync(fsync, fd);
}

BASE_PUBLIC int marcel_fdatasync(int fd)
{
	return marcel_io_sync(fdatasync, fd);
}

BASE_PUBLIC int marcel_tcdrain(int fd)
{
	return marcel_io_sync(tcdrain, fd);
}

BASE_PUBLIC ssize_t marcel_getrandom(void *buf, size_t n, unsigned flags)
{
	return marcel_io_getrandom(getrandom, buf, n, flags);
}
