/*
 * Commands for tests. Output goes to files, so that a command that prints much
 * never waits for us and nothing is lost when it is killed.
 *
 * What they start becomes our child when its parent ends, so none of it is lost
 * sight of, whatever groups, sessions or namespaces it is in.
 */
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static int limit_ms = -1;
static int files[2] = { -1, -1 };
static char *texts[2];
static pid_t running, owner; /* the last command; who starts them */
static char folder[PATH_MAX];

void run_may_take(int seconds)
{
	limit_ms = seconds < 0 ? -1 : seconds * 1000;
}

/* --- what is left of them --- */

/* Those that a thread has started, the main one's with the orphans. */
static int children_of(const char *thread, pid_t *out, int room)
{
	char path[64], text[1024], *at = text, *end;
	ssize_t n;
	int fd, found = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/children", thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	while (found < room) {
		long pid = strtol(at, &end, 10);

		if (end == at || *end != ' ')
			break; /* of a number that was cut off */
		out[found++] = (pid_t)pid;
		at = end;
	}
	return found;
}

/* Of all threads; some at least. In signal handlers, where readdir() is not. */
static int children(pid_t *out, int room)
{
	_Alignas(struct dirent64) char entries[1024];
	int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int found = 0;
	ssize_t n;

	while (fd >= 0 && (n = getdents64(fd, entries, sizeof(entries))) > 0) {
		for (ssize_t at = 0; at < n;) {
			struct dirent64 *e = (struct dirent64 *)(entries + at);

			if (e->d_name[0] != '.')
				found += children_of(e->d_name, out + found,
						     room - found);
			at += e->d_reclen;
		}
	}
	if (fd >= 0)
		close(fd);
	return found;
}

/* In signal handlers, too. Children of those killed become ours. */
static void kill_all(void)
{
	pid_t pids[64];
	int n;

	while ((n = children(pids, 64)) > 0) {
		for (int i = 0; i < n; i++)
			kill(pids[i], SIGKILL);
		for (int i = 0; i < n; i++)
			waitpid(pids[i], NULL, 0);
	}
}

/* Wait for all that is left, for as long as the test may take. */
static void leave_none(bool failed)
{
	siginfo_t who;

	if (failed)
		kill_all();
	while (waitid(P_ALL, 0, &who, WEXITED) == 0 || errno == EINTR)
		;
}

/* To standard output as comments of TAP, without memory of its own. */
static void show_file(int i)
{
	char text[512], line[2 * sizeof(text)];
	bool begins = true;
	off_t at = 0;
	ssize_t n;

	while (files[i] >= 0 &&
	       (n = pread(files[i], text, sizeof(text), at)) > 0) {
		size_t length = 0;

		at += n;
		for (ssize_t c = 0; c < n; c++) {
			if (begins)
				line[length++] = '#';
			line[length++] = text[c];
			begins = text[c] == '\n';
		}
		if (write(STDOUT_FILENO, line, length) != (ssize_t)length)
			return;
	}
	if (!begins)
		dprintf(STDOUT_FILENO, "\n");
}

/* What is left, as text: of memory, for nobody may read what is printed. */
static char left[4096];

