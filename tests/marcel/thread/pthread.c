/*
 * A program in plain POSIX style, which knows nothing of marcel: compiled with
 * <pthread.h> on kernel threads, and with <marcel/pthread.h> on marcel. Both
 * must do the same.
 */
#ifdef ON_MARCEL
#include <marcel/pthread.h>
#else
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#endif

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include "../../check.h"
#include "../../parent.h"

enum { THREADS = 20, ROUNDS = 50, SLOTS = 4 };

/* --- producers and consumers: mutex, conditions --- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t not_empty, not_full;
	long slot[SLOTS];
	int first, n;
} ring = { .lock = PTHREAD_MUTEX_INITIALIZER,
	   .not_empty = PTHREAD_COND_INITIALIZER,
	   .not_full = PTHREAD_COND_INITIALIZER };

static void *produce(void *arg)
{
	for (long i = 1; i <= ROUNDS; i++) {
		pthread_mutex_lock(&ring.lock);
		while (ring.n == SLOTS)
			pthread_cond_wait(&ring.not_full, &ring.lock);
		ring.slot[(ring.first + ring.n++) % SLOTS] = i;
		pthread_cond_signal(&ring.not_empty);
		pthread_mutex_unlock(&ring.lock);
	}
	return arg;
}

static void *consume(void *arg)
{
	long sum = 0;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&ring.lock);
		while (ring.n == 0)
			pthread_cond_wait(&ring.not_empty, &ring.lock);
		sum += ring.slot[ring.first];
		ring.first = (ring.first + 1) % SLOTS;
		ring.n--;
		pthread_cond_signal(&ring.not_full);
		pthread_mutex_unlock(&ring.lock);
	}
	(void)arg;
	return (void *)sum;
}

TEST(what_is_produced_is_consumed)
{
	pthread_t producer[THREADS], consumer[THREADS];
	long sum = 0;
	void *value;

	for (int i = 0; i < THREADS; i++) {
		CHECK_INT(pthread_create(&producer[i], NULL, produce, NULL), 0);
		CHECK_INT(pthread_create(&consumer[i], NULL, consume, NULL), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		CHECK_INT(pthread_join(producer[i], NULL), 0);
		CHECK_INT(pthread_join(consumer[i], &value), 0);
		sum += (long)value;
	}
	CHECK_INT(sum, (long)THREADS * ROUNDS * (ROUNDS + 1) / 2);
	CHECK_INT(pthread_mutex_destroy(&ring.lock), 0);
	CHECK_INT(pthread_cond_destroy(&ring.not_empty), 0);
	CHECK_INT(pthread_cond_destroy(&ring.not_full), 0);
}

/* --- the other locks, all around one counter each --- */

static struct {
	pthread_rwlock_t rwlock;
	pthread_spinlock_t spin;
	pthread_barrier_t barrier;
	sem_t sem;
	pthread_once_t once;
	pthread_key_t key;
	long written, spun, passed, serial, began, destroyed;
} all = { .rwlock = PTHREAD_RWLOCK_INITIALIZER, .once = PTHREAD_ONCE_INIT };

static void begin_once(void)
{
	all.began++;
}

static void destroy(void *value)
{
	pthread_spin_lock(&all.spin);
	all.destroyed += *(long *)value;
	pthread_spin_unlock(&all.spin);
	free(value);
}

