/*
 * Waiting for requests, and what became of them.
 */
#include "req.h"

#include <errno.h>

#include "../core/core.h"

BASE_PUBLIC int nm_sr_is_complete(const struct nm_sr_request *request)
{
	return piom_cond_test(&nm_req_const(request)->done);
}

BASE_PUBLIC int nm_sr_test(struct nm_sr_request *request)
{
	struct nm_req *req = nm_req_of(request);

	if (piom_cond_test(&req->done))
		return 0;
	if (likely(nm_core_self != NULL))
		nm_core_progress(nm_core_self);
	return piom_cond_test(&req->done) ? 0 : -EAGAIN;
}

/* What completes requests most often while their owner waits in place. */
static void look(void *unused)
{
	(void)unused;
	if (likely(nm_core_self != NULL))
		nm_core_progress(nm_core_self);
}

/* Where others are ready the wait parks at once: what gathered leaves first. */
static void hurry(void)
{
	if (likely(nm_core_self != NULL))
		nm_core_hurry(nm_core_self);
}

BASE_PUBLIC void nm_sr_wait(struct nm_sr_request *request)
{
	struct nm_req *req = nm_req_of(request);

	if (piom_cond_test(&req->done))
		return;
	hurry();
	piom_cond_wait_on(&req->done, look, NULL);
}

/* A request begins with its condition, so this is a list of conditions. */
_Static_assert(offsetof(struct nm_req, done) == 0,
	       "a request is found at its condition's address");

BASE_PUBLIC size_t nm_sr_wait_any(struct nm_sr_request *const reqs[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (reqs[i] != NULL && nm_sr_is_complete(reqs[i]))
			return i;
	hurry();
	return piom_cond_wait_any((piom_cond_t *const *)(const void *)reqs, n);
}

BASE_PUBLIC void nm_sr_status(const struct nm_sr_request *request,
			      struct nm_sr_status *out)
{
	const struct nm_req *req = nm_req_const(request);

	out->gate = req->gate;
	out->tag = req->tag;
	out->error = req->error;
	out->length = req->length;
	out->sent = req->sent;
}
