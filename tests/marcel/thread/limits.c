/*
 * marcel/thread/thread.c, stack.c: how many threads there can be, and what
 * happens beyond.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include "../with.h"

/* --- MARCEL_MAXTHREADS --- */

enum { LIMIT = 10 };

static marcel_sem_t gate;

static void *wait_at_gate(void *arg)
{
	marcel_sem_wait(&gate);
	return arg;
}

static void start_limited(int nvp)
{
	struct marcel_config config = { .nvp = nvp };

	setenv("MARCEL_MAXTHREADS", "10", 1);
	CHECK_INT(marcel_init(&config), 0);
	unsetenv("MARCEL_MAXTHREADS");
	CHECK_INT(marcel_sem_init(&gate, 0, 0), 0);
}

/* Creates up to the limit; how many that were. */
static int create_all(marcel_t *t)
{
	int n = 0, rc;

	while ((rc = marcel_create(&t[n], NULL, wait_at_gate, NULL)) == 0)
		CHECK(++n <= LIMIT);
	CHECK_INT(rc, EAGAIN);
	return n;
}

static void join_all(marcel_t *t, int n)
{
	for (int i = 0; i < n; i++)
		marcel_sem_post(&gate);
	for (int i = 0; i < n; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

static void *create_and_join(void *arg)
{
	marcel_t t[LIMIT + 1];
	int n = create_all(t);

	join_all(t, n);
	*(int *)arg = n;
	return NULL;
}

static void each_kind_meets_the_limit(int nvp)
{
	marcel_t t;
	pthread_t p;
	int n = 0;

	start_limited(nvp);
	for (int round = 0; round < 3; round++) {
		create_and_join(&n);
		CHECK_INT(n, LIMIT);
		CHECK_INT(pthread_create(&p, NULL, create_and_join, &n), 0);
		marcel_blocking_begin();
		CHECK_INT(pthread_join(p, NULL), 0);
		marcel_blocking_end();
		CHECK_INT(n, LIMIT);
		CHECK_INT(marcel_create(&t, NULL, create_and_join, &n), 0);
		CHECK_INT(marcel_join(t, NULL), 0);
		CHECK_INT(n, LIMIT - 1); /* and itself */
	}
	CHECK_INT(marcel_end(), 0);
}

TEST(no_more_threads_than_allowed_on_1_vp)
{
	each_kind_meets_the_limit(1);
}

TEST(no_more_threads_than_allowed_on_4_vps)
{
	each_kind_meets_the_limit(4);
}

TEST(detached_threads_count_until_they_end)
{
	marcel_attr_t attr;
	marcel_t t[LIMIT + 1];

	setenv("MARCEL_TIMESLICE_US", "0", 1); /* nobody is late to end */
	start_limited(1);
	unsetenv("MARCEL_TIMESLICE_US");
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setdetachstate(&attr, MARCEL_CREATE_DETACHED), 0);
	CHECK_INT(marcel_create(&t[0], &attr, wait_at_gate, NULL), 0);
	CHECK_INT(marcel_create(&t[0], NULL, wait_at_gate, NULL), 0);
	CHECK_INT(marcel_detach(t[0]), 0);
	for (int i = 0; i < 3 * LIMIT; i++)
		marcel_yield(); /* so that these two wait first */
	CHECK_INT(create_all(&t[1]), LIMIT - 2);
	for (int i = 0; i < 2; i++)
		marcel_sem_post(&gate);
	for (int i = 0; i < 3 * LIMIT; i++)
		marcel_yield();
	for (int i = 1; i < LIMIT - 1; i++)
		marcel_sem_post(&gate);
	for (int i = 1; i < LIMIT - 1; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(create_all(t), LIMIT);
	join_all(t, LIMIT);
	CHECK_INT(marcel_end(), 0);
}

TEST(a_thread_that_is_refused_is_not_counted)
{
	marcel_t t[LIMIT + 1];
	marcel_attr_t attr;

	start_limited(3);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvp(&attr, 2), 0);
	CHECK_INT(marcel_end(), 0);
	start_limited(1);
	for (int i = 0; i < 3 * LIMIT; i++)
		CHECK_INT(marcel_create(&t[0], &attr, wait_at_gate, NULL),
			  EINVAL);
	CHECK_INT(create_all(t), LIMIT);
	join_all(t, LIMIT);
	CHECK_INT(marcel_end(), 0);
}

/* --- memory --- */

/* In a child; its answer is its exit code. */
static void in_child(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		body();
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

#define MUST(x)                                                                \
	do {                                                                   \
		if (!(x)) {                                                    \
			printf("# line %d: %s\n", __LINE__, #x);               \
			fflush(stdout);                                        \
			_exit(1);                                              \
		}                                                              \
	} while (0)

static void limit_memory(rlim_t more)
{
	struct rlimit limit;
	long pages;
	FILE *f = fopen("/proc/self/statm", "r");

	MUST(f != NULL && fscanf(f, "%ld", &pages) == 1);
	fclose(f);
	limit.rlim_cur = limit.rlim_max = (rlim_t)pages * 4096 + more;
	MUST(setrlimit(RLIMIT_AS, &limit) == 0);
}

/*
 * Blocked threads until one more cannot be had: a seed that finds no memory
 * for a stack waits, and no more are made until there is some.
 */
static void run_out(void)
{
	enum { MOST = 100000 };
	struct marcel_config config = { .nvp = 2 };
	static marcel_t t[MOST];
	int n = 0, rc;

	MUST(marcel_init(&config) == 0);
	MUST(marcel_sem_init(&gate, 0, 0) == 0);
	limit_memory(64 << 20);
	while ((rc = marcel_create(&t[n], NULL, wait_at_gate, NULL)) == 0) {
		MUST(++n < MOST);
		marcel_yield();
	}
	MUST(rc == EAGAIN && n > 100);
	for (int i = 0; i < n; i++)
		marcel_sem_post(&gate);
	for (int i = 0; i < n; i++)
		MUST(marcel_join(t[i], NULL) == 0);
	MUST(marcel_create(&t[0], NULL, wait_at_gate, NULL) == 0);
	marcel_sem_post(&gate);
	MUST(marcel_join(t[0], NULL) == 0);
	MUST(marcel_end() == 0);
}

TEST(without_memory_no_thread_is_made_and_those_that_are_go_on)
{
	if (BASE_ASAN || BASE_TSAN)
		check_skip("sanitizers need their address space");
	in_child(run_out);
}

static void huge_stacks(void)
{
	struct marcel_config config = { .nvp = 1 };
	marcel_attr_t attr;
	marcel_t t[4];
	int n = 0, rc;

	MUST(marcel_init(&config) == 0);
	MUST(marcel_sem_init(&gate, 0, 0) == 0);
	MUST(marcel_attr_init(&attr) == 0);
	MUST(marcel_attr_setstacksize(&attr, (size_t)1 << 30) == 0);
	limit_memory(((rlim_t)5 << 30) / 2);
	while ((rc = marcel_create(&t[n], &attr, wait_at_gate, NULL)) == 0)
		MUST(++n < 4);
	MUST(rc == EAGAIN && n == 2);
	/* That says nothing about threads of ordinary size. */
	MUST(marcel_create(&t[n++], NULL, wait_at_gate, NULL) == 0);
	for (int i = 0; i < n; i++)
		marcel_sem_post(&gate);
	for (int i = 0; i < n; i++)
		MUST(marcel_join(t[i], NULL) == 0);
	MUST(marcel_end() == 0);
}

TEST(a_stack_that_cannot_be_had_is_refused_at_once)
{
	if (BASE_ASAN || BASE_TSAN)
		check_skip("sanitizers need their address space");
	in_child(huge_stacks);
}

/* --- very many --- */

enum {
	MILLION = 1000000,
	ENOUGH = BASE_ASAN || BASE_TSAN ? 1000 : 100000, /* to be very many */
	BATCH = 1000,
	THREAD_B = BASE_ASAN || BASE_TSAN ? 100000 : 4400, /* blocked */
	SHARE = 4, /* we take one of so many parts of what is left */
};

/* As the machine, or our part of it, has memory; skips if they are too few. */
static long how_many(void)
{
	long n, limit = -1, used = 0, kb = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "r");

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "MemAvailable: %ld", &kb) == 1)
			break;
	if (f != NULL)
		fclose(f);
	n = kb * 1024;
	f = fopen("/sys/fs/cgroup/memory.max", "r");
	if (f != NULL && fscanf(f, "%ld", &limit) != 1)
		limit = -1;
	if (f != NULL)
		fclose(f);
	f = fopen("/sys/fs/cgroup/memory.current", "r");
	if (f != NULL && fscanf(f, "%ld", &used) != 1)
		used = 0;
	if (f != NULL)
		fclose(f);
	if (limit > 0 && limit - used < n)
		n = limit - used;
	n /= SHARE * THREAD_B;
	if (BASE_TSAN && n > 1000)
		n = 1000; /* it has room for some thousands */
	if (n < ENOUGH) {
		snprintf(line, sizeof(line),
			 "needs %ld MB for %d threads, has %ld",
			 (long)ENOUGH * SHARE * THREAD_B / 1000000, ENOUGH,
			 n * SHARE * THREAD_B / 1000000);
		check_skip(line);
	}
	return n < MILLION ? n / BATCH * BATCH : MILLION;
}

