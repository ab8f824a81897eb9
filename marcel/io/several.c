/*
 * poll(), select() and epoll_wait().
 *
 * Even one that does not wait fails with EINTR if a tick comes while the kernel
 * looks: then it looks again. With a mask the tick is in that.
 */
#include "io.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <base/pin.h>

static const struct timespec no_time;

static bool was_interrupted(int rc)
{
	return rc < 0 && *marcel_os_errno() == EINTR;
}

static uint64_t ms_deadline(int timeout)
{
	struct timespec t = { timeout / 1000, timeout % 1000 * 1000000L };

	return io_deadline(timeout < 0 ? NULL : &t);
}

/* --- poll --- */

static int poll_now(__typeof__(poll) *next, struct pollfd *fds, nfds_t n)
{
	int rc;

	do
		rc = next(fds, n, 0);
	while (was_interrupted(rc));
	return rc;
}

int marcel_io_poll(__typeof__(poll) *next, struct pollfd *fds, nfds_t n,
		   int timeout)
{
	uint64_t deadline;
	int rc;

	if (likely(!io_holds())) {
		if (likely(!cpu_tls_in_handler()) || timeout == 0)
			return next(fds, n, timeout);
		rc = poll_now(next, fds, n);
		if (rc == 0)
			base_handler_check("marcel", "poll()");
		return rc;
	}
	rc = poll_now(next, fds, n);
	if (rc != 0 || timeout == 0)
		return rc;
	if (!marcel_call_begin()) {
		deadline = ms_deadline(timeout);
		while (io_sleep_ns(fds, n, deadline)) {
			rc = poll_now(next, fds, n);
			if (rc != 0 || base_now_ns() >= deadline)
				return rc;
		}
	}
	marcel_call_alone();
	rc = next(fds, n, timeout);
	marcel_call_end(rc < 0);
	return rc;
}

static int ppoll_now(__typeof__(ppoll) *next, struct pollfd *fds, nfds_t n,
		     const sigset_t *mask)
{
	int rc;

	do
		rc = next(fds, n, &no_time, mask);
	while (mask == NULL && was_interrupted(rc));
	return rc;
}

int marcel_io_ppoll(__typeof__(ppoll) *next, struct pollfd *fds, nfds_t n,
		    const struct timespec *timeout, const sigset_t *mask)
{
	uint64_t deadline;
	sigset_t room;
	int rc;

	if (likely(!io_holds()) || (timeout != NULL && !io_is_time(timeout)))
		return next(fds, n, timeout, mask);
	mask = io_mask(mask, &room);
	rc = ppoll_now(next, fds, n, mask);
	if (rc != 0 || io_is_none(timeout))
		return rc;
	if (!marcel_call_begin()) {
		deadline = io_deadline(timeout);
		while (io_sleep_ns(fds, n, deadline)) {
			rc = ppoll_now(next, fds, n, mask);
			if (rc != 0 || base_now_ns() >= deadline)
				return rc;
		}
	}
	marcel_call_alone();
	rc = next(fds, n, timeout, mask);
	marcel_call_end(rc < 0);
	return rc;
}

/* --- select --- */

/* A call changes its sets, and there is more than one call. */
struct sets {
	fd_set *user[3];
	fd_set copy[3];
	int n;
};

static bool copy_sets(struct sets *s, int n, fd_set *in, fd_set *out,
		      fd_set *except)
{
	s->user[0] = in;
	s->user[1] = out;
	s->user[2] = except;
	s->n = n;
	if (n < 0 || n > FD_SETSIZE)
		return false;
	for (int i = 0; i < 3; i++)
		if (s->user[i] != NULL)
			s->copy[i] = *s->user[i];
	return true;
}

static void restore_sets(struct sets *s)
{
	for (int i = 0; i < 3; i++)
		if (s->user[i] != NULL)
			*s->user[i] = s->copy[i];
}

static nfds_t list_sets(const struct sets *s, struct pollfd *out)
{
	static const short events[3] = { POLLIN | POLLRDNORM | POLLRDBAND,
					 POLLOUT, POLLPRI };
	nfds_t n = 0;

	for (int fd = 0; fd < s->n; fd++) {
		out[n] = (struct pollfd){ .fd = fd };
		for (int i = 0; i < 3; i++)
			if (s->user[i] != NULL && FD_ISSET(fd, &s->copy[i]))
				out[n].events |= events[i];
		if (out[n].events != 0)
			n++;
	}
	return n;
}

