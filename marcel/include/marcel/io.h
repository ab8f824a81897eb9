/*
 * Calls that may sleep in the kernel, for user threads: the functions of libc
 * in announced blocking sections (<marcel/blocking.h>).
 *
 * Each has the arguments, result, errno and EINTR of the function of that name;
 * no signal of the runtime's ends one. While it sleeps, the others of the
 * caller's VP run. A call that need not sleep causes no switch, but for
 * marcel_recvmmsg(). Where no kernel thread is left (MARCEL_LWP_MAX), who waits
 * for descriptors, or for time to pass, shares one with all others that do, and
 * is not interrupted by signals; other calls hold up the VP.
 *
 * They are cancellation points (<marcel/cancel.h>), but for getaddrinfo; one
 * that shares a kernel thread only before it waits.
 *
 * From foreign threads, hooks, before marcel_init() and after marcel_end() they
 * are libc's functions. A user thread may go on on another kernel thread than
 * that on which it called, as after any call that blocks. To sleep:
 * <marcel/time.h>.
 *
 * libmarcel stands before libc's own names, too, except in builds with a
 * sanitizer and where it was dlopened: read() there is marcel_read(). Before
 * nanosleep(), thrd_sleep(), sem_wait(), sigwait(), pause() ... too, for which
 * there are no names here: <marcel/time.h>, <marcel/sync.h> and
 * <marcel/signal.h> do not need a kernel thread.
 */
#ifndef MARCEL_IO_H
#define MARCEL_IO_H

#include <marcel/errno.h>

#include <mqueue.h>
#include <poll.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

struct addrinfo;
struct mmsghdr;
struct sembuf;

/* --- read, write --- */

ssize_t marcel_read(int fd, void *buf, size_t n);
ssize_t marcel_write(int fd, const void *buf, size_t n);
ssize_t marcel_readv(int fd, const struct iovec *iov, int count);
ssize_t marcel_writev(int fd, const struct iovec *iov, int count);

/* --- sockets --- */

ssize_t marcel_recv(int fd, void *buf, size_t n, int flags);
ssize_t marcel_recvfrom(int fd, void *buf, size_t n, int flags,
			struct sockaddr *from, socklen_t *len);
ssize_t marcel_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t marcel_send(int fd, const void *buf, size_t n, int flags);
ssize_t marcel_sendto(int fd, const void *buf, size_t n, int flags,
		      const struct sockaddr *to, socklen_t len);
ssize_t marcel_sendmsg(int fd, const struct msghdr *msg, int flags);
/*
 * For several messages without MSG_WAITFORONE, from a socket that blocks, it is
 * a section even if all are there: so an error behind some is for the next call
 * on the socket, as with libc. Where no kernel thread is left, one that comes
 * while the call waits for more may be lost, except with MSG_WAITALL, which
 * holds up the VP.
 */
int marcel_recvmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags,
		    struct timespec *timeout);
int marcel_sendmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags);
int marcel_accept(int fd, struct sockaddr *addr, socklen_t *len);
int marcel_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
int marcel_connect(int fd, const struct sockaddr *addr, socklen_t len);
int marcel_getaddrinfo(const char *node, const char *service,
		       const struct addrinfo *hints, struct addrinfo **out);

/* --- several descriptors --- */

int marcel_poll(struct pollfd *fds, nfds_t n, int timeout);
int marcel_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		 const sigset_t *mask);
int marcel_select(int n, fd_set *in, fd_set *out, fd_set *except,
		  struct timeval *timeout);
int marcel_pselect(int n, fd_set *in, fd_set *out, fd_set *except,
		   const struct timespec *timeout, const sigset_t *mask);
int marcel_epoll_wait(int fd, struct epoll_event *out, int max, int timeout);
int marcel_epoll_pwait(int fd, struct epoll_event *out, int max, int timeout,
		       const sigset_t *mask);
int marcel_epoll_pwait2(int fd, struct epoll_event *out, int max,
			const struct timespec *timeout, const sigset_t *mask);

/* --- files --- */

int marcel_open(const char *path, int flags, ... /* mode_t mode */);
int marcel_openat(int dir, const char *path, int flags, ... /* mode_t mode */);
int marcel_fsync(int fd);
int marcel_fdatasync(int fd);
int marcel_tcdrain(int fd);
/*
 * Only what waits for a lock is a section and a cancellation point: F_SETLKW
 * and F_OFD_SETLKW; flock() without LOCK_NB; F_LOCK. With LOCK_NB, F_TLOCK,
 * F_SETLK and F_OFD_SETLK they are libc's: the lock is had at once, or the call
 * fails with EWOULDBLOCK (flock), or EACCES or EAGAIN. Locks are not a
 * thread's: those of flock() and F_OFD_... are the open file's, the others the
 * process's, whose threads they do not keep from one another.
 */
int marcel_fcntl(int fd, int what, ... /* as it wants */);
int marcel_flock(int fd, int op);
int marcel_lockf(int fd, int what, off_t n);
ssize_t marcel_getrandom(void *buf, size_t n, unsigned flags);

/* --- children --- */

pid_t marcel_wait(int *status);
pid_t marcel_waitpid(pid_t pid, int *status, int options);
pid_t marcel_wait3(int *status, int options, struct rusage *usage);
pid_t marcel_wait4(pid_t pid, int *status, int options, struct rusage *usage);
#ifdef WEXITED /* else <sys/wait.h> has no waitid() */
int marcel_waitid(idtype_t type, id_t id, siginfo_t *out, int options);
#endif

/* --- semaphores and messages between processes --- */

int marcel_semop(int id, struct sembuf *ops, size_t n);
int marcel_semtimedop(int id, struct sembuf *ops, size_t n,
		      const struct timespec *timeout);
ssize_t marcel_msgrcv(int id, void *msg, size_t n, long type, int flags);
int marcel_msgsnd(int id, const void *msg, size_t n, int flags);
ssize_t marcel_mq_receive(mqd_t mq, char *msg, size_t n, unsigned *prio);
ssize_t marcel_mq_timedreceive(mqd_t mq, char *msg, size_t n, unsigned *prio,
			       const struct timespec *deadline);
int marcel_mq_send(mqd_t mq, const char *msg, size_t n, unsigned prio);
int marcel_mq_timedsend(mqd_t mq, const char *msg, size_t n, unsigned prio,
			const struct timespec *deadline);

#ifdef __cplusplus
}
#endif

#endif
