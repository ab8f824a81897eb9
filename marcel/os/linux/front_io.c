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
#include <sys/sem.h>

#include "../../io/next.h"
#include "front.h"

/* libc's function of that name. */
#define NEXT(function)                                                         \
	({                                                                     \
		static struct front_next next = { .name = #function };         \
		front_find(&next);                                             \
	})

/* --- reads and writes --- */

BASE_PUBLIC ssize_t read(int fd, void *buf, size_t n)
{
	return marcel_io_read(NEXT(read), fd, buf, n);
}

BASE_PUBLIC ssize_t write(int fd, const void *buf, size_t n)
{
	return marcel_io_write(NEXT(write), fd, buf, n);
}

BASE_PUBLIC ssize_t readv(int fd, const struct iovec *iov, int count)
{
	return marcel_io_readv(NEXT(readv), fd, iov, count);
}

BASE_PUBLIC ssize_t writev(int fd, const struct iovec *iov, int count)
{
	return marcel_io_writev(NEXT(writev), fd, iov, count);
}

/* --- sockets --- */

BASE_PUBLIC ssize_t recv(int fd, void *buf, size_t n, int flags)
{
	return marcel_io_recv(NEXT(recv), fd, buf, n, flags);
}

BASE_PUBLIC ssize_t recvfrom(int fd, void *buf, size_t n, int flags,
			     __SOCKADDR_ARG from, socklen_t *len)
{
	return marcel_io_recvfrom(NEXT(recvfrom), fd, buf, n, flags,
				  from.__sockaddr__, len);
}

BASE_PUBLIC ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	return marcel_io_recvmsg(NEXT(recvmsg), fd, msg, flags);
}

BASE_PUBLIC ssize_t send(int fd, const void *buf, size_t n, int flags)
{
	return marcel_io_send(NEXT(send), fd, buf, n, flags);
}

BASE_PUBLIC ssize_t sendto(int fd, const void *buf, size_t n, int flags,
			   __CONST_SOCKADDR_ARG to, socklen_t len)
{
	return marcel_io_sendto(NEXT(sendto), fd, buf, n, flags,
				to.__sockaddr__, len);
}

BASE_PUBLIC ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return marcel_io_sendmsg(NEXT(sendmsg), fd, msg, flags);
}

BASE_PUBLIC int recvmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags,
			 struct timespec *timeout)
{
	return marcel_io_recvmmsg(NEXT(recvmmsg), fd, msgs, n, flags, timeout);
}

BASE_PUBLIC int sendmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
	return marcel_io_sendmmsg(NEXT(sendmmsg), fd, msgs, n, flags);
}

BASE_PUBLIC int accept(int fd, __SOCKADDR_ARG addr, socklen_t *len)
{
	return marcel_io_accept(NEXT(accept), fd, addr.__sockaddr__, len);
}

BASE_PUBLIC int accept4(int fd, __SOCKADDR_ARG addr, socklen_t *len, int flags)
{
	return marcel_io_accept4(NEXT(accept4), fd, addr.__sockaddr__, len,
				 flags);
}

BASE_PUBLIC int connect(int fd, __CONST_SOCKADDR_ARG addr, socklen_t len)
{
	return marcel_io_connect(NEXT(connect), fd, addr.__sockaddr__, len);
}

BASE_PUBLIC int getaddrinfo(const char *node, const char *service,
			    const struct addrinfo *hints, struct addrinfo **out)
{
	return marcel_io_getaddrinfo(NEXT(getaddrinfo), node, service, hints,
				     out);
}

/* --- several descriptors --- */

BASE_PUBLIC int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	return marcel_io_poll(NEXT(poll), fds, n, timeout);
}

BASE_PUBLIC int ppoll(struct pollfd *fds, nfds_t n,
		      const struct timespec *timeout, const sigset_t *mask)
{
	return marcel_io_ppoll(NEXT(ppoll), fds, n, timeout, mask);
}

