/*
 * Measuring the rails, in all processes of a job at once.
 */
#ifndef NMAD_CORE_MEASURE_H
#define NMAD_CORE_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#include "gate.h"

struct nm_boot;

struct nm_measure {
	uint64_t ns; /* about how long a rail may take; a first look at all
		      * sizes four times as long */
	size_t max;  /* bytes of the largest body, at least 64 KiB */
	int rounds;  /* over all sizes, if there is time */
	/* Filled: with whom rank 0 has measured the i-th rail of NMAD_DRIVER,
	 * or -1. */
	int peer[NM_GATE_LINKS];
};

/*
 * Give each rail of NMAD_DRIVER its curves, the same in all processes, and the
 * gates their thresholds. Every process calls it with the same numbers, once in
 * the job's life, while it sends nothing else and no rail has a curve. Blocks
 * until all have come; a rail whose peer dies remains unknown. 0 or -errno,
 * explained.
 */
int nm_measure(struct nm_core *core, struct nm_boot *boot,
	       struct nm_measure *m);

/* The same for the job that this process has joined by nm_init(). */
int nm_measure_job(struct nm_measure *m);

#endif
