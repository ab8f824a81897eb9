/*
 * pioman/point/pthread: kernel threads poll for programs that bring their own,
 * where a core is idle, or else at the timer; and sleep when nothing is to be
 * polled.
 */
#include "../with.h"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../pioman/point/pthread.h"
#include "../io/pipes.h"

enum { POLLS = 200, CROWD = 8 };

static const struct mode engine_pthread[] = {
	{ 1, "pthread", "auto", "20" },
	{ 4, "pthread", "auto", "20" },
};

struct counted {
	struct piom_ltask task;
	ATOMIC(int) runs;
	ATOMIC(int) by_vp; /* -1, or the VP of a run */
	int until;
};

static enum piom_ltask_result count(void *arg)
{
	struct counted *c = arg;

	store_relaxed(&c->by_vp, marcel_current_vp());
	return fetch_add_relaxed(&c->runs, 1) + 1 == c->until
		       ? PIOM_LTASK_DONE
		       : PIOM_LTASK_AGAIN;
}

static void counted_start(struct counted *c, int until)
{
	store_relaxed(&c->runs, 0);
	store_relaxed(&c->by_vp, -1);
	c->until = until;
	piom_ltask_init(&c->task, count, c, PIOM_LTASK_REPEAT, NULL);
	piom_ltask_submit(&c->task);
}

/* --- nobody asks, and it is polled --- */

static void only_sleep(void)
{
	struct timespec ms = { 0, 1000000 };
	struct counted c;

	counted_start(&c, POLLS);
	while (load_relaxed(&c.runs) < POLLS)
		nanosleep(&ms, NULL);
	CHECK_INT(load_relaxed(&c.by_vp), -1);
	piom_ltask_wait(&c.task);
}

TEST(what_is_submitted_is_polled_by_kernel_threads)
{
	WITH_ALL(engine_pthread, only_sleep);
}

/* --- all compute --- */

static ATOMIC(int) over;

static void *compute(void *arg)
{
	while (!load_relaxed(&over))
		;
	return arg;
}

/* More threads than CPUs, and none of them asks. */
static void compute_beside_it(void)
{
	pthread_t crowd[CROWD];
	struct counted c;

	store_relaxed(&over, 0);
	for (int i = 0; i < CROWD; i++)
		CHECK_INT(pthread_create(&crowd[i], NULL, compute, NULL), 0);
	counted_start(&c, 5);
	while (load_relaxed(&c.runs) < 5)
		;
	store_relaxed(&over, 1);
	for (int i = 0; i < CROWD; i++)
		CHECK_INT(pthread_join(crowd[i], NULL), 0);
	piom_ltask_wait(&c.task);
}

TEST(it_is_polled_while_all_compute)
{
	WITH_ALL(engine_pthread, compute_beside_it);
}

/* --- they sleep --- */

static void wait_for_silence(void)
{
	struct timespec while_ = { 0, 20000000 };
	uint64_t before;

	do {
		before = piom_point_pthread_polls();
		nanosleep(&while_, NULL);
	} while (piom_point_pthread_polls() != before);
}

static void sleep_and_wake(void)
{
	struct reader r;

	wait_for_silence();
	reader_init(&r, NULL);
	piom_ltask_submit(&r.task);
	for (int i = 1; i <= 5; i++) {
		wait_for_silence();
		feed(&r);
		while (load_relaxed(&r.bytes) < i)
			sched_yield();
	}
	reader_end(&r);
	wait_for_silence();
}

TEST(nobody_polls_when_all_is_armed)
{
	unsetenv("PIOM_MODE");
	WITH_ALL(engine_pthread, sleep_and_wake);
}

/* --- where they run --- */

/* How many kernel threads of this process have that policy. */
static int threads_with(int policy)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	int n = 0;

	CHECK(dir != NULL);
	while ((e = readdir(dir)) != NULL)
		n += e->d_name[0] != '.' &&
		     sched_getscheduler(atoi(e->d_name)) == policy;
	closedir(dir);
	return n;
}

static void *try_policies(void *arg)
{
	struct sched_param none = { 0 };

	*(bool *)arg = sched_setscheduler(0, SCHED_IDLE, &none) == 0 &&
		       sched_setscheduler(0, SCHED_OTHER, &none) == 0;
	return NULL;
}

static void count_pollers(int packages)
{
	struct marcel_config config = { 0 };
	struct counted c;
	bool lowers = false;
	int lowest;
	pthread_t t;

	CHECK_INT(pthread_create(&t, NULL, try_policies, &lowers), 0);
	CHECK_INT(pthread_join(t, NULL), 0);
	setenv("PIOM_ENGINE", "pthread", 1);
	CHECK_INT(marcel_init(&config), 0);
	CHECK_INT(piom_init(), 0);
	counted_start(&c, 0);
	/* All of them, between the times for which the timer raises some. */
	while ((lowest = threads_with(SCHED_IDLE)) < (lowers ? packages : 0))
		sched_yield();
	CHECK_INT(lowest, lowers ? packages : 0);
	CHECK_INT(piom_ltask_cancel(&c.task), 0);
	CHECK_INT(piom_exit(), 0);
	/* Who has been joined is on the kernel's list for a while. */
	while (threads_with(SCHED_IDLE) > 0)
		sched_yield();
	CHECK_INT(marcel_end(), 0);
}

TEST(there_is_one_for_each_package_and_of_lowest_priority)
{
	unsetenv("MARCEL_NVP");
	setenv("MARCEL_TOPOLOGY", "package:2 core:2 pu:1", 1);
	count_pollers(2);
	setenv("MARCEL_TOPOLOGY", "package:1 core:4 pu:1", 1);
	count_pollers(1);
	unsetenv("MARCEL_TOPOLOGY");
}

/* --- fork --- */

static void fork_beside_it(void)
{
	struct counted c;
	int status;
	pid_t child;

	counted_start(&c, 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0)
		_exit(piom_exit() == -EINVAL ? 0 : 1);
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
	CHECK_INT(piom_ltask_cancel(&c.task), 0);
}

TEST(a_child_of_fork_has_none)
{
	WITH_ALL(engine_pthread, fork_beside_it);
}
