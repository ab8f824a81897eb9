/*
 * marcel/os/linux/front_io.c: the names of libc are the wrappers, and whoever
 * is made while an LWP of lowest priority drives the VP is as any other.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <threads.h>
#include <unistd.h>

#include <base/atomic.h>
#include "../../../marcel/sched/tick.h"
#include "../../parent.h"
#include "../with.h"

static int ends[2];
static ATOMIC(int) over;

static void *reads(void *arg)
{
	char c = 0;

	CHECK_INT(read(ends[0], &c, 1), 1);
	CHECK_INT(c, 'x');
	store_release(&over, 1);
	return arg;
}

/* The program knows nothing of wrappers. */
TEST_VPS(a_plain_read_leaves_the_others_running)
{
	marcel_t t;

	store_relaxed(&over, 0);
	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	CHECK_INT(marcel_create(&t, NULL, reads, NULL), 0);
	for (int i = 0; i < 1000; i++)
		marcel_yield();
	CHECK_INT(load_acquire(&over), 0);
	CHECK_INT(write(ends[1], "x", 1), 1);
	CHECK_INT(marcel_join(t, NULL), 0);
	close(ends[0]);
	close(ends[1]);
}

/* What is an error is one though there is a unit. */
static void use_semaphores(void)
{
	const struct timespec past = { .tv_nsec = 1 };
	const struct timespec none = { .tv_nsec = 1000000000 };
	sem_t s;

	CHECK_INT(sem_init(&s, 0, 3), 0);
	CHECK_INT(sem_timedwait(&s, &none), -1);
	CHECK_INT(errno, EINVAL);
	CHECK_INT(sem_clockwait(&s, CLOCK_MONOTONIC, &none), -1);
	CHECK_INT(errno, EINVAL);
	CHECK_INT(sem_clockwait(&s, CLOCK_MONOTONIC_RAW, &past), -1);
	CHECK_INT(errno, EINVAL);
	CHECK_INT(sem_wait(&s), 0);
	CHECK_INT(sem_timedwait(&s, &past), 0);
	CHECK_INT(sem_clockwait(&s, CLOCK_REALTIME, &past), 0);
	CHECK_INT(sem_timedwait(&s, &past), -1);
	CHECK_INT(errno, ETIMEDOUT);
	CHECK_INT(sem_clockwait(&s, CLOCK_MONOTONIC, &past), -1);
	CHECK_INT(errno, ETIMEDOUT);
	CHECK_INT(sem_destroy(&s), 0);
}

