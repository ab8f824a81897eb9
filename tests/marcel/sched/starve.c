/*
 * marcel/sched/monitor.c: while a thread sleeps in the kernel its VP is driven
 * by an LWP of lowest priority; another process on the same CPU does not starve
 * it. By what each has used of the CPU, which is all that they could have.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <base/atomic.h>
#include <marcel/io.h>
#include "../../../marcel/os/os.h"
#include "../with.h"

enum { ENOUGH_MS = 400 };

static pid_t spinner;
static int ends[2];

static long used_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void *may_rise(void *arg)
{
	os_thread_lowest();
	return os_thread_ordinary(os_tid()) ? arg : NULL;
}

static void need_privilege(void)
{
	pthread_t p;
	void *may;

	CHECK_INT(pthread_create(&p, NULL, may_rise, &spinner), 0);
	CHECK_INT(pthread_join(p, &may), 0);
	if (may == NULL)
		check_skip("the kernel raises no priority for us");
}

static void *reads(void *arg)
{
	char c;

	CHECK_INT(marcel_read(ends[0], &c, 1), 1);
	return arg;
}

static long ours, theirs;

/* Without a call of marcel, until the other process has had enough. */
static void *computes(void *arg)
{
	clockid_t other;
	long before, end;

	CHECK_INT(clock_getcpuclockid(spinner, &other), 0);
	before = used_ms(CLOCK_PROCESS_CPUTIME_ID);
	end = used_ms(other) + ENOUGH_MS;
	while (used_ms(other) < end)
		;
	ours = used_ms(CLOCK_PROCESS_CPUTIME_ID) - before;
	theirs = used_ms(other) - end + ENOUGH_MS;
	CHECK_INT(marcel_write(ends[1], "", 1), 1);
	return arg;
}

static void beside_a_spinner(void)
{
	marcel_t reader, busy;

	CHECK_INT(pipe(ends), 0);
	/* The reader runs first: the spare finds the other. */
	CHECK_INT(marcel_create(&busy, NULL, computes, NULL), 0);
	CHECK_INT(marcel_create(&reader, NULL, reads, NULL), 0);
	CHECK_INT(marcel_join(reader, NULL), 0);
	CHECK_INT(marcel_join(busy, NULL), 0);
	CHECK(ours * 2 >= theirs); /* a third of both */
}

TEST(another_process_leaves_a_third)
{
	cpu_set_t all, one;

	need_privilege();
	CHECK_INT(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK_INT(sched_setaffinity(0, sizeof(one), &one), 0);
	spinner = fork();
	CHECK(spinner >= 0);
	if (spinner == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
	with_vps(1, beside_a_spinner);
	CHECK_INT(kill(spinner, SIGKILL), 0);
	CHECK_INT(waitpid(spinner, NULL, 0), spinner);
	CHECK_INT(sched_setaffinity(0, sizeof(all), &all), 0);
}
