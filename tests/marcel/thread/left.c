/*
 * marcel/thread/fork.c: what children of fork() have nothing of: locks that
 * others held, threads, hooks and the poller of the parent.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include <base/atomic.h>
#include <marcel/signal.h>
#include "../forked.h"
#include "../parked.h"
#include "../../../marcel/sched/hook.h"
#include "../../../marcel/sched/place.h"
#include "../../../marcel/signal/signal.h"

/* --- locks --- */

static marcel_mutex_t held = MARCEL_MUTEX_INITIALIZER;
static ATOMIC(int) got;

static void *lock_held(void *arg)
{
	CHECK_INT(marcel_mutex_lock(&held), 0);
	fetch_add_relaxed(&got, 1);
	CHECK_INT(marcel_mutex_unlock(&held), 0);
	return arg;
}

/* The caller holds the mutex; a thread that waits for it. */
static marcel_t wait_for_held(void)
{
	marcel_t t;

	CHECK_INT(marcel_mutex_lock(&held), 0);
	CHECK_INT(marcel_create(&t, NULL, lock_held, NULL), 0);
	until_parked(t);
	return t;
}

static int unlock_held(void)
{
	return marcel_mutex_unlock(&held) != 0 ||
	       marcel_mutex_lock(&held) != 0 || marcel_mutex_unlock(&held) != 0;
}

/* As if another kernel thread had been in the scheduler at the fork. */
TEST(a_child_unlocks_what_threads_of_the_parent_wait_for)
{
	struct marcel_config config = { .nvp = 1 };
	struct base_spin *lock;
	marcel_t t;
	pid_t pid;

	CHECK_INT(marcel_init(&config), 0);
	t = wait_for_held();
	lock = &marcel_sched.levelqs[0].lock;
	base_spin_lock(lock);
	pid = fork_one(0);
	if (pid == 0)
		_exit(unlock_held());
	base_spin_unlock(lock);
	wait_for(pid, 0);
	CHECK_INT(marcel_mutex_unlock(&held), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(marcel_end(), 0);
}

/* Each call takes one of the locks. */
static int take_locks(marcel_t other, struct marcel_hook *hook)
{
	marcel_vpset_t set;
	uint64_t ns;

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

/* Before it has a runtime, of a thread of the parent; and after, of its own. */
static int take_locks_in_child(marcel_t other, struct marcel_hook *hook)
{
	int rc = take_locks(other, hook);
	marcel_t t;

	if (rc == 0)
		rc = use_runtime();
	if (rc == 0)
		rc = marcel_create(&t, NULL, lock_held, NULL);
	signal(SIGUSR1, SIG_IGN);
	if (rc == 0)
		rc = take_locks(t, hook);
	if (rc == 0)
		rc = unlock_held();
	return rc != 0 ? rc : marcel_join(t, NULL);
}

static enum marcel_hook_answer no_work(void *arg, int vp)
{
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
	pid = fork_one(0);
	if (pid == 0)
		_exit(take_locks_in_child(other, &hook));
	store_release(&holds, 0);
	CHECK_INT(pthread_join(p, NULL), 0);
	wait_for(pid, 0);
}

TEST(a_child_waits_for_no_lock_of_its_maker)
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

/*
 * As if another kernel thread had been in the dynamic linker, which asserts
 * that it is consistent. A copy of its state in the program is not meant.
 */
TEST(a_child_does_not_ask_the_dynamic_linker)
{
	struct r_debug *linker = dlsym(RTLD_DEFAULT, "_r_debug");
	void *lib = dlopen("libstdc++.so.6", RTLD_LAZY);
	pid_t pid;

	if (linker == NULL || lib == NULL)
		check_skip("a C++ library and a linker with a state");
	CHECK_INT(marcel_init(NULL), 0);
	linker->r_state = RT_ADD;
	pid = fork_one(0);
	if (pid == 0)
		_exit(use_runtime());
	linker->r_state = RT_CONSISTENT;
	wait_for(pid, 0);
	CHECK_INT(marcel_end(), 0);
	dlclose(lib);
}

static ATOMIC(int) asked, forked;

/* The monitor stays in it. */
static bool ask(void *arg, int vp)
{
	store_release(&asked, 1);
	while (load_acquire(&forked) == 0)
		sched_yield();
	return false;
}

/* Else the end of its own hook waits for that monitor. */
TEST(a_child_waits_for_no_hook_that_its_maker_asks)
{
	struct marcel_hook hook = { .fn = no_work, .wanted = ask };
	struct marcel_hook mine = { .fn = no_work };
	struct marcel_config config = { .nvp = 1 };
	pid_t pid;

	if (BASE_TSAN)
		check_skip("no ticks under TSan");
	CHECK_INT(marcel_init(&config), 0);
	store_relaxed(&asked, 0);
	store_relaxed(&forked, 0);
	CHECK_INT(marcel_hook_add(MARCEL_HOOK_TICK, &hook), 0);
	while (load_acquire(&asked) == 0)
		;
	pid = fork_one(0);
	if (pid == 0) {
		for (int i = 0; i < 2; i++)
			if (marcel_hook_add(MARCEL_HOOK_TICK, &mine) != 0 ||
			    marcel_hook_remove(MARCEL_HOOK_TICK, &mine) != 0 ||
			    use_runtime() != 0)
				_exit(1);
		_exit(0);
	}
	store_release(&forked, 1);
	wait_for(pid, 0);
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_TICK, &hook), 0);
	CHECK_INT(marcel_end(), 0);
}

