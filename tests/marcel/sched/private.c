/*
 * marcel/sched/private.c: a thread with thread-local storage of its own stays
 * on one kernel thread, which no other user thread ever sees, and which ends
 * with it.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/atomic.h>
#include <marcel/io.h>
#include "../../../marcel/sched/private.h"
#include "../with.h"

enum { ROUNDS = 1000, MANY = 3000 };

static __thread int mine; /* of this kernel thread */
static marcel_attr_t private;

/* TEST_VPS, with 2 VPs as well and the attribute set. */
#define TEST_PRIVATE(name)                                                     \
	static void name##_body(void);                                         \
	static void name##_with(void)                                          \
	{                                                                      \
		CHECK_INT(marcel_attr_init(&private), 0);                      \
		CHECK_INT(marcel_attr_setprivatetls(&private, 1), 0);          \
		name##_body();                                                 \
	}                                                                      \
	TEST(name##_on_1_vp)                                                   \
	{                                                                      \
		with_vps(1, name##_with);                                      \
	}                                                                      \
	TEST(name##_on_2_vps)                                                  \
	{                                                                      \
		with_vps(2, name##_with);                                      \
	}                                                                      \
	TEST(name##_on_4_vps)                                                  \
	{                                                                      \
		with_vps(4, name##_with);                                      \
	}                                                                      \
	static void name##_body(void)

static marcel_t start(void *(*fn)(void *), void *arg)
{
	marcel_t t;

	CHECK_INT(marcel_create(&t, &private, fn, arg), 0);
	return t;
}

static marcel_t start_ordinary(void *(*fn)(void *), void *arg)
{
	marcel_t t;

	CHECK_INT(marcel_create(&t, NULL, fn, arg), 0);
	return t;
}

static void *join(marcel_t t)
{
	void *value;

	CHECK_INT(marcel_join(t, &value), 0);
	return value;
}

/* --- the attribute --- */

TEST(the_attribute_is_0_or_1)
{
	marcel_attr_t attr = { { 0 } };
	int on;

	CHECK_INT(marcel_attr_setprivatetls(&attr, 1), EINVAL);
	CHECK_INT(marcel_attr_getprivatetls(&attr, &on), EINVAL);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_getprivatetls(&attr, &on), 0);
	CHECK_INT(on, 0);
	CHECK_INT(marcel_attr_setprivatetls(&attr, 2), EINVAL);
	CHECK_INT(marcel_attr_setprivatetls(&attr, 1), 0);
	CHECK_INT(marcel_attr_getprivatetls(&attr, &on), 0);
	CHECK_INT(on, 1);
}

static void *has_it(void *arg)
{
	marcel_attr_t attr;
	int on;

	CHECK_INT(marcel_getattr_np(marcel_self(), &attr), 0);
	CHECK_INT(marcel_attr_getprivatetls(&attr, &on), 0);
	return (void *)(intptr_t)on;
}

TEST_PRIVATE(a_thread_knows_it)
{
	CHECK_INT((intptr_t)join(start(has_it, NULL)), 1);
	CHECK_INT((intptr_t)join(start_ordinary(has_it, NULL)), 0);
}

/* --- one kernel thread --- */

static marcel_sem_t full, empty;

static void *yields(void *arg)
{
	pid_t tid = gettid();
	pthread_t self = pthread_self();

	CHECK_INT(mine, 0);
	mine = (int)(intptr_t)arg;
	for (int i = 0; i < ROUNDS; i++) {
		marcel_yield();
		CHECK_INT(gettid(), tid);
		CHECK_INT(mine, (intptr_t)arg);
	}
	CHECK(pthread_equal(self, pthread_self()));
	mine = 0;
	return arg;
}

TEST_PRIVATE(it_stays_there_over_a_thousand_yields)
{
	CHECK_INT((intptr_t)join(start(yields, (void *)5)), 5);
}

/* Others find none of it, and are not disturbed. */
static void *is_ordinary(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(mine, 0);
		marcel_yield();
	}
	return arg;
}

TEST_PRIVATE(it_stays_there_beside_others)
{
	marcel_t t[4], other[4];

	for (intptr_t i = 0; i < 4; i++) {
		t[i] = start(yields, (void *)(i + 1));
		other[i] = start_ordinary(is_ordinary, NULL);
	}
	for (intptr_t i = 0; i < 4; i++) {
		CHECK_INT((intptr_t)join(t[i]), i + 1);
		join(other[i]);
	}
}

static void *waits(void *arg)
{
	pid_t tid = gettid();

	mine = 7;
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(marcel_sem_wait(&full), 0);
		CHECK_INT(gettid(), tid);
		CHECK_INT(mine, 7);
		CHECK_INT(marcel_sem_post(&empty), 0);
	}
	return arg;
}

TEST_PRIVATE(it_stays_there_over_a_thousand_waits)
{
	marcel_t t;

	CHECK_INT(marcel_sem_init(&full, 0, 0), 0);
	CHECK_INT(marcel_sem_init(&empty, 0, 0), 0);
	t = start(waits, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(marcel_sem_post(&full), 0);
		CHECK_INT(marcel_sem_wait(&empty), 0);
	}
	join(t);
	CHECK_INT(marcel_sem_destroy(&full), 0);
	CHECK_INT(marcel_sem_destroy(&empty), 0);
}

/* Two that wake each other: the VP goes from one to the other. */
static void *answers(void *arg)
{
	pid_t tid = gettid();

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(marcel_sem_wait(&full), 0);
		CHECK_INT(marcel_sem_post(&empty), 0);
		CHECK_INT(gettid(), tid);
	}
	return arg;
}

static void *asks(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(marcel_sem_post(&full), 0);
		CHECK_INT(marcel_sem_wait(&empty), 0);
	}
	return arg;
}

TEST_PRIVATE(two_of_them_take_turns)
{
	marcel_t a, b;

	CHECK_INT(marcel_sem_init(&full, 0, 0), 0);
	CHECK_INT(marcel_sem_init(&empty, 0, 0), 0);
	a = start(answers, NULL);
	b = start(asks, NULL);
	join(a);
	join(b);
}

static pthread_mutex_t robust;

/* The kernel thread is the owner, over a wait. */
static void *owns(void *arg)
{
	CHECK_INT(pthread_mutex_lock(&robust), 0);
	for (int i = 0; i < 100; i++)
		marcel_yield();
	CHECK_INT(pthread_mutex_lock(&robust), EDEADLK);
	if (arg == NULL)
		CHECK_INT(pthread_mutex_unlock(&robust), 0);
	return arg;
}

TEST_PRIVATE(a_robust_mutex_knows_its_owner)
{
	pthread_mutexattr_t attr;

	CHECK_INT(pthread_mutexattr_init(&attr), 0);
	CHECK_INT(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK),
		  0);
	CHECK_INT(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST), 0);
	CHECK_INT(pthread_mutex_init(&robust, &attr), 0);
	join(start(owns, NULL));
	CHECK_INT(pthread_mutex_lock(&robust), 0);
	CHECK_INT(pthread_mutex_unlock(&robust), 0);
	/* Its kernel thread is about to be gone. */
	join(start(owns, &robust));
	CHECK_INT(pthread_mutex_lock(&robust), EOWNERDEAD);
	CHECK_INT(pthread_mutex_consistent(&robust), 0);
	CHECK_INT(pthread_mutex_unlock(&robust), 0);
	CHECK_INT(pthread_mutex_destroy(&robust), 0);
}

