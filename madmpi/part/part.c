/*
 * Partitioned requests: how they are made, find their other ends, and go.
 */
#include "part/part.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bodies.h"
#include "env/error.h"
#include "info/info.h"

/* A communicator's session and its numbers: part, part_tag. */
static marcel_mutex_t opening = MARCEL_MUTEX_INITIALIZER;

enum { MISSES = 4 }; /* that end a sweep */

/* Terms that receives await and that are not known to have come. */
static struct {
	struct base_spin lock;
	struct base_list wanted;    /* l: */
	struct base_list abandoned; /* l: */
} pending = { .lock = BASE_SPIN_INIT(BASE_RANK_LEAF),
	      .wanted = { { &pending.wanted.head, &pending.wanted.head } },
	      .abandoned = {
		      { &pending.abandoned.head, &pending.abandoned.head } } };

/* --- terms --- */

/*
 * Take the first abandoned terms off the list if they have come. Else they go
 * to the end of the list, and *misses is one less, or 0 if the list is empty.
 */
static struct madmpi_part_terms *abandoned_take(int *misses)
{
	struct madmpi_part_terms *t = NULL;
	struct base_link *n;

	base_spin_lock(&pending.lock);
	n = base_list_take_front(&pending.abandoned);
	if (n != NULL)
		t = container_of(n, struct madmpi_part_terms, link);
	else
		*misses = 0;
	if (t != NULL && !nm_sr_is_complete(&t->nm)) {
		base_list_push_back(&pending.abandoned, n);
		t = NULL;
		--*misses;
	}
	base_spin_unlock(&pending.lock);
	return t;
}

/* Free the terms that have come, until some others have not. */
static void abandoned_sweep(void)
{
	int misses = MISSES;

	while (misses > 0) {
		struct madmpi_part_terms *t = abandoned_take(&misses);

		if (t == NULL)
			continue;
		madmpi_comm_put(t->comm);
		free(t);
	}
}

void madmpi_part_terms_known(struct madmpi_part_terms *t)
{
	base_spin_lock(&pending.lock);
	if (base_link_is_on(&t->link))
		base_list_remove(&t->link);
	base_spin_unlock(&pending.lock);
}

void madmpi_part_terms_awaited(struct madmpi_part_terms *t)
{
	base_spin_lock(&pending.lock);
	t->is_awaited = true;
	base_spin_unlock(&pending.lock);
}

/* They will come all the same, and must not be taken for another's. */
static void abandon(struct madmpi_part_terms *t, struct madmpi_comm *c)
{
	madmpi_comm_get(c);
	t->comm = c;
	base_spin_lock(&pending.lock);
	t->is_abandoned = true;
	base_list_remove(&t->link);
	base_list_push_back(&pending.abandoned, &t->link);
	base_spin_unlock(&pending.lock);
}

void madmpi_part_exit(void)
{
	struct base_list all;
	struct base_link *n;

	base_list_init(&all);
	base_spin_lock(&pending.lock);
	base_list_splice_back(&all, &pending.wanted);
	base_list_splice_back(&all, &pending.abandoned);
	base_spin_unlock(&pending.lock);
	while ((n = base_list_take_front(&all)) != NULL) {
		struct madmpi_part_terms *t =
			container_of(n, struct madmpi_part_terms, link);

		nm_sr_cancel(&t->nm);
		if (!t->is_awaited)
			nm_sr_wait(&t->nm);
		if (t->is_abandoned) {
			madmpi_comm_put(t->comm);
			free(t);
		}
	}
}

/* The communicator's session, opened now if it must be. With `opening` held. */
static int open_session(struct madmpi_comm *c)
{
	char name[48];

	if (c->part != NULL)
		return 0;
	snprintf(name, sizeof(name), "mpi partitioned %016llx",
		 (unsigned long long)c->id);
	return nm_session_open_name(name, &c->part);
}

/* The sender's side: draw numbers, and say what will come. */
static int tell(struct madmpi_part *p)
{
	struct madmpi_part_terms *t = p->terms;
	struct madmpi_comm *c = p->m.comm;
	struct nm_data d = nm_data_flat(&t->wire, sizeof(t->wire));
	struct madmpi_signature s;

	t->wire.bytes = htole64((uint64_t)p->bytes);
	t->wire.partitions = htole32((uint32_t)p->partitions);
	t->wire.tag = htole32(p->tag);
	if (madmpi_checks_all) {
		s = madmpi_signature_of(p->m.type, p->m.count);
		t->wire.kinds = htole64(s.kinds);
		t->wire.elements = htole64((uint64_t)s.elements);
		t->wire.only = htole64((uint64_t)s.only);
	}
	return nm_sr_isend(c->part, c->gate[p->m.peer], madmpi_tag(p->m.tag),
			   &d, 0, &t->nm);
}

