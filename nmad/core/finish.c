/*
 * A request is over.
 */
#include "core.h"

void nm_req_settle(struct nm_pass *pass, struct nm_req *req, int error)
{
	req->error = error;
	if (req->kind == NM_REQ_RECV || req->kind == NM_REQ_PROBE)
		req->session->nactive--;
	nm_pending_add(pass->core, -1);
}

void nm_req_finish(struct nm_pass *pass, struct nm_req *req, int error)
{
	nm_req_settle(pass, req, error);
	nm_chain_append(&pass->done, &req->node);
}

/*
 * A synchronous send is over when its packet has left (seen by the rail's
 * owner) and a receive has matched (seen by the core), in either order; and a
 * message in several packets when all have left, or have been copied
 * (medium.c).
 */
bool nm_req_part(struct nm_req *req)
{
	uint8_t before = fetch_sub_acq_rel(&req->parts, 1); /* order(parts) */

	return (before & ~NM_PART_LOST) == 1;
}
