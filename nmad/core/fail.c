/*
 * A peer is gone: what waits for it ends with an error, the rest goes on.
 *
 * Receives from anyone end too, now and later, in sessions that it is a member
 * of, because the message that they wait for may have been the dead one's. What
 * a rail's owner has (packets, transfers) he ends himself.
 */
#include "core.h"
#include "part.h"
#include "watch.h"

#include <errno.h>
#include <string.h>

static void fail_sends(struct nm_pass *pass, struct nm_gate *gate)
{
	struct base_link *n;

	while ((n = base_list_first(&gate->out)) != NULL) {
		struct nm_req *req = container_of(n, struct nm_req, send.on);

		nm_out_dequeue(gate, req);
		nm_announce_unuse(pass->core, req);
		nm_req_finish(pass, req, -ECONNRESET);
	}
	nm_announce_forget(gate);
	while ((n = base_list_take_front(&gate->waiting)) != NULL) {
		struct nm_req *req = container_of(n, struct nm_req, send.on);

		nm_ids_put(&pass->core->syncs, req->send.id);
		req->error = -ECONNRESET;
		if (nm_req_part(req))
			nm_req_finish(pass, req, -ECONNRESET);
		else
			nm_pending_add(pass->core, -1);
	}
	nm_rdv_fail(pass, gate);
	nm_redo_fail(pass, gate);
	while ((n = base_list_first(&gate->answers)) != NULL)
		nm_out_answer_over(pass->core,
				   container_of(n, struct nm_answer, on));
}

static void fail_receives(struct nm_pass *pass, struct nm_gate *gate)
{
	struct nm_core *core = pass->core;
	struct base_list out;
	struct base_link *n;

	base_list_init(&out);
	base_list_for_each (s, &core->sessions) {
		struct nm_session *session =
			container_of(s, struct nm_session, on);

		nm_match_take_gate(&core->match, &session->match, gate, &out);
		if (session->peers[gate->rank].is_outside)
			continue;
		session->ndead++;
		nm_match_take_gate(&core->match, &session->match, NULL, &out);
	}
	while ((n = base_list_take_front(&out)) != NULL) {
		struct nm_req *req = container_of(n, struct nm_req, recv.link);

		nm_rdv_recall(req, true);
		nm_req_finish(pass, req, -ECONNRESET);
	}
}

/* Messages whose predecessors will never come. */
static void drop_parked(struct nm_core *core, struct nm_gate *gate)
{
	struct nm_msg *msg;

	base_list_for_each (n, &core->sessions) {
		struct nm_session *s = container_of(n, struct nm_session, on);
		struct nm_peer *peer = &s->peers[gate->rank];

		while ((msg = nm_parked_take_any(core, peer)) != NULL)
			nm_msg_free(core, msg);
	}
}

/* The order to the rail's owner to let go of a link; once. */
static void give_up(struct nm_pass *pass, struct nm_link *link)
{
	link->giveup.kind = NM_POST_GIVE_UP;
	nm_chain_append(&pass->posts, &link->giveup.node);
}

void nm_gate_mourn(struct nm_gate *gate, int error)
{
	if (!xchg_relaxed(&gate->mourned, true))
		base_warn("nmad", "rank %d: lost rank %d: %s", gate->core->rank,
			  gate->rank, strerror(-error));
}

void nm_gate_fail(struct nm_pass *pass, struct nm_gate *gate, int error)
{
	struct nm_core *core = pass->core;

	if (gate->error != 0)
		return;
	gate->error = error;
	core->ndead++;
	nm_gate_mourn(gate, error);
	gate->gathers = false;
	base_list_remove(&gate->active);
	nm_watch_see(core, NM_SAW_LOST, gate, 0, 0);
	fail_sends(pass, gate);
	fail_receives(pass, gate);
	nm_medium_fail(pass, gate);
	nm_lost_fail(pass, gate);
	drop_parked(core, gate);
	for (unsigned i = 0; i < NM_RAILS_MAX; i++) {
		struct nm_link *link = nm_gate_link(gate, i);

		if (link != NULL)
			give_up(pass, link);
	}
}
