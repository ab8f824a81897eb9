/* marcel/thread/foreign.c: kernel threads that come and go, and forks. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/atomic.h>
#include "../with.h"
#include "../../../marcel/sched/hook.h"
#include "../../../marcel/sched/place.h"
#include "../../../marcel/signal/signal.h"

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
	for (int i = 0; i < 100; i++) {
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

/* --- fork --- */

static void *nothing(void *arg)
{
	return arg;
}

/* What holds in a child: a number that says which did not, or 0. */
static int look_in_child(marcel_t parent_self)
{
	marcel_mutex_t m = MARCEL_MUTEX_INITIALIZER;
	marcel_sem_t s;
	marcel_t t;

	if (marcel_is_running() || marcel_nvp() != 0)
		return 1;
	if (marcel_current_vp() != -1 || marcel_self() != parent_self)
		return 2;
	if (marcel_create(&t, NULL, nothing, NULL) != EPERM)
		return 3;
	if (marcel_init(NULL) != -EPERM)
		return 4;
	if (marcel_end() != -EINVAL)
		return 5;
	if (marcel_yield() != 0)
		return 6;
	if (marcel_mutex_lock(&m) != 0 || marcel_mutex_unlock(&m) != 0)
		return 7;
	if (marcel_sem_init(&s, 0, 0) != 0 || marcel_sem_post(&s) != 0 ||
	    marcel_sem_wait(&s) != 0)
		return 8;
	return 0;
}

static void wait_for(pid_t pid, int code)
{
	int status;

	CHECK(pid > 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), code);
}

static void *fork_and_look(void *arg)
{
	marcel_t me = marcel_self();
	pid_t pid = fork();

	if (pid == 0)
		_exit(look_in_child(me));
	wait_for(pid, 0);
	return arg;
}

