/*
 * Rendezvous: a large message first asks, then travels straight from memory to
 * memory, in one part or in several that lie behind one another, over all links
 * of the gate or some.
 *
 *   sender                              receiver
 *   OFFERED  --- RTS(id, token; ...) -> matched: each part is held
 *   (gate->offers)                      (gate->grants), or its driver has it
 *                                       nm_rail_xfer_ready(): RTR queued
 *            <-- RTR(id, length, token) sent
 *   the part's driver has it
 *   nm_rail_xfer_done(): over           nm_rail_xfer_done(): over, once the
 *                                       RTR is in a packet
 *
 * The sender proposes the cut, since it knows what its rails have to do; the
 * receiver takes it, cut down to the bytes that it wants. From there on a part
 * is on its own: it is granted, moves and ends whenever its rail comes to it.
 * The request is over when all parts are, and fails if one of them did. A part
 * of which the receiver wants nothing (beyond the end of its buffer) is
 * answered by an RTR of length 0 and over.
 *
 * Where priorities count the receiver grants few parts at a time, the highest
 * first, and the sender cuts long bodies into more parts than there are links:
 * what is urgent waits for parts, not for bodies.
 *
 * Where a rail is lost and the peer is not, parts are offered anew: redo.c.
 *
 * A part is failed by who has it: by the rail's owner while it is on
 * link->xfers or on its way there, else by the core. What is held goes to its
 * rail's owner in any case: over a dead link each that fails grants the next.
 *
 * A receive that is announced (announce.c) has its part from then on; the
 * sender that takes it is granted what it offers. Where priorities count none
 * is.
 */
#include "core.h"

#include <errno.h>
#include <string.h>

#include <base/clock.h>

#include "part.h"
#include "watch.h"

/* A shorter part is not worth its token, its answer and its end. */
enum { SLICE_MIN = 256 * 1024 };

static struct nm_trans *trans_new(struct nm_gate *gate, struct nm_req *req,
				  int nparts, bool is_send)
{
	size_t bytes = sizeof(struct nm_trans) +
		       (size_t)nparts * sizeof(struct nm_part);
	unsigned class = nm_mem_class(bytes);
	struct nm_trans *t = nm_mem_get(&gate->core->mem, class);

	memset(t, 0, bytes);
	t->req = req;
	t->gate = gate;
	t->is_send = is_send;
	t->class = class;
	return t;
}

static struct nm_part *part_new(struct nm_trans *t, struct nm_link *link,
				size_t offset, size_t length)
{
	struct nm_part *p = &t->parts[t->nparts];

	p->trans = t;
	base_link_init(&p->on);
	base_link_init(&p->x.on);
	p->x.link = link;
	p->rail = link->rail;
	p->x.data = t->req->data;
	p->x.offset = offset;
	p->x.length = length;
	t->nparts++;
	t->running++;
	return p;
}

/* The peer will answer it. False: there are no more numbers. */
static bool part_number(struct nm_part *p)
{
	p->id = nm_ids_get(&p->trans->gate->core->offers, p);
	return p->id != 0;
}

static void part_free(struct nm_core *core, struct nm_part *p)
{
	struct nm_trans *t = p->trans;

	if (t->is_send)
		nm_part_withdraw(p);
	if (p->id != 0)
		nm_ids_put(&core->offers, p->id);
	if (--t->nparts == 0)
		nm_mem_put(&core->mem, t->class, t);
}

/*
 * Free it when nothing will come for it any more. Two owners of a rail may
 * enter the core in the other order than they had the rail in, so the end of a
 * part may be heard of before that it is ready.
 */
static void part_end(struct nm_core *core, struct nm_part *p)
{
	if (p->over && !p->rtr_queued && p->heard_ready == p->x.is_ready)
		part_free(core, p);
}