static marcel_sem_t owed;

static void *wait_owed(void *arg)
{
	CHECK_INT(marcel_sem_wait(&owed), 0);
	return arg;
}

static void start_waiter(marcel_t *t)
{
	CHECK_INT(marcel_create(t, NULL, wait_owed, NULL), 0);
	until_parked(*t);
}

/* As a handler of signals does that came inside the runtime. */
static void post_late(void)
{
	marcel_tls.pins++;
	CHECK_INT(marcel_sem_post(&owed), 0);
	marcel_tls.pins--;
}

/* The parent's waiter has had its own: the next late post pays the next. */
static int be_paid(void)
{
	marcel_t t;

	start_waiter(&t);
	post_late();
	return marcel_join(t, NULL);
}

static uint64_t counted; /* late posts that a dead thread has not linked */

static void fork_before_it_is_paid(void)
{
	marcel_t t;
	pid_t pid;

	CHECK_INT(marcel_sem_init(&owed, 0, 0), 0);
	start_waiter(&t);
	post_late();
	pid = fork_one(0);
	if (pid == 0) {
		owed.marcel_words[4] = counted;
		_exit(be_paid());
	}
	wait_for(pid, 0);
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST(late_posts_of_a_child_are_paid)
{
	for (counted = 0; counted < 3; counted++)
		without_ticks(fork_before_it_is_paid);
}

static int is_other(const struct marcel_info *info, void *arg)
{
	return info->kind == MARCEL_KIND_USER;
}

TEST_VPS(threads_of_the_parent_do_not_go_on_in_a_child)
{
	marcel_t t;
	pid_t pid;

	store_relaxed(&got, 0);
	t = wait_for_held();
	pid = fork_one(0);
	if (pid == 0) {
		if (use_runtime() != 0)
			_exit(1);
		if (marcel_kill(t, 0) != ESRCH || marcel_yield_to(t) != ESRCH ||
		    marcel_threads(is_other, NULL) != 0)
			_exit(2);
		_exit(unlock_held() || use_runtime() != 0 ||
		      load_relaxed(&got) != 0);
	}
	wait_for(pid, 0);
	CHECK_INT(marcel_mutex_unlock(&held), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST_VPS(nobody_joins_threads_of_the_parent)
{
	marcel_t t = wait_for_held();
	pid_t pid = fork_one(0);

	if (pid == 0)
		_exit(use_runtime() != 0 || marcel_join(t, NULL) != ESRCH ||
		      marcel_detach(t) != ESRCH);
	wait_for(pid, 0);
	CHECK_INT(marcel_mutex_unlock(&held), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
}

static void *create_one(void *arg)
{
	marcel_t t;

	return marcel_create(&t, NULL, nothing, NULL) == 0 &&
			       marcel_join(t, NULL) == 0
		       ? arg
		       : NULL;
}

/* Each is main of a runtime in its turn, which ends with it. */
static void fork_and_start_threads(void)
{
	void *ok = NULL;
	pthread_t p;
	pid_t pid = fork_one(0);

	if (pid == 0) {
		for (int i = 0; i < 3; i++)
			if (pthread_create(&p, NULL, create_one, &ok) != 0 ||
			    pthread_join(p, &ok) != 0 || ok == NULL)
				_exit(1);
		_exit(use_runtime());
	}
	wait_for(pid, 0);
}

TEST(any_kernel_thread_of_a_child_may_be_its_main)
{
	if (BASE_TSAN)
		check_skip("TSan allows no kernel threads in a child");
	with_vps(1, fork_and_start_threads);
	with_vps(4, fork_and_start_threads);
}

static void *create_some(void *ok)
{
	for (int i = 0; i < 5; i++)
		if (create_one(ok) == NULL)
			return NULL;
	return ok;
}

/* The runtime ends with one of them while others make threads. */
static void fork_and_start_threads_at_once(void)
{
	void *ok = NULL;
	pthread_t p[4];
	pid_t pid = fork_one(0);

	if (pid == 0) {
		for (int n = 0; n < 100; n++) {
			for (int i = 0; i < 4; i++)
				pthread_create(&p[i], NULL, create_some, &ok);
			for (int i = 0; i < 4; i++)
				if (pthread_join(p[i], &ok) != 0 || ok == NULL)
					_exit(1);
		}
		_exit(0);
	}
	wait_for(pid, 0);
}

TEST(any_of_several_kernel_threads_of_a_child_may_be_its_main)
{
	if (BASE_TSAN)
		check_skip("TSan allows no kernel threads in a child");
	with_vps(2, fork_and_start_threads_at_once);
}

static void *create_later(void *arg)
{
	while (marcel_is_running())
		sched_yield();
	_exit(create_one(&arg) == NULL);
}

/* The kernel thread on which it runs ends, and so does its runtime. */
static void *fork_and_end(void *arg)
{
	pid_t pid = fork_one(0);
	pthread_t p;

	if (pid == 0) {
		if (create_one(&pid) == NULL ||
		    pthread_create(&p, NULL, create_later, NULL) != 0)
			_exit(2);
		pthread_exit(NULL);
	}
	wait_for(pid, 0);
	return arg;
}

static void fork_and_end_each(void)
{
	fork_and_end(NULL);
	as_user(fork_and_end);
}

TEST(main_of_a_child_may_end_whatever_thread_it_was)
{
	if (BASE_TSAN)
		check_skip("TSan allows no kernel threads in a child");
	with_vps(1, fork_and_end_each);
}

/* --- settings --- */

enum { LIMIT = 10 };

static void *wait_for_good(void *arg)
{
	marcel_park(NULL, NULL);
	return arg;
}

/* How many more may exist. */
static int make_all(void)
{
	marcel_t t;
	int n = 0;

	while (marcel_create(&t, NULL, wait_for_good, NULL) == 0)
		n++;
	return n;
}

/* One has ended, and is joined there. */
static void fork_beside_an_ended(void)
{
	void *out = NULL;
	marcel_t t;
	pid_t pid;

	CHECK_INT(marcel_create(&t, NULL, nothing, &pid), 0);
	while (load_relaxed(&t->state) != MARCEL_T_ENDED)
		marcel_yield();
	pid = fork_one(0);
	if (pid == 0) {
		if (create_one(&pid) == NULL || make_all() != LIMIT - 1)
			_exit(1);
		if (marcel_join(t, &out) != 0 || out != &pid)
			_exit(2);
		_exit(make_all() == 1 ? 0 : 3);
	}
	wait_for(pid, 0);
	CHECK_INT(marcel_join(t, &out), 0);
}

TEST(a_limit_of_threads_holds_in_a_child)
{
	setenv("MARCEL_MAXTHREADS", "10", 1);
	with_vps(1, fork_beside_an_ended);
	unsetenv("MARCEL_MAXTHREADS");
}

static void *create_and_dump(void *ok)
{
	return create_one(ok) != NULL && raise(SIGUSR1) == 0 ? ok : NULL;
}

static void fork_and_dump(void)
{
	void *ok = NULL;
	pid_t pid = fork_one(0);
	pthread_t p;

	if (pid == 0) {
		if (freopen("/dev/null", "w", stderr) == NULL)
			_exit(1);
		for (int i = 0; i < 3; i++)
			if (pthread_create(&p, NULL, create_and_dump, &ok) !=
				    0 ||
			    pthread_join(p, &ok) != 0 || ok == NULL)
				_exit(2);
		_exit(0);
	}
	wait_for(pid, 0);
}

TEST(each_runtime_of_a_child_dumps)
{
	if (BASE_TSAN)
		check_skip("TSan allows no kernel threads in a child");
	setenv("MARCEL_DUMP_SIGNAL", "SIGUSR1", 1);
	with_vps(1, fork_and_dump);
	unsetenv("MARCEL_DUMP_SIGNAL");
}

static pid_t hooks_of;

static enum marcel_hook_answer count(void *arg, int vp)
{
	if (getpid() != hooks_of)
		_exit(99);
	return MARCEL_HOOK_NOTHING;
}

TEST_VPS(hooks_of_the_parent_do_not_run_in_a_child)
{
	struct marcel_hook idle = { .fn = count }, at_switch = { .fn = count };

	hooks_of = getpid();
	CHECK_INT(marcel_hook_add(MARCEL_HOOK_IDLE, &idle), 0);
	CHECK_INT(marcel_hook_add(MARCEL_HOOK_SWITCH, &at_switch), 0);
	fork_and_look(NULL);
	as_user(fork_and_look);
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_IDLE, &idle), 0);
	CHECK_INT(marcel_hook_remove(MARCEL_HOOK_SWITCH, &at_switch), 0);
}

static ATOMIC(int) status_of_tasklet;

/* A child of that is half way through a switch for ever. */
static void fork_inside(void *arg)
{
	int status = -1;
	marcel_t t;
	pid_t pid = fork_one(0);

	if (pid == 0)
		_exit(marcel_create(&t, NULL, nothing, NULL) != EPERM ||
		      marcel_init(NULL) != -EPERM);
	waitpid(pid, &status, 0);
	store_release(&status_of_tasklet, status);
}

TEST_VPS(a_child_of_a_tasklet_has_no_runtime)
{
	marcel_tasklet_t tasklet;

	store_relaxed(&status_of_tasklet, -1);
	CHECK_INT(marcel_tasklet_init(&tasklet, fork_inside, NULL), 0);
	CHECK_INT(marcel_tasklet_schedule(&tasklet), 0);
	while (load_acquire(&status_of_tasklet) == -1)
		marcel_yield();
	CHECK_INT(load_relaxed(&status_of_tasklet), 0);
	CHECK_INT(marcel_tasklet_kill(&tasklet), 0);
}

/* --- the poller --- */

enum { READERS = 4 };

static void *read_one(void *arg)
{
	char c = 0;

	CHECK_INT(marcel_read(*(int *)arg, &c, 1), 1);
	return c == 'p' ? arg : NULL;
}

/* At the poller: one may sleep in the kernel, on the only LWP for that. */
static void until_all_but_one_are_parked(const marcel_t *t)
{
	int n = 0;

	while (n < READERS - 1) {
		marcel_yield();
		n = 0;
		for (int i = 0; i < READERS; i++)
			n += load_acquire(&t[i]->state) == MARCEL_T_PARKED;
	}
}

/* With one LWP for its threads; the child has its own set of descriptors. */
TEST(a_child_does_not_touch_the_parents_poller)
{
	struct marcel_config config = { .nvp = 1 };
	void *out = NULL;
	marcel_t t[READERS];
	int fds[2];
	pid_t pid;

	if (BASE_TSAN)
		check_skip("TSan allows no kernel threads in a child");
	setenv("MARCEL_LWP_MAX", "1", 1);
	CHECK_INT(marcel_init(&config), 0);
	unsetenv("MARCEL_LWP_MAX");
	CHECK_INT(pipe(fds), 0);
	for (int i = 0; i < READERS; i++)
		CHECK_INT(marcel_create(&t[i], NULL, read_one, &fds[0]), 0);
	until_all_but_one_are_parked(t);
	pid = fork_one(0);
	if (pid == 0)
		_exit(use_runtime());
	wait_for(pid, 0);
	CHECK_INT(write(fds[1], "pppp", READERS), READERS);
	for (int i = 0; i < READERS; i++) {
		CHECK_INT(marcel_join(t[i], &out), 0);
		CHECK(out != NULL);
	}
	CHECK_INT(marcel_end(), 0);
	close(fds[0]);
	close(fds[1]);
}
