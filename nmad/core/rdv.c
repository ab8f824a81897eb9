/*
 * Rendezvous: a large message first asks, then travels straight from memory to
 * memory.
 *
 *   sender                              receiver
 *   OFFERED  --- RTS(id, token) --->    matched: the driver has it
 *   (gate->offers)                      nm_rail_xfer_ready(): RTR queued
 *            <-- RTR(id, length, token) sent
 *   the driver has it
 *   nm_rail_xfer_done(): over           nm_rail_xfer_done(): over, once the
 *                                       RTR is in a packet
 *
 * A receiver that wants nothing (an empty buffer) answers an RTR of length 0,
 * and the send is over. A transfer is failed by who has it: by the rail's
 * owner while it is on link->xfers or on its way there, else by the core.
 */
#include "core.h"

#include <errno.h>
#include <string.h>

/* One side of one large message. */
struct nm_trans {
	/* l: core lock, while no driver has it  -: const */
	struct nm_xfer x;
	struct nm_answer rtr; /* l: receiver */
	struct nm_req *req;   /* -: */
	struct nm_gate *gate; /* -: */
	struct base_link on;  /* l: sender: gate->offers */
	int error;            /* l: receiver: -EMSGSIZE if cut */
	bool is_send;         /* -: */
	bool granted;         /* l: sender: the RTR has come */
	bool rtr_queued;      /* l: receiver */
	bool heard_ready;     /* l: receiver: nm_rdv_ready() was here */
	bool over;            /* l: the driver has done with it */
};

static struct nm_trans *trans_new(struct nm_gate *gate, struct nm_req *req,
				  struct nm_link *link, bool is_send)
{
	struct nm_core *core = gate->core;
	struct nm_trans *t = nm_mem_get(&core->mem, nm_mem_class(sizeof(*t)));

	memset(t, 0, sizeof(*t));
	t->req = req;
	t->gate = gate;
	t->is_send = is_send;
	base_link_init(&t->on);
	base_link_init(&t->x.on);
	t->x.link = link;
	t->x.data = req->data;
	t->x.id = nm_ids_get(&core->offers, t);
	if (t->x.id == 0) {
		nm_mem_put(&core->mem, nm_mem_class(sizeof(*t)), t);
		return NULL;
	}
	return t;
}

static void trans_free(struct nm_core *core, struct nm_trans *t)
{
	nm_ids_put(&core->offers, t->x.id);
	nm_mem_put(&core->mem, nm_mem_class(sizeof(*t)), t);
}

/*
 * Free it when nothing will come for it any more. Two owners of a rail may
 * enter the core in the other order than they had the rail in, so the end of a
 * transfer may be heard of before that it is ready.
 */
static void trans_end(struct nm_core *core, struct nm_trans *t)
{
	if (t->over && !t->rtr_queued && t->heard_ready == t->x.is_ready)
		trans_free(core, t);
}

static void post(struct nm_pass *pass, struct nm_trans *t, unsigned kind)
{
	t->x.done.kind = kind;
	nm_chain_append(&pass->posts, &t->x.done.node);
}

bool nm_rdv_offer(struct nm_gate *gate, struct nm_req *req,
		  struct nm_wire_chunk *rts)
{
	struct nm_link *link = gate->links[0];
	struct nm_trans *t = trans_new(gate, req, link, true);

	if (t == NULL)
		return false;
	t->x.length = req->data.length;
	if (link->rail->driver->xfer_offer != NULL)
		link->rail->driver->xfer_offer(&t->x);
	base_list_push_back(&gate->offers, &t->on);
	rts->rail = (uint8_t)link->rail->index;
	rts->id = t->x.id;
	rts->token_len = t->x.mine.length;
	rts->token = t->x.mine.bytes;
	return true;
}

static struct nm_link *link_of_rail(const struct nm_gate *gate, int index)
{
	for (int i = 0; i < gate->nlinks; i++)
		if (gate->links[i]->rail->index == index)
			return gate->links[i];
	return NULL;
}

bool nm_rdv_is_sane(const struct nm_gate *gate, const struct nm_wire_chunk *rts)
{
	return link_of_rail(gate, rts->rail) != NULL && rts->length <= SIZE_MAX;
}

