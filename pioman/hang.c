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
	if (piom.engine == PIOM_ENGINE_MARCEL)
		h->hooks--; /* it runs the tasks */
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

struct told {
	struct base_teller *teller;
	unsigned n;
};

static void tell_task(struct piom_task *t, void *arg)
{
	struct told *told = arg;
	uint16_t state = load_relaxed(&t->state);

	if (told->n++ < TOLD_MAX)
		base_tell(told->teller, "ltask %p, function %p, is not over%s",
			  (void *)t, (void *)(uintptr_t)t->fn,
			  state >= PIOM_STATE_MASK ? ", and masked" : "");
}

static void tell_queue(struct piom_queue *q, void *arg)
{
	walk(q, tell_task, arg);
}

static void tell(void *arg, struct base_teller *t)
{
	struct told told = { .teller = t };

	(void)arg;
	piom_tree_walk(tell_queue, &told);
	if (told.n > TOLD_MAX)
		base_tell(t, "and %u more ltasks", told.n - TOLD_MAX);
}

const struct base_hang_layer piom_hang = { look, name, tell };
