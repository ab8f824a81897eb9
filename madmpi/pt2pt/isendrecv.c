/*
 * Sending and receiving by one request. Both messages are posted by the call,
 * the receive first, so that they take their places in the order of matching;
 * each tells its end by a function, and the second one ends the request.
 */
#include <stdlib.h>

#include <nmad/event.h>

#include "bodies.h"
#include "env/error.h"
#include "pt2pt/request.h"

struct pair;

struct half {
	/* -: const once posted  n: nmad's while it is posted */
	struct nm_sr_request nm;     /* n: */
	struct madmpi_signed walked; /* n: */
	struct madmpi_message m;     /* -: */
	struct madmpi_type *type;    /* -: holds a reference, or NULL */
	bool is_posted;              /* -: */
	struct pair *of;             /* -: */
};

struct pair {
	/* -: const once posted  c: of the functions that nmad calls */
	struct madmpi_operation op;
	struct half recv, send;
	struct nm_sr_request *waited; /* -: the request's */
	int error;                    /* -: of a half that was not posted */
	int halves;                   /* c: that are not over */
	void *copy;                   /* -: what is sent of a replaced buffer */
};

static struct pair *pair_of(const struct madmpi_operation *op)
{
	return container_of((struct madmpi_operation *)op, struct pair, op);
}

/* With the last one the request is its owner's, and all this with it. */
static void half_over(struct nm_sr_request *req, void *arg)
{
	struct half *h = arg;

	(void)req;
	if (--h->of->halves == 0)
		nm_sr_general_end(h->of->waited, 0);
}

static struct madmpi_outcome outcome(const struct madmpi_operation *op,
				     const struct madmpi_request *r)
{
	const struct pair *p = pair_of(op);
	struct madmpi_outcome got = madmpi_outcome_proc_null(), sent;
	struct nm_sr_status st;

	if (p->recv.is_posted) {
		nm_sr_status(&p->recv.nm, &st);
		got = madmpi_outcome_recv(r->comm, p->recv.m.peer, &st);
		if (p->recv.type != NULL)
			madmpi_signed_check(&got, &p->recv.walked);
	}
	if (p->send.is_posted) {
		nm_sr_status(&p->send.nm, &st);
		sent = madmpi_outcome_send(&st);
		got.is_cancelled |= sent.is_cancelled;
		if (sent.error != 0)
			got.error = sent.error;
	}
	if (p->error != 0)
		got.error = p->error;
	return got;
}

/* Both halves, so that who waits then waits for nobody. */
static int cancel(struct madmpi_operation *op, struct madmpi_request *r)
{
	struct pair *p = pair_of(op);

	(void)r;
	if (p->recv.is_posted)
		nm_sr_cancel(&p->recv.nm);
	if (p->send.is_posted)
		nm_sr_cancel(&p->send.nm);
	return MPI_SUCCESS;
}

static void release(struct madmpi_operation *op)
{
	struct pair *p = pair_of(op);

	if (p->recv.type != NULL)
		madmpi_type_put(p->recv.type);
	if (p->send.type != NULL)
		madmpi_type_put(p->send.type);
	free(p->copy);
	free(p);
}

/* A half with nobody is over. `as`: what the program sends or receives. */
static void post(struct half *h, enum madmpi_way way,
		 const struct madmpi_message *as)
{
	const struct madmpi_message *m = &h->m;
	struct nm_data data;
	int rc;

	if (m->peer == MPI_PROC_NULL)
		return;
	data = madmpi_message_data_as(m, as, &h->walked);
	if (way == MADMPI_RECV)
		rc = nm_sr_irecv(m->comm->p2p, madmpi_gate(m->comm, m->peer),
				 madmpi_tag(m->tag), madmpi_tag_mask(m->tag),
				 &data, &h->nm);
	else
		rc = nm_sr_isend(m->comm->p2p, m->comm->gate[m->peer],
				 madmpi_tag(m->tag), &data, 0, &h->nm);
	if (unlikely(rc < 0)) {
		h->of->error = rc;
		return;
	}
	h->is_posted = true;
	h->of->halves++;
	if (madmpi_data_is_walked(&data)) {
		h->type = m->type;
		madmpi_type_get(h->type);
	}
}

/* The pair is the request's, or freed. */
static int start(const char *fn, struct pair *p, MPI_Request *request)
{
	struct madmpi_request *r;
	int rc = MPI_SUCCESS;

	p->op.outcome = outcome;
	p->op.cancel = cancel;
	p->op.release = release;
	r = madmpi_request_adopt(fn, p->recv.m.comm, &p->op, &rc);
	if (r == NULL) {
		release(&p->op);
		return rc;
	}
	p->waited = &r->nm;
	p->recv.of = p->send.of = p;
	post(&p->recv, MADMPI_RECV, &p->recv.m);
	post(&p->send, MADMPI_SEND, p->copy ? &p->recv.m : &p->send.m);
	*request = (MPI_Request)r;
	if (p->halves == 0)
		nm_sr_general_end(&r->nm, 0);
	if (p->recv.is_posted)
		nm_sr_on_done(&p->recv.nm, half_over, &p->recv);
	if (p->send.is_posted)
		nm_sr_on_done(&p->send.nm, half_over, &p->send);
	return MPI_SUCCESS;
}

static int no_memory(const char *fn, struct madmpi_comm *c, MPI_Count bytes)
{
	return madmpi_error(c, MPI_ERR_NO_MEM, fn,
			    "no memory for a request and a copy of %lld bytes",
			    (long long)bytes);
}

/* What both forms do with two messages that are checked. */
static int exchange(const char *fn, const struct madmpi_message *s,
		    const struct madmpi_message *r, bool replaces,
		    MPI_Request *request)
{
	struct pair *p;

	if (request == NULL)
		return madmpi_null_arg(s->comm, fn, "request");
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return no_memory(fn, s->comm, 0);
	p->send.m = *s;
	p->recv.m = *r;
	if (replaces && madmpi_message_pack(&p->send.m, &p->copy) < 0) {
		free(p);
		return no_memory(fn, s->comm, s->count * s->type->size);
	}
	return start(fn, p, request);
}

/* MPI_Isendrecv, MPI_Isendrecv_c */
int madmpi_isendrecv(const void *sendbuf, MPI_Count sendcount,
		     MPI_Datatype sendtype, int dest, int sendtag,
		     void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
		     int source, int recvtag, MPI_Comm comm,
		     MPI_Request *request)
{
	const char *fn = "MPI_Isendrecv";
	struct madmpi_message s, r;
	int rc;

	rc = madmpi_message_open(fn, MADMPI_SEND, sendbuf, sendcount, sendtype,
				 dest, sendtag, comm, &s);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_message_open(fn, MADMPI_RECV, recvbuf, recvcount,
					 recvtype, source, recvtag, comm, &r);
	return rc ? rc : exchange(fn, &s, &r, false, request);
}

/* MPI_Isendrecv_replace, MPI_Isendrecv_replace_c */
int madmpi_isendrecv_replace(void *buf, MPI_Count count, MPI_Datatype datatype,
			     int dest, int sendtag, int source, int recvtag,
			     MPI_Comm comm, MPI_Request *request)
{
	const char *fn = "MPI_Isendrecv_replace";
	struct madmpi_message s, r;
	int rc;

	rc = madmpi_message_open(fn, MADMPI_SEND, buf, count, datatype, dest,
				 sendtag, comm, &s);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_message_open(fn, MADMPI_RECV, buf, count, datatype,
					 source, recvtag, comm, &r);
	return rc ? rc : exchange(fn, &s, &r, true, request);
}
