/*
 * Receives that are announced, at the sender.
 *
 *   sender                              receiver
 *                                       a receive is posted, the first of its
 *                                       (source, tag); its driver makes a place
 *   kept here  <-- ANNOUNCE(seq; id, token)
 *   the next send of that tag takes it:
 *   xfer_take(), and xfer_send() at once
 *              --- RTS(ANNOUNCED, id) -> matched like any other; xfer_recv()
 *   nm_rail_xfer_done(): over           nm_rail_xfer_done(): over
 *
 * So the body moves without the receiver, which may compute until the end, and
 * matching is what it always is: the envelope travels in its order, and meets
 * the receive that was announced, because the announcement is not used unless
 * it must. That is so since
 *
 *  - the receive names its source and tag, is the first in the tables that does
 *    so, and no receive of the session with a wildcard was posted before it
 *    (nm_announce_next());
 *  - the sender has sent no message of that tag that the receiver had not
 *    matched when it announced (`seq`): else that may be the receive's, and the
 *    announcement is forgotten, as it is if the sender has sent too many to
 * know;
 *  - the next message of that tag uses the announcement up, whether or not it
 *    goes there: small ones and those that are too long do not.
 *
 * An announcement costs a packet, and is in vain where the sender has sent
 * before it hears of it: where two exchange messages, say, and do not compute.
 * So one that was in vain costs the next ones theirs, twice as many each time;
 * one that was of use wins all back.
 *
 * The receiver may want the receive for something else, a message that it does
 * not know of yet, or cancel it. It recalls it then, xfer_recall(): of this and
 * xfer_take() exactly one succeeds. What has been recalled may be kept here for
 * long, and is found out by taking it.
 */
#include "core.h"

#include <errno.h>
#include <string.h>

enum { KEPT_MAX = 32 }; /* at a gate; beyond, the oldest are forgotten */

struct nm_announced {
	uint32_t n, oldest;
	struct nm_place place[KEPT_MAX];
};

/* Its index, or KEPT_MAX. */
static uint32_t find(const struct nm_announced *a, uint64_t session,
		     uint32_t tag)
{
	for (uint32_t i = 0; i < a->n; i++)
		if (a->place[i].tag == tag && a->place[i].session == session)
			return i;
	return KEPT_MAX;
}

static unsigned class_of_all(void)
{
	return nm_mem_class(sizeof(struct nm_announced));
}

static struct nm_place *room_for(struct nm_gate *gate, uint64_t session,
				 uint32_t tag)
{
	struct nm_announced *a = gate->announced;
	uint32_t i;

	if (a == NULL) {
		a = nm_mem_get(&gate->core->mem, class_of_all());
		a->n = 0;
		a->oldest = 0;
		gate->announced = a;
	}
	i = find(a, session, tag);
	if (i == KEPT_MAX && a->n < KEPT_MAX)
		i = a->n++;
	if (i == KEPT_MAX) {
		i = a->oldest;
		a->oldest = (i + 1) % KEPT_MAX;
	}
	return &a->place[i];
}

/* Whether a message of the tag, or nobody knows, was sent since that number. */
static bool is_late(const struct nm_peer *peer, uint32_t seq, uint32_t tag)
{
	uint32_t n = peer->send_seq - seq;

	if (n > NM_RECENT)
		return true;
	while (n-- > 0)
		if (peer->sent[seq++ % NM_RECENT] == tag)
			return true;
	return false;
}

int nm_announce_heard(struct nm_pass *pass, struct nm_gate *gate,
		      const struct nm_wire_chunk *c)
{
	struct nm_session *s = nm_session_find(pass->core, c->session);
	const struct nm_link *link = nm_gate_link(gate, c->rail);
	struct nm_place *place;

	if (link == NULL || link->rail->driver->xfer_take == NULL)
		return -EBADMSG;
	if (s == NULL || is_late(&s->peers[gate->rank], c->seq, c->tag))
		return 0;
	place = room_for(gate, c->session, c->tag);
	place->session = c->session;
	place->tag = c->tag;
	place->rail = c->rail;
	place->id = c->id;
	place->length = c->length;
	place->token.length = c->tail_len;
	memcpy(place->token.bytes, c->tail, c->tail_len);
	return 0;
}

void nm_announce_look(struct nm_gate *gate)
{
	if (gate->announces && nm_trial_is_due(&gate->looking))
		nm_core_progress(gate->core);
}

static void use(struct nm_gate *gate, struct nm_req *req)
{
	struct nm_announced *a = gate->announced;
	struct nm_mem *mem = &gate->core->mem;
	uint32_t i = find(a, req->session->id, req->tag);

	if (i == KEPT_MAX)
		return;
	if (req->data.length > load_relaxed(&gate->eager_max) &&
	    req->data.length <= a->place[i].length) {
		req->send.place =
			nm_mem_get(mem, nm_mem_class(sizeof(struct nm_place)));
		*req->send.place = a->place[i];
	}
	a->place[i] = a->place[--a->n];
	a->oldest = 0;
	if (a->n == 0) {
		nm_mem_put(mem, class_of_all(), a);
		gate->announced = NULL;
	}
}

void nm_announce_use(struct nm_gate *gate, struct nm_req *req)
{
	if (gate->announced != NULL)
		use(gate, req);
	if (!gate->announces ||
	    req->data.length <= load_relaxed(&gate->eager_max))
		return;
	if (req->send.place != NULL || nm_trial_is_due(&gate->looking))
		nm_trial_learn(&gate->looking, req->send.place != NULL);
	else
		nm_trial_left_out(&gate->looking);
}

void nm_announce_unuse(struct nm_core *core, struct nm_req *req)
{
	if (req->send.place == NULL)
		return;
	nm_mem_put(&core->mem, nm_mem_class(sizeof(struct nm_place)),
		   req->send.place);
	req->send.place = NULL;
}

void nm_announce_forget(struct nm_gate *gate)
{
	if (gate->announced == NULL)
		return;
	nm_mem_put(&gate->core->mem, class_of_all(), gate->announced);
	gate->announced = NULL;
}

/* --- the receiver: which receives --- */

void nm_announce_next(struct nm_pass *pass, struct nm_session *s,
		      struct nm_gate *gate, uint32_t tag)
{
	struct nm_match_recv *first;
	struct nm_req *req;

	if (!gate->announces || gate->error != 0 ||
	    s->match.nrecvs[NM_MATCH_TAG] != 0 ||
	    s->match.nrecvs[NM_MATCH_SOURCE] != 0 ||
	    s->match.nrecvs[NM_MATCH_WILD] != 0)
		return;
	first = nm_match_first(&pass->core->match, &s->match, gate, tag);
	if (first == NULL)
		return;
	req = container_of(first, struct nm_req, recv);
	if (req->announced != NULL ||
	    req->data.length <= load_relaxed(&gate->eager_max))
		return;
	if (nm_trial_is_due(&gate->announcing))
		nm_rdv_announce(pass, req);
	else
		nm_trial_left_out(&gate->announcing);
}
