/*
 * Sending and receiving in one call. Both requests are on the caller's stack;
 * the receive is posted first.
 */
#include <stdlib.h>

#include "bodies.h"
#include "env/error.h"
#include "pt2pt/request.h"

/* Sends s, or a packed copy of a message with the signature of `as`. */
static int exchange(const char *fn, const struct madmpi_message *s,
		    const struct madmpi_message *as,
		    const struct madmpi_message *r, MPI_Status *status)
{
	struct madmpi_signed out, in;
	struct nm_sr_request rnm;
	struct nm_sr_status st;
	struct madmpi_outcome sent = madmpi_outcome_empty();
	struct madmpi_outcome got = madmpi_outcome_proc_null();
	struct nm_data data, into;
	int rc;

	if (r->peer != MPI_PROC_NULL) {
		into = madmpi_message_data(r, &in);
		rc = nm_sr_irecv(r->comm->p2p, madmpi_gate(r->comm, r->peer),
				 madmpi_tag(r->tag), madmpi_tag_mask(r->tag),
				 &into, &rnm);
		if (unlikely(rc < 0))
			return madmpi_error_errno(r->comm, rc, fn, "receive");
	}
	if (s->peer != MPI_PROC_NULL) {
		data = madmpi_message_data_as(s, as, &out);
		sent.error = nm_sr_send(s->comm->p2p, s->comm->gate[s->peer],
					madmpi_tag(s->tag), &data, 0);
	}
	if (r->peer != MPI_PROC_NULL) {
		nm_sr_wait(&rnm);
		nm_sr_status(&rnm, &st);
		got = madmpi_outcome_recv(r->comm, r->peer, &st);
		if (madmpi_data_is_walked(&into))
			madmpi_signed_check(&got, &in);
	}
	madmpi_status_fill(status, &got);
	rc = madmpi_outcome_raise(r->comm, fn, &sent);
	return rc ? rc : madmpi_outcome_raise(r->comm, fn, &got);
}

/* MPI_Sendrecv, MPI_Sendrecv_c */
int madmpi_sendrecv(const void *sendbuf, MPI_Count sendcount,
		    MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
		    MPI_Count recvcount, MPI_Datatype recvtype, int source,
		    int recvtag, MPI_Comm comm, MPI_Status *status)
{
	const char *fn = "MPI_Sendrecv";
	struct madmpi_message s, r;
	int rc;

	rc = madmpi_message_open(fn, MADMPI_SEND, sendbuf, sendcount, sendtype,
				 dest, sendtag, comm, &s);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_message_open(fn, MADMPI_RECV, recvbuf, recvcount,
					 recvtype, source, recvtag, comm, &r);
	return likely(rc == MPI_SUCCESS) ? exchange(fn, &s, &s, &r, status)
					 : rc;
}

/* MPI_Sendrecv_replace, MPI_Sendrecv_replace_c */
int madmpi_sendrecv_replace(void *buf, MPI_Count count, MPI_Datatype datatype,
			    int dest, int sendtag, int source, int recvtag,
			    MPI_Comm comm, MPI_Status *status)
{
	const char *fn = "MPI_Sendrecv_replace";
	struct madmpi_message s, r;
	void *copy;
	int rc;

	rc = madmpi_message_open(fn, MADMPI_SEND, buf, count, datatype, dest,
				 sendtag, comm, &s);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_message_open(fn, MADMPI_RECV, buf, count, datatype,
					 source, recvtag, comm, &r);
	if (unlikely(rc != MPI_SUCCESS))
		return rc;
	if (madmpi_message_pack(&s, &copy) < 0)
		return madmpi_error(s.comm, MPI_ERR_NO_MEM, fn,
				    "no memory for a copy of %lld bytes",
				    (long long)(count * s.type->size));
	rc = exchange(fn, &s, &r, &r, status);
	free(copy);
	return rc;
}
