/* marcel/thread/fork.c: children of fork(), with a runtime of their own. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/atomic.h>
#include <marcel/io.h>
#include <marcel/signal.h>
#include "../with.h"
#include "../../../marcel/sched/hook.h"
#include "../../../marcel/sched/place.h"
#include "../../../marcel/signal/signal.h"

enum {
	THREADS = 100 / FEWER, /* that a child makes */
	HANGS_S = 60,          /* a child is killed after so long */
};

static void *nothing(void *arg)
{
	return arg;
}

static void wait_for(pid_t pid, int code)
{
	int status;

	CHECK(pid > 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), code);
}

/* --- what a child does: a number that says what went wrong, or 0 --- */

/* All meet; one waits for a byte, one for a time, and all say that they end. */
struct meeting {
	marcel_mutex_t lock;
	marcel_cond_t all_here;
	marcel_sem_t ended;
	int here, failed;
	int fds[2];
};

struct member {
	struct meeting *m;
	int number;
};

static void *take_part(void *arg)
{
	struct member *me = arg;
	struct meeting *m = me->m;
	char c;

	if (marcel_mutex_lock(&m->lock) != 0)
		m->failed = 1;
	if (++m->here == THREADS)
		marcel_cond_broadcast(&m->all_here);
	while (m->here < THREADS)
		marcel_cond_wait(&m->all_here, &m->lock);
	marcel_mutex_unlock(&m->lock);
	/* TSan allows no kernel threads there: none may sleep in the kernel. */
	if (me->number == 0 && !BASE_TSAN && marcel_read(m->fds[0], &c, 1) != 1)
		m->failed = 1;
	if (me->number == 1 && marcel_usleep(100) != 0)
		m->failed = 1;
	marcel_sem_post(&m->ended);
	return me;
}

static int use_runtime(void)
{
	struct meeting m = { .lock = MARCEL_MUTEX_INITIALIZER,
			     .all_here = MARCEL_COND_INITIALIZER };
	struct member member[THREADS];
	marcel_t t[THREADS];
	void *out;

	if (pipe(m.fds) != 0 || marcel_sem_init(&m.ended, 0, 0) != 0)
		return 20;
	for (int i = 0; i < THREADS; i++) {
		member[i] = (struct member){ &m, i };
		if (marcel_create(&t[i], NULL, take_part, &member[i]) != 0)
			return 21;
	}
	if (!marcel_is_running() || marcel_nvp() != 1 ||
	    marcel_current_vp() != 0)
		return 22;
	for (int i = 1; i < THREADS; i++)
		if (marcel_sem_wait(&m.ended) != 0)
			return 23;
	if (write(m.fds[1], "x", 1) != 1 || marcel_sem_wait(&m.ended) != 0)
		return 24;
	for (int i = 0; i < THREADS; i++)
		if (marcel_join(t[i], &out) != 0 || out != &member[i])
			return 25;
	close(m.fds[0]);
	close(m.fds[1]);
	return m.failed ? 26 : 0;
}

