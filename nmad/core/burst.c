/*
 * Bursts: several sends to one gate, and no poll between them.
 *
 * Over some networks a packet costs a system call of microseconds, whatever it
 * holds, and a message that joins one costs a tenth. So of a burst over such a
 * network (NM_CAP_DEAR) the first FREE messages leave at once, and those behind
 * them *gather*: the gate leaves core->active for core->gathering, until a poll
 * ends the burst. Who waits polls, and so do an idle VP, which is woken, and
 * the tick. If bursts go on, to whatever gate, what has gathered leaves when it
 * fills a packet or is LATE_NS old. Who sends and waits at once says so
 * (NM_SEND_NOW): that is no part of a burst. Nor does a send wait that comes
 * LATE_NS or more after the one before: the next may be as long in coming.
 *
 * A poll may be long in coming where no VP is idle: who sends computes then.
 * Hence the history. A poll that ends a burst late costs the next bursts their
 * gathering, twice as many each time; polls that are soon win that back. What
 * counts are bursts that have more than FREE messages: the one or two that a
 * neighbour gets before all compute neither gather nor teach. No longer than
 * the burst itself has taken is not late; so one that goes on for as long as
 * the last poll was late gathers in any case.
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
	PENALTY_MAX = 64,
};

static bool is_over(uint64_t since, uint64_t now, int64_t ns)
{
	return (int64_t)(now - since) >= ns;
}

/* A burst of so many that it could gather: the poll that ends it teaches. */
static void note(struct nm_core *core, uint64_t now)
{
	if (base_list_is_empty(&core->gathering))
		core->burst_ns = now;
	if (!core->burst_teaches)
		core->burst_began = now;
	core->burst_teaches = true;
}

static void release(struct nm_core *core)
{
	struct base_link *n;

	while ((n = base_list_first(&core->gathering)) != NULL)
		nm_out_activate(container_of(n, struct nm_gate, active));
}

static size_t room_of(size_t length)
{
	return NM_WIRE_EAGER_SYNC + length;
}

static void gather(struct nm_pass *pass, struct nm_gate *gate, size_t length)
{
	if (base_list_is_empty(&pass->core->gathering))
		pass->kick = true;
	gate->gathers = true;
	gate->gathered = room_of(length);
	base_list_push_back(&pass->core->gathering, &gate->active);
}

/* The next of this round; true: behind the first FREE. */
static bool is_of_a_burst(struct nm_core *core, struct nm_gate *gate)
{
	if (load_relaxed(&core->bursting) == 0)
		store_relaxed(&core->bursting, 1);
	if (gate->burst_round != core->burst_round) {
		gate->burst_round = core->burst_round;
		gate->burst = 0;
	}
	if (gate->burst == FREE)
		return true;
	if (++gate->burst == FREE)
		core->burst_last = base_now_ns();
	return false;
}

/* So the next may be far away, too. */
static bool is_sparse(struct nm_core *core, uint64_t now)
{
	bool is = is_over(core->burst_last, now, LATE_NS);

	core->burst_last = now;
	return is;
}

/* Polls have been late, and this burst has not yet lasted as long. */
static bool is_risky(const struct nm_core *core, uint64_t now)
{
	return core->distrust > 0 &&
	       !is_over(core->burst_began, now, core->late_ns);
}

bool nm_burst_keeps(struct nm_pass *pass, struct nm_gate *gate, size_t length)
{
	struct nm_core *core = pass->core;
	uint64_t now;
	bool sparse;

	if (!is_of_a_burst(core, gate))
		return false;
	now = base_now_ns();
	sparse = is_sparse(core, now);
	if (!base_list_is_empty(&core->gathering) &&
	    (sparse || is_over(core->burst_ns, now, LATE_NS)))
		release(core); /* this one with its gate's, or begins anew */
	if (gate->gathers) {
		gate->gathered += room_of(length);
		return gate->gathered <= FILL;
	}
	note(core, now);
	if (sparse || is_risky(core, now) || length > FILL / 2 ||
	    base_link_is_on(&gate->active))
		return false;
	gather(pass, gate, length);
	return true;
}

void nm_burst_leave(struct nm_gate *gate)
{
	gate->gathers = false;
	base_list_remove(&gate->active);
}

static void learn(struct nm_core *core)
{
	int64_t lasted = (int64_t)(core->burst_ns - core->burst_began);
	int64_t late = (int64_t)(base_now_ns() - core->burst_ns);

	if (late >= SOON_NS && late > lasted) {
		core->late_ns = late;
		core->penalty = core->penalty == 0 ? 1 : 2 * core->penalty;
		if (core->penalty > PENALTY_MAX)
			core->penalty = PENALTY_MAX;
		core->distrust = core->penalty;
	} else if (core->distrust > 0) {
		core->distrust--;
	} else if (core->penalty > 0) {
		core->penalty--;
	}
}

void nm_burst_end(struct nm_core *core)
{
	store_relaxed(&core->bursting, 0);
	core->burst_round++;
	if (core->burst_teaches)
		learn(core);
	core->burst_teaches = false;
	release(core);
}
