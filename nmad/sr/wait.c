/*
 * Waiting for requests, and what became of them.
 */
#include "req.h"

#include <errno.h>

#include "../core/core.h"

void nm_wait_look(void *unused)
{
	(void)unused;
	if (likely(nm_core_self != NULL))
		nm_core_progress(nm_core_self);
	else
		nm_core_check_child();
}

void nm_wait_hurry(void)
{
	if (likely(nm_core_self != NULL))
		nm_core_hurry(nm_core_self);
	else
		nm_core_check_child();
}

/*
 * Who tests or waits has done with a burst, also if he finds complete what he
 * asks for, and then does not poll.
 */
static inline void end_burst(void)
{
	if (likely(nm_core_self != NULL))
		nm_core_end_burst(nm_core_self);
}

BASE_PUBLIC int nm_sr_is_complete(const struct nm_sr_request *request)
{
	return piom_cond_test(&nm_req_const(request)->done);
}

BASE_PUBLIC void nm_sr_end_burst(void)
{
	end_burst();
}

BASE_PUBLIC int nm_sr_test(struct nm_sr_request *request)
{
	struct nm_req *req = nm_req_of(request);

	end_burst();
	if (piom_cond_test(&req->done))
		return 0;
	nm_wait_look(NULL);
	return piom_cond_test(&req->done) ? 0 : -EAGAIN;
}

void nm_req_await(struct nm_req *req)
{
	if (req->kind == NM_REQ_RECV &&
	    unlikely(nm_await_matters(&req->await)) &&
	    nm_await_begin(&req->await) && nm_core_self != NULL)
		nm_core_look(nm_core_self);
}

static void wait_one(struct nm_req *req)
{
	if (piom_cond_test(&req->done))
		return;
	nm_req_await(req);
	nm_wait_hurry();
	piom_cond_wait_on(&req->done, nm_wait_look, NULL);
}

BASE_PUBLIC void nm_sr_wait(struct nm_sr_request *request)
{
	end_burst();
	wait_one(nm_req_of(request));
}

/* --- several --- */

typedef struct nm_sr_request *const *requests;

/* The lowest index of a complete one, or n. *any: there are some at all. */
static size_t first_complete(requests reqs, size_t n, bool *any)
{
	size_t i;

	*any = false;
	for (i = 0; i < n; i++) {
		if (reqs[i] == NULL)
			continue;
		*any = true;
		if (nm_sr_is_complete(reqs[i]))
			break;
	}
	return i;
}

static size_t list_complete(requests reqs, size_t n, size_t out[])
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		if (reqs[i] != NULL && nm_sr_is_complete(reqs[i]))
			out[found++] = i;
	return found;
}

static bool all_complete(requests reqs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (reqs[i] != NULL && !nm_sr_is_complete(reqs[i]))
			return false;
	return true;
}

/* A request begins with its condition, so this is a list of conditions. */
_Static_assert(offsetof(struct nm_req, done) == 0,
	       "a request is found at its condition's address");

BASE_PUBLIC size_t nm_sr_wait_any(struct nm_sr_request *const reqs[], size_t n)
{
	bool any;
	size_t i;

	end_burst();
	i = first_complete(reqs, n, &any);
	if (i < n || !any)
		return i;
	for (i = 0; i < n; i++)
		if (reqs[i] != NULL)
			nm_req_await(nm_req_of(reqs[i]));
	nm_wait_hurry();
	return piom_cond_wait_any((piom_cond_t *const *)(const void *)reqs, n);
}

BASE_PUBLIC size_t nm_sr_wait_some(struct nm_sr_request *const reqs[], size_t n,
				   size_t out[])
{
	nm_sr_wait_any(reqs, n);
	return list_complete(reqs, n, out);
}

BASE_PUBLIC void nm_sr_wait_all(struct nm_sr_request *const reqs[], size_t n)
{
	end_burst();
	for (size_t i = 0; i < n; i++)
		if (reqs[i] != NULL)
			wait_one(nm_req_of(reqs[i]));
}

BASE_PUBLIC size_t nm_sr_test_any(struct nm_sr_request *const reqs[], size_t n)
{
	bool any;
	size_t i;

	end_burst();
	i = first_complete(reqs, n, &any);
	if (i < n || !any)
		return i;
	nm_wait_look(NULL);
	return first_complete(reqs, n, &any);
}

BASE_PUBLIC size_t nm_sr_test_some(struct nm_sr_request *const reqs[], size_t n,
				   size_t out[])
{
	size_t found;

	end_burst();
	found = list_complete(reqs, n, out);
	if (found > 0)
		return found;
	nm_wait_look(NULL);
	return list_complete(reqs, n, out);
}

BASE_PUBLIC int nm_sr_test_all(struct nm_sr_request *const reqs[], size_t n)
{
	end_burst();
	if (all_complete(reqs, n))
		return 0;
	nm_wait_look(NULL);
	return all_complete(reqs, n) ? 0 : -EAGAIN;
}

BASE_PUBLIC size_t nm_sr_bytes(const struct nm_sr_request *request)
{
	return nm_req_const(request)->data.length;
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