static void *use_all(void *arg)
{
	long *mine = malloc(sizeof(*mine));

	*mine = (long)arg;
	CHECK_INT(pthread_once(&all.once, begin_once), 0);
	CHECK_INT(pthread_setspecific(all.key, mine), 0);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(pthread_rwlock_wrlock(&all.rwlock), 0);
		all.written++;
		CHECK_INT(pthread_rwlock_unlock(&all.rwlock), 0);
		CHECK_INT(pthread_rwlock_rdlock(&all.rwlock), 0);
		CHECK(all.written > i);
		CHECK_INT(pthread_rwlock_unlock(&all.rwlock), 0);
		CHECK_INT(pthread_spin_lock(&all.spin), 0);
		all.spun++;
		CHECK_INT(pthread_spin_unlock(&all.spin), 0);
		CHECK_INT(sem_wait(&all.sem), 0);
		all.passed++;
		CHECK_INT(sem_post(&all.sem), 0);
		sched_yield();
	}
	CHECK_PTR(pthread_getspecific(all.key), mine);
	if (pthread_barrier_wait(&all.barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
		all.serial++;
	return NULL;
}

TEST(all_kinds_of_locks_do_what_they_are_for)
{
	pthread_t t[THREADS];
	pthread_attr_t attr;

	CHECK_INT(pthread_spin_init(&all.spin, PTHREAD_PROCESS_PRIVATE), 0);
	CHECK_INT(pthread_barrier_init(&all.barrier, NULL, THREADS), 0);
	CHECK_INT(sem_init(&all.sem, 0, 1), 0);
	CHECK_INT(pthread_key_create(&all.key, destroy), 0);
	CHECK_INT(pthread_attr_init(&attr), 0);
	CHECK_INT(pthread_attr_setstacksize(&attr, 1 << 18), 0);
	for (long i = 0; i < THREADS; i++)
		CHECK_INT(pthread_create(&t[i], &attr, use_all, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(pthread_join(t[i], NULL), 0);
	CHECK_INT(all.written, THREADS * ROUNDS);
	CHECK_INT(all.spun, THREADS * ROUNDS);
	CHECK_INT(all.passed, THREADS * ROUNDS);
	CHECK_INT(all.serial, 1);
	CHECK_INT(all.began, 1);
	CHECK_INT(all.destroyed, THREADS * (THREADS - 1) / 2);
	CHECK_INT(pthread_attr_destroy(&attr), 0);
	CHECK_INT(pthread_key_delete(all.key), 0);
	CHECK_INT(sem_destroy(&all.sem), 0);
	CHECK_INT(pthread_barrier_destroy(&all.barrier), 0);
	CHECK_INT(pthread_spin_destroy(&all.spin), 0);
}

/* --- ends --- */

static void add(void *arg)
{
	++*(long *)arg;
}

static void *exit_with_handler(void *arg)
{
	pthread_cleanup_push(add, arg);
	pthread_cleanup_push(add, arg);
	pthread_cleanup_pop(1);
	pthread_exit(arg);
	pthread_cleanup_pop(0);
	return NULL;
}

TEST(exit_runs_handlers_and_gives_a_value)
{
	long count = 0;
	pthread_t t;
	void *value;

	CHECK_INT(pthread_create(&t, NULL, exit_with_handler, &count), 0);
	CHECK_INT(pthread_join(t, &value), 0);
	CHECK_PTR(value, &count);
	CHECK_INT(count, 2);
}

/* --- cancellation --- */

struct waits {
	pthread_mutex_t m;
	pthread_cond_t c;
	int waiting, cleaned;
};

static void clean(void *arg)
{
	struct waits *w = arg;

	w->cleaned++;
	CHECK_INT(pthread_mutex_unlock(&w->m), 0);
}

static void *wait_for_ever(void *arg)
{
	struct waits *w = arg;
	int old;

	CHECK_INT(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old), 0);
	CHECK_INT(old, PTHREAD_CANCEL_ENABLE);
	pthread_testcancel();
	CHECK_INT(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old), 0);
	CHECK_INT(old, PTHREAD_CANCEL_DEFERRED);
	CHECK_INT(pthread_mutex_lock(&w->m), 0);
	pthread_cleanup_push(clean, w);
	w->waiting = 1;
	CHECK_INT(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old), 0);
	CHECK_INT(old, PTHREAD_CANCEL_DISABLE);
	for (;;)
		pthread_cond_wait(&w->c, &w->m);
	pthread_cleanup_pop(1);
	return NULL;
}

TEST(who_waits_is_cancelled_and_has_the_mutex)
{
	struct waits w = { .m = PTHREAD_MUTEX_INITIALIZER,
			   .c = PTHREAD_COND_INITIALIZER };
	pthread_t t;
	void *value;

	CHECK_INT(pthread_create(&t, NULL, wait_for_ever, &w), 0);
	pthread_mutex_lock(&w.m);
	while (!w.waiting) {
		pthread_mutex_unlock(&w.m);
		sched_yield();
		pthread_mutex_lock(&w.m);
	}
	pthread_mutex_unlock(&w.m);
	CHECK_INT(pthread_cancel(t), 0);
	CHECK_INT(pthread_join(t, &value), 0);
	CHECK_PTR(value, PTHREAD_CANCELED);
	CHECK_INT(w.cleaned, 1);
	CHECK_INT(pthread_mutex_destroy(&w.m), 0);
	CHECK_INT(pthread_cond_destroy(&w.c), 0);
}

