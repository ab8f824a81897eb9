/*
 * Bursts: several sends to one gate, and no poll between them.
 *
 * Over some networks a packet costs a system call of microseconds, whatever it
 * holds, and a message that joins one costs a tenth. So of a burst over such a
 * network (NM_CAP_DEAR) the first messages leave at once, and those behind them
 * *gather*: the gate leaves core->active for core->gathering, until a poll. Who
 * waits polls, and so do an idle VP, which is woken, and the tick. If sends go
 * on, what has gathered leaves when it fills a packet or is LATE_NS old.
 *
 * A poll may be long in coming where no VP is idle: who sends computes then.
 * Hence the history: messages gather only if the last burst, too, was followed
 * by a poll soon; nobody is late more than once. And hence FREE: the one or two
 * messages that a neighbour gets before all compute are no burst.
 *
 * All under the core's lock but core->bursting, which tells who polls to come
 * in. Who gathers sets it and then kicks the ltask, order(ltask).
 */
#include "core.h"

#include <base/clock.h>

enum {
	FREE = 3, /* messages of a burst that leave at once */
	FILL = 4096,
	LATE_NS = 20000,
	SOON_NS = 50000,
};

static bool is_over(uint64_t since, uint64_t now, int64_t ns)
{
	return (int64_t)(now - since) >= ns;
}

static bool may_go_on(struct nm_gate *gate, size_t length)
{
	gate->gathered += length + NM_WIRE_CHUNK_MAX;
	return gate->gathered <= FILL &&
	       !is_over(gate->gathers_since, base_now_ns(), LATE_NS);
}

/* The burst goes on: the next poll ends it, and is to be soon. */
static void note(struct nm_core *core, uint64_t now)
{
	if (base_list_is_empty(&core->gathering))
		core->burst_ns = now;
	store_relaxed(&core->bursting, 1);
}

static void gather(struct nm_pass *pass, struct nm_gate *gate, size_t length,
		   uint64_t now)
{
	if (base_list_is_empty(&pass->core->gathering))
		pass->kick = true;
	gate->gathers = true;
	gate->gathers_since = now;
	gate->gathered = length + NM_WIRE_CHUNK_MAX;
	base_list_push_back(&pass->core->gathering, &gate->active);
}

bool nm_burst_keeps(struct nm_pass *pass, struct nm_gate *gate, size_t length)
{
	struct nm_core *core = pass->core;
	uint64_t now;

	if (gate->gathers)
		return may_go_on(gate, length);
	if (gate->burst_round != core->burst_round) {
		gate->burst_round = core->burst_round;
		gate->burst = 0;
	}
	if (gate->burst < FREE) {
		gate->burst++;
		return false;
	}
	now = base_now_ns();
	note(core, now);
	if (!core->gather_pays || length > FILL / 2 ||
	    base_link_is_on(&gate->active))
		return false;
	gather(pass, gate, length, now);
	return true;
}

void nm_burst_leave(struct nm_gate *gate)
{
	gate->gathers = false;
	base_list_remove(&gate->active);
}

void nm_burst_end(struct nm_core *core)
{
	struct base_link *n;

	store_relaxed(&core->bursting, 0);
	core->burst_round++;
	core->gather_pays = !is_over(core->burst_ns, base_now_ns(), SOON_NS);
	while ((n = base_list_first(&core->gathering)) != NULL)
		nm_out_activate(container_of(n, struct nm_gate, active));
}
