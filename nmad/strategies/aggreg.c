/*
 * Aggregation: a packet takes all that waits for its gate, of any session, tag
 * and thread, answers first, as far as it fits. Nothing waits for company: a
 * link that is free takes the first message at once, and what comes while it
 * is busy gathers.
 */
#include "strategy.h"

#include "../core/core.h"

void nm_aggreg_pack(struct nm_link *link, struct nm_pkt *pkt)
{
	while (nm_out_add(link->gate, pkt))
		;
}

const struct nm_strategy nm_strategy_aggreg = {
	.name = "aggreg",
	.plain = true,
	.gathers = true,
	.pack = nm_aggreg_pack,
};