#if !BASE_TSAN /* where there is no tick */
static ATOMIC(int) computing;

static void count(void *arg)
{
	++*(int *)arg;
}

static void *compute_for_ever(void *arg)
{
	int old;

	pthread_cleanup_push(count, arg);
	CHECK_INT(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old), 0);
	store_relaxed(&computing, 1);
	while (load_relaxed(&computing) != 0)
		;
	pthread_cleanup_pop(0);
	return NULL;
}

TEST(who_computes_is_cancelled)
{
	int cleaned = 0;
	pthread_t t;
	void *value;

	store_relaxed(&computing, 0);
	CHECK_INT(pthread_create(&t, NULL, compute_for_ever, &cleaned), 0);
	while (load_relaxed(&computing) == 0)
		sched_yield();
	CHECK_INT(pthread_cancel(t), 0);
	CHECK_INT(pthread_join(t, &value), 0);
	CHECK_PTR(value, PTHREAD_CANCELED);
	CHECK_INT(cleaned, 1);
}
#endif

/* --- attributes --- */

static void *stands_on(void *arg)
{
	char *low = arg, *here = __builtin_frame_address(0);
	pthread_attr_t attr;
	size_t bytes;
	void *found;

	CHECK(here >= low && here < low + (1 << 18));
	CHECK_INT(pthread_getattr_np(pthread_self(), &attr), 0);
	CHECK_INT(pthread_attr_getstack(&attr, &found, &bytes), 0);
	CHECK(here >= (char *)found && here < (char *)found + bytes);
	CHECK_INT(pthread_attr_destroy(&attr), 0);
	return arg;
}

TEST(a_thread_stands_on_the_stack_that_was_brought)
{
	char *low = aligned_alloc(4096, 1 << 18);
	pthread_attr_t attr;
	size_t bytes;
	pthread_t t;
	void *value;

	CHECK_INT(pthread_attr_init(&attr), 0);
	CHECK_INT(pthread_attr_getguardsize(&attr, &bytes), 0);
	CHECK_INT(bytes, 4096);
	CHECK_INT(pthread_attr_setguardsize(&attr, 3 * 4096), 0);
	CHECK_INT(pthread_attr_getguardsize(&attr, &bytes), 0);
	CHECK_INT(bytes, 3 * 4096);
	CHECK_INT(pthread_attr_setstack(&attr, low, 1000), EINVAL);
	CHECK_INT(pthread_attr_setstack(&attr, low, 1 << 18), 0);
	CHECK_INT(pthread_attr_getstack(&attr, &value, &bytes), 0);
	CHECK_PTR(value, low);
	CHECK_INT(bytes, 1 << 18);
	for (int i = 0; i < 10; i++) {
		CHECK_INT(pthread_create(&t, &attr, stands_on, low), 0);
		CHECK_INT(pthread_join(t, &value), 0);
		CHECK_PTR(value, low);
	}
	CHECK_INT(pthread_attr_destroy(&attr), 0);
	free(low);
}

static void *is_ordinary(void *arg)
{
	struct sched_param param;
	int policy;

	CHECK_INT(pthread_getschedparam(pthread_self(), &policy, &param), 0);
	CHECK_INT(policy, SCHED_OTHER);
	CHECK_INT(param.sched_priority, 0);
	CHECK_INT(pthread_setschedparam(pthread_self(), SCHED_OTHER, &param),
		  0);
	CHECK_INT(pthread_setschedprio(pthread_self(), 0), 0);
	CHECK_INT(pthread_setschedprio(pthread_self(), 1), EINVAL);
	param.sched_priority = 1;
	CHECK_INT(pthread_setschedparam(pthread_self(), SCHED_OTHER, &param),
		  EINVAL);
	CHECK_INT(pthread_setschedparam(pthread_self(), 77, &param), EINVAL);
	return arg;
}