/* When a rail of which we know how fast it is will be free again. */
void nm_part_given(struct nm_part *p)
{
	struct nm_rail *rail = p->rail;
	size_t bytes = p->x.length;
	double now;

	rail->nbytes += bytes;
	if (likely(rail->curve == NULL))
		return;
	now = (double)base_now_ns();
	if (rail->nparts++ == 0 || rail->free_ns < now)
		rail->free_ns = now;
	rail->free_ns += nm_curve_ns(rail->curve, (double)bytes);
}

void nm_part_taken(struct nm_part *p)
{
	if (p->rail->curve != NULL)
		p->rail->nparts--;
}

static void see(const struct nm_trans *t, enum nm_watched what)
{
	const struct nm_req *req = t->req;

	nm_watch_see(t->gate->core, what, t->gate, req->tag,
		     t->is_send ? req->data.length : req->length);
}

void nm_part_over(struct nm_pass *pass, struct nm_part *p, int error)
{
	struct nm_trans *t = p->trans;

	if (error != 0)
		t->error = error;
	p->over = true;
	base_list_remove(&p->on);
	if (t->is_send)
		nm_part_taken(p);
	if (--t->running == 0) {
		if (t->error == -ECONNRESET && !t->is_send)
			t->req->length = 0;
		see(t, t->is_send ? NM_SAW_RDV_OUT_END : NM_SAW_RDV_IN_END);
		nm_req_finish(pass, t->req, t->error);
	}
	part_end(pass->core, p);
}

static void post(struct nm_chain *posts, struct nm_part *p, unsigned kind)
{
	p->x.done.kind = kind;
	nm_chain_append(posts, &p->x.done.node);
}

/* --- the sender's offer --- */

size_t nm_rdv_rts_size(const struct nm_gate *gate)
{
	size_t parts = gate->core->config.strategy->bodies > 0
			       ? NM_WIRE_PARTS_MAX
			       : (size_t)gate->nlinks;

	return NM_WIRE_RTS + sizeof(uint64_t) +
	       parts * (NM_WIRE_PART + NM_TOKEN_MAX);
}

/* What goes over each link; at least one share. */
static int share(struct nm_gate *gate, size_t length, struct nm_share *out)
{
	const struct nm_strategy *strategy = gate->core->config.strategy;
	int n = strategy->cut != NULL ? strategy->cut(gate, length, out) : 0;

	if (n > 0)
		return n;
	*out = (struct nm_share){ 0, length };
	return 1;
}

/* A share as parts that others can get between; their number. */
static int slice(struct nm_share share, size_t most, struct nm_share *out)
{
	size_t n = share.bytes / SLICE_MIN;
	int i = 0;

	if (n > most)
		n = most;
	for (; n > 1; n--) {
		out[i] = share;
		out[i].bytes = share.bytes / n & ~(size_t)63;
		share.bytes -= out[i++].bytes;
	}
	out[i] = share;
	return i + 1;
}

/* The parts of a body, behind one another; at most NM_WIRE_PARTS_MAX. */
static int cut(struct nm_gate *gate, const struct nm_req *req,
	       struct nm_share *out)
{
	struct nm_share shares[NM_GATE_LINKS];
	int n = share(gate, req->data.length, shares), parts = 0;
	size_t most = 1;

	/* The highest lets nobody in between. */
	if (gate->core->config.strategy->bodies > 0 &&
	    req->send.priority < NM_PRIORITY_MAX)
		most = (size_t)(NM_WIRE_PARTS_MAX / n);
	for (int i = 0; i < n; i++)
		parts += slice(shares[i], most, out + parts);
	return parts;
}

static void offer_part(struct nm_part *p, struct nm_wire_chunk *rts,
		       void *parts)
{
	struct nm_rail *rail = p->rail;
	struct nm_wire_part part = { .rail = (uint8_t)rail->index,
				     .length = p->x.length,
				     .id = p->id };

	if (rail->driver->xfer_offer != NULL)
		rail->driver->xfer_offer(&p->x);
	part.token_len = p->x.mine.length;
	part.token = p->x.mine.bytes;
	nm_wire_put_part(parts, &rts->tail_len, &part);
	nm_part_given(p);
}

