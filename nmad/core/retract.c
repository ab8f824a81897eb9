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
	r->answer.id = req->send.seq;
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

bool nm_retract_is_asked(const struct nm_req *req,
			 const struct nm_wire_chunk *answer)
{
	return req->send.retracted && answer->length == 0;
}

/* --- the receiver --- */

/* Its sender waits for a match, and is not told of one otherwise. */
static bool awaits_match(const struct nm_msg *msg)
{
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
	} while (msg->seq != which);
	if (!awaits_match(msg))
		return;
	if (msg->kind == NM_WIRE_KIND_PART)
		nm_medium_retract(gate, msg);
	else
		take_back(core, msg);
}

/* Unless it was taken by a matched probe. */
void nm_retract_whole(struct nm_core *core, struct nm_msg *msg)
{
	if (base_link_is_on(&msg->match.links[NM_MATCH_WILD]))
		take_back(core, msg);
}
