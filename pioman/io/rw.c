/*
 * Reading and writing, on whatever a descriptor is: try, and if that would
 * block wait for an event, and try again.
 *
 * A try does not sleep in the kernel. What is most often waited for comes
 * first:
 *
 *   sockets            recv(), send() with MSG_DONTWAIT
 *   ENOTSOCK: others   preadv2(), pwritev2() with RWF_NOWAIT
 *   EOPNOTSUPP: others poll(2), and then the call itself: for pipes with
 *                      Linux before 6.4, terminals; and under sanitizers, which
 *                      do not see what preadv2() reads. What is written to
 *                      others than pipes may still wait, in a blocking section
 *
 * Regular files are always ready; what must be fetched for them is waited for
 * in a blocking section (marcel_readv()).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <base/atomic.h>
#include <base/compiler.h>

#include <marcel/io.h>
#include <marcel/marcel.h>

#include <pioman/io.h>

#include "set.h"

#ifndef RWF_NOSIGNAL
#define RWF_NOSIGNAL 0x100 /* Linux 6.18 */
#endif

/* What is left of a vector: its first buffer from `done` on. */
struct rest {
	const struct iovec *iov;
	int count;
	size_t done;
};

/* The system calls of a direction. All as the tries below: n or -errno. */
struct direction {
	unsigned side;
	/* Does not sleep; -EAGAIN: it would. */
	ssize_t (*try)(int fd, const struct iovec *iov, int count);
	/* May sleep, in a blocking section. */
	ssize_t (*call)(int fd, const struct iovec *iov, int count);
};

/* The errno of a call that failed; threads may have switched in it. */
static ssize_t result(ssize_t n)
{
	return n < 0 ? -*marcel_errno_location() : n;
}

/* Neither done nor would it block: it has to be tried in another way. */
static bool is_unknown(ssize_t n)
{
	return n == -EOPNOTSUPP || n == -ENOSYS || n == -EPERM;
}

static bool is_ready(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, 0) != 0; /* an error is the next call's */
}

static bool is_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 &&
	       (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode));
}

static bool is_pipe(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

/*
 * By poll(2), whether a call would not wait: also because it fails at once, as
 * on an end that is not for that.
 */
static bool would_not_wait(int fd, short events, int other)
{
	int how;

	if (is_ready(fd, events))
		return true;
	how = fcntl(fd, F_GETFL);
	return how < 0 || (how & O_ACCMODE) == other;
}

/* --- vectors --- */

/* The bytes of a vector, or -EINVAL as of the system call. */
static ssize_t total(const struct iovec *iov, int count)
{
	size_t n = 0;

	if (count < 0 || count > IOV_MAX)
		return -EINVAL;
	for (int i = 0; i < count; i++) {
		if (iov[i].iov_len > SSIZE_MAX - n)
			return -EINVAL;
		n += iov[i].iov_len;
	}
	return (ssize_t)n;
}

static struct rest skip(struct rest r, size_t bytes)
{
	bytes += r.done;
	while (r.count > 0 && bytes >= r.iov->iov_len) {
		bytes -= r.iov->iov_len;
		r.iov++;
		r.count--;
	}
	r.done = bytes;
	return r;
}

/* --- read --- */

static ssize_t call_read(int fd, const struct iovec *iov, int count)
{
	ssize_t n;

	do
		n = result(marcel_readv(fd, iov, count));
	while (n == -EINTR);
	/* Of a descriptor with O_NONBLOCK, somebody was faster. */
	return n;
}

/* Of a file a try gives what is in memory: n bytes. */
static ssize_t read_rest(int fd, const struct iovec *iov, int count, ssize_t n)
{
	struct rest r = skip((struct rest){ iov, count, 0 }, (size_t)n);
	ssize_t more;
	int before;

	/* Something is done: it is returned. */
	marcel_setcancelstate(MARCEL_CANCEL_DISABLE, &before);
	for (; r.count > 0; r = skip(r, (size_t)more), n += more) {
		struct iovec first = { (char *)r.iov->iov_base + r.done,
				       r.iov->iov_len - r.done };

		more = call_read(fd, &first, 1);
		if (more <= 0)
			break;
	}
	marcel_setcancelstate(before, NULL);
	return n;
}

static BASE_NOINLINE ssize_t try_read_other(int fd, const struct iovec *iov,
					    int count)
{
	ssize_t n = -EOPNOTSUPP;

	if (!BASE_TSAN && !BASE_ASAN)
		n = result(preadv2(fd, iov, count, -1, RWF_NOWAIT));
	if (n > 0 && n < total(iov, count) && is_file(fd))
		return read_rest(fd, iov, count, n);
	if (!is_unknown(n))
		return n;
	return would_not_wait(fd, POLLIN, O_WRONLY) ? call_read(fd, iov, count)
						    : -EAGAIN;
}

static BASE_NOINLINE ssize_t try_read(int fd, const struct iovec *iov,
				      int count)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov,
			      .msg_iovlen = (size_t)count };
	ssize_t n;

	if (count == 1)
		n = recv(fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT);
	else
		n = recvmsg(fd, &msg, MSG_DONTWAIT);
	n = result(n);
	return n == -ENOTSOCK ? try_read_other(fd, iov, count) : n;
}

static const struct direction to_read = { PIOM_IO_IN, try_read, call_read };

/* --- write --- */

static ssize_t call_write(int fd, const struct iovec *iov, int count)
{
	ssize_t n;

	do
		n = result(marcel_writev(fd, iov, count));
	while (n == -EINTR);
	return n;
}

/*
 * Write without a signal for who has no reader. The mask is the kernel
 * thread's, which we do not leave meanwhile.
 */
