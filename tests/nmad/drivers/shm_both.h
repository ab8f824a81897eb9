/*
 * The shm driver of two ranks, both in this process.
 */
#ifndef TESTS_SHM_BOTH_H
#define TESTS_SHM_BOTH_H

#include "../../check.h"

#include <string.h>

#include "../../../nmad/drivers/shm/shm.h"

extern const struct nm_driver nm_driver_shm;

static struct nm_rail rails[2];
static struct nm_link links[2][2];
static struct nm_rail_stats stats[2];
static struct nm_boot_info infos[2];

static void open_one(int rank)
{
	static const int node[2];
	struct nm_rail *rail = &rails[rank];

	memset(rail, 0, sizeof(*rail));
	infos[rank].rank = infos[rank].local_rank = rank;
	infos[rank].size = infos[rank].local_size = 2;
	infos[rank].node = node;
	rail->driver = &nm_driver_shm;
	rail->rank = rank;
	rail->links = links[rank];
	rail->nlinks = 2;
	rail->stats = &stats[rank];
	CHECK_INT(nm_driver_shm.open(rail, &infos[rank], NULL), 0);
}

#endif
