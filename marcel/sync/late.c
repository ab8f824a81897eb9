/*
 * Posts that wait for the runtime: late.h.
 */
#include "late.h"

#include <base/compiler.h>
#include <marcel/marcel.h>
#include <marcel/tasklet.h>

static struct {
	/* a: atomic    t: tasklet.c */
	struct base_mpsc list;    /* a: order(mpsc); of semaphores */
	marcel_tasklet_t tasklet; /* t: takes it: one at a time */
} late;

/* Each is in the list again as soon as its posts were taken, if more come. */
static void pay(void *arg)
{
	struct base_mpsc_node *chain = base_mpsc_take(&late.list);

	(void)arg;
	base_mpsc_for_each (n, chain) {
		struct marcel_late *l =
			container_of(n, struct marcel_late, node);

		/* order(late): what was done before each; the node is free */
		marcel_sem_pay(l, xchg_acq_rel(&l->posts, 0));
	}
}

bool marcel_late_post(struct marcel_late *l)
{
	if (!marcel_is_running())
		return false;
	/* order(late): all; that the node is free */
	if (fetch_add_acq_rel(&l->posts, 1) == 0)
		base_mpsc_push(&late.list, &l->node);
	/* Fails when marcel ends meanwhile: exit() pays. */
	marcel_tasklet_hi_schedule(&late.tasklet);
	return true;
}

void marcel_late_init(void)
{
	marcel_tasklet_init(&late.tasklet, pay, NULL);
}

void marcel_late_exit(void)
{
	pay(NULL);
}

void marcel_late_forked(void)
{
	struct base_mpsc_node *chain = base_mpsc_take(&late.list);

	base_mpsc_for_each (n, chain) {
		struct marcel_late *l =
			container_of(n, struct marcel_late, node);

		store_relaxed(&l->posts, 0); /* the next is the first */
	}
}