static int look_before(marcel_t parent_self)
{
	marcel_mutex_t m = MARCEL_MUTEX_INITIALIZER;
	marcel_sem_t s;

	if (marcel_is_running() || marcel_nvp() != 0)
		return 1;
	if (marcel_current_vp() != -1 || marcel_self() != parent_self)
		return 2;
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

static int look_in_child(marcel_t parent_self)
{
	int rc = look_before(parent_self);

	if (rc == 0)
		rc = use_runtime();
	if (rc == 0 && !marcel_equal(marcel_self(), parent_self))
		rc = 9;
	return rc;
}

static void *fork_and_look(void *arg)
{
	marcel_t me = marcel_self();
	pid_t pid = fork();

	if (pid == 0) {
		alarm(HANGS_S);
		_exit(look_in_child(me));
	}
	wait_for(pid, 0);
	return arg;
}

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

static void as_user(void *(*fn)(void *))
{
	marcel_t t;

	CHECK_INT(marcel_create(&t, NULL, fn, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
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
		pid[i] = fork();
		if (pid[i] == 0) {
			alarm(HANGS_S);
			_exit(look_in_child(me));
		}
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
	pid = fork();
	if (pid == 0) {
		alarm(HANGS_S);
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
	pid_t pid = fork();
	void *ok = NULL;
	marcel_t t;

	if (pid == 0) {
		alarm(HANGS_S);
		_exit(marcel_create(&t, NULL, look_at_cpus, &t) != 0 ||
		      marcel_join(t, &ok) != 0 || ok == NULL ||
		      look_at_cpus(&t) == NULL);
	}
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

/* --- what is not there --- */

static marcel_mutex_t held = MARCEL_MUTEX_INITIALIZER;
static ATOMIC(int) came, got;

static void *lock_held(void *arg)
{
	fetch_add_relaxed(&came, 1);
	CHECK_INT(marcel_mutex_lock(&held), 0);
	fetch_add_relaxed(&got, 1);
	CHECK_INT(marcel_mutex_unlock(&held), 0);
	return arg;
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
	store_relaxed(&came, 0);
	CHECK_INT(marcel_mutex_lock(&held), 0);
	CHECK_INT(marcel_create(&t, NULL, lock_held, NULL), 0);
	while (load_relaxed(&came) == 0)
		marcel_yield();
	lock = &marcel_sched.levelqs[0].lock;
	base_spin_lock(lock);
	pid = fork();
	if (pid == 0) {
		alarm(HANGS_S);
		_exit(unlock_held());
	}
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
	pid = fork();
	if (pid == 0) {
		alarm(HANGS_S);
		_exit(take_locks_in_child(other, &hook));
	}
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
	store_relaxed(&came, 0);
	CHECK_INT(marcel_mutex_lock(&held), 0);
	CHECK_INT(marcel_create(&t, NULL, lock_held, NULL), 0);
	while (load_relaxed(&came) == 0)
		marcel_yield();
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
	pid = fork();
	if (pid == 0) {
		alarm(HANGS_S);
		_exit(use_runtime());
	}
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
	pid = fork();
	if (pid == 0) {
		alarm(HANGS_S);
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
	fetch_add_relaxed(&came, 1);
	CHECK_INT(marcel_sem_wait(&owed), 0);
	return arg;
}

static void start_waiter(marcel_t *t)
{
	store_relaxed(&came, 0);
	CHECK_INT(marcel_create(t, NULL, wait_owed, NULL), 0);
	while (load_relaxed(&came) == 0)
		marcel_yield();
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

	alarm(HANGS_S);
	start_waiter(&t);
	post_late();
	return marcel_join(t, NULL);
}

static void fork_before_it_is_paid(void)
{
	marcel_t t;
	pid_t pid;

	CHECK_INT(marcel_sem_init(&owed, 0, 0), 0);
	start_waiter(&t);
	post_late();
	pid = fork();
	if (pid == 0)
		_exit(be_paid());
	wait_for(pid, 0);
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST(late_posts_of_a_child_are_paid)
{
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

	store_relaxed(&came, 0);
	store_relaxed(&got, 0);
	CHECK_INT(marcel_mutex_lock(&held), 0);
	CHECK_INT(marcel_create(&t, NULL, lock_held, NULL), 0);
	while (load_relaxed(&came) == 0)
		marcel_yield();
	for (int i = 0; i < 100; i++)
		marcel_yield();
	pid = fork();
	if (pid == 0) {
		alarm(HANGS_S);
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
	pid_t pid = fork();

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

/* --- the end of a child --- */

/* Its main is whoever forked: the process ends with it, and after others. */
static void *fork_and_return(void *arg)
{
	pid_t pid = fork();

	if (pid == 0)
		return NULL;
	wait_for(pid, 0);
	return arg;
}

static void *start_and_return(void *arg)
{
	pid_t pid = fork();

	if (pid == 0) {
		alarm(HANGS_S);
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
	pid_t pid = fork();

	if (pid == 0) {
		alarm(HANGS_S);
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
	pid_t pid = fork();

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
	pid_t pid = fork(), grandchild;
	int status;

	if (pid == 0) {
		alarm(HANGS_S);
		for (int i = 0; i < 3; i++) {
			grandchild = fork();
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
	pid_t pid = fork();
	marcel_t t;

	if (pid == 0) {
		alarm(HANGS_S);
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
	pid_t pid = fork();

	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
		_exit(1);
	}
	wait_for(pid, 3);
	pid = fork();
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

/* --- the poller --- */

static void *read_one(void *arg)
{
	char c = 0;

	fetch_add_relaxed(&came, 1);
	CHECK_INT(marcel_read(*(int *)arg, &c, 1), 1);
	return c == 'p' ? arg : NULL;
}

/* With one LWP for its threads; the child has its own set of descriptors. */
TEST(a_child_does_not_touch_the_parents_poller)
{
	struct marcel_config config = { .nvp = 1 };
	void *out = NULL;
	marcel_t t[4];
	int fds[2];
	pid_t pid;

	if (BASE_TSAN)
		check_skip("TSan allows no kernel threads in a child");
	setenv("MARCEL_LWP_MAX", "1", 1);
	CHECK_INT(marcel_init(&config), 0);
	unsetenv("MARCEL_LWP_MAX");
	CHECK_INT(pipe(fds), 0);
	store_relaxed(&came, 0);
	for (int i = 0; i < 4; i++)
		CHECK_INT(marcel_create(&t[i], NULL, read_one, &fds[0]), 0);
	while (load_relaxed(&came) < 4)
		marcel_yield();
	for (int i = 0; i < 100; i++)
		marcel_yield();
	pid = fork();
	if (pid == 0) {
		alarm(HANGS_S);
		_exit(use_runtime());
	}
	wait_for(pid, 0);
	CHECK_INT(write(fds[1], "pppp", 4), 4);
	for (int i = 0; i < 4; i++) {
		CHECK_INT(marcel_join(t[i], &out), 0);
		CHECK(out != NULL);
	}
	CHECK_INT(marcel_end(), 0);
	close(fds[0]);
	close(fds[1]);
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
