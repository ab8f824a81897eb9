/*
 * A rail: one driver instance, owned by one caller at a time.
 */
#ifndef NMAD_CORE_RAIL_H
#define NMAD_CORE_RAIL_H

#include <base/atomic.h>
#include <base/mpsc.h>

#include "../drivers/driver.h"

struct nm_core;

struct nm_rail {
	/* -: const once open  o: the rail's owner  a: atomic, see name */
	const struct nm_driver *driver;  /* -: */
	struct nm_core *core;            /* -: */
	int index;                       /* -: among the rails */
	unsigned char addr[NM_ADDR_MAX]; /* -: for the peers */
	size_t addr_len;                 /* -: */
	struct nm_link *links;           /* -: by rank, nlinks of them */
	int nlinks;                      /* -: */
	void *drv;                       /* driver's */

	ATOMIC(uint32_t) owned; /* a: order(rail) */
	struct base_mpsc posts; /* a: packets and transfers to hand to
				 *    the driver; order(mpsc) */
};

#endif
