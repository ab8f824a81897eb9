/*
 * Matched probes: a message is taken out of what may be received, and received
 * by its handle, by whoever has that.
 */
#include <errno.h>
#include <stdio.h>

#include "bodies.h"
#include "core/pool.h"
#include "env/error.h"
#include "pt2pt/request.h"

/* What MPI_Message stands for. */
struct matched {
	struct madmpi_object object;
	struct madmpi_comm *comm; /* -: holds a reference */
	struct nm_message *nm;    /* -: */
	int source, tag;          /* -: once taken */
	MPI_Count bytes;          /* -: likewise */
};

static struct madmpi_pool pool;

void madmpi_matched_init(void)
{
	madmpi_pool_init(&pool, MADMPI_MESSAGE, sizeof(struct matched));
}

void madmpi_matched_exit(void)
{
	madmpi_pool_exit(&pool);
}

static struct matched *matched_new(struct madmpi_comm *c)
{
	struct matched *m = madmpi_pool_get(&pool);

	if (m == NULL)
		return NULL;
	m->comm = c;
	madmpi_comm_get(c);
	return m;
}

static void matched_put(struct matched *m)
{
	madmpi_comm_put(m->comm);
	madmpi_pool_put(&pool, m);
}

/* One try. True, with handle and status; else *error: 0 or -errno. */
static bool take(const struct madmpi_message *p, struct matched *to,
		 MPI_Message *message, MPI_Status *status, int *error)
{
	struct madmpi_outcome o;
	struct nm_sr_status st;
	int rc = nm_sr_mprobe(p->comm->p2p, madmpi_gate(p->comm, p->peer),
			      madmpi_tag(p->tag), madmpi_tag_mask(p->tag),
			      &to->nm, &st);

	*error = rc == -EAGAIN ? 0 : rc;
	if (rc < 0)
		return false;
	o = madmpi_outcome_recv(p->comm, p->peer, &st);
	madmpi_signed_probed(&o);
	madmpi_status_fill(status, &o);
	to->source = o.source;
	to->tag = o.tag;
	to->bytes = o.bytes;
	*message = (MPI_Message)to;
	return true;
}

void madmpi_matched_describe(const struct madmpi_object *o, char *out,
			     size_t room)
{
	const struct matched *m =
		container_of((struct madmpi_object *)o, struct matched, object);

	snprintf(out, room, "%lld bytes from rank %d with tag %d",
		 (long long)m->bytes, m->source, m->tag);
}

static int check(const char *fn, int source, int tag, MPI_Comm comm,
		 MPI_Message *message, struct madmpi_message *out)
{
	int rc = madmpi_message_envelope(fn, MADMPI_RECV, source, tag, comm,
					 out);

	if (rc != MPI_SUCCESS)
		return rc;
	if (message == NULL)
		return madmpi_null_arg(out->comm, fn, "message");
	return MPI_SUCCESS;
}

/* Of MPI_PROC_NULL: there is one at once, without data. */
static int no_proc(MPI_Message *message, MPI_Status *status)
{
	struct madmpi_outcome o = madmpi_outcome_proc_null();

	madmpi_status_fill(status, &o);
	*message = MPI_MESSAGE_NO_PROC;
	return MPI_SUCCESS;
}

static int no_memory(struct madmpi_comm *c, const char *fn)
{
	return madmpi_error(c, MPI_ERR_NO_MEM, fn, "no memory for a message");
}

/* MPI_Mprobe: who is told of a message may find that another has taken it. */
int madmpi_mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message,
		  MPI_Status *status)
{
	const char *fn = "MPI_Mprobe";
	struct nm_sr_status st;
	struct madmpi_message p;
	struct matched *m;
	int rc = check(fn, source, tag, comm, message, &p), error;

	if (rc != MPI_SUCCESS)
		return rc;
	if (source == MPI_PROC_NULL)
		return no_proc(message, status);
	m = matched_new(p.comm);
	if (m == NULL)
		return no_memory(p.comm, fn);
	while (!take(&p, m, message, status, &error)) {
		if (error == 0)
			error = nm_sr_probe_wait(
				p.comm->p2p, madmpi_gate(p.comm, source),
				madmpi_tag(tag), madmpi_tag_mask(tag), &st);
		if (error < 0) {
			matched_put(m);
			return madmpi_error_errno(p.comm, error, fn, "probe");
		}
	}
	return MPI_SUCCESS;
}

