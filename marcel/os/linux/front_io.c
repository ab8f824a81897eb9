/*
 * The functions of libc that may sleep in the kernel, each handed to the
 * wrapper of marcel/io. As front.c, a part of libmarcel and of libmpi_abi.
 *
 * libc has most of them under other names, too: of files with 64-bit offsets,
 * which is what all are here, and of programs compiled with _FORTIFY_SOURCE,
 * whose checks remain libc's.
 */
/* Each name is to be that and no other. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE

#include <stdarg.h>
#include <stdbool.h>

#include "../../io/next.h"
#include "front.h"

/* --- reads and writes --- */

BASE_PUBLIC ssize_t read(int fd, void *buf, size_t n)
{
	static struct front_next next = { .name = "read" };

	return marcel_io_read(front_find(&next), fd, buf, n);
}

BASE_PUBLIC ssize_t write(int fd, const void *buf, size_t n)
{
	static struct front_next next = { .name = "write" };

	return marcel_io_write(front_find(&next), fd, buf, n);
}

BASE_PUBLIC ssize_t readv(int fd, const struct iovec *iov, int count)
{
	static struct front_next next = { .name = "readv" };

	return marcel_io_readv(front_find(&next), fd, iov, count);
}

BASE_PUBLIC ssize_t writev(int fd, const struct iovec *iov, int count)
{
	static struct front_next next = { .name = "writev" };

	return marcel_io_writev(front_find(&next), fd, iov, count);
}

/* --- sockets --- */

BASE_PUBLIC ssize_t recv(int fd, void *buf, size_t n, int flags)
{
	static struct front_next next = { .name = "recv" };

	return marcel_io_recv(front_find(&next), fd, buf, n, flags);
}

BASE_PUBLIC ssize_t recvfrom(int fd, void *buf, size_t n, int flags,
			     __SOCKADDR_ARG from, socklen_t *len)
{
	static struct front_next next = { .name = "recvfrom" };

	return marcel_io_recvfrom(front_find(&next), fd, buf, n, flags,
				  from.__sockaddr__, len);
}

BASE_PUBLIC ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	static struct front_next next = { .name = "recvmsg" };

	return marcel_io_recvmsg(front_find(&next), fd, msg, flags);
}

BASE_PUBLIC ssize_t send(int fd, const void *buf, size_t n, int flags)
{
	static struct front_next next = { .name = "send" };

	return marcel_io_send(front_find(&next), fd, buf, n, flags);
}

BASE_PUBLIC ssize_t sendto(int fd, const void *buf, size_t n, int flags,
			   __CONST_SOCKADDR_ARG to, socklen_t len)
{
	static struct front_next next = { .name = "sendto" };

	return marcel_io_sendto(front_find(&next), fd, buf, n, flags,
				to.__sockaddr__, len);
}

BASE_PUBLIC ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	static struct front_next next = { .name = "sendmsg" };

	return marcel_io_sendmsg(front_find(&next), fd, msg, flags);
}

BASE_PUBLIC int accept(int fd, __SOCKADDR_ARG addr, socklen_t *len)
{
	static struct front_next next = { .name = "accept" };

	return marcel_io_accept(front_find(&next), fd, addr.__sockaddr__, len);
}

BASE_PUBLIC int accept4(int fd, __SOCKADDR_ARG addr, socklen_t *len, int flags)
{
	static struct front_next next = { .name = "accept4" };

	return marcel_io_accept4(front_find(&next), fd, addr.__sockaddr__, len,
				 flags);
}

BASE_PUBLIC int connect(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
	static struct front_next next = { .name = "connect" };

	return marcel_io_connect(front_find(&next), fd, addr.__sockaddr__, len);
}

BASE_PUBLIC int getaddrinfo(const char *node, const char *service,
			    const struct addrinfo *hints, struct addrinfo **out)
{
	static struct front_next next = { .name = "getaddrinfo" };

	return marcel_io_getaddrinfo(front_find(&next), node, service, hints,
				     out);
}

/* --- several descriptors --- */

BASE_PUBLIC int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	static struct front_next next = { .name = "poll" };

	return marcel_io_poll(front_find(&next), fds, n, timeout);
}

