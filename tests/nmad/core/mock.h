/*
 * A core of rank 0 with one rail, of a driver of the test's own, to itself and
 * to rank 1; nothing runs.
 */
#ifndef TESTS_NMAD_CORE_MOCK_H
#define TESTS_NMAD_CORE_MOCK_H

#include <string.h>

#include "../../../nmad/core/core.h"
#include "../../../nmad/core/gate.h"
#include "../../check.h"

static struct nm_link links[2];
static struct nm_pkt pkts[2];

static inline void mock_core(struct nm_core *core,
			     const struct nm_driver *driver, uint64_t window)
{
	const struct nm_config config = { .window = window };
	struct nm_rail *rail;

	CHECK_INT(nm_core_init(core, 0, 2, &config), 0);
	core->config.strategy = nm_strategies[0];
	rail = &core->rails[0];
	memset(rail, 0, sizeof(*rail));
	memset(links, 0, sizeof(links));
	rail->driver = driver;
	rail->core = core;
	rail->fd = -1;
	rail->links = links;
	rail->nlinks = 2;
	nm_chain_init(&rail->stuck);
	core->nrails = 1;
	core->polled[core->npolled++] = rail;
	for (int i = 0; i < 2; i++) {
		links[i].gate = &core->gates[i];
		links[i].rail = rail;
		links[i].rank = i;
		links[i].pkt = &pkts[i];
		base_list_init(&links[i].xfers);
		pkts[i].link = &links[i];
		core->gates[i].links[0] = &links[i];
		core->gates[i].nlinks = 1;
		core->gates[i].eager_max = 500;
	}
}

#endif
