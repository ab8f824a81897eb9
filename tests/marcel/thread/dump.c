/* marcel/thread/dump.c: a signal prints what all threads do. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../parked.h"
#include "../../../marcel/sched/vp.h"

static char said[65536];
static int fds[2], saved_stderr;

static void catch_stderr(void)
{
	CHECK_INT(pipe(fds), 0);
	saved_stderr = dup(STDERR_FILENO);
	dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
}

static void release_stderr(void)
{
	size_t len = 0;
	ssize_t n;

	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	while (len < sizeof(said) - 1 &&
	       (n = read(fds[0], said + len, sizeof(said) - 1 - len)) > 0)
		len += (size_t)n;
	said[len] = 0;
	close(fds[0]);
}

static void *wait_for_sem(void *arg)
{
	marcel_sem_wait(arg);
	return NULL;
}

static void check_dump(int signal)
{
	marcel_attr_t attr;
	marcel_sem_t sem;
	marcel_t t;

	CHECK_INT(marcel_sem_init(&sem, 0, 0), 0);
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setname(&attr, "one who waits"), 0);
	CHECK_INT(marcel_create(&t, &attr, wait_for_sem, &sem), 0);
	until_parked(t);
	catch_stderr();
	raise(signal);
	release_stderr();
	CHECK_INT(marcel_sem_post(&sem), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK(strstr(said, "vp 0: ") != NULL);
	CHECK(strstr(said, "\"one who waits\" waiting, for semaphore") != NULL);
	CHECK(strstr(said, "main, running") != NULL);
}

static void with_signal(const char *value, int signal)
{
	struct marcel_config config = { .nvp = 1 };

	setenv("MARCEL_DUMP_SIGNAL", value, 1);
	CHECK_INT(marcel_init(&config), 0);
	unsetenv("MARCEL_DUMP_SIGNAL");
	check_dump(signal);
	CHECK_INT(marcel_end(), 0);
}

TEST(the_signal_is_given_by_name_or_number)
{
	char number[20];

	with_signal("SIGUSR2", SIGUSR2);
	with_signal("USR1", SIGUSR1);
	snprintf(number, sizeof(number), "%d", SIGHUP);
	with_signal(number, SIGHUP);
}

static void *ask(void *arg)
{
	catch_stderr();
	raise(SIGUSR2);
	release_stderr();
	return arg;
}

TEST(a_vp_that_was_woken_for_its_own_work_is_busy)
{
	struct marcel_config config = { .nvp = 2 };
	marcel_attr_t attr;
	marcel_t t;

	setenv("MARCEL_DUMP_SIGNAL", "SIGUSR2", 1);
	CHECK_INT(marcel_init(&config), 0);
	unsetenv("MARCEL_DUMP_SIGNAL");
	while (load_relaxed(&marcel_sched.vps[1].sleeper.asleep) !=
	       MARCEL_ASLEEP)
		sched_yield();
	CHECK_INT(marcel_attr_init(&attr), 0);
	CHECK_INT(marcel_attr_setvp(&attr, 1), 0);
	CHECK_INT(marcel_create(&t, &attr, ask, NULL), 0);
	CHECK_INT(marcel_join(t, NULL), 0);
	CHECK(strstr(said, "vp 1: ") != NULL);
	CHECK(strstr(strstr(said, "vp 1: "), "busy") != NULL);
	CHECK_INT(marcel_end(), 0);
}

static void other_handler(int signal)
{
	(void)signal;
}

TEST(the_signal_is_given_back_at_the_end_unless_somebody_took_it)
{
	struct marcel_config config = { .nvp = 1 };
	struct sigaction now;

	for (int taken = 0; taken < 2; taken++) {
		signal(SIGUSR2, SIG_IGN);
		setenv("MARCEL_DUMP_SIGNAL", "SIGUSR2", 1);
		CHECK_INT(marcel_init(&config), 0);
		unsetenv("MARCEL_DUMP_SIGNAL");
		if (taken)
			signal(SIGUSR2, other_handler);
		CHECK_INT(marcel_end(), 0);
		CHECK_INT(sigaction(SIGUSR2, NULL, &now), 0);
		CHECK(now.sa_handler == (taken ? other_handler : SIG_IGN));
	}
	signal(SIGUSR2, SIG_DFL);
}

TEST(nonsense_stops_the_start_and_is_named)
{
	static const char *const values[] = {
		"SIGNONSENSE", "-1",   "0",     "1000", "USR", /* none */
		"KILL",        "STOP", "32",    /* cannot be handled */
		"SIGSEGV",     "BUS",  "SIGFPE" /* come again on return */
	};

	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		setenv("MARCEL_DUMP_SIGNAL", values[i], 1);
		catch_stderr();
		CHECK_INT(marcel_init(NULL), -EINVAL);
		release_stderr();
		unsetenv("MARCEL_DUMP_SIGNAL");
		CHECK(strstr(said, "MARCEL_DUMP_SIGNAL=") != NULL);
		CHECK(strstr(said, values[i]) != NULL);
		CHECK(strstr(said, "SIGUSR2") != NULL);
	}
	CHECK(!marcel_is_running());
}