static int await(struct madmpi_part *p)
{
	struct madmpi_part_terms *t = p->terms;
	struct madmpi_comm *c = p->m.comm;
	struct nm_data d = nm_data_flat(&t->wire, sizeof(t->wire));
	int rc = nm_sr_irecv(c->part, c->gate[p->m.peer], madmpi_tag(p->m.tag),
			     NM_TAG_EXACT, &d, &t->nm);

	if (rc < 0)
		return rc;
	base_spin_lock(&pending.lock);
	base_list_push_back(&pending.wanted, &t->link);
	base_spin_unlock(&pending.lock);
	return 0;
}

/* Ends meet in the order in which this is done. */
static int meet(struct madmpi_part *p)
{
	struct madmpi_comm *c = p->m.comm;
	int rc;

	p->terms = calloc(1, sizeof(*p->terms));
	if (p->terms == NULL)
		return -ENOMEM;
	base_link_init(&p->terms->link);
	marcel_mutex_lock(&opening);
	rc = open_session(c);
	if (rc == 0 && p->way == MADMPI_SEND) {
		rc = madmpi_part_agree(p, p->partitions, p->bytes, c->part_tag);
		if (rc == 0)
			c->part_tag += (nm_tag_t)p->partitions;
	}
	if (rc == 0)
		rc = p->way == MADMPI_SEND ? tell(p) : await(p);
	marcel_mutex_unlock(&opening);
	if (rc < 0) {
		free(p->terms);
		p->terms = NULL;
	}
	return rc;
}

/* --- messages --- */

int madmpi_part_agree(struct madmpi_part *p, int n, MPI_Count bytes,
		      nm_tag_t tag)
{
	p->message = calloc((size_t)n + 1, sizeof(*p->message));
	if (p->message == NULL)
		return -ENOMEM;
	for (int j = 0; j < n; j++)
		p->message[j].of = p;
	p->nmessages = n;
	p->message_bytes = bytes;
	p->tag = tag;
	return 0;
}

struct nm_data madmpi_part_data(const struct madmpi_part *p,
				struct madmpi_part_message *msg, int j)
{
	MPI_Count all = p->partitions * p->bytes, from = j * p->message_bytes;
	MPI_Count bytes = p->message_bytes;

	if (unlikely(from > all))
		from = all;
	if (unlikely(bytes > all - from))
		bytes = all - from;
	return madmpi_layout_slice(&msg->layout, p->m.buf, p->m.count,
				   p->m.type, from, bytes);
}

/* With the last one the request is its owner's. */
void madmpi_part_over(struct nm_sr_request *req, void *arg)
{
	struct madmpi_part *p = ((struct madmpi_part_message *)arg)->of;
	struct nm_sr_status st;

	nm_sr_status(req, &st);
	if (unlikely(st.error != 0) && p->error == 0)
		p->error = st.error;
	if (--p->left == 0)
		nm_sr_general_end(p->waited, 0);
}

/* --- the request --- */

static struct madmpi_outcome outcome(const struct madmpi_operation *op,
				     const struct madmpi_request *r)
{
	const struct madmpi_part *p = madmpi_part_of(op);
	MPI_Count all = p->partitions * p->bytes;
	struct madmpi_outcome o = madmpi_outcome_empty();

	if (p->way == MADMPI_RECV) {
		if (p->terms == NULL)
			return madmpi_outcome_proc_null();
		o.source = r->peer;
		o.tag = r->tag;
		o.sent = p->nmessages * p->message_bytes;
		o.bytes = o.sent < all ? o.sent : all;
		if (o.sent < all)
			o.error = -ENODATA;
	}
	if (p->error != 0)
		o.error = p->error;
	if (p->way == MADMPI_RECV)
		madmpi_signed_compare(&o, &p->got);
	return o;
}

static int cancel(struct madmpi_operation *op, struct madmpi_request *r)
{
	(void)op;
	return madmpi_error(r->comm, MPI_ERR_REQUEST, "MPI_Cancel",
			    "request %p is partitioned, and cannot be "
			    "cancelled",
			    (void *)r);
}

static void release(struct madmpi_operation *op)
{
	struct madmpi_part *p = madmpi_part_of(op);

	if (p->m.type != NULL)
		madmpi_type_put(p->m.type);
	free(p->message);
	free(p->terms);
	free(p);
}

static int give_up(struct madmpi_operation *op, MPI_Request *request)
{
	struct madmpi_request *r = (struct madmpi_request *)*request;
	struct madmpi_part *p = madmpi_part_of(op);

	if (!madmpi_request_is_complete(r))
		return madmpi_error(r->comm, MPI_ERR_REQUEST,
				    "MPI_Request_free",
				    "request %p is partitioned and active: "
				    "wait for it before",
				    (void *)r);
	*request = MPI_REQUEST_NULL;
	if (p->terms != NULL && p->way == MADMPI_SEND) {
		nm_sr_wait(&p->terms->nm); /* for nobody but the network */
	} else if (p->terms != NULL) {
		if (nm_sr_is_complete(&p->terms->nm)) {
			madmpi_part_terms_known(p->terms);
		} else {
			abandon(p->terms, r->comm);
			p->terms = NULL;
		}
	}
	madmpi_request_put(r);
	abandoned_sweep();
	return MPI_SUCCESS;
}