static bool sleep_sets(const struct sets *s, uint64_t deadline)
{
	struct pollfd *fds = malloc((size_t)(s->n + 1) * sizeof(*fds));
	bool slept =
		fds != NULL && io_sleep_ns(fds, list_sets(s, fds), deadline);

	free(fds);
	return slept;
}

/* Linux tells how much of the time was left. */
static void tell_left(struct timeval *timeout, uint64_t deadline)
{
	uint64_t now = base_now_ns();
	uint64_t left = deadline > now ? deadline - now : 0;

	if (timeout == NULL || deadline == IO_NEVER)
		return;
	timeout->tv_sec = (time_t)(left / 1000000000);
	timeout->tv_usec = (suseconds_t)(left % 1000000000 / 1000);
}

static int select_now(__typeof__(select) *next, struct sets *s)
{
	struct timeval none = { 0 };
	int rc;

	do {
		restore_sets(s);
		rc = next(s->n, s->user[0], s->user[1], s->user[2], &none);
	} while (was_interrupted(rc));
	return rc;
}

int marcel_io_select(__typeof__(select) *next, int n, fd_set *in, fd_set *out,
		     fd_set *except, struct timeval *timeout)
{
	uint64_t deadline = IO_NEVER;
	struct timespec t;
	struct sets s;
	int rc;

	if (likely(!io_holds()) ||
	    (timeout != NULL && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return next(n, in, out, except, timeout);
	if (!copy_sets(&s, n, in, out, except)) {
		marcel_call_enter();
	} else {
		rc = select_now(next, &s);
		if (rc != 0 || (timeout != NULL && timeout->tv_sec == 0 &&
				timeout->tv_usec == 0))
			return rc;
		if (timeout != NULL) {
			t.tv_sec = timeout->tv_sec + timeout->tv_usec / 1000000;
			t.tv_nsec = timeout->tv_usec % 1000000 * 1000;
			deadline = io_deadline(&t);
		}
		if (!marcel_call_begin()) {
			while (sleep_sets(&s, deadline)) {
				rc = select_now(next, &s);
				tell_left(timeout, deadline);
				if (rc != 0 || base_now_ns() >= deadline)
					return rc;
			}
		}
		restore_sets(&s);
	}
	marcel_call_alone();
	rc = next(n, in, out, except, timeout);
	marcel_call_end(rc < 0);
	return rc;
}

static int pselect_now(__typeof__(pselect) *next, struct sets *s,
		       const sigset_t *mask)
{
	int rc;

	do {
		restore_sets(s);
		rc = next(s->n, s->user[0], s->user[1], s->user[2], &no_time,
			  mask);
	} while (mask == NULL && was_interrupted(rc));
	return rc;
}

int marcel_io_pselect(__typeof__(pselect) *next, int n, fd_set *in, fd_set *out,
		      fd_set *except, const struct timespec *timeout,
		      const sigset_t *mask)
{
	uint64_t deadline;
	sigset_t room;
	struct sets s;
	int rc;

	if (likely(!io_holds()) || (timeout != NULL && !io_is_time(timeout)))
		return next(n, in, out, except, timeout, mask);
	mask = io_mask(mask, &room);
	if (!copy_sets(&s, n, in, out, except)) {
		marcel_call_enter();
	} else {
		rc = pselect_now(next, &s, mask);
		if (rc != 0 || io_is_none(timeout))
			return rc;
		if (!marcel_call_begin()) {
			deadline = io_deadline(timeout);
			while (sleep_sets(&s, deadline)) {
				rc = pselect_now(next, &s, mask);
				if (rc != 0 || base_now_ns() >= deadline)
					return rc;
			}
		}
		restore_sets(&s);
	}
	marcel_call_alone();
	rc = next(n, in, out, except, timeout, mask);
	marcel_call_end(rc < 0);
	return rc;
}

/* --- epoll --- */

static int epoll_now(__typeof__(epoll_wait) *next, int fd,
		     struct epoll_event *out, int max)
{
	int rc;

	do
		rc = next(fd, out, max, 0);
	while (was_interrupted(rc));
	return rc;
}

static int epoll_pnow(__typeof__(epoll_pwait) *next, int fd,
		      struct epoll_event *out, int max, const sigset_t *mask)
{
	int rc;

	do
		rc = next(fd, out, max, 0, mask);
	while (mask == NULL && was_interrupted(rc));
	return rc;
}

static int epoll_pnow2(__typeof__(epoll_pwait2) *next, int fd,
		       struct epoll_event *out, int max, const sigset_t *mask)
{
	int rc;

	do
		rc = next(fd, out, max, &no_time, mask);
	while (mask == NULL && was_interrupted(rc));
	return rc;
}

int marcel_io_epoll_wait(__typeof__(epoll_wait) *next, int fd,
			 struct epoll_event *out, int max, int timeout)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };
	uint64_t deadline;
	int rc;

	if (likely(!io_holds()))
		return next(fd, out, max, timeout);
	rc = epoll_now(next, fd, out, max);
	if (rc != 0 || timeout == 0)
		return rc;
	if (!marcel_call_begin()) {
		deadline = ms_deadline(timeout);
		while (io_sleep_ns(&one, 1, deadline)) {
			rc = epoll_now(next, fd, out, max);
			if (rc != 0 || base_now_ns() >= deadline)
				return rc;
		}
	}
	marcel_call_alone();
	rc = next(fd, out, max, timeout);
	marcel_call_end(rc < 0);
	return rc;
}

