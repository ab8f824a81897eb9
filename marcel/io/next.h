/*
 * What runs instead of the functions of libc that os/linux/front_io.c stands
 * before, and behind the names of <marcel/io.h>. Each has the result and the
 * errors of that function, `next`, which it calls.
 */
#ifndef MARCEL_IO_NEXT_H
#define MARCEL_IO_NEXT_H

#include <aio.h>
#include <fcntl.h>
#include <netdb.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/sem.h>
#include <termios.h>
#include <threads.h>
#include <unistd.h>

#include <base/compiler.h>
#include <marcel/io.h>

typedef int marcel_open_fn(const char *path, int flags, ...);
typedef int marcel_openat_fn(int dir, const char *path, int flags, ...);
typedef int marcel_fcntl_fn(int fd, int what, ...);
typedef int marcel_lockf_fn(int fd, int what, off_t n);

/* The mode of an open is there only if a file may be made. */
static inline bool marcel_io_has_mode(int flags)
{
	return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

/* That mode, in a function whose last named argument is `flags`; else 0. */
#define MARCEL_IO_MODE(flags)                                                  \
	({                                                                     \
		mode_t io_mode = 0;                                            \
		va_list io_ap;                                                 \
                                                                               \
		va_start(io_ap, flags);                                        \
		if (marcel_io_has_mode(flags))                                 \
			io_mode = va_arg(io_ap, mode_t);                       \
		va_end(io_ap);                                                 \
		io_mode;                                                       \
	})

BASE_PUBLIC ssize_t marcel_io_read(__typeof__(read) *next, int fd, void *buf,
				   size_t n);
BASE_PUBLIC ssize_t marcel_io_write(__typeof__(write) *next, int fd,
				    const void *buf, size_t n);
BASE_PUBLIC ssize_t marcel_io_readv(__typeof__(readv) *next, int fd,
				    const struct iovec *iov, int count);
BASE_PUBLIC ssize_t marcel_io_writev(__typeof__(writev) *next, int fd,
				     const struct iovec *iov, int count);

BASE_PUBLIC ssize_t marcel_io_recv(__typeof__(recv) *next, int fd, void *buf,
				   size_t n, int flags);
BASE_PUBLIC ssize_t marcel_io_recvfrom(__typeof__(recvfrom) *next, int fd,
				       void *buf, size_t n, int flags,
				       struct sockaddr *from, socklen_t *len);
BASE_PUBLIC ssize_t marcel_io_recvmsg(__typeof__(recvmsg) *next, int fd,
				      struct msghdr *msg, int flags);
BASE_PUBLIC ssize_t marcel_io_send(__typeof__(send) *next, int fd,
				   const void *buf, size_t n, int flags);
BASE_PUBLIC ssize_t marcel_io_sendto(__typeof__(sendto) *next, int fd,
				     const void *buf, size_t n, int flags,
				     const struct sockaddr *to, socklen_t len);
BASE_PUBLIC ssize_t marcel_io_sendmsg(__typeof__(sendmsg) *next, int fd,
				      const struct msghdr *msg, int flags);
BASE_PUBLIC int marcel_io_recvmmsg(__typeof__(recvmmsg) *next, int fd,
				   struct mmsghdr *msgs, unsigned n, int flags,
				   struct timespec *timeout);
BASE_PUBLIC int marcel_io_sendmmsg(__typeof__(sendmmsg) *next, int fd,
				   struct mmsghdr *msgs, unsigned n, int flags);
BASE_PUBLIC int marcel_io_accept(__typeof__(accept) *next, int fd,
				 struct sockaddr *addr, socklen_t *len);
BASE_PUBLIC int marcel_io_accept4(__typeof__(accept4) *next, int fd,
				  struct sockaddr *addr, socklen_t *len,
				  int flags);
BASE_PUBLIC int marcel_io_connect(__typeof__(connect) *next, int fd,
				  const struct sockaddr *addr, socklen_t len);
BASE_PUBLIC int marcel_io_getaddrinfo(__typeof__(getaddrinfo) *next,
				      const char *node, const char *service,
				      const struct addrinfo *hints,
				      struct addrinfo **out);

BASE_PUBLIC int marcel_io_poll(__typeof__(poll) *next, struct pollfd *fds,
			       nfds_t n, int timeout);
BASE_PUBLIC int marcel_io_ppoll(__typeof__(ppoll) *next, struct pollfd *fds,
				nfds_t n, const struct timespec *timeout,
				const sigset_t *mask);
BASE_PUBLIC int marcel_io_select(__typeof__(select) *next, int n, fd_set *in,
				 fd_set *out, fd_set *except,
				 struct timeval *timeout);
BASE_PUBLIC int marcel_io_pselect(__typeof__(pselect) *next, int n, fd_set *in,
				  fd_set *out, fd_set *except,
				  const struct timespec *timeout,
				  const sigset_t *mask);
BASE_PUBLIC int marcel_io_epoll_wait(__typeof__(epoll_wait) *next, int fd,
				     struct epoll_event *out, int max,
				     int timeout);
BASE_PUBLIC int marcel_io_epoll_pwait(__typeof__(epoll_pwait) *next, int fd,
				      struct epoll_event *out, int max,
				      int timeout, const sigset_t *mask);
BASE_PUBLIC int marcel_io_epoll_pwait2(__typeof__(epoll_pwait2) *next, int fd,
				       struct epoll_event *out, int max,
				       const struct timespec *timeout,
				       const sigset_t *mask);

/* For nanosleep() and thrd_sleep(). */
BASE_PUBLIC int marcel_io_nanosleep(__typeof__(nanosleep) *next,
				    const struct timespec *time,
				    struct timespec *left);
BASE_PUBLIC int marcel_io_clock_nanosleep(__typeof__(clock_nanosleep) *next,
					  clockid_t clock, int flags,
					  const struct timespec *time,
					  struct timespec *left);
BASE_PUBLIC int marcel_io_usleep(__typeof__(usleep) *next, unsigned us);
BASE_PUBLIC unsigned marcel_io_sleep(__typeof__(sleep) *next, unsigned s);

BASE_PUBLIC int marcel_io_open(marcel_open_fn *next, const char *path,
			       int flags, mode_t mode);
BASE_PUBLIC int marcel_io_openat(marcel_openat_fn *next, int dir,
				 const char *path, int flags, mode_t mode);
/* For fsync(), fdatasync() and tcdrain(). */
BASE_PUBLIC int marcel_io_sync(__typeof__(fsync) *next, int fd);

BASE_PUBLIC int marcel_io_aio_suspend(__typeof__(aio_suspend) *next,
				      const struct aiocb *const *list, int n,
				      const struct timespec *timeout);

BASE_PUBLIC ssize_t marcel_io_getrandom(__typeof__(getrandom) *next, void *buf,
					size_t n, unsigned flags);

BASE_PUBLIC int marcel_io_flock(__typeof__(flock) *next, int fd, int op);
BASE_PUBLIC int marcel_io_lockf(marcel_lockf_fn *next, int fd, int what,
				off_t n);
BASE_PUBLIC int marcel_io_fcntl(marcel_fcntl_fn *next, int fd, int what,
				void *arg);

/* The calling kernel thread holds one more, or one less, lock of libc's. */
BASE_PUBLIC void marcel_io_holds_lock(int by);

BASE_PUBLIC pid_t marcel_io_wait(__typeof__(wait) *next, int *status);
BASE_PUBLIC pid_t marcel_io_waitpid(__typeof__(waitpid) *next, pid_t pid,
				    int *status, int options);
BASE_PUBLIC pid_t marcel_io_wait3(__typeof__(wait3) *next, int *status,
				  int options, struct rusage *usage);
BASE_PUBLIC pid_t marcel_io_wait4(__typeof__(wait4) *next, pid_t pid,
				  int *status, int options,
				  struct rusage *usage);
BASE_PUBLIC int marcel_io_waitid(__typeof__(waitid) *next, idtype_t type,
				 id_t id, siginfo_t *out, int options);

BASE_PUBLIC int marcel_io_semop(__typeof__(semop) *next, int id,
				struct sembuf *ops, size_t n);
BASE_PUBLIC int marcel_io_semtimedop(__typeof__(semtimedop) *next, int id,
				     struct sembuf *ops, size_t n,
				     const struct timespec *timeout);
BASE_PUBLIC ssize_t marcel_io_msgrcv(__typeof__(msgrcv) *next, int id,
				     void *msg, size_t n, long type, int flags);
BASE_PUBLIC int marcel_io_msgsnd(__typeof__(msgsnd) *next, int id,
				 const void *msg, size_t n, int flags);
BASE_PUBLIC ssize_t marcel_io_mq_receive(__typeof__(mq_receive) *next, mqd_t mq,
					 char *msg, size_t n, unsigned *prio);
BASE_PUBLIC ssize_t marcel_io_mq_timedreceive(__typeof__(mq_timedreceive) *next,
					      mqd_t mq, char *msg, size_t n,
					      unsigned *prio,
					      const struct timespec *deadline);
BASE_PUBLIC int marcel_io_mq_send(__typeof__(mq_send) *next, mqd_t mq,
				  const char *msg, size_t n, unsigned prio);
BASE_PUBLIC int marcel_io_mq_timedsend(__typeof__(mq_timedsend) *next, mqd_t mq,
				       const char *msg, size_t n, unsigned prio,
				       const struct timespec *deadline);
BASE_PUBLIC int marcel_io_sem_wait(__typeof__(sem_wait) *next, sem_t *s);
BASE_PUBLIC int marcel_io_sem_timedwait(__typeof__(sem_timedwait) *next,
					sem_t *s,
					const struct timespec *deadline);
BASE_PUBLIC int marcel_io_sem_clockwait(__typeof__(sem_clockwait) *next,
					sem_t *s, clockid_t clock,
					const struct timespec *deadline);

BASE_PUBLIC int marcel_io_sigtimedwait(__typeof__(sigtimedwait) *next,
				       const sigset_t *set, siginfo_t *info,
				       const struct timespec *timeout);
BASE_PUBLIC int marcel_io_sigwaitinfo(__typeof__(sigwaitinfo) *next,
				      const sigset_t *set, siginfo_t *info);
BASE_PUBLIC int marcel_io_sigwait(__typeof__(sigwait) *next,
				  const sigset_t *set, int *out);
BASE_PUBLIC int marcel_io_pause(__typeof__(pause) *next);
BASE_PUBLIC int marcel_io_sigsuspend(__typeof__(sigsuspend) *next,
				     const sigset_t *mask);

#endif