BASE_PUBLIC int ppoll(struct pollfd *fds, nfds_t n,
		      const struct timespec *timeout, const sigset_t *mask)
{
	static struct front_next next = { .name = "ppoll" };

	return marcel_io_ppoll(front_find(&next), fds, n, timeout, mask);
}

BASE_PUBLIC int select(int n, fd_set *in, fd_set *out, fd_set *except,
		       struct timeval *timeout)
{
	static struct front_next next = { .name = "select" };

	return marcel_io_select(front_find(&next), n, in, out, except, timeout);
}

BASE_PUBLIC int pselect(int n, fd_set *in, fd_set *out, fd_set *except,
			const struct timespec *timeout, const sigset_t *mask)
{
	static struct front_next next = { .name = "pselect" };

	return marcel_io_pselect(front_find(&next), n, in, out, except, timeout,
				 mask);
}

BASE_PUBLIC int epoll_wait(int fd, struct epoll_event *out, int max,
			   int timeout)
{
	static struct front_next next = { .name = "epoll_wait" };

	return marcel_io_epoll_wait(front_find(&next), fd, out, max, timeout);
}

BASE_PUBLIC int epoll_pwait(int fd, struct epoll_event *out, int max,
			    int timeout, const sigset_t *mask)
{
	static struct front_next next = { .name = "epoll_pwait" };

	return marcel_io_epoll_pwait(front_find(&next), fd, out, max, timeout,
				     mask);
}

/* --- time --- */

BASE_PUBLIC int nanosleep(const struct timespec *time, struct timespec *left)
{
	static struct front_next next = { .name = "nanosleep" };

	return marcel_io_nanosleep(front_find(&next), time, left);
}

BASE_PUBLIC int clock_nanosleep(clockid_t clock, int flags,
				const struct timespec *time,
				struct timespec *left)
{
	static struct front_next next = { .name = "clock_nanosleep" };

	return marcel_io_clock_nanosleep(front_find(&next), clock, flags, time,
					 left);
}

BASE_PUBLIC int usleep(useconds_t us)
{
	static struct front_next next = { .name = "usleep" };

	return marcel_io_usleep(front_find(&next), us);
}

BASE_PUBLIC unsigned sleep(unsigned s)
{
	static struct front_next next = { .name = "sleep" };

	return marcel_io_sleep(front_find(&next), s);
}

/* --- files --- */

BASE_PUBLIC int fsync(int fd)
{
	static struct front_next next = { .name = "fsync" };

	return marcel_io_sync(front_find(&next), fd);
}

BASE_PUBLIC int fdatasync(int fd)
{
	static struct front_next next = { .name = "fdatasync" };

	return marcel_io_sync(front_find(&next), fd);
}

BASE_PUBLIC int open(const char *path, int flags, ...)
{
	static struct front_next next = { .name = "open" };
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (marcel_io_has_mode(flags))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return marcel_io_open(front_find(&next), path, flags, mode);
}

BASE_PUBLIC int open64(const char *path, int flags, ...)
{
	static struct front_next next = { .name = "open64" };
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (marcel_io_has_mode(flags))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return marcel_io_open(front_find(&next), path, flags, mode);
}

BASE_PUBLIC int openat(int dir, const char *path, int flags, ...)
{
	static struct front_next next = { .name = "openat" };
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (marcel_io_has_mode(flags))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return marcel_io_openat(front_find(&next), dir, path, flags, mode);
}

BASE_PUBLIC int openat64(int dir, const char *path, int flags, ...)
{
	static struct front_next next = { .name = "openat64" };
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (marcel_io_has_mode(flags))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return marcel_io_openat(front_find(&next), dir, path, flags, mode);
}

/* --- children --- */

BASE_PUBLIC pid_t wait(int *status)
{
	static struct front_next next = { .name = "wait" };

	return marcel_io_wait(front_find(&next), status);
}

BASE_PUBLIC pid_t waitpid(pid_t pid, int *status, int options)
{
	static struct front_next next = { .name = "waitpid" };

	return marcel_io_waitpid(front_find(&next), pid, status, options);
}

BASE_PUBLIC pid_t wait4(pid_t pid, int *status, int options,
			struct rusage *usage)
{
	static struct front_next next = { .name = "wait4" };

