/*
 * What nmad knows of a process that does not move: how many packets came and
 * went, which requests threads wait for, and what came that nobody wants.
 *
 * Packets are counted when they are formed, and when what is in them has been
 * dealt with. So if all processes of a job are still, and as many packets were
 * dealt with as were formed, none is on its way. What moves without packets are
 * the bodies of large messages: their sender has them in a driver's hands
 * (`backlog`) until they are over. A receive that was announced is there, too,
 * though nothing moves for it unless its sender has the other half.
 */
#include "hang.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>

#include <base/pin.h>
#include <pioman/ltask.h>

#include "../boot/boot.h"
#include "core.h"
#include "part.h"
#include "watch.h"

enum {
	TRIES = 1000, /* whoever is in the core is so for a moment */
	TOLD_MAX = 16,
};

/* --- in the core --- */

/* As nm_core_lock(), but without doing anything that is left there. */
static bool enter(struct nm_core *core)
{
	base_pin();
	for (int i = 0; i < TRIES; i++) {
		if (nm_core_try(&core->lock))
			return true;
		sched_yield();
	}
	base_unpin();
	return false;
}

static void leave(struct nm_core *core)
{
	bool again = nm_core_end(&core->lock);

	base_unpin();
	if (again)
		piom_ltask_kick(&core->ltask);
}

/* --- what may move --- */

static void count_announced(struct nm_match_recv *r, void *arg)
{
	*(uint32_t *)arg +=
		container_of(r, struct nm_req, recv)->announced != NULL;
}

/* Core lock held. */
static void look_inside(struct nm_core *core, struct base_hang *h)
{
	uint32_t announced = 0, backlog = 0;

	for (int i = 0; i < core->size; i++)
		if (nm_gate_has_output(&core->gates[i]))
			h->busy = true;
	for (int i = 0; i < core->nrails; i++) {
		struct nm_rail *rail = &core->rails[i];

		if (rail->driver == NULL)
			continue;
		backlog += load_relaxed(&rail->backlog);
		if (!base_mpsc_is_empty(&rail->lock.posts))
			h->busy = true;
	}
	nm_match_walk(&core->match, count_announced, NULL, &announced);
	if (backlog > announced)
		h->by |= BASE_HANG_TRANSFER;
	if (core->asker != NULL)
		h->busy = true; /* the launcher is to say an address, or that
				 * all have come: nobody is asked about that */
}

/* Returns false if a thread is in the core, or is about to be. */
static bool look_at_core(struct nm_core *core, struct base_hang *h)
{
	if (!nm_core_is_heeded(&core->lock) || nm_calls_are_due(core) ||
	    load_relaxed(&core->calls.held) != 0 || !enter(core))
		return false;
	look_inside(core, h);
	for (int i = 0; i < core->size; i++) {
		const struct nm_gate *gate = &core->gates[i];
		uint64_t out = load_relaxed(&gate->nsent);
		uint64_t in = load_relaxed(&gate->nreceived);

		h->moved += out + in;
		if (i == core->rank)
			h->busy |= out != in;
		if (i == core->rank || gate->error != 0)
			continue;
		h->sent += out;
		h->received += in;
	}
	leave(core);
	return true;
}

static void look(void *arg, struct base_hang *h)
{
	struct nm_core *core = arg;

	h->ltasks--; /* that is the polling for all this */
	if (core->boot != NULL)
		h->foreign -= nm_boot_info(core->boot)->nthreads;
	h->events--; /* for which the refiller waits: that is work, too */
	if (core->size > 1)
		h->by |= BASE_HANG_PEER;
	if (load_relaxed(&core->pending) != 0 ||
	    load_relaxed(&nm_watcher.kinds) != 0)
		h->wanted = true;
	if (!look_at_core(core, h))
		h->busy = true;
}

BASE_PUBLIC int nm_motion(uint64_t *sent, uint64_t *received)
{
	struct nm_core *core = nm_core_self;
	struct base_hang h = { .busy = false };

	*sent = *received = 0;
	if (core == NULL)
		return 0;
	if (!look_at_core(core, &h))
		return 1;
	*sent = h.sent;
	*received = h.received;
	return h.busy || (h.by & BASE_HANG_TRANSFER) != 0;
}

/* --- requests in words --- */

static void add_tag(const struct nm_session *s, uint32_t tag, bool any,
		    char *out, size_t room)
{
	if (s->describe != NULL)
		s->describe(s->describe_arg, tag, any, out, room);
	else if (any)
		snprintf(out, room, "any tag, session %lx %s",
			 (unsigned long)s->id, s->name);
	else
		snprintf(out, room, "tag %u, session %lx %s", tag,
			 (unsigned long)s->id, s->name);
}

static void describe_recv(const struct nm_req *req, char *out, size_t room)
{
	const struct nm_match_recv *r = &req->recv;
	char tag[160], from[32] = "any rank";

	add_tag(req->session, r->tag, r->any_tag, tag, sizeof(tag));
	if (r->gate != NULL)
		snprintf(from, sizeof(from), "rank %d", r->gate->rank);
	if (r->is_probe)
		snprintf(out, room, "a probe for a message from %s, %s", from,
			 tag);
	else
		snprintf(out, room, "a receive from %s, %s, %zu bytes", from,
			 tag, req->data.length);
}

