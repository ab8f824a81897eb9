/*
 * What rails report: packets are taken apart, envelopes are matched in the
 * order of their numbers, answers find their sends.
 */
#include "core.h"
#include "part.h"
#include "trace.h"
#include "watch.h"

#include <errno.h>
#include <string.h>

/* --- records of messages --- */

void nm_msg_free(struct nm_core *core, struct nm_msg *msg)
{
	nm_mem_put(&core->mem, msg->class, msg);
}

static struct nm_msg *msg_new(struct nm_gate *gate,
			      const struct nm_wire_chunk *c)
{
	bool rts = c->kind == NM_WIRE_KIND_RTS;
	size_t stored = rts ? c->tail_len : c->length;
	unsigned class = nm_mem_class(sizeof(struct nm_msg) + stored);
	struct nm_msg *msg = nm_mem_get(&gate->core->mem, class);

	msg->length = c->length;
	msg->id = c->id;
	msg->seq = c->seq;
	msg->stored = (uint32_t)stored;
	msg->kind = c->kind;
	msg->nparts = c->nparts;
	msg->priority = c->priority;
	msg->class = (uint8_t) class;
	if (c->kind == NM_WIRE_KIND_PART)
		nm_medium_kept(gate, msg);
	else if (stored > 0)
		memcpy(msg->data, rts ? c->tail : c->payload, stored);
	return msg;
}

/* The envelope of an RTS as it came. */
static void msg_rts(const struct nm_msg *msg, uint32_t tag,
		    struct nm_wire_chunk *c)
{
	memset(c, 0, sizeof(*c));
	c->kind = NM_WIRE_KIND_RTS;
	c->nparts = msg->nparts;
	c->flags = msg->id != 0 ? NM_WIRE_ANNOUNCED : 0;
	c->id = msg->id;
	c->priority = msg->priority;
	c->tag = tag;
	c->length = msg->length;
	c->tail_len = msg->stored;
	c->tail = msg->data;
}

/* --- a message meets its receive --- */

void nm_in_credit(struct nm_gate *gate, uint64_t length)
{
	if (length <= NM_FREE_PAYLOAD || gate->error != 0)
		return;
	gate->credit_back += length;
	if (gate->credit_back >= gate->core->config.window / 4)
		nm_out_activate(gate);
}

/* Payload that is here: it is copied after the lock is released. */
static void deliver_eager(struct nm_pass *pass, struct nm_req *req,
			  struct nm_gate *gate, uint32_t tag, uint64_t length,
			  uint64_t sync_id, const void *payload)
{
	if (unlikely(req->announced != NULL))
		nm_rdv_in_vain(pass, req, gate);
	req->gate = gate;
	req->tag = tag;
	req->sent = length;
	req->length = length < req->data.length ? length : req->data.length;
	req->copy_from = payload;
	if (sync_id != 0 && gate->error == 0)
		nm_out_ack(gate, sync_id);
	nm_in_credit(gate, length);
	nm_req_finish(pass, req, req->length < length ? -EMSGSIZE : 0);
}

void nm_in_deliver_kept(struct nm_pass *pass, struct nm_req *req,
			struct nm_msg *msg)
{
	struct nm_gate *gate = msg->match.gate;
	struct nm_wire_chunk c;

	req->msg = NULL;
	req->seq = msg->seq;
	if (msg->kind == NM_WIRE_KIND_EAGER) {
		deliver_eager(pass, req, gate, msg->match.tag, msg->length,
			      msg->id, msg->data);
		req->msg = msg;
		return;
	}
	if (msg->kind == NM_WIRE_KIND_PART) {
		nm_medium_taken(pass, req, msg);
		return;
	}
	msg_rts(msg, msg->match.tag, &c);
	nm_rdv_matched(pass, req, gate, &c);
	nm_msg_free(pass->core, msg);
}

