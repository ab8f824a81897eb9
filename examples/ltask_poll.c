/*
 * pioman: a small task that looks for an event whenever a VP has a moment,
 * while a thread computes and another waits. The event is a line in a pipe.
 */
#include <errno.h>
#include <fcntl.h>
#include <marcel/marcel.h>
#include <pioman/pioman.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The task, its condition and what it has found. */
static struct piom_ltask task;
static piom_cond_t found;
static char text[64];
static int ends[2];
static long looks;

/* Runs on any VP and must not block: the pipe is non-blocking. */
static enum piom_ltask_result look(void *arg)
{
	ssize_t n = read(ends[0], text, sizeof(text) - 1);

	(void)arg;
	looks++;
	if (n < 0)
		return PIOM_LTASK_AGAIN;
	text[n] = '\0';
	piom_cond_signal(&found);
	return PIOM_LTASK_DONE;
}

static void *wait_for_it(void *arg)
{
	piom_cond_wait(&found);
	return arg;
}

/* Works for a while, then writes; a switch now and then is a moment. */
static void *compute(void *arg)
{
	for (int i = 0; i < 1000; i++)
		marcel_yield();
	if (write(ends[1], "an event", 8) != 8)
		return NULL;
	return arg;
}

int main(void)
{
	marcel_t waiter, worker;

	if (marcel_init(NULL) != 0 || piom_init() != 0 ||
	    pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0)
		return 1;
	piom_cond_init(&found);
	piom_ltask_init(&task, look, NULL, PIOM_LTASK_REPEAT, NULL);
	piom_ltask_submit(&task);
	if (marcel_create(&waiter, NULL, wait_for_it, NULL) != 0 ||
	    marcel_create(&worker, NULL, compute, NULL) != 0)
		return 1;
	marcel_join(waiter, NULL);
	marcel_join(worker, NULL);
	piom_ltask_wait(&task);
	printf("found \"%s\" after more than %d looks\n", text,
	       looks > 100 ? 100 : 0);
	piom_exit();
	marcel_end();
	return strcmp(text, "an event") != 0;
}
