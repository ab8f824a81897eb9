/*
 * <marcel/errno.h>: errno follows a user thread to another kernel thread. This
 * file is compiled with optimization, as C and as C++, and with <errno.h>
 * before and after marcel's header: a compiler must not keep errno's address.
 * usleep() is called for the move to another kernel thread.
 */
#ifdef ERRNO_FIRST
#include <errno.h>
#endif
#ifdef BY_POSIX
#include <marcel/pthread.h>
#else
#include <marcel/marcel.h>
#endif
#ifdef __cplusplus
#include <cerrno>
#endif
#include <errno.h>

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "../../check.h"

enum { THREADS = 50, ROUNDS = 50, SLEEPS = 400 };

static void move_to(int vp)
{
	marcel_vpset_t set = { { (uint64_t)1 << vp } };

	CHECK_INT(marcel_setaffinity(marcel_self(), &set), 0);
	CHECK_INT(marcel_current_vp(), vp);
}

static void *keeps_value(void *arg)
{
	int want = 1000 + (int)(long)arg;

	for (int i = 0; i < ROUNDS; i++) {
		move_to(i & 1);
		errno = want;
		move_to(~i & 1);
		CHECK_INT(errno, want);
		marcel_yield();
		CHECK_INT(errno, want);
	}
	return NULL;
}

static void *sees_error_of_libc(void *arg)
{
	char *end;

	for (int i = 0; i < ROUNDS; i++) {
		move_to(i & 1);
		errno = 0;
		CHECK_INT(open("/nonexistent/x", O_RDONLY), -1);
		CHECK_INT(errno, ENOENT);
		move_to(~i & 1);
		CHECK_INT(errno, ENOENT);
		errno = 0;
		(void)strtol("99999999999999999999", &end, 10);
		CHECK_INT(errno, ERANGE);
	}
	return arg;
}

static void *sees_error_of_open(void *arg)
{
	for (int i = 0; i < SLEEPS; i++) {
		errno = 0;
		CHECK_INT(open("/nonexistent/x", O_RDONLY), -1);
		CHECK_INT(errno, ENOENT);
		usleep(10);
	}
	return arg;
}

static void run(int vps, void *(*fn)(void *))
{
	struct marcel_config config = { vps, 0, 0, 0 };
	marcel_t t[THREADS];

	CHECK_INT(marcel_init(&config), 0);
	for (long i = 0; i < THREADS; i++)
		CHECK_INT(marcel_create(&t[i], NULL, fn, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(marcel_end(), 0);
}

TEST(errno_keeps_its_value_when_a_thread_moves)
{
	run(2, keeps_value);
}

TEST(errno_is_that_of_the_last_call_after_a_thread_moved)
{
	run(2, sees_error_of_libc);
}

TEST(errno_is_that_of_the_last_call_after_a_sleep_on_one_vp)
{
	run(1, sees_error_of_open);
}

TEST(errno_is_that_of_the_last_call_after_a_sleep_on_two_vps)
{
	run(2, sees_error_of_open);
}
