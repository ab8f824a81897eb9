/* marcel/thread/fork.c: children of fork(), with a runtime of their own. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <base/atomic.h>
#include <marcel/signal.h>
#include "../../../marcel/thread/thread.h"
#include "../forked.h"

static ATOMIC(int) finished;

static void *look_and_say(void *arg)
{
	fork_and_look(NULL);
	fetch_add_release(&finished, 1);
	return arg;
}

static void as_foreign(void *(*fn)(void *))
{
	pthread_t p;

	store_relaxed(&finished, 0);
	CHECK_INT(pthread_create(&p, NULL, fn, NULL), 0);
	while (!load_acquire(&finished))
		marcel_yield();
	CHECK_INT(pthread_join(p, NULL), 0);
}

TEST_VPS(a_child_starts_a_runtime_when_it_needs_one)
{
	marcel_t t[8];

	fork_and_look(NULL);
	for (int i = 0; i < 8; i++)
		CHECK_INT(marcel_create(&t[i], NULL, fork_and_look, NULL), 0);
	for (int i = 0; i < 8; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	as_foreign(look_and_say);
}

/* --- under load --- */

enum {
	LOADS = 6,
	FORKERS = 4, /* main, two user threads, a kernel thread */
	FORKS = BASE_ASAN || BASE_TSAN ? 60 : 1000,
	AT_ONCE = 5, /* of each */
};

static ATOMIC(int) stop;
static marcel_mutex_t shared = MARCEL_MUTEX_INITIALIZER;

