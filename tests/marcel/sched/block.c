/*
 * marcel/sched/block.c: who sleeps in the kernel in an announced section holds
 * up nobody, and goes on when its call returns.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/atomic.h>
#include <marcel/io.h>
#include "../../../marcel/sched/vp.h"
#include "../with.h"

enum { READERS = 200 / FEWER, ROUNDS = 1000 / FEWER, THREADS = 16 };

static int pipes[READERS][2];

static void open_pipes(int n)
{
	for (int i = 0; i < n; i++)
		CHECK_INT(pipe2(pipes[i], O_CLOEXEC), 0);
}

static void close_pipes(int n)
{
	for (int i = 0; i < n; i++) {
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
}

static char read_one(int i)
{
	char c = 0;
	ssize_t n;

	marcel_blocking_begin();
	n = read(pipes[i][0], &c, 1);
	marcel_blocking_end();
	CHECK_INT(n, 1);
	return c;
}

static void write_one(int i, char c)
{
	CHECK_INT(write(pipes[i][1], &c, 1), 1);
}

static void *reader(void *arg)
{
	int i = (int)(intptr_t)arg;

	CHECK_INT(read_one(i), 'a' + i % 26);
	CHECK(marcel_self() != NULL);
	return arg;
}

/* Main and others run while a thread reads a pipe that stays empty. */
static void *yielder(void *arg)
{
	for (int i = 0; i < 1000; i++)
		marcel_yield();
	return arg;
}

TEST_VPS(a_read_of_an_empty_pipe_leaves_the_others_running)
{
	marcel_t t, others[4];

	open_pipes(1);
	CHECK_INT(marcel_create(&t, NULL, reader, NULL), 0);
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 4; i++)
			CHECK_INT(
				marcel_create(&others[i], NULL, yielder, NULL),
				0);
		for (int i = 0; i < 4; i++)
			CHECK_INT(marcel_join(others[i], NULL), 0);
	}
	write_one(0, 'a');
	CHECK_INT(marcel_join(t, NULL), 0);
	close_pipes(1);
}

static void *writer(void *arg)
{
	yielder(NULL);
	write_one(0, 'x');
	return arg;
}

/* Main sleeps in its own kernel thread, and comes back to that. */
TEST_VPS(main_may_sleep_too)
{
	pid_t before = gettid();
	marcel_t t;

	open_pipes(1);
	for (int i = 0; i < 50; i++) {
		CHECK_INT(marcel_create(&t, NULL, writer, NULL), 0);
		CHECK_INT(read_one(0), 'x');
		CHECK_INT(gettid(), before);
		CHECK_INT(marcel_join(t, NULL), 0);
		CHECK_INT(gettid(), before);
	}
	close_pipes(1);
}

/* All of them sleep before the first byte is written. */
TEST_VPS(data_may_arrive_in_reverse_order)
{
	marcel_t t[READERS];
	int n = marcel_nvp() == 1 ? 60 : READERS;

	n = n < READERS ? n : READERS;
	open_pipes(n);
	for (int i = 0; i < n; i++)
		CHECK_INT(
			marcel_create(&t[i], NULL, reader, (void *)(intptr_t)i),
			0);
	for (int i = 0; i < 100; i++)
		marcel_yield();
	for (int i = n; i-- > 0;) {
		write_one(i, (char)('a' + i % 26));
		CHECK_INT(marcel_join(t[i], NULL), 0);
	}
	close_pipes(n);
}

/* --- who comes back from the kernel --- */

static bool is_of_lowest_priority(void)
{
	return sched_getscheduler(0) == SCHED_IDLE ||
	       getpriority(PRIO_PROCESS, 0) == 19;
}

static ATOMIC(int) is_back;

/* The spare's first, and it keeps the VP until the reader is back. */
static void *writes_and_computes(void *arg)
{
	struct marcel_vp *vp = marcel_vp_self();
	char c = 'x';

	store_relaxed((ATOMIC(int) *)arg, is_of_lowest_priority() ? 1 : 2);
	CHECK_INT(syscall(SYS_write, pipes[0][1], &c, 1), 1);
	while (load_relaxed(&is_back) == 0)
		;
	CHECK_PTR(vp, &marcel_sched.vps[0]);
	CHECK_PTR(marcel_vp_lwp(vp), cpu_tls_word());
	return arg;
}

static void *reads_and_is_back(void *by_wrapper)
{
	ATOMIC(int) spare = ATOMIC_INIT(0);
	marcel_t t;
	char c = 0;

	store_relaxed(&is_back, 0);
	CHECK_INT(marcel_create(&t, NULL, writes_and_computes, &spare), 0);
	if (by_wrapper != NULL)
		CHECK_INT(marcel_read(pipes[0][0], &c, 1), 1);
	else
		c = read_one(0);
	store_relaxed(&is_back, 1);
	CHECK_INT(c, 'x');
	CHECK_INT(load_relaxed(&spare),
		  load_relaxed(&marcel_lwps.lowers) != 0 ? 1 : 2);
	CHECK(!is_of_lowest_priority());
	CHECK_INT(marcel_join(t, NULL), 0);
	return NULL;
}