TEST(policies_are_kept_and_checked)
{
	struct sched_param param = { .sched_priority = 0 };
	pthread_attr_t attr;
	pthread_t t;
	int value;

	CHECK_INT(pthread_attr_init(&attr), 0);
	CHECK_INT(pthread_attr_getinheritsched(&attr, &value), 0);
	CHECK_INT(value, PTHREAD_INHERIT_SCHED);
	CHECK_INT(pthread_attr_setinheritsched(&attr, 77), EINVAL);
	CHECK_INT(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED),
		  0);
	CHECK_INT(pthread_attr_getscope(&attr, &value), 0);
	CHECK_INT(value, PTHREAD_SCOPE_SYSTEM);
	CHECK_INT(pthread_attr_setscope(&attr, PTHREAD_SCOPE_SYSTEM), 0);
	CHECK_INT(pthread_attr_setscope(&attr, PTHREAD_SCOPE_PROCESS), ENOTSUP);
	CHECK_INT(pthread_attr_setscope(&attr, 77), EINVAL);
	CHECK_INT(pthread_attr_setschedpolicy(&attr, 77), EINVAL);
	CHECK_INT(pthread_attr_setschedpolicy(&attr, SCHED_RR), 0);
	param.sched_priority = 100;
	CHECK_INT(pthread_attr_setschedparam(&attr, &param), EINVAL);
	param.sched_priority = 5;
	CHECK_INT(pthread_attr_setschedparam(&attr, &param), 0);
	param.sched_priority = 0;
	CHECK_INT(pthread_attr_getschedparam(&attr, &param), 0);
	CHECK_INT(param.sched_priority, 5);
	CHECK_INT(pthread_attr_getschedpolicy(&attr, &value), 0);
	CHECK_INT(value, SCHED_RR);

	CHECK_INT(pthread_attr_setschedpolicy(&attr, SCHED_OTHER), 0);
	CHECK_INT(pthread_create(&t, &attr, is_ordinary, NULL), EINVAL);
	param.sched_priority = 0;
	CHECK_INT(pthread_attr_setschedparam(&attr, &param), 0);
	CHECK_INT(pthread_create(&t, &attr, is_ordinary, NULL), 0);
	CHECK_INT(pthread_join(t, NULL), 0);
	CHECK_INT(pthread_attr_destroy(&attr), 0);
	CHECK_INT(pthread_setconcurrency(-1), EINVAL);
	CHECK_INT(pthread_setconcurrency(3), 0);
	CHECK_INT(pthread_getconcurrency(), 3);
}

/* On marcel, the VP: its kernel thread may be bound to no CPU. */
static bool is_on_one_of(const cpu_set_t *set)
{
#ifdef ON_MARCEL
	marcel_vpset_t vps;

	(void)set;
	return marcel_getaffinity(marcel_self(), &vps) == 0 &&
	       marcel_vpset_has(&vps, marcel_current_vp());
#else
	return CPU_ISSET(sched_getcpu(), set);
#endif
}

static void *is_on(void *arg)
{
	cpu_set_t set;

	CHECK_INT(pthread_getaffinity_np(pthread_self(), sizeof(set), &set), 0);
	CHECK(CPU_EQUAL(&set, (cpu_set_t *)arg));
	CHECK(is_on_one_of(&set));
	CHECK_INT(pthread_setaffinity_np(pthread_self(), sizeof(set), &set), 0);
	CPU_ZERO(&set);
	CHECK_INT(pthread_setaffinity_np(pthread_self(), sizeof(set), &set),
		  EINVAL);
	return arg;
}

TEST(threads_run_on_the_cpus_that_they_are_given)
{
	cpu_set_t all, one;
	pthread_attr_t attr;
	pthread_t t;

	CHECK_INT(pthread_getaffinity_np(pthread_self(), sizeof(all), &all), 0);
	CHECK(CPU_COUNT(&all) > 0);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(i, &one);
		CHECK_INT(pthread_attr_init(&attr), 0);
		CHECK_INT(pthread_attr_setaffinity_np(&attr, sizeof(one), &one),
			  0);
		CHECK_INT(pthread_create(&t, &attr, is_on, &one), 0);
		CHECK_INT(pthread_join(t, NULL), 0);
		CHECK_INT(pthread_attr_destroy(&attr), 0);
	}
}

/* --- signals --- */

static sem_t waits;
static int handled;

static void handle(int signal)
{
	handled = signal;
}

