/*
 * Sockets: calls that take flags, and those that make connections.
 */
#include "io.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- receive --- */

/*
 * Who asks for the errors queued on a socket (MSG_ERRQUEUE) does not wait, and
 * no EPOLLIN would tell of one. (A family without such a queue does not know
 * the flag, and may sleep: the VP waits until the monitor finds that out.)
 */
static bool never_waits(int flags)
{
	return (flags & (MSG_DONTWAIT | MSG_ERRQUEUE)) != 0;
}

/* Past the bound: what is there, then wait for more. */
static ssize_t recv_in_turns(int fd, char *to, size_t n, int flags)
{
	ssize_t rc;

	do {
		rc = recv(fd, to, n, flags | MSG_DONTWAIT);
		if (!io_would_block(rc))
			return rc;
	} while (io_sleep(fd, EPOLLIN, IO_BLOCKS) == IO_RETRY);
	rc = recv(fd, to, n, flags);
	marcel_call_end(false);
	return rc;
}

/* The rest of what MSG_WAITALL asked for; an error is for the next call. */
static size_t recv_rest(int fd, struct io_rest r, int flags)
{
	bool section = marcel_call_begin();
	size_t all = 0, left;
	ssize_t n;

	while (r.count > 0) {
		char *to = (char *)r.iov->iov_base + r.done;

		left = r.iov->iov_len - r.done;
		n = section ? recv(fd, to, left, flags)
			    : recv_in_turns(fd, to, left, flags);
		if (n < 0 || (n == 0 && left > 0))
			break;
		all += (size_t)n;
		if (section && (size_t)n < left)
			break;
		r = io_skip(r.iov, r.count, r.done + (size_t)n);
	}
	marcel_call_end(false);
	return all;
}

static bool is_stream(int fd)
{
	int type = 0;
	socklen_t len = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
	       type == SOCK_STREAM;
}

/* A try gave n: with MSG_WAITALL the rest belongs to it. */
static ssize_t received(int fd, const struct iovec *iov, size_t count,
			ssize_t n, int flags)
{
	if (likely((flags & (MSG_WAITALL | MSG_PEEK)) != MSG_WAITALL) ||
	    n <= 0 || (size_t)n >= io_bytes(iov, (int)count) || !is_stream(fd))
		return n;
	return n + (ssize_t)recv_rest(fd, io_skip(iov, (int)count, (size_t)n),
				      flags);
}

ssize_t marcel_io_recv(__typeof__(recv) *next, int fd, void *buf, size_t n,
		       int flags)
{
	struct iovec iov = { buf, n };
	ssize_t rc;

	if (never_waits(flags))
		return next(fd, buf, n, flags);
	if (likely(!io_holds())) {
		io_refuse_handler(fd, "recv()");
		return next(fd, buf, n, flags);
	}
	do {
		rc = next(fd, buf, n, flags | MSG_DONTWAIT);
		if (!io_would_block(rc))
			return received(fd, &iov, 1, rc, flags);
	} while (io_sleep(fd, EPOLLIN, IO_BLOCKS) == IO_RETRY);
	rc = next(fd, buf, n, flags);
	marcel_call_end(rc < 0);
	return rc;
}

ssize_t marcel_io_recvfrom(__typeof__(recvfrom) *next, int fd, void *buf,
			   size_t n, int flags, struct sockaddr *from,
			   socklen_t *len)
{
	struct iovec iov = { buf, n };
	ssize_t rc;

	if (never_waits(flags))
		return next(fd, buf, n, flags, from, len);
	if (likely(!io_holds())) {
		io_refuse_handler(fd, "recvfrom()");
		return next(fd, buf, n, flags, from, len);
	}
	do {
		rc = next(fd, buf, n, flags | MSG_DONTWAIT, from, len);
		if (!io_would_block(rc))
			return received(fd, &iov, 1, rc, flags);
	} while (io_sleep(fd, EPOLLIN, IO_BLOCKS) == IO_RETRY);
	rc = next(fd, buf, n, flags, from, len);
	marcel_call_end(rc < 0);
	return rc;
}