void nm_in_probed(struct nm_pass *pass, struct nm_req *req,
		  const struct nm_msg *msg)
{
	req->gate = msg->match.gate;
	req->tag = msg->match.tag;
	req->length = msg->length;
	req->sent = msg->length;
	nm_req_finish(pass, req, 0);
}

void nm_in_refuse(struct nm_gate *gate, const struct nm_msg *msg, uint8_t flags)
{
	struct nm_wire_chunk c;

	if (gate->error != 0)
		return;
	if (msg->kind == NM_WIRE_KIND_RTS) {
		msg_rts(msg, 0, &c);
		nm_rdv_refuse(gate, &c, flags);
		return;
	}
	if (msg->kind == NM_WIRE_KIND_RETRACT)
		return;
	if (msg->id != 0)
		nm_out_reply(gate, NM_WIRE_KIND_ACK, msg->id, flags);
	nm_in_credit(gate, msg->length);
}

void nm_in_drop(struct nm_gate *gate, struct nm_msg *msg)
{
	if (msg->kind == NM_WIRE_KIND_PART)
		nm_medium_lost(gate, msg);
	nm_msg_free(gate->core, msg);
}

/* Nobody has asked for it yet. The caller knows that there is room. */
static void keep(struct nm_pass *pass, struct nm_session *s,
		 struct nm_gate *gate, uint32_t tag, struct nm_msg *msg)
{
	struct base_list probes;
	struct base_link *n;
	int rc;

	base_list_init(&probes);
	nm_count(&pass->core->stats.unexpected);
	msg->match.session = &s->match;
	msg->match.gate = gate;
	msg->match.tag = tag;
	rc = nm_match_keep(&pass->core->match, &msg->match, &probes);
	base_check(rc == 0);
	if (unlikely(s->monitor != NULL))
		nm_calls_note(pass->core, s, msg);
	nm_watch_see(pass->core, NM_SAW_UNEXPECTED, gate, tag, msg->length);
	while ((n = base_list_take_front(&probes)) != NULL)
		nm_in_probed(pass, container_of(n, struct nm_req, recv.link),
			     msg);
}

/* --- envelopes, in their order --- */

static inline void arrives(const struct nm_session *s,
			   const struct nm_gate *gate, uint32_t tag,
			   uint32_t seq, uint64_t length, bool unexpected)
{
	nm_trace_message(MARCEL_TRACE_ARRIVE, s->id, gate, tag, seq, length,
			 unexpected);
}

/* A receive with so much room has left the tables. */
static void has_left(struct nm_pass *pass, struct nm_session *s,
		     struct nm_gate *gate, uint32_t tag, size_t room)
{
	if (unlikely(room > load_relaxed(&gate->eager_max)))
		nm_announce_next(pass, s, gate, tag);
}

/* Its turn has come. False: the tables have no memory, nothing is changed. */
static bool deliver(struct nm_pass *pass, struct nm_session *s,
		    struct nm_gate *gate, const struct nm_wire_chunk *c)
{
	struct nm_match *m = &pass->core->match;
	struct nm_match_recv *recv;
	struct nm_req *req;
	size_t room;

	if (unlikely(c->kind == NM_WIRE_KIND_RETRACT)) {
		nm_retract_heard(pass, s, gate, c->tag, (uint32_t)c->id);
		return true;
	}
	recv = nm_match_arrival(m, &s->match, gate, c->tag);
	if (unlikely(recv == NULL)) {
		if (nm_match_room(m) == 0)
			return false;
		arrives(s, gate, c->tag, c->seq, c->length, true);
		keep(pass, s, gate, c->tag, msg_new(gate, c));
		return true;
	}
	arrives(s, gate, c->tag, c->seq, c->length, false);
	req = container_of(recv, struct nm_req, recv);
	req->seq = c->seq;
	room = req->data.length;
	if (likely(c->kind == NM_WIRE_KIND_EAGER))
		deliver_eager(pass, req, gate, c->tag, c->length, c->id,
			      c->payload);
	else if (c->kind == NM_WIRE_KIND_RTS)
		nm_rdv_matched(pass, req, gate, c);
	else
		nm_medium_matched(pass, req, gate, c);
	has_left(pass, s, gate, c->tag, room);
	return true;
}

