/*
 * No system call on create, join, switch, lock, unlock and wake in the common
 * case: after a warm-up any system call but the exit kills the process. There
 * is no tick here, whose handler returns by a system call.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/compiler.h>
#include "../with.h"

enum { MILLION = 1000000, CROWD = 1000 };

static void forbid_system_calls(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog filter = { BASE_ARRAY_LEN(code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
		_exit(77);
}

static void *nothing(void *arg)
{
	return arg;
}

static void create_and_join(long n)
{
	marcel_t t;

	for (long i = 0; i < n; i++) {
		marcel_create(&t, NULL, nothing, NULL);
		marcel_join(t, NULL);
	}
}

static void *yield_often(void *arg)
{
	for (long i = 0; i < (long)arg; i++)
		marcel_yield();
	return NULL;
}

static void crowd(void *(*fn)(void *), long each)
{
	static marcel_t t[CROWD];

	for (int i = 0; i < CROWD; i++)
		marcel_create(&t[i], NULL, fn, (void *)each);
	for (int i = 0; i < CROWD; i++)
		marcel_join(t[i], NULL);
}

/* Ends when all of the crowd have begun, so that each has had a stack. */
static void *be_there(void *arg)
{
	static long there;

	for (there++; there % CROWD != 0;)
		marcel_yield();
	there = 0;
	return arg;
}

static void yield_in_a_crowd(long n)
{
	crowd(yield_often, n / CROWD);
}

static void create_a_crowd(long n)
{
	for (long i = 0; i < n; i += CROWD)
		crowd(nothing, 0);
}

/* --- waking --- */

static marcel_t waiter;

static void show_waiter(void *arg)
{
	waiter = arg;
}

static void *wait_often(void *arg)
{
	for (long i = 0; i < (long)arg; i++) {
		marcel_t other = waiter;

		waiter = NULL;
		if (other != NULL)
			marcel_wake(other);
		marcel_park(show_waiter, marcel_self());
	}
	if (waiter != NULL)
		marcel_wake(waiter);
	waiter = NULL;
	return NULL;
}

static void park_and_wake(long n)
{
	marcel_t t[2];

	waiter = NULL;
	for (int i = 0; i < 2; i++)
		marcel_create(&t[i], NULL, wait_often, (void *)(n / 2));
	for (int i = 0; i < 2; i++)
		marcel_join(t[i], NULL);
}

/* --- locks --- */

static marcel_mutex_t mutex = MARCEL_MUTEX_INITIALIZER;
static marcel_cond_t changed = MARCEL_COND_INITIALIZER;
static long turns;

static void lock_and_unlock(long n)
{
	for (long i = 0; i < n; i++) {
		marcel_mutex_lock(&mutex);
		marcel_mutex_unlock(&mutex);
	}
}

static void *take_turns(void *arg)
{
	long me = turns % 2;

	marcel_mutex_lock(&mutex);
	for (long i = 0; i < (long)arg; i++) {
		while (turns % 2 != me)
			marcel_cond_wait(&changed, &mutex);
		turns++;
		marcel_cond_signal(&changed);
	}
	marcel_mutex_unlock(&mutex);
	return NULL;
}

static void *lock_and_yield(void *arg)
{
	for (long i = 0; i < (long)arg; i++) {
		marcel_mutex_lock(&mutex);
		marcel_yield();
		marcel_mutex_unlock(&mutex);
	}
	return NULL;
}

static void lock_in_a_crowd(long n)
{
	crowd(lock_and_yield, n / CROWD);
}

static void *other_turns(void *arg)
{
	marcel_mutex_lock(&mutex);
	for (long i = 0; i < (long)arg; i++) {
		while (turns % 2 != 1)
			marcel_cond_wait(&changed, &mutex);
		turns++;
		marcel_cond_signal(&changed);
	}
	marcel_mutex_unlock(&mutex);
	return NULL;
}

static void signal_and_wait(long n)
{
	marcel_t t[2];

	turns = 0;
	marcel_create(&t[1], NULL, other_turns, (void *)(n / 2));
	marcel_create(&t[0], NULL, take_turns, (void *)(n / 2));
	for (int i = 0; i < 2; i++)
		marcel_join(t[i], NULL);
}

/* --- the children --- */

static void quietly(void (*body)(long))
{
	struct marcel_config config = { .nvp = 1 };
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		setenv("MARCEL_TIMESLICE_US", "0", 1);
		if (marcel_init(&config) != 0)
			_exit(1);
		crowd(be_there, 0);
		body(10 * CROWD);
		forbid_system_calls();
		body(MILLION);
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		check_skip("seccomp filters are not to be had");
	CHECK(!WIFSIGNALED(status));
	CHECK_INT(status, 0);
}

TEST(create_and_join_make_no_system_call)
{
	quietly(create_and_join);
	quietly(create_a_crowd);
}

TEST(switches_make_no_system_call)
{
	quietly(yield_in_a_crowd);
}

TEST(park_and_wake_make_no_system_call)
{
	quietly(park_and_wake);
}

TEST(lock_and_unlock_make_no_system_call)
{
	quietly(lock_and_unlock);
	quietly(lock_in_a_crowd);
}

TEST(conditions_make_no_system_call)
{
	quietly(signal_and_wait);
}

/* The filter works: otherwise the tests above would say nothing. */
static void one_system_call(long n)
{
	if (n == MILLION)
		getppid();
}

TEST(a_system_call_would_be_noticed)
{
	struct marcel_config config = { .nvp = 1 };
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		setenv("MARCEL_TIMESLICE_US", "0", 1);
		if (marcel_init(&config) != 0)
			_exit(1);
		forbid_system_calls();
		one_system_call(MILLION);
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		check_skip("seccomp filters are not to be had");
	CHECK(WIFSIGNALED(status));
}