static struct madmpi_part *part_new(const struct madmpi_message *m,
				    enum madmpi_way way, int partitions)
{
	struct madmpi_part *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->b.op.outcome = outcome;
	p->b.op.start = way == MADMPI_SEND ? madmpi_part_start_send
					   : madmpi_part_start_recv;
	p->b.op.cancel = cancel;
	p->b.op.give_up = give_up;
	p->b.op.release = release;
	p->b.op.may_stay = way == MADMPI_SEND;
	p->way = way;
	p->m = *m;
	p->partitions = partitions;
	if (m->type != NULL) { /* with nobody, unchecked */
		madmpi_type_get(m->type);
		p->bytes = m->count * m->type->size;
	}
	p->m.count *= partitions;
	nm_sr_general_begin(&p->known);
	return p;
}

static int request_new(const char *fn, enum madmpi_way way,
		       const struct madmpi_message *m, int partitions,
		       MPI_Request *request)
{
	struct madmpi_part *p = part_new(m, way, partitions);
	struct madmpi_request *r;
	int rc = MPI_SUCCESS;

	if (p == NULL)
		return madmpi_error(m->comm, MPI_ERR_NO_MEM, fn,
				    "no memory for a request");
	r = madmpi_request_adopt(fn, m->comm, &p->b.op, &rc);
	if (r == NULL) {
		release(&p->b.op);
		return rc;
	}
	r->peer = m->peer;
	r->tag = m->tag;
	p->waited = &r->nm;
	rc = m->peer == MPI_PROC_NULL
		     ? madmpi_part_agree(p, partitions, p->bytes, 0)
		     : meet(p);
	if (rc < 0) {
		madmpi_request_put(r);
		return madmpi_error_errno(m->comm, rc, fn,
					  "a partitioned request");
	}
	*request = (MPI_Request)r;
	return MPI_SUCCESS;
}

/* Both sides name somebody and a tag: there are no wildcards. */
static int prepare(const char *fn, enum madmpi_way way, const void *buf,
		   int partitions, MPI_Count count, MPI_Datatype datatype,
		   int peer, int tag, MPI_Comm comm, MPI_Info info,
		   MPI_Request *request)
{
	struct madmpi_message m;
	struct madmpi_info *hints;
	int rc = madmpi_message_open(fn, MADMPI_SEND, buf, count, datatype,
				     peer, tag, comm, &m);

	if (rc != MPI_SUCCESS)
		return rc;
	if (partitions < 0)
		return madmpi_error(m.comm, MPI_ERR_ARG, fn,
				    "partitions is negative (%d)", partitions);
	if (partitions > 0 && count > INT64_MAX / partitions)
		return madmpi_error(m.comm, MPI_ERR_COUNT, fn,
				    "%d partitions of %lld elements are too "
				    "many",
				    partitions, (long long)count);
	if (m.type != NULL && madmpi_checks)
		rc = madmpi_check_buffer(fn, m.comm, "buf", buf,
					 partitions * count, m.type);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_info(m.comm, fn, info, &hints);
	if (rc != MPI_SUCCESS)
		return rc;
	if (request == NULL)
		return madmpi_null_arg(m.comm, fn, "request");
	abandoned_sweep();
	return request_new(fn, way, &m, partitions, request);
}

/* MPI_Psend_init */
int madmpi_psend_init(const void *buf, int partitions, MPI_Count count,
		      MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
		      MPI_Info info, MPI_Request *request)
{
	return prepare("MPI_Psend_init", MADMPI_SEND, buf, partitions, count,
		       datatype, dest, tag, comm, info, request);
}

/* MPI_Precv_init */
int madmpi_precv_init(void *buf, int partitions, MPI_Count count,
		      MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
		      MPI_Info info, MPI_Request *request)
{
	return prepare("MPI_Precv_init", MADMPI_RECV, buf, partitions, count,
		       datatype, dest, tag, comm, info, request);
}

struct madmpi_part *madmpi_part_of_request(const char *fn, enum madmpi_way way,
					   MPI_Request handle,
					   struct madmpi_request **r, int *rc)
{
	struct madmpi_part *p;

	*r = madmpi_request_of(fn, handle, rc);
	if (unlikely(*r == NULL))
		return NULL;
	if (likely((*r)->own != NULL && (*r)->own->outcome == outcome)) {
		p = madmpi_part_of((*r)->own);
		if (likely(p->way == way))
			return p;
	}
	*rc = madmpi_error((*r)->comm, MPI_ERR_REQUEST, fn,
			   "request %p is not a partitioned %s", (void *)handle,
			   way == MADMPI_SEND ? "send" : "receive");
	return NULL;
}

int madmpi_part_check(const char *fn, const struct madmpi_part *p,
		      int partition)
{
	if (likely(partition >= 0 && partition < p->partitions))
		return MPI_SUCCESS;
	return madmpi_error(p->m.comm, MPI_ERR_ARG, fn,
			    "partition is %d, but the request has %d of them",
			    partition, p->partitions);
}
