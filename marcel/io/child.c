/*
 * To wait for a child process.
 */
#include "io.h"

#include <sys/epoll.h>
#include <sys/syscall.h>

#include "../sched/poller.h"

/* Past the bound: until a child may have ended; false: cannot be done. */
static bool sleep_child(pid_t pid, int options)
{
	bool slept;
	int fd;

	if (pid <= 0 || options != 0)
		return false;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0)
		return false;
	slept = marcel_poller_wait(fd, EPOLLIN);
	close(fd);
	return slept;
}

pid_t marcel_io_wait4(__typeof__(wait4) *next, pid_t pid, int *status,
		      int options, struct rusage *usage)
{
	pid_t rc;

	if (likely(!io_holds()) || (options & WNOHANG) != 0)
		return next(pid, status, options, usage);
	do {
		rc = next(pid, status, options | WNOHANG, usage);
		if (rc != 0)
			return rc;
	} while (!marcel_call_begin() && sleep_child(pid, options));
	marcel_call_alone();
	rc = next(pid, status, options, usage);
	marcel_call_end(rc < 0);
	return rc;
}

pid_t marcel_io_waitpid(__typeof__(waitpid) *next, pid_t pid, int *status,
			int options)
{
	if (likely(!io_holds()))
		return next(pid, status, options);
	return marcel_io_wait4(wait4, pid, status, options, NULL);
}

pid_t marcel_io_wait(__typeof__(wait) *next, int *status)
{
	if (likely(!io_holds()))
		return next(status);
	return marcel_io_wait4(wait4, -1, status, 0, NULL);
}

pid_t marcel_io_wait3(__typeof__(wait3) *next, int *status, int options,
		      struct rusage *usage)
{
	if (likely(!io_holds()))
		return next(status, options, usage);
	return marcel_io_wait4(wait4, -1, status, options, usage);
}

/* That there is none yet is told by what is left unwritten. */
static int try_waitid(__typeof__(waitid) *next, idtype_t type, id_t id,
		      siginfo_t *out, int options, bool *none)
{
	siginfo_t info;
	int rc;

	info.si_pid = 0;
	rc = next(type, id, &info, options | WNOHANG);
	*none = rc == 0 && info.si_pid == 0;
	if (rc == 0 && !*none && out != NULL)
		*out = info;
	return rc;
}

int marcel_io_waitid(__typeof__(waitid) *next, idtype_t type, id_t id,
		     siginfo_t *out, int options)
{
	bool none;
	int rc;

	if (likely(!io_holds()) || (options & WNOHANG) != 0)
		return next(type, id, out, options);
	do {
		rc = try_waitid(next, type, id, out, options, &none);
		if (!none)
			return rc;
	} while (!marcel_call_begin() && type == P_PID &&
		 sleep_child((pid_t)id, options & ~WEXITED & ~WNOWAIT));
	marcel_call_alone();
	rc = next(type, id, out, options);
	marcel_call_end(rc < 0);
	return rc;
}

/* --- the public names --- */

BASE_PUBLIC pid_t marcel_wait(int *status)
{
	return marcel_io_wait(wait, status);
}

BASE_PUBLIC pid_t marcel_waitpid(pid_t pid, int *status, int options)
{
	return marcel_io_waitpid(waitpid, pid, status, options);
}

BASE_PUBLIC pid_t marcel_wait3(int *status, int options, struct rusage *usage)
{
	return marcel_io_wait3(wait3, status, options, usage);
}

BASE_PUBLIC pid_t marcel_wait4(pid_t pid, int *status, int options,
			       struct rusage *usage)
{
	return marcel_io_wait4(wait4, pid, status, options, usage);
}

BASE_PUBLIC int marcel_waitid(idtype_t type, id_t id, siginfo_t *out,
			      int options)
{
	return marcel_io_waitid(waitid, type, id, out, options);
}
