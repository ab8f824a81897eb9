#include "hand.h"

#include <errno.h>
#include <mpi.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	MOMENT_MS = 60,   /* until the victim is where it wants to be hit */
	A_WHILE_MS = 300, /* that it is stopped, or a cable unplugged */
	DESCRIPTORS = 1024
};

static const char *const names[FAULT_COUNT] = {
	[FAULT_KILL] = "kill",   [FAULT_FREEZE] = "freeze",
	[FAULT_PAUSE] = "pause", [FAULT_VANISH] = "vanish",
	[FAULT_EXIT] = "exit",   [FAULT_ABORT] = "abort",
	[FAULT_RESET] = "reset", [FAULT_CUT] = "cut",
	[FAULT_BLINK] = "blink", [FAULT_SILENCE] = "silence",
};

static struct {
	enum fault fault;
	int host;
	int ends[2]; /* of the victim and of the child */
	pid_t child;
	pthread_t thread;
} hand;

enum fault fault_of(const char *name)
{
	int i = 0;

	while (i < FAULT_COUNT && strcmp(names[i], name) != 0)
		i++;
	return (enum fault)i;
}

static bool is_inside(void)
{
	return hand.fault == FAULT_VANISH || hand.fault == FAULT_EXIT ||
	       hand.fault == FAULT_ABORT || hand.fault == FAULT_RESET;
}

static void pass(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&t, &t) < 0 && errno == EINTR)
		;
}

/* One write, so that no other line gets into it. */
static void say(const char *what, long long number)
{
	char text[64];
	int n = snprintf(text, sizeof(text), what, number);

	if (write(STDOUT_FILENO, text, (size_t)n) != n)
		_exit(1);
}

static void say_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	say("faults: inflicted at %lld\n", t.tv_sec * 1000000000LL + t.tv_nsec);
}

/* A socket that is connected anew, to nobody, is reset. */
static void reset_connections(void)
{
	struct sockaddr nobody = { .sa_family = AF_UNSPEC };

	for (int fd = 0; fd < DESCRIPTORS; fd++) {
		struct sockaddr_storage peer;
		socklen_t len = sizeof(peer);

		if (getpeername(fd, (void *)&peer, &len) == 0 &&
		    (peer.ss_family == AF_INET || peer.ss_family == AF_INET6))
			connect(fd, &nobody, sizeof(nobody));
	}
}

static void *inside(void *arg)
{
	pass(MOMENT_MS);
	say_now();
	switch (hand.fault) {
	case FAULT_VANISH:
		_exit(3);
	case FAULT_EXIT:
		exit(3);
	case FAULT_ABORT:
		MPI_Abort(MPI_COMM_WORLD, 3);
		break;
	default:
		reset_connections();
	}
	return arg;
}

static void outside(pid_t victim)
{
	pass(MOMENT_MS);
	say_now();
	switch (hand.fault) {
	case FAULT_KILL:
		kill(victim, SIGKILL);
		break;
	case FAULT_FREEZE:
		kill(victim, SIGSTOP);
		pass(A_WHILE_MS);
		kill(victim, SIGKILL);
		break;
	case FAULT_PAUSE:
		kill(victim, SIGSTOP);
		pass(A_WHILE_MS);
		kill(victim, SIGCONT);
		break;
	case FAULT_CUT:
	case FAULT_BLINK:
		say("net: cut %lld 0\n", hand.host);
		if (hand.fault == FAULT_CUT)
			break;
		pass(A_WHILE_MS);
		say("net: heal %lld 0\n", hand.host);
		break;
	default:
		say("net: silence %lld 0\n", hand.host);
	}
}

static void child(pid_t victim)
{
	char asked;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(hand.ends[0]);
	if (read(hand.ends[1], &asked, 1) == 1) {
		outside(victim);
		asked = (char)write(hand.ends[1], &asked, 1);
	}
	_exit(0);
}

void hand_begin(enum fault fault, int host)
{
	pid_t victim = getpid();

	hand.fault = fault;
	hand.host = host;
	if (is_inside())
		return;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, hand.ends) != 0)
		exit(1);
	hand.child = fork();
	if (hand.child < 0)
		exit(1);
	if (hand.child == 0)
		child(victim);
	close(hand.ends[1]);
}

void hand_ask(void)
{
	if (is_inside() ? pthread_create(&hand.thread, NULL, inside, NULL) != 0
			: write(hand.ends[0], "!", 1) != 1)
		exit(1);
}

void hand_wait(void)
{
	char done;

	if (is_inside())
		pthread_join(hand.thread, NULL);
	else if (read(hand.ends[0], &done, 1) != 1)
		exit(1);
}

void hand_end(void)
{
	if (is_inside())
		return;
	close(hand.ends[0]);
	waitpid(hand.child, NULL, 0);
}
