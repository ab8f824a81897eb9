/*
 * marcel/sched/call.c: who sleeps in the kernel is cancelled there, and what a
 * call has done is not lost.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <marcel/io.h>
#include "../../../marcel/io/next.h"
#include "../../../marcel/thread/thread.h"
#include "../../parent.h"
#include "../with.h"

/* What nothing comes from, or goes into. */
struct ends {
	int pipe[2], full[2], socket[2], listener;
	pid_t child;
};

static long wait_read(struct ends *e)
{
	char c;

	return marcel_read(e->pipe[0], &c, 1);
}

static long wait_readv(struct ends *e)
{
	char c;
	struct iovec iov = { &c, 1 };

	return marcel_readv(e->pipe[0], &iov, 1);
}

static long wait_write(struct ends *e)
{
	return marcel_write(e->full[1], "", 1);
}

static long wait_recv(struct ends *e)
{
	char c;

	return marcel_recv(e->socket[0], &c, 1, 0);
}

static long wait_accept(struct ends *e)
{
	return marcel_accept(e->listener, NULL, NULL);
}

static long wait_poll(struct ends *e)
{
	struct pollfd p = { .fd = e->pipe[0], .events = POLLIN };

	return marcel_poll(&p, 1, -1);
}

static long wait_select(struct ends *e)
{
	fd_set in;

	FD_ZERO(&in);
	FD_SET(e->pipe[0], &in);
	return marcel_select(e->pipe[0] + 1, &in, NULL, NULL, NULL);
}

static long wait_nanosleep(struct ends *e)
{
	const struct timespec long_time = { .tv_sec = 1000000 };

	return marcel_io_nanosleep(nanosleep, &long_time, NULL);
}

static long wait_sleep(struct ends *e)
{
	return marcel_io_sleep(sleep, 1000000);
}

static long wait_thrd_sleep(struct ends *e)
{
	const struct timespec long_time = { .tv_sec = 1000000 };

	return marcel_io_nanosleep(thrd_sleep, &long_time, NULL);
}

static long wait_child(struct ends *e)
{
	return marcel_waitpid(e->child, NULL, 0);
}

static long (*const kinds[])(struct ends *) = {
	wait_read,   wait_readv,      wait_write,  wait_recv,
	wait_accept, wait_poll,       wait_select, wait_nanosleep,
	wait_sleep,  wait_thrd_sleep, wait_child,
};

static void ends_open(struct ends *e)
{
	struct sockaddr_storage any = { .ss_family = AF_UNIX };
	char block[4096] = { 0 };

	CHECK_INT(pipe(e->pipe), 0);
	CHECK_INT(pipe(e->full), 0);
	CHECK_INT(fcntl(e->full[1], F_SETFL, O_NONBLOCK), 0);
	while (write(e->full[1], block, sizeof(block)) > 0)
		;
	CHECK_INT(fcntl(e->full[1], F_SETFL, 0), 0);
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, e->socket), 0);
	e->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_INT(bind(e->listener, (struct sockaddr *)&any,
		       sizeof(any.ss_family)),
		  0);
	CHECK_INT(listen(e->listener, 1), 0);
	e->child = parent_forks(fork);
	CHECK(e->child >= 0);
	if (e->child > 0)
		return;
	for (;;)
		pause();
}

static void ends_close(struct ends *e)
{
	for (int i = 0; i < 2; i++) {
		CHECK_INT(close(e->pipe[i]), 0);
		CHECK_INT(close(e->full[i]), 0);
		CHECK_INT(close(e->socket[i]), 0);
	}
	CHECK_INT(close(e->listener), 0);
	CHECK_INT(kill(e->child, SIGKILL), 0);
	CHECK_INT(waitpid(e->child, NULL, 0), e->child);
}

struct victim {
	struct ends *e;
	long (*wait)(struct ends *e);
	bool cleaned;
};

static void clean(void *arg)
{
	((struct victim *)arg)->cleaned = true;
}

static void *be_victim(void *arg)
{
	struct victim *v = arg;

	marcel_cleanup_push(clean, v);
	v->wait(v->e);
	marcel_cleanup_pop(0);
	return NULL;
}

/* It may be in the kernel, or about to be. */
static void until_shown(marcel_t t)
{
	while (load_acquire(&t->state) == MARCEL_T_NEW ||
	       load_relaxed(&t->stack->wait) == NULL)
		marcel_yield();
}

