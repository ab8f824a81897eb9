/*
 * MPI_Gather, MPI_Gatherv.
 */
#include <errno.h>

#include "bodies.h"
#include "coll/coll.h"
#include "pt2pt/message.h"

/* The root receives from all at once, in a window; the others send. */
static void linear(struct madmpi_coll *c, const void *sbuf, MPI_Count scount,
		   const struct madmpi_type *st, const struct madmpi_parts *x,
		   int root)
{
	struct madmpi_window w;
	int peer;

	if (c->rank != root) {
		if (scount * st->size > 0)
			madmpi_coll_send(c, sbuf, scount, st, root);
		return;
	}
	if (sbuf != MPI_IN_PLACE)
		madmpi_copy_bytes(sbuf, scount, st, madmpi_parts_at(x, root),
				  madmpi_parts_count(x, root), x->type);
	if (madmpi_window_init(&w, c) < 0) {
		madmpi_coll_fail(c, -ENOMEM);
		return;
	}
	for (int i = 1; i < c->size; i++) {
		peer = (root + i) % c->size;
		if (madmpi_parts_any(x, peer))
			madmpi_coll_irecv(c, madmpi_window_next(&w),
					  madmpi_parts_at(x, peer),
					  madmpi_parts_count(x, peer), x->type,
					  peer);
	}
	madmpi_window_exit(&w);
}

static int check_send(const char *fn, struct madmpi_comm *mc,
		      const void *sendbuf, MPI_Count sendcount,
		      MPI_Datatype sendtype, int root, struct madmpi_type **st)
{
	int rc = madmpi_check_root(fn, mc, root);

	if (rc != MPI_SUCCESS || (sendbuf == MPI_IN_PLACE && mc->rank == root))
		return rc;
	return madmpi_check_data(fn, mc, sendbuf, sendcount, sendtype, st);
}

/* At the root: what it sends itself, and where that goes. */
static int check_own(const char *fn, struct madmpi_comm *mc,
		     const void *sendbuf, MPI_Count sendcount,
		     const struct madmpi_type *st, const struct madmpi_parts *p)
{
	int rc = madmpi_check_own(fn, mc, sendcount, st,
				  madmpi_parts_count(p, mc->rank), p->type);

	return rc ? rc
		  : madmpi_check_alias_own(fn, mc, sendbuf,
					   sendcount * st->size, p);
}

/* MPI_Gather, MPI_Gather_c */
int madmpi_gather(const void *sendbuf, MPI_Count sendcount,
		  MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		  MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	const char *fn = "MPI_Gather";
	struct madmpi_parts x = { .base = recvbuf, .count = recvcount };
	struct madmpi_type *st = NULL, *rt = NULL;
	struct madmpi_comm *mc;
	struct madmpi_coll c;
	int rc = madmpi_check_comm(fn, comm, &mc);

	if (rc == MPI_SUCCESS)
		rc = check_send(fn, mc, sendbuf, sendcount, sendtype, root,
				&st);
	if (rc == MPI_SUCCESS && mc->rank == root)
		rc = madmpi_check_data(fn, mc, recvbuf, recvcount, recvtype,
				       &rt);
	x.type = rt;
	if (rc == MPI_SUCCESS && rt != NULL && st != NULL)
		rc = check_own(fn, mc, sendbuf, sendcount, st, &x);
	if (rc != MPI_SUCCESS)
		return rc;
	madmpi_coll_begin(&c, fn, mc);
	linear(&c, sendbuf, sendcount, st, &x, root);
	return madmpi_coll_end(&c);
}

/* MPI_Gatherv, MPI_Gatherv_c */
int madmpi_gatherv(const void *sendbuf, MPI_Count sendcount,
		   MPI_Datatype sendtype, void *recvbuf,
		   struct madmpi_array recvcounts, struct madmpi_array displs,
		   MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	const char *fn = "MPI_Gatherv";
	struct madmpi_parts x = { .base = recvbuf,
				  .counts = recvcounts,
				  .displs = displs };
	struct madmpi_type *st = NULL, *rt = NULL;
	struct madmpi_comm *mc;
	struct madmpi_coll c;
	int rc = madmpi_check_comm(fn, comm, &mc);

	if (rc == MPI_SUCCESS)
		rc = check_send(fn, mc, sendbuf, sendcount, sendtype, root,
				&st);
	if (rc == MPI_SUCCESS && mc->rank == root)
		rc = madmpi_check_parts(fn, mc, recvbuf, recvcounts, displs,
					recvtype, &rt);
	x.type = rt;
	if (rc == MPI_SUCCESS && rt != NULL && st != NULL)
		rc = check_own(fn, mc, sendbuf, sendcount, st, &x);
	if (rc != MPI_SUCCESS)
		return rc;
	madmpi_coll_begin(&c, fn, mc);
	linear(&c, sendbuf, sendcount, st, &x, root);
	return madmpi_coll_end(&c);
}