static void describe_send(const struct nm_req *req, char *out, size_t room)
{
	char tag[160];

	add_tag(req->session, req->tag, false, tag, sizeof(tag));
	snprintf(out, room, "a %ssend to rank %d, %s, %zu bytes",
		 req->flags & NM_REQ_SYNC ? "synchronous " : "",
		 req->gate->rank, tag, req->data.length);
}

/* --- what a thread waits for --- */

struct search {
	const void *event;
	const struct nm_req *found; /* a receive or a probe */
};

static void compare(struct nm_match_recv *r, void *arg)
{
	const struct nm_req *req = container_of(r, struct nm_req, recv);
	struct search *s = arg;

	if (s->event == &req->done)
		s->found = req;
}

static const struct nm_req *find_send(const struct base_list *list,
				      const void *event)
{
	base_list_for_each (link, list) {
		const struct nm_req *req =
			container_of(link, struct nm_req, send.on);

		if (event == &req->done)
			return req;
	}
	return NULL;
}

/* Those of which the peer knows, and has nobody who wants them. */
static const struct nm_req *find_offer(const struct base_list *list,
				       const void *event)
{
	base_list_for_each (link, list) {
		const struct nm_req *req =
			container_of(link, struct nm_part, on)->trans->req;

		if (event == &req->done)
			return req;
	}
	return NULL;
}

/* Core lock held. */
static bool find(struct nm_core *core, const void *event, char *out,
		 size_t room, int *rank)
{
	struct search s = { .event = event };
	const struct nm_req *req = NULL;

	nm_match_walk(&core->match, compare, NULL, &s);
	if (s.found != NULL) {
		describe_recv(s.found, out, room);
		*rank = s.found->recv.gate != NULL ? s.found->recv.gate->rank
						   : -1;
		return true;
	}
	for (int i = 0; i < core->size && req == NULL; i++) {
		req = find_send(&core->gates[i].waiting, event);
		if (req == NULL)
			req = find_send(&core->gates[i].out, event);
		if (req == NULL)
			req = find_offer(&core->gates[i].offers, event);
	}
	if (req == NULL)
		return false;
	describe_send(req, out, room);
	*rank = req->gate->rank;
	return true;
}

static bool name(void *arg, const void *event, char *out, size_t room,
		 int *rank)
{
	struct nm_core *core = arg;
	bool found;

	if (event == &core->refill) {
		snprintf(out, room, "work (nmad's own)");
		*rank = -1;
		return true;
	}
	if (!enter(core))
		return false;
	found = find(core, event, out, room, rank);
	leave(core);
	return found;
}

/* --- what nobody wants --- */

/* Lines are written without the lock. */
struct told {
	char line[TOLD_MAX][320];
	unsigned n;
};

static void note_message(struct nm_match_msg *m, void *arg)
{
	const struct nm_msg *msg = container_of(m, struct nm_msg, match);
	const struct nm_session *s =
		container_of(m->session, struct nm_session, match);
	struct told *told = arg;
	char tag[160];

	if (told->n++ >= TOLD_MAX)
		return;
	add_tag(s, m->tag, false, tag, sizeof(tag));
	snprintf(told->line[told->n - 1], sizeof(told->line[0]),
		 "unexpected: a message from rank %d, %s, %zu bytes, that "
		 "nobody receives",
		 m->gate->rank, tag, (size_t)msg->length);
}

static void note_send(const struct nm_req *req, struct told *told)
{
	char what[256];

	if (told->n++ >= TOLD_MAX)
		return;
	describe_send(req, what, sizeof(what));
	snprintf(told->line[told->n - 1], sizeof(told->line[0]),
		 "not matched: %s", what);
}

/* A message in parts stands there once for each. */
static void note_sends(const struct nm_gate *gate, struct told *told)
{
	base_list_for_each (link, &gate->waiting)
		note_send(container_of(link, struct nm_req, send.on), told);
	base_list_for_each (link, &gate->offers)
		note_send(container_of(link, struct nm_part, on)->trans->req,
			  told);
}

/* Where nobody gathers the reports, a person may add these up. */
static void tell_rank(const struct nm_core *core, struct base_teller *t)
{
	uint64_t out = 0, in = 0;

	for (int i = 0; i < core->size; i++) {
		if (i == core->rank)
			continue;
		out += load_relaxed(&core->gates[i].nsent);
		in += load_relaxed(&core->gates[i].nreceived);
	}
	base_tell(t,
		  "this is rank %d of %d, which has sent %" PRIu64
		  " packets to others and received %" PRIu64,
		  core->rank, core->size, out, in);
}

static void tell(void *arg, struct base_teller *t)
{
	struct nm_core *core = arg;
	struct told told = { .n = 0 };

	if (core->size > 1)
		tell_rank(core, t);
	if (!enter(core)) {
		base_tell(t, "somebody is inside nmad");
		return;
	}
	nm_match_walk(&core->match, NULL, note_message, &told);
	for (int i = 0; i < core->size; i++)
		note_sends(&core->gates[i], &told);
	leave(core);
	for (unsigned i = 0; i < told.n && i < TOLD_MAX; i++)
		base_tell(t, "%s", told.line[i]);
	if (told.n > TOLD_MAX)
		base_tell(t, "and %u more messages", told.n - TOLD_MAX);
}

const struct base_hang_layer nm_hang = { look, name, tell };
