/*
 * CPU time, in ms, that a process uses while one of its threads waits for an
 * event of a descriptor, for each engine and mode; with PIOM_MODE=poll that is
 * what polling costs. Target: 10 ms in 10 s.
 *
 *   waiting [SECONDS [ENGINE MODE]]     2, if nothing is said, and all
 *
 * Lines "user_ENGINE_MODE VALUE ms" of a user thread, "foreign_..." of one that
 * is not marcel's.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <marcel/marcel.h>
#include <pioman/pioman.h>

#include "measure.h"

static int seconds = 2;

struct event {
	struct piom_ltask task;
	piom_cond_t come;
	int fd[2];
};

static enum piom_ltask_result look(void *arg)
{
	struct event *e = arg;
	char byte;

	if (read(e->fd[0], &byte, 1) != 1)
		return PIOM_LTASK_AGAIN;
	piom_cond_signal(&e->come);
	return PIOM_LTASK_DONE;
}

static double cpu_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

static void *send_late(void *arg)
{
	struct timespec t = { seconds, 0 };
	struct event *e = arg;

	nanosleep(&t, NULL);
	must(write(e->fd[1], "x", 1) == 1, "write");
	return NULL;
}

/* From when the waiter is about to wait until it has what it waited for. */
static double wait_for_it(struct event *e)
{
	double before = cpu_ms();

	piom_cond_wait(&e->come);
	return cpu_ms() - before;
}

static void *wait_foreign(void *arg)
{
	static double ms;

	ms = wait_for_it(arg);
	return &ms;
}

static double measure(int foreign)
{
	struct piom_blocking how = { .delay_ns = PIOM_BLOCKING_AUTO };
	pthread_t sender, waiter;
	struct event e;
	void *got;
	double ms;

	must(pipe2(e.fd, O_NONBLOCK | O_CLOEXEC) == 0, "pipe");
	piom_cond_init(&e.come);
	piom_ltask_init(&e.task, look, &e, PIOM_LTASK_REPEAT, NULL);
	how.fd = e.fd[0];
	must(piom_ltask_set_blocking(&e.task, &how) == 0, "set_blocking");
	piom_ltask_submit(&e.task);
	must(pthread_create(&sender, NULL, send_late, &e) == 0, "thread");
	if (foreign) {
		must(pthread_create(&waiter, NULL, wait_foreign, &e) == 0,
		     "thread");
		pthread_join(waiter, &got);
		ms = *(double *)got;
	} else {
		ms = wait_for_it(&e);
	}
	pthread_join(sender, NULL);
	piom_ltask_wait(&e.task);
	close(e.fd[0]);
	close(e.fd[1]);
	return ms;
}

int main(int argc, char **argv)
{
	static const char *const engines[] = { "marcel", "pthread", "none" };
	static const char *const modes[] = { "auto", "interrupt", "poll" };
	struct marcel_config config = { 0 };

	if (argc > 1)
		seconds = atoi(argv[1]);
	if ((argc > 2 && argc != 4) || seconds < 1) {
		fprintf(stderr, "waiting [SECONDS [ENGINE MODE]]\n");
		return 2;
	}
	for (int i = 0; i < 9; i++) {
		if (argc == 4 && (strcmp(argv[2], engines[i / 3]) != 0 ||
				  strcmp(argv[3], modes[i % 3]) != 0))
			continue;
		setenv("PIOM_ENGINE", engines[i / 3], 1);
		setenv("PIOM_MODE", modes[i % 3], 1);
		must(marcel_init(&config) == 0, "marcel_init");
		must(piom_init() == 0, "piom_init");
		printf("user_%s_%s %.2f ms\n", engines[i / 3], modes[i % 3],
		       measure(0));
		printf("foreign_%s_%s %.2f ms\n", engines[i / 3], modes[i % 3],
		       measure(1));
		fflush(stdout);
		piom_exit();
		marcel_end();
	}
	return 0;
}