static void make_threads(void)
{
	marcel_t t[8];

	for (int i = 0; i < 8; i++)
		CHECK_INT(marcel_create(&t[i], NULL, nothing, NULL), 0);
	for (int i = 0; i < 8; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

static void lock_shared(void)
{
	marcel_mutex_lock(&shared);
	marcel_yield();
	marcel_mutex_unlock(&shared);
}

/*
 * Until the tick, and inside the allocator; but a sanitizer's does not know
 * that a process forks, and its locks stay held in the child.
 */
static void allocate(void)
{
	void *p[16];

	for (int n = 0; n < 1000 && !(BASE_ASAN || BASE_TSAN); n++) {
		for (int i = 0; i < 16; i++)
			p[i] = malloc((size_t)(n + 1) * 10);
		for (int i = 0; i < 16; i++)
			free(p[i]);
	}
	marcel_yield();
}

static void read_pipe(void)
{
	int fds[2];
	char c;

	CHECK_INT(pipe(fds), 0);
	CHECK_INT(write(fds[1], "x", 1), 1);
	CHECK_INT(marcel_read(fds[0], &c, 1), 1);
	close(fds[0]);
	close(fds[1]);
	marcel_yield();
}

static void sleep_a_little(void)
{
	marcel_usleep(50);
}

static void *load(void *arg)
{
	static void (*const kinds[LOADS])(void) = { make_threads,   lock_shared,
						    lock_shared,    allocate,
						    sleep_a_little, read_pipe };

	while (!load_relaxed(&stop))
		kinds[(uintptr_t)arg]();
	return NULL;
}

/* The loads have the CPUs beside several children, and not for one alone. */
static void fork_several(void)
{
	marcel_t me = marcel_self();
	pid_t pid[AT_ONCE];

	for (int i = 0; i < AT_ONCE; i++) {
		pid[i] = fork_one(0);
		if (pid[i] == 0)
			_exit(look_in_child(me));
	}
	for (int i = 0; i < AT_ONCE; i++)
		wait_for(pid[i], 0);
}

static void *fork_a_part(void *arg)
{
	for (int i = 0; i < FORKS / FORKERS; i += AT_ONCE)
		fork_several();
	fetch_add_release(&finished, 1);
	return arg;
}

static void fork_under_load(void)
{
	marcel_t t[LOADS], user[2];
	pthread_t foreign;

	store_relaxed(&stop, 0);
	store_relaxed(&finished, 0);
	for (uintptr_t i = 0; i < LOADS; i++)
		CHECK_INT(marcel_create(&t[i], NULL, load, (void *)i), 0);
	for (int i = 0; i < 2; i++)
		CHECK_INT(marcel_create(&user[i], NULL, fork_a_part, NULL), 0);
	CHECK_INT(pthread_create(&foreign, NULL, fork_a_part, NULL), 0);
	fork_a_part(NULL);
	for (int i = 0; i < 2; i++)
		CHECK_INT(marcel_join(user[i], NULL), 0);
	while (load_acquire(&finished) < FORKERS)
		marcel_yield();
	CHECK_INT(pthread_join(foreign, NULL), 0);
	store_relaxed(&stop, 1);
	for (int i = 0; i < LOADS; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

TEST(a_thousand_forks_under_load)
{
	setenv("MARCEL_TIMESLICE_US", "1000", 1);
	with_vps(2, fork_under_load);
	unsetenv("MARCEL_TIMESLICE_US");
}

/* --- what the caller keeps --- */

static marcel_key_t key;
static ATOMIC(int) cleaned;

static void clean(void *arg)
{
	fetch_add_relaxed(&cleaned, 1);
}

static void exit_with_cleaned(void *arg)
{
	_exit(load_relaxed(&cleaned) == 1 ? 11 : 12);
}

static int look_at_what_is_kept(marcel_mutex_t *m, uint64_t mine)
{
	char name[MARCEL_NAME_MAX];
	sigset_t mask;

	marcel_sigmask(SIG_SETMASK, NULL, &mask);
	if (marcel_getspecific(key) != &key)
		return 2;
	if (marcel_getname(marcel_self(), name, sizeof(name)) != 0 ||
	    strcmp(name, "forker") != 0)
		return 3;
	if (marcel_mutex_lock(m) != EDEADLK || marcel_mutex_unlock(m) != 0 ||
	    marcel_mutex_lock(m) != 0 || marcel_mutex_unlock(m) != 0)
		return 4;
	return mine && !sigismember(&mask, SIGUSR1) ? 5 : 0;
}

static void *keep(void *arg)
{
	marcel_mutexattr_t checks;
	marcel_mutex_t m;
	sigset_t mask;
	pid_t pid;
	int rc;

	CHECK_INT(marcel_mutexattr_init(&checks), 0);
	CHECK_INT(marcel_mutexattr_settype(&checks, MARCEL_MUTEX_ERRORCHECK),
		  0);
	CHECK_INT(marcel_mutex_init(&m, &checks), 0);
	marcel_setname(marcel_self(), "forker");
	CHECK_INT(marcel_setspecific(key, &key), 0);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	CHECK_INT(marcel_sigmask(SIG_BLOCK, &mask, NULL), 0);
	CHECK_INT(marcel_mutex_lock(&m), 0);
	store_relaxed(&cleaned, 0);
	marcel_cleanup_push(exit_with_cleaned, NULL);
	marcel_cleanup_push(clean, NULL);
	pid = fork_one(11);
	if (pid == 0) {
		rc = use_runtime();
		if (rc == 0)
			rc = look_at_what_is_kept(&m, 1);
		if (rc != 0)
			_exit(rc);
		marcel_exit(NULL); /* main waits for nobody */
	}
	wait_for(pid, 11);
	marcel_cleanup_pop(0);
	marcel_cleanup_pop(0);
	CHECK_INT(marcel_setspecific(key, NULL), 0);
	CHECK_INT(marcel_sigmask(SIG_UNBLOCK, &mask, NULL), 0);
	CHECK_INT(marcel_mutex_unlock(&m), 0);
	return arg;
}

TEST_VPS(the_caller_is_whom_it_was)
{
	CHECK_INT(marcel_key_create(&key, NULL), 0);
	keep(NULL);
	as_user(keep);
	CHECK_INT(marcel_key_delete(key), 0);
}

static int look_at_favour(marcel_t self)
{
	int rc = use_runtime();

	if (rc != 0)
		return rc;
	if (!marcel_thread_is_urgent(self))
		return 2;
	if (marcel_favour(self, 0) != 0 || marcel_thread_is_urgent(self))
		return 3;
	if (marcel_setpriority(self, MARCEL_PRIORITY_IDLE) != 0 ||
	    marcel_thread_band(self) != MARCEL_BAND_IDLE)
		return 4;
	return 0;
}

/* As if another thread were at it: it has only said until when. */
static void *fork_while_favoured(void *arg)
{
	marcel_t self = marcel_self();
	pid_t pid;

	CHECK_INT(marcel_favour(self, UINT64_MAX), 0);
	CHECK_INT(marcel_favour(self, 0), 0);
	store_relaxed(&self->rest->favour, UINT64_MAX);
	pid = fork_one(0);
	if (pid == 0)
		_exit(look_at_favour(self));
	store_relaxed(&self->rest->favour, 0);
	wait_for(pid, 0);
	return arg;
}

TEST_VPS(the_caller_is_favoured_as_it_was)
{
	fork_while_favoured(NULL);
	as_user(fork_while_favoured);
}

static cpu_set_t original;

static void *look_at_cpus(void *arg)
{
	cpu_set_t now;

	if (sched_getaffinity(0, sizeof(now), &now) != 0 ||
	    !CPU_EQUAL(&now, &original))
		return NULL;
	return arg;
}

static void *fork_and_look_at_cpus(void *arg)
{
	pid_t pid = fork_one(0);
	void *ok = NULL;
	marcel_t t;

	if (pid == 0)
		_exit(marcel_create(&t, NULL, look_at_cpus, &t) != 0 ||
		      marcel_join(t, &ok) != 0 || ok == NULL ||
		      look_at_cpus(&t) == NULL);
	wait_for(pid, 0);
	return arg;
}

TEST(a_childs_vp_runs_wherever_the_process_may)
{
	CHECK_INT(sched_getaffinity(0, sizeof(original), &original), 0);
	CHECK_INT(marcel_init(NULL), 0);
	fork_and_look_at_cpus(NULL);
	as_user(fork_and_look_at_cpus);
	CHECK_INT(marcel_end(), 0);
}

/* --- the end of a child --- */

/* Its main is whoever forked: the process ends with it, and after others. */
static void *fork_and_return(void *arg)
{
	pid_t pid = fork_one(0);

	if (pid == 0)
		return NULL;
	wait_for(pid, 0);
	return arg;
}

static void *start_and_return(void *arg)
{
	pid_t pid = fork_one(0);

	if (pid == 0) {
		if (use_runtime() != 0)
			_exit(1);
		return NULL;
	}
	wait_for(pid, 0);
	fetch_add_release(&finished, 1);
	return arg;
}

static void *end_and_return(void *arg)
{
	pid_t pid = fork_one(0);

	if (pid == 0) {
		if (use_runtime() != 0 || marcel_end() != 0 ||
		    marcel_end() != -EINVAL || marcel_is_running())
			_exit(1);
		return NULL;
	}
	wait_for(pid, 0);
	return arg;
}

static void *fork_and_exit(void *arg)
{
	pid_t pid = fork_one(7);

	if (pid == 0)
		exit(7);
	wait_for(pid, 7);
	return arg;
}

TEST_VPS(a_child_ends_properly)
{
	as_user(fork_and_return);
	as_user(fork_and_exit);
	fork_and_exit(NULL);
	if (BASE_TSAN)
		return; /* it crashes when main's fiber ends the process */
	as_user(start_and_return);
	as_user(end_and_return);
	as_foreign(start_and_return);
}

static void *fork_again(void *arg)
{
	marcel_t me = marcel_self();
	pid_t pid = fork_one(0), grandchild;
	int status;

	if (pid == 0) {
		for (int i = 0; i < 3; i++) {
			grandchild = fork_one(0);
			if (grandchild == 0)
				_exit(look_in_child(me));
			if (waitpid(grandchild, &status, 0) != grandchild ||
			    status != 0 || use_runtime() != 0)
				_exit(1);
		}
		_exit(0);
	}
	wait_for(pid, 0);
	return arg;
}

TEST_VPS(a_child_may_fork_again)
{
	fork_again(NULL);
	as_user(fork_again);
}

/* After its runtime has ended it may start any, as any process. */
TEST_VPS(a_child_may_start_another_runtime)
{
	struct marcel_config config = { .nvp = 2 };
	pid_t pid = fork_one(0);
	marcel_t t;

	if (pid == 0) {
		if (marcel_init(NULL) != 0 || marcel_nvp() != 1 ||
		    marcel_end() != 0)
			_exit(1);
		/* TSan allows no kernel threads there. */
		config.nvp = BASE_TSAN ? 1 : 2;
		_exit(marcel_init(&config) != 0 || marcel_nvp() != config.nvp ||
		      marcel_create(&t, NULL, nothing, NULL) != 0 ||
		      marcel_join(t, NULL) != 0 || marcel_end() != 0);
	}
	wait_for(pid, 0);
}

static void *fork_and_become(void *arg)
{
	pid_t pid = fork_one(3);

	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
		_exit(1);
	}
	wait_for(pid, 3);
	pid = fork_one(4);
	if (pid == 0) {
		if (use_runtime() == 0)
			execl("/bin/sh", "sh", "-c", "exit 4", (char *)NULL);
		_exit(1);
	}
	wait_for(pid, 4);
	return arg;
}

TEST_VPS(a_child_may_become_another_program)
{
	fork_and_become(NULL);
	as_user(fork_and_become);
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
	pid = fork_one(0);
	waits = false;
	if (pid == 0)
		_exit(look_at_descriptors());
	wait_for(pid, 0);
}

/* A child that was forked before the runtime started is a process as any. */
TEST(a_child_of_before_may_start_the_runtime)
{
	struct marcel_config config = { .nvp = 2 };
	pid_t pid = fork_one(0);
	marcel_t t;

	if (pid == 0)
		_exit(marcel_init(&config) != 0 ||
		      marcel_create(&t, NULL, nothing, NULL) != 0 ||
		      marcel_join(t, NULL) != 0 || marcel_end() != 0);
	wait_for(pid, 0);
}
