/*
 * Calling: a slot, then head, body and the receive of the answer at once. Each
 * of the three ends by a function that nmad calls, one at a time, so what they
 * share needs no lock.
 */
#include "rpc.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "../core/core.h"

struct call {
	/* c: the caller's until it has a slot, then of the functions that nmad
	 * calls  s: lock of its peer  n: nmad's while posted */
	piom_cond_t done;                       /* a: pioman's */
	struct nm_rpc *rpc;                     /* c */
	struct nm_gate *gate;                   /* c */
	struct base_link on;                    /* s: peer->waiting */
	struct nm_rpc_head head;                /* n */
	struct nm_rpc_answer answer;            /* n */
	struct iovec iov[2];                    /* n: head and header */
	struct nm_data body;                    /* n */
	unsigned slot;                          /* c */
	int parts;                              /* c: that are not over */
	int error;                              /* c */
	struct nm_sr_request sends[2], receive; /* n */
} BASE_MAY_ALIAS;

_Static_assert(sizeof(struct call) <= sizeof(struct nm_rpc_request),
	       "struct nm_rpc_request holds a struct call");

static void part_over(struct nm_sr_request *part, void *arg);

static struct nm_rpc_peer *peer_of(const struct call *c)
{
	return &c->rpc->peers[nm_gate_rank(c->gate)];
}

/* It has a slot. With the last of its parts it may be over at once. */
static void post(struct call *c)
{
	struct nm_data answer = nm_data_flat(&c->answer, sizeof(c->answer));
	struct nm_data head = nm_data_iovec(c->iov, 2);
	struct nm_session *s = c->rpc->session;
	bool has_body = c->body.length > 0;

	c->head.slot = htole32(c->slot);
	c->parts = has_body ? 3 : 2;
	nm_sr_irecv(s, c->gate, NM_RPC_ANSWER | c->slot, NM_TAG_EXACT, &answer,
		    &c->receive);
	nm_sr_isend(s, c->gate, NM_RPC_HEAD, &head, 0, &c->sends[0]);
	if (has_body)
		nm_sr_isend(s, c->gate, NM_RPC_BODY | c->slot, &c->body, 0,
			    &c->sends[1]);
	nm_sr_on_done(&c->sends[0], part_over, c);
	if (has_body)
		nm_sr_on_done(&c->sends[1], part_over, c);
	nm_sr_on_done(&c->receive, part_over, c);
}

/* Its slot goes to the next that waits for one, or is free. */
static struct call *slot_put(struct call *c)
{
	struct nm_rpc_peer *peer = peer_of(c);
	struct call *next = NULL;
	struct base_link *n;

	base_spin_lock(&peer->lock);
	n = base_list_take_front(&peer->waiting);
	if (n != NULL) {
		next = container_of(n, struct call, on);
		next->slot = c->slot;
	} else {
		peer->slots &= ~((uint64_t)1 << c->slot);
	}
	base_spin_unlock(&peer->lock);
	return next;
}

static void part_over(struct nm_sr_request *part, void *arg)
{
	struct nm_sr_status answer;
	struct call *c = arg, *next;

	(void)part;
	if (--c->parts > 0)
		return;
	/* Who has answered may have died before he had all of the body. */
	nm_sr_status(&c->receive, &answer);
	c->error = answer.error;
	if (c->error == 0 && c->answer.unknown != 0)
		c->error = -ENOENT;
	next = slot_put(c);
	piom_cond_signal(&c->done);
	if (next != NULL)
		post(next);
}

/* False: it waits for one. */
static bool slot_get(struct call *c)
{
	struct nm_rpc_peer *peer = peer_of(c);
	bool got;

	base_spin_lock(&peer->lock);
	got = ~peer->slots != 0;
	if (got) {
		c->slot = (unsigned)__builtin_ctzll(~peer->slots);
		peer->slots |= (uint64_t)1 << c->slot;
	} else {
		base_list_push_back(&peer->waiting, &c->on);
	}
	base_spin_unlock(&peer->lock);
	return got;
}

_Static_assert(NM_RPC_WINDOW == 64, "a bit of a word for each");

BASE_PUBLIC int nm_rpc_send(struct nm_rpc *rpc, struct nm_gate *to,
			    uint32_t service, const void *header, size_t bytes,
			    const struct nm_data *body,
			    struct nm_rpc_request *request)
{
	struct call *c = (struct call *)request;

	if (rpc == NULL || to == NULL || c == NULL ||
	    (header == NULL && bytes > 0) ||
	    (body != NULL && !nm_data_is_good(body)))
		return -EINVAL;
	if (bytes > NM_RPC_HEADER_MAX)
		return -EMSGSIZE;
	nm_core_check_lost(&rpc->session->core->lock);
	piom_cond_init(&c->done);
	c->rpc = rpc;
	c->gate = to;
	base_link_init(&c->on);
	c->body = body != NULL ? *body : nm_data_flat(NULL, 0);
	c->head.service = htole32(service);
	c->head.length = htole64(c->body.length);
	c->iov[0] = (struct iovec){ &c->head, sizeof(c->head) };
	c->iov[1] = (struct iovec){ (void *)header, bytes };
	c->answer = (struct nm_rpc_answer){ 0 };
	if (slot_get(c))
		post(c);
	return 0;
}

bool nm_rpc_is_calling(struct nm_rpc *rpc)
{
	bool is = false;

	for (int rank = 0; rank < rpc->npeers; rank++) {
		struct nm_rpc_peer *peer = &rpc->peers[rank];

		base_spin_lock(&peer->lock);
		is |= peer->slots != 0;
		base_spin_unlock(&peer->lock);
	}
	return is;
}

/* --- waiting --- */

BASE_PUBLIC int nm_rpc_test(struct nm_rpc_request *request)
{
	struct call *c = (struct call *)request;

	nm_sr_end_burst();
	if (piom_cond_test(&c->done))
		return 0;
	nm_wait_look(NULL);
	return piom_cond_test(&c->done) ? 0 : -EAGAIN;
}

BASE_PUBLIC void nm_rpc_wait(struct nm_rpc_request *request)
{
	struct call *c = (struct call *)request;

	nm_sr_end_burst();
	if (piom_cond_test(&c->done))
		return;
	nm_wait_hurry();
	piom_cond_wait_on(&c->done, nm_wait_look, NULL);
}

BASE_PUBLIC void nm_rpc_status(const struct nm_rpc_request *request,
			       struct nm_rpc_status *out)
{
	const struct call *c = (const struct call *)request;

	out->error = c->error;
	out->result = c->error == 0
			      ? (int32_t)le32toh((uint32_t)c->answer.result)
			      : 0;
}