ssize_t marcel_io_recvmsg(__typeof__(recvmsg) *next, int fd, struct msghdr *msg,
			  int flags)
{
	ssize_t rc;

	if (never_waits(flags))
		return next(fd, msg, flags);
	if (likely(!io_holds())) {
		io_refuse_handler(fd, "recvmsg()");
		return next(fd, msg, flags);
	}
	do {
		rc = next(fd, msg, flags | MSG_DONTWAIT);
		if (!io_would_block(rc))
			return received(fd, msg->msg_iov, msg->msg_iovlen, rc,
					flags);
	} while (io_sleep(fd, EPOLLIN, IO_BLOCKS) == IO_RETRY);
	rc = next(fd, msg, flags);
	marcel_call_end(rc < 0);
	return rc;
}

/* --- send --- */

/* A stream may have taken a part. */
static ssize_t sent(int fd, const struct iovec *iov, size_t count, ssize_t n)
{
	size_t all = io_bytes(iov, (int)count);

	if (n > 0 && (size_t)n < all)
		n += (ssize_t)io_write_rest(
			fd, io_skip(iov, (int)count, (size_t)n));
	return n;
}

ssize_t marcel_io_send(__typeof__(send) *next, int fd, const void *buf,
		       size_t n, int flags)
{
	struct iovec iov = { (void *)buf, n };
	bool tries = n <= IO_SMALL;
	ssize_t rc;

	if (likely(!io_holds()) || (flags & MSG_DONTWAIT) != 0)
		return next(fd, buf, n, flags);
	do {
		if (tries) {
			rc = next(fd, buf, n, flags | MSG_DONTWAIT);
			if (!io_would_block(rc))
				return sent(fd, &iov, 1, rc);
		}
		tries = true;
	} while (io_sleep(fd, EPOLLOUT, IO_BLOCKS) == IO_RETRY);
	rc = next(fd, buf, n, flags);
	marcel_call_end(rc < 0);
	return rc;
}

ssize_t marcel_io_sendto(__typeof__(sendto) *next, int fd, const void *buf,
			 size_t n, int flags, const struct sockaddr *to,
			 socklen_t len)
{
	struct iovec iov = { (void *)buf, n };
	bool tries = n <= IO_SMALL;
	ssize_t rc;

	if (likely(!io_holds()) || (flags & MSG_DONTWAIT) != 0)
		return next(fd, buf, n, flags, to, len);
	do {
		if (tries) {
			rc = next(fd, buf, n, flags | MSG_DONTWAIT, to, len);
			if (!io_would_block(rc))
				return sent(fd, &iov, 1, rc);
		}
		tries = true;
	} while (io_sleep(fd, EPOLLOUT, IO_BLOCKS) == IO_RETRY);
	rc = next(fd, buf, n, flags, to, len);
	marcel_call_end(rc < 0);
	return rc;
}

ssize_t marcel_io_sendmsg(__typeof__(sendmsg) *next, int fd,
			  const struct msghdr *msg, int flags)
{
	bool tries;
	ssize_t rc;

	if (likely(!io_holds()) || (flags & MSG_DONTWAIT) != 0)
		return next(fd, msg, flags);
	tries = msg->msg_iovlen <= IOV_MAX &&
		io_bytes(msg->msg_iov, (int)msg->msg_iovlen) <= IO_SMALL;
	do {
		if (tries) {
			rc = next(fd, msg, flags | MSG_DONTWAIT);
			if (!io_would_block(rc))
				return sent(fd, msg->msg_iov, msg->msg_iovlen,
					    rc);
		}
		tries = true;
	} while (io_sleep(fd, EPOLLOUT, IO_BLOCKS) == IO_RETRY);
	rc = next(fd, msg, flags);
	marcel_call_end(rc < 0);
	return rc;
}

/* --- several messages: a try may take some, or send some --- */

/* What two calls have done; an error is told by who has done nothing. */
static int some_or(unsigned done, int rc)
{
	if (done == 0)
		return rc;
	return (int)done + (rc > 0 ? rc : 0);
}

static void tell_left(struct timespec *timeout, uint64_t deadline)
{
	uint64_t now = base_now_ns();
	uint64_t left = deadline > now ? deadline - now : 0;

	if (deadline == IO_NEVER)
		return;
	timeout->tv_sec = (time_t)(left / 1000000000);
	timeout->tv_nsec = (long)(left % 1000000000);
}

/*
 * Whether a try may take a part of what the call would. The kernel keeps an
 * error behind a part for the next call on the socket, which must be the
 * caller's and no other try.
 */