static void *waits_for_signals(void *arg)
{
	struct timespec soon = { .tv_nsec = 1000 };
	siginfo_t info;
	sigset_t set, old;
	int signal;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_INT(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_INT(pthread_sigmask(77, &set, NULL), EINVAL);
	CHECK_INT(pthread_sigmask(SIG_BLOCK, NULL, &old), 0);
	CHECK(sigismember(&old, SIGUSR1));
	errno = 0;
	CHECK_INT(sigtimedwait(&set, NULL, &soon), -1);
	CHECK_INT(errno, EAGAIN);
	CHECK_INT(sem_post(&waits), 0);
	CHECK_INT(sigwait(&set, &signal), 0);
	CHECK_INT(signal, SIGUSR1);
	CHECK_INT(pthread_kill(pthread_self(), SIGUSR1), 0);
	CHECK_INT(sigpending(&old), 0);
	CHECK(sigismember(&old, SIGUSR1));
	CHECK_INT(sigwaitinfo(&set, &info), SIGUSR1);
	CHECK_INT(info.si_signo, SIGUSR1);
	CHECK_INT(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
	CHECK_INT(pthread_kill(pthread_self(), SIGUSR1), 0);
	CHECK_INT(handled, SIGUSR1);
	return arg;
}

TEST(signals_go_to_one_thread)
{
	struct sigaction act = { .sa_handler = handle };
	pthread_t t;

	CHECK_INT(sigaction(SIGUSR1, &act, NULL), 0);
	CHECK_INT(sem_init(&waits, 0, 0), 0);
	CHECK_INT(pthread_create(&t, NULL, waits_for_signals, NULL), 0);
	CHECK_INT(pthread_kill(t, 0), 0);
	CHECK_INT(pthread_kill(t, 1000), EINVAL);
	CHECK_INT(sem_wait(&waits), 0);
	CHECK_INT(pthread_kill(t, SIGUSR1), 0);
	CHECK_INT(pthread_join(t, NULL), 0);
	CHECK_INT(sem_destroy(&waits), 0);
}

static void *waits_for_one_signal(void *arg)
{
	sigset_t set;
	int signal;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK_INT(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_INT(sem_post(&waits), 0);
	CHECK_INT(sigwait(&set, &signal), 0);
	return arg;
}

TEST(who_waits_for_a_signal_is_cancelled)
{
	pthread_t t;
	void *value;

	CHECK_INT(sem_init(&waits, 0, 0), 0);
	for (int i = 0; i < 100; i++) {
		CHECK_INT(pthread_create(&t, NULL, waits_for_one_signal, NULL),
			  0);
		CHECK_INT(sem_wait(&waits), 0);
		for (int j = 0; j < i % 3; j++)
			sched_yield();
		CHECK_INT(pthread_cancel(t), 0);
		CHECK_INT(pthread_join(t, &value), 0);
		CHECK_PTR(value, PTHREAD_CANCELED);
	}
	CHECK_INT(sem_destroy(&waits), 0);
}

/* --- errors --- */

static void *waits_for_post(void *sem)
{
	CHECK_INT(sem_wait(sem), 0);
	return NULL;
}

/* As glibc has them. */
static pthread_mutex_t again = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

TEST(a_static_initialiser_says_the_type_of_a_mutex)
{
	CHECK_INT(pthread_mutex_lock(&again), 0);
	CHECK_INT(pthread_mutex_lock(&again), 0);
	CHECK_INT(pthread_mutex_unlock(&again), 0);
	CHECK_INT(pthread_mutex_unlock(&again), 0);
	CHECK_INT(pthread_mutex_unlock(&again), EPERM);
	CHECK_INT(pthread_mutex_lock(&checked), 0);
	CHECK_INT(pthread_mutex_lock(&checked), EDEADLK);
	CHECK_INT(pthread_mutex_unlock(&checked), 0);
	CHECK_INT(pthread_mutex_unlock(&checked), EPERM);
}

TEST(misuse_has_the_error_numbers_of_posix)
{
	pthread_mutexattr_t attr;
	pthread_attr_t threads;
	pthread_mutex_t m;
	char name[32];
	pthread_t t;
	sem_t sem;

	CHECK_INT(pthread_join(pthread_self(), NULL), EDEADLK);
	CHECK_INT(pthread_attr_init(&threads), 0);
	CHECK_INT(pthread_attr_setstacksize(&threads, 1), EINVAL);
	CHECK_INT(pthread_attr_setdetachstate(&threads, 77), EINVAL);
	CHECK_INT(pthread_attr_destroy(&threads), 0);

	CHECK_INT(pthread_mutexattr_init(&attr), 0);
	CHECK_INT(pthread_mutexattr_settype(&attr, 99), EINVAL);
	CHECK_INT(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK),
		  0);
	CHECK_INT(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_PRIVATE),
		  0);
	CHECK_INT(pthread_mutex_init(&m, &attr), 0);
	CHECK_INT(pthread_mutex_lock(&m), 0);
	CHECK_INT(pthread_mutex_lock(&m), EDEADLK);
	CHECK_INT(pthread_mutex_trylock(&m), EBUSY);
	CHECK_INT(pthread_mutex_unlock(&m), 0);
	CHECK_INT(pthread_mutex_unlock(&m), EPERM);
	CHECK_INT(pthread_mutex_destroy(&m), 0);
	CHECK_INT(pthread_mutexattr_destroy(&attr), 0);

	CHECK_INT(sem_init(&sem, 0, 0), 0);
	errno = 0;
	CHECK_INT(sem_trywait(&sem), -1);
	CHECK_INT(errno, EAGAIN);

	CHECK_INT(pthread_create(&t, NULL, waits_for_post, &sem), 0);
	CHECK_INT(pthread_setname_np(t, "short"), 0);
	CHECK_INT(pthread_getname_np(t, name, sizeof(name)), 0);
	CHECK_STR(name, "short");
	CHECK_INT(pthread_getname_np(t, name, 3), ERANGE);
	CHECK_INT(sem_post(&sem), 0);
	CHECK_INT(pthread_join(t, NULL), 0);
	CHECK_INT(sem_destroy(&sem), 0);
}

TEST(a_read_write_lock_prefers_whom_it_is_told_to)
{
	static const int kinds[] = {
		PTHREAD_RWLOCK_DEFAULT_NP,
		PTHREAD_RWLOCK_PREFER_READER_NP,
		PTHREAD_RWLOCK_PREFER_WRITER_NP,
		PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP,
	};
	pthread_rwlock_t l = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
	pthread_rwlockattr_t attr;
	int kind;

	CHECK_INT(pthread_rwlock_wrlock(&l), 0);
	CHECK_INT(pthread_rwlock_tryrdlock(&l), EBUSY);
	CHECK_INT(pthread_rwlock_unlock(&l), 0);
	CHECK_INT(pthread_rwlock_destroy(&l), 0);
	CHECK_INT(pthread_rwlockattr_init(&attr), 0);
	CHECK_INT(pthread_rwlockattr_getkind_np(&attr, &kind), 0);
	CHECK_INT(kind, PTHREAD_RWLOCK_DEFAULT_NP);
	CHECK_INT(pthread_rwlockattr_setkind_np(&attr, 99), EINVAL);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		CHECK_INT(pthread_rwlockattr_setkind_np(&attr, kinds[i]), 0);
		CHECK_INT(pthread_rwlockattr_getkind_np(&attr, &kind), 0);
		CHECK_INT(kind, kinds[i]);
		CHECK_INT(pthread_rwlock_init(&l, &attr), 0);
		CHECK_INT(pthread_rwlock_rdlock(&l), 0);
		CHECK_INT(pthread_rwlock_unlock(&l), 0);
		CHECK_INT(pthread_rwlock_destroy(&l), 0);
	}
	CHECK_INT(pthread_rwlockattr_destroy(&attr), 0);
}