/* Nobody has heard of any of them. */
static void take_back(struct nm_core *core, struct nm_trans *t)
{
	int n = t->nparts;

	for (int i = 0; i < n; i++)
		part_free(core, &t->parts[i]);
}

/* Its place was announced: nothing is asked, if that still holds. */
static bool take_place(struct nm_gate *gate, struct nm_pkt *pkt,
		       struct nm_req *req, struct nm_wire_chunk *rts,
		       void *parts)
{
	struct nm_link *link = nm_gate_link(gate, req->send.place->rail);
	struct nm_trans *t = trans_new(gate, req, 1, true);
	struct nm_part *p = part_new(t, link, 0, req->data.length);
	uint64_t id = req->send.place->id;
	int rc;

	p->x.peers = req->send.place->token;
	rc = p->rail->driver->xfer_take(&p->x);
	nm_announce_unuse(gate->core, req);
	if (rc < 0) {
		take_back(gate->core, t);
		return false;
	}
	rts->flags = NM_WIRE_ANNOUNCED;
	rts->id = id;
	rts->nparts = 1;
	rts->tail_len = 0;
	offer_part(p, rts, parts);
	p->granted = true;
	pkt->awaited = p->x.awaited;
	post(&gate->posts, p, NM_POST_XFER_SEND);
	return true;
}

bool nm_rdv_offer(struct nm_gate *gate, struct nm_pkt *pkt, struct nm_req *req,
		  struct nm_wire_chunk *rts, void *parts)
{
	struct nm_share shares[NM_WIRE_PARTS_MAX];
	struct nm_trans *t;
	size_t offset = 0;
	int n;

	if (unlikely(req->send.place != NULL) &&
	    take_place(gate, pkt, req, rts, parts))
		return true;
	n = cut(gate, req, shares);
	t = trans_new(gate, req, n, true);

	for (int i = 0; i < n; i++) {
		if (!part_number(part_new(t, gate->links[shares[i].link],
					  offset, shares[i].bytes))) {
			take_back(gate->core, t);
			return false;
		}
		offset += shares[i].bytes;
	}
	base_check(offset == req->data.length);
	rts->nparts = t->nparts;
	rts->tail_len = 0;
	for (int i = 0; i < n; i++) {
		offer_part(&t->parts[i], rts, parts);
		base_list_push_back(&gate->offers, &t->parts[i].on);
	}
	return true;
}

/* --- the receiver --- */

/* We have no such rail, though the peer may think so. */
static bool is_absent(const struct nm_gate *gate, int rail)
{
	return rail < gate->core->nrails &&
	       gate->core->rails[rail].driver == NULL;
}

bool nm_rdv_is_sane(const struct nm_gate *gate, const struct nm_wire_chunk *rts)
{
	struct nm_wire_part part;
	size_t at = 0;

	for (int i = 0; i < rts->nparts; i++) {
		nm_wire_get_part(rts->tail, &at, &part);
		if (nm_gate_link(gate, part.rail) == NULL &&
		    !is_absent(gate, part.rail))
			return false;
	}
	return rts->length <= SIZE_MAX;
}

/* --- the order in which parts are granted --- */

static struct nm_grants *grants_of(struct nm_gate *gate,
				   const struct nm_rail *rail)
{
	size_t bytes = NM_RAILS_MAX * sizeof(*gate->grants);

	if (unlikely(gate->grants == NULL)) {
		gate->grants =
			nm_mem_get(&gate->core->mem, nm_mem_class(bytes));
		for (int i = 0; i < NM_RAILS_MAX; i++)
			nm_grants_init(&gate->grants[i]);
	}
	return &gate->grants[rail->index];
}