/* --- sections, sleep, computation --- */

static int ends[2];

static void *reads(void *arg)
{
	pid_t tid = gettid();
	char c;

	for (int i = 0; i < 100; i++) {
		CHECK_INT(marcel_read(ends[0], &c, 1), 1);
		CHECK_INT(gettid(), tid);
		marcel_yield();
		CHECK_INT(gettid(), tid);
	}
	return arg;
}

TEST_PRIVATE(who_sleeps_in_the_kernel_holds_up_nobody)
{
	marcel_t t;

	CHECK_INT(pipe(ends), 0);
	t = start(reads, NULL);
	for (int i = 0; i < 100; i++) {
		for (int j = 0; j < 3; j++)
			marcel_yield();
		CHECK_INT(write(ends[1], "x", 1), 1);
	}
	join(t);
	close(ends[0]);
	close(ends[1]);
}

static ATOMIC(int) stop;

static void *computes(void *arg)
{
	pid_t tid = gettid();

	while (load_relaxed(&stop) == 0)
		;
	CHECK_INT(gettid(), tid);
	return arg;
}

static void *stops(void *arg)
{
	store_relaxed(&stop, 1);
	return arg;
}

/* TSan has no tick. */
TEST_PRIVATE(who_computes_is_preempted)
{
	marcel_t t[4], last;

	if (BASE_TSAN)
		return;
	store_relaxed(&stop, 0);
	for (int i = 0; i < 4; i++)
		t[i] = start(computes, NULL);
	last = start_ordinary(stops, NULL);
	for (int i = 0; i < 4; i++)
		join(t[i]);
	join(last);
}