/* The same for one that was parked; its record is used up. */
static bool deliver_parked(struct nm_pass *pass, struct nm_session *s,
			   struct nm_gate *gate, struct nm_msg *msg)
{
	struct nm_match *m = &pass->core->match;
	uint32_t tag = msg->early.tag;
	struct nm_match_recv *recv;
	struct nm_req *req;
	size_t room;

	if (msg->kind == NM_WIRE_KIND_RETRACT) {
		nm_parked_remove(pass->core, msg);
		nm_retract_heard(pass, s, gate, tag, (uint32_t)msg->id);
		nm_msg_free(pass->core, msg);
		return true;
	}
	recv = nm_match_arrival(m, &s->match, gate, tag);
	if (recv == NULL && nm_match_room(m) == 0)
		return false;
	nm_parked_remove(pass->core, msg);
	arrives(s, gate, tag, msg->seq, msg->length, recv == NULL);
	if (recv == NULL) {
		keep(pass, s, gate, tag, msg);
		return true;
	}
	req = container_of(recv, struct nm_req, recv);
	room = req->data.length;
	msg->match.gate = gate;
	msg->match.tag = tag;
	nm_in_deliver_kept(pass, req, msg);
	has_left(pass, s, gate, tag, room);
	return true;
}

/* Deliver those of the parked whose turn has come. */
static void unpark(struct nm_pass *pass, struct nm_session *s,
		   struct nm_gate *gate)
{
	struct nm_msg *msg;

	while ((msg = nm_parked_due(pass->core, s, gate)) != NULL) {
		if (!deliver_parked(pass, s, gate, msg)) {
			pass->core->parked_for_memory = true;
			return;
		}
		s->peers[gate->rank].recv_seq++;
	}
}

struct nm_msg *nm_in_early(struct nm_gate *gate, const struct nm_wire_chunk *c)
{
	struct nm_msg *msg = msg_new(gate, c);

	base_link_init(&msg->early.on);
	base_link_init(&msg->early.by_seq);
	msg->early.from = gate;
	msg->early.session = c->session;
	msg->early.tag = c->tag;
	return msg;
}

static int park_chunk(struct nm_gate *gate, struct nm_peer *peer,
		      const struct nm_wire_chunk *c)
{
	struct nm_msg *msg = nm_in_early(gate, c);
	int rc = nm_parked_add(gate->core, peer, msg);

	if (rc < 0)
		nm_in_drop(gate, msg);
	return rc;
}

BASE_INLINE int envelope(struct nm_pass *pass, struct nm_gate *gate,
			 const struct nm_wire_chunk *c)
{
	struct nm_core *core = pass->core;
	struct nm_session *s = nm_session_find(core, c->session);
	struct nm_peer *peer;

	if (c->kind == NM_WIRE_KIND_RTS && !nm_rdv_is_sane(gate, c))
		return -EBADMSG;
	if (likely(c->kind != NM_WIRE_KIND_RETRACT))
		nm_count(c->kind == NM_WIRE_KIND_RTS ? &core->stats.rdv_in
						     : &core->stats.eager_in);
	if (unlikely(s == NULL)) {
		nm_count(&core->stats.early);
		nm_retract_early(core, nm_in_early(gate, c));
		return 0;
	}
	peer = &s->peers[gate->rank];
	if (unlikely(c->seq != peer->recv_seq)) {
		nm_count(&core->stats.early);
		return park_chunk(gate, peer, c);
	}
	if (unlikely(!base_list_is_empty(&peer->parked)) ||
	    !deliver(pass, s, gate, c)) {
		int rc = park_chunk(gate, peer, c);

		if (rc < 0)
			return rc;
		core->parked_for_memory = true;
		unpark(pass, s, gate);
		return 0;
	}
	peer->recv_seq++;
	return 0;
}