int marcel_io_epoll_pwait(__typeof__(epoll_pwait) *next, int fd,
			  struct epoll_event *out, int max, int timeout,
			  const sigset_t *mask)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };
	uint64_t deadline;
	sigset_t room;
	int rc;

	if (likely(!io_holds()))
		return next(fd, out, max, timeout, mask);
	mask = io_mask(mask, &room);
	rc = epoll_pnow(next, fd, out, max, mask);
	if (rc != 0 || timeout == 0)
		return rc;
	if (!marcel_call_begin()) {
		deadline = ms_deadline(timeout);
		while (io_sleep_ns(&one, 1, deadline)) {
			rc = epoll_pnow(next, fd, out, max, mask);
			if (rc != 0 || base_now_ns() >= deadline)
				return rc;
		}
	}
	marcel_call_alone();
	rc = next(fd, out, max, timeout, mask);
	marcel_call_end(rc < 0);
	return rc;
}

int marcel_io_epoll_pwait2(__typeof__(epoll_pwait2) *next, int fd,
			   struct epoll_event *out, int max,
			   const struct timespec *timeout, const sigset_t *mask)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };
	uint64_t deadline;
	sigset_t room;
	int rc;

	if (likely(!io_holds()) || (timeout != NULL && !io_is_time(timeout)))
		return next(fd, out, max, timeout, mask);
	mask = io_mask(mask, &room);
	rc = epoll_pnow2(next, fd, out, max, mask);
	if (rc != 0 || io_is_none(timeout))
		return rc;
	if (!marcel_call_begin()) {
		deadline = io_deadline(timeout);
		while (io_sleep_ns(&one, 1, deadline)) {
			rc = epoll_pnow2(next, fd, out, max, mask);
			if (rc != 0 || base_now_ns() >= deadline)
				return rc;
		}
	}
	marcel_call_alone();
	rc = next(fd, out, max, timeout, mask);
	marcel_call_end(rc < 0);
	return rc;
}

/* --- the public names --- */

BASE_PUBLIC int marcel_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	return marcel_io_poll(poll, fds, n, timeout);
}

BASE_PUBLIC int marcel_ppoll(struct pollfd *fds, nfds_t n,
			     const struct timespec *timeout,
			     const sigset_t *mask)
{
	return marcel_io_ppoll(ppoll, fds, n, timeout, mask);
}

BASE_PUBLIC int marcel_select(int n, fd_set *in, fd_set *out, fd_set *except,
			      struct timeval *timeout)
{
	return marcel_io_select(select, n, in, out, except, timeout);
}

BASE_PUBLIC int marcel_pselect(int n, fd_set *in, fd_set *out, fd_set *except,
			       const struct timespec *timeout,
			       const sigset_t *mask)
{
	return marcel_io_pselect(pselect, n, in, out, except, timeout, mask);
}

BASE_PUBLIC int marcel_epoll_wait(int fd, struct epoll_event *out, int max,
				  int timeout)
{
	return marcel_io_epoll_wait(epoll_wait, fd, out, max, timeout);
}

BASE_PUBLIC int marcel_epoll_pwait(int fd, struct epoll_event *out, int max,
				   int timeout, const sigset_t *mask)
{
	return marcel_io_epoll_pwait(epoll_pwait, fd, out, max, timeout, mask);
}

BASE_PUBLIC int marcel_epoll_pwait2(int fd, struct epoll_event *out, int max,
				    const struct timespec *timeout,
				    const sigset_t *mask)
{
	return marcel_io_epoll_pwait2(epoll_pwait2, fd, out, max, timeout,
				      mask);
}