static void note_left(void)
{
	char path[64], text[200];
	pid_t pids[16];
	size_t used = 0;
	int n = children(pids, 16);

	for (int i = 0; i < n && used < sizeof(left); i++) {
		int fd, length;

		snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pids[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		length = fd < 0 ? 0 : (int)read(fd, text, sizeof(text));
		if (fd >= 0)
			close(fd);
		for (int c = 0; c < length; c++)
			if (text[c] == '\0')
				text[c] = ' ';
		used += (size_t)snprintf(left + used, sizeof(left) - used,
					 "# process %d is left: %.*s\n",
					 (int)pids[i], length > 0 ? length : 0,
					 text);
	}
}

/*
 * We are ended: by the harness (SIGABRT), because of the time, by others, or by
 * a fault. Who reads what we say may have gone, or give us half a second.
 */
static const int signals[] = { SIGABRT, SIGTERM, SIGINT, SIGHUP,
			       SIGPIPE, SIGSEGV, SIGBUS };
enum { SIGNALS = sizeof(signals) / sizeof(signals[0]) };
static struct sigaction before[SIGNALS];

static void ended(int sig, siginfo_t *info, void *context)
{
	(void)context;
	signal(SIGPIPE, SIG_IGN);
	if (getpid() == owner) {
		note_left();
		kill_all();
		dprintf(STDOUT_FILENO, "%s# the last command had printed:\n",
			left);
		show_file(0);
		show_file(1);
	}
	for (int i = 0; i < SIGNALS; i++)
		if (signals[i] == sig)
			sigaction(sig, &before[i], NULL);
	/* A fault comes again, where it was. */
	if (info->si_code <= 0 || (sig != SIGSEGV && sig != SIGBUS))
		raise(sig);
}

/* Those that are not ignored. */
static void handle_signals(void)
{
	struct sigaction to = { .sa_sigaction = ended,
				.sa_flags = SA_ONSTACK | SA_SIGINFO };

	for (int i = 0; i < SIGNALS; i++) {
		sigaction(signals[i], NULL, &before[i]);
		if (before[i].sa_handler != SIG_IGN)
			sigaction(signals[i], &to, NULL);
	}
}

/*
 * A process that is none of ours, in a session of its own, removes the folder
 * when the pipe tells that we have ended, be it by SIGKILL.
 */
static void make_folder(void)
{
	const char *in = getenv("TMPDIR");
	int ends[2];
	pid_t pid;
	char c;

	CHECK(snprintf(folder, sizeof(folder), "%s/test.XXXXXX",
		       in ? in : "/tmp") < (int)sizeof(folder));
	CHECK(mkdtemp(folder) != NULL);
	/* Commands may run as somebody else. */
	CHECK(chmod(folder, 01777) == 0 && pipe2(ends, O_CLOEXEC) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid > 0) {
		close(ends[0]);
		waitpid(pid, NULL, 0);
		setenv("TMPDIR", folder, 1);
		return;
	}
	if (fork() != 0)
		_exit(0);
	setsid();
	dup2(ends[0], 0);
	close_range(1, ~0u, 0);
	while (read(0, &c, 1) < 0 && errno == EINTR)
		;
	execl("/bin/rm", "rm", "-rf", "--one-file-system", folder,
	      (char *)NULL);
	_exit(127);
}

static void begin(void)
{
	if (owner == getpid())
		return;
	make_folder();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	check_after(leave_none);
	if (owner == 0)
		handle_signals();
	owner = getpid();
}

const char *run_folder(void)
{
	begin();
	return folder;
}

/* --- one --- */

static int file_with(const char *text)
{
	int fd = memfd_create("run", MFD_CLOEXEC);
	size_t n = text ? strlen(text) : 0;

	CHECK(fd >= 0);
	CHECK(n == 0 || write(fd, text, n) == (ssize_t)n);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/*
 * What nohup and the background of a shell have us ignore, the commands would,
 * too; and a shell traps no signal that it was started to ignore.
 */
static void ignore_none(void)
{
	for (int sig = 1; sig < SIGRTMIN; sig++)
		signal(sig, SIG_DFL);
}

static pid_t start(const char *input, const char *fmt, va_list ap)
{
	char command[8192];
	int in = file_with(input);
	bool main_thread = gettid() == getpid();

	begin();
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
		/* Another thread's end is not the test's. */
		if (main_thread)
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in, 0);
		dup2(files[0], 1);
		dup2(files[1], 2);
		ignore_none();
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

/* Files give no event; a look every millisecond. */
bool run_has_printed_times(const char *text, unsigned times)
{
	siginfo_t who = { .si_pid = 0 };

	while (count(text_of(0, NULL), text) < times) {
		if (who.si_pid != 0)
			return false;
		if (waitid(P_PID, (id_t)running, &who,
			   WEXITED | WNOHANG | WNOWAIT) < 0)
			return false;
		poll(NULL, 0, 1);
	}
	return true;
}

bool run_has_printed(const char *text)
{
	return run_has_printed_times(text, 1);
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

unsigned count(const char *text, const char *part)
{
	unsigned n = 0;

	for (; (text = strstr(text, part)) != NULL; text += strlen(part))
		n++;
	return n;
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
