/*
 * Posts that wait for the runtime: late.h.
 *
 * In the child of a fork() nothing is owed: those who waited are no more. A
 * handler of the parent may have counted a post of a semaphore and not have
 * linked it yet; so a count says in its upper half whose it is, by generation
 * (guard.h), and one of another process is as good as 0.
 */
#include "late.h"

#include <base/compiler.h>
#include <marcel/marcel.h>
#include <marcel/tasklet.h>
#include "guard.h"

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
		marcel_sem_pay(l, (uint32_t)xchg_acq_rel(&l->posts, 0));
	}
}

/* Count one post; whether it is the first. */
static bool count_first(struct marcel_late *l)
{
	uint64_t none = (uint64_t)marcel_generation << 32, was, base;

	was = load_relaxed(&l->posts);
	do
		base = (was ^ none) >> 32 == 0 ? was : none;
	/* order(late): all; that the node is free */
	while (!cas_weak_acq_rel(&l->posts, &was, base + 1));
	return base == none;
}

bool marcel_late_post(struct marcel_late *l)
{
	if (!marcel_is_running())
		return false;
	if (count_first(l))
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
	base_mpsc_take(&late.list);
}
