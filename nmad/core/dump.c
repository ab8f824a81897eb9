/*
 * What a person wants to know of a process that does not move: gates, rails,
 * tables. Called from a signal handler, so the lock is not waited for: counts
 * are shown as they are, lists only if nobody is inside the core.
 */
#include "core.h"
#include "part.h"

enum { REQUESTS_MAX = 16, SESSIONS_MAX = 16 };

static void dump_req(const struct nm_req *req, const char *state)
{
	base_dump("     send %p to rank %d, tag %u, %lu bytes, priority %d: %s",
		  (const void *)req, req->gate->rank, req->tag,
		  (unsigned long)req->data.length, req->send.priority, state);
}

static void dump_sends(const struct base_list *list, const char *state)
{
	int n = 0;

	base_list_for_each (link, list) {
		if (n++ == REQUESTS_MAX)
			break;
		dump_req(container_of(link, struct nm_req, send.on), state);
	}
}

/* Parts of bodies: ours that are announced, and theirs. */
static void dump_bodies(const struct nm_gate *gate)
{
	unsigned offered = 0, running = 0, held = 0, stranded = 0;

	base_list_for_each (link, &gate->offers)
		offered++;
	for (int i = 0; gate->grants != NULL && i < NM_RAILS_MAX; i++) {
		running += gate->grants[i].running;
		held += gate->grants[i].nheld;
	}
	base_list_for_each (link, &gate->wanted)
		stranded += container_of(link, struct nm_part, on)->stranded;
	if (stranded > 0)
		base_dump("     parts of bodies that wait for another rail: %u",
			  stranded);
	if (offered + running + held > 0)
		base_dump("     parts of bodies: %u offered; by priority %u "
			  "granted, %u held",
			  offered, running, held);
}

/* Rails that it has no more. */
static void dump_lost(const struct nm_gate *gate)
{
	for (unsigned i = 0; i < NM_RAILS_MAX; i++)
		if (gate->lost & 1u << i)
			base_dump("     lost rail %u (%s)", i,
				  gate->core->rails[i].driver->name);
}

/* Medium messages that are not whole. */
static void dump_medium(const struct nm_gate *gate)
{
	unsigned n = 0;

	base_list_for_each (link, &gate->medium)
		n++;
	if (n > 0)
		base_dump("     messages of which parts are missing: %u", n);
}

static void dump_gate(const struct nm_gate *gate, bool inside)
{
	base_dump("   gate %d: %d link(s), packets %lu out %lu in, eager %lu "
		  "unmatched there%s",
		  gate->rank, gate->nlinks, load_relaxed(&gate->nsent),
		  load_relaxed(&gate->nreceived),
		  (unsigned long)gate->credit_used,
		  gate->error != 0 ? ", DEAD" : "");
	if (!inside)
		return;
	dump_lost(gate);
	dump_sends(&gate->out, gate->gathers ? "waits for others of its burst"
					     : "waits for a free link");
	dump_sends(&gate->waiting, "waits to be matched");
	dump_bodies(gate);
	dump_medium(gate);
}

static void dump_rail(const struct nm_rail *rail)
{
	if (rail->driver == NULL)
		return;
	base_dump("   rail %d: %s, %d link(s), %u not over, bodies of %lu "
		  "bytes out%s",
		  rail->index, rail->driver->name, rail->nused,
		  load_relaxed(&rail->backlog), (unsigned long)rail->nbytes,
		  load_relaxed(&rail->lock.owned) == NM_LOCK_HELD ? ", at work"
								  : "");
	if (rail->driver->dump != NULL)
		rail->driver->dump(rail);
}

static void dump_sessions(const struct nm_core *core)
{
	int n = 0;

	base_list_for_each (link, &core->sessions) {
		const struct nm_session *s =
			container_of(link, struct nm_session, on);

		if (n++ == SESSIONS_MAX)
			break;
		base_dump("   session %lu %s", (unsigned long)s->id, s->name);
		nm_match_session_dump(&s->match);
	}
}

void nm_core_dump(void *arg)
{
	struct nm_core *core = arg;
	bool inside;

	base_pin();
	inside = nm_core_try(&core->lock);
	base_dump("   rank %d of %d, %u request(s), answer(s) and monitor(s) "
		  "not over%s",
		  core->rank, core->size, load_relaxed(&core->pending),
		  inside ? "" : "; somebody is in the core");
	if (nm_calls_are_due(core) || load_relaxed(&core->calls.held) != 0)
		base_dump("   functions are due to be called%s",
			  load_relaxed(&core->calls.held) != 0
				  ? "; somebody calls one"
				  : "");
	for (int i = 0; i < core->nrails; i++)
		dump_rail(&core->rails[i]);
	for (int rank = 0; rank < core->size; rank++)
		if (load_relaxed(&core->gates[rank].nsent) +
			    load_relaxed(&core->gates[rank].nreceived) >
		    0)
			dump_gate(&core->gates[rank], inside);
	nm_stats_dump(core);
	nm_match_dump(&core->match);
	if (inside) {
		dump_sessions(core);
		/* The handler may not do what is left; the next to come will.*/
		nm_core_end(&core->lock);
	}
	base_unpin();
}