static ssize_t write_masked(int fd, const struct iovec *iov, int count,
			    int flags)
{
	uint64_t pipe = 1ull << (SIGPIPE - 1), before, pending;
	static const struct timespec now;
	ssize_t n;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &pipe, &before, sizeof(pipe));
	syscall(SYS_rt_sigpending, &pending, sizeof(pending));
	n = result(flags != 0 ? pwritev2(fd, iov, count, -1, flags)
			      : syscall(SYS_writev, fd, iov, count));
	if (n == -EPIPE && !(pending & pipe))
		syscall(SYS_rt_sigtimedwait, &pipe, NULL, &now, sizeof(pipe));
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(pipe));
	return n;
}

static ssize_t write_nowait(int fd, const struct iovec *iov, int count)
{
	static ATOMIC(bool) too_old; /* a: relaxed */
	ssize_t n;

	if (BASE_TSAN || BASE_ASAN)
		return -EOPNOTSUPP;
	if (!load_relaxed(&too_old)) {
		n = result(pwritev2(fd, iov, count, -1,
				    RWF_NOWAIT | RWF_NOSIGNAL));
		if (!is_unknown(n))
			return n;
	}
	n = write_masked(fd, iov, count, RWF_NOWAIT);
	if (!is_unknown(n))
		store_relaxed(&too_old, true);
	return n;
}

/*
 * A pipe that has room takes so much without sleeping, and only its writers get
 * SIGPIPE. Others, as terminals, may take a part and have the rest wait.
 */
static ssize_t write_piece(int fd, const struct iovec *iov, int count)
{
	struct iovec first;

	if (!is_pipe(fd))
		return call_write(fd, iov, count);
	while (count > 1 && iov->iov_len == 0) {
		iov++;
		count--;
	}
	first = *iov;
	if (first.iov_len > PIPE_BUF)
		first.iov_len = PIPE_BUF;
	return write_masked(fd, &first, 1, 0);
}

static BASE_NOINLINE ssize_t try_write_other(int fd, const struct iovec *iov,
					     int count)
{
	ssize_t n = write_nowait(fd, iov, count);

	if (!is_unknown(n))
		return n;
	return would_not_wait(fd, POLLOUT, O_RDONLY)
		       ? write_piece(fd, iov, count)
		       : -EAGAIN;
}

static BASE_NOINLINE ssize_t try_write(int fd, const struct iovec *iov,
				       int count)
{
	struct msghdr msg = { .msg_iov = (struct iovec *)iov,
			      .msg_iovlen = (size_t)count };
	ssize_t n;

	if (count == 1)
		n = send(fd, iov->iov_base, iov->iov_len,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		n = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	n = result(n);
	return n == -ENOTSOCK ? try_write_other(fd, iov, count) : n;
}

static const struct direction to_write = { PIOM_IO_OUT, try_write, call_write };

/* --- both --- */

/* Until something is done: n, or -errno. */
static ssize_t some(int fd, const struct direction *d, const struct iovec *iov,
		    int count)
{
	struct piom_io_seen seen;
	ssize_t n;
	int rc;

	for (;;) {
		marcel_testcancel();
		rc = piom_io_look(fd, &seen);
		if (rc < 0)
			return rc;
		n = d->try(fd, iov, count);
		if (likely(n != -EAGAIN && n != -EINTR))
			return n;
		if (n == -EINTR)
			continue;
		rc = piom_io_await(fd, d->side, &seen);
		if (rc == PIOM_IO_FILE)
			return d->call(fd, iov, count);
		if (rc < 0)
			return rc;
	}
}

/* What is left of a buffer that is begun, or all. */
static ssize_t write_some(int fd, struct rest r)
{
	struct iovec first;

	if (r.done == 0)
		return some(fd, &to_write, r.iov, r.count);
	first.iov_base = (char *)r.iov->iov_base + r.done;
	first.iov_len = r.iov->iov_len - r.done;
	return some(fd, &to_write, &first, 1);
}

BASE_PUBLIC ssize_t piom_readv(int fd, const struct iovec *iov, int count)
{
	ssize_t want = total(iov, count);

	if (want < 0)
		return want;
	/* A datagram is not to be lost for nothing. */
	return want > 0 ? some(fd, &to_read, iov, count)
			: call_read(fd, iov, count);
}

BASE_PUBLIC ssize_t piom_read(int fd, void *buf, size_t n)
{
	struct iovec iov = { buf, n };

	return piom_readv(fd, &iov, 1);
}

static ssize_t write_all(int fd, const struct iovec *iov, int count,
			 ssize_t want)
{
	struct rest r = { iov, count, 0 };
	ssize_t done = write_some(fd, r), n = done;
	int before;

	if (n <= 0 || n == want)
		return n;
	/* Something is done: it is returned. */
	marcel_setcancelstate(MARCEL_CANCEL_DISABLE, &before);
	while (n > 0 && done < want) {
		r = skip(r, (size_t)n);
		n = write_some(fd, r);
		done += n > 0 ? n : 0;
	}
	marcel_setcancelstate(before, NULL);
	return done;
}

BASE_PUBLIC ssize_t piom_writev(int fd, const struct iovec *iov, int count)
{
	ssize_t want = total(iov, count);

	if (want < 0)
		return want;
	/* Nothing is no datagram here, but is one below. */
	return want > 0 ? write_all(fd, iov, count, want)
			: call_write(fd, iov, count);
}

BASE_PUBLIC ssize_t piom_write(int fd, const void *buf, size_t n)
{
	struct iovec iov = { (void *)buf, n };
	ssize_t want = total(&iov, 1);

	return want < 0 ? want : write_all(fd, &iov, 1, want);
}