static bool takes_part(unsigned n, int flags)
{
	return (flags & MSG_WAITALL) != 0 ||
	       (n > 1 && (flags & MSG_WAITFORONE) == 0);
}

/*
 * The socket has an error for the next call, which is not to be ours. Not
 * poll(): that is a cancellation point.
 */
static bool has_error(int fd)
{
	struct pollfd p = { .fd = fd };
	struct timespec none = { 0 };

	return syscall(SYS_ppoll, &p, 1, &none, NULL, 0) > 0 &&
	       (p.revents & POLLERR) != 0;
}

/*
 * The kernel looks at the time only when it has received a message, and tells
 * how much is left then: so the time ends no wait for the first. Past the bound
 * parts are had one by one, up to an error behind one, as the kernel does; but
 * a part of what MSG_WAITALL asks for would be a message: that is not tried. An
 * error is lost that comes between our look and the call, or when that waits
 * for the rest.
 */
int marcel_io_recvmmsg(__typeof__(recvmmsg) *next, int fd, struct mmsghdr *msgs,
		       unsigned n, int flags, struct timespec *timeout)
{
	bool tries = (flags & MSG_WAITALL) == 0 || n == 0;
	uint64_t deadline;
	unsigned done = 0;
	bool calls;
	int rc;

	if (likely(!io_holds()) || never_waits(flags) ||
	    (timeout != NULL && !io_is_time(timeout)))
		return next(fd, msgs, n, flags, timeout);
	deadline = io_deadline(timeout);
	calls = takes_part(n, flags) && io_begin(fd);
	while (tries && !calls) {
		rc = next(fd, msgs + done, n - done, flags | MSG_DONTWAIT,
			  timeout);
		if (rc < 0 && !io_would_block(rc))
			return some_or(done, rc);
		done += rc > 0 ? (unsigned)rc : 0;
		if (done == n)
			return (int)n;
		if (done > 0 && (flags & MSG_WAITFORONE || io_is_none(timeout)))
			return (int)done;
		calls = io_sleep(fd, EPOLLIN, IO_BLOCKS) == IO_CALL;
		if (done > 0 && has_error(fd)) {
			if (calls)
				marcel_call_end(false);
			tell_left(timeout, deadline);
			return (int)done;
		}
		if (!calls)
			tell_left(timeout, deadline);
	}
	if (!calls)
		io_sleep(fd, EPOLLIN, IO_CANNOT);
	rc = next(fd, msgs + done, n - done, flags, timeout);
	marcel_call_end(rc < 0 && done == 0);
	return some_or(done, rc);
}

static bool is_whole(const struct mmsghdr *m)
{
	return m->msg_len ==
	       io_bytes(m->msg_hdr.msg_iov, (int)m->msg_hdr.msg_iovlen);
}

/* A stream may have taken a part of the last. */
static unsigned sent_several(int fd, struct mmsghdr *msgs, int n)
{
	struct mmsghdr *m;

	if (n <= 0)
		return 0;
	m = &msgs[n - 1];
	m->msg_len = (unsigned)sent(fd, m->msg_hdr.msg_iov,
				    m->msg_hdr.msg_iovlen, m->msg_len);
	return (unsigned)n;
}

static bool are_small(const struct mmsghdr *msgs, unsigned n)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < n && bytes <= IO_SMALL; i++) {
		if (msgs[i].msg_hdr.msg_iovlen > IOV_MAX)
			return false;
		bytes += io_bytes(msgs[i].msg_hdr.msg_iov,
				  (int)msgs[i].msg_hdr.msg_iovlen);
	}
	return bytes <= IO_SMALL;
}

int marcel_io_sendmmsg(__typeof__(sendmmsg) *next, int fd, struct mmsghdr *msgs,
		       unsigned n, int flags)
{
	unsigned done = 0;
	bool tries;
	int rc;

	if (likely(!io_holds()) || (flags & MSG_DONTWAIT) != 0)
		return next(fd, msgs, n, flags);
	n = n < IOV_MAX ? n : IOV_MAX; /* as the kernel does */
	tries = are_small(msgs, n);
	do {
		if (tries) {
			rc = next(fd, msgs + done, n - done,
				  flags | MSG_DONTWAIT);
			if (rc < 0 && !io_would_block(rc))
				return some_or(done, rc);
			done += sent_several(fd, msgs + done, rc);
			if (done == n ||
			    (done > 0 && !is_whole(&msgs[done - 1])))
				return (int)done;
		}
		tries = true;
	} while (io_sleep(fd, EPOLLOUT, IO_BLOCKS) == IO_RETRY);
	rc = next(fd, msgs + done, n - done, flags);
	marcel_call_end(rc < 0 && done == 0);
	return some_or(done, rc);
}

