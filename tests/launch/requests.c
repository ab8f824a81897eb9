/*
 * A rank that only passes on what its program and the launcher say to each
 * other (PMI-1 on PMI_FD), and counts: at the end it prints how many requests
 * there were, and how many of them asked for a value.
 *
 *   requests PROGRAM [ARGUMENT ...]
 *
 * A request is a line, its answer another; who aborts waits for none, and is
 * ended by the launcher.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(9);
	}
}

/* The program, whose launcher is at `fd`. */
static pid_t start(char **command, int fd, int other, int launcher)
{
	char text[16];
	pid_t pid = fork();

	must(pid >= 0, "fork");
	if (pid > 0)
		return pid;
	close(other);
	close(launcher);
	snprintf(text, sizeof(text), "%d", fd);
	setenv("PMI_FD", text, 1);
	execv(command[0], command);
	must(0, command[0]);
	return -1;
}

static int pass_line(FILE *from, int to, char **line, size_t *room)
{
	ssize_t n = getline(line, room, from);

	return n > 0 && send(to, *line, (size_t)n, MSG_NOSIGNAL) == n;
}

int main(int argc, char **argv)
{
	const char *fd = getenv("PMI_FD");
	int launcher = fd != NULL ? atoi(fd) : -1, pair[2], code = 0;
	int requests = 0, values = 0;
	FILE *asks, *answers;
	char *line = NULL;
	size_t room = 0;
	pid_t pid;

	must(argc > 1 && launcher >= 0, "requests");
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
	pid = start(argv + 1, pair[1], pair[0], launcher);
	close(pair[1]);
	asks = fdopen(pair[0], "r");
	answers = fdopen(launcher, "r");
	must(asks != NULL && answers != NULL, "fdopen");
	while (pass_line(asks, launcher, &line, &room)) {
		requests++;
		values += strncmp(line, "cmd=get ", 8) == 0;
		if (!pass_line(answers, pair[0], &line, &room))
			break;
	}
	free(line);
	must(waitpid(pid, &code, 0) == pid, "waitpid");
	printf("requests %d values %d\n", requests, values);
	return WIFEXITED(code) ? WEXITSTATUS(code) : 8;
}
