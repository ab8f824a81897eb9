/*
 * A request: the caller's until it is submitted, then the core's, until `done`
 * is signalled; that signal is the last access to it, unless a function waits
 * for it: then it is the core's until that is called. It lies in the caller's
 * struct nm_sr_request.
 */
#ifndef NMAD_SR_REQ_H
#define NMAD_SR_REQ_H

#include <base/atomic.h>
#include <base/compiler.h>
#include <base/mpsc.h>
#include <nmad/event.h>
#include <nmad/sendrecv.h>
#include <pioman/cond.h>

#include "../core/await.h"
#include "../core/calls.h"
#include "../core/match.h"

struct nm_msg;
struct nm_part;
struct nm_place;

enum nm_req_kind {
	NM_REQ_SEND,
	NM_REQ_RECV,
	NM_REQ_MRECV,   /* a receive of one certain message */
	NM_REQ_PROBE,   /* waits for a message, takes nothing */
	NM_REQ_GENERAL, /* never submitted: the program completes it */
};

enum nm_req_flags {
	NM_REQ_SYNC = 1, /* send: wait for a match */
	NM_REQ_RDV = 2,  /* send: by rendezvous */
	NM_REQ_NOW = 4,  /* send: waited for at once */
};

/* In `parts` of a send in several packets: one will never leave. */
enum { NM_PART_LOST = 0x80 };

struct nm_req {
	/* c: the caller's before submission and after the signal, else core's
	 * l: core lock  p: of the pass that completes it  a: atomic */
	piom_cond_t done;           /* a: pioman's */
	struct base_mpsc_node node; /* c, l, p: submitted; then completed */
	uint8_t kind, flags;        /* c */
	ATOMIC(uint8_t)
	parts;                      /* a: of a synchronous send: sent, matched;
				     *    else see medium.c; order(parts) */
	bool has_fn;                /* c: since it was posted */
	int error;                  /* l */
	struct nm_session *session; /* c; NULL if MRECV or GENERAL */
	struct nm_gate *gate;       /* c; of a receive from anyone: l */
	uint32_t tag;               /* c; of a receive: the message's, l */
	uint32_t seq;               /* l: the message's */
	struct nm_data data;        /* c */
	size_t length;              /* l: bytes received */
	size_t sent;                /* l: bytes the message had */
	const void *copy_from;      /* p: payload still to be copied in */
	struct nm_msg *msg;         /* c: of mrecv; p: to be freed after */
	union {
		struct {
			struct base_link on;    /* l: gate->out or ->waiting */
			uint64_t id;            /* l: on the wire, or 0 */
			int8_t priority;        /* c */
			bool retracted;         /* l: it is to be taken back */
			struct nm_place *place; /* l: announced, or NULL */
			/* l: while on gate->out, the strategy's: see prio.c */
			struct base_link level;
			struct nm_req *behind;
		} send;
		struct {
			union {
				struct nm_match_recv recv; /* l */
				uint64_t taken_from;       /* c: if MRECV */
			};
			struct nm_part *announced; /* l: or NULL: announce.c */
			struct nm_await await;     /* a: order(awaited) */
		};
	};
	/* A function waits for `done`, and then its call is due. */
	union {
		struct marcel_event_call over; /* a: marcel's */
		struct nm_call call;           /* c: the calls' */
	};
	nm_done_fn on_done; /* c */
	void *on_done_arg;  /* c */
} BASE_MAY_ALIAS;

_Static_assert(sizeof(struct nm_req) <= sizeof(struct nm_sr_request),
	       "struct nm_sr_request holds a struct nm_req");

/* What can be seen of it; the sum of an iovec is its maker's matter. */
static inline bool nm_data_is_good(const struct nm_data *d)
{
	if (unlikely(d == NULL))
		return false;
	if (likely(d->kind <= NM_DATA_IOVEC))
		return d->base != NULL || d->length == 0;
	return d->kind <= NM_DATA_COPY && d->walk != NULL;
}

/*
 * wait.c, for all waits. What completes requests most often while their owner
 * waits in place; and before a wait: what has gathered leaves first, for where
 * others are ready who waits parks at once.
 */
void nm_wait_look(void *unused);
void nm_wait_hurry(void);

static inline struct nm_req *nm_req_of(struct nm_sr_request *r)
{
	return (struct nm_req *)r;
}

static inline const struct nm_req *nm_req_const(const struct nm_sr_request *r)
{
	return (const struct nm_req *)r;
}

/* Somebody waits for the request, from now on: sr/wait.c. */
void nm_req_await(struct nm_req *req);

#endif
