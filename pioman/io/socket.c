/*
 * Making connections. The system calls have no flag that says "do not wait":
 * accept() looks first if the socket itself does not say so, connect() has it
 * say so for a moment.
 */
#include <marcel/errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/compiler.h>

#include <marcel/io.h>
#include <marcel/marcel.h>

#include <pioman/io.h>

#include "set.h"

static int result(int rc)
{
	return rc < 0 ? -*marcel_errno_location() : rc;
}

static short poll_now(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, 0) > 0 ? p.revents : 0;
}

/* --- accept --- */

/* What does not listen fails, and does not wait. */
static bool listens(int fd)
{
	socklen_t len = sizeof(int);
	int yes = 0;

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len) == 0 &&
	       yes;
}

static BASE_NOINLINE int try_accept(int fd, struct sockaddr *addr,
				    socklen_t *len, int flags)
{
	int how = fcntl(fd, F_GETFL);

	if (how < 0)
		return result(how);
	if (how & O_NONBLOCK)
		return result((int)syscall(SYS_accept4, fd, addr, len, flags));
	if (poll_now(fd, POLLIN) == 0 && listens(fd))
		return -EAGAIN;
	/* In a blocking section: another thread may be faster. */
	return result(marcel_accept4(fd, addr, len, flags));
}

BASE_PUBLIC int piom_accept(int fd, struct sockaddr *addr, socklen_t *len,
			    int flags)
{
	struct piom_io_seen seen;
	int rc;

	for (;;) {
		marcel_testcancel();
		rc = piom_io_look(fd, &seen);
		if (rc < 0)
			return rc;
		rc = try_accept(fd, addr, len, flags);
		if (rc == -EINTR)
			continue;
		if (rc != -EAGAIN)
			return rc;
		rc = piom_io_await(fd, PIOM_IO_IN, &seen);
		if (rc != 0)
			return rc;
	}
}

/* --- connect --- */

/* -EINPROGRESS: it goes on; -EAGAIN: nobody will tell when to try again. */
/* Not by the name connect(): that is a cancellation point. */
static BASE_NOINLINE int try_connect(int fd, const struct sockaddr *addr,
				     socklen_t len)
{
	int how = fcntl(fd, F_GETFL), rc;

	if (how < 0)
		return result(how);
	if (!(how & O_NONBLOCK))
		fcntl(fd, F_SETFL, how | O_NONBLOCK);
	rc = result(syscall(SYS_connect, fd, addr, len));
	if (!(how & O_NONBLOCK))
		fcntl(fd, F_SETFL, how);
	return rc;
}

/*
 * What has become of a connection that was begun: -EAGAIN if nothing yet. An
 * error of the socket is told once.
 */
static BASE_NOINLINE int outcome(int fd)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (poll_now(fd, POLLOUT) == 0)
		return -EAGAIN;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		return -errno;
	return -err;
}

static int wait_connected(int fd)
{
	struct piom_io_seen seen;
	int rc;

	for (;;) {
		rc = piom_io_look(fd, &seen);
		if (rc < 0)
			return rc;
		rc = outcome(fd);
		if (rc != -EAGAIN)
			return rc;
		rc = piom_io_await(fd, PIOM_IO_OUT, &seen);
		if (rc != 0)
			return rc;
	}
}

BASE_PUBLIC int piom_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct piom_io_seen seen;
	int rc;

	marcel_testcancel();
	rc = piom_io_look(fd, &seen);
	if (rc < 0)
		return rc;
	rc = try_connect(fd, addr, len);
	if (rc == -EINPROGRESS || rc == -EINTR)
		return wait_connected(fd);
	if (rc == -EAGAIN && addr->sa_family == AF_UNIX)
		do
			rc = result(marcel_connect(fd, addr, len));
		while (rc == -EINTR);
	return rc;
}

BASE_PUBLIC int piom_close(int fd)
{
	return piom_io_close(fd);
}
