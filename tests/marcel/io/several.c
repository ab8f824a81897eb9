/*
 * marcel/io/several.c, sleep.c, child.c: waits for several things, for time
 * and for children.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <base/clock.h>
#include <marcel/io.h>
#include "../with.h"

enum { FDS = 5 };

static int fds[FDS][2];
static int set; /* epoll's, of all of them */

static void open_all(void)
{
	set = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < FDS; i++) {
		struct epoll_event ev = { .events = EPOLLIN, .data.fd = i };

		CHECK_INT(pipe2(fds[i], O_CLOEXEC), 0);
		CHECK_INT(epoll_ctl(set, EPOLL_CTL_ADD, fds[i][0], &ev), 0);
	}
}

static void close_all(void)
{
	close(set);
	for (int i = 0; i < FDS; i++) {
		close(fds[i][0]);
		close(fds[i][1]);
	}
}

/* As in rw.c: with sections and past the bound of LWPs. */
static void in_all_ways(void (*body)(void))
{
	static const int nvp[] = { 1, 4, 1, 4 };
	static const char *const max[] = { "64", "64", "1", "1" };

	for (int i = 0; i < 4; i++) {
		struct marcel_config config = { .nvp = nvp[i] };

		setenv("MARCEL_LWP_MAX", max[i], 1);
		CHECK_INT(marcel_init(&config), 0);
		unsetenv("MARCEL_LWP_MAX");
		open_all();
		body();
		close_all();
		CHECK_INT(marcel_end(), 0);
	}
}

/* Each way to wait: which descriptor can be read; -1: none in time; -2: EINTR
 * or another error. */
typedef int wait_fn(int ms);

static int by_poll(int ms)
{
	struct pollfd p[FDS + 1] = { [FDS] = { .fd = -1 } };
	int n;

	for (int i = 0; i < FDS; i++)
		p[i] = (struct pollfd){ .fd = fds[i][0], .events = POLLIN };
	n = marcel_poll(p, FDS + 1, ms);
	for (int i = 0; n == 1 && i < FDS; i++)
		if (p[i].revents == POLLIN)
			return i;
	return n == 0 ? -1 : -2;
}

static struct timespec *time_of(int ms, struct timespec *t)
{
	t->tv_sec = ms / 1000;
	t->tv_nsec = ms % 1000 * 1000000L;
	return ms < 0 ? NULL : t;
}

/* The same descriptor twice. */
static int by_ppoll(int ms)
{
	struct pollfd p[2 * FDS];
	struct timespec t;
	int n;

	for (int i = 0; i < 2 * FDS; i++)
		p[i] = (struct pollfd){ .fd = fds[i % FDS][0],
					.events = i < FDS ? POLLIN : POLLPRI };
	n = marcel_ppoll(p, 2 * FDS, time_of(ms, &t), NULL);
	for (int i = 0; n == 1 && i < FDS; i++)
		if (p[i].revents == POLLIN)
			return i;
	return n == 0 ? -1 : -2;
}

static int found(int n, const fd_set *in)
{
	int which = -2;

	for (int i = 0; i < FDS; i++)
		if (FD_ISSET(fds[i][0], in)) {
			CHECK_INT(n, 1);
			which = i;
		}
	return n == 0 && which == -2 ? -1 : which;
}

static int by_select(int ms)
{
	struct timeval t = { ms / 1000, ms % 1000 * 1000 };
	fd_set in;
	int n;

	FD_ZERO(&in);
	for (int i = 0; i < FDS; i++)
		FD_SET(fds[i][0], &in);
	n = marcel_select(fds[FDS - 1][1] + 1, &in, NULL, NULL,
			  ms < 0 ? NULL : &t);
	if (n == 0)
		CHECK_INT(t.tv_sec * 1000000 + t.tv_usec, 0);
	return found(n, &in);
}

static int by_pselect(int ms)
{
	struct timespec t;
	fd_set in;
	int n;

	FD_ZERO(&in);
	for (int i = 0; i < FDS; i++)
		FD_SET(fds[i][0], &in);
	n = marcel_pselect(fds[FDS - 1][1] + 1, &in, NULL, NULL,
			   time_of(ms, &t), NULL);
	return found(n, &in);
}

static int by_epoll(int ms)
{
	struct epoll_event ev[FDS];
	int n = marcel_epoll_wait(set, ev, FDS, ms);

	return n == 1 ? ev[0].data.fd : n == 0 ? -1 : -2;
}

static int by_epoll_p(int ms)
{
	struct epoll_event ev[FDS];
	int n = marcel_epoll_pwait(set, ev, FDS, ms, NULL);

	return n == 1 ? ev[0].data.fd : n == 0 ? -1 : -2;
}

static int by_epoll_p2(int ms)
{
	struct epoll_event ev[FDS];
	struct timespec t;
	int n = marcel_epoll_pwait2(set, ev, FDS, time_of(ms, &t), NULL);

	/* Some kernels, and emulators, do not have it. */
	if (n < 0 && errno == ENOSYS)
		return by_epoll_p(ms);
	return n == 1 ? ev[0].data.fd : n == 0 ? -1 : -2;
}

static wait_fn *const ways[] = { by_poll,  by_ppoll,   by_select,  by_pselect,
				 by_epoll, by_epoll_p, by_epoll_p2 };

static void *waits_for_3(void *arg)
{
	wait_fn *way = ways[(intptr_t)arg];
	char c;

	CHECK_INT(way(-1), 3);
	CHECK_INT(marcel_read(fds[3][0], &c, 1), 1);
	return arg;
}

