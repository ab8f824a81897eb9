/*
 * marcel/sched/monitor.c: while a thread sleeps in the kernel its VP is driven
 * by an LWP of lowest priority, where that can be raised again; another process
 * on the same CPU does not starve it. By what each has used of the CPU, which
 * is all that they could have.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <base/atomic.h>
#include <marcel/io.h>
#include "../../../marcel/os/os.h"
#include "../../../marcel/sched/lwp.h"
#include "../../../marcel/sched/tick.h"
#include "../../parent.h"
#include "../with.h"

enum { ENOUGH_MS = 400, NOBODY = 65534 };

static pid_t spinner;
static int ends[2];

static long used_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void *reads(void *arg)
{
	char c;

	CHECK_INT(marcel_read(ends[0], &c, 1), 1);
	return arg;
}

/* Until the other process has had enough: have we had a third of both? */
static bool has_a_third(clockid_t other)
{
	long ours = used_ms(CLOCK_PROCESS_CPUTIME_ID), theirs = used_ms(other);
	long end = theirs + ENOUGH_MS;

	while (used_ms(other) < end)
		;
	ours = used_ms(CLOCK_PROCESS_CPUTIME_ID) - ours;
	theirs = used_ms(other) - theirs;
	return ours * 2 >= theirs;
}

/*
 * Without a call of marcel. While a third process keeps the monitor from its
 * CPU, nobody sees that the spare has found something and raises it.
 */
static void *computes(void *arg)
{
	clockid_t other;

	CHECK_INT(clock_getcpuclockid(spinner, &other), 0);
	while (!has_a_third(other))
		;
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
}

static void on_one_cpu(void (*body)(void))
{
	cpu_set_t all, one;

	CHECK_INT(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK_INT(sched_setaffinity(0, sizeof(one), &one), 0);
	spinner = parent_forks(fork);
	CHECK(spinner >= 0);
	while (spinner == 0)
		;
	body();
	CHECK_INT(kill(spinner, SIGKILL), 0);
	CHECK_INT(waitpid(spinner, NULL, 0), spinner);
	CHECK_INT(sched_setaffinity(0, sizeof(all), &all), 0);
}

static void as_we_are(void)
{
	CHECK_INT(os_thread_may_lower(), load_relaxed(&marcel_lwps.lowers));
	beside_a_spinner();
}

static void on_one_vp(void)
{
	with_vps(1, as_we_are);
}

TEST(another_process_leaves_a_third)
{
	on_one_cpu(on_one_vp);
}

/*
 * The linker puts this before: who is about to lower itself has no CPU for some
 * looks of the monitor, which raises it meanwhile.
 */
enum { LOOKS = 5 };

static ATOMIC(int) is_late;

void __real_os_thread_lowest(void);
void __wrap_os_thread_lowest(void);

void __wrap_os_thread_lowest(void)
{
	uint64_t end = load_relaxed(&marcel_monitor.looks) + LOOKS;

	while (load_relaxed(&is_late) != 0 &&
	       load_relaxed(&marcel_monitor.looks) < end)
		sched_yield();
	__real_os_thread_lowest();
}

TEST(another_process_leaves_a_third_to_who_is_raised_too_soon)
{
	store_relaxed(&is_late, 1);
	on_one_cpu(on_one_vp);
	store_relaxed(&is_late, 0);
}

static void lose_privileges(void)
{
	const struct rlimit none = { 0, 0 };

	CHECK_INT(setrlimit(RLIMIT_NICE, &none), 0);
	if (getuid() == 0)
		CHECK_INT(setresuid(NOBODY, NOBODY, NOBODY), 0);
	CHECK(!os_thread_may_lower());
}

/* A process that may not raise what it has lowered. */
static void unprivileged(void)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		lose_privileges();
		on_one_vp();
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

TEST(another_process_leaves_a_third_without_privileges)
{
	on_one_cpu(unprivileged);
}
