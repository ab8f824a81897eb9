/*
 * What waits to be sent: a link that is free asks the strategy for a packet.
 */
#include "core.h"
#include "watch.h"

#include <string.h>

void nm_out_activate(struct nm_gate *gate)
{
	if (unlikely(gate->gathers))
		nm_burst_leave(gate);
	if (!base_link_is_on(&gate->active))
		base_list_push_back(&gate->core->active, &gate->active);
}

void nm_out_dequeue(struct nm_gate *gate, struct nm_req *req)
{
	const struct nm_strategy *strategy = gate->core->config.strategy;

	if (strategy->unqueued != NULL)
		strategy->unqueued(gate, req);
	base_list_remove(&req->send.on);
	req->session->nactive--;
}

void nm_out_reply(struct nm_gate *gate, uint8_t kind, uint64_t id,
		  uint8_t flags)
{
	struct nm_core *core = gate->core;
	struct nm_answer *a = nm_mem_get(&core->mem, nm_mem_class(sizeof(*a)));

	memset(a, 0, sizeof(*a));
	a->id = id;
	a->kind = kind;
	a->flags = flags;
	nm_out_answer(gate, a);
}

void nm_out_ack(struct nm_gate *gate, uint64_t id)
{
	nm_out_reply(gate, NM_WIRE_KIND_ACK, id, 0);
}

void nm_out_answer(struct nm_gate *gate, struct nm_answer *a)
{
	nm_pending_add(gate->core, 1);
	base_list_push_back(&gate->answers, &a->on);
	nm_out_activate(gate);
}

/* The answer is in a packet or never will be. */
void nm_out_answer_over(struct nm_core *core, struct nm_answer *a)
{
	base_list_remove(&a->on);
	nm_pending_add(core, -1);
	if (a->part != NULL)
		nm_rdv_chunk_over(core, a);
	else if (a->kind == NM_WIRE_KIND_RESENT)
		nm_lost_forget(a);
	else if (a->kind == NM_WIRE_KIND_RETRACT)
		nm_retract_over(core, a);
	else
		nm_mem_put(&core->mem, nm_mem_class(sizeof(*a)), a);
}

/* False: nothing fits any more; what is resent has its packet to itself. */
static BASE_COLD bool special_chunk(struct nm_gate *gate, struct nm_pkt *pkt,
				    struct nm_answer *a,
				    struct nm_wire_chunk *c)
{
	switch (a->kind) {
	case NM_WIRE_KIND_RETRACT:
		nm_retract_chunk(a, c);
		break;
	case NM_WIRE_KIND_LOST:
		c->rail = (uint8_t)a->id;
		break;
	case NM_WIRE_KIND_RESENT:
		nm_lost_add(gate, pkt, a);
		return false;
	}
	return true;
}

static bool add_answer(struct nm_gate *gate, struct nm_pkt *pkt)
{
	struct nm_answer *a = container_of(base_list_first(&gate->answers),
					   struct nm_answer, on);
	struct nm_wire_chunk c = { .kind = a->kind,
				   .flags = a->flags,
				   .id = a->id };

	if (a->part != NULL)
		nm_rdv_chunk(a, &c);
	else if (unlikely(a->kind != NM_WIRE_KIND_ACK) &&
		 !special_chunk(gate, pkt, a, &c))
		return false;
	if (!nm_pkt_fits(pkt, nm_wire_chunk_size(&c), NULL))
		return false;
	nm_pkt_put(pkt, &c, NULL);
	nm_out_answer_over(gate->core, a);
	return true;
}

/*
 * An envelope never waits: a message that is too large, or for which there is
 * no credit, goes by rendezvous, which is an envelope now and payload later.
 */
static bool needs_rdv(const struct nm_gate *gate, const struct nm_req *req)
{
	size_t length = req->data.length;

	return length > load_relaxed(&gate->eager_max) ||
	       (length > NM_FREE_PAYLOAD &&
		gate->credit_used + length > gate->core->config.window);
}

static inline void use_credit(struct nm_gate *gate, size_t length)
{
	if (length > NM_FREE_PAYLOAD)
		gate->credit_used += length;
}

static bool add_rts(struct nm_gate *gate, struct nm_pkt *pkt,
		    struct nm_req *req, struct nm_wire_chunk *c)
{
	unsigned char parts[NM_WIRE_PARTS_BYTES];

