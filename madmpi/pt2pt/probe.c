/*
 * Asking for messages without receiving them.
 */
#include <errno.h>

#include "bodies.h"
#include "env/error.h"
#include "pt2pt/request.h"
#include "pt2pt/status.h"

/* MPI_Probe */
int madmpi_probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	const char *fn = "MPI_Probe";
	struct madmpi_outcome o = madmpi_outcome_proc_null();
	struct nm_sr_status st;
	struct madmpi_message m;
	int rc =
		madmpi_message_envelope(fn, MADMPI_RECV, source, tag, comm, &m);

	if (rc != MPI_SUCCESS)
		return rc;
	if (source != MPI_PROC_NULL) {
		rc = nm_sr_probe_wait(m.comm->p2p, madmpi_gate(m.comm, source),
				      madmpi_tag(tag), madmpi_tag_mask(tag),
				      &st);
		if (rc < 0)
			return madmpi_error_errno(m.comm, rc, fn, "probe");
		o = madmpi_outcome_recv(m.comm, source, &st);
		madmpi_signed_probed(&o);
	}
	madmpi_status_fill(status, &o);
	return MPI_SUCCESS;
}

/* MPI_Iprobe */
int madmpi_iprobe(int source, int tag, MPI_Comm comm, int *flag,
		  MPI_Status *status)
{
	const char *fn = "MPI_Iprobe";
	struct madmpi_outcome o = madmpi_outcome_proc_null();
	struct nm_sr_status st;
	struct madmpi_message m;
	int rc =
		madmpi_message_envelope(fn, MADMPI_RECV, source, tag, comm, &m);

	if (rc != MPI_SUCCESS)
		return rc;
	if (flag == NULL)
		return madmpi_null_arg(m.comm, fn, "flag");
	*flag = 1;
	if (source != MPI_PROC_NULL) {
		rc = nm_sr_probe(m.comm->p2p, madmpi_gate(m.comm, source),
				 madmpi_tag(tag), madmpi_tag_mask(tag), &st);
		*flag = rc == 0;
		if (rc == -EAGAIN) {
			madmpi_make_way();
			return MPI_SUCCESS;
		}
		if (rc < 0)
			return madmpi_error_errno(m.comm, rc, fn, "probe");
		o = madmpi_outcome_recv(m.comm, source, &st);
		madmpi_signed_probed(&o);
	}
	madmpi_status_fill(status, &o);
	return MPI_SUCCESS;
}