BASE_PUBLIC int select(int n, fd_set *in, fd_set *out, fd_set *except,
		       struct timeval *timeout)
{
	return marcel_io_select(NEXT(select), n, in, out, except, timeout);
}

BASE_PUBLIC int pselect(int n, fd_set *in, fd_set *out, fd_set *except,
			const struct timespec *timeout, const sigset_t *mask)
{
	return marcel_io_pselect(NEXT(pselect), n, in, out, except, timeout,
				 mask);
}

BASE_PUBLIC int epoll_wait(int fd, struct epoll_event *out, int max,
			   int timeout)
{
	return marcel_io_epoll_wait(NEXT(epoll_wait), fd, out, max, timeout);
}

BASE_PUBLIC int epoll_pwait(int fd, struct epoll_event *out, int max,
			    int timeout, const sigset_t *mask)
{
	return marcel_io_epoll_pwait(NEXT(epoll_pwait), fd, out, max, timeout,
				     mask);
}

BASE_PUBLIC int epoll_pwait2(int fd, struct epoll_event *out, int max,
			     const struct timespec *timeout,
			     const sigset_t *mask)
{
	return marcel_io_epoll_pwait2(NEXT(epoll_pwait2), fd, out, max, timeout,
				      mask);
}

/* --- time --- */

BASE_PUBLIC int nanosleep(const struct timespec *time, struct timespec *left)
{
	return marcel_io_nanosleep(NEXT(nanosleep), time, left);
}

BASE_PUBLIC int clock_nanosleep(clockid_t clock, int flags,
				const struct timespec *time,
				struct timespec *left)
{
	return marcel_io_clock_nanosleep(NEXT(clock_nanosleep), clock, flags,
					 time, left);
}

BASE_PUBLIC int usleep(useconds_t us)
{
	return marcel_io_usleep(NEXT(usleep), us);
}

BASE_PUBLIC unsigned sleep(unsigned s)
{
	return marcel_io_sleep(NEXT(sleep), s);
}

BASE_PUBLIC int thrd_sleep(const struct timespec *time, struct timespec *left)
{
	return marcel_io_nanosleep(NEXT(thrd_sleep), time, left);
}

/* --- files --- */

BASE_PUBLIC int fsync(int fd)
{
	return marcel_io_sync(NEXT(fsync), fd);
}

BASE_PUBLIC int fdatasync(int fd)
{
	return marcel_io_sync(NEXT(fdatasync), fd);
}

BASE_PUBLIC int tcdrain(int fd)
{
	return marcel_io_sync(NEXT(tcdrain), fd);
}

/*
 * libc knows the same function by two names, and by one more for each where
 * _FORTIFY_SOURCE has seen that no mode was given: libc aborts if one must be.
 */
#define OPEN(name, name_2)                                                     \
	BASE_PUBLIC int name(const char *path, int flags, ...)                 \
	{                                                                      \
		return marcel_io_open(NEXT(name), path, flags,                 \
				      MARCEL_IO_MODE(flags));                  \
	}                                                                      \
                                                                               \
	int name_2(const char *path, int flags);                               \
	BASE_PUBLIC int name_2(const char *path, int flags)                    \
	{                                                                      \
		__typeof__(name_2) *fn = NEXT(name_2);                         \
                                                                               \
		return likely(!marcel_io_has_mode(flags)) ? name(path, flags)  \
							  : fn(path, flags);   \
	}

#define OPENAT(name, name_2)                                                   \
	BASE_PUBLIC int name(int dir, const char *path, int flags, ...)        \
	{                                                                      \
		return marcel_io_openat(NEXT(name), dir, path, flags,          \
					MARCEL_IO_MODE(flags));                \
	}                                                                      \
                                                                               \
	int name_2(int dir, const char *path, int flags);                      \
	BASE_PUBLIC int name_2(int dir, const char *path, int flags)           \
	{                                                                      \
		__typeof__(name_2) *fn = NEXT(name_2);                         \
                                                                               \
		return likely(!marcel_io_has_mode(flags))                      \
			       ? name(dir, path, flags)                        \
			       : fn(dir, path, flags);                         \
	}

