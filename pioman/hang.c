/*
 * The tasks that are not over. Each may be run at any time by whoever polls,
 * and do anything: so a process that has one is not dead, unless whose task it
 * is knows better. That of the set of descriptors (io/set.c) does something
 * only for threads that wait there.
 *
 * A queue is held for the look: so nobody was inside of it then, half way
 * through what he had found.
 */
#include "hang.h"

#include <sched.h>
#include <stdio.h>

#include "io/set.h"
#include "ltask/tree.h"
#include "state.h"

enum {
	TRIES = 1000, /* to hold a queue: whoever has it polls, and is short */
	TOLD_MAX = 16,
};

/* Fn for each of its tasks; false: it cannot be held now. */
static bool walk(struct piom_queue *q,
		 void (*fn)(struct piom_task *t, void *arg), void *arg)
{
	for (int i = 0; i < TRIES; i++) {
		if (piom_queue_walk(q, fn, arg))
			return true;
		sched_yield();
	}
	return false;
}

/* --- what may move --- */

static void count(struct piom_task *t, void *arg)
{
	struct base_hang *h = arg;

	if (!piom_io_is_set(t))
		h->ltasks++;
}

static void look_at_queue(struct piom_queue *q, void *arg)
{
	struct base_hang *h = arg;

	if (!walk(q, count, h) || !base_mpsc_is_empty(&q->submitted))
		h->busy = true;
}

static void look(void *arg, struct base_hang *h)
{
	(void)arg;
	if (piom.engine == PIOM_ENGINE_MARCEL) {
		h->hooks--; /* they run the tasks */
		h->turns -= 2;
	}
	piom_tree_walk(look_at_queue, h);
	if (piom_io_nwaits() > 0)
		h->by |= BASE_HANG_DESCRIPTOR;
}

/* --- who is waited for --- */

struct search {
	const void *event;
	const struct piom_task *found;
	piom_ltask_fn fn; /* its, read while it was held */
};

static void compare(struct piom_task *t, void *arg)
{
	struct search *s = arg;

	if (s->event != &t->done)
		return;
	s->found = t;
	s->fn = t->fn;
}

static void search(struct piom_queue *q, void *arg)
{
	walk(q, compare, arg);
}

static bool name(void *arg, const void *event, char *out, size_t room,
		 int *rank)
{
	struct search s = { .event = event };

	(void)arg;
	piom_tree_walk(search, &s);
	if (s.found == NULL)
		return false;
	snprintf(out, room, "ltask %p, function %p", (const void *)s.found,
		 (void *)(uintptr_t)s.fn);
	*rank = -1;
	return true;
}

/* --- all that there are --- */

/* What is told of a task: written when nothing is held, since that may block.
 */
struct told {
	struct {
		const void *task;
		piom_ltask_fn fn;
		bool is_masked;
	} tasks[TOLD_MAX];
	unsigned n;
};

static void note_task(struct piom_task *t, void *arg)
{
	struct told *told = arg;
	unsigned i = told->n++;

	if (i >= TOLD_MAX)
		return;
	told->tasks[i].task = t;
	told->tasks[i].fn = t->fn;
	told->tasks[i].is_masked = load_relaxed(&t->state) >= PIOM_STATE_MASK;
}

static void note_queue(struct piom_queue *q, void *arg)
{
	walk(q, note_task, arg);
}

static void tell(void *arg, struct base_teller *t)
{
	struct told told = { .n = 0 };

	(void)arg;
	piom_tree_walk(note_queue, &told);
	for (unsigned i = 0; i < told.n && i < TOLD_MAX; i++)
		base_tell(t, "ltask %p, function %p, is not over%s",
			  told.tasks[i].task,
			  (void *)(uintptr_t)told.tasks[i].fn,
			  told.tasks[i].is_masked ? ", and masked" : "");
	if (told.n > TOLD_MAX)
		base_tell(t, "and %u more ltasks", told.n - TOLD_MAX);
}

const struct base_hang_layer piom_hang = { look, name, tell };
