/*
 * Requests that the program completes.
 */
#include "req.h"

#include <errno.h>

#include "../core/core.h"

BASE_PUBLIC int nm_sr_general_begin(struct nm_sr_request *request)
{
	struct nm_req *req = nm_req_of(request);

	if (unlikely(req == NULL))
		return -EINVAL;
	piom_cond_init(&req->done);
	req->kind = NM_REQ_GENERAL;
	req->flags = 0;
	req->has_fn = false;
	req->error = 0;
	req->session = NULL;
	req->gate = NULL;
	req->tag = 0;
	req->length = 0;
	req->sent = 0;
	return 0;
}

BASE_PUBLIC int nm_sr_general_end(struct nm_sr_request *request, int error)
{
	struct nm_req *req = nm_req_of(request);

	if (unlikely(req == NULL || req->kind != NM_REQ_GENERAL || error > 0))
		return -EINVAL;
	req->error = error;
	piom_cond_signal(&req->done);
	/* It may have had a function: no pass of the core's will call it. */
	if (likely(nm_core_self != NULL))
		nm_calls_look(nm_core_self);
	return 0;
}