/* No wrapper may need the runtime, nor leave a foreign thread to it. */
static void *uses_all(void *arg)
{
	struct timespec t = { 0, 1000 };
	struct pollfd p = { .fd = -1 };
	struct mmsghdr msg = { .msg_len = 0 };
	struct epoll_event ev;
	char c;
	int fd;

	CHECK_INT(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	CHECK_INT(read(ends[0], &c, 1), -1);
	CHECK_INT(errno, EAGAIN);
	CHECK_INT(write(ends[1], "x", 1), 1);
	CHECK_INT(read(ends[0], &c, 1), 1);
	close(ends[0]);
	close(ends[1]);
	CHECK_INT(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
	CHECK_INT(sendmmsg(ends[1], &msg, 1, 0), 1);
	CHECK_INT(recvmmsg(ends[0], &msg, 1, 0, NULL), 1);
	close(ends[0]);
	close(ends[1]);
	CHECK_INT(poll(&p, 1, 1), 0);
	CHECK_INT(nanosleep(&t, NULL), 0);
	CHECK_INT(usleep(1), 0);
	CHECK_INT(thrd_sleep(&t, NULL), 0);
	use_semaphores();
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_INT(fsync(fd), -1);
	CHECK_INT(errno, EINVAL);
	CHECK_INT(tcdrain(fd), -1);
	CHECK_INT(errno, ENOTTY);
	CHECK_INT(epoll_pwait2(fd, &ev, 1, NULL, NULL), -1);
	CHECK_INT(wait3(NULL, WNOHANG, NULL), -1);
	CHECK_INT(errno, ECHILD);
	close(fd);
	CHECK_INT(system("exit 3"), 3 << 8);
	return arg;
}

static void from_a_foreign_thread(void)
{
	pthread_t p;

	CHECK_INT(pthread_create(&p, NULL, uses_all, NULL), 0);
	CHECK_INT(pthread_join(p, NULL), 0);
}

TEST(before_and_after_the_runtime_all_work)
{
	struct marcel_config config = { .nvp = 2 };

	uses_all(NULL);
	from_a_foreign_thread();
	CHECK_INT(marcel_init(&config), 0);
	uses_all(NULL);
	from_a_foreign_thread();
	CHECK_INT(marcel_end(), 0);
	uses_all(NULL);
	from_a_foreign_thread();
}

/* --- children --- */

/* Of the two that the runtime uses, those that are blocked. */
static uint64_t blocked_in(FILE *status)
{
	char line[256];
	uint64_t bits = 0;

	CHECK(status != NULL);
	while (fgets(line, sizeof(line), status) != NULL)
		if (strncmp(line, "SigBlk:", 7) == 0)
			bits = strtoull(line + 7, NULL, 16);
	return bits & (UINT64_C(1) << (marcel_sched.signal - 1) |
		       UINT64_C(1) << (marcel_sched.break_signal - 1));
}

static int waits(pid_t pid)
{
	int status = -1;

	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* The tick is blocked in a section, but for nobody who is made there. */
TEST_VPS(children_of_a_section_have_no_signal_of_ours_blocked)
{
	FILE *status;
	int code;
	pid_t pid;

	marcel_blocking_begin();
	status = popen("exec cat /proc/self/status", "r");
	CHECK_INT(blocked_in(status), 0);
	CHECK_INT(pclose(status), 0);
	marcel_blocking_begin();
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(blocked_in(fopen("/proc/self/status", "r")) != 0);
	CHECK_INT(waitpid(pid, &code, 0), pid);
	CHECK_INT(code, 0);
	marcel_blocking_end();
}

/* --- who becomes another program --- */

#define CAT  "/bin/cat"
#define LIST CAT, "/proc/self/status", (char *)NULL

static int becomes(int way)
{
	char name[] = CAT, file[] = "/proc/self/status";
	char *argv[] = { name, file, NULL };
	int fd;

	switch (way) {
	case 0:
		return execve(CAT, argv, environ);
	case 1:
		return execv(CAT, argv);
	case 2:
		return execvp("cat", argv);
	case 3:
		return execvpe("cat", argv, environ);
	case 4:
		return execl(CAT, LIST);
	case 5:
		return execlp("cat", LIST);
	case 6:
		return execle(CAT, LIST, environ);
	case 7:
		fd = open(CAT, O_RDONLY | O_CLOEXEC);
		return fexecve(fd, argv, environ);
	case 8:
		return execveat(AT_FDCWD, CAT, argv, environ, 0);
	default:
		return -1;
	}
}

enum { PROGRAMS = 9 };

/* Which signals are blocked, and which CPUs may be used. */
static void inherited(FILE *status, char *out, size_t bytes)
{
	char line[1024];

	CHECK(status != NULL);
	*out = '\0';
	while (fgets(line, sizeof(line), status) != NULL)
		if (strncmp(line, "SigBlk:", 7) == 0 ||
		    strncmp(line, "SigIgn:", 7) == 0 ||
		    strncmp(line, "Cpus_allowed:", 13) == 0)
			strncat(out, line, bytes - strlen(out) - 1);
	fclose(status);
}

/* In a section, with a descriptor for what is printed; 1: it came back. */
static int become(int way, bool forks, int out)
{
	struct marcel_config config = { .nvp = 1 };
	pid_t pid = 0;
	int code = 1;

	if (marcel_init(&config) != 0 || dup2(out, STDOUT_FILENO) < 0)
		return 2;
	marcel_blocking_begin();
	if (forks)
		pid = fork();
	if (pid == 0)
		becomes(way);
	else
		waitpid(pid, &code, 0);
	return code;
}

TEST(a_program_begins_with_what_the_process_had)
{
	char had[2048], has[2048];

	inherited(fopen("/proc/self/status", "r"), had, sizeof(had));
	for (int i = 0; i < 2 * PROGRAMS; i++) {
		int status;
		pid_t pid;

		CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			_exit(become(i / 2, i % 2 == 0, ends[1]));
		close(ends[1]);
		inherited(fdopen(ends[0], "r"), has, sizeof(has));
		CHECK_STR(has, had);
		CHECK_INT(waitpid(pid, &status, 0), pid);
		CHECK_INT(status, 0);
	}
}

static bool tick_is_blocked(void)
{
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	return sigismember(&now, marcel_sched.signal) == 1;
}

/* Neither who fails to become one, nor who makes one, loses its section. */
TEST_VPS(a_section_goes_on_after_a_program_was_begun)
{
	pid_t pid;

	marcel_blocking_begin();
	CHECK_INT(execl("/no/such/program", "x", (char *)NULL), -1);
	CHECK_INT(errno, ENOENT);
	CHECK(tick_is_blocked());
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(tick_is_blocked());
	CHECK(tick_is_blocked());
	CHECK(waits(pid));
	marcel_blocking_end();
	CHECK(!tick_is_blocked());
}

/* --- ... while ticks come --- */

static void *computes(void *arg)
{
	while (load_relaxed(&over) == 0)
		;
	return arg;
}

/* Beside main, on its VP. */
static marcel_t begin_ticks(void)
{
	struct marcel_config config = { .nvp = 1 };
	marcel_t other;

	setenv("MARCEL_TIMESLICE_US", "200", 1);
	store_relaxed(&over, 0);
	CHECK_INT(marcel_init(&config), 0);
	CHECK_INT(marcel_create(&other, NULL, computes, NULL), 0);
	return other;
}

static void end_ticks(marcel_t other)
{
	store_relaxed(&over, 1);
	CHECK_INT(marcel_join(other, NULL), 0);
	CHECK_INT(marcel_end(), 0);
	unsetenv("MARCEL_TIMESLICE_US");
}

/* From now on the tick is blocked. */
static void wait_for_tick(void)
{
	sigset_t now;

	marcel_tick_block(true);
	do
		CHECK_INT(sigpending(&now), 0);
	while (sigismember(&now, marcel_sched.signal) == 0);
}

/* In a process of its own; 1: it came back. */
static int become_quiet(void)
{
	marcel_tick_block(false);
	execl(CAT, CAT, "/dev/null", (char *)NULL);
	return 1;
}

/* None comes to a child, which has a copy of the runtime and of its LWP. */
TEST(a_child_without_handlers_of_fork_waits_for_no_tick)
{
	marcel_t other = begin_ticks();
	pid_t pid;

	wait_for_tick();
	pid = parent_forks(_Fork);
	if (pid == 0)
		_exit(become_quiet());
	marcel_tick_block(false);
	CHECK(waits(pid));
	end_ticks(other);
}

/* 0: as in a child of fork(). */
static int call_without_runtime(int fd)
{
	char c;

	if (marcel_is_running() || marcel_current_vp() != -1)
		return 1;
	if (read(fd, &c, 1) != 1)
		return 2;
	return system("exit 3") == 3 << 8 ? 0 : 3;
}

TEST(a_child_without_handlers_of_fork_has_no_runtime)
{
	marcel_t other = begin_ticks();
	int fds[2];
	pid_t pid;

	CHECK_INT(pipe(fds), 0);
	pid = parent_forks(_Fork);
	if (pid == 0)
		_exit(call_without_runtime(fds[0]));
	CHECK_INT(write(fds[1], "", 1), 1);
	CHECK(waits(pid));
	close(fds[0]);
	close(fds[1]);
	end_ticks(other);
}

static void *returns(void *arg)
{
	return arg;
}

/* libc's locks are as they were: nobody else may hold one. */
static void start_in_child(void)
{
	pid_t pid = parent_forks(_Fork);
	void *out = NULL;
	marcel_t t;

	if (pid == 0)
		_exit(marcel_create(&t, NULL, returns, &t) != 0 ||
		      marcel_join(t, &out) != 0 || out != &t ||
		      marcel_current_vp() != 0);
	CHECK(waits(pid));
}

TEST(a_child_without_handlers_of_fork_may_start_a_runtime)
{
	without_ticks(start_in_child);
}

static int becomes_quiet(void *parent)
{
	parent_binds(*(struct parent *)parent);
	_exit(become_quiet());
}

/* They are still sent to the LWP, whose storage was the child's. */
TEST(a_child_on_our_memory_holds_no_ticks)
{
	static char stack[1 << 16] BASE_ALIGNED(16);
	marcel_t other = begin_ticks();
	struct parent self = parent_self();
	struct marcel_lwp *l;
	pid_t pid;

	pid = clone(becomes_quiet, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | SIGCHLD, &self);
	CHECK(waits(pid));
	l = marcel_tick_hold();
	CHECK(l != NULL);
	marcel_tick_release(l);
	end_ticks(other);
}

/* For the thread itself. */
static uint64_t pending_in(FILE *status)
{
	char line[1024];
	uint64_t bits = ~UINT64_C(0);

	CHECK(status != NULL);
	while (fgets(line, sizeof(line), status) != NULL)
		if (strncmp(line, "SigPnd:", 7) == 0)
			bits = strtoull(line + 7, NULL, 16);
	fclose(status);
	return bits;
}

/* It would be killed as soon as it allowed it. */
TEST(a_program_has_no_tick_pending)
{
	pid_t pid;

	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		begin_ticks();
		wait_for_tick();
		if (dup2(ends[1], STDOUT_FILENO) >= 0)
			becomes(0);
		_exit(1);
	}
	close(ends[1]);
	CHECK_INT(pending_in(fdopen(ends[0], "r")), 0);
	CHECK(waits(pid));
}

/* How often main's LWP had been preempted. */
static struct {
	pid_t by; /* the kernel thread that begins a program, or 0 */
	int calls;
	uint32_t first, last;
} seen;

/*
 * The runtime finds this one, in which many ticks come, if any does. It binds
 * other kernel threads, too, and this one at the ticks that come afterwards.
 */
int sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *set)
{
	uint64_t end = load_relaxed(&marcel_monitor.looks) + 50;

	if (seen.by != gettid() || seen.calls == 2)
		return (int)syscall(SYS_sched_setaffinity, pid, bytes, set);
	if (seen.calls++ == 0)
		seen.first = marcel_lwps.first.preempted;
	while (load_relaxed(&marcel_monitor.looks) < end)
		;
	seen.last = marcel_lwps.first.preempted;
	return (int)syscall(SYS_sched_setaffinity, pid, bytes, set);
}

/* A tick may bind the LWP, to the CPU of another VP even. */
TEST(no_tick_comes_while_the_cpus_are_those_of_a_program)
{
	marcel_t other = begin_ticks();
	bool bound = marcel_sched.bind;

	seen.calls = 0;
	seen.by = gettid();
	CHECK_INT(execl("/no/such/program", "x", (char *)NULL), -1);
	CHECK_INT(errno, ENOENT);
	while (marcel_lwps.first.preempted == seen.last)
		__asm__ volatile("" ::: "memory"); /* they come again */
	end_ticks(other);
	if (!bound)
		check_skip("needs a CPU to be bound to");
	CHECK_INT(seen.calls, 2);
	CHECK_INT(seen.last, seen.first);
}

/* --- priority --- */

static int is_ordinary(void)
{
	return sched_getscheduler(0) == SCHED_OTHER &&
	       getpriority(PRIO_PROCESS, 0) == 0;
}

static void *kernel_thread(void *arg)
{
	return is_ordinary() ? arg : NULL;
}

static int c_thread(void *arg)
{
	return is_ordinary();
}

static int forked(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(!is_ordinary());
	return waits(pid);
}

static int vforked(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(!is_ordinary());
	return waits(pid);
}

static int made_by_pthreads(void)
{
	pthread_t p;
	void *result = NULL;

	return pthread_create(&p, NULL, kernel_thread, ends) == 0 &&
	       pthread_join(p, &result) == 0 && result == ends;
}

static int made_by_c(void)
{
	thrd_t c;
	int result = 0;

	return thrd_create(&c, c_thread, NULL) == thrd_success &&
	       thrd_join(c, &result) == thrd_success && result == 1;
}

/* The 19th and the 41st word behind the name are nice value and policy. */
#define LOOK                                                                   \
	"read line < /proc/self/stat; set -- ${line##*)}; "                    \
	"[ ${17} = 0 ] && [ ${39} = 0 ]"

static int spawned(void)
{
	char sh[] = "sh", flag[] = "-c", text[] = LOOK;
	char *argv[] = { sh, flag, text, NULL };
	pid_t pid;

	return posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ) == 0 &&
	       waits(pid) &&
	       posix_spawnp(&pid, "sh", NULL, NULL, argv, environ) == 0 &&
	       waits(pid);
}

