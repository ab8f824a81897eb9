/*
 * Receiving: fill the caller's request and submit it.
 */
#include "req.h"

#include <marcel/errno.h>

#include "../core/core.h"

static bool mask_is_good(nm_tag_t mask)
{
	return mask == NM_TAG_EXACT || mask == NM_TAG_ANY;
}

static void fill(struct nm_req *req, enum nm_req_kind kind,
		 struct nm_session *s, struct nm_gate *from, nm_tag_t tag)
{
	piom_cond_init(&req->done);
	req->kind = (uint8_t)kind;
	req->flags = 0;
	req->has_fn = false;
	req->error = 0;
	req->session = s;
	req->gate = from;
	req->tag = tag;
	req->length = 0;
	req->sent = 0;
	req->copy_from = NULL;
	req->msg = NULL;
	req->announced = NULL;
	nm_await_init(&req->await, false);
}

BASE_PUBLIC int nm_sr_irecv(struct nm_session *s, struct nm_gate *from,
			    nm_tag_t tag, nm_tag_t mask,
			    const struct nm_data *data,
			    struct nm_sr_request *request)
{
	struct nm_req *req = nm_req_of(request);

	if (unlikely(s == NULL || !nm_data_is_good(data) || req == NULL ||
		     !mask_is_good(mask)))
		return -EINVAL;

	/* --- committed --- */
	fill(req, NM_REQ_RECV, s, from, tag);
	nm_await_init(&req->await,
		      from != NULL && from->announces &&
			      data->length > load_relaxed(&from->eager_max));
	req->data = *data;
	nm_match_recv_init(&req->recv, &s->match, from, tag,
			   mask == NM_TAG_ANY);
	nm_core_submit(s->core, req);
	return 0;
}

BASE_PUBLIC int nm_sr_recv(struct nm_session *s, struct nm_gate *from,
			   nm_tag_t tag, nm_tag_t mask,
			   const struct nm_data *data, struct nm_sr_status *out)
{
	struct nm_sr_request request;
	int rc = nm_sr_irecv(s, from, tag, mask, data, &request);

	if (unlikely(rc < 0))
		return rc;
	nm_sr_wait(&request);
	if (out != NULL)
		nm_sr_status(&request, out);
	return nm_req_of(&request)->error;
}

/* A message is the core's record of it; the handle is its address. */
BASE_PUBLIC int nm_sr_mrecv(struct nm_message *message,
			    const struct nm_data *data,
			    struct nm_sr_request *request)
{
	struct nm_msg *msg = (struct nm_msg *)message;
	struct nm_req *req = nm_req_of(request);

	if (msg == NULL || !nm_data_is_good(data) || req == NULL)
		return -EINVAL;
	fill(req, NM_REQ_MRECV, NULL, msg->match.gate, msg->match.tag);
	req->data = *data;
	req->msg = msg;
	req->taken_from = msg->taken_from;
	nm_core_submit(msg->match.gate->core, req);
	return 0;
}

BASE_PUBLIC int nm_sr_cancel(struct nm_sr_request *request)
{
	struct nm_req *req = nm_req_of(request);
	struct nm_pass pass;
	struct nm_core *core;
	int rc;

	if (req == NULL ||
	    (req->kind != NM_REQ_RECV && req->kind != NM_REQ_SEND))
		return -EINVAL;
	if (piom_cond_test(&req->done))
		return -EALREADY;
	core = req->session->core;
	nm_core_lock(core);
	nm_core_settle(core, &pass);
	rc = req->kind == NM_REQ_RECV ? nm_submit_cancel(&pass, req)
				      : nm_retract(req);
	nm_core_unlock(core, &pass);
	return rc;
}

/*
 * Look once, with all that has come until now. `take`: out of the tables. 0 and
 * *msg, or -errno.
 */
static int look(struct nm_session *s, struct nm_gate *from, nm_tag_t tag,
		nm_tag_t mask, bool take, struct nm_msg **msg,
		struct nm_sr_status *out)
{
	struct nm_core *core = s->core;
	struct nm_match_msg *found;
	struct nm_pass pass;
	int rc = 0;

	nm_core_progress(core);
	nm_core_lock(core);
	nm_core_settle(core, &pass);
	if (unlikely(from != NULL && !from->awaited))
		nm_submit_await(&pass, from);
	found = nm_match_probe(&core->match, &s->match, from, tag,
			       mask == NM_TAG_ANY);
	if (found != NULL) {
		*msg = container_of(found, struct nm_msg, match);
		out->gate = found->gate;
		out->tag = found->tag;
		out->error = 0;
		out->length = (*msg)->length;
		out->sent = (*msg)->length;
		if (take) {
			nm_match_take(&core->match, found);
			(*msg)->taken_from = s->id;
		}
	} else {
		rc = nm_submit_in_vain(&pass, s, from) ? -ECONNRESET : -EAGAIN;
	}
	nm_core_unlock(core, &pass);
	return rc;
}

BASE_PUBLIC int nm_sr_probe(struct nm_session *s, struct nm_gate *from,
			    nm_tag_t tag, nm_tag_t mask,
			    struct nm_sr_status *out)
{
	struct nm_msg *msg;

	if (s == NULL || out == NULL || !mask_is_good(mask))
		return -EINVAL;
	return look(s, from, tag, mask, false, &msg, out);
}

BASE_PUBLIC int nm_sr_mprobe(struct nm_session *s, struct nm_gate *from,
			     nm_tag_t tag, nm_tag_t mask,
			     struct nm_message **out,
			     struct nm_sr_status *status)
{
	struct nm_msg *msg;
	int rc;

	if (s == NULL || out == NULL || status == NULL || !mask_is_good(mask))
		return -EINVAL;
	rc = look(s, from, tag, mask, true, &msg, status);
	if (rc == 0)
		*out = (struct nm_message *)msg;
	return rc;
}

BASE_PUBLIC int nm_sr_probe_wait(struct nm_session *s, struct nm_gate *from,
				 nm_tag_t tag, nm_tag_t mask,
				 struct nm_sr_status *out)
{
	struct nm_sr_request request;
	struct nm_req *req = nm_req_of(&request);

	if (s == NULL || out == NULL || !mask_is_good(mask))
		return -EINVAL;
	fill(req, NM_REQ_PROBE, s, from, tag);
	req->data = nm_data_flat(NULL, 0);
	nm_match_recv_init(&req->recv, &s->match, from, tag,
			   mask == NM_TAG_ANY);
	nm_core_submit(s->core, req);
	nm_sr_wait(&request);
	nm_sr_status(&request, out);
	return out->error;
}
