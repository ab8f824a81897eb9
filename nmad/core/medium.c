/*
 * Medium messages over several rails (RenPar 2009, section 4.3): one that needs
 * no rendezvous is cut into parts, which leave as packets over several links at
 * once. The sender copies one, who is idle the others; where nobody is, nothing
 * is cut (strategies/split.c).
 *
 *   sender                             receiver
 *   PART(seq, 0, first half)  -------> whichever comes first is the envelope:
 *   PART(seq, half, second half) --->  matched in its turn, or kept
 *                                      the others find it by (session, seq)
 *
 * Until all parts have come the receiver has a record of the message, on
 * gate->medium. Parts of a message that was matched by its first are copied
 * into the user's memory after the lock has been released, by whoever has
 * brought them; those of any other are copied under it, into the memory of the
 * unexpected message, where all of it lies before it goes to a receive. The
 * message counts as here, is acknowledged and gives its credit back, when it is
 * whole; it can be found by a probe, and matched, from its first part on.
 *
 *   parts of a request (order(parts)):
 *     of a send       packets that have not left; and the match, if that is
 *                     waited for
 *     of a receive    copies that have not been made; and one more until all
 *                     parts are here, which the last part's copy takes over
 *
 * Core lock held, but for nm_medium_left() and nm_medium_copy().
 */
#include "core.h"
#include "trace.h"

#include <errno.h>
#include <string.h>

enum { LENGTH_MAX = NM_MEM_MAX - sizeof(struct nm_msg) };

/* A message of which some parts have come. */
struct nm_medium {
	/* l: all, core lock */
	struct base_link on; /* gate->medium, the newest first */
	uint64_t session, id;
	uint32_t seq, tag;
	size_t length, come; /* bytes: in all, and those that are here */
	struct nm_req *req;  /* that gets it, or NULL */
	struct nm_msg *msg;  /* where it is kept, or NULL */
	bool retracted;      /* its sender takes it back */
	unsigned nparts;
	struct {
		size_t offset, length;
	} parts[NM_WIRE_PARTS_MAX];
};

/* --- the sender --- */

static bool is_among(const struct nm_gate *gate, const struct nm_link *link,
		     const struct nm_share *shares, int n)
{
	for (int i = 0; i < n; i++)
		if (gate->links[shares[i].link] == link)
			return true;
	return false;
}

/* The shares, one of which goes over this link; 0: it is not cut. */
static int shares_of(struct nm_gate *gate, const struct nm_link *link,
		     const struct nm_req *req, struct nm_share *out)
{
	const struct nm_config *config = &gate->core->config;
	size_t length = req->data.length;
	int n;

	if (length > LENGTH_MAX || req->send.place != NULL ||
	    gate->credit_used + length > config->window)
		return 0;
	n = config->strategy->cut_eager(gate, length, out);
	return n > 1 && is_among(gate, link, out, n) ? n : 0;
}

/* Other packets than `first` are whole now, and left to who is idle. */
static void put_part(struct nm_gate *gate, struct nm_pkt *first,
		     struct nm_link *link, struct nm_req *req,
		     const struct nm_wire_chunk *c)
{
	struct nm_pkt *pkt = nm_out_pkt(gate->core, link);

	if (pkt != first)
		nm_pkt_init(pkt);
	nm_pkt_put_part(pkt, c, &req->data);
	pkt->post.kind = NM_POST_PART;
	pkt->part_of = req;
	if (pkt == first)
		return;
	nm_pkt_seal(pkt, 0);
	nm_count(&gate->nsent);
	nm_turn_take(&link->turn);
	nm_chain_append(&gate->posts, &pkt->post.node);
}

bool nm_medium_cut(struct nm_gate *gate, struct nm_pkt *first,
		   struct nm_req *req, const struct nm_wire_chunk *envelope)
{
	struct nm_wire_chunk c = *envelope;
	struct nm_share shares[NM_GATE_LINKS];
	bool sync = req->flags & NM_REQ_SYNC;
	int n;

	if (first->nchunks > 0)
		return false;
	n = shares_of(gate, first->link, req, shares);
	c.kind = NM_WIRE_KIND_PART;
	c.flags = sync ? NM_WIRE_SYNC : 0;
	if (n == 0 || !nm_out_leaves(gate, req, &c))
		return false;
	store_relaxed(&req->parts, (uint8_t)(n + sync));
	nm_count(&gate->core->stats.cut_out);
	for (int i = 0; i < n; i++) {
		c.tail_len = (uint32_t)shares[i].bytes;
		put_part(gate, first, gate->links[shares[i].link], req, &c);
		c.offset += c.tail_len;
	}
	base_check(c.offset == c.length);
	return true;
}

