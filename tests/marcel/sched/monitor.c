/*
 * marcel/sched/monitor.c: who tells it of a real-time thread, and whom it takes
 * for one that computes.
 */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <base/atomic.h>
#include "../../../marcel/sched/block.h"
#include "../../../marcel/sched/tick.h"
#include "../parked.h"
#include "../trap.h"

static marcel_sem_t sem;
static ATOMIC(int) computing, stop;
static ATOMIC(pid_t) monitor;
static int claimed, interruptible;

void __real_os_futex_wait_for(void *word, uint32_t value, uint64_t ns);
void __wrap_os_futex_wait_for(void *word, uint32_t value, uint64_t ns);

/* How many looks the monitor may have made by now. */
static ATOMIC(bool) is_gated;
static ATOMIC(uint64_t) allowed;

void __wrap_os_futex_wait_for(void *word, uint32_t value, uint64_t ns)
{
	if (word == &marcel_monitor.hurry)
		store_relaxed(&monitor, gettid());
	__real_os_futex_wait_for(word, value, ns);
	while (word == &marcel_monitor.hurry && load_relaxed(&is_gated) &&
	       load_relaxed(&marcel_monitor.looks) >= load_relaxed(&allowed))
		usleep(100);
}

static bool is_told(void)
{
	return load_relaxed(&marcel_monitor.hurry) != 0;
}

static bool sleeps(void)
{
	pid_t tid = load_relaxed(&monitor);

	return tid != 0 && os_thread_sleeps(tid);
}

/* The monitor is told, by this thread, and has not heard of it. */
static void handle(int signal)
{
	bool within = marcel_is_within();

	(void)signal;
	if (!is_told() || !sleeps())
		return;
	claimed++;
	interruptible += !within;
}

static void *waits_and_stops(void *arg)
{
	CHECK_INT(marcel_sem_wait(&sem), 0);
	store_relaxed(&stop, 1);
	return arg;
}

static void *posts(void *arg)
{
	while (load_relaxed(&computing) == 0 || is_told() || !sleeps())
		usleep(1000);
	trap(TRAP_FLAG);
	marcel_sem_post(&sem);
	trap(0);
	return arg;
}

static void wake_one(void)
{
	marcel_attr_t attr;
	pthread_t p;
	marcel_t t;

	store_relaxed(&computing, 0);
	store_relaxed(&stop, 0);
	CHECK_INT(marcel_sem_init(&sem, 0, 0), 0);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setpriority(&attr, MARCEL_PRIORITY_REALTIME), 0);
	CHECK_INT(marcel_create(&t, &attr, waits_and_stops, NULL), 0);
	until_parked(t);
	CHECK_INT(pthread_create(&p, NULL, posts, NULL), 0);
	store_relaxed(&computing, 1);
	while (load_relaxed(&stop) == 0)
		;
	CHECK_INT(pthread_join(p, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(marcel_sem_destroy(&sem), 0);
}

/* What the monitor slept on may have been something else. */
static void wake_urgent(void)
{
	struct sigaction sa = { .sa_handler = handle };

	CHECK_INT(sigaction(SIGTRAP, &sa, NULL), 0);
	claimed = interruptible = 0;
	while (claimed == 0)
		wake_one();
	CHECK_INT(interruptible, 0);
}

/*
 * Foreign threads, which have no tick, wake as those do that have lost their
 * VP. Were one of these interrupted there, the monitor would sleep on, and
 * nobody else would wake it. The slice is longer than the test.
 */
TEST(no_tick_comes_between_word_for_the_monitor_and_its_wake)
{
	setenv("MARCEL_TIMESLICE_US", "1000000000", 1);
	with_vps(1, wake_urgent);
	unsetenv("MARCEL_TIMESLICE_US");
}

static ATOMIC(int) ran;

static void *runs(void *arg)
{
	fetch_add_relaxed(&ran, 1);
	return arg;
}

/* One more before each look of the monitor, and nothing else. */
static void make_and_compute(void)
{
	marcel_attr_t attr;
	uint64_t next;
	marcel_t t;
	int n = 0;

	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setdetachstate(&attr, MARCEL_CREATE_DETACHED), 0);
	store_relaxed(&ran, 0);
	store_relaxed(&allowed, load_relaxed(&marcel_monitor.looks));
	store_relaxed(&is_gated, true);
	for (; load_relaxed(&ran) == 0; n++) {
		CHECK_INT(marcel_create(&t, &attr, runs, NULL), 0);
		next = load_relaxed(&marcel_monitor.looks) + 1;
		store_relaxed(&allowed, next);
		while (load_relaxed(&marcel_monitor.looks) < next &&
		       load_relaxed(&ran) == 0)
			;
	}
	store_relaxed(&is_gated, false);
	while (load_relaxed(&ran) < n)
		marcel_yield();
}

TEST(who_only_makes_threads_is_interrupted_for_them)
{
	setenv("MARCEL_TIMESLICE_US", "1000", 1);
	with_vps(1, make_and_compute);
	unsetenv("MARCEL_TIMESLICE_US");
}