/* --- ends --- */

static ATOMIC(int) destroyed;
static pthread_key_t key;

static void destroy(void *arg)
{
	CHECK_INT(mine, 9);
	CHECK_PTR(arg, &key);
	fetch_add_relaxed(&destroyed, 1);
}

static void *ends_how(void *arg)
{
	mine = 9;
	CHECK_INT(pthread_setspecific(key, &key), 0);
	marcel_yield();
	if (arg != NULL)
		marcel_exit(arg);
	return arg;
}

TEST_PRIVATE(destructors_have_run_when_it_is_joined)
{
	int n = MANY / 10 / FEWER;

	store_relaxed(&destroyed, 0);
	CHECK_INT(pthread_key_create(&key, destroy), 0);
	for (int i = 0; i < n; i++) {
		join(start(ends_how, i % 2 ? &key : NULL));
		CHECK_INT(load_relaxed(&destroyed), i + 1);
	}
	CHECK_INT(marcel_attr_setdetachstate(&private, MARCEL_CREATE_DETACHED),
		  0);
	for (int i = 0; i < 20; i++)
		start(ends_how, NULL);
	while (load_relaxed(&destroyed) < n + 20)
		marcel_yield();
	CHECK_INT(pthread_key_delete(key), 0);
}

static void *is_cancelled(void *arg)
{
	fetch_add_relaxed(&stop, 1);
	CHECK_INT(marcel_sem_wait(&full), 0);
	return arg;
}

TEST_PRIVATE(it_can_be_cancelled)
{
	marcel_t t;

	CHECK_INT(marcel_sem_init(&full, 0, 0), 0);
	for (int i = 0; i < 50; i++) {
		store_relaxed(&stop, 0);
		t = start(is_cancelled, NULL);
		while (i % 2 != 0 && load_relaxed(&stop) == 0)
			marcel_yield();
		CHECK_INT(marcel_cancel(t), 0);
		CHECK_PTR(join(t), MARCEL_CANCELED);
	}
}

static int kernel_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;

	CHECK(d != NULL);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static void *nothing(void *arg)
{
	return arg;
}

TEST_PRIVATE(thousands_leave_no_kernel_thread)
{
	int before;

	for (int i = 0; i < 50; i++)
		join(start(nothing, NULL));
	before = kernel_threads();
	for (int i = 0; i < MANY / FEWER; i++)
		join(start(nothing, NULL));
	/* The last ones are on their way. */
	while (kernel_threads() >= before + 20)
		marcel_yield();
}

/* --- limits --- */

