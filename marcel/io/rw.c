/*
 * read() and write(), on whatever a descriptor is.
 */
#include "io.h"

#include <sys/epoll.h>
#include <sys/stat.h>

size_t io_bytes(const struct iovec *iov, int count)
{
	size_t n = 0;

	for (int i = 0; i < count; i++)
		n += iov[i].iov_len;
	return n;
}

struct io_rest io_skip(const struct iovec *iov, int count, size_t bytes)
{
	while (count > 0 && bytes >= iov->iov_len) {
		bytes -= iov->iov_len;
		iov++;
		count--;
	}
	return (struct io_rest){ iov, count, bytes };
}

static enum io_try failed(void)
{
	switch (*marcel_os_errno()) {
	case EAGAIN:
		return IO_BLOCKS;
	case ENOSYS:
	case EOPNOTSUPP:
	case EINVAL:
	case EPERM: /* of a filter of system calls */
		return IO_CANNOT;
	default:
		return IO_DONE;
	}
}

/* --- read --- */

static bool is_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* Of a file a try gives what is in memory. */
static ssize_t read_rest(int fd, struct io_rest r)
{
	ssize_t all = 0, n;

	marcel_call_enter();
	for (; r.count > 0; r.count--, r.iov++, r.done = 0) {
		size_t want = r.iov->iov_len - r.done;

		n = read(fd, (char *)r.iov->iov_base + r.done, want);
		if (n > 0)
			all += n;
		if (n < (ssize_t)want)
			break;
	}
	marcel_call_end(false);
	return all;
}

/* The sanitizers do not see what the kernel writes for preadv2(). */
static enum io_try try_read(int fd, const struct iovec *iov, int count,
			    ssize_t *out)
{
	ssize_t n;

	if (BASE_TSAN || BASE_ASAN)
		return IO_CANNOT;
	n = preadv2(fd, iov, count, -1, RWF_NOWAIT);
	*out = n;
	if (n < 0)
		return failed();
	if (n > 0 && (size_t)n < io_bytes(iov, count) && is_file(fd))
		*out += read_rest(fd, io_skip(iov, count, (size_t)n));
	return IO_DONE;
}

ssize_t marcel_io_readv(__typeof__(readv) *next, int fd,
			const struct iovec *iov, int count)
{
	enum io_try tried;
	ssize_t n;

	if (likely(!io_holds())) {
		io_refuse_handler(fd, "readv()");
		return next(fd, iov, count);
	}
	do {
		tried = try_read(fd, iov, count, &n);
		if (tried == IO_DONE)
			return n;
	} while (io_sleep(fd, EPOLLIN, tried) == IO_RETRY);
	n = next(fd, iov, count);
	marcel_call_end(n < 0);
	return n;
}

ssize_t marcel_io_read(__typeof__(read) *next, int fd, void *buf, size_t n)
{
	struct iovec iov = { buf, n };
	enum io_try tried;
	ssize_t rc;

	if (likely(!io_holds())) {
		io_refuse_handler(fd, "read()");
		return next(fd, buf, n);
	}
	do {
		tried = try_read(fd, &iov, 1, &rc);
		if (tried == IO_DONE)
			return rc;
	} while (io_sleep(fd, EPOLLIN, tried) == IO_RETRY);
	rc = next(fd, buf, n);
	marcel_call_end(rc < 0);
	return rc;
}

/* --- write --- */

static ssize_t write_part(int fd, const char *from, size_t n)
{
	ssize_t rc = send(fd, from, n, MSG_NOSIGNAL);

	if (rc < 0 && *marcel_os_errno() == ENOTSOCK)
		rc = write(fd, from, n);
	return rc;
}

/* Past the bound: as much as there is room for, then wait for more. */
static ssize_t write_in_turns(int fd, const char *from, size_t n)
{
	struct iovec iov = { (void *)from, n };
	ssize_t rc;

	for (;;) {
		rc = send(fd, from, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (rc < 0 && *marcel_os_errno() == ENOTSOCK)
			rc = pwritev2(fd, &iov, 1, -1, RWF_NOWAIT);
		if (!io_would_block(rc))
			return rc;
		if (io_sleep(fd, EPOLLOUT, IO_BLOCKS) == IO_CALL) {
			rc = write_part(fd, from, n);
			marcel_call_end(false);
			return rc;
		}
	}
}

size_t io_write_rest(int fd, struct io_rest r)
{
	bool section = marcel_call_begin();
	size_t all = 0, left;
	ssize_t n;

	while (r.count > 0) {
		const char *from = (char *)r.iov->iov_base + r.done;

		left = r.iov->iov_len - r.done;
		n = section ? write_part(fd, from, left)
			    : write_in_turns(fd, from, left);
		if (n < 0 || (n == 0 && left > 0))
			break;
		all += (size_t)n;
		r = io_skip(r.iov, r.count, r.done + (size_t)n);
	}
	marcel_call_end(false);
	return all;
}

static enum io_try try_write(int fd, const struct iovec *iov, int count,
			     size_t most, ssize_t *out)
{
	size_t want;
	ssize_t n;

	if (BASE_TSAN || BASE_ASAN || count < 1 || count > IOV_MAX)
		return IO_CANNOT;
	want = io_bytes(iov, count);
	if (want > most)
		return IO_LARGE;
	n = pwritev2(fd, iov, count, -1, RWF_NOWAIT);
	*out = n;
	if (n < 0)
		return failed();
	if ((size_t)n < want)
		*out += (ssize_t)io_write_rest(fd,
					       io_skip(iov, count, (size_t)n));
	return IO_DONE;
}

ssize_t marcel_io_writev(__typeof__(writev) *next, int fd,
			 const struct iovec *iov, int count)
{
	size_t most = IO_SMALL;
	enum io_try tried;
	ssize_t n;

	if (likely(!io_holds()))
		return next(fd, iov, count);
	do {
		tried = try_write(fd, iov, count, most, &n);
		if (tried == IO_DONE)
			return n;
		most = SIZE_MAX;
	} while (io_sleep(fd, EPOLLOUT, tried) == IO_RETRY);
	n = next(fd, iov, count);
	marcel_call_end(n < 0);
	return n;
}

ssize_t marcel_io_write(__typeof__(write) *next, int fd, const void *buf,
			size_t n)
{
	struct iovec iov = { (void *)buf, n };
	size_t most = IO_SMALL;
	enum io_try tried;
	ssize_t rc;

	if (likely(!io_holds()))
		return next(fd, buf, n);
	do {
		tried = try_write(fd, &iov, 1, most, &rc);
		if (tried == IO_DONE)
			return rc;
		most = SIZE_MAX;
	} while (io_sleep(fd, EPOLLOUT, tried) == IO_RETRY);
	rc = next(fd, buf, n);
	marcel_call_end(rc < 0);
	return rc;
}

/* --- the public names --- */

BASE_PUBLIC ssize_t marcel_read(int fd, void *buf, size_t n)
{
	return marcel_io_read(read, fd, buf, n);
}

BASE_PUBLIC ssize_t marcel_write(int fd, const void *buf, size_t n)
{
	return marcel_io_write(write, fd, buf, n);
}

BASE_PUBLIC ssize_t marcel_readv(int fd, const struct iovec *iov, int count)
{
	return marcel_io_readv(readv, fd, iov, count);
}

BASE_PUBLIC ssize_t marcel_writev(int fd, const struct iovec *iov, int count)
{
	return marcel_io_writev(writev, fd, iov, count);
}