/* One after the other, with main running meanwhile. */
static void waits(void)
{
	marcel_t t;

	for (size_t i = 0; i < BASE_ARRAY_LEN(ways); i++) {
		uint64_t before = base_now_ns();

		CHECK_INT(ways[i](0), -1);
		CHECK_INT(ways[i](1), -1);
		CHECK(base_now_ns() - before >= 1000000);
		CHECK_INT(marcel_create(&t, NULL, waits_for_3, (void *)i), 0);
		for (int n = 0; n < 100; n++)
			marcel_yield();
		CHECK_INT(marcel_write(fds[3][1], "x", 1), 1);
		CHECK_INT(marcel_join(t, NULL), 0);
	}
}

static void *waits_too(void *arg)
{
	waits();
	return arg;
}

static void waits_everywhere(void)
{
	marcel_t t;

	waits();
	CHECK_INT(marcel_create(&t, NULL, waits_too, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST(who_waits_for_several_gets_the_one_that_is_ready)
{
	in_all_ways(waits_everywhere);
}

TEST_VPS(bad_times_are_refused)
{
	struct timespec bad = { 0, 1000000000 }, left;
	struct timeval bad_too = { -1, 0 };

	CHECK_INT(marcel_ppoll(NULL, 0, &bad, NULL), -1);
	CHECK_INT(errno, EINVAL);
	CHECK_INT(marcel_pselect(0, NULL, NULL, NULL, &bad, NULL), -1);
	CHECK_INT(errno, EINVAL);
	CHECK_INT(marcel_select(0, NULL, NULL, NULL, &bad_too), -1);
	CHECK_INT(errno, EINVAL);
	CHECK_INT(nanosleep(&bad, &left), -1);
	CHECK_INT(errno, EINVAL);
	CHECK_INT(clock_nanosleep(CLOCK_MONOTONIC, 0, &bad, NULL), EINVAL);
	CHECK_INT(marcel_epoll_wait(-1, NULL, 1, 1), -1);
	CHECK_INT(errno, EBADF);
}

/* --- time --- */

static void *sleeps(void *arg)
{
	struct timespec t = { 0, 1000000 }, until;
	uint64_t before = base_now_ns();

	CHECK_INT(nanosleep(&t, NULL), 0);
	CHECK_INT(usleep(1000), 0);
	CHECK_INT(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL), 0);
	CHECK(base_now_ns() - before >= 3000000);
	clock_gettime(CLOCK_REALTIME, &until);
	CHECK_INT(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL),
		  0);
	CHECK_INT(sleep(0), 0);
	CHECK_INT(usleep(0), 0);
	return arg;
}

static void sleepers(void)
{
	marcel_t t[20];

	sleeps(NULL);
	for (int i = 0; i < 20; i++)
		CHECK_INT(marcel_create(&t[i], NULL, sleeps, NULL), 0);
	for (int i = 0; i < 20; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

TEST(nobody_wakes_before_the_time)
{
	in_all_ways(sleepers);
}

/* --- children --- */

static pid_t child;
static int gate[2]; /* the child ends when it is closed */

static void make_child(void)
{
	char c;

	CHECK_INT(pipe2(gate, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		close(gate[1]);
		(void)!read(gate[0], &c, 1);
		_exit(7);
	}
	CHECK(child > 0);
	close(gate[0]);
}

static void *waits_for_child(void *arg)
{
	struct rusage usage;
	siginfo_t info;
	int status = 0;

	switch ((intptr_t)arg) {
	case 0:
		CHECK_INT(marcel_waitpid(child, &status, 0), child);
		break;
	case 1:
		CHECK_INT(marcel_wait4(child, &status, 0, &usage), child);
		break;
	case 2:
		CHECK_INT(marcel_waitid(P_PID, (id_t)child, &info, WEXITED), 0);
		CHECK_INT(info.si_pid, child);
		CHECK_INT(info.si_status, 7);
		return arg;
	case 3:
		CHECK_INT(marcel_wait(&status), child);
		break;
	case 4:
		CHECK_INT(marcel_wait3(&status, 0, &usage), child);
		break;
	}
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), 7);
	return arg;
}

static void children(int ways)
{
	siginfo_t info = { .si_pid = 1 };
	marcel_t t;

	for (intptr_t way = 0; way < ways; way++) {
		make_child();
		CHECK_INT(marcel_waitpid(child, NULL, WNOHANG), 0);
		CHECK_INT(marcel_wait3(NULL, WNOHANG, NULL), 0);
		CHECK_INT(marcel_waitid(P_PID, (id_t)child, &info,
					WEXITED | WNOHANG),
			  0);
		CHECK_INT(info.si_pid, 0);
		CHECK_INT(marcel_create(&t, NULL, waits_for_child, (void *)way),
			  0);
		for (int n = 0; n < 100; n++)
			marcel_yield();
		close(gate[1]);
		CHECK_INT(marcel_join(t, NULL), 0);
	}
	CHECK_INT(marcel_waitpid(child, NULL, 0), -1);
	CHECK_INT(errno, ECHILD);
	CHECK_INT(marcel_waitid(P_PID, (id_t)child, NULL, WEXITED), -1);
	CHECK_INT(errno, ECHILD);
}

TEST_VPS(who_waits_for_a_child_holds_up_nobody)
{
	children(5);
}

static void known_children(void)
{
	children(3);
}

TEST(past_the_bound_a_child_can_be_waited_for)
{
	in_all_ways(known_children);
}
