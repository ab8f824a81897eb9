/*
 * Kernel threads as others see them: signals, whether they sleep, barriers.
 */
#include "../os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <base/atomic.h>
#include <base/compiler.h>

pid_t os_tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/* From the kernel's number of its clock: see CPUCLOCK_PERTHREAD there. */
pid_t os_thread_tid(pthread_t thread)
{
	clockid_t clock;

	if (pthread_getcpuclockid(thread, &clock) != 0)
		return 0;
	return (pid_t) ~(clock >> 3);
}

void os_allow_readers(void)
{
	/* Without Yama it is an error, and all is well. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
}

bool os_thread_kill(pid_t tid, int signal)
{
	int saved = errno;
	bool sent = syscall(SYS_tgkill, getpid(), tid, signal) == 0 ||
		    errno != EAGAIN;

	errno = saved;
	return sent;
}

/* By the same. */
uint64_t os_thread_cpu_ns(pid_t tid)
{
	clockid_t clock = (clockid_t)(~(unsigned)tid << 3 | 6);
	int saved = errno;
	struct timespec t = { 0 };

	clock_gettime(clock, &t);
	errno = saved;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Not another PID namespace's, in which our numbers are others'. */
static bool proc_is_ours(void)
{
	/* a: relaxed; of which process: it is, or if negative, it is not */
	static ATOMIC(int) known;
	char link[32] = "";
	int me = getpid(), of = load_relaxed(&known);

	if (of != me && of != -me) {
		if (readlink("/proc/self", link, sizeof(link) - 1) < 0)
			link[0] = '\0';
		of = atoi(link) == me ? me : -me;
		store_relaxed(&known, of);
	}
	return of > 0;
}

/*
 * The first line of one of its files in /proc, without its end; or "". By way
 * of its own directory: after a look at one in /proc/self/task, Linux spins for
 * a millisecond of the parent's when the process has ended (6.18).
 */
static void read_line(pid_t tid, const char *name, char *out, size_t bytes)
{
	char path[64];
	ssize_t n = 0;
	int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)tid, (int)tid,
		 name);
	if (proc_is_ours())
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, out, bytes - 1);
		close(fd);
	}
	out[n > 0 ? n : 0] = '\0';
}

bool os_thread_sleeps(pid_t tid)
{
	char line[128], *state;

	read_line(tid, "stat", line, sizeof(line));
	/* "tid (name) S ...": the name may contain anything */
	state = strrchr(line, ')');
	return state != NULL && strlen(state) > 2 &&
	       (state[2] == 'S' || state[2] == 'D');
}

/* signal(7): these fail with EINTR. */
static const long ends[] = {
	SYS_clock_nanosleep, SYS_epoll_pwait, SYS_epoll_pwait2,
	SYS_io_getevents,    SYS_msgrcv,      SYS_msgsnd,
	SYS_nanosleep,       SYS_ppoll,       SYS_pselect6,
	SYS_rt_sigsuspend,   SYS_semop,       SYS_semtimedop,
#ifdef SYS_poll
	SYS_epoll_wait,      SYS_pause,       SYS_poll,
	SYS_select,
#endif
	SYS_rt_sigtimedwait,
};

bool os_thread_sleeps_on(pid_t tid)
{
	char line[32], *end;
	long call;

	/* "202 0x7f...": the call and its arguments; -1: none; or "running" */
	read_line(tid, "syscall", line, sizeof(line));
	call = strtol(line, &end, 10);
	if (end == line)
		return false;
	for (unsigned i = 0; i < BASE_ARRAY_LEN(ends); i++)
		if (call == ends[i])
			return false;
	return true;
}

void os_thread_no_signals(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
}

/* libc's are not for signal handlers. */
void os_signal_soon(int *timer, int signal, uint64_t ns)
{
	struct sigevent to = { .sigev_notify = SIGEV_THREAD_ID,
			       .sigev_signo = signal,
			       ._sigev_un = { ._tid = os_tid() } };
	struct itimerspec when = { .it_value = { .tv_nsec = (long)ns } };
	int id;

	if (*timer == 0) {
		if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &to, &id) < 0)
			return;
		*timer = id + 1;
	}
	syscall(SYS_timer_settime, *timer - 1, 0, &when, NULL);
}

void os_signal_stop(int *timer)
{
	syscall(SYS_timer_delete, *timer - 1);
	*timer = 0;
}

/* libc's sigtimedwait() may be the wrapper. */
bool os_signal_take(int signal, uint64_t ns)
{
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u) };
	int saved = errno;
	sigset_t set;
	long taken;

	sigemptyset(&set);
	sigaddset(&set, signal);
	taken = syscall(SYS_rt_sigtimedwait, &set, NULL, &t, _NSIG / 8);
	errno = saved;
	return taken == signal;
}

unsigned os_threads(void)
{
	struct stat st;

	if (stat("/proc/self/task", &st) != 0 || st.st_nlink <= 2)
		return 0;
	return (unsigned)st.st_nlink - 2;
}

uint64_t os_signals_handled(void)
{
	unsigned long long set = UINT64_MAX;
	FILE *f = fopen("/proc/self/status", "re");
	char line[128];

	if (f == NULL)
		return set;
	while (fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "SigCgt: %llx", &set) == 1)
			break;
	fclose(f);
	return set;
}

static bool is_alone(void)
{
	return os_threads() == 1;
}

/*
 * To be reached by barriers of other processes costs nothing while there is one
 * thread, and 15 ms later: who shares memory with others will want it.
 */
bool os_barrier_init(void)
{
	if (is_alone())
		syscall(SYS_membarrier,
			MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
	return syscall(SYS_membarrier,
		       MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void os_barrier_all(void)
{
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}
