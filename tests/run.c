/*
 * Commands for tests. Output goes to files, so that a command that prints much
 * never waits for us and nothing is lost when it is killed.
 */
#include "run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int limit_ms = 60000;
static int files[2] = { -1, -1 };
static char *texts[2];
static pid_t running;

void run_may_take(int seconds)
{
	limit_ms = seconds * 1000;
}

static int file_with(const char *text)
{
	int fd = memfd_create("run", MFD_CLOEXEC);
	size_t n = text ? strlen(text) : 0;

	CHECK(fd >= 0);
	CHECK(n == 0 || write(fd, text, n) == (ssize_t)n);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static pid_t start(const char *input, const char *fmt, va_list ap)
{
	char command[8192];
	int in = file_with(input);

	CHECK(vsnprintf(command, sizeof(command), fmt, ap) <
	      (int)sizeof(command));
	for (int i = 0; i < 2; i++) {
		if (files[i] >= 0)
			close(files[i]);
		files[i] = file_with(NULL);
		/* Several processes write: all at the end. */
		fcntl(files[i], F_SETFL, O_APPEND);
	}
	fflush(stdout);
	running = fork();
	CHECK(running >= 0);
	if (running == 0) {
		dup2(in, 0);
		dup2(files[0], 1);
		dup2(files[1], 2);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	close(in);
	return running;
}

/* The text of a file so far, ended by a 0. */
static const char *text_of(int i, size_t *bytes)
{
	struct stat st;
	ssize_t n;

	CHECK_INT(fstat(files[i], &st), 0);
	free(texts[i]);
	texts[i] = malloc((size_t)st.st_size + 1);
	CHECK(texts[i] != NULL);
	n = pread(files[i], texts[i], (size_t)st.st_size, 0);
	CHECK(n >= 0);
	texts[i][n] = '\0';
	if (bytes != NULL)
		*bytes = (size_t)n;
	return texts[i];
}

pid_t run_start(const char *input, const char *fmt, ...)
{
	va_list ap;
	pid_t pid;

	va_start(ap, fmt);
	pid = start(input, fmt, ap);
	va_end(ap);
	return pid;
}

struct run run_wait(void)
{
	struct run r = { .code = -1 };
	struct pollfd w = { .events = POLLIN };
	int status;

	w.fd = (int)syscall(SYS_pidfd_open, running, 0);
	CHECK(w.fd >= 0);
	if (poll(&w, 1, limit_ms) <= 0)
		kill(running, SIGKILL);
	close(w.fd);
	CHECK_INT(waitpid(running, &status, 0), running);
	if (WIFEXITED(status))
		r.code = WEXITSTATUS(status);
	else if (WTERMSIG(status) != SIGKILL)
		r.code = 128 + WTERMSIG(status);
	r.out = text_of(0, &r.out_bytes);
	r.err = text_of(1, NULL);
	return r;
}

struct run run(const char *input, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	start(input, fmt, ap);
	va_end(ap);
	return run_wait();
}

const char *run_printed(void)
{
	return text_of(0, NULL);
}

/* Files give no event; a look every millisecond, bounded. */
int run_has_printed(const char *text)
{
	for (int i = 0; i < limit_ms; i++) {
		if (strstr(text_of(0, NULL), text) != NULL)
			return 1;
		poll(NULL, 0, 1);
	}
	return 0;
}

/* Each line as a comment of TAP. */
static void print_comment(const char *text)
{
	printf("# ");
	for (; *text != '\0'; text++)
		printf(*text == '\n' ? "\n# " : "%c", *text);
	printf("\n");
}

bool has(const char *text, const char *part)
{
	if (strstr(text, part) != NULL)
		return true;
	print_comment(part);
	printf("# is not in:\n");
	print_comment(text);
	return false;
}

const char *run_path(const char *variable)
{
	const char *path = getenv(variable);

	if (path == NULL)
		check_fail(__FILE__, __LINE__,
			   "%s is not set: run this through meson test",
			   variable);
	return path;
}