TEST_VPS(a_forked_child_has_no_runtime)
{
	marcel_t t[8];

	fork_and_look(NULL);
	for (int i = 0; i < 8; i++)
		CHECK_INT(marcel_create(&t[i], NULL, fork_and_look, NULL), 0);
	for (int i = 0; i < 8; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

static marcel_mutex_t held = MARCEL_MUTEX_INITIALIZER;
static ATOMIC(int) came;

static void *lock_held(void *arg)
{
	fetch_add_relaxed(&came, 1);
	CHECK_INT(marcel_mutex_lock(&held), 0);
	CHECK_INT(marcel_mutex_unlock(&held), 0);
	return arg;
}

/* The caller holds the mutex; a thread that waits for it. */
static marcel_t wait_for_held(void)
{
	marcel_t t;

	store_relaxed(&came, 0);
	CHECK_INT(marcel_mutex_lock(&held), 0);
	CHECK_INT(marcel_create(&t, NULL, lock_held, NULL), 0);
	while (load_relaxed(&came) == 0)
		marcel_yield();
	return t;
}

/* As if another kernel thread had been in the scheduler at the fork. */
TEST(a_forked_child_unlocks_what_threads_of_the_parent_wait_for)
{
	struct marcel_config config = { .nvp = 1 };
	struct base_spin *lock;
	marcel_t t;
	pid_t pid;

	CHECK_INT(marcel_init(&config), 0);
	t = wait_for_held();
	lock = &marcel_sched.levelqs[0].lock;
	base_spin_lock(lock);
	pid = fork();
	if (pid == 0) {
		alarm(10);
		_exit(marcel_mutex_unlock(&held) != 0 ||
		      marcel_mutex_lock(&held) != 0 ||
		      marcel_mutex_unlock(&held) != 0);
	}
	base_spin_unlock(lock);
	wait_for(pid, 0);
	CHECK_INT(marcel_mutex_unlock(&held), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(marcel_end(), 0);
}

/* Each call of a forked child takes one of the locks. */
static int call_in_child(marcel_t other, struct marcel_hook *hook)
{
	marcel_vpset_t set;
	uint64_t ns;

	alarm(10);
	if (marcel_getaffinity(other, &set) != 0 ||
	    marcel_setaffinity(other, &set) != 0)
		return 1;
	if (marcel_hook_add(MARCEL_HOOK_IDLE, hook) != 0 ||
	    marcel_hook_remove(MARCEL_HOOK_IDLE, hook) != 0)
		return 2;
	if (marcel_kill(other, SIGUSR1) != 0)
		return 3;
	return marcel_cputime(other, &ns) == 0 ? 0 : 4;
}

static enum marcel_hook_answer no_work(void *arg, int vp)
{
	(void)arg;
	(void)vp;
	return MARCEL_HOOK_NOTHING;
}

static ATOMIC(int) holds;

static void *hold_while_forked(void *lock)
{
	base_spin_lock(lock);
	store_release(&holds, 1);
	while (load_acquire(&holds) != 0)
		sched_yield();
	base_spin_unlock(lock);
	return NULL;
}

/* Another kernel thread holds the lock. */
static void fork_with(struct base_spin *lock, marcel_t other)
{
	struct marcel_hook hook = { .fn = no_work };
	pthread_t p;
	pid_t pid;

	CHECK_INT(pthread_create(&p, NULL, hold_while_forked, lock), 0);
	while (load_acquire(&holds) == 0)
		sched_yield();
	pid = fork();
	if (pid == 0)
		_exit(call_in_child(other, &hook));
	store_release(&holds, 0);
	CHECK_INT(pthread_join(p, NULL), 0);
	wait_for(pid, 0);
}

TEST(a_forked_child_waits_for_no_lock_of_its_maker)
{
	struct marcel_config config = { .nvp = 2 };
	marcel_t t;

	setenv("MARCEL_CPUTIME", "1", 1);
	CHECK_INT(marcel_init(&config), 0);
	t = wait_for_held();
	fork_with(&marcel_place_lock, t);
	fork_with(&marcel_hook_lock, t);
	fork_with(&marcel_signal_lock, t);
	fork_with(&marcel_lwps.lock, t);
	CHECK_INT(marcel_mutex_unlock(&held), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(marcel_end(), 0);
	unsetenv("MARCEL_CPUTIME");
}

/* --- while libc waits --- */

static bool waits;

static void *take_descriptor(void *arg)
{
	CHECK(marcel_self() != NULL);
	return arg;
}

/* After the runtime's own preparations, as libc waits for its allocator. */
static void wait_in_fork(void)
{
	pthread_t p;

	if (!waits)
		return;
	CHECK_INT(pthread_create(&p, NULL, take_descriptor, NULL), 0);
	CHECK_INT(pthread_join(p, NULL), 0);
}

__attribute__((constructor)) static void before_the_runtime(void)
{
	pthread_atfork(wait_in_fork, NULL, NULL);
}

static int count_thread(const struct marcel_info *info, void *arg)
{
	++*(int *)arg;
	return 0;
}

/* A new descriptor; and a walk over those of the parent, used or not. */
static int look_at_descriptors(void)
{
	pthread_t p;
	int n = 0;

	/* TSan allows no threads there. */
	if (!BASE_TSAN &&
	    (pthread_create(&p, NULL, take_descriptor, NULL) != 0 ||
	     pthread_join(p, NULL) != 0))
		return 1;
	return marcel_threads(count_thread, &n) != 0 || n < 1;
}

TEST_VPS(a_fork_that_waits_in_libc_holds_up_nobody)
{
	pid_t pid;

	waits = true;
	pid = fork();
	waits = false;
	if (pid == 0)
		_exit(look_at_descriptors());
	wait_for(pid, 0);
}

/* The child's only thread ends: then the process has. */
static void *fork_and_return(void *arg)
{
	pid_t pid = fork();

	if (pid == 0)
		return NULL;
	wait_for(pid, 0);
	return arg;
}

static void *fork_and_exit(void *arg)
{
	pid_t pid = fork();

	if (pid == 0)
		exit(7);
	wait_for(pid, 7);
	return arg;
}

TEST_VPS(a_forked_child_ends_properly)
{
	marcel_t t;

	CHECK_INT(marcel_create(&t, NULL, fork_and_return, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(marcel_create(&t, NULL, fork_and_exit, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	fork_and_exit(NULL);
}

static ATOMIC(int) finished;

static void *fork_outside(void *arg)
{
	fork_and_look(NULL);
	fetch_add_release(&finished, 1);
	return arg;
}

TEST_VPS(a_foreign_thread_may_fork)
{
	pthread_t p;

	store_relaxed(&finished, 0);
	CHECK_INT(pthread_create(&p, NULL, fork_outside, NULL), 0);
	while (!load_acquire(&finished))
		marcel_yield();
	CHECK_INT(pthread_join(p, NULL), 0);
}

/* A child that was forked before the runtime started is a process as any. */
TEST(a_child_of_before_may_start_the_runtime)
{
	struct marcel_config config = { .nvp = 2 };
	pid_t pid = fork();
	marcel_t t;

	if (pid == 0)
		_exit(marcel_init(&config) != 0 ||
		      marcel_create(&t, NULL, nothing, NULL) != 0 ||
		      marcel_join(t, NULL) != 0 || marcel_end() != 0);
	wait_for(pid, 0);
}

/* --- the end of main --- */

static void *start_and_leave(void *arg)
{
	struct marcel_config config = { .nvp = 2 };

	if (marcel_init(&config) != 0)
		_exit(1);
	return arg;
}

/* Its VP would have nobody to drive it, and the process would hang some day. */
TEST(main_may_not_leave_its_vp)
{
	char said[256] = "";
	int fds[2], status;
	pthread_t p;
	pid_t pid;

	CHECK_INT(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		dup2(fds[1], STDERR_FILENO);
		if (pthread_create(&p, NULL, start_and_leave, NULL) == 0)
			pthread_join(p, NULL);
		_exit(0);
	}
	close(fds[1]);
	CHECK(read(fds[0], said, sizeof(said) - 1) > 0);
	close(fds[0]);
	CHECK_INT(waitpid(pid, &status, 0), pid);
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
	pid = fork();
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