	return marcel_io_wait4(front_find(&next), pid, status, options, usage);
}

BASE_PUBLIC int waitid(idtype_t type, id_t id, siginfo_t *out, int options)
{
	static struct front_next next = { .name = "waitid" };

	return marcel_io_waitid(front_find(&next), type, id, out, options);
}

/* --- compiled with _FORTIFY_SOURCE: libc aborts if it must --- */

ssize_t __read_chk(int fd, void *buf, size_t n, size_t size);
ssize_t __recv_chk(int fd, void *buf, size_t n, size_t size, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t size, int flags,
		       __SOCKADDR_ARG from, socklen_t *len);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		const sigset_t *mask, size_t size);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);

BASE_PUBLIC ssize_t __read_chk(int fd, void *buf, size_t n, size_t size)
{
	static struct front_next next = { .name = "__read_chk" };
	__typeof__(__read_chk) *fn;

	if (likely(n <= size))
		return read(fd, buf, n);
	fn = front_find(&next);
	return fn(fd, buf, n, size);
}

BASE_PUBLIC ssize_t __recv_chk(int fd, void *buf, size_t n, size_t size,
			       int flags)
{
	static struct front_next next = { .name = "__recv_chk" };
	__typeof__(__recv_chk) *fn;

	if (likely(n <= size))
		return recv(fd, buf, n, flags);
	fn = front_find(&next);
	return fn(fd, buf, n, size, flags);
}

BASE_PUBLIC ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t size,
				   int flags, __SOCKADDR_ARG from,
				   socklen_t *len)
{
	static struct front_next next = { .name = "__recvfrom_chk" };
	__typeof__(__recvfrom_chk) *fn;

	if (likely(n <= size))
		return recvfrom(fd, buf, n, flags, from, len);
	fn = front_find(&next);
	return fn(fd, buf, n, size, flags, from, len);
}

BASE_PUBLIC int __poll_chk(struct pollfd *fds, nfds_t n, int timeout,
			   size_t size)
{
	static struct front_next next = { .name = "__poll_chk" };
	__typeof__(__poll_chk) *fn;

	if (likely(n <= size / sizeof(*fds)))
		return poll(fds, n, timeout);
	fn = front_find(&next);
	return fn(fds, n, timeout, size);
}

BASE_PUBLIC int __ppoll_chk(struct pollfd *fds, nfds_t n,
			    const struct timespec *timeout,
			    const sigset_t *mask, size_t size)
{
	static struct front_next next = { .name = "__ppoll_chk" };
	__typeof__(__ppoll_chk) *fn;

	if (likely(n <= size / sizeof(*fds)))
		return ppoll(fds, n, timeout, mask);
	fn = front_find(&next);
	return fn(fds, n, timeout, mask, size);
}

BASE_PUBLIC int __open_2(const char *path, int flags)
{
	static struct front_next next = { .name = "__open_2" };
	__typeof__(__open_2) *fn;

	if (likely(!marcel_io_has_mode(flags)))
		return open(path, flags);
	fn = front_find(&next);
	return fn(path, flags);
}

BASE_PUBLIC int __open64_2(const char *path, int flags)
{
	static struct front_next next = { .name = "__open64_2" };
	__typeof__(__open64_2) *fn;

	if (likely(!marcel_io_has_mode(flags)))
		return open64(path, flags);
	fn = front_find(&next);
	return fn(path, flags);
}

BASE_PUBLIC int __openat_2(int dir, const char *path, int flags)
{
	static struct front_next next = { .name = "__openat_2" };
	__typeof__(__openat_2) *fn;

	if (likely(!marcel_io_has_mode(flags)))
		return openat(dir, path, flags);
	fn = front_find(&next);
	return fn(dir, path, flags);
}

BASE_PUBLIC int __openat64_2(int dir, const char *path, int flags)
{
	static struct front_next next = { .name = "__openat64_2" };
	__typeof__(__openat64_2) *fn;

	if (likely(!marcel_io_has_mode(flags)))
		return openat64(dir, path, flags);
	fn = front_find(&next);
	return fn(dir, path, flags);
}
