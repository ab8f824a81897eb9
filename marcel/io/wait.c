/*
 * What a wrapper does when its call would block.
 */
#include "io.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <base/pin.h>

#include "../sched/poller.h"

static bool is_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || (flags & O_NONBLOCK) != 0;
}

/* Then the kernel thread sleeps for so long at most. */
static bool has_timeout(int fd, uint32_t events)
{
	struct timeval t = { 0 };
	socklen_t len = sizeof(t);
	int name = events & EPOLLIN ? SO_RCVTIMEO : SO_SNDTIMEO;

	return getsockopt(fd, SOL_SOCKET, name, &t, &len) == 0 &&
	       (t.tv_sec != 0 || t.tv_usec != 0);
}

bool io_begin(int fd)
{
	return is_nonblocking(fd) || marcel_call_begin();
}

enum io_sleep io_sleep(int fd, uint32_t events, enum io_try tried)
{
	if (io_begin(fd))
		return IO_CALL;
	if (!has_timeout(fd, events) && marcel_poller_wait(fd, events) &&
	    tried != IO_CANNOT)
		return IO_RETRY;
	marcel_call_alone();
	return IO_CALL;
}

BASE_COLD void io_refuse(int fd, const char *what)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLRDHUP };
	int saved = *marcel_os_errno();

	if (!is_nonblocking(fd) && poll(&p, 1, 0) == 0)
		base_handler_check("marcel", what);
	*marcel_os_errno() = saved;
}

/* --- several descriptors, or time --- */

/* The union of what is asked of a descriptor that is named twice. */
static uint32_t events_of(const struct pollfd *fds, nfds_t n, int fd)
{
	uint32_t events = 0;

	for (nfds_t i = 0; i < n; i++)
		if (fds[i].fd == fd)
			events |= (uint16_t)fds[i].events;
	return events;
}

static bool enter_all(int set, const struct pollfd *fds, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++) {
		struct epoll_event ev = { .events = (uint16_t)fds[i].events };
		int fd = fds[i].fd;

		if (fd < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev) == 0)
			continue;
		if (*marcel_os_errno() != EEXIST)
			return false;
		ev.events = events_of(fds, n, fd);
		epoll_ctl(set, EPOLL_CTL_MOD, fd, &ev);
	}
	return true;
}

static int enter_timer(int set, clockid_t clock, const struct timespec *time)
{
	struct itimerspec when = { .it_value = *time };
	struct epoll_event ev = { .events = EPOLLIN };
	int timer = timerfd_create(clock, TFD_CLOEXEC);

	if (timer < 0)
		return -1;
	if (when.it_value.tv_sec == 0 && when.it_value.tv_nsec == 0)
		when.it_value.tv_nsec = 1; /* zero would never fire */
	if (timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL) == 0 &&
	    epoll_ctl(set, EPOLL_CTL_ADD, timer, &ev) == 0)
		return timer;
	close(timer);
	return -1;
}

bool io_sleep_set(const struct pollfd *fds, nfds_t n, clockid_t clock,
		  const struct timespec *deadline)
{
	int set = epoll_create1(EPOLL_CLOEXEC), timer = -1;
	bool slept = false;

	if (set < 0)
		return false;
	if (deadline != NULL && (timer = enter_timer(set, clock, deadline)) < 0)
		goto out;
	if (enter_all(set, fds, n))
		slept = marcel_poller_wait(set, EPOLLIN);
	if (timer >= 0)
		close(timer);
out:
	close(set);
	return slept;
}

bool io_sleep_ns(const struct pollfd *fds, nfds_t n, uint64_t deadline)
{
	struct timespec t = { .tv_sec = (time_t)(deadline / 1000000000),
			      .tv_nsec = (long)(deadline % 1000000000) };

	return io_sleep_set(fds, n, CLOCK_MONOTONIC,
			    deadline == IO_NEVER ? NULL : &t);
}

uint64_t io_deadline(const struct timespec *from_now)
{
	uint64_t ns;

	if (from_now == NULL ||
	    __builtin_mul_overflow((uint64_t)from_now->tv_sec, 1000000000ull,
				   &ns) ||
	    __builtin_add_overflow(ns, (uint64_t)from_now->tv_nsec, &ns) ||
	    __builtin_add_overflow(ns, base_now_ns(), &ns))
		return IO_NEVER;
	return ns;
}
