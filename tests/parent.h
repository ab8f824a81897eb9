/*
 * A child that a test forks does not outlive it, however the test ends.
 */
#ifndef TESTS_PARENT_H
#define TESTS_PARENT_H

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "check.h"

/* Who is about to fork. */
struct parent {
	pid_t pid;
	bool is_main; /* its kernel thread is the process's first */
};

static inline struct parent parent_self(void)
{
	struct parent p = { getpid(), gettid() == getpid() };

	return p;
}

/*
 * The first that its child does. The kernel tells of the end of a thread, and
 * only the first one's is the process's. Others' children have as long as
 * their test has, which has begun before them.
 */
static inline void parent_binds(struct parent p)
{
	unsigned limit = check_limit();

	if (!p.is_main) {
		signal(SIGALRM, SIG_DFL);
		alarm(limit != 0 ? limit : 600);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != p.pid)
		_exit(1);
}

static inline pid_t parent_forks(pid_t (*forks)(void))
{
	struct parent p = parent_self();
	pid_t pid = forks();

	if (pid == 0)
		parent_binds(p);
	return pid;
}

#endif