#define FCNTL(name)                                                            \
	BASE_PUBLIC int name(int fd, int what, ...)                            \
	{                                                                      \
		va_list ap;                                                    \
		void *arg;                                                     \
                                                                               \
		va_start(ap, what);                                            \
		arg = va_arg(ap, void *); /* as libc does */                   \
		va_end(ap);                                                    \
		return marcel_io_fcntl(NEXT(name), fd, what, arg);             \
	}

#define LOCKF(name)                                                            \
	BASE_PUBLIC int name(int fd, int what, off_t n)                        \
	{                                                                      \
		return marcel_io_lockf(NEXT(name), fd, what, n);               \
	}

OPEN(open, __open_2)
OPEN(open64, __open64_2)
OPENAT(openat, __openat_2)
OPENAT(openat64, __openat64_2)
FCNTL(fcntl)
FCNTL(fcntl64)
LOCKF(lockf)
LOCKF(lockf64)

BASE_PUBLIC int flock(int fd, int op)
{
	return marcel_io_flock(NEXT(flock), fd, op);
}

BASE_PUBLIC ssize_t getrandom(void *buf, size_t n, unsigned flags)
{
	return marcel_io_getrandom(NEXT(getrandom), buf, n, flags);
}

BASE_PUBLIC int aio_suspend(const struct aiocb *const list[], int n,
			    const struct timespec *timeout)
{
	return marcel_io_aio_suspend(NEXT(aio_suspend), list, n, timeout);
}

BASE_PUBLIC int aio_suspend64(const struct aiocb64 *const list[], int n,
			      const struct timespec *timeout)
{
	return marcel_io_aio_suspend(NEXT(aio_suspend64),
				     (const struct aiocb *const *)list, n,
				     timeout);
}

/* --- children --- */

BASE_PUBLIC pid_t wait(int *status)
{
	return marcel_io_wait(NEXT(wait), status);
}

BASE_PUBLIC pid_t waitpid(pid_t pid, int *status, int options)
{
	return marcel_io_waitpid(NEXT(waitpid), pid, status, options);
}

BASE_PUBLIC pid_t wait3(int *status, int options, struct rusage *usage)
{
	return marcel_io_wait3(NEXT(wait3), status, options, usage);
}

BASE_PUBLIC pid_t wait4(pid_t pid, int *status, int options,
			struct rusage *usage)
{
	return marcel_io_wait4(NEXT(wait4), pid, status, options, usage);
}

BASE_PUBLIC int waitid(idtype_t type, id_t id, siginfo_t *out, int options)
{
	return marcel_io_waitid(NEXT(waitid), type, id, out, options);
}

/* --- semaphores and messages --- */

BASE_PUBLIC int semop(int id, struct sembuf *ops, size_t n)
{
	return marcel_io_semop(NEXT(semop), id, ops, n);
}

BASE_PUBLIC int semtimedop(int id, struct sembuf *ops, size_t n,
			   const struct timespec *timeout)
{
	return marcel_io_semtimedop(NEXT(semtimedop), id, ops, n, timeout);
}

BASE_PUBLIC ssize_t msgrcv(int id, void *msg, size_t n, long type, int flags)
{
	return marcel_io_msgrcv(NEXT(msgrcv), id, msg, n, type, flags);
}

BASE_PUBLIC int msgsnd(int id, const void *msg, size_t n, int flags)
{
	return marcel_io_msgsnd(NEXT(msgsnd), id, msg, n, flags);
}

BASE_PUBLIC ssize_t mq_receive(mqd_t mq, char *msg, size_t n, unsigned *prio)
{
	return marcel_io_mq_receive(NEXT(mq_receive), mq, msg, n, prio);
}

BASE_PUBLIC ssize_t mq_timedreceive(mqd_t mq, char *msg, size_t n,
				    unsigned *prio,
				    const struct timespec *deadline)
{
	return marcel_io_mq_timedreceive(NEXT(mq_timedreceive), mq, msg, n,
					 prio, deadline);
}