/* MPI_Improbe */
int madmpi_improbe(int source, int tag, MPI_Comm comm, int *flag,
		   MPI_Message *message, MPI_Status *status)
{
	const char *fn = "MPI_Improbe";
	struct madmpi_message p;
	struct matched *m;
	int rc = check(fn, source, tag, comm, message, &p), error;

	if (rc != MPI_SUCCESS)
		return rc;
	if (flag == NULL)
		return madmpi_null_arg(p.comm, fn, "flag");
	*flag = 1;
	if (source == MPI_PROC_NULL)
		return no_proc(message, status);
	m = matched_new(p.comm);
	if (m == NULL)
		return no_memory(p.comm, fn);
	*flag = take(&p, m, message, status, &error);
	if (*flag)
		return MPI_SUCCESS;
	matched_put(m);
	if (error != 0)
		return madmpi_error_errno(p.comm, error, fn, "probe");
	madmpi_make_way();
	return MPI_SUCCESS;
}

/*
 * What a receive of the message is about. *m is NULL for MPI_MESSAGE_NO_PROC.
 */
static int open_message(const char *fn, void *buf, MPI_Count count,
			MPI_Datatype datatype, const MPI_Message *message,
			struct matched **m, struct madmpi_message *out)
{
	MPI_Comm comm = MPI_COMM_SELF;
	int peer = MPI_PROC_NULL;

	*m = NULL;
	if (message == NULL)
		return madmpi_null_arg(NULL, fn, "message");
	if (*message != MPI_MESSAGE_NO_PROC) {
		if (!madmpi_handle_is_constant(*message))
			*m = madmpi_handle_object(*message, MADMPI_MESSAGE);
		if (*m == NULL)
			return madmpi_error(NULL, MPI_ERR_REQUEST, fn,
					    "message %p is %s",
					    (void *)*message,
					    *message == MPI_MESSAGE_NULL
						    ? "MPI_MESSAGE_NULL"
						    : "not a message");
		comm = madmpi_comm_handle((*m)->comm);
		peer = MPI_ANY_SOURCE;
	}
	return madmpi_message_open(fn, MADMPI_RECV, buf, count, datatype, peer,
				   MPI_ANY_TAG, comm, out);
}

/* MPI_Mrecv, MPI_Mrecv_c */
int madmpi_mrecv(void *buf, MPI_Count count, MPI_Datatype datatype,
		 MPI_Message *message, MPI_Status *status)
{
	const char *fn = "MPI_Mrecv";
	struct madmpi_outcome o = madmpi_outcome_proc_null();
	struct madmpi_signed walked;
	struct nm_sr_request nm;
	struct madmpi_message r;
	struct nm_sr_status st;
	struct nm_data data;
	struct matched *m;
	int rc = open_message(fn, buf, count, datatype, message, &m, &r);

	if (rc != MPI_SUCCESS)
		return rc;
	*message = MPI_MESSAGE_NULL;
	if (m != NULL) {
		data = madmpi_message_data(&r, &walked);
		rc = nm_sr_mrecv(m->nm, &data, &nm);
		if (rc < 0) {
			madmpi_error_errno(r.comm, rc, fn, "receive");
			matched_put(m);
			return madmpi_error_class_of_errno(rc);
		}
		nm_sr_wait(&nm);
		nm_sr_status(&nm, &st);
		o = madmpi_outcome_recv(r.comm, MPI_ANY_SOURCE, &st);
		if (madmpi_data_is_walked(&data))
			madmpi_signed_check(&o, &walked);
	}
	madmpi_status_fill(status, &o);
	rc = madmpi_outcome_raise(r.comm, fn, &o);
	if (m != NULL)
		matched_put(m);
	return rc;
}

/* MPI_Imrecv, MPI_Imrecv_c */
int madmpi_imrecv(void *buf, MPI_Count count, MPI_Datatype datatype,
		  MPI_Message *message, MPI_Request *request)
{
	const char *fn = "MPI_Imrecv";
	struct madmpi_request *r;
	struct madmpi_message p;
	struct nm_data data;
	struct matched *m;
	int rc = open_message(fn, buf, count, datatype, message, &m, &p);

	if (rc != MPI_SUCCESS)
		return rc;
	if (request == NULL)
		return madmpi_null_arg(p.comm, fn, "request");
	r = madmpi_request_new(
		fn, m == NULL ? MADMPI_REQUEST_NOTHING : MADMPI_REQUEST_RECV,
		&p, &rc);
	if (r == NULL)
		return rc;
	if (m != NULL) {
		data = madmpi_message_data(&p, &r->walked);
		rc = nm_sr_mrecv(m->nm, &data, &r->nm);
		if (rc < 0) {
			madmpi_request_put(r);
			return madmpi_error_errno(p.comm, rc, fn, "receive");
		}
		madmpi_request_hold(r, &p, &data);
		matched_put(m);
	}
	*message = MPI_MESSAGE_NULL;
	*request = (MPI_Request)r;
	return MPI_SUCCESS;
}
