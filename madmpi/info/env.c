/*
 * MPI_INFO_ENV: asked of the system, so that it is known before MPI_Init and
 * whoever has argc and argv.
 */
#include "info/env.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <mpi.h>

/* Command line: the arguments, each with a zero. The number of bytes, or -1. */
static ssize_t read_command_line(char *out, size_t room)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, out, room - 1) : -1;

	if (fd >= 0)
		close(fd);
	if (n > 0)
		out[n] = '\0';
	return n;
}

static void set_command(void (*set)(void *, const char *, const char *),
			void *arg)
{
	char line[MPI_MAX_INFO_VAL];
	ssize_t n = read_command_line(line, sizeof(line));
	size_t first;

	if (n <= 0)
		return;
	set(arg, "command", line);
	first = strlen(line) + 1;
	if (first >= (size_t)n)
		return;
	for (size_t i = first; i + 1 < (size_t)n; i++)
		if (line[i] == '\0')
			line[i] = ' ';
	set(arg, "argv", line + first);
}

static char processes[16] = "1"; /* -: once loaded */

/* Nobody finds the launcher's variables any more after MPI_Init. */
__attribute__((constructor)) static void remember(void)
{
	const char *size = getenv("PMI_SIZE");

	if (size != NULL)
		snprintf(processes, sizeof(processes), "%s", size);
}

void madmpi_info_env(void (*set)(void *arg, const char *key, const char *value),
		     void *arg)
{
	char text[MPI_MAX_INFO_VAL];
	struct utsname u;

	set_command(set, arg);
	set(arg, "maxprocs", processes);
	if (uname(&u) == 0) {
		set(arg, "host", u.nodename);
		set(arg, "arch", u.machine);
	}
	if (getcwd(text, sizeof(text)) != NULL)
		set(arg, "wdir", text);
	set(arg, "thread_level", "MPI_THREAD_MULTIPLE");
}