int nm_in_envelope(struct nm_pass *pass, struct nm_gate *gate,
		   const struct nm_wire_chunk *c)
{
	return envelope(pass, gate, c);
}

/* Those that waited for the session; to `bad`: with numbers that cannot be. */
static void leave_limbo(struct nm_session *s, struct nm_limbo *limbo,
			struct base_list *bad)
{
	struct base_list all;
	struct base_link *n;

	base_list_init(&all);
	nm_limbo_take(limbo, s->id, &all);
	while ((n = base_list_take_front(&all)) != NULL) {
		struct nm_msg *msg = container_of(n, struct nm_msg, early.on);

		if (nm_parked_add(s->core, &s->peers[msg->early.from->rank],
				  msg) < 0)
			base_list_push_back(bad, n);
	}
}

void nm_in_opened(struct nm_pass *pass, struct nm_session *s)
{
	struct nm_core *core = pass->core;
	struct base_list bad;
	struct base_link *n;

	base_list_init(&bad);
	leave_limbo(s, &core->limbo, &bad);
	leave_limbo(s, &core->retracts, &bad);
	for (int rank = 0; rank < core->size; rank++)
		unpark(pass, s, &core->gates[rank]);
	while ((n = base_list_take_front(&bad)) != NULL) {
		struct nm_msg *msg = container_of(n, struct nm_msg, early.on);

		nm_gate_fail(pass, msg->early.from, -EBADMSG);
		nm_in_drop(msg->early.from, msg);
	}
}

void nm_in_resume(struct nm_pass *pass)
{
	struct nm_core *core = pass->core;

	if (!core->parked_for_memory)
		return;
	core->parked_for_memory = false;
	base_list_for_each (n, &core->sessions) {
		struct nm_session *s = container_of(n, struct nm_session, on);

		for (int rank = 0; rank < core->size; rank++)
			unpark(pass, s, &core->gates[rank]);
	}
}

/* --- packets --- */

static int ack(struct nm_pass *pass, struct nm_gate *gate,
	       const struct nm_wire_chunk *c)
{
	struct nm_core *core = pass->core;
	struct nm_req *req = nm_ids_find(&core->syncs, c->id);
	bool retracted = c->flags & NM_WIRE_RETRACTED;

	if (req == NULL || req->gate != gate ||
	    (retracted && !req->send.retracted))
		return -EBADMSG;
	nm_ids_put(&core->syncs, c->id);
	base_list_remove(&req->send.on);
	if (retracted)
		req->error = -ECANCELED;
	if (nm_req_part(req))
		nm_req_finish(pass, req, req->error);
	else
		nm_pending_add(core, -1);
	return 0;
}

static int chunk(struct nm_pass *pass, struct nm_gate *gate,
		 struct nm_pkt_in *in, const struct nm_wire_chunk *c)
{
	switch (c->kind) {
	case NM_WIRE_KIND_EAGER:
	case NM_WIRE_KIND_RTS:
	case NM_WIRE_KIND_RETRACT:
		return envelope(pass, gate, c);
	case NM_WIRE_KIND_PART:
		return nm_medium_heard(pass, gate, in, c);
	case NM_WIRE_KIND_RTR:
		return nm_rdv_rtr(pass, gate, c);
	case NM_WIRE_KIND_ANNOUNCE:
		return nm_announce_heard(pass, gate, c);
	case NM_WIRE_KIND_LOST:
		return nm_lost_heard(pass, gate, c->rail);
	case NM_WIRE_KIND_RESENT:
		return -EBADMSG; /* of no ordinary packet: see packet_in() */
	case NM_WIRE_KIND_OFFER:
		return nm_redo_heard(pass, gate, c);
	default:
		return ack(pass, gate, c);
	}
}