static void at_the_limit(void)
{
	marcel_t t[100];
	int n = 0, rc;

	CHECK_INT(marcel_attr_init(&private), 0);
	CHECK_INT(marcel_attr_setprivatetls(&private, 1), 0);
	store_relaxed(&stop, 0);
	CHECK_INT(marcel_sem_init(&full, 0, 0), 0);
	while ((rc = marcel_create(&t[n], &private, is_cancelled, NULL)) == 0)
		n++;
	CHECK_INT(rc, EAGAIN);
	CHECK(n > 0 && n < 10);
	while (load_relaxed(&stop) < n)
		marcel_yield();
	/* The others go on. */
	join(start_ordinary(is_ordinary, NULL));
	for (int i = 0; i < n; i++)
		CHECK_INT(marcel_sem_post(&full), 0);
	for (int i = 0; i < n; i++)
		join(t[i]);
	for (int i = 0; i < 100; i++)
		join(start(nothing, NULL));
}

TEST(there_are_as_many_as_there_may_be_kernel_threads)
{
	setenv("MARCEL_LWP_MAX", "4", 1);
	with_vps(1, at_the_limit);
	with_vps(2, at_the_limit);
	unsetenv("MARCEL_LWP_MAX");
}

/* --- from elsewhere --- */

static void *makes(void *arg)
{
	CHECK_INT((intptr_t)join(start(yields, (void *)5)), 5);
	CHECK_INT(marcel_sem_post(&full), 0);
	return arg;
}

TEST_PRIVATE(any_thread_makes_them)
{
	pthread_t p;

	CHECK_INT(marcel_sem_init(&full, 0, 0), 0);
	CHECK_INT(pthread_create(&p, NULL, makes, NULL), 0);
	CHECK_INT(marcel_sem_wait(&full), 0);
	CHECK_INT(pthread_join(p, NULL), 0);
	join(start_ordinary(makes, NULL));
	join(start(makes, NULL));
}

static void *forks(void *arg)
{
	int status;
	pid_t pid;

	mine = 11;
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(mine == 11 && marcel_yield() == 0 ? 3 : 4);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(WEXITSTATUS(status), 3);
	return arg;
}

TEST_PRIVATE(it_may_fork)
{
	for (int i = 0; i < 20; i++)
		join(start(forks, NULL));
}

static void *on_vp(void *arg)
{
	for (int i = 0; i < 100; i++) {
		CHECK_INT(marcel_current_vp(), (intptr_t)arg);
		marcel_yield();
	}
	return arg;
}

TEST_PRIVATE(it_runs_where_it_was_told)
{
	for (intptr_t i = 0; i < marcel_nvp(); i++) {
		CHECK_INT(marcel_attr_setvp(&private, (int)i), 0);
		CHECK_INT((intptr_t)join(start(on_vp, (void *)i)), i);
	}
}

static void *moves(void *arg)
{
	marcel_vpset_t set;
	pid_t tid = gettid();

	for (int i = 0; i < 100; i++) {
		marcel_vpset_zero(&set);
		marcel_vpset_add(&set, i % marcel_nvp());
		CHECK_INT(marcel_setaffinity(marcel_self(), &set), 0);
		CHECK_INT(marcel_current_vp(), i % marcel_nvp());
		CHECK_INT(gettid(), tid);
	}
	return arg;
}

TEST_PRIVATE(it_moves_with_its_kernel_thread)
{
	marcel_t t = start(moves, NULL), other = start(moves, NULL);

	join(t);
	join(other);
}

static void *uses_much(void *arg)
{
	volatile char room[300000];

	for (size_t i = sizeof(room); i > 0; i -= 500)
		room[i - 1] = 1;
	return arg;
}

static void size_body(void)
{
	marcel_attr_t attr;
	marcel_t t;

	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setprivatetls(&attr, 1), 0);
	CHECK_INT(marcel_attr_setstacksize(&attr, 1 << 20), 0);
	CHECK_INT(marcel_create(&t, &attr, uses_much, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST(its_stack_has_the_size_that_was_asked_for)
{
	with_vps(1, size_body);
}