TEST_VPS(who_sleeps_in_the_kernel_is_cancelled)
{
	struct ends e;
	marcel_t t;
	void *value;

	ends_open(&e);
	for (size_t i = 0; i < BASE_ARRAY_LEN(kinds); i++)
		for (int n = 0; n < 10; n++) {
			struct victim v = { &e, kinds[i] };

			CHECK_INT(marcel_create(&t, NULL, be_victim, &v), 0);
			if (n % 2)
				until_shown(t);
			CHECK_INT(marcel_cancel(t), 0);
			CHECK_INT(marcel_join(t, &value), 0);
			CHECK_PTR(value, MARCEL_CANCELED);
			CHECK(v.cleaned);
		}
	ends_close(&e);
}

/* --- a call of libc's that makes one of ours --- */

static ATOMIC(int) vp_goes_on;

static void *go_on(void *arg)
{
	CHECK_INT(marcel_write(*(int *)arg, "", 1), 1);
	store_release(&vp_goes_on, 1);
	return arg;
}

/* Once another LWP has the VP, and somebody wants us to end. */
static ssize_t read_within(int fd, void *buf, size_t n)
{
	while (load_acquire(&vp_goes_on) == 0)
		;
	CHECK_INT(marcel_cancel(marcel_self()), 0);
	return marcel_read(fd, buf, n);
}

static void *read_twice(void *arg)
{
	marcel_t me = marcel_self(), other;
	int *p = arg;
	char c;

	CHECK_INT(marcel_create(&other, NULL, go_on, &p[1]), 0);
	CHECK_INT(marcel_detach(other), 0);
	CHECK_INT(marcel_io_read(read_within, p[0], &c, 1), 1);
	CHECK_PTR(load_relaxed(&me->stack->wait), NULL);
	p[0] = -1; /* it was read */
	marcel_testcancel();
	return NULL;
}

static void call_within_a_call(void)
{
	int p[2], end;
	void *value;
	marcel_t t;

	store_relaxed(&vp_goes_on, 0);
	CHECK_INT(pipe(p), 0);
	end = p[0];
	CHECK_INT(marcel_create(&t, NULL, read_twice, p), 0);
	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_PTR(value, MARCEL_CANCELED);
	CHECK_INT(p[0], -1);
	CHECK_INT(close(end), 0);
	CHECK_INT(close(p[1]), 0);
}

TEST(who_is_in_a_call_ends_after_it)
{
	with_vps(1, call_within_a_call);
}

static ssize_t end_within(int fd, void *buf, size_t n)
{
	marcel_exit(buf);
}

static void *end_in_a_call(void *arg)
{
	marcel_io_read(end_within, *(int *)arg, arg, 1);
	return NULL;
}

/* Its LWP may wait for others, and what it showed is not theirs. */
TEST_VPS(who_ends_in_a_call_leaves_nothing)
{
	struct ends e;
	void *value;
	marcel_t t;

	ends_open(&e);
	for (int i = 0; i < 20; i++) {
		struct victim v = { &e, wait_read };

		CHECK_INT(marcel_create(&t, NULL, end_in_a_call, &e.pipe[0]),
			  0);
		CHECK_INT(marcel_join(t, &value), 0);
		CHECK_PTR(value, &e.pipe[0]);
		CHECK_INT(marcel_create(&t, NULL, be_victim, &v), 0);
		until_shown(t);
		CHECK_INT(marcel_cancel(t), 0);
		CHECK_INT(marcel_join(t, &value), 0);
		CHECK_PTR(value, MARCEL_CANCELED);
	}
	ends_close(&e);
}

/* --- what comes just then --- */

static void *read_one(void *arg)
{
	char c;

	CHECK_INT(marcel_read(*(int *)arg, &c, 1), 1);
	return arg;
}

static void *cancel_it(void *arg)
{
	CHECK_INT(marcel_cancel(arg), 0);
	return NULL;
}

enum { ROUNDS = 100 };

TEST_VPS(what_was_read_is_not_lost)
{
	int p[2], left, got = 0;
	pthread_t alien;
	void *value;
	marcel_t t;
	char c;

	CHECK_INT(pipe(p), 0);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(marcel_create(&t, NULL, read_one, &p[0]), 0);
		until_shown(t);
		CHECK_INT(pthread_create(&alien, NULL, cancel_it, t), 0);
		CHECK_INT(marcel_write(p[1], "", 1), 1);
		CHECK_INT(pthread_join(alien, NULL), 0);
		CHECK_INT(marcel_join(t, &value), 0);
		if (value == MARCEL_CANCELED)
			CHECK_INT(marcel_read(p[0], &c, 1), 1);
		else
			got++;
	}
	CHECK_INT(fcntl(p[0], F_SETFL, O_NONBLOCK), 0);
	left = (int)read(p[0], &c, 1);
	CHECK_INT(left, -1);
	CHECK(got >= 0 && got <= ROUNDS);
	CHECK_INT(close(p[0]), 0);
	CHECK_INT(close(p[1]), 0);
}