void nm_part_grant(struct nm_pass *pass, struct nm_part *p)
{
	struct nm_gate *gate = p->trans->gate;
	unsigned most = gate->core->config.strategy->bodies;
	struct nm_grants *g;

	if (most > 0) {
		g = grants_of(gate, p->rail);
		if (g->running == most) {
			nm_grants_hold(g, &p->grant);
			return;
		}
		g->running++;
	}
	post(&pass->posts, p, NM_POST_XFER_RECV);
}

/* One of those that came over this rail is over: perhaps another may. */
static void grant_next(struct nm_pass *pass, struct nm_gate *gate,
		       const struct nm_rail *rail)
{
	struct nm_grants *g;
	struct nm_grant *a;

	if (gate->core->config.strategy->bodies == 0)
		return;
	g = grants_of(gate, rail);
	g->running--;
	a = nm_grants_take(g);
	if (a != NULL)
		nm_part_grant(pass, container_of(a, struct nm_part, grant));
}

void nm_part_refuse(struct nm_gate *gate, uint64_t id, uint8_t flags)
{
	nm_out_reply(gate, NM_WIRE_KIND_RTR, id, flags);
}

void nm_rdv_refuse(struct nm_gate *gate, const struct nm_wire_chunk *rts,
		   uint8_t flags)
{
	struct nm_wire_part part;
	size_t at = 0;

	for (int i = 0; i < rts->nparts; i++) {
		nm_wire_get_part(rts->tail, &at, &part);
		nm_part_refuse(gate, part.id, flags);
	}
}

static void want_part(struct nm_pass *pass, struct nm_trans *t,
		      const struct nm_wire_part *part, size_t offset,
		      size_t want, int priority)
{
	size_t length = part->length < want ? part->length : want;
	struct nm_gate *gate = t->gate;
	struct nm_rail *rail = &gate->core->rails[part->rail];
	struct nm_part *p =
		part_new(t, &rail->links[gate->rank], offset, length);

	p->x.peers.length = part->token_len;
	memcpy(p->x.peers.bytes, part->token, part->token_len);
	p->rtr.id = part->id;
	p->rtr.part = p;
	p->grant.priority = priority;
	base_list_push_back(&gate->wanted, &p->on);
	if (likely(nm_redo_may(gate, part->rail)))
		nm_part_grant(pass, p);
	else
		nm_redo_strand(pass, p);
}

/* --- a receive that is announced --- */

/*
 * Only flat memory: the driver looks at it when the receive may be over, and
 * asks nobody for its pieces.
 */
void nm_rdv_announce(struct nm_pass *pass, struct nm_req *req)
{
	struct nm_gate *gate = req->gate;
	struct nm_trans *t;
	struct nm_part *p;

	if (req->data.kind != NM_DATA_FLAT)
		return;
	t = trans_new(gate, req, 1, false);
	p = part_new(t, gate->links[0], 0, req->data.length);
	if (!part_number(p)) {
		take_back(pass->core, t);
		return;
	}
	p->rtr.part = p;
	p->announcement = NM_ASKED;
	req->announced = p;
	post(&pass->posts, p, NM_POST_XFER_ANNOUNCE);
}

/* The driver has made a place, or could not. */
static void announce_ready(struct nm_pass *pass, struct nm_part *p)
{
	if (p->x.status == 0 && p->announcement == NM_ASKED) {
		p->announcement = NM_SAID;
		p->rtr_queued = true;
		nm_await_announce(&p->trans->req->await, p->x.awaited);
		nm_out_answer(p->trans->gate, &p->rtr);
		return;
	}
	if (p->x.status == 0)
		p->rail->driver->xfer_recall(&p->x, true);
	if (p->announcement == NM_ASKED)
		p->trans->req->announced = NULL;
	part_free(pass->core, p);
}

int nm_rdv_recall(struct nm_req *req, bool for_good)
{
	struct nm_part *p = req->announced;
	struct nm_core *core;

	if (p == NULL)
		return 0;
	core = p->trans->gate->core;
	if (p->announcement == NM_ASKED) {
		p->announcement = NM_WITHDRAWN;
	} else if (p->rail->driver->xfer_recall(&p->x, for_good) < 0) {
		return -EALREADY;
	} else {
		if (p->rtr_queued)
			nm_out_answer_over(core, &p->rtr);
		part_free(core, p);
	}
	req->announced = NULL;
	return 0;
}

