/*
 * MPI_Scatter, MPI_Scatterv.
 */
#include <errno.h>

#include "bodies.h"
#include "coll/coll.h"
#include "pt2pt/message.h"

/* Send n processes their parts, the first of them `first`. */
static void send_parts(struct madmpi_window *w, const struct madmpi_parts *s,
		       int first, int n)
{
	struct madmpi_coll *c = w->coll;
	int peer;

	for (int i = 0; i < n; i++) {
		peer = (first + i) % c->size;
		if (madmpi_parts_any(s, peer))
			madmpi_coll_isend(c, madmpi_window_next(w),
					  madmpi_parts_at(s, peer),
					  madmpi_parts_count(s, peer), s->type,
					  peer);
	}
}

void madmpi_scatter_linear(struct madmpi_coll *c, const struct madmpi_parts *s,
			   void *rbuf, MPI_Count rcount,
			   const struct madmpi_type *rt, int root)
{
	struct madmpi_window w;

	if (c->rank != root) {
		if (rcount * rt->size > 0)
			madmpi_coll_recv(c, rbuf, rcount, rt, root);
		return;
	}
	if (madmpi_window_init(&w, c) < 0) {
		madmpi_coll_fail(c, -ENOMEM);
		return;
	}
	send_parts(&w, s, root + 1, c->size - 1);
	if (rbuf != MPI_IN_PLACE)
		madmpi_copy_bytes(madmpi_parts_at(s, root),
				  madmpi_parts_count(s, root), s->type, rbuf,
				  rcount, rt);
	madmpi_window_exit(&w);
}

/* From a root in one group to the other one. */
static void across(struct madmpi_coll *c, const struct madmpi_parts *s,
		   void *rbuf, MPI_Count rcount, const struct madmpi_type *rt,
		   int root)
{
	struct madmpi_window w;

	madmpi_coll_across(c);
	if (root == MPI_PROC_NULL)
		return;
	if (root != MPI_ROOT) {
		if (rcount * rt->size > 0)
			madmpi_coll_recv(c, rbuf, rcount, rt, root);
		return;
	}
	if (madmpi_window_init(&w, c) < 0) {
		madmpi_coll_fail(c, -ENOMEM);
		return;
	}
	send_parts(&w, s, 0, c->size);
	madmpi_window_exit(&w);
}

static int run(const char *fn, struct madmpi_comm *mc,
	       const struct madmpi_parts *s, void *rbuf, MPI_Count rcount,
	       const struct madmpi_type *rt, int root)
{
	struct madmpi_coll c;

	madmpi_coll_begin(&c, fn, mc);
	if (madmpi_comm_is_inter(mc))
		across(&c, s, rbuf, rcount, rt, root);
	else
		madmpi_scatter_linear(&c, s, rbuf, rcount, rt, root);
	return madmpi_coll_end(&c);
}

static int check_recv(const char *fn, struct madmpi_comm *mc,
		      const void *recvbuf, MPI_Count recvcount,
		      MPI_Datatype recvtype, int root, struct madmpi_type **rt)
{
	int rc = madmpi_check_root(fn, mc, root);

	if (rc != MPI_SUCCESS || root < 0 || /* its group receives nothing */
	    (madmpi_in_place(mc, recvbuf) && mc->rank == root))
		return rc;
	return madmpi_check_data(fn, mc, recvbuf, recvcount, recvtype, rt);
}

/* At the root: what it sends itself, and where that goes. */
static int check_own(const char *fn, struct madmpi_comm *mc,
		     const struct madmpi_parts *p, const void *recvbuf,
		     MPI_Count recvcount, const struct madmpi_type *rt)
{
	MPI_Count n = madmpi_parts_count(p, mc->rank);
	int rc = madmpi_check_own(fn, mc, n, p->type, recvcount, rt);

	return rc ? rc
		  : madmpi_check_alias_own(fn, mc, recvbuf, n * p->type->size,
					   p);
}

/* MPI_Scatter, MPI_Scatter_c */
int madmpi_scatter(const void *sendbuf, MPI_Count sendcount,
		   MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		   MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	const char *fn = "MPI_Scatter";
	struct madmpi_parts x = { .base = (void *)sendbuf, .count = sendcount };
	struct madmpi_type *st = NULL, *rt = NULL;
	struct madmpi_comm *mc;
	int rc = madmpi_check_comm(fn, comm, &mc);

	if (rc == MPI_SUCCESS)
		rc = check_recv(fn, mc, recvbuf, recvcount, recvtype, root,
				&rt);
	if (rc == MPI_SUCCESS && madmpi_is_root(mc, root))
		rc = madmpi_check_data(fn, mc, sendbuf, sendcount, sendtype,
				       &st);
	x.type = st;
	if (rc == MPI_SUCCESS && rt != NULL && st != NULL)
		rc = check_own(fn, mc, &x, recvbuf, recvcount, rt);
	if (rc != MPI_SUCCESS)
		return rc;
	return run(fn, mc, &x, recvbuf, recvcount, rt, root);
}

/* MPI_Scatterv, MPI_Scatterv_c */
int madmpi_scatterv(const void *sendbuf, struct madmpi_array sendcounts,
		    struct madmpi_array displs, MPI_Datatype sendtype,
		    void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
		    int root, MPI_Comm comm)
{
	const char *fn = "MPI_Scatterv";
	struct madmpi_parts x = { .base = (void *)sendbuf,
				  .counts = sendcounts,
				  .displs = displs };
	struct madmpi_type *st = NULL, *rt = NULL;
	struct madmpi_comm *mc;
	int rc = madmpi_check_comm(fn, comm, &mc);

	if (rc == MPI_SUCCESS)
		rc = check_recv(fn, mc, recvbuf, recvcount, recvtype, root,
				&rt);
	if (rc == MPI_SUCCESS && madmpi_is_root(mc, root))
		rc = madmpi_check_parts(fn, mc, sendbuf, sendcounts, displs,
					sendtype, &st);
	x.type = st;
	if (rc == MPI_SUCCESS && rt != NULL && st != NULL)
		rc = check_own(fn, mc, &x, recvbuf, recvcount, rt);
	if (rc != MPI_SUCCESS)
		return rc;
	return run(fn, mc, &x, recvbuf, recvcount, rt, root);
}
