/*
 * Persistent requests: made once, started as often as one likes. What the call
 * says is checked once; the memory is looked at each time anew.
 */
#include <stdlib.h>

#include "bodies.h"
#include "env/error.h"
#include "pt2pt/bsend.h"
#include "pt2pt/request.h"

static int prepare(const char *fn, const struct madmpi_repeat *what,
		   MPI_Request *request)
{
	const struct madmpi_message *m = &what->m;
	struct madmpi_request *r;
	int rc;

	if (request == NULL)
		return madmpi_null_arg(m->comm, fn, "request");
	r = madmpi_request_new(fn, MADMPI_REQUEST_IDLE, m, &rc);
	if (r == NULL)
		return rc;
	r->repeat = malloc(sizeof(*r->repeat));
	if (r->repeat == NULL) {
		madmpi_request_put(r);
		return madmpi_error(m->comm, MPI_ERR_NO_MEM, fn,
				    "no memory for a persistent request");
	}
	*r->repeat = *what;
	if (m->type != NULL) /* to or from nobody, unchecked */
		madmpi_type_get(m->type);
	*request = (MPI_Request)r;
	return MPI_SUCCESS;
}

static int prepare_send(const char *fn, unsigned flags, bool buffered,
			const void *buf, MPI_Count count, MPI_Datatype datatype,
			int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	struct madmpi_repeat s = { .what = MADMPI_REQUEST_SEND,
				   .flags = flags,
				   .buffered = buffered };
	int rc = madmpi_message_open(fn, MADMPI_SEND, buf, count, datatype,
				     dest, tag, comm, &s.m);

	return rc ? rc : prepare(fn, &s, request);
}

/* MPI_Send_init, MPI_Send_init_c */
int madmpi_send_init(const void *buf, MPI_Count count, MPI_Datatype datatype,
		     int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	return prepare_send("MPI_Send_init", 0, false, buf, count, datatype,
			    dest, tag, comm, request);
}

/* MPI_Bsend_init, MPI_Bsend_init_c */
int madmpi_bsend_init(const void *buf, MPI_Count count, MPI_Datatype datatype,
		      int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	return prepare_send("MPI_Bsend_init", 0, true, buf, count, datatype,
			    dest, tag, comm, request);
}

/* MPI_Ssend_init, MPI_Ssend_init_c */
int madmpi_ssend_init(const void *buf, MPI_Count count, MPI_Datatype datatype,
		      int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	return prepare_send("MPI_Ssend_init", NM_SEND_SYNC, false, buf, count,
			    datatype, dest, tag, comm, request);
}

/* MPI_Rsend_init, MPI_Rsend_init_c */
int madmpi_rsend_init(const void *buf, MPI_Count count, MPI_Datatype datatype,
		      int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
	return prepare_send("MPI_Rsend_init", 0, false, buf, count, datatype,
			    dest, tag, comm, request);
}

/* MPI_Recv_init, MPI_Recv_init_c */
int madmpi_recv_init(void *buf, MPI_Count count, MPI_Datatype datatype,
		     int source, int tag, MPI_Comm comm, MPI_Request *request)
{
	const char *fn = "MPI_Recv_init";
	struct madmpi_repeat r = { .what = MADMPI_REQUEST_RECV };
	int rc = madmpi_message_open(fn, MADMPI_RECV, buf, count, datatype,
				     source, tag, comm, &r.m);

	return rc ? rc : prepare(fn, &r, request);
}

/* One that is more than a message. */
static int start_operation(const char *fn, struct madmpi_request *r)
{
	int rc;

	r->what = MADMPI_REQUEST_OPERATION;
	nm_sr_general_begin(&r->nm);
	rc = r->own->start(fn, r->own, r);
	if (rc != MPI_SUCCESS)
		r->what = MADMPI_REQUEST_IDLE;
	return rc;
}

static int start(const char *fn, MPI_Request handle)
{
	const struct madmpi_repeat *what;
	bool persistent;
	struct madmpi_request *r;
	int rc = MPI_SUCCESS;

	r = madmpi_request_of(fn, handle, &rc);
	if (r == NULL)
		return rc;
	persistent = madmpi_request_is_persistent(r);
	if (!persistent || r->what != MADMPI_REQUEST_IDLE)
		return madmpi_error(r->comm, MPI_ERR_REQUEST, fn,
				    "request %p is %s", (void *)handle,
				    persistent ? "active already"
					       : "not persistent");
	if (r->own != NULL)
		return start_operation(fn, r);
	what = r->repeat;
	if (what->m.peer == MPI_PROC_NULL) {
		r->what = MADMPI_REQUEST_NOTHING;
		return MPI_SUCCESS;
	}
	if (what->buffered) {
		rc = madmpi_bsend_message(fn, &what->m);
		if (rc == MPI_SUCCESS)
			r->what = MADMPI_REQUEST_NOTHING;
		return rc;
	}
	r->what = what->what;
	rc = madmpi_request_start(r, &what->m, what->flags);
	if (rc == 0)
		return MPI_SUCCESS;
	r->what = MADMPI_REQUEST_IDLE;
	return madmpi_error_errno(r->comm, rc, fn, "start");
}

/* MPI_Start */
int madmpi_start(MPI_Request *request)
{
	if (request == NULL)
		return madmpi_null_arg(NULL, "MPI_Start", "request");
	return start("MPI_Start", *request);
}

/* MPI_Startall */
int madmpi_startall(int count, MPI_Request array_of_requests[])
{
	const char *fn = "MPI_Startall";
	int rc = MPI_SUCCESS;

	if (count < 0)
		return madmpi_error(NULL, MPI_ERR_COUNT, fn,
				    "count is negative (%d)", count);
	if (count > 0 && array_of_requests == NULL)
		return madmpi_null_arg(NULL, fn, "array_of_requests");
	for (int i = 0; i < count && rc == MPI_SUCCESS; i++)
		rc = start(fn, array_of_requests[i]);
	return rc;
}