/* --- connections --- */

int marcel_io_accept(__typeof__(accept) *next, int fd, struct sockaddr *addr,
		     socklen_t *len)
{
	int rc;

	if (likely(!io_holds()))
		return next(fd, addr, len);
	io_sleep(fd, EPOLLIN, IO_CANNOT);
	rc = next(fd, addr, len);
	marcel_call_end(rc < 0);
	return rc;
}

int marcel_io_accept4(__typeof__(accept4) *next, int fd, struct sockaddr *addr,
		      socklen_t *len, int flags)
{
	int rc;

	if (likely(!io_holds()))
		return next(fd, addr, len, flags);
	io_sleep(fd, EPOLLIN, IO_CANNOT);
	rc = next(fd, addr, len, flags);
	marcel_call_end(rc < 0);
	return rc;
}

int marcel_io_connect(__typeof__(connect) *next, int fd,
		      const struct sockaddr *addr, socklen_t len)
{
	int flags, rc;

	if (likely(!io_holds()))
		return next(fd, addr, len);
	flags = fcntl(fd, F_GETFL);
	if (flags >= 0 && (flags & O_NONBLOCK) == 0)
		marcel_call_enter();
	rc = next(fd, addr, len);
	marcel_call_end(rc < 0);
	return rc;
}

int marcel_io_getaddrinfo(__typeof__(getaddrinfo) *next, const char *node,
			  const char *service, const struct addrinfo *hints,
			  struct addrinfo **out)
{
	int rc;

	if (likely(!marcel_block_holds()))
		return next(node, service, hints, out);
	marcel_blocking_begin();
	rc = next(node, service, hints, out);
	marcel_blocking_end();
	return rc;
}

/* --- the public names --- */

BASE_PUBLIC ssize_t marcel_recv(int fd, void *buf, size_t n, int flags)
{
	return marcel_io_recv(recv, fd, buf, n, flags);
}

BASE_PUBLIC ssize_t marcel_recvfrom(int fd, void *buf, size_t n, int flags,
				    struct sockaddr *from, socklen_t *len)
{
	return marcel_io_recvfrom(recvfrom, fd, buf, n, flags, from, len);
}

BASE_PUBLIC ssize_t marcel_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return marcel_io_recvmsg(recvmsg, fd, msg, flags);
}

BASE_PUBLIC ssize_t marcel_send(int fd, const void *buf, size_t n, int flags)
{
	return marcel_io_send(send, fd, buf, n, flags);
}

BASE_PUBLIC ssize_t marcel_sendto(int fd, const void *buf, size_t n, int flags,
				  const struct sockaddr *to, socklen_t len)
{
	return marcel_io_sendto(sendto, fd, buf, n, flags, to, len);
}

BASE_PUBLIC ssize_t marcel_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return marcel_io_sendmsg(sendmsg, fd, msg, flags);
}

BASE_PUBLIC int marcel_recvmmsg(int fd, struct mmsghdr *msgs, unsigned n,
				int flags, struct timespec *timeout)
{
	return marcel_io_recvmmsg(recvmmsg, fd, msgs, n, flags, timeout);
}

BASE_PUBLIC int marcel_sendmmsg(int fd, struct mmsghdr *msgs, unsigned n,
				int flags)
{
	return marcel_io_sendmmsg(sendmmsg, fd, msgs, n, flags);
}

BASE_PUBLIC int marcel_accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return marcel_io_accept(accept, fd, addr, len);
}

BASE_PUBLIC int marcel_accept4(int fd, struct sockaddr *addr, socklen_t *len,
			       int flags)
{
	return marcel_io_accept4(accept4, fd, addr, len, flags);
}

BASE_PUBLIC int marcel_connect(int fd, const struct sockaddr *addr,
			       socklen_t len)
{
	return marcel_io_connect(connect, fd, addr, len);
}

BASE_PUBLIC int marcel_getaddrinfo(const char *node, const char *service,
				   const struct addrinfo *hints,
				   struct addrinfo **out)
{
	return marcel_io_getaddrinfo(getaddrinfo, node, service, hints, out);
}
