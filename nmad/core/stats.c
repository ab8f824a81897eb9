/*
 * The counters, put together from where they are counted. No lock, no memory: a
 * signal handler may ask.
 */
#include "stats.h"

#include <string.h>

#include <base/diag.h>
#include <nmad/stats.h>

#include "core.h"

enum {
	LOCK_TAKEN,
	LOCK_BUSY,
	RAIL_TAKEN,
	RAIL_BUSY,
	BLOCKS,
	SLABS,
	REFILLS,
	SENDS,
	RECEIVES,
	PACKETS_OUT,
	PACKETS_IN,
	EAGER_OUT,
	EAGER_IN,
	CUT_OUT,
	CUT_IN,
	RDV_OUT,
	RDV_IN,
	EARLY,
	UNEXPECTED,
	LOST,
	RESENT_OUT,
	RESENT_IN,
	REDONE,
	CALLS, /* NM_CALLS of them */
	COUNTERS = CALLS + NM_CALLS,
};

/* In this order they are printed and read. */
static const struct nm_counter counters[COUNTERS] = {
	[LOCK_TAKEN] = { "lock_taken", "times somebody entered the core", 0 },
	[LOCK_BUSY] = { "lock_busy", "tries that found somebody inside", 0 },
	[RAIL_TAKEN] = { "rail_taken", "times somebody owned a rail", 0 },
	[RAIL_BUSY] = { "rail_busy", "tries that found a rail owned", 0 },
	[BLOCKS] = { "blocks", "pieces of the core's memory taken", 0 },
	[SLABS] = { "slabs", "mappings that these are cut from", 0 },
	[REFILLS] = { "refills", "times the match tables got memory", 0 },
	[SENDS] = { "sends", "sends started", 0 },
	[RECEIVES] = { "receives", "receives started", 0 },
	[PACKETS_OUT] = { "packets_out", "packets formed", 0 },
	[PACKETS_IN] = { "packets_in", "packets that came", 0 },
	[EAGER_OUT] = { "eager_out", "messages that left with payload", 0 },
	[EAGER_IN] = { "eager_in", "messages that came with payload", 0 },
	[CUT_OUT] = { "cut_out", "of those, in parts over several rails", 0 },
	[CUT_IN] = { "cut_in", "messages that came in such parts", 0 },
	[RDV_OUT] = { "rdv_out", "messages announced by us", 0 },
	[RDV_IN] = { "rdv_in", "messages announced to us", 0 },
	[EARLY] = { "early", "messages before their turn or session", 0 },
	[UNEXPECTED] = { "unexpected", "messages before their receive", 0 },
	[LOST] = { "lost", "rails lost to peers that live", 0 },
	[RESENT_OUT] = { "resent_out", "packets sent again for that", 0 },
	[RESENT_IN] = { "resent_in", "packets that came only so", 0 },
	[REDONE] = { "redone", "parts of bodies offered again for it", 0 },
	[CALLS + NM_CALL_SEND] = { "sys_sends",
				   "system calls that send to a network", 0 },
	[CALLS + NM_CALL_RECEIVE] = { "sys_receives",
				      "system calls that receive from one", 0 },
	[CALLS + NM_CALL_LOOK] = { "sys_looks",
				   "system calls that ask who sent or died",
				   0 },
	[CALLS + NM_CALL_COPY] = { "sys_copies",
				   "system calls that copy between processes",
				   0 },
	[CALLS + NM_CALL_BELL] = { "sys_bells",
				   "system calls that wake a process", 0 },
};

/* --- putting together --- */

static void add_core(struct nm_core *core, uint64_t *sum)
{
	struct nm_stats *s = &core->stats;

	sum[LOCK_TAKEN] = load_relaxed(&s->lock_taken);
	sum[LOCK_BUSY] = load_relaxed(&s->lock_busy);
	sum[BLOCKS] = load_relaxed(&core->mem.nblocks);
	sum[SLABS] = load_relaxed(&core->mem.nslabs);
	sum[REFILLS] = load_relaxed(&s->refills);
	sum[SENDS] = load_relaxed(&s->sends);
	sum[RECEIVES] = load_relaxed(&s->receives);
	sum[EAGER_OUT] = load_relaxed(&s->eager_out);
	sum[EAGER_IN] = load_relaxed(&s->eager_in);
	sum[CUT_OUT] = load_relaxed(&s->cut_out);
	sum[CUT_IN] = load_relaxed(&s->cut_in);
	sum[RDV_OUT] = load_relaxed(&s->rdv_out);
	sum[RDV_IN] = load_relaxed(&s->rdv_in);
	sum[EARLY] = load_relaxed(&s->early);
	sum[UNEXPECTED] = load_relaxed(&s->unexpected);
	sum[LOST] = load_relaxed(&s->lost);
	sum[RESENT_OUT] = load_relaxed(&s->resent_out);
	sum[RESENT_IN] = load_relaxed(&s->resent_in);
	sum[REDONE] = load_relaxed(&s->redone);
}

static void add_rail(struct nm_rail_stats *s, uint64_t *sum)
{
	sum[RAIL_TAKEN] += load_relaxed(&s->taken);
	sum[RAIL_BUSY] += load_relaxed(&s->busy);
	for (int i = 0; i < NM_CALLS; i++)
		sum[CALLS + i] += load_relaxed(&s->calls[i]);
}

static void add_up(struct nm_core *core, uint64_t *sum)
{
	memset(sum, 0, COUNTERS * sizeof(*sum));
	if (core == NULL)
		return;
	add_core(core, sum);
	for (int i = 0; i < NM_RAILS_MAX; i++)
		add_rail(&core->rail_stats[i], sum);
	for (int rank = 0; rank < core->size; rank++) {
		sum[PACKETS_OUT] += load_relaxed(&core->gates[rank].nsent);
		sum[PACKETS_IN] += load_relaxed(&core->gates[rank].nreceived);
	}
}

/* --- showing --- */

BASE_PUBLIC size_t nm_stats_read(struct nm_counter *out, size_t n)
{
	uint64_t sum[COUNTERS];

	if (n > 0)
		add_up(nm_core_self, sum);
	for (size_t i = 0; i < n && i < COUNTERS; i++) {
		out[i] = counters[i];
		out[i].value = sum[i];
	}
	return COUNTERS;
}

void nm_stats_print(struct nm_core *core)
{
	uint64_t sum[COUNTERS];

	add_up(core, sum);
	for (int i = 0; i < COUNTERS; i++)
		base_warn("nmad", "%s %lu", counters[i].name, sum[i]);
	for (int i = 0; i < core->nrails; i++) {
		const struct nm_rail *rail = &core->rails[i];

		if (rail->driver == NULL)
			continue;
		for (int call = 0; call < NM_CALLS; call++)
			base_warn("nmad", "rail %d %s %s %lu", i,
				  rail->driver->name,
				  counters[CALLS + call].name,
				  load_relaxed(&rail->stats->calls[call]));
	}
}

void nm_stats_dump(struct nm_core *core)
{
	uint64_t sum[COUNTERS];

	add_up(core, sum);
	for (int i = 0; i < COUNTERS; i++)
		if (sum[i] != 0)
			base_dump("   %s %lu", counters[i].name, sum[i]);
}