/* The receiver wants nothing of the message: the send is over. */
static void refuse(struct nm_gate *gate, uint64_t id)
{
	struct nm_core *core = gate->core;
	struct nm_answer *a = nm_mem_get(&core->mem, nm_mem_class(sizeof(*a)));

	memset(a, 0, sizeof(*a));
	a->id = id;
	nm_out_answer(gate, a);
}

void nm_rdv_matched(struct nm_pass *pass, struct nm_req *req,
		    struct nm_gate *gate, const struct nm_wire_chunk *rts)
{
	size_t want =
		rts->length < req->data.length ? rts->length : req->data.length;
	int error = want < rts->length ? -EMSGSIZE : 0;
	struct nm_trans *t;

	req->gate = gate;
	req->tag = rts->tag;
	req->sent = rts->length;
	req->length = 0;
	if (gate->error != 0) {
		nm_req_finish(pass, req, -ECONNRESET);
		return;
	}
	req->length = want;
	if (want == 0) {
		refuse(gate, rts->id);
		nm_req_finish(pass, req, error);
		return;
	}
	t = trans_new(gate, req, link_of_rail(gate, rts->rail), false);
	base_check(t != NULL); /* fewer than the receives in flight */
	t->x.length = want;
	t->x.peers.length = rts->token_len;
	memcpy(t->x.peers.bytes, rts->token, rts->token_len);
	t->error = error;
	t->rtr.id = rts->id;
	t->rtr.trans = t;
	post(pass, t, NM_POST_XFER_RECV);
}

void nm_rdv_ready(struct nm_pass *pass, struct nm_xfer *x)
{
	struct nm_trans *t = container_of(x, struct nm_trans, x);

	t->heard_ready = true;
	if (t->gate->error != 0) {
		trans_end(pass->core, t);
		return;
	}
	t->rtr_queued = true;
	nm_out_answer(t->gate, &t->rtr);
}

void nm_rdv_rtr_chunk(struct nm_answer *a, struct nm_wire_chunk *rtr)
{
	const struct nm_xfer *x = &a->trans->x;

	rtr->kind = NM_WIRE_KIND_RTR;
	rtr->id = a->id;
	rtr->length = x->length;
	rtr->token_len = x->mine.length;
	rtr->token = x->mine.bytes;
}

void nm_rdv_rtr_over(struct nm_core *core, struct nm_answer *a)
{
	struct nm_trans *t = a->trans;

	t->rtr_queued = false;
	trans_end(core, t);
}

int nm_rdv_rtr(struct nm_pass *pass, struct nm_gate *gate,
	       const struct nm_wire_chunk *rtr)
{
	struct nm_core *core = pass->core;
	struct nm_trans *t = nm_ids_find(&core->offers, rtr->id);

	if (t == NULL || !t->is_send || t->granted || t->gate != gate ||
	    rtr->length > t->x.length)
		return -EBADMSG;
	base_list_remove(&t->on);
	if (rtr->length == 0) {
		nm_req_finish(pass, t->req, 0);
		trans_free(core, t);
		return 0;
	}
	t->granted = true;
	t->x.length = rtr->length;
	t->x.peers.length = rtr->token_len;
	memcpy(t->x.peers.bytes, rtr->token, rtr->token_len);
	post(pass, t, NM_POST_XFER_SEND);
	return 0;
}

void nm_rdv_done(struct nm_pass *pass, struct nm_xfer *x)
{
	struct nm_trans *t = container_of(x, struct nm_trans, x);
	struct nm_req *req = t->req;

	if (x->status < 0) {
		if (!t->is_send)
			req->length = 0;
		nm_req_finish(pass, req, -ECONNRESET);
	} else {
		nm_req_finish(pass, req, t->error);
	}
	t->over = true;
	trans_end(pass->core, t);
}

void nm_rdv_fail(struct nm_pass *pass, struct nm_gate *gate)
{
	struct base_link *n;

	while ((n = base_list_take_front(&gate->offers)) != NULL) {
		struct nm_trans *t = container_of(n, struct nm_trans, on);

		nm_req_finish(pass, t->req, -ECONNRESET);
		trans_free(pass->core, t);
	}
}
