/*
 * marcel/sched/tick.c, marcel/thread/cancel.c: a thread of asynchronous
 * cancellation type ends where it computes, if only the program's own functions
 * are on its stack; and nobody else notices. With the shared library: in a
 * program that has all in itself the runtime's functions are not told apart.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <base/atomic.h>
#include "../with.h"

enum { ROUNDS = 10, SLICES = 10, DEPTH = 3 };

static ATOMIC(int) begun, handled, destroyed, passed, go;

static void with_slice(const char *us, int nvp, void (*body)(void))
{
	setenv("MARCEL_TIMESLICE_US", us, 1);
	store_relaxed(&begun, 0);
	store_relaxed(&handled, 0);
	store_relaxed(&destroyed, 0);
	store_relaxed(&passed, 0);
	store_relaxed(&go, 0);
	with_vps(nvp, body);
	unsetenv("MARCEL_TIMESLICE_US");
}

#define TEST_ASYNC(name)                                                       \
	static void name##_body(void);                                         \
	TEST(name##_on_1_vp)                                                   \
	{                                                                      \
		with_slice("500", 1, name##_body);                             \
	}                                                                      \
	TEST(name##_on_2_vps)                                                  \
	{                                                                      \
		with_slice("500", 2, name##_body);                             \
	}                                                                      \
	TEST(name##_on_4_vps)                                                  \
	{                                                                      \
		with_slice("500", 4, name##_body);                             \
	}                                                                      \
	static void name##_body(void)

/* --- who computes --- */

static void allow(void)
{
	CHECK_INT(marcel_setcanceltype(MARCEL_CANCEL_ASYNCHRONOUS, NULL), 0);
}

static long spin(void)
{
	long n = 0;

	fetch_add_relaxed(&begun, 1);
	while (load_relaxed(&begun) > 0)
		n++;
	return n;
}

/* The compiler does not see that it throws nothing. */
static long (*volatile compute)(void) = spin;

static void handle(void *arg)
{
	CHECK_PTR(arg, &handled);
	fetch_add_relaxed(&handled, 1);
}

static long descend(int depth)
{
	long n;

	marcel_cleanup_push(handle, &handled);
	n = depth > 1 ? descend(depth - 1) + 1 : compute();
	marcel_cleanup_pop(0);
	return n;
}

static marcel_key_t key;

static void destroy(void *value)
{
	CHECK_PTR(value, &key);
	fetch_add_relaxed(&destroyed, 1);
}

static void *computes(void *arg)
{
	CHECK_INT(marcel_setspecific(key, &key), 0);
	allow();
	descend(DEPTH);
	return arg;
}

static marcel_t start(const marcel_attr_t *attr, void *(*fn)(void *))
{
	int before = load_relaxed(&begun);
	marcel_t t;

	CHECK_INT(marcel_create(&t, attr, fn, NULL), 0);
	while (load_relaxed(&begun) == before)
		marcel_yield();
	return t;
}

static void join(marcel_t t)
{
	void *value;

	CHECK_INT(marcel_join(t, &value), 0);
	CHECK_PTR(value, MARCEL_CANCELED);
}

static void cancel(marcel_t t)
{
	CHECK_INT(marcel_cancel(t), 0);
	join(t);
}

/* Nobody else waits for its VP. */
TEST_ASYNC(who_computes_for_ever_ends)
{
	CHECK_INT(marcel_key_create(&key, destroy), 0);
	for (int i = 1; i <= ROUNDS; i++) {
		cancel(start(NULL, computes));
		CHECK_INT(load_relaxed(&handled), DEPTH * i);
		CHECK_INT(load_relaxed(&destroyed), i);
	}
	CHECK_INT(marcel_key_delete(key), 0);
}

TEST_ASYNC(many_end_and_others_go_on)
{
	marcel_t t[8];

	CHECK_INT(marcel_key_create(&key, destroy), 0);
	for (int i = 0; i < 8; i++)
		t[i] = start(NULL, computes);
	for (int i = 0; i < 8; i += 2)
		cancel(t[i]);
	CHECK_INT(load_relaxed(&handled), 4 * DEPTH);
	for (int i = 1; i < 8; i += 2)
		CHECK_INT(marcel_cancel(t[i]), 0);
	for (int i = 1; i < 8; i += 2)
		join(t[i]);
	CHECK_INT(load_relaxed(&handled), 8 * DEPTH);
	CHECK_INT(load_relaxed(&destroyed), 8);
	CHECK_INT(marcel_key_delete(key), 0);
}

static void *counts(void *arg)
{
	allow();
	for (;;)
		fetch_add_relaxed(&begun, 1);
	return arg;
}

