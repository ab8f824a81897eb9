/*
 * Waiting for several descriptors, and for time.
 *
 * Here the waits are entered first and then poll(2) looks: what comes later is
 * an event.
 */
#include <marcel/errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <base/clock.h>
#include <base/compiler.h>

#include <marcel/marcel.h>

#include <pioman/io.h>

#include "set.h"

enum { ON_STACK = 8 };

/* Of a wait for several; links[0..entered) are at their entries. */
struct several {
	struct piom_io_wait wait;
	struct piom_io_link *links;
	nfds_t entered;
};

static unsigned sides_of(short events)
{
	unsigned sides = PIOM_IO_IN; /* an error, a hang-up */

	if (events & (POLLOUT | POLLWRNORM | POLLWRBAND))
		sides |= PIOM_IO_OUT;
	if (!(events &
	      (POLLIN | POLLPRI | POLLRDNORM | POLLRDBAND | POLLRDHUP)))
		sides &= ~(unsigned)PIOM_IO_IN;
	return sides != 0 ? sides : PIOM_IO_IN;
}

/* Not by the name poll(): that is a cancellation point, and we are entered. */
static BASE_NOINLINE int look(struct pollfd *fds, nfds_t n)
{
	struct timespec now;
	int rc;

	do {
		now = (struct timespec){ 0, 0 }; /* the kernel may change it */
		rc = (int)syscall(SYS_ppoll, fds, n, &now, NULL, 0);
	} while (rc < 0 && errno == EINTR);
	return rc < 0 ? -errno : rc;
}

/*
 * 0; or -errno: some could not be entered. A file that is not ready now,
 * because nothing was asked that it has, never will be.
 */
static int enter(struct several *s, const struct pollfd *fds, nfds_t n)
{
	struct piom_io_seen seen;
	int rc;

	piom_io_wait_init(&s->wait);
	s->entered = 0;
	for (nfds_t i = 0; i < n; i++) {
		struct piom_io_link *l = &s->links[s->entered];

		if (fds[i].fd < 0)
			continue;
		do {
			rc = piom_io_look(fds[i].fd, &seen);
			if (rc == 0)
				rc = piom_io_enter(l, &s->wait, fds[i].fd,
						   sides_of(fds[i].events),
						   NULL);
		} while (rc == -EAGAIN); /* it is being closed */
		if (rc == PIOM_IO_FILE)
			continue;
		if (rc != 0)
			return rc;
		s->entered++;
	}
	return 0;
}

static void leave(struct several *s)
{
	for (nfds_t i = 0; i < s->entered; i++)
		piom_io_leave(&s->links[i]);
}

/* What was closed while we waited: the number may be another file's. */
static int tell_gone(struct several *s, struct pollfd *fds, nfds_t n)
{
	nfds_t k = 0;
	int gone = 0;

	for (nfds_t i = 0; i < n; i++) {
		fds[i].revents = 0;
		if (k == s->entered || s->links[k].fd != fds[i].fd)
			continue; /* it was not entered */
		if (s->links[k++].gone) {
			fds[i].revents = POLLNVAL;
			gone++;
		}
	}
	return gone;
}

/* One sleep; *over: its result counts. */
static int once(struct several *s, struct pollfd *fds, nfds_t n,
		uint64_t deadline, bool *over)
{
	int rc = enter(s, fds, n), found;

	*over = true;
	if (rc != 0) {
		leave(s);
		if (rc == -EBADF)
			*over = false; /* poll() will tell which */
		return rc;
	}
	found = look(fds, n);
	if (found == 0)
		*over = !piom_io_sleep(&s->wait, deadline);
	leave(s);
	if (found == 0) {
		found = tell_gone(s, fds, n);
		*over |= found > 0;
	}
	return found;
}

static int wait_for(struct several *s, struct pollfd *fds, nfds_t n,
		    uint64_t deadline)
{
	bool over;
	int rc;

	for (;;) {
		rc = look(fds, n);
		if (rc != 0 ||
		    (deadline != PIOM_IO_NEVER && base_now_ns() >= deadline))
			return rc;
		rc = once(s, fds, n, deadline, &over);
		if (over)
			return rc;
	}
}

static uint64_t deadline_of(int64_t ns)
{
	return ns < 0 ? PIOM_IO_NEVER : base_now_ns() + (uint64_t)ns;
}

BASE_PUBLIC int piom_wait_fds(struct pollfd *fds, nfds_t n, int64_t ns)
{
	struct piom_io_link here[ON_STACK];
	struct several s = { .links = here };
	uint64_t deadline;
	int rc;

	marcel_testcancel();
	rc = look(fds, n);
	if (rc != 0 || ns == 0)
		return rc;
	deadline = deadline_of(ns);
	if (n > ON_STACK) {
		s.links = calloc(n, sizeof(*s.links));
		if (s.links == NULL)
			return -ENOMEM;
	}
	rc = wait_for(&s, fds, n, deadline);
	if (s.links != here)
		free(s.links);
	return rc;
}

BASE_PUBLIC int piom_sleep(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000),
			      (long)(ns % 1000000000) };

	marcel_nanosleep(&t, NULL);
	return 0;
}