static void readers_come_back(void)
{
	marcel_t t;

	open_pipes(1);
	for (int i = 0; i < 20; i++) {
		CHECK_INT(marcel_create(&t, NULL, reads_and_is_back,
					i % 2 == 0 ? NULL : &t),
			  0);
		CHECK_INT(marcel_join(t, NULL), 0);
	}
	close_pipes(1);
}

/*
 * The kernel lets it run in the place of the one of lowest priority that has
 * its VP (if that may be, the privileges being what they are); and it needs no
 * VP to go on, so nobody has to be preempted, nor to leave: it would wait for
 * ever here.
 */
TEST(who_has_slept_goes_on_at_once_and_without_a_vp)
{
	if (is_of_lowest_priority())
		check_skip("nothing is lower than what this process has");
	without_ticks(readers_come_back);
}

/* Nothing is ready, nothing blocks: no switch, no system call of ours. */
TEST(a_call_that_does_not_sleep_costs_no_switch)
{
	struct rusage before, after;
	struct marcel_config one = { .nvp = 1 };
	pid_t tid = gettid();

	CHECK_INT(marcel_init(&one), 0);
	marcel_blocking_begin(); /* makes the spare */
	marcel_blocking_end();
	getrusage(RUSAGE_THREAD, &before);
	for (int i = 0; i < 10000; i++) {
		marcel_blocking_begin();
		marcel_blocking_end();
	}
	getrusage(RUSAGE_THREAD, &after);
	CHECK_INT(after.ru_nvcsw, before.ru_nvcsw);
	CHECK_INT(gettid(), tid);
	CHECK_INT(marcel_end(), 0);
}

TEST(errno_survives)
{
	struct marcel_config one = { .nvp = 1 };

	CHECK_INT(marcel_init(&one), 0);
	errno = ENOTTY;
	marcel_blocking_begin();
	CHECK_INT(errno, ENOTTY);
	errno = EDOM;
	marcel_blocking_end();
	CHECK_INT(errno, EDOM);
	CHECK_INT(marcel_end(), 0);
}

TEST(outside_the_runtime_sections_do_nothing)
{
	struct marcel_config one = { .nvp = 1 };

	marcel_blocking_begin();
	marcel_blocking_end();
	CHECK_INT(marcel_init(&one), 0);
	marcel_blocking_end();
	marcel_blocking_begin();
	CHECK_INT(marcel_end(), 0); /* ends the section, too */
	marcel_blocking_end();
}

static void *yields_inside(void *arg)
{
	for (int i = 0; i < 200; i++) {
		marcel_blocking_begin();
		marcel_yield();
		marcel_blocking_end();
		marcel_blocking_begin();
		marcel_blocking_begin();
		marcel_blocking_end();
		marcel_blocking_end();
	}
	return arg;
}

TEST_VPS(a_call_to_marcel_ends_a_section)
{
	marcel_t t[4];

	for (int i = 0; i < 4; i++)
		CHECK_INT(marcel_create(&t[i], NULL, yields_inside, NULL), 0);
	for (int i = 0; i < 4; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
}

/*
 * Sections that sleep and sections that do not, among switches, mutexes and
 * new threads: nobody is lost, and a VP is never driven twice.
 */
static struct {
	marcel_mutex_t lock;
	long count; /* l: lock */
} shared = { .lock = MARCEL_MUTEX_INITIALIZER };

static void *nothing(void *arg)
{
	return arg;
}

static void *mixer(void *arg)
{
	unsigned seed = (unsigned)(intptr_t)arg;
	marcel_t t;

	for (int i = 0; i < ROUNDS / THREADS; i++) {
		int what = rand_r(&seed) % 8;

		marcel_blocking_begin();
		if (what == 0)
			poll(NULL, 0, 1);
		else if (what == 1)
			sched_yield();
		marcel_blocking_end();
		if (what == 2) {
			CHECK_INT(marcel_create(&t, NULL, nothing, arg), 0);
			CHECK_INT(marcel_join(t, NULL), 0);
		}
		if (what > 4)
			marcel_yield();
		marcel_mutex_lock(&shared.lock);
		shared.count++;
		if (what == 3)
			marcel_yield();
		marcel_mutex_unlock(&shared.lock);
	}
	return arg;
}

TEST_VPS(nobody_is_lost)
{
	marcel_t t[THREADS];

	shared.count = 0;
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_create(&t[i], NULL, mixer,
					(void *)(intptr_t)(i + 1)),
			  0);
	mixer(NULL);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(marcel_join(t[i], NULL), 0);
	CHECK_INT(shared.count, (THREADS + 1) * (ROUNDS / THREADS));
}
