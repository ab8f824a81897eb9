/*
 * MPI_Gather, MPI_Gatherv.
 */
#include <errno.h>

#include "bodies.h"
#include "coll/coll.h"
#include "pt2pt/message.h"

void madmpi_gather_parts(struct madmpi_coll *c, const struct madmpi_parts *x,
			 int first, int n)
{
	struct madmpi_window w;
	int peer;

	if (madmpi_window_init(&w, c) < 0) {
		madmpi_coll_fail(c, -ENOMEM);
		return;
	}
	for (int i = 0; i < n; i++) {
		peer = (first + i) % c->size;
		if (madmpi_parts_any(x, peer))
			madmpi_coll_irecv(c, madmpi_window_next(&w),
					  madmpi_parts_at(x, peer),
					  madmpi_parts_count(x, peer), x->type,
					  peer);
	}
	madmpi_window_exit(&w);
}

/* The root receives from all others, who send. */
static void linear(struct madmpi_coll *c, const void *sbuf, MPI_Count scount,
		   const struct madmpi_type *st, const struct madmpi_parts *x,
		   int root)
{
	if (c->rank != root) {
		if (scount * st->size > 0)
			madmpi_coll_send(c, sbuf, scount, st, root);
		return;
	}
	if (sbuf != MPI_IN_PLACE)
		madmpi_copy_bytes(sbuf, scount, st, madmpi_parts_at(x, root),
				  madmpi_parts_count(x, root), x->type);
	madmpi_gather_parts(c, x, root + 1, c->size - 1);
}

/* From one group to a root in the other one. */
static void across(struct madmpi_coll *c, const void *sbuf, MPI_Count scount,
		   const struct madmpi_type *st, const struct madmpi_parts *x,
		   int root)
{
	madmpi_coll_across(c);
	if (root == MPI_ROOT)
		madmpi_gather_parts(c, x, 0, c->size);
	else if (root != MPI_PROC_NULL && scount * st->size > 0)
		madmpi_coll_send(c, sbuf, scount, st, root);
}

static int run(const char *fn, struct madmpi_comm *mc, const void *sbuf,
	       MPI_Count scount, const struct madmpi_type *st,
	       const struct madmpi_parts *x, int root)
{
	struct madmpi_coll c;

	madmpi_coll_begin(&c, fn, mc);
	if (madmpi_comm_is_inter(mc))
		across(&c, sbuf, scount, st, x, root);
	else
		linear(&c, sbuf, scount, st, x, root);
	return madmpi_coll_end(&c);
}

static int check_send(const char *fn, struct madmpi_comm *mc,
		      const void *sendbuf, MPI_Count sendcount,
		      MPI_Datatype sendtype, int root, struct madmpi_type **st)
{
	int rc = madmpi_check_root(fn, mc, root);

	if (rc != MPI_SUCCESS || root < 0 || /* its group sends nothing */
	    (madmpi_in_place(mc, sendbuf) && mc->rank == root))
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
	int rc = madmpi_check_comm(fn, comm, &mc);

	if (rc == MPI_SUCCESS)
		rc = check_send(fn, mc, sendbuf, sendcount, sendtype, root,
				&st);
	if (rc == MPI_SUCCESS && madmpi_is_root(mc, root))
		rc = madmpi_check_data(fn, mc, recvbuf, recvcount, recvtype,
				       &rt);
	x.type = rt;
	if (rc == MPI_SUCCESS && rt != NULL && st != NULL)
		rc = check_own(fn, mc, sendbuf, sendcount, st, &x);
	if (rc != MPI_SUCCESS)
		return rc;
	return run(fn, mc, sendbuf, sendcount, st, &x, root);
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
	int rc = madmpi_check_comm(fn, comm, &mc);

	if (rc == MPI_SUCCESS)
		rc = check_send(fn, mc, sendbuf, sendcount, sendtype, root,
				&st);
	if (rc == MPI_SUCCESS && madmpi_is_root(mc, root))
		rc = madmpi_check_parts(fn, mc, recvbuf, recvcounts, displs,
					recvtype, &rt);
	x.type = rt;
	if (rc == MPI_SUCCESS && rt != NULL && st != NULL)
		rc = check_own(fn, mc, sendbuf, sendcount, st, &x);
	if (rc != MPI_SUCCESS)
		return rc;
	return run(fn, mc, sendbuf, sendcount, st, &x, root);
}
