/*
 * Receiving, blocking and not.
 */
#include <errno.h>

#include "bodies.h"
#include "env/error.h"
#include "pt2pt/request.h"

/* MPI_Recv, MPI_Recv_c */
int madmpi_recv(void *buf, MPI_Count count, MPI_Datatype datatype, int source,
		int tag, MPI_Comm comm, MPI_Status *status)
{
	struct madmpi_message m;
	struct madmpi_signed walked;
	struct nm_sr_status st;
	struct nm_data data;
	struct madmpi_outcome o = madmpi_outcome_proc_null();
	int rc = madmpi_message_open("MPI_Recv", MADMPI_RECV, buf, count,
				     datatype, source, tag, comm, &m);

	if (unlikely(rc != MPI_SUCCESS))
		return rc;
	if (source != MPI_PROC_NULL) {
		data = madmpi_message_data(&m, &walked);
		rc = nm_sr_recv(m.comm->p2p, madmpi_gate(m.comm, source),
				madmpi_tag(tag), madmpi_tag_mask(tag), &data,
				&st);
		if (unlikely(rc == -EINVAL))
			return madmpi_error_errno(m.comm, rc, "MPI_Recv",
						  "receive");
		o = madmpi_outcome_recv(m.comm, source, &st);
		if (unlikely(madmpi_data_is_walked(&data)))
			madmpi_signed_check(&o, &walked);
	}
	madmpi_status_fill(status, &o);
	return madmpi_outcome_raise(m.comm, "MPI_Recv", &o);
}

/* MPI_Irecv, MPI_Irecv_c */
int madmpi_irecv(void *buf, MPI_Count count, MPI_Datatype datatype, int source,
		 int tag, MPI_Comm comm, MPI_Request *request)
{
	const char *fn = "MPI_Irecv";
	struct madmpi_message m;
	struct madmpi_request *r;
	int rc = madmpi_message_open(fn, MADMPI_RECV, buf, count, datatype,
				     source, tag, comm, &m);

	if (unlikely(rc != MPI_SUCCESS))
		return rc;
	if (unlikely(request == NULL))
		return madmpi_null_arg(m.comm, fn, "request");
	r = madmpi_request_new(fn,
			       source == MPI_PROC_NULL ? MADMPI_REQUEST_NOTHING
						       : MADMPI_REQUEST_RECV,
			       &m, &rc);
	if (unlikely(r == NULL))
		return rc;
	if (r->what == MADMPI_REQUEST_RECV) {
		rc = madmpi_request_start(r, &m, 0);
		if (unlikely(rc < 0)) {
			madmpi_request_put(r);
			return madmpi_error_errno(m.comm, rc, fn, "receive");
		}
	}
	*request = (MPI_Request)r;
	return MPI_SUCCESS;
}
