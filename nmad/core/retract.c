/*
 * Sends that are taken back.
 *
 *   sender                                receiver
 *              --- RTS, or EAGER SYNC ->  no receive matches: it is kept
 *   nm_retract()
 *              --- RETRACT(which) ----->  if it is still kept, it is no more
 *   over       <-- RTRs, or ACK (RETRACTED)
 *
 * A RETRACT is an envelope with a number of its own. So it is looked at when
 * all envelopes before it have been, whatever rails they came over and
 * whichever left first, and what it takes back is either kept or has met its
 * receive: then the RTRs or the ACK are on their way, and the RETRACT is
 * forgotten. A message that a matched probe has taken counts as met.
 *
 * While the session is not open, perhaps for good, nothing has its turn. No
 * receive can have matched what lies in limbo, so it is given back there,
 * whichever of the two comes first, and a RETRACT of itself keeps its number.
 *
 * A send that waits for no match is over when it has left, and nothing is taken
 * back. Which of them do is known at the receiver, so RETRACT may be sent
 * before the envelope itself is.
 *
 * Called with the core lock held.
 */
#include "core.h"

#include <errno.h>
#include <string.h>

/* --- the sender --- */

int nm_retract(struct nm_req *req)
{
	struct nm_gate *gate = req->gate;
	struct nm_retraction *r;
	struct nm_peer *peer;

	if (gate->error != 0)
		return -EALREADY;
	if (req->send.retracted)
		return 0;
	req->send.retracted = true;
	r = nm_mem_get(&gate->core->mem, nm_mem_class(sizeof(*r)));
	memset(r, 0, sizeof(*r));
	peer = &req->session->peers[gate->rank];
	peer->sent[peer->send_seq % NM_RECENT] = req->tag;
	r->answer.kind = NM_WIRE_KIND_RETRACT;
	r->answer.id = req->seq;
	r->session = req->session->id;
	r->tag = req->tag;
	r->seq = peer->send_seq++;
	nm_out_answer(gate, &r->answer);
	return 0;
}

void nm_retract_chunk(const struct nm_answer *a, struct nm_wire_chunk *c)
{
	const struct nm_retraction *r =
		container_of(a, const struct nm_retraction, answer);

	c->session = r->session;
	c->tag = r->tag;
	c->seq = r->seq;
}

void nm_retract_over(struct nm_core *core, struct nm_answer *a)
{
	struct nm_retraction *r = container_of(a, struct nm_retraction, answer);

	nm_mem_put(&core->mem, nm_mem_class(sizeof(*r)), r);
}

/* --- the receiver --- */

/* Its sender waits for a match, and is not told of one otherwise. */
static bool awaits_match(const struct nm_msg *msg)
{
	if (msg->kind == NM_WIRE_KIND_RETRACT)
		return false;
	return (msg->kind == NM_WIRE_KIND_RTS) == (msg->id == 0);
}

static void take_back(struct nm_core *core, struct nm_msg *msg)
{
	struct nm_gate *gate = msg->match.gate;

	nm_match_take(&core->match, &msg->match);
	nm_in_refuse(gate, msg, NM_WIRE_RETRACTED);
	nm_msg_free(core, msg);
}

void nm_retract_heard(struct nm_pass *pass, struct nm_session *s,
		      struct nm_gate *gate, uint32_t tag, uint32_t which)
{
	struct nm_core *core = pass->core;
	struct nm_match_msg *m = NULL;
	struct nm_msg *msg;

	do {
		m = nm_match_next(&core->match, &s->match, gate, tag, m);
		if (m == NULL)
			return;
		msg = container_of(m, struct nm_msg, match);
		if ((int32_t)(msg->seq - which) > 0)
			return;
	} while (msg->seq != which);
	if (!awaits_match(msg))
		return;
	if (msg->kind == NM_WIRE_KIND_PART)
		nm_medium_retract(gate, msg);
	else
		take_back(core, msg);
}

/* --- the receiver, while the session is not open --- */

/* From the end, where what was sent just before a RETRACT is. */
static struct nm_msg *find(const struct nm_core *core,
			   const struct nm_gate *gate, uint64_t session,
			   uint32_t seq)
{
	struct nm_msg *msg = nm_limbo_last(&core->limbo, session);

	while (msg != NULL && (msg->seq != seq || msg->early.from != gate))
		msg = nm_limbo_before(msg);
	return msg;
}

/* Its RETRACT, which came before it, or before all of it. */
static struct nm_msg *retract_of(const struct nm_core *core,
				 const struct nm_gate *gate, uint64_t session,
				 uint32_t seq)
{
	struct nm_msg *r = nm_limbo_last(&core->retracts, session);

	while (r != NULL && ((uint32_t)r->id != seq || r->early.from != gate))
		r = nm_limbo_before(r);
	return r;
}

/* They have found each other. Both numbers stay taken. */
static void take_back_early(struct nm_core *core, struct nm_msg *retract,
			    struct nm_msg *msg)
{
	struct nm_gate *gate = msg->early.from;
	struct nm_wire_chunk c = { .kind = NM_WIRE_KIND_RETRACT,
				   .session = msg->early.session,
				   .tag = msg->early.tag,
				   .seq = msg->seq,
				   .id = msg->seq };

	nm_limbo_remove(&core->retracts, retract);
	nm_limbo_add(&core->limbo, retract);
	if (retract->early.tag != msg->early.tag || !awaits_match(msg))
		return;
	nm_limbo_remove(&core->limbo, msg);
	nm_limbo_add(&core->limbo, nm_in_early(gate, &c));
	nm_in_refuse(gate, msg, NM_WIRE_RETRACTED);
	nm_msg_free(core, msg);
}

void nm_retract_early(struct nm_core *core, struct nm_msg *msg)
{
	const struct nm_gate *gate = msg->early.from;
	uint64_t session = msg->early.session;
	struct nm_msg *other;

	if (msg->kind == NM_WIRE_KIND_RETRACT) {
		nm_limbo_add(&core->retracts, msg);
		other = find(core, gate, session, (uint32_t)msg->id);
		if (other != NULL && other->kind != NM_WIRE_KIND_PART)
			take_back_early(core, msg, other);
		return;
	}
	nm_limbo_add(&core->limbo, msg);
	if (msg->kind == NM_WIRE_KIND_PART)
		return;
	other = retract_of(core, gate, session, msg->seq);
	if (other != NULL)
		take_back_early(core, other, msg);
}

/* --- the receiver, when all parts have come --- */

void nm_retract_whole(const struct nm_gate *gate, uint64_t session,
		      struct nm_msg *msg, bool retracted)
{
	struct nm_core *core = gate->core;
	struct nm_msg *retract;

	/* Asked for in its turn: unless a matched probe took it since. */
	if (retracted) {
		if (base_link_is_on(&msg->match.links[NM_MATCH_WILD]))
			take_back(core, msg);
		return;
	}
	retract = retract_of(core, gate, session, msg->seq);
	if (retract != NULL && find(core, gate, session, msg->seq) == msg)
		take_back_early(core, retract, msg);
}