static ATOMIC(long) blocked, ended;
static marcel_sem_t batch;

static void *block_and_end(void *arg)
{
	if (fetch_add_relaxed(&blocked, 1) % BATCH == BATCH - 1)
		marcel_sem_post(&batch);
	marcel_sem_wait(arg);
	fetch_add_relaxed(&ended, 1);
	return NULL;
}

static void block_so_many(long n)
{
	marcel_t *t = malloc((size_t)n * sizeof(*t));
	marcel_sem_t sem;

	CHECK(t != NULL);
	CHECK(n % BATCH == 0);
	printf("# %ld threads\n", n);
	store_relaxed(&blocked, 0);
	store_relaxed(&ended, 0);
	CHECK_INT(marcel_sem_init(&sem, 0, 0), 0);
	CHECK_INT(marcel_sem_init(&batch, 0, 0), 0);
	for (long i = 0; i < n; i++) {
		CHECK_INT(marcel_create(&t[i], NULL, block_and_end, &sem), 0);
		if (i % BATCH == BATCH - 1)
			marcel_sem_wait(&batch);
	}
	CHECK_INT(load_relaxed(&blocked), n);
	for (long i = 0; i < n; i++)
		CHECK_INT(marcel_sem_post(&sem), 0);
	for (long i = 0; i < n; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(load_relaxed(&ended), n);
	CHECK_INT(marcel_sem_destroy(&sem), 0);
	free(t);
}

TEST(a_million_threads_can_be_blocked_at_a_time)
{
	struct marcel_config config = { .nvp = 1 };
	long n = how_many();

	CHECK_INT(marcel_init(&config), 0);
	block_so_many(n);
	CHECK_INT(marcel_end(), 0);
}

TEST(a_hundred_thousand_can_be_on_several_vps)
{
	struct marcel_config config = { .nvp = 4 };
	long n = how_many();

	CHECK_INT(marcel_init(&config), 0);
	block_so_many(n < MILLION / 10 ? n : MILLION / 10);
	CHECK_INT(marcel_end(), 0);
}