static int by_system(void)
{
	return system(LOOK) == 0;
}

static int by_popen(void)
{
	FILE *f = popen(LOOK, "r");

	return f != NULL && pclose(f) == 0;
}

static int (*const makers[])(void) = { forked,    vforked, made_by_pthreads,
				       made_by_c, spawned, by_system,
				       by_popen };

static bool was_low, good;

/* On the spare, while the reader sleeps. */
static void *makes(void *arg)
{
	int (*const *maker)(void) = arg;

	was_low = !is_ordinary();
	good = (*maker)();
	return arg;
}

static void *sleeps(void *arg)
{
	char c;

	if (read(ends[0], &c, 1) != 1)
		abort();
	return arg;
}

/* The spare may come too late: was_low tells. */
static void make_on_spare(int (*const *maker)(void))
{
	marcel_attr_t attr;
	marcel_t s, t;

	marcel_attr_init(&attr);
	marcel_attr_setstacksize(&attr, 1 << 20);
	/* Ready before the other sleeps, so that the spare gets it. */
	if (marcel_create(&t, &attr, makes, (void *)maker) != 0 ||
	    marcel_create(&s, &attr, sleeps, NULL) != 0 ||
	    marcel_join(t, NULL) != 0 || write(ends[1], "x", 1) != 1 ||
	    marcel_join(s, NULL) != 0)
		abort();
}

