/*
 * For programs one of whose processes dies, while the job goes on. A launcher
 * ends a job that has lost a process; so each rank is a child of the process
 * that was started, which keeps its place and, if it was killed, takes leave
 * for it (PMI-1).
 */
#ifndef TESTS_MADMPI_DIES_H
#define TESTS_MADMPI_DIES_H

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static inline void dies_take_leave(void)
{
	const char *fd = getenv("PMI_FD"), *text = "cmd=finalize\n";
	char answer = 0;

	if (fd == NULL || write(atoi(fd), text, strlen(text)) < 0)
		exit(1);
	while (answer != '\n' && read(atoi(fd), &answer, 1) == 1)
		;
}

/* The first that main does. It returns in the child. */
static inline void dies_begin(void)
{
	pid_t child = fork();
	int status = 1;

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return;
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		exit(1);
	if (WIFEXITED(status))
		exit(WEXITSTATUS(status));
	if (WTERMSIG(status) != SIGKILL)
		kill(getpid(), WTERMSIG(status)); /* mpirun names it */
	dies_take_leave();
	exit(0);
}

/* Now. */
static inline void dies(void)
{
	kill(getpid(), SIGKILL);
	pause();
}

#endif
