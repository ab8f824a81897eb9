/*
 * Sending: fill the caller's request and submit it.
 */
#include "req.h"

#include <errno.h>

#include "../core/core.h"

BASE_PUBLIC int nm_sr_isend_priority(struct nm_session *s, struct nm_gate *to,
				     nm_tag_t tag, const struct nm_data *data,
				     unsigned flags, int priority,
				     struct nm_sr_request *request)
{
	struct nm_req *req = nm_req_of(request);

	if (unlikely(s == NULL || to == NULL || !nm_data_is_good(data) ||
		     req == NULL ||
		     (flags & ~(unsigned)(NM_SEND_SYNC | NM_SEND_NOW)) != 0 ||
		     priority < NM_PRIORITY_MIN || priority > NM_PRIORITY_MAX))
		return -EINVAL;

	/* --- committed --- */
	piom_cond_init(&req->done);
	req->kind = NM_REQ_SEND;
	req->flags = (flags & NM_SEND_SYNC ? NM_REQ_SYNC : 0) |
		     (flags & NM_SEND_NOW ? NM_REQ_NOW : 0);
	store_relaxed(&req->parts, 2);
	req->has_fn = false;
	req->error = 0;
	req->session = s;
	req->gate = to;
	req->tag = tag;
	req->data = *data;
	req->length = data->length;
	req->sent = data->length;
	req->copy_from = NULL;
	req->msg = NULL;
	base_link_init(&req->send.on);
	req->send.id = 0;
	req->send.place = NULL;
	req->send.priority = (int8_t)priority;
	req->send.retracted = false;
	base_link_init(&req->send.level);
	if (unlikely(data->length > load_relaxed(&to->eager_max)))
		nm_announce_look(to);
	nm_core_submit(s->core, req);
	return 0;
}

BASE_PUBLIC int nm_sr_isend(struct nm_session *s, struct nm_gate *to,
			    nm_tag_t tag, const struct nm_data *data,
			    unsigned flags, struct nm_sr_request *request)
{
	return nm_sr_isend_priority(s, to, tag, data, flags, 0, request);
}

BASE_PUBLIC int nm_sr_send(struct nm_session *s, struct nm_gate *to,
			   nm_tag_t tag, const struct nm_data *data,
			   unsigned flags)
{
	struct nm_sr_request request;
	int rc = nm_sr_isend(s, to, tag, data, flags | NM_SEND_NOW, &request);

	if (unlikely(rc < 0))
		return rc;
	nm_sr_wait(&request);
	return nm_req_of(&request)->error;
}
