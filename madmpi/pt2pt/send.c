/*
 * Sending: the modes, blocking and not.
 *
 * A blocking send keeps its request on the stack of the caller. Ready mode is
 * standard mode: nothing could be won.
 */
#include "bodies.h"
#include "env/error.h"
#include "pt2pt/request.h"

static int blocking(const char *fn, unsigned flags,
		    const struct madmpi_message *m)
{
	struct madmpi_outcome o = madmpi_outcome_empty();
	struct madmpi_signed walked;
	struct nm_data data;

	if (m->peer == MPI_PROC_NULL)
		return MPI_SUCCESS;
	data = madmpi_message_data(m, &walked);
	o.error = nm_sr_send(m->comm->p2p, m->comm->gate[m->peer],
			     madmpi_tag(m->tag), &data, flags);
	return madmpi_outcome_raise(m->comm, fn, &o);
}

static int nonblocking(const char *fn, unsigned flags,
		       const struct madmpi_message *m, MPI_Request *request)
{
	struct madmpi_request *r;
	int rc;

	if (unlikely(request == NULL))
		return madmpi_null_arg(m->comm, fn, "request");
	r = madmpi_request_new(fn,
			       m->peer == MPI_PROC_NULL ? MADMPI_REQUEST_NOTHING
							: MADMPI_REQUEST_SEND,
			       m, &rc);
	if (unlikely(r == NULL))
		return rc;
	if (r->what == MADMPI_REQUEST_SEND) {
		rc = madmpi_request_start(r, m, flags);
		if (unlikely(rc < 0)) {
			madmpi_request_put(r);
			return madmpi_error_errno(m->comm, rc, fn, "send");
		}
	}
	*request = (MPI_Request)r;
	return MPI_SUCCESS;
}

/* MPI_Send, MPI_Send_c */
int madmpi_send(const void *buf, MPI_Count count, MPI_Datatype datatype,
		int dest, int tag, MPI_Comm comm)
{
	struct madmpi_message m;
	int rc = madmpi_message_open("MPI_Send", MADMPI_SEND, buf, count,
				     datatype, dest, tag, comm, &m);

	return likely(rc == MPI_SUCCESS) ? blocking("MPI_Send", 0, &m) : rc;
}

/* MPI_Ssend, MPI_Ssend_c */
int madmpi_ssend(const void *buf, MPI_Count count, MPI_Datatype datatype,
		 int dest, int tag, MPI_Comm comm)
{
	struct madmpi_message m;
	int rc = madmpi_message_open("MPI_Ssend", MADMPI_SEND, buf, count,
				     datatype, dest, tag, comm, &m);

	return rc ? rc : blocking("MPI_Ssend", NM_SEND_SYNC, &m);
}

/* MPI_Rsend, MPI_Rsend_c */
int madmpi_rsend(const void *buf, MPI_Count count, MPI_Datatype datatype,
		 int dest, int tag, MPI_Comm comm)
{
	struct madmpi_message m;
	int rc = madmpi_message_open("MPI_Rsend", MADMPI_SEND, buf, count,
				     datatype, dest, tag, comm, &m);

	return rc ? rc : blocking("MPI_Rsend", 0, &m);
}

/* MPI_Isend, MPI_Isend_c */
int madmpi_isend(const void *buf, MPI_Count count, MPI_Datatype datatype,
		 int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	struct madmpi_message m;
	int rc = madmpi_message_open("MPI_Isend", MADMPI_SEND, buf, count,
				     datatype, dest, tag, comm, &m);

	return likely(rc == MPI_SUCCESS)
		       ? nonblocking("MPI_Isend", 0, &m, request)
		       : rc;
}

/* MPI_Issend, MPI_Issend_c */
int madmpi_issend(const void *buf, MPI_Count count, MPI_Datatype datatype,
		  int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	struct madmpi_message m;
	int rc = madmpi_message_open("MPI_Issend", MADMPI_SEND, buf, count,
				     datatype, dest, tag, comm, &m);

	return rc ? rc : nonblocking("MPI_Issend", NM_SEND_SYNC, &m, request);
}

/* MPI_Irsend, MPI_Irsend_c */
int madmpi_irsend(const void *buf, MPI_Count count, MPI_Datatype datatype,
		  int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	struct madmpi_message m;
	int rc = madmpi_message_open("MPI_Irsend", MADMPI_SEND, buf, count,
				     datatype, dest, tag, comm, &m);

	return rc ? rc : nonblocking("MPI_Irsend", 0, &m, request);
}
