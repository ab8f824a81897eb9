/*
 * Rounds of a VP that has polled in vain for as long as is said: what arms an
 * ltask, on a machine of paper.
 */
#ifndef TESTS_PIOMAN_IO_ROUNDS_H
#define TESTS_PIOMAN_IO_ROUNDS_H

#include "../probe.h"

static inline void with_option(const char *name, const char *value)
{
	CHECK_INT(piom_exit(), 0);
	setenv(name, value, 1);
	CHECK_INT(piom_init(), 0);
	unsetenv(name);
}

/* A round of VP 0 that has polled in vain so long; must it go on? */
static inline bool pending_after(uint64_t vain_ns)
{
	bool found;

	fake_be_vp(0);
	/* All queues: the parents' turn comes in one of two. */
	piom_poll_round(0, vain_ns, PIOM_POINT_IDLE, &found);
	piom_poll_round(0, vain_ns, PIOM_POINT_IDLE, &found);
	piom_poll_round(0, vain_ns, PIOM_POINT_IDLE, &found);
	piom_poll_round(0, vain_ns, PIOM_POINT_IDLE, &found);
	return piom_queue_is_pending(piom_tree_machine());
}

#endif
