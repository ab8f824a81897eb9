/*
 * What the VPs count.
 */
#ifndef TESTS_MARCEL_PREEMPTIONS_H
#define TESTS_MARCEL_PREEMPTIONS_H

#include <stdint.h>

#include "../../marcel/sched/vp.h"

/* How often threads were interrupted for others, on all VPs. */
static inline uint32_t preemptions(void)
{
	uint32_t n = 0;

	for (int i = 0; i < marcel_sched.nvp; i++)
		n += load_relaxed(&marcel_sched.vps[i].preempted);
	return n;
}

#endif
