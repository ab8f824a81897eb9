/*
 * marcel/sched/tick.c: who computes takes signals at a tick, also if it has
 * lost its VP; not in the middle of what blocks them.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <marcel/signal.h>
#include "../slice.h"

static ATOMIC(marcel_t) sent_to;

static void stop_here(int signal)
{
	(void)signal;
	CHECK(marcel_self() == load_relaxed(&sent_to));
	errno = EDOM;
	store_relaxed(&stop, 1);
}

static void *sends(void *arg)
{
	CHECK_INT(marcel_kill(load_relaxed(&sent_to), SIGUSR1), 0);
	return arg;
}

static void catch_signals(void)
{
	struct sigaction sa = { .sa_handler = stop_here };

	CHECK_INT(sigaction(SIGUSR1, &sa, NULL), 0);
}

static void *computes_on(void *arg)
{
	errno = 0;
	computes(NULL);
	CHECK_INT(errno, 0);
	return arg;
}

TEST_TICK(who_computes_takes_signals, "1000")
{
	marcel_t t = start(computes_on, NULL);
	pthread_t p;

	catch_signals();
	store_relaxed(&sent_to, t);
	marcel_yield();
	CHECK_INT(pthread_create(&p, NULL, sends, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK_INT(pthread_join(p, NULL), 0);
}

TEST_TICK(main_computes_and_takes_signals, "1000")
{
	marcel_t t;

	catch_signals();
	store_relaxed(&sent_to, marcel_self());
	t = start(sends, NULL);
	computes_on(NULL);
	CHECK_INT(marcel_join(t, NULL), 0);
}

/* --- who has lost its VP --- */

static int ends[2];

/* While main sleeps, and then until it has taken the signal. */
static void *wakes_and_sends(void *arg)
{
	CHECK_INT(syscall(SYS_write, ends[1], "", 1), 1);
	sends(NULL);
	computes(NULL);
	return arg;
}

/* It does not ask for its VP, which is in use: nobody else has it ticked. */
static void lost_its_vp(void)
{
	marcel_t t = start(wakes_and_sends, NULL);
	char c;

	catch_signals();
	store_relaxed(&sent_to, marcel_self());
	CHECK_INT(syscall(SYS_read, ends[0], &c, 1), 1);
	computes_on(NULL);
	CHECK_INT(marcel_join(t, NULL), 0);
}

TEST(main_has_lost_its_vp_and_takes_signals)
{
	CHECK_INT(pipe(ends), 0);
	with_slice("1000", 1, lost_its_vp);
	close(ends[0]);
	close(ends[1]);
}

static ATOMIC(int) depth, deepest, times, came;

/* From the kernel first; then it is sent another one. */
static void comes_once(int signal)
{
	int d = fetch_add_relaxed(&depth, 1) + 1;
	uint64_t n = load_relaxed(&marcel_monitor.looks) + 5;

	(void)signal;
	if (d > load_relaxed(&deepest))
		store_relaxed(&deepest, d);
	if (fetch_add_relaxed(&times, 1) == 0) {
		store_relaxed(&came, 1);
		while (load_relaxed(&marcel_monitor.looks) < n ||
		       load_relaxed(&came) == 1)
			;
	} else {
		store_relaxed(&stop, 1);
	}
	fetch_sub_relaxed(&depth, 1);
}

static void *sends_when_it_came(void *arg)
{
	while (load_relaxed(&came) == 0)
		sched_yield();
	CHECK_INT(marcel_kill(arg, SIGUSR1), 0);
	store_relaxed(&came, 2);
	return NULL;
}

static void handlers_nest(void)
{
	struct sigaction sa = { .sa_handler = comes_once };
	pthread_t p;

	store_relaxed(&came, 0);
	store_relaxed(&times, 0);
	store_relaxed(&deepest, 0);
	CHECK_INT(sigaction(SIGUSR1, &sa, NULL), 0);
	CHECK_INT(pthread_create(&p, NULL, sends_when_it_came, marcel_self()),
		  0);
	raise(SIGUSR1);
	computes(NULL);
	CHECK_INT(load_relaxed(&times), 2);
	CHECK_INT(load_relaxed(&deepest), 1);
	CHECK_INT(pthread_join(p, NULL), 0);
}

TEST(no_signal_comes_in_its_own_handler)
{
	with_slice("1000", 1, handlers_nest);
}

/* Blocked, it waits, and no tick comes for it. */
static void *computes_blocked(void *arg)
{
	sigset_t set, none;

	sigemptyset(&none);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_INT(marcel_sigmask(SIG_BLOCK, &set, NULL), 0);
	CHECK_INT(marcel_kill(marcel_self(), SIGUSR1), 0);
	for (uint64_t n = load_relaxed(&marcel_monitor.looks) + 5;
	     load_relaxed(&marcel_monitor.looks) < n;)
		;
	CHECK_INT(load_relaxed(&stop), 0);
	CHECK_INT(load_relaxed(&marcel_monitor.ticks), 0);
	CHECK_INT(marcel_sigmask(SIG_SETMASK, &none, NULL), 0);
	CHECK_INT(load_relaxed(&stop), 1);
	return arg;
}

TEST_TICK(who_computes_takes_no_signal_that_it_blocks, "1000")
{
	catch_signals();
	store_relaxed(&sent_to, marcel_self());
	computes_blocked(NULL);
}
