/* marcel/thread/foreign.c: kernel threads that come and go. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/atomic.h>
#include "../child.h"
#include "../with.h"
#include "../../../marcel/sched/vp.h"

static void *self(void *arg)
{
	marcel_t me = marcel_self();

	CHECK_PTR(marcel_self(), me);
	CHECK_INT(marcel_current_vp(), -1);
	return arg ? me : NULL;
}

TEST(a_kernel_threads_descriptor_is_used_again)
{
	pthread_t p;
	void *first, *next;

	CHECK_INT(pthread_create(&p, NULL, self, &first), 0);
	CHECK_INT(pthread_join(p, &first), 0);
	for (int i = 0; i < HANDOVERS / 5; i++) {
		CHECK_INT(pthread_create(&p, NULL, self, &first), 0);
		CHECK_INT(pthread_join(p, &next), 0);
		CHECK_PTR(next, first);
	}
}

TEST(main_is_the_same_thread_before_and_after)
{
	struct marcel_config config = { .nvp = 2 };
	marcel_t me = marcel_self();

	CHECK_INT(marcel_init(&config), 0);
	CHECK_PTR(marcel_self(), me);
	CHECK_INT(marcel_current_vp(), 0);
	CHECK_INT(marcel_end(), 0);
	CHECK_PTR(marcel_self(), me);
	CHECK_INT(marcel_current_vp(), -1);
}

/* --- threads that it makes --- */

static void *nothing(void *arg)
{
	return arg;
}

enum { MADE = 20 };

static ATOMIC(int) nrefused; /* while they made theirs, and not behind them */

/*
 * Each that is made is run, until the runtime has ended between two of them.
 * Those that come in a row have a bound: it ends when nobody has one, which
 * never comes if all wait for a CPU most of the time, to join theirs.
 */
static void *make(void *arg)
{
	void *out = NULL;
	marcel_t t;
	int rc = 0, i;

	for (i = 0; i < MADE; i++) {
		rc = marcel_create(&t, NULL, nothing, &t);
		if (rc != 0)
			break;
		CHECK_INT(marcel_join(t, &out), 0);
		CHECK_PTR(out, &t);
	}
	if (rc == EPERM && i > 0)
		fetch_add_relaxed(&nrefused, 1);
	while (rc == 0 && marcel_is_running())
		sched_yield();
	CHECK_INT(rc == 0 ? marcel_create(&t, NULL, nothing, &t) : rc, EPERM);
	return arg;
}

static void end_after(int yields)
{
	struct marcel_config config = { .nvp = 2 };
	pthread_t p[3];

	CHECK_INT(marcel_init(&config), 0);
	for (int i = 0; i < 3; i++)
		CHECK_INT(pthread_create(&p[i], NULL, make, NULL), 0);
	for (int i = 0; i < yields; i++)
		marcel_yield();
	CHECK_INT(marcel_end(), 0);
	for (int i = 0; i < 3; i++)
		CHECK_INT(pthread_join(p[i], NULL), 0);
}

TEST(the_runtime_may_end_while_kernel_threads_make_threads)
{
	store_relaxed(&nrefused, 0);
	for (int n = 0; n < HANDOVERS / 2; n++)
		end_after(n);
	printf("# %d refused in a row\n", load_relaxed(&nrefused));
}

/* --- the end of main --- */

static void wait_for(pid_t pid, int code)
{
	int status;

	CHECK(pid > 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), code);
}

static ATOMIC(int) finished;

static void *start_and_leave(void *arg)
{
	struct marcel_config config = { .nvp = 2 };

	if (marcel_init(&config) != 0)
		_exit(1);
	return arg;
}

static void main_leaves(void)
{
	pthread_t p;

	if (pthread_create(&p, NULL, start_and_leave, NULL) == 0)
		pthread_join(p, NULL);
}

/* Its VP would have nobody to drive it, and the process would hang some day. */
TEST(main_may_not_leave_its_vp)
{
	int status = in_child(main_leaves);

	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGABRT);
	CHECK(strstr(said, "ends without marcel_end()") != NULL);
}

static void *count_later(void *arg)
{
	for (int i = 0; i < 100; i++)
		marcel_yield();
	fetch_add_relaxed(&finished, 1);
	return arg;
}

TEST(main_may_end_before_the_others)
{
	struct marcel_config config = { .nvp = 2 };
	int fds[2];
	pid_t pid;
	char c;

	CHECK_INT(pipe(fds), 0);
	pid = parent_forks(fork);
	if (pid == 0) {
		marcel_t t;

		close(fds[0]);
		if (marcel_init(&config) != 0)
			_exit(1);
		for (int i = 0; i < 20; i++)
			if (marcel_create(&t, NULL, count_later, NULL) != 0)
				_exit(1);
		marcel_exit(NULL);
	}
	close(fds[1]);
	CHECK_INT(read(fds[0], &c, 1), 0);
	close(fds[0]);
	wait_for(pid, 0);
}