#ifdef ON_MARCEL
/*
 * Which kinds are recursive; this compiles only if all are different. (Kernel
 * threads have one number for two, and do not say that they wait.)
 */
static int reads_again(int kind)
{
	switch (kind) {
	case PTHREAD_RWLOCK_PREFER_READER_NP:
	case PTHREAD_RWLOCK_PREFER_WRITER_NP:
		return 0;
	case PTHREAD_RWLOCK_DEFAULT_NP:
	case PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP:
		return EBUSY;
	default:
		return -1;
	}
}

static int is_waiting(const struct marcel_info *info, void *t)
{
	return marcel_equal(info->id, *(marcel_t *)t) &&
	       info->state == MARCEL_STATE_WAITING;
}

static void *writes_once(void *arg)
{
	CHECK_INT(pthread_rwlock_wrlock(arg), 0);
	CHECK_INT(pthread_rwlock_unlock(arg), 0);
	return arg;
}

TEST(who_reads_may_lock_again_unless_the_kind_is_not_recursive)
{
	static const int kinds[] = {
		PTHREAD_RWLOCK_DEFAULT_NP,
		PTHREAD_RWLOCK_PREFER_READER_NP,
		PTHREAD_RWLOCK_PREFER_WRITER_NP,
		PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP,
	};
	pthread_rwlockattr_t attr;
	pthread_rwlock_t l;
	pthread_t writer;
	int expected;

	CHECK_INT(pthread_rwlockattr_init(&attr), 0);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		CHECK_INT(pthread_rwlockattr_setkind_np(&attr, kinds[i]), 0);
		CHECK_INT(pthread_rwlock_init(&l, &attr), 0);
		CHECK_INT(pthread_rwlock_rdlock(&l), 0);
		CHECK_INT(pthread_create(&writer, NULL, writes_once, &l), 0);
		while (!marcel_threads(is_waiting, &writer))
			sched_yield();
		expected = reads_again(kinds[i]);
		CHECK_INT(pthread_rwlock_tryrdlock(&l), expected);
		if (expected == 0)
			CHECK_INT(pthread_rwlock_unlock(&l), 0);
		CHECK_INT(pthread_rwlock_unlock(&l), 0);
		CHECK_INT(pthread_join(writer, NULL), 0);
		CHECK_INT(pthread_rwlock_destroy(&l), 0);
	}
	CHECK_INT(pthread_rwlockattr_destroy(&attr), 0);
}

