/*
 * The contract of a strategy: it sees what waits for a gate and forms the next
 * packet for a link that has become free. Called with the core lock held; must
 * not block or allocate.
 *
 * A strategy may reorder payload, never matching: envelopes leave in the order
 * of gate->out. It may look as far ahead as it likes.
 */
#ifndef NMAD_STRATEGIES_STRATEGY_H
#define NMAD_STRATEGIES_STRATEGY_H

#include <stdbool.h>
#include <stddef.h>

struct nm_gate;
struct nm_link;
struct nm_pkt;

struct nm_strategy {
	const char *name;
	bool gathers; /* packets of several messages: waiting may pay */

	/*
	 * Take chunks from link->gate->out into pkt (nm_out_add()), which is
	 * empty, as far as it takes them. The number of chunks taken; 0:
	 * nothing for this link now.
	 */
	int (*pack)(struct nm_link *link, struct nm_pkt *pkt);

	/*
	 * How many bytes of a large body go over each of the gate's links, of
	 * which there are several: fills bytes[0 .. gate->nlinks - 1], which
	 * add up to `length`. The number of those that are not 0. NULL: all
	 * over the first.
	 */
	int (*cut)(struct nm_gate *gate, size_t length, size_t bytes[]);
};

/* The visible list; the first is the default; ends with NULL. */
extern const struct nm_strategy *const nm_strategies[];

#endif
