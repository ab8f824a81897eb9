/*
 * Messages for MARCEL_TRACE. One is named by source, destination, session and
 * number, in both processes.
 */
#ifndef NMAD_CORE_TRACE_H
#define NMAD_CORE_TRACE_H

#include <errno.h>

#include <base/trace.h>

#include "../sr/req.h"
#include "gate.h"
#include "session.h"

static inline void nm_trace_message(enum marcel_trace_kind kind,
				    uint64_t session,
				    const struct nm_gate *gate, uint32_t tag,
				    uint32_t seq, uint64_t bytes,
				    uint32_t unexpected)
{
	marcel_trace_more(kind, seq, (uint64_t)gate->rank << 32 | tag,
			  unexpected, bytes, session);
}

/*
 * Returns the number of the session of a send or a receive. The session of a
 * matched receive may be closed: the request has only its number.
 */
static inline uint64_t nm_trace_session(const struct nm_req *req)
{
	return req->kind == NM_REQ_MRECV ? req->taken_from : req->session->id;
}

/* The request is about to be signalled. */
static inline void nm_trace_done(const struct nm_req *req)
{
	bool sends = req->kind == NM_REQ_SEND;

	if (!marcel_trace_is_on() ||
	    (!sends && req->kind != NM_REQ_RECV && req->kind != NM_REQ_MRECV) ||
	    (req->error != 0 && req->error != -EMSGSIZE))
		return;
	nm_trace_message(sends ? MARCEL_TRACE_SENT : MARCEL_TRACE_RECV,
			 nm_trace_session(req), req->gate, req->tag, req->seq,
			 req->sent, 0);
}

#endif