BASE_PUBLIC int mq_send(mqd_t mq, const char *msg, size_t n, unsigned prio)
{
	return marcel_io_mq_send(NEXT(mq_send), mq, msg, n, prio);
}

BASE_PUBLIC int mq_timedsend(mqd_t mq, const char *msg, size_t n, unsigned prio,
			     const struct timespec *deadline)
{
	return marcel_io_mq_timedsend(NEXT(mq_timedsend), mq, msg, n, prio,
				      deadline);
}

BASE_PUBLIC int sem_wait(sem_t *s)
{
	return marcel_io_sem_wait(NEXT(sem_wait), s);
}

BASE_PUBLIC int sem_timedwait(sem_t *s, const struct timespec *deadline)
{
	return marcel_io_sem_timedwait(NEXT(sem_timedwait), s, deadline);
}

BASE_PUBLIC int sem_clockwait(sem_t *s, clockid_t clock,
			      const struct timespec *deadline)
{
	return marcel_io_sem_clockwait(NEXT(sem_clockwait), s, clock, deadline);
}

/* --- signals --- */

BASE_PUBLIC int sigtimedwait(const sigset_t *set, siginfo_t *info,
			     const struct timespec *timeout)
{
	return marcel_io_sigtimedwait(NEXT(sigtimedwait), set, info, timeout);
}

BASE_PUBLIC int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	return marcel_io_sigwaitinfo(NEXT(sigwaitinfo), set, info);
}

BASE_PUBLIC int sigwait(const sigset_t *set, int *out)
{
	return marcel_io_sigwait(NEXT(sigwait), set, out);
}

BASE_PUBLIC int pause(void)
{
	return marcel_io_pause(NEXT(pause));
}

BASE_PUBLIC int sigsuspend(const sigset_t *mask)
{
	return marcel_io_sigsuspend(NEXT(sigsuspend), mask);
}

/* --- compiled with _FORTIFY_SOURCE: libc aborts if it must --- */

ssize_t __read_chk(int fd, void *buf, size_t n, size_t size);
ssize_t __recv_chk(int fd, void *buf, size_t n, size_t size, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t size, int flags,
		       __SOCKADDR_ARG from, socklen_t *len);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		const sigset_t *mask, size_t size);

BASE_PUBLIC ssize_t __read_chk(int fd, void *buf, size_t n, size_t size)
{
	__typeof__(__read_chk) *fn = NEXT(__read_chk);

	return likely(n <= size) ? read(fd, buf, n) : fn(fd, buf, n, size);
}

BASE_PUBLIC ssize_t __recv_chk(int fd, void *buf, size_t n, size_t size,
			       int flags)
{
	__typeof__(__recv_chk) *fn = NEXT(__recv_chk);

	return likely(n <= size) ? recv(fd, buf, n, flags)
				 : fn(fd, buf, n, size, flags);
}

BASE_PUBLIC ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t size,
				   int flags, __SOCKADDR_ARG from,
				   socklen_t *len)
{
	__typeof__(__recvfrom_chk) *fn = NEXT(__recvfrom_chk);

	return likely(n <= size) ? recvfrom(fd, buf, n, flags, from, len)
				 : fn(fd, buf, n, size, flags, from, len);
}

BASE_PUBLIC int __poll_chk(struct pollfd *fds, nfds_t n, int timeout,
			   size_t size)
{
	__typeof__(__poll_chk) *fn = NEXT(__poll_chk);

	return likely(n <= size / sizeof(*fds)) ? poll(fds, n, timeout)
						: fn(fds, n, timeout, size);
}

BASE_PUBLIC int __ppoll_chk(struct pollfd *fds, nfds_t n,
			    const struct timespec *timeout,
			    const sigset_t *mask, size_t size)
{
	__typeof__(__ppoll_chk) *fn = NEXT(__ppoll_chk);

	return likely(n <= size / sizeof(*fds))
		       ? ppoll(fds, n, timeout, mask)
		       : fn(fds, n, timeout, mask, size);
}
