/*
 * Functions instead of waiting.
 */
#include <nmad/event.h>

#include <errno.h>

#include <base/pin.h>

#include "../core/core.h"
#include "req.h"

/* A call that is due is made: the last access to the request was before. */
static void tell(struct nm_core *core, struct nm_call *call)
{
	struct nm_req *req = container_of(call, struct nm_req, call);
	nm_done_fn fn = req->on_done;
	const void *outer = base_pin_handler(&fn);

	(void)core;
	fn((struct nm_sr_request *)req, req->on_done_arg);
	base_unpin_handler(outer);
}

/* The signal has found it, or it found the signal. */
static void over(struct marcel_event_call *over)
{
	struct nm_req *req = container_of(over, struct nm_req, over);

	req->call.make = tell;
	nm_calls_leave(nm_core_self, &req->call);
}

BASE_PUBLIC int nm_sr_on_done(struct nm_sr_request *request, nm_done_fn fn,
			      void *arg)
{
	struct nm_req *req = nm_req_of(request);

	if (unlikely(req == NULL || fn == NULL || nm_core_self == NULL))
		return -EINVAL;
	if (unlikely(req->has_fn))
		base_fatal("nmad", "nm_sr_on_done(): the request has a "
				   "function already");
	req->has_fn = true;
	req->on_done = fn;
	req->on_done_arg = arg;
	req->over.fn = over;
	nm_req_await(req);
	if (piom_cond_call(&req->done, &req->over) < 0) {
		over(&req->over);
		nm_calls_look(nm_core_self);
	}
	return 0;
}

/* Those that are there already. Core lock held. */
static void note_all(struct nm_core *core, struct nm_session *s)
{
	base_list_for_each (link, &s->match.msgs) {
		const struct nm_match_msg *m = container_of(
			link, struct nm_match_msg, links[NM_MATCH_WILD]);

		nm_calls_note(core, s, container_of(m, struct nm_msg, match));
	}
}

BASE_PUBLIC int nm_session_monitor(struct nm_session *s, nm_arrival_fn fn,
				   void *arg)
{
	struct nm_pass pass;
	struct nm_core *core;
	int rc = -EBUSY;

	if (s == NULL || fn == NULL)
		return -EINVAL;
	core = s->core;
	nm_core_lock(core);
	nm_core_settle(core, &pass);
	if (s->monitor == NULL) {
		s->monitor = fn;
		s->monitor_arg = arg;
		nm_pending_add(core, 1);
		note_all(core, s);
		rc = 0;
	}
	nm_core_unlock(core, &pass);
	/* From now on something is awaited. */
	piom_ltask_kick(&core->ltask);
	return rc;
}

BASE_PUBLIC int nm_session_unmonitor(struct nm_session *s)
{
	struct nm_pass pass;
	struct nm_core *core;
	bool was;

	if (s == NULL)
		return -EINVAL;
	core = s->core;
	nm_core_lock(core);
	nm_core_settle(core, &pass);
	was = nm_session_forget(s);
	nm_core_unlock(core, &pass);
	nm_calls_settle(core, s);
	return was ? 0 : -ENOENT;
}