/* The signal of the tick is not left blocked where one has ended. */
TEST_ASYNC(its_kernel_thread_takes_ticks)
{
	marcel_attr_t attr;
	marcel_t t;

	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvp(&attr, marcel_nvp() - 1), 0);
	for (int i = 0; i < 10; i++) {
		CHECK_INT(marcel_attr_setprivatetls(&attr, i % 2), 0);
		t = start(&attr, counts);
		cancel(t);
	}
	CHECK_INT(marcel_attr_destroy(&attr), 0);
}

/* Its VP picks a thread between any two looks of the monitor. */
static void *yields(void *arg)
{
	allow();
	for (;;) {
		fetch_add_relaxed(&begun, 1);
		marcel_yield();
	}
	return arg;
}

/* --- who computes without a VP, while all VPs sleep --- */

static int fds[2];
static marcel_t lone;

/* Unannounced: its VP goes, and then there is nothing that others wait for. */
static void *sleeps_and_computes(void *arg)
{
	char c;

	allow();
	CHECK_INT(syscall(SYS_read, fds[0], &c, 1), 1);
	descend(1);
	return arg;
}

/* A kernel thread. The sleeps let the runtime's threads fall asleep. */
static void *wakes_and_cancels(void *arg)
{
	syscall(SYS_nanosleep, &(struct timespec){ .tv_nsec = 20000000 }, NULL);
	CHECK_INT(syscall(SYS_write, fds[1], "x", 1), 1);
	while (load_relaxed(&begun) == 0)
		;
	syscall(SYS_nanosleep, &(struct timespec){ .tv_nsec = 20000000 }, NULL);
	CHECK_INT(marcel_cancel(lone), 0);
	return arg;
}

TEST_ASYNC(who_computes_while_all_vps_sleep_ends)
{
	void *value;
	pthread_t p;

	CHECK_INT(pipe(fds), 0);
	CHECK_INT(marcel_create(&lone, NULL, sleeps_and_computes, NULL), 0);
	marcel_yield();
	CHECK_INT(pthread_create(&p, NULL, wakes_and_cancels, NULL), 0);
	CHECK_INT(marcel_join(lone, &value), 0);
	CHECK_PTR(value, MARCEL_CANCELED);
	CHECK_INT(pthread_join(p, NULL), 0);
	close(fds[0]);
	close(fds[1]);
}

TEST_ASYNC(who_yields_again_and_again_ends)
{
	for (int i = 0; i < 10; i++)
		cancel(start(NULL, yields));
}

/* --- in functions of others --- */

/* As long as a function of others: the next tick may find it here. */
static void compute_a_little(void)
{
	for (int i = 0; i < 1000; i++)
		load_relaxed(&begun);
}

/* Who ends between malloc() and the store has lost what it got. */
int __lsan_is_turned_off(void);

BASE_PUBLIC int __lsan_is_turned_off(void)
{
	return 1;
}

static void *volatile block;

static void *allocates(void *arg)
{
	allow();
	fetch_add_relaxed(&begun, 1);
	for (size_t n = 1;; n = n * 5 % 40093) {
		for (int i = 0; i < 10; i++) {
			block = malloc(n);
			free(block);
		}
		compute_a_little();
	}
	return arg;
}

static void *allocates_once(void *arg)
{
	for (size_t n = 1; n < 10000; n += 7) {
		void *p = malloc(n);

		CHECK(p != NULL);
		free(p);
	}
	return arg;
}

TEST_ASYNC(the_allocator_is_not_left_locked)
{
	marcel_t t[4];

	for (int i = 0; i < ROUNDS; i++) {
		cancel(start(NULL, allocates));
		allocates_once(NULL);
	}
	for (int i = 0; i < 4; i++)
		CHECK_INT(marcel_create(&t[i], NULL, allocates_once, NULL), 0);
	for (int i = 0; i < 4; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

static marcel_mutex_t mutex = MARCEL_MUTEX_INITIALIZER;
static marcel_sem_t sem, none;
static int shared;

static void *locks(void *arg)
{
	allow();
	for (;;) {
		CHECK_INT(marcel_setcancelstate(MARCEL_CANCEL_DISABLE, NULL),
			  0);
		CHECK_INT(marcel_mutex_lock(&mutex), 0);
		shared++;
		CHECK_INT(marcel_usleep(1), 0);
		CHECK_INT(marcel_sem_post(&sem), 0);
		CHECK_INT(marcel_mutex_unlock(&mutex), 0);
		CHECK_INT(marcel_sem_wait(&sem), 0);
		fetch_add_relaxed(&begun, 1);
		CHECK_INT(marcel_setcancelstate(MARCEL_CANCEL_ENABLE, NULL), 0);
		compute_a_little();
	}
	return arg;
}

static void *waits(void *arg)
{
	allow();
	for (;;) {
		fetch_add_relaxed(&begun, 1);
		marcel_usleep(1);
		marcel_sem_timedwait(&none, &(struct timespec){ 0 });
		compute_a_little();
	}
	return arg;
}

TEST_ASYNC(the_runtime_is_not_left_in_the_middle)
{
	void *(*const fn[])(void *) = { locks, waits };
	marcel_t t[4];

	CHECK_INT(marcel_sem_init(&sem, 0, 0), 0);
	CHECK_INT(marcel_sem_init(&none, 0, 0), 0);
	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < 4; k++)
			t[k] = start(NULL, fn[k / 2]);
		for (int k = 0; k < 4; k++)
			cancel(t[k]);
		CHECK_INT(marcel_mutex_trylock(&mutex), 0);
		CHECK_INT(marcel_mutex_unlock(&mutex), 0);
		CHECK_INT(marcel_usleep(1), 0);
	}
	CHECK_INT(marcel_sem_trywait(&sem), EAGAIN);
	CHECK_INT(marcel_sem_destroy(&sem), 0);
	CHECK_INT(marcel_sem_destroy(&none), 0);
}

