/*
 * Calls on descriptors that make the calling thread wait, and no kernel thread:
 * any number of user threads wait in one epoll set, which VPs ask when they are
 * idle, when threads switch, and which wakes them when they sleep.
 *
 * Each does what the system call of that name does on a descriptor that blocks,
 * O_NONBLOCK or not, and returns what it returns or, as all of pioman, a
 * negative errno; errno itself is of no meaning afterwards. Besides those of
 * the call: -EPERM, pioman does not run (piom_close() and piom_sleep() work all
 * the same, and piom_wait_fds() where it need not wait); -EMFILE, also for a
 * descriptor of 2^20 and more; -ENOMEM and -ENOSPC of epoll_ctl(2). A call is
 * never interrupted by a signal: no -EINTR. SO_RCVTIMEO and SO_SNDTIMEO are not
 * heeded; and with O_NONBLOCK a Unix socket whose peer's backlog is full is
 * refused (-EAGAIN).
 *
 * From user threads and foreign threads alike, also several at a time for one
 * descriptor, to read and to write; not from ltasks: one that would wait there
 * ends the process. One event
 * wakes all who wait for it: they try again in any order. A call that need not
 * wait causes no switch.
 *
 * What is waited for is not closed by close(2), which would tell nobody, as in
 * the kernel, but by piom_close(). After a close(2) who still waits does so
 * until another thread waits for a descriptor of the same number, and then
 * gets -EBADF.
 *
 * A kernel thread is used after all, in a blocking section
 * (<marcel/blocking.h>), where the kernel gives no other way: regular files
 * whose contents are not in memory; connect to a Unix socket that has too many
 * waiting; and who is overtaken: on a descriptor without O_NONBLOCK two threads
 * accept, or read from other than a socket or a pipe, and there is something
 * for one only.
 *
 * They are cancellation points (<marcel/cancel.h>) when they begin, and when
 * something has come and was taken by another thread; while it waits a thread
 * is not cancelled.
 */
#ifndef PIOMAN_IO_H
#define PIOMAN_IO_H

#include <marcel/errno.h>

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Some bytes, at least one unless n is 0; 0: the end. -errno */
ssize_t piom_read(int fd, void *buf, size_t n);
ssize_t piom_readv(int fd, const struct iovec *iov, int count);

/*
 * All n bytes, unless there is an error after some: then so many, and the error
 * is the next call's. -errno; -EPIPE comes without a SIGPIPE. What several
 * threads write to a stream at once may be mixed if it must wait for room.
 */
ssize_t piom_write(int fd, const void *buf, size_t n);
ssize_t piom_writev(int fd, const struct iovec *iov, int count);

/*
 * As accept4(2): the new descriptor, or -errno. If several threads accept, the
 * socket should have O_NONBLOCK.
 */
int piom_accept(int fd, struct sockaddr *addr, socklen_t *len, int flags);

/*
 * 0: connected; -errno. A socket without O_NONBLOCK has it for the time of the
 * system call, not of the wait. After an error the socket is of no more use.
 */
int piom_connect(int fd, const struct sockaddr *addr, socklen_t len);

/*
 * Close fd. Who waits for it gets -EBADF, whether or not the file has other
 * names. 0, or -errno: except with -EBADF it is closed all the same.
 */
int piom_close(int fd);

/*
 * As poll(2), for so many nanoseconds, or for ever if that is negative: how
 * many have `revents`; 0, none in time; or -errno, -ENOMEM also for want of
 * memory for more than eight. What piom_close() closes meanwhile has POLLNVAL.
 * (piom_poll() has another meaning: <pioman/pioman.h>.)
 */
int piom_wait_fds(struct pollfd *fds, nfds_t n, int64_t ns);

/* Let so many nanoseconds pass, at least; by marcel's timers. 0 */
int piom_sleep(uint64_t ns);

#ifdef __cplusplus
}
#endif

#endif
