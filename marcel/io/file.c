/*
 * Files: to open one may wait for a disk, or for the other end of a FIFO.
 */
#include "io.h"

#include <stdarg.h>

int marcel_io_open(marcel_open_fn *next, const char *path, int flags,
		   mode_t mode)
{
	int fd;

	if (likely(!marcel_block_holds()) ||
	    (flags & (O_NONBLOCK | O_PATH)) != 0)
		return next(path, flags, mode);
	marcel_block_begin();
	fd = next(path, flags, mode);
	marcel_blocking_end();
	return fd;
}

int marcel_io_openat(marcel_openat_fn *next, int dir, const char *path,
		     int flags, mode_t mode)
{
	int fd;

	if (likely(!marcel_block_holds()) ||
	    (flags & (O_NONBLOCK | O_PATH)) != 0)
		return next(dir, path, flags, mode);
	marcel_block_begin();
	fd = next(dir, path, flags, mode);
	marcel_blocking_end();
	return fd;
}

int marcel_io_fsync(__typeof__(fsync) *next, int fd)
{
	int rc;

	if (likely(!marcel_block_holds()))
		return next(fd);
	marcel_block_begin();
	rc = next(fd);
	marcel_blocking_end();
	return rc;
}

int marcel_io_fdatasync(__typeof__(fdatasync) *next, int fd)
{
	int rc;

	if (likely(!marcel_block_holds()))
		return next(fd);
	marcel_block_begin();
	rc = next(fd);
	marcel_blocking_end();
	return rc;
}

/* --- the public names --- */

/* The argument is there only if a file may be made. */
static bool has_mode(int flags)
{
	return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

BASE_PUBLIC int marcel_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (has_mode(flags))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return marcel_io_open(open, path, flags, mode);
}

BASE_PUBLIC int marcel_openat(int dir, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (has_mode(flags))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return marcel_io_openat(openat, dir, path, flags, mode);
}

BASE_PUBLIC int marcel_fsync(int fd)
{
	return marcel_io_fsync(fsync, fd);
}

BASE_PUBLIC int marcel_fdatasync(int fd)
{
	return marcel_io_fdatasync(fdatasync, fd);
}
