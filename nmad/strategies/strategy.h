/*
 * The contract of a strategy: it sees what waits for a gate and forms the next
 * packet for a link that has become free. Called with the core lock held; must
 * not block or allocate.
 *
 * A strategy may reorder payload, never matching: the envelopes of a session
 * leave in the order of gate->out. It may look as far ahead as it likes.
 */
#ifndef NMAD_STRATEGIES_STRATEGY_H
#define NMAD_STRATEGIES_STRATEGY_H

#include <stdbool.h>
#include <stddef.h>

struct nm_gate;
struct nm_link;
struct nm_pkt;
struct nm_req;

/* What goes over one link. */
struct nm_share {
	int link; /* of gate->links */
	size_t bytes;
};

struct nm_strategy {
	const char *name;
	bool gathers; /* packets of several messages: waiting may pay */
	bool plain; /* an eager message that waits alone for a gate of one link
		     * is a packet of its own, and nothing is to be known of
		     * it: pack() is not asked */

	/*
	 * Priorities count for bodies, too: of those from one peer over one
	 * rail that many parts run at once (core/grant.h), and what goes over
	 * one link is cut, so that others get in between. 0: they do not.
	 */
	unsigned bodies;

	/*
	 * A send waits: it has been appended to gate->out. It waits no more and
	 * is about to be taken off, in a packet or because the peer is gone;
	 * then those of its session before it have been. Memory is to be had
	 * from nm_mem_get(). NULL: gate->out is enough to know.
	 */
	void (*queued)(struct nm_gate *gate, struct nm_req *req);
	void (*unqueued)(struct nm_gate *gate, struct nm_req *req);

	/*
	 * Take chunks from link->gate->out into pkt (nm_out_add() and
	 * nm_out_add_send()), which is empty, as far as it takes them. None:
	 * nothing for this link now.
	 */
	void (*pack)(struct nm_link *link, struct nm_pkt *pkt);

	/*
	 * The parts of a large body, in the order of its bytes: fills `out`,
	 * which has room for one a link, with parts that are not empty, each
	 * over another link, and add up to `length`. Their number; 0: it is
	 * not cut, and goes over the first link. NULL: nothing ever is.
	 */
	int (*cut)(struct nm_gate *gate, size_t length, struct nm_share *out);

	/*
	 * The same for a message that then needs no rendezvous: each part goes
	 * as a packet, and all at once, so each over a link that is free. Asked
	 * where eager messages are known (gate->cut_min). NULL: never.
	 */
	int (*cut_eager)(struct nm_gate *gate, size_t length,
			 struct nm_share *out);
};

/* The slot pack() of several strategies: one message, and all that fits. */
void nm_fifo_pack(struct nm_link *link, struct nm_pkt *pkt);
void nm_aggreg_pack(struct nm_link *link, struct nm_pkt *pkt);

/* The visible list; the first is the default; ends with NULL. */
extern const struct nm_strategy *const nm_strategies[];

#endif
