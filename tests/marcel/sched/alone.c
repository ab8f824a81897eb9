/*
 * marcel/sched/monitor.c: the VP of a thread that sleeps in the kernel
 * unannounced, and for which nobody waits, sleeps before long, and then nobody
 * looks at it once a slice; what comes for the VP wakes it all the same.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/atomic.h>
#include "../slice.h"

enum { ROUNDS = 20 };

static int ends[2];
static bool gives_work;

static bool monitor_sleeps(void)
{
	return load_relaxed(&marcel_monitor.asleep) != 0;
}

static void *runs(void *arg)
{
	fetch_add_relaxed(&ran, 1);
	return arg;
}

/* Foreign. It waits for as long as main sleeps and the monitor looks. */
static void *ends_the_sleep(void *arg)
{
	marcel_t t;

	while (!monitor_sleeps())
		usleep(1000);
	if (gives_work) {
		t = start(runs, NULL);
		CHECK_INT(marcel_join(t, NULL), 0);
	}
	CHECK_INT(write(ends[1], "x", 1), 1);
	return arg;
}

static void sleep_alone(void)
{
	pid_t tid = gettid();
	pthread_t p;
	char c = 0;

	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	for (int i = 0; i < ROUNDS; i++) {
		store_relaxed(&ran, 0);
		CHECK_INT(pthread_create(&p, NULL, ends_the_sleep, NULL), 0);
		CHECK_INT(syscall(SYS_read, ends[0], &c, 1), 1);
		/* Main, which has lost its VP, comes back to its LWP. */
		CHECK_INT(marcel_join(start(runs, NULL), NULL), 0);
		CHECK_INT(gettid(), tid);
		CHECK_INT(marcel_current_vp(), 0);
		CHECK_INT(load_relaxed(&ran), gives_work ? 2 : 1);
		CHECK_INT(pthread_join(p, NULL), 0);
	}
	close(ends[0]);
	close(ends[1]);
}

TEST_TICK(the_monitor_sleeps_beside_who_sleeps_unannounced, "1000")
{
	gives_work = false;
	sleep_alone();
}

TEST_TICK(who_sleeps_unannounced_leaves_a_vp_that_can_be_woken, "1000")
{
	gives_work = true;
	sleep_alone();
}

static void *reads(void *arg)
{
	char c = 0;

	CHECK_INT(syscall(SYS_read, ends[0], &c, 1), 1);
	return arg;
}

/* Others, too, and main waits as it should. */
TEST_TICK(the_monitor_sleeps_beside_threads_that_sleep_unannounced, "1000")
{
	pthread_t p;
	marcel_t t;

	gives_work = true;
	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	for (int i = 0; i < ROUNDS; i++) {
		t = start(reads, NULL);
		CHECK_INT(pthread_create(&p, NULL, ends_the_sleep, NULL), 0);
		CHECK_INT(marcel_join(t, NULL), 0);
		CHECK_INT(pthread_join(p, NULL), 0);
	}
	close(ends[0]);
	close(ends[1]);
}