/* In a process of its own: 0, or which maker failed. */
static int make_children(void)
{
	struct marcel_config config = { .nvp = 1 };

	setenv("MARCEL_TIMESLICE_US", "1000000", 1);
	if (marcel_init(&config) != 0)
		return 100;
	for (size_t i = 0; i < BASE_ARRAY_LEN(makers); i++)
		do {
			make_on_spare(&makers[i]);
			if (!good)
				return (int)i + 1;
		} while (!was_low && load_relaxed(&marcel_lwps.lowers) != 0);
	marcel_end();
	return 0;
}

static int in_a_process(int uid)
{
	int status;
	pid_t pid;

	CHECK_INT(pipe(ends), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		if (uid != 0 && setresuid(uid, uid, uid) < 0)
			_exit(101);
		_exit(make_children());
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	close(ends[0]);
	close(ends[1]);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(children_have_ordinary_priority)
{
	if (!is_ordinary())
		check_skip("needs ordinary priority itself");
	CHECK_INT(in_a_process(0), 0);
}

/* Who may not raise a priority again. */
TEST(children_of_an_unprivileged_user_have_ordinary_priority)
{
	enum { NOBODY = 65534 };

	if (!is_ordinary() || geteuid() != 0)
		check_skip("needs ordinary priority, and to be root");
	CHECK_INT(in_a_process(NOBODY), 0);
}
