/* pioman: what a trace says of ltasks. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <marcel/marcel.h>
#include <pioman/ltask.h>
#include <pioman/pioman.h>

#include "../../marcel/trace/reader.h"
#include "../../check.h"

static char folder[] = "/tmp/pioman-trace-XXXXXX";
static char path[64];
static int fds[2];
static struct piom_ltask task;

static enum piom_ltask_result take(void *arg)
{
	char c;

	(void)arg;
	if (read(fds[0], &c, 1) != 1)
		return PIOM_LTASK_AGAIN;
	return c == 'z' ? PIOM_LTASK_DONE : PIOM_LTASK_WORKED;
}

static void start(const char *mode)
{
	struct marcel_config config = { .nvp = 1 };

	strcpy(folder, "/tmp/pioman-trace-XXXXXX");
	CHECK(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/t", folder);
	setenv("MARCEL_TRACE", path, 1);
	setenv("PIOM_MODE", mode, 1);
	CHECK_INT(pipe2(fds, O_NONBLOCK), 0);
	CHECK_INT(marcel_init(&config), 0);
	CHECK_INT(piom_init(), 0);
}

static void end(struct trace *out)
{
	CHECK_INT(piom_exit(), 0);
	CHECK_INT(marcel_end(), 0);
	close(fds[0]);
	close(fds[1]);
	trace_load(out, path);
	CHECK_INT(out->lost, 0);
	unlink(path);
	rmdir(folder);
	unsetenv("MARCEL_TRACE");
	unsetenv("PIOM_MODE");
}

static void submit(void)
{
	struct piom_blocking how = { .fd = fds[0] };

	piom_ltask_init(&task, take, NULL, PIOM_LTASK_REPEAT, NULL);
	CHECK_INT(piom_ltask_set_blocking(&task, &how), 0);
	piom_ltask_submit(&task);
}

static unsigned runs(const struct trace *t)
{
	unsigned n = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct trace_event *e = &t->events[i];

		if (e->r->kind != MARCEL_TRACE_LTASK ||
		    e->r->b != (uintptr_t)take)
			continue;
		CHECK_INT(e->more->c, (uintptr_t)&task);
		CHECK(e->more->a < 8);
		n++;
	}
	return n;
}

TEST(runs_that_find_something_are_recorded_and_no_others)
{
	struct trace t;

	start("poll");
	submit();
	for (int i = 0; i < 100; i++)
		CHECK_INT(piom_poll(), 0);
	CHECK_INT(write(fds[1], "a", 1), 1);
	CHECK_INT(piom_poll(), 1);
	CHECK_INT(write(fds[1], "z", 1), 1);
	piom_ltask_wait(&task);
	end(&t);
	CHECK_INT(runs(&t), 2);
	trace_free(&t);
}

/* Whom nobody asks but the watcher. */
TEST(a_wait_in_the_kernel_begins_and_ends)
{
	int exports = 0, interrupts = 0;
	struct trace t;

	setenv("PIOM_ENGINE", "none", 1);
	start("interrupt");
	submit();
	CHECK_INT(piom_poll(), 0); /* it is asked, and armed */
	CHECK_INT(write(fds[1], "z", 1), 1);
	while (!piom_ltask_test(&task))
		sched_yield();
	end(&t);
	unsetenv("PIOM_ENGINE");
	for (size_t i = 0; i < t.n; i++) {
		const struct trace_event *e = &t.events[i];

		if (e->r->kind == MARCEL_TRACE_EXPORT) {
			CHECK_INT(e->r->b, (uintptr_t)take);
			CHECK_INT(e->more->a, 0);
			CHECK_INT(e->more->b, fds[0]);
			CHECK_INT(e->more->c, (uintptr_t)&task);
			CHECK_INT(interrupts, 0);
			exports++;
		}
		if (e->r->kind == MARCEL_TRACE_INTERRUPT) {
			CHECK_INT(e->r->a, 0);
			CHECK_INT(e->r->b, fds[0]);
			CHECK(e->r->lane >= MARCEL_TRACE_FOREIGN);
			interrupts++;
		}
	}
	CHECK_INT(exports, 1);
	CHECK(interrupts >= 1);
	CHECK_INT(runs(&t), 1);
	trace_free(&t);
}