bool nm_medium_left(struct nm_req *req, int error)
{
	/* The other part of a synchronous send fails in the core. */
	bool counts = !(req->flags & NM_REQ_SYNC);

	if (error != 0 && counts)
		fetch_or_relaxed(&req->parts, NM_PART_LOST);
	if (!nm_req_part(req))
		return false;
	if (load_relaxed(&req->parts) & NM_PART_LOST)
		req->error = -ECONNRESET;
	/* Who signals it takes the last part of a synchronous one off. */
	store_relaxed(&req->parts, 1);
	return true;
}

/* --- the receiver: messages of which parts are missing --- */

static struct nm_medium *find(const struct nm_gate *gate,
			      const struct nm_wire_chunk *c)
{
	base_list_for_each (n, &gate->medium) {
		struct nm_medium *m = container_of(n, struct nm_medium, on);

		if (m->seq == c->seq && m->session == c->session)
			return m;
	}
	return NULL;
}

/* NULL: the gate is dead. */
static struct nm_medium *find_kept(const struct nm_gate *gate,
				   const struct nm_msg *msg)
{
	base_list_for_each (n, &gate->medium) {
		struct nm_medium *m = container_of(n, struct nm_medium, on);

		if (m->msg == msg)
			return m;
	}
	return NULL;
}

static struct nm_medium *newest(const struct nm_gate *gate)
{
	return container_of(base_list_first(&gate->medium), struct nm_medium,
			    on);
}

static void medium_new(struct nm_gate *gate, const struct nm_wire_chunk *c)
{
	struct nm_medium *m =
		nm_mem_get(&gate->core->mem, nm_mem_class(sizeof(*m)));

	memset(m, 0, sizeof(*m));
	m->session = c->session;
	m->seq = c->seq;
	m->tag = c->tag;
	m->id = c->id;
	m->length = c->length;
	base_list_push_front(&gate->medium, &m->on);
}

static void medium_free(struct nm_gate *gate, struct nm_medium *m)
{
	base_list_remove(&m->on);
	nm_mem_put(&gate->core->mem, nm_mem_class(sizeof(*m)), m);
}

/* One more part. False: it is of another message, or was here before. */
static bool add(struct nm_medium *m, const struct nm_wire_chunk *c)
{
	if (c->tag != m->tag || c->id != m->id || c->length != m->length ||
	    m->nparts == NM_WIRE_PARTS_MAX)
		return false;
	for (unsigned i = 0; i < m->nparts; i++)
		if (c->offset < m->parts[i].offset + m->parts[i].length &&
		    m->parts[i].offset < c->offset + c->tail_len)
			return false;
	m->parts[m->nparts].offset = c->offset;
	m->parts[m->nparts++].length = c->tail_len;
	m->come += c->tail_len;
	return true;
}

/* Its payload goes where the message goes; nowhere, if nobody wants it. */
static void place(struct nm_medium *m, struct nm_pkt_in *in,
		  const struct nm_wire_chunk *c)
{
	if (m->msg != NULL) {
		memcpy(m->msg->data + c->offset, c->tail, c->tail_len);
	} else if (m->req != NULL) {
		if (m->come < m->length)
			fetch_add_relaxed(&m->req->parts, 1);
		in->event.kind = NM_EVENT_PART_IN;
		in->part.req = m->req;
		in->part.from = c->tail;
		in->part.offset = c->offset;
		in->part.length = c->tail_len;
	}
}

/* All parts are here. */
static void whole(struct nm_pass *pass, struct nm_gate *gate,
		  struct nm_medium *m)
{
	struct nm_req *req = m->req;

	if (m->msg != NULL) {
		m->msg->kind = NM_WIRE_KIND_EAGER;
		if (req != NULL)
			nm_in_deliver_kept(pass, req, m->msg);
		else
			nm_retract_whole(gate, m->session, m->msg,
					 m->retracted);
	} else if (req != NULL) {
		if (m->id != 0)
			nm_out_ack(gate, m->id);
		nm_in_credit(gate, m->length);
		nm_req_settle(pass, req, req->error);
	}
	medium_free(gate, m);
}

