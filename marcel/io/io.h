/*
 * How the wrappers wait.
 *
 * A call is tried without blocking first: on LWP 0, and where others are ready,
 * a section costs more than the system call. (RWF_NOWAIT, MSG_DONTWAIT, poll()
 * of no time: never a look followed by a call that blocks, because another
 * thread may take what was seen.) What is left to sleep in goes
 *
 *	in a section		next() on this kernel thread
 *	past the bound		parked; the poller waits, then another try
 *
 * errno is written and read by marcel_os_errno() only: a section may begin on
 * another kernel thread.
 */
#ifndef MARCEL_IO_IO_H
#define MARCEL_IO_IO_H

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <base/clock.h>
#include <marcel/blocking.h>
#include "../os/tls.h"
#include "../sched/block.h"
#include "../thread/cancel.h"
#include "next.h"

/* What came of a call that was tried without blocking. */
enum io_try {
	IO_DONE,   /* all of it, an error too */
	IO_BLOCKS, /* EAGAIN */
	IO_LARGE,  /* not tried: parts of it would go one by one */
	IO_CANNOT, /* this descriptor, or kernel, does not know how to try */
};

enum io_sleep {
	IO_CALL,  /* call next(), then marcel_call_end() */
	IO_RETRY, /* something came; try again, large or not */
};

/* Bytes that are written at once, or not at all, where there is a choice. */
enum { IO_SMALL = PIPE_BUF };

/* A try may take a part: where the rest goes on. */
struct io_rest {
	const struct iovec *iov;
	int count;
	size_t done; /* bytes of the first */
};

/*
 * Whether the caller is a user thread that may sleep. If so the call is a
 * cancellation point; else it is one of libc's, or is none.
 */
static inline bool io_holds(void)
{
	if (likely(!marcel_call_holds()))
		return false;
	marcel_cancel_point();
	return true;
}

/* Dies if there is nothing to read and the descriptor would wait for it. */
void io_refuse(int fd, const char *what);

/*
 * For who is not held, before it reads: a handler (base/pin.h) may take what
 * has come, and dies if it would sleep.
 */
static inline void io_refuse_handler(int fd, const char *what)
{
	if (unlikely(cpu_tls_in_handler()))
		io_refuse(fd, what);
}

static inline bool io_would_block(ssize_t rc)
{
	return rc < 0 && *marcel_os_errno() == EAGAIN;
}

/*
 * Whether next() may be called, then marcel_call_end(), with nothing tried: in
 * a section, or without for who does not wait. False: past the bound.
 */
bool io_begin(int fd);

/*
 * What to do about a descriptor that let a try down. A non-blocking one, and a
 * regular file, give an answer at once or make no promise: call.
 */
enum io_sleep io_sleep(int fd, uint32_t events, enum io_try tried);

/* The bytes of an array that the kernel has accepted. */
size_t io_bytes(const struct iovec *iov, int count);

/* What is left after so many bytes. */
struct io_rest io_skip(const struct iovec *iov, int count, size_t bytes);

/*
 * Write it as the call would have that has written a part already: how much;
 * an error is for the next call to find, and a socket sends no SIGPIPE.
 */
size_t io_write_rest(int fd, struct io_rest rest);

/*
 * Park until one of n descriptors can be had, or until `deadline` (a time of
 * that clock; NULL: none). False: cannot be done.
 */
bool io_sleep_set(const struct pollfd *fds, nfds_t n, clockid_t clock,
		  const struct timespec *deadline);

/* The same for CLOCK_MONOTONIC in nanoseconds; IO_NEVER: none. */
#define IO_NEVER UINT64_MAX
bool io_sleep_ns(const struct pollfd *fds, nfds_t n, uint64_t deadline);

/* Now and so much; IO_NEVER if that cannot be said. */
uint64_t io_deadline(const struct timespec *from_now);

/* The mask for the time of a call: the tick is blocked in it, too. */
static inline const sigset_t *io_mask(const sigset_t *mask, sigset_t *room)
{
	if (mask == NULL)
		return NULL;
	*room = *mask;
	marcel_hush_mask(room);
	return room;
}

static inline bool io_is_time(const struct timespec *t)
{
	return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < 1000000000;
}

/* Not to wait at all; NULL is to wait for ever. */
static inline bool io_is_none(const struct timespec *t)
{
	return t != NULL && t->tv_sec == 0 && t->tv_nsec == 0;
}

#endif
