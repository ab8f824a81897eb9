/*
 * Requests come in, in the order in which they were pushed: sends get their
 * number and go to their gate, receives and probes go to the match tables.
 */
#include "core.h"
#include "trace.h"

#include <errno.h>

/* Announcements are for such. */
static bool is_large(const struct nm_gate *gate, const struct nm_req *req)
{
	return req->data.length > load_relaxed(&gate->eager_max);
}

static void take_send(struct nm_pass *pass, struct nm_req *req)
{
	struct nm_gate *gate = req->gate;
	struct nm_peer *peer;

	if (unlikely(gate->error != 0)) {
		nm_req_finish(pass, req, -ECONNRESET);
		return;
	}
	peer = &req->session->peers[gate->rank];
	peer->sent[peer->send_seq % NM_RECENT] = req->tag;
	req->seq = peer->send_seq++;
	nm_trace_message(MARCEL_TRACE_SEND, req->session->id, gate, req->tag,
			 req->seq, req->length, 0);
	if (unlikely(gate->announced != NULL || is_large(gate, req)))
		nm_announce_use(gate, req);
	nm_out_send(pass, req);
}

BASE_COLD void nm_submit_connect(struct nm_pass *pass, struct nm_link *link)
{
	link->first.kind = NM_POST_CONNECT;
	nm_chain_append(&pass->posts, &link->first.node);
}

BASE_COLD void nm_submit_await(struct nm_pass *pass, struct nm_gate *gate)
{
	gate->awaited = true;
	for (int i = 0; i < gate->nlinks; i++)
		nm_submit_connect(pass, gate->links[i]);
}

static BASE_COLD void watch_members(struct nm_pass *pass, struct nm_session *s)
{
	s->is_watched = true;
	for (int rank = 0; rank < pass->core->size; rank++) {
		struct nm_gate *gate = &pass->core->gates[rank];

		if (s->nmembers <= NM_WATCHED_MAX && rank != pass->core->rank &&
		    !s->peers[rank].is_outside && !gate->awaited)
			nm_submit_await(pass, gate);
	}
}

bool nm_submit_in_vain(struct nm_pass *pass, struct nm_session *s,
		       const struct nm_gate *from)
{
	if (from != NULL)
		return from->error != 0;
	if (unlikely(!s->is_watched))
		watch_members(pass, s);
	return s->ndead > 0;
}

static inline bool in_vain(struct nm_pass *pass, const struct nm_req *req)
{
	return nm_submit_in_vain(pass, req->session, req->gate);
}

static int take_recv(struct nm_pass *pass, struct nm_req *req)
{
	struct nm_match *m = &pass->core->match;
	struct nm_match_msg *found;
	int rc = nm_match_post(m, &req->recv, &found);

	if (rc < 0)
		return rc;
	if (found != NULL) {
		nm_in_deliver_kept(pass, req,
				   container_of(found, struct nm_msg, match));
	} else if (unlikely(in_vain(pass, req))) {
		nm_match_cancel(m, &req->recv);
		nm_req_finish(pass, req, -ECONNRESET);
	} else if (unlikely(req->gate != NULL && !req->recv.any_tag &&
			    is_large(req->gate, req))) {
		nm_announce_next(pass, req->session, req->gate, req->tag);
	}
	return 0;
}

static int take_probe(struct nm_pass *pass, struct nm_req *req)
{
	struct nm_match *m = &pass->core->match;
	struct nm_match_msg *found =
		nm_match_probe(m, req->recv.session, req->recv.gate,
			       req->recv.tag, req->recv.any_tag);

	if (found != NULL) {
		nm_in_probed(pass, req,
			     container_of(found, struct nm_msg, match));
		return 0;
	}
	if (in_vain(pass, req)) {
		nm_req_finish(pass, req, -ECONNRESET);
		return 0;
	}
	return nm_match_post_probe(m, &req->recv);
}

static int take_matching(struct nm_pass *pass, struct nm_req *req)
{
	if (unlikely(req->gate != NULL && !req->gate->awaited))
		nm_submit_await(pass, req->gate);
	return req->kind == NM_REQ_RECV ? take_recv(pass, req)
					: take_probe(pass, req);
}

void nm_submit_take(struct nm_pass *pass, struct nm_req *req)
{
	struct nm_core *core = pass->core;

	nm_pending_add(core, 1);
	switch (req->kind) {
	case NM_REQ_SEND:
		nm_count(&core->stats.sends);
		take_send(pass, req);
		return;
	case NM_REQ_MRECV:
		nm_count(&core->stats.receives);
		nm_in_deliver_kept(pass, req, req->msg);
		return;
	}
	req->session->nactive++;
	if (req->kind == NM_REQ_RECV)
		nm_count(&core->stats.receives);
	/* Receives keep their order, so one without memory holds up the rest.*/
	if (unlikely(core->stalled.first != NULL) ||
	    take_matching(pass, req) < 0)
		nm_chain_append(&core->stalled, &req->node);
}

void nm_submit_resume(struct nm_pass *pass)
{
	struct nm_chain stalled = pass->core->stalled;
	struct base_mpsc_node *n;

	if (stalled.first == NULL)
		return;
	nm_chain_init(&pass->core->stalled);
	while ((n = nm_chain_take(&stalled)) != NULL) {
		struct nm_req *req = container_of(n, struct nm_req, node);

		if (pass->core->stalled.first != NULL ||
		    take_matching(pass, req) < 0)
			nm_chain_append(&pass->core->stalled, n);
	}
}

/* Out of those that found no memory; false: it is none of them. */
static bool leave_stalled(struct nm_chain *stalled, struct nm_req *req)
{
	struct base_mpsc_node **at = &stalled->first;

	while (*at != NULL && *at != &req->node)
		at = &(*at)->next;
	if (*at == NULL)
		return false;
	*at = req->node.next;
	if (*at == NULL)
		stalled->last = at;
	return true;
}

int nm_submit_cancel(struct nm_pass *pass, struct nm_req *req)
{
	struct nm_core *core = pass->core;

	if (nm_rdv_recall(req, false) < 0)
		return -EALREADY;
	if (nm_match_cancel(&core->match, &req->recv) < 0 &&
	    !leave_stalled(&core->stalled, req))
		return -EALREADY;
	req->gate = NULL;
	nm_req_finish(pass, req, -ECANCELED);
	return 0;
}
