/*
 * The rings, for those who fill them and those who empty them.
 */
#ifndef MARCEL_TRACE_RECORD_H
#define MARCEL_TRACE_RECORD_H

#include <base/spin.h>
#include "ring.h"

struct marcel_trace_rings {
	/* -: const while events are recorded    l: lock */
	struct marcel_trace_ring *all; /* -: one per VP, and the last */
	int nvp;                       /* -: */
	bool ticks;                    /* -: the clock is the processor's */
	uint32_t life;                 /* -: which file of the process */
	struct base_spin lock;         /* of the last ring */
	uint32_t nlanes;               /* l: kernel threads that used it */
};

extern BASE_HIDDEN struct marcel_trace_rings marcel_trace_rings;

/* writer.c: a ring wants its next chunk. */
void marcel_trace_writer_wake(void);

#endif