	if (!nm_pkt_fits(pkt, nm_rdv_rts_size(gate), NULL))
		return false;
	c->kind = NM_WIRE_KIND_RTS;
	c->priority = req->send.priority;
	c->tail = parts;
	if (!nm_rdv_offer(gate, pkt, req, c, parts))
		return false;
	nm_out_dequeue(gate, req);
	req->flags |= NM_REQ_RDV;
	nm_count(&gate->core->stats.rdv_out);
	nm_watch_see(gate->core, NM_SAW_RDV_OUT, gate, c->tag,
		     req->data.length);
	nm_pkt_put(pkt, c, NULL);
	return true;
}

BASE_INLINE bool leaves(struct nm_gate *gate, struct nm_req *req,
			struct nm_wire_chunk *c)
{
	struct nm_core *core = gate->core;

	if (req->flags & NM_REQ_SYNC) {
		c->id = nm_ids_get(&core->syncs, req);
		if (c->id == 0)
			return false;
		req->send.id = c->id;
		nm_out_dequeue(gate, req);
		base_list_push_back(&gate->waiting, &req->send.on);
	} else {
		nm_out_dequeue(gate, req);
		nm_pending_add(core, -1);
	}
	use_credit(gate, c->length);
	nm_count(&core->stats.eager_out);
	return true;
}

bool nm_out_leaves(struct nm_gate *gate, struct nm_req *req,
		   struct nm_wire_chunk *c)
{
	return leaves(gate, req, c);
}

static bool add_eager(struct nm_gate *gate, struct nm_pkt *pkt,
		      struct nm_req *req, struct nm_wire_chunk *c)
{
	c->kind = NM_WIRE_KIND_EAGER;
	if (req->flags & NM_REQ_SYNC)
		c->flags = NM_WIRE_SYNC;
	if (!nm_pkt_fits(pkt, nm_wire_chunk_size(c), &req->data) ||
	    !leaves(gate, req, c))
		return false;
	nm_pkt_put(pkt, c, &req->data);
	nm_chain_append(&pkt->reqs, &req->node);
	return true;
}

bool nm_out_add_send(struct nm_gate *gate, struct nm_pkt *pkt,
		     struct nm_req *req, bool yields)
{
	struct nm_wire_chunk c = { .tag = req->tag,
				   .seq = req->seq,
				   .session = req->session->id,
				   .length = req->data.length };
	bool added;

	if (unlikely(req->data.length >= gate->cut_min) && !yields &&
	    nm_medium_cut(gate, pkt, req, &c))
		return true;
	if (yields || needs_rdv(gate, req))
		added = add_rts(gate, pkt, req, &c);
	else
		added = add_eager(gate, pkt, req, &c);
	if (added && (req->flags & NM_REQ_NOW))
		pkt->now = true;
	return added;
}

bool nm_out_add(struct nm_gate *gate, struct nm_pkt *pkt)
{
	struct base_link *n = base_list_first(&gate->out);

	if (!base_list_is_empty(&gate->answers))
		return add_answer(gate, pkt);
	if (n == NULL)
		return false;
	return nm_out_add_send(gate, pkt,
			       container_of(n, struct nm_req, send.on), false);
}

/* A link whose turn nobody has, or NULL: then its end will be heard of. */
static struct nm_link *free_link(struct nm_gate *gate)
{
	for (int i = 0; i < gate->nlinks; i++) {
		struct nm_link *link = gate->links[gate->turn];

		if (++gate->turn == gate->nlinks)
			gate->turn = 0;
		if (nm_turn_is_free(&link->turn))
			return link;
	}
	for (int i = 0; i < gate->nlinks; i++)
		if (nm_turn_want(&gate->links[i]->turn, &gate->core->hunger))
			return gate->links[i];
	return NULL;
}

static bool wants_credit_back(const struct nm_gate *gate)
{
	return gate->credit_back > 0 &&
	       gate->credit_back >= gate->core->config.window / 4;
}

_Static_assert(sizeof(struct nm_pkt) <= NM_MEM_PKT &&
		       sizeof(struct nm_pkt) > NM_MEM_PKT - 64,
	       "a packet has a class of its own");

/* From here on it is the link's. */
static BASE_COLD struct nm_pkt *first_pkt(struct nm_core *core,
					  struct nm_link *link)
{
	struct nm_pkt *pkt = nm_mem_get(&core->mem, nm_mem_class(sizeof(*pkt)));

	memset(pkt, 0, sizeof(*pkt));
	pkt->link = link;
	link->pkt = pkt;
	return pkt;
}

struct nm_pkt *nm_out_pkt(struct nm_core *core, struct nm_link *link)
{
	return likely(link->pkt != NULL) ? link->pkt : first_pkt(core, link);
}

/* The packet is whole: it takes the link's turn, and goes to the rail. */
BASE_INLINE void launch(struct nm_pass *pass, struct nm_gate *gate,
			struct nm_link *link, struct nm_pkt *pkt)
{
	uint32_t credit = gate->credit_back < UINT32_MAX
				  ? (uint32_t)gate->credit_back
				  : UINT32_MAX;