void nm_rdv_in_vain(struct nm_pass *pass, struct nm_req *req,
		    struct nm_gate *gate)
{
	if (likely(req->announced == NULL))
		return;
	nm_trial_learn(&gate->announcing, false);
	if (nm_rdv_recall(req, false) == 0)
		return;
	nm_rdv_recall(req, true);
	nm_gate_fail(pass, gate, -EBADMSG);
}

/* The message has gone where it was told. False: it has not, it lies. */
static bool meet(struct nm_pass *pass, struct nm_req *req, struct nm_gate *gate,
		 const struct nm_wire_chunk *rts)
{
	struct nm_part *p = req->announced;
	struct nm_wire_part part;
	size_t at = 0;

	nm_wire_get_part(rts->tail, &at, &part);
	if (p == NULL || p->id != rts->id || p->announcement != NM_SAID ||
	    p->rtr_queued || rts->nparts != 1 || part.rail != p->rail->index ||
	    part.length > p->x.length)
		return false;
	req->announced = NULL;
	req->gate = gate;
	req->tag = rts->tag;
	req->sent = part.length;
	req->length = part.length;
	p->announcement = NM_NO_MORE;
	nm_trial_learn(&gate->announcing, true);
	p->x.length = part.length;
	p->x.peers.length = part.token_len;
	memcpy(p->x.peers.bytes, part.token, part.token_len);
	see(p->trans, NM_SAW_RDV_IN);
	post(&pass->posts, p, NM_POST_XFER_MEET);
	return true;
}

/* --- a receive that has met an RTS --- */

/* False: it needs no answer, or deserves none. */
static bool is_to_be_granted(struct nm_pass *pass, struct nm_req *req,
			     struct nm_gate *gate,
			     const struct nm_wire_chunk *rts)
{
	bool announced = rts->flags & NM_WIRE_ANNOUNCED;

	if (announced && gate->error == 0 && meet(pass, req, gate, rts))
		return false;
	nm_rdv_in_vain(pass, req, gate);
	if (!announced && gate->error == 0)
		return true;
	req->gate = gate;
	req->tag = rts->tag;
	req->sent = rts->length;
	req->length = 0;
	nm_req_finish(pass, req, -ECONNRESET);
	nm_gate_fail(pass, gate, -EBADMSG);
	return false;
}

void nm_rdv_matched(struct nm_pass *pass, struct nm_req *req,
		    struct nm_gate *gate, const struct nm_wire_chunk *rts)
{
	size_t want =
		rts->length < req->data.length ? rts->length : req->data.length;
	int error = want < rts->length ? -EMSGSIZE : 0;
	struct nm_trans *t = NULL;
	size_t offset = 0, at = 0;

	if (!is_to_be_granted(pass, req, gate, rts))
		return;
	req->gate = gate;
	req->tag = rts->tag;
	req->sent = rts->length;
	req->length = want;
	if (want > 0) {
		t = trans_new(gate, req, rts->nparts, false);
		t->error = error;
		see(t, NM_SAW_RDV_IN);
	} else {
		nm_req_finish(pass, req, error);
	}
	for (int i = 0; i < rts->nparts; i++) {
		struct nm_wire_part part;

		nm_wire_get_part(rts->tail, &at, &part);
		if (offset < want)
			want_part(pass, t, &part, offset, want - offset,
				  rts->priority);
		else
			nm_part_refuse(gate, part.id, 0);
		offset += part.length;
	}
}

