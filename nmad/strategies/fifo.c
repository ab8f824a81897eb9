/*
 * One message, one packet: the reference, and the example of a strategy.
 * Answers (ACK, RTR) go first, because somebody waits for them.
 */
#include "strategy.h"

#include "../core/core.h"

void nm_fifo_pack(struct nm_link *link, struct nm_pkt *pkt)
{
	nm_out_add(link->gate, pkt);
}

const struct nm_strategy nm_strategy_fifo = {
	.name = "fifo",
	.plain = true,
	.pack = nm_fifo_pack,
};