static int packet(struct nm_pass *pass, struct nm_gate *gate,
		  struct nm_pkt_in *in)
{
	size_t at = NM_WIRE_HEAD;
	struct nm_wire_chunk c;
	struct nm_wire_head h;

	if (nm_wire_get_head(in->data, in->length, &h) < 0 ||
	    h.credit > gate->credit_used)
		return -EBADMSG;
	nm_count(&gate->nreceived);
	gate->credit_used -= h.credit;
	for (unsigned i = 0; i < h.nchunks; i++)
		if (nm_wire_get_chunk(in->data, in->length, &at, &c) < 0 ||
		    chunk(pass, gate, in, &c) < 0 || gate->error != 0)
			return -EBADMSG;
	return at == in->length ? 0 : -EBADMSG;
}

/*
 * A packet of a lost link that is in another, or none of ours. True: what was
 * in it is to be looked at; else it is done with, or held.
 */
static BASE_COLD bool unwrap(struct nm_pass *pass, struct nm_gate *gate,
			     struct nm_pkt_in *in)
{
	int rc = gate->error == -EBADMSG ? -EBADMSG : -EALREADY;

	if (gate->error == 0)
		rc = nm_lost_unwrap(pass, gate, in);
	if (rc == 0)
		return true;
	if (rc == -EBADMSG) {
		base_warn("nmad",
			  "rank %d: rank %d sent a packet over %s that is none "
			  "of ours; giving it up",
			  pass->core->rank, gate->rank,
			  in->link->rail->driver->name);
		nm_gate_fail(pass, gate, -EBADMSG);
	}
	if (rc != -EINPROGRESS)
		nm_chain_append(&pass->release, &in->event.node);
	return false;
}

static void packet_in(struct nm_pass *pass, struct nm_pkt_in *in)
{
	struct nm_gate *gate = in->link->gate;

	while (gate->error == 0 && packet(pass, gate, in) < 0)
		if (!unwrap(pass, gate, in))
			return;
	nm_chain_append(&pass->release, &in->event.node);
}

void nm_in_held(struct nm_pass *pass, struct nm_pkt_in *in)
{
	if (unwrap(pass, in->link->gate, in))
		packet_in(pass, in);
}

/*
 * Two owners of a rail may enter the core in the other order than they had the
 * rail in, so the end of a link may be heard of before its last packets: it
 * waits for these.
 */
static void link_dead(struct nm_pass *pass, struct nm_link *link)
{
	link->is_dying = (int32_t)(link->last - link->heard) > 0;
	if (likely(!link->is_dying))
		nm_lost_dead(pass, link);
}

static BASE_COLD void last_packet_in(struct nm_pass *pass, struct nm_pkt_in *in)
{
	struct nm_link *link = in->link;

	packet_in(pass, in);
	link_dead(pass, link);
}

/* What most packets are costs no more than the count. */
static inline void hear(struct nm_pass *pass, struct nm_pkt_in *in)
{
	struct nm_link *link = in->link;

	link->heard++;
	if (likely(!link->is_dying))
		packet_in(pass, in);
	else
		last_packet_in(pass, in);
}

void nm_in_event(struct nm_pass *pass, struct nm_event *e)
{
	switch (e->kind) {
	case NM_EVENT_PKT_IN:
		hear(pass, container_of(e, struct nm_pkt_in, event));
		break;
	case NM_EVENT_XFER_READY:
		nm_rdv_ready(pass, container_of(e, struct nm_xfer, ready));
		break;
	case NM_EVENT_XFER_DONE:
		nm_rdv_done(pass, container_of(e, struct nm_xfer, done));
		break;
	case NM_EVENT_LINK_DEAD:
		link_dead(pass, container_of(e, struct nm_link, dead));
		break;
	case NM_EVENT_UNSURE:
		nm_lost_unsure(pass, container_of(e, struct nm_doubt, event));
		break;
	}
}