	gate->credit_back -= credit;
	nm_pkt_seal(pkt, credit);
	nm_count(&gate->nsent);
	nm_turn_take(&link->turn);
	nm_chain_append(&pass->posts, &pkt->post.node);
}

/* A packet for the link; false: nothing to be said. */
static bool form(struct nm_pass *pass, struct nm_gate *gate,
		 struct nm_link *link)
{
	struct nm_pkt *pkt = nm_out_pkt(pass->core, link);

	nm_pkt_init(pkt);
	pass->core->config.strategy->pack(link, pkt);
	if (pkt->nchunks == 0 && !wants_credit_back(gate))
		return false;
	if (pkt->nchunks > 1)
		pkt->awaited = NULL;
	launch(pass, gate, link, pkt);
	return true;
}

/* Eager, without a question of parts or answers. */
static bool is_plain(const struct nm_gate *gate, const struct nm_req *req)
{
	return !needs_rdv(gate, req) && req->data.kind == NM_DATA_FLAT &&
	       !(req->flags & NM_REQ_SYNC);
}

/*
 * What most messages are: eager, to a peer for whom nothing else waits, and the
 * one link is free. No strategy that is `plain` could do anything but form this
 * packet, so it is not asked. False: it is not so.
 */
static bool send_alone(struct nm_pass *pass, struct nm_req *req)
{
	struct nm_gate *gate = req->gate;
	struct nm_link *link = gate->links[0];
	struct nm_wire_chunk c;
	struct nm_pkt *pkt;

	if (gate->nlinks != 1 || base_link_is_on(&gate->active) ||
	    gate->is_dear || !pass->core->config.strategy->plain ||
	    !is_plain(gate, req) || link->pkt == NULL ||
	    !nm_turn_is_free(&link->turn))
		return false;

	/* --- committed --- */
	c.kind = NM_WIRE_KIND_EAGER;
	c.flags = 0;
	c.tag = req->tag;
	c.seq = req->seq;
	c.session = req->session->id;
	c.length = req->data.length;
	pkt = link->pkt;
	nm_pkt_init(pkt);
	nm_pkt_put(pkt, &c, &req->data);
	pkt->now = req->flags & NM_REQ_NOW;
	nm_chain_append(&pkt->reqs, &req->node);
	nm_pending_add(pass->core, -1);
	use_credit(gate, c.length);
	nm_count(&pass->core->stats.eager_out);
	launch(pass, gate, link, pkt);
	return true;
}

void nm_out_send(struct nm_pass *pass, struct nm_req *req)
{
	struct nm_gate *gate = req->gate;
	const struct nm_strategy *strategy = pass->core->config.strategy;

	if (likely(send_alone(pass, req)))
		return;
	req->session->nactive++;
	base_list_push_back(&gate->out, &req->send.on);
	if (strategy->queued != NULL)
		strategy->queued(gate, req);
	if (gate->is_dear && !pass->polls && !(req->flags & NM_REQ_NOW) &&
	    nm_burst_keeps(pass, gate, req->data.length))
		return;
	nm_out_activate(gate);
}

/*
 * Behind the packets what came with them; but other packets are left to who is
 * idle, at once, or to whoever polls before that one.
 */
static void post_others(struct nm_pass *pass, struct nm_gate *gate)
{
	struct base_mpsc_node *n;

	while ((n = nm_chain_take(&gate->posts)) != NULL) {
		struct nm_event *e = container_of(n, struct nm_event, node);

		if (e->kind != NM_POST_PART) {
			nm_chain_append(&pass->posts, n);
			continue;
		}
		nm_rail_push(&nm_post_rail(e)->lock, n);
		pass->kick = true;
	}
}

void nm_out_form(struct nm_pass *pass)
{
	struct nm_core *core = pass->core;
	struct base_link *n = core->active.head.next, *next;

	if (load_relaxed(&core->hunger.word) != 0)
		store_relaxed(&core->hunger.word, 0);
	for (; n != &core->active.head; n = next) {
		struct nm_gate *gate = container_of(n, struct nm_gate, active);
		struct nm_link *link;

		next = n->next;
		while (nm_gate_has_output(gate) || wants_credit_back(gate)) {
			link = free_link(gate);
			if (link == NULL || !form(pass, gate, link))
				break;
		}
		if (unlikely(gate->posts.first != NULL))
			post_others(pass, gate);
		if (!nm_gate_has_output(gate) && !wants_credit_back(gate))
			base_list_remove(&gate->active);
	}
}
