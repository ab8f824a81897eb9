/*
 * A core of rank 0 with one rail or several, of a driver of the test's own, to
 * itself and to rank 1; nothing runs. NMAD_LOCK is heeded.
 */
#ifndef TESTS_NMAD_CORE_MOCK_H
#define TESTS_NMAD_CORE_MOCK_H

#include <stdlib.h>
#include <string.h>

#include "../../../nmad/core/core.h"
#include "../../../nmad/core/gate.h"
#include "../../../nmad/core/lost.h"
#include "../../check.h"

static struct nm_link links[NM_RAILS_MAX][2];
static struct nm_pkt pkts[NM_RAILS_MAX][2];

static inline void mock_link(struct nm_rail *rail, int rank)
{
	struct nm_link *link = &links[rail->index][rank];
	struct nm_gate *gate = &rail->core->gates[rank];

	link->gate = gate;
	link->rail = rail;
	link->rank = rank;
	link->pkt = &pkts[rail->index][rank];
	link->pkt->link = link;
	link->conn = link; /* no driver is asked to connect */
	base_list_init(&link->xfers);
	gate->links[gate->nlinks++] = link;
	gate->reach |= (uint8_t)(1u << rail->index);
	store_relaxed(&gate->eager_max, 500);
}

static inline enum nm_lock_scheme mock_scheme(void)
{
	const char *name = getenv("NMAD_LOCK");

	if (name != NULL && strcmp(name, "fine") == 0)
		return NM_LOCK_FINE;
	if (name != NULL && strcmp(name, "coarse") == 0)
		return NM_LOCK_COARSE;
	return NM_LOCK_DEFERRED;
}

/* Under `coarse` nobody owns a rail without the core. */
static inline bool mock_rails_go_with_core(void)
{
	return mock_scheme() == NM_LOCK_COARSE;
}

static inline void mock_core_rails(struct nm_core *core,
				   const struct nm_driver *driver,
				   uint64_t window, int nrails)
{
	const struct nm_config config = { .window = window,
					  .lock = mock_scheme() };

	CHECK_INT(nm_core_init(core, 0, 2, &config), 0);
	core->config.strategy = nm_strategies[0];
	memset(links, 0, sizeof(links));
	for (int i = 0; i < nrails; i++) {
		struct nm_rail *rail = &core->rails[i];

		memset(rail, 0, sizeof(*rail));
		rail->driver = driver;
		rail->max_small = rail->largest = driver->max_small;
		rail->fill = driver->fill;
		rail->core = core;
		rail->index = i;
		rail->stats = &core->rail_stats[i];
		rail->fd = -1;
		rail->links = links[i];
		rail->nlinks = 2;
		nm_rail_lock_init(&rail->lock, core->lock.scheme);
		nm_chain_init(&rail->stuck);
		base_mpsc_init(&rail->settled);
		core->polled[core->npolled++] = rail;
		for (int rank = 0; rank < 2; rank++)
			mock_link(rail, rank);
	}
	core->nrails = nrails;
}

static inline void mock_core(struct nm_core *core,
			     const struct nm_driver *driver, uint64_t window)
{
	mock_core_rails(core, driver, window, 1);
}

/* All that was told of is heard, and what was in doubt is given back. */
static inline void mock_exit_rails(struct nm_core *core)
{
	nm_rails_check(core);
	for (int i = 0; i < core->nrails; i++) {
		struct nm_rail *rail = &core->rails[i];

		base_mpsc_for_each (n, base_mpsc_take(&rail->settled)) {
			struct nm_doubt *d =
				container_of(n, struct nm_doubt, event.node);

			nm_mem_put(&rail->mem, d->class, d);
		}
		CHECK_INT(rail->mem.taken, 0);
		nm_mem_exit(&rail->mem);
	}
}

/* The core hears of what a rail has brought. */
static inline void mock_settle(struct nm_core *core, struct nm_news *news)
{
	base_pin();
	nm_core_run(core, news, NULL);
	base_unpin();
}

#endif
