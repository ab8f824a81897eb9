/*
 * What pays: over a network where a packet costs a system call, all that waits
 * in one packet; elsewhere, as in shared memory, a packet for each message,
 * which is copied once and has its slot to itself. Large bodies go over all
 * rails of a gate whose speed is known.
 */
#include "strategy.h"

#include "../core/core.h"
#include "split.h"

static void default_pack(struct nm_link *link, struct nm_pkt *pkt)
{
	bool dear = link->rail->driver->caps & NM_CAP_DEAR;

	if (dear)
		nm_aggreg_pack(link, pkt);
	else
		nm_fifo_pack(link, pkt);
}

const struct nm_strategy nm_strategy_default = {
	.name = "default",
	.plain = true,
	.gathers = true,
	.pack = default_pack,
	.cut = nm_split_body,
	.cut_eager = nm_split_eager,
};