void nm_rdv_ready(struct nm_pass *pass, struct nm_xfer *x)
{
	struct nm_part *p = container_of(x, struct nm_part, x);

	p->heard_ready = true;
	if (p->announcement != NM_NO_MORE) {
		announce_ready(pass, p);
		return;
	}
	if (p->trans->gate->error != 0) {
		part_end(pass->core, p);
		return;
	}
	p->rtr_queued = true;
	nm_out_answer(p->trans->gate, &p->rtr);
	if (unlikely(p->let_go))
		nm_redo_strand(pass, p);
}

void nm_rdv_chunk(struct nm_answer *a, struct nm_wire_chunk *c)
{
	const struct nm_part *p = a->part;
	const struct nm_req *req = p->trans->req;

	c->kind = NM_WIRE_KIND_RTR;
	c->id = a->id;
	c->length = p->x.length;
	c->tail_len = p->x.mine.length;
	c->tail = p->x.mine.bytes;
	if (unlikely(p->trans->is_send)) {
		c->kind = NM_WIRE_KIND_OFFER;
		c->id = p->id;
		c->rail = (uint8_t)p->rail->index;
	} else if (unlikely(p->stranded)) {
		c->flags = NM_WIRE_AGAIN;
		c->tail_len = 0;
	}
	if (likely(p->announcement != NM_SAID))
		return;
	c->kind = NM_WIRE_KIND_ANNOUNCE;
	c->id = p->id;
	c->rail = (uint8_t)p->rail->index;
	c->session = req->session->id;
	c->tag = req->tag;
	c->seq = req->session->peers[p->trans->gate->rank].recv_seq;
}

void nm_rdv_chunk_over(struct nm_core *core, struct nm_answer *a)
{
	struct nm_part *p = a->part;

	p->rtr_queued = false;
	part_end(core, p);
}

/* --- the sender, when it is answered --- */

int nm_rdv_rtr(struct nm_pass *pass, struct nm_gate *gate,
	       const struct nm_wire_chunk *rtr)
{
	struct nm_part *p = nm_ids_find(&pass->core->offers, rtr->id);
	bool retracted = rtr->flags & NM_WIRE_RETRACTED;

	if (p == NULL || !p->trans->is_send || p->granted || p->rtr_queued ||
	    p->trans->gate != gate || rtr->length > p->x.length ||
	    (retracted && (rtr->length != 0 || !p->trans->req->send.retracted)))
		return -EBADMSG;
	base_list_remove(&p->on);
	if (rtr->length == 0) {
		nm_part_over(pass, p, retracted ? -ECANCELED : 0);
		return 0;
	}
	p->granted = true;
	p->x.length = rtr->length;
	p->x.peers.length = rtr->tail_len;
	memcpy(p->x.peers.bytes, rtr->tail, rtr->tail_len);
	if (unlikely((rtr->flags & NM_WIRE_AGAIN) ||
		     (gate->lost & 1u << p->rail->index)))
		return nm_redo_granted(pass, p, rtr->flags & NM_WIRE_AGAIN);
	post(&pass->posts, p, NM_POST_XFER_SEND);
	return 0;
}

/* --- both --- */

void nm_rdv_done(struct nm_pass *pass, struct nm_xfer *x)
{
	struct nm_part *p = container_of(x, struct nm_part, x);
	struct nm_gate *gate = p->trans->gate;
	const struct nm_rail *rail = p->rail;
	bool is_send = p->trans->is_send;

	/* The sender has lost the rail, and asks whether it is over. */
	if (unlikely(p->offered) && !x->lost)
		nm_part_refuse(gate, p->rtr.id, 0);
	if (likely(!x->lost) || !nm_redo_lost(pass, p))
		nm_part_over(pass, p, x->status < 0 ? -ECONNRESET : 0);
	if (!is_send)
		grant_next(pass, gate, rail);
}

void nm_rdv_fail(struct nm_pass *pass, struct nm_gate *gate)
{
	struct base_link *n;

	while ((n = base_list_take_front(&gate->offers)) != NULL)
		nm_part_over(pass, container_of(n, struct nm_part, on),
			     -ECONNRESET);
}
