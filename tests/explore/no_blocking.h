/*
 * For scenarios in which no ltask waits in the kernel: what the queues call of
 * pioman/io. Where they do: blocking.c, export.c.
 */
#ifndef TESTS_EXPLORE_NO_BLOCKING_H
#define TESTS_EXPLORE_NO_BLOCKING_H

struct piom_watcher piom_watcher = { .fired = { 1 } };

bool piom_blocking_arm(struct piom_task *t, uint64_t vain_ns)
{
	return false;
}

void piom_blocking_begin(struct piom_task *t)
{
}

bool piom_blocking_leave(struct piom_task *t)
{
	return true;
}

static int rung; /* for the watcher */

void piom_blocking_ring(void)
{
	rung = 1;
}

bool piom_export_is_out(const struct piom_task *t)
{
	return false;
}

void piom_patience_learn(struct piom_task *t, uint64_t vain_ns, uint64_t due)
{
}

#endif