static void *pass_on(void *arg)
{
	return arg;
}

static void *make_in_child(void *arg)
{
	pthread_t t[THREADS];
	pid_t pid = parent_forks(fork);
	int status = -1;
	void *out;

	if (pid != 0) {
		CHECK_INT(waitpid(pid, &status, 0), pid);
		CHECK_INT(status, 0);
		return arg;
	}
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, pass_on, &t[i]) != 0)
			_exit(1);
	for (int i = 0; i < THREADS; i++)
		if (pthread_join(t[i], &out) != 0 || out != &t[i])
			_exit(2);
	_exit(0);
}

TEST(a_forked_child_makes_threads)
{
	pthread_t t;

	if (BASE_ASAN || BASE_TSAN)
		check_skip("a sanitizer's locks are not those of a child");
	make_in_child(NULL);
	CHECK_INT(pthread_create(&t, NULL, make_in_child, NULL), 0);
	CHECK_INT(pthread_join(t, NULL), 0);
}

TEST(what_is_not_offered_is_refused)
{
	pthread_mutexattr_t attr;
	pthread_barrierattr_t barrier;
	pthread_condattr_t cond;
	pthread_rwlockattr_t rw;
	sem_t sem;
	int value;

	CHECK_INT(pthread_barrierattr_init(&barrier), 0);
	CHECK_INT(pthread_barrierattr_setpshared(&barrier,
						 PTHREAD_PROCESS_SHARED),
		  ENOTSUP);
	CHECK_INT(pthread_condattr_init(&cond), 0);
	CHECK_INT(pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED),
		  ENOTSUP);
	CHECK_INT(pthread_rwlockattr_init(&rw), 0);
	CHECK_INT(pthread_rwlockattr_setpshared(&rw, PTHREAD_PROCESS_SHARED),
		  ENOTSUP);
	CHECK_INT(pthread_mutexattr_init(&attr), 0);
	CHECK_INT(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED),
		  ENOTSUP);
	CHECK_INT(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT),
		  ENOTSUP);
	CHECK_INT(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_PROTECT),
		  ENOTSUP);
	CHECK_INT(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_NONE), 0);
	CHECK_INT(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST),
		  ENOTSUP);
	CHECK_INT(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_STALLED), 0);
	CHECK_INT(pthread_mutexattr_setrobust(&attr, 5), EINVAL);
	CHECK_INT(pthread_mutexattr_getpshared(&attr, &value), 0);
	CHECK_INT(value, PTHREAD_PROCESS_PRIVATE);
	CHECK_INT(pthread_mutexattr_destroy(&attr), 0);
	CHECK_INT(pthread_mutexattr_getrobust(&attr, &value), EINVAL);
	CHECK_INT(sem_init(&sem, 1, 0), -1);
	CHECK_INT(errno, ENOTSUP);
}

/* The runtime has begun with the first thread; nothing here has started it. */
TEST(the_threads_were_user_threads)
{
	CHECK(marcel_is_running());
	CHECK(marcel_current_vp() >= 0);
}
#endif