int nm_medium_heard(struct nm_pass *pass, struct nm_gate *gate,
		    struct nm_pkt_in *in, const struct nm_wire_chunk *c)
{
	const unsigned char *first =
		in->data + NM_WIRE_HEAD + nm_wire_chunk_size(c);
	struct nm_medium *m = find(gate, c);

	if (c->tail != first || c->length > LENGTH_MAX)
		return -EBADMSG;
	if (m == NULL) {
		medium_new(gate, c);
		nm_count(&pass->core->stats.cut_in);
		if (nm_in_envelope(pass, gate, c) < 0 || gate->error != 0)
			return -EBADMSG;
		m = newest(gate);
	}
	if (!add(m, c))
		return -EBADMSG;
	place(m, in, c);
	if (m->come == m->length)
		whole(pass, gate, m);
	return 0;
}

/* --- where the newest goes --- */

void nm_medium_kept(struct nm_gate *gate, struct nm_msg *msg)
{
	newest(gate)->msg = msg;
}

static void give(struct nm_medium *m, struct nm_req *req, struct nm_gate *gate)
{
	req->gate = gate;
	req->tag = m->tag;
	req->sent = m->length;
	m->req = req;
}

/* The announcement that it has may have been taken: the gate is dead then. */
static void fail(struct nm_pass *pass, struct nm_req *req, struct nm_gate *gate,
		 uint32_t tag)
{
	req->gate = gate;
	req->tag = tag;
	req->length = 0;
	nm_req_finish(pass, req, -ECONNRESET);
}

void nm_medium_matched(struct nm_pass *pass, struct nm_req *req,
		       struct nm_gate *gate, const struct nm_wire_chunk *c)
{
	size_t room = req->data.length;

	nm_rdv_in_vain(pass, req, gate);
	if (gate->error != 0) {
		fail(pass, req, gate, c->tag);
		return;
	}
	give(newest(gate), req, gate);
	req->length = c->length < room ? c->length : room;
	req->error = room < c->length ? -EMSGSIZE : 0;
	store_relaxed(&req->parts, 1);
}

/* --- one that was kept, whose parts have not all come --- */

void nm_medium_taken(struct nm_pass *pass, struct nm_req *req,
		     struct nm_msg *msg)
{
	struct nm_gate *gate = msg->match.gate;
	struct nm_medium *m;

	nm_rdv_in_vain(pass, req, gate);
	m = find_kept(gate, msg);
	if (m != NULL) {
		give(m, req, gate);
		return;
	}
	req->sent = msg->length;
	fail(pass, req, gate, msg->match.tag);
	nm_msg_free(pass->core, msg);
}

void nm_medium_retract(const struct nm_gate *gate, const struct nm_msg *msg)
{
	struct nm_medium *m = find_kept(gate, msg);

	if (m != NULL)
		m->retracted = true;
}

void nm_medium_lost(struct nm_gate *gate, const struct nm_msg *msg)
{
	struct nm_medium *m = find_kept(gate, msg);

	if (m != NULL)
		m->msg = NULL;
}

/* --- after the lock was released --- */

void nm_medium_copy(struct nm_pkt_in *in)
{
	struct nm_req *req = in->part.req;
	size_t room = req->data.length, length = in->part.length;

	if (in->part.offset < room) {
		if (length > room - in->part.offset)
			length = room - in->part.offset;
		nm_data_copy_in(&req->data, in->part.offset, in->part.from,
				length);
	}
	if (!nm_req_part(req))
		return;
	nm_trace_done(req);
	piom_cond_signal(&req->done);
}

/* --- the gate is dead --- */

void nm_medium_fail(struct nm_pass *pass, struct nm_gate *gate)
{
	struct base_link *n;

	while ((n = base_list_first(&gate->medium)) != NULL) {
		struct nm_medium *m = container_of(n, struct nm_medium, on);
		struct nm_req *req = m->req;

		if (req != NULL && m->msg != NULL)
			nm_msg_free(pass->core, m->msg);
		if (req != NULL) {
			req->length = 0;
			nm_req_settle(pass, req, -ECONNRESET);
			/* Of the copies that are under way the last ends it. */
			if (m->msg != NULL || nm_req_part(req))
				nm_chain_append(&pass->done, &req->node);
		}
		medium_free(gate, m);
	}
}
