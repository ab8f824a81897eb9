/*
 * Rules about how a process ends: they are tried in a child.
 */
#ifndef TESTS_MARCEL_CHILD_H
#define TESTS_MARCEL_CHILD_H

#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../check.h"
#include "../parent.h"

static char said[4096]; /* what the child wrote on stderr */

/* Run body in a child that may die; its wait status. */
static inline int in_child(void (*body)(void))
{
	struct rlimit none = { 0, 0 };
	size_t len = 0;
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	CHECK_INT(pipe(fds), 0);
	fflush(stdout);
	pid = parent_forks(fork);
	CHECK(pid >= 0);
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &none);
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		body();
		_exit(0);
	}
	close(fds[1]);
	while (len < sizeof(said) - 1 &&
	       (n = read(fds[0], said + len, sizeof(said) - 1 - len)) > 0)
		len += (size_t)n;
	said[len] = 0;
	close(fds[0]);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	return status;
}

#endif