/* --- where it does not end --- */

static void spin_until_go(void)
{
	fetch_add_relaxed(&begun, 1);
	while (load_relaxed(&go) == 0)
		;
	fetch_add_relaxed(&passed, 1);
}

static void *disables(void *arg)
{
	CHECK_INT(marcel_setcancelstate(MARCEL_CANCEL_DISABLE, NULL), 0);
	allow();
	spin_until_go();
	CHECK_INT(marcel_setcancelstate(MARCEL_CANCEL_ENABLE, NULL), 0);
	CHECK(false);
	return arg;
}

static void *defers(void *arg)
{
	spin_until_go();
	marcel_testcancel();
	CHECK(false);
	return arg;
}

/* It is wanted already when it allows that. */
static void *becomes(void *arg)
{
	spin_until_go();
	allow();
	CHECK(false);
	return arg;
}

static int compare(const void *a, const void *b)
{
	if (load_relaxed(&go) == 0)
		spin_until_go();
	return 0;
}

static void *sorts(void *arg)
{
	int two[2] = { 0 };

	allow();
	qsort(two, 2, sizeof(*two), compare);
	compute();
	return arg;
}

static char *page;

static void fault(int signal)
{
	spin_until_go();
	CHECK_INT(mprotect(page, 1, PROT_READ), 0);
}

static void *faults(void *arg)
{
	long n;

	allow();
	n = *(volatile char *)page;
	return (void *)(compute() + n);
}

static void once_only(void)
{
	spin_until_go();
}

/* Others may wait for it to be done. */
static void *is_once(void *arg)
{
	static marcel_once_t once[8];
	static int n;

	allow();
	CHECK_INT(marcel_once(&once[n++], once_only), 0);
	compute();
	return arg;
}

static void *takes_turns(void *arg)
{
	for (int i = 0; i < SLICES; i++)
		marcel_yield();
	return arg;
}

/* It is interrupted whenever another has its turn. */
static void goes_on(void *(*fn)(void *))
{
	marcel_attr_t attr;
	marcel_t t, other;

	store_relaxed(&passed, 0);
	store_relaxed(&go, 0);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvp(&attr, marcel_nvp() - 1), 0);
	t = start(&attr, fn);
	CHECK_INT(marcel_cancel(t), 0);
	CHECK_INT(marcel_create(&other, &attr, takes_turns, NULL), 0);
	CHECK_INT(marcel_join(other, NULL), 0);
	CHECK_INT(load_relaxed(&passed), 0);
	store_relaxed(&go, 1);
	join(t);
	CHECK_INT(load_relaxed(&passed), 1);
	CHECK_INT(marcel_attr_destroy(&attr), 0);
}

TEST_ASYNC(who_does_not_allow_it_goes_on)
{
	goes_on(disables);
	goes_on(defers);
	goes_on(becomes);
}

/* Not on main's kernel thread, where they would hold up main. */
static void below_others(void)
{
	struct sigaction act = { .sa_handler = fault }, old;
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);

	goes_on(sorts);
	goes_on(is_once);
	page = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	CHECK_INT(sigaction(SIGSEGV, &act, &old), 0);
	goes_on(faults);
	CHECK_INT(sigaction(SIGSEGV, &old, NULL), 0);
	munmap(page, bytes);
}

TEST(what_others_and_the_kernel_have_called_goes_on)
{
	with_slice("500", 2, below_others);
	with_slice("500", 4, below_others);
}
