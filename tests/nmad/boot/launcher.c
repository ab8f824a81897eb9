/*
 * Launchers that are played: launcher.h.
 */
#include "launcher.h"

#include "../../check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/compiler.h>

#include "../../../nmad/boot/boot.h"

char said[4096];

static const char *const *script; /* ends with NULL: then it hangs up */
static pthread_t launcher;
static int launcher_fd, listener = -1;
static int old_stderr = -1, said_fd;

/* --- the launcher's thread --- */

static bool read_n(char *out, size_t n)
{
	return recv(launcher_fd, out, n, MSG_WAITALL) == (ssize_t)n;
}

/* A request of PMI-1: to its end. */
static bool read_request(void)
{
	char c;

	do
		if (!read_n(&c, 1))
			return false;
	while (c != '\n');
	return true;
}

/* Of PMI-2: as long as it says. */
static bool read_prefixed(void)
{
	char text[4096] = "";
	int n;

	if (!read_n(text, 6))
		return false;
	n = atoi(text);
	return n > 0 && n < (int)sizeof(text) && read_n(text, (size_t)n);
}

static bool say(const char *text, size_t n)
{
	return send(launcher_fd, text, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* What a script has: whole lines, "#" and bytes as they are, or PMI-2. */
static bool answer(const char *text)
{
	size_t n = strlen(text);
	char head[24];

	if (n == 0 || text[n - 1] == '\n')
		return say(text, n);
	if (text[0] == '#')
		return say(text + 1, n - 1);
	snprintf(head, sizeof(head), "%-6zu", n);
	return say(head, 6) && say(text, n);
}

static void *play(void *arg)
{
	if (listener >= 0) {
		launcher_fd = accept(listener, NULL, NULL);
		close(listener);
		listener = -1;
	}
	for (bool first = true; *script != NULL; script++) {
		const char *text = *script;
		bool line = first || text[strlen(text) - 1] == '\n';

		if (!(line ? read_request() : read_prefixed()) || !answer(text))
			break;
		first = false;
	}
	close(launcher_fd);
	return arg;
}

/* --- its life --- */

void launch(const char *const *lines)
{
	int pair[2];
	char text[16];

	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	launcher_fd = pair[0];
	script = lines;
	snprintf(text, sizeof(text), "%d", pair[1]);
	setenv("PMI_FD", text, 1);
	setenv("PMI_RANK", "1", 1);
	setenv("PMI_SIZE", "2", 1);
	CHECK_INT(pthread_create(&launcher, NULL, play, NULL), 0);
}

void launch_at_port(const char *const *lines)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof(a);
	char text[32];

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_INT(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
	CHECK_INT(listen(listener, 1), 0);
	CHECK_INT(getsockname(listener, (struct sockaddr *)&a, &n), 0);
	script = lines;
	snprintf(text, sizeof(text), "127.0.0.1:%d", ntohs(a.sin_port));
	setenv("PMI_PORT", text, 1);
	setenv("PMI_ID", "1", 1);
	CHECK_INT(pthread_create(&launcher, NULL, play, NULL), 0);
}

void launcher_leaves(void)
{
	pthread_join(launcher, NULL);
}

/* --- what we say --- */

void listen_to_stderr(void)
{
	said_fd = memfd_create("said", 0);
	old_stderr = dup(2);
	dup2(said_fd, 2);
}

void heard(void)
{
	ssize_t n = pread(said_fd, said, sizeof(said) - 1, 0);

	dup2(old_stderr, 2);
	close(old_stderr);
	close(said_fd);
	said[n > 0 ? n : 0] = '\0';
}

bool has_said(const char *part)
{
	if (strstr(said, part) != NULL)
		return true;
	printf("# \"%s\" is not in \"%s\"\n", part, said);
	return false;
}

static void forget(void)
{
	static const char *const names[] = {
		"PMI_FD",    "PMI_RANK",       "PMI_SIZE",
		"PMI_PORT",  "PMI_ID",         "PMI_JOBID",
		"PMIX_RANK", "PMIX_NAMESPACE", "NMAD_KEY_FD",
		"NMAD_BOOT", "SLURM_PROCID",   "SLURM_STEP_NUM_TASKS",
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(names); i++)
		unsetenv(names[i]);
}

__attribute__((constructor)) static void clean(void)
{
	check_fixture(forget, forget);
}

void refuses(int rc, const char *message)
{
	struct nm_boot *b = NULL;
	int got;

	listen_to_stderr();
	got = nm_boot_open(&b);
	heard();
	CHECK_INT(got, rc);
	CHECK(b == NULL);
	CHECK(has_said(message));
}

void launcher_refused(const char *const *lines, int rc, const char *message)
{
	launch(lines);
	refuses(rc, message);
	launcher_leaves();
}
