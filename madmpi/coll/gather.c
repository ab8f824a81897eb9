/*
 * MPI_Gather, MPI_Gatherv.
 */
#include "bodies.h"
#include "coll/forms.h"
#include "pt2pt/message.h"

void madmpi_gather_parts(struct madmpi_coll *c, const struct madmpi_parts *x,
			 int first, int n)
{
	struct madmpi_window w;
	int peer;

	madmpi_window_init(&w, c);
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
static void linear(struct madmpi_coll *c, const struct madmpi_parts *s,
		   const struct madmpi_parts *r, int root)
{
	if (c->rank != root) {
		if (s->count * s->type->size > 0)
			madmpi_coll_send(c, s->base, s->count, s->type, root);
		return;
	}
	madmpi_coll_copy_own(c, s, r);
	madmpi_gather_parts(c, r, root + 1, c->size - 1);
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

/* Parts of different sizes, of which each process knows its own. */
static void run_v(struct madmpi_coll *c, const struct madmpi_collective *x)
{
	const struct madmpi_parts *s = &x->send;

	if (madmpi_comm_is_inter(x->comm))
		across(c, s->base, s->count, s->type, &x->recv, x->root);
	else
		linear(c, s, &x->recv, x->root);
}

static void run(struct madmpi_coll *c, const struct madmpi_collective *x)
{
	const struct madmpi_parts *s = &x->send, *r = &x->recv;
	const struct madmpi_parts *known = c->rank == x->root ? r : s;
	bool is_shared = !madmpi_comm_is_inter(x->comm) &&
			 madmpi_choose_gather_shared(
				 c, known->count * known->type->size);

	if (!is_shared) {
		run_v(c, x);
		return;
	}
	if (c->rank == x->root)
		madmpi_coll_copy_own(c, s, r);
	madmpi_gather_shared(c, s, r, x->root);
}

/* What every process but a root that has its part in place gives. */
static int check_send(struct madmpi_collective *x, const void *sendbuf,
		      MPI_Count sendcount, MPI_Datatype sendtype)
{
	int rc = madmpi_check_root(x->function, x->comm, x->root);

	x->send.base = (void *)sendbuf;
	if (rc != MPI_SUCCESS || x->root < 0 || /* its group sends nothing */
	    (madmpi_in_place(x->comm, sendbuf) && x->comm->rank == x->root))
		return rc;
	x->send.count = sendcount;
	return madmpi_check_data(x->function, x->comm, sendbuf, sendcount,
				 sendtype, &x->send.type);
}

/* At the root: what it sends itself, and where that goes. */
static int check_own(const struct madmpi_collective *x)
{
	const struct madmpi_parts *s = &x->send, *r = &x->recv;
	struct madmpi_comm *mc = x->comm;
	int rc;

	if (s->type == NULL)
		return MPI_SUCCESS;
	rc = madmpi_check_own(x->function, mc, s->count, s->type,
			      madmpi_parts_count(r, mc->rank), r->type);
	return rc ? rc
		  : madmpi_check_alias_own(x->function, mc, s->base,
					   s->count * s->type->size, r);
}

static int prepare(struct madmpi_collective *x, const char *fn,
		   const void *sendbuf, MPI_Count sendcount,
		   MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		   MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	struct madmpi_parts r = { .base = recvbuf, .count = recvcount };
	int rc;

	madmpi_collective_set(x, fn, run);
	x->root = root;
	rc = madmpi_check_comm(fn, comm, &x->comm);
	if (rc == MPI_SUCCESS)
		rc = check_send(x, sendbuf, sendcount, sendtype);
	if (rc != MPI_SUCCESS || !madmpi_is_root(x->comm, root))
		return rc;
	rc = madmpi_check_data(fn, x->comm, recvbuf, recvcount, recvtype,
			       &r.type);
	x->recv = r;
	return rc ? rc : check_own(x);
}

static int prepare_v(struct madmpi_collective *x, const char *fn,
		     const void *sendbuf, MPI_Count sendcount,
		     MPI_Datatype sendtype, void *recvbuf,
		     struct madmpi_array recvcounts, struct madmpi_array displs,
		     MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	struct madmpi_parts r = { .base = recvbuf,
				  .counts = recvcounts,
				  .displs = displs };
	int rc;

	madmpi_collective_set(x, fn, run_v);
	x->root = root;
	rc = madmpi_check_comm(fn, comm, &x->comm);
	if (rc == MPI_SUCCESS)
		rc = check_send(x, sendbuf, sendcount, sendtype);
	if (rc != MPI_SUCCESS || !madmpi_is_root(x->comm, root))
		return rc;
	rc = madmpi_check_parts(fn, x->comm, recvtype, &r);
	x->recv = r;
	return rc ? rc : check_own(x);
}

/* MPI_Gather, MPI_Gather_c */
int madmpi_gather(const void *sendbuf, MPI_Count sendcount,
		  MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		  MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Gather", sendbuf, sendcount, sendtype,
			 recvbuf, recvcount, recvtype, root, comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Igather, MPI_Igather_c */
int madmpi_igather(const void *sendbuf, MPI_Count sendcount,
		   MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		   MPI_Datatype recvtype, int root, MPI_Comm comm,
		   MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Igather", sendbuf, sendcount, sendtype,
			 recvbuf, recvcount, recvtype, root, comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Gather_init, MPI_Gather_init_c */
int madmpi_gather_init(const void *sendbuf, MPI_Count sendcount,
		       MPI_Datatype sendtype, void *recvbuf,
		       MPI_Count recvcount, MPI_Datatype recvtype, int root,
		       MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Gather_init", sendbuf, sendcount, sendtype,
			 recvbuf, recvcount, recvtype, root, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}

/* MPI_Gatherv, MPI_Gatherv_c */
int madmpi_gatherv(const void *sendbuf, MPI_Count sendcount,
		   MPI_Datatype sendtype, void *recvbuf,
		   struct madmpi_array recvcounts, struct madmpi_array displs,
		   MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare_v(&x, "MPI_Gatherv", sendbuf, sendcount, sendtype,
			   recvbuf, recvcounts, displs, recvtype, root, comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Igatherv, MPI_Igatherv_c */
int madmpi_igatherv(const void *sendbuf, MPI_Count sendcount,
		    MPI_Datatype sendtype, void *recvbuf,
		    struct madmpi_array recvcounts, struct madmpi_array displs,
		    MPI_Datatype recvtype, int root, MPI_Comm comm,
		    MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_v(&x, "MPI_Igatherv", sendbuf, sendcount, sendtype,
			   recvbuf, recvcounts, displs, recvtype, root, comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Gatherv_init, MPI_Gatherv_init_c */
int madmpi_gatherv_init(const void *sendbuf, MPI_Count sendcount,
			MPI_Datatype sendtype, void *recvbuf,
			struct madmpi_array recvcounts,
			struct madmpi_array displs, MPI_Datatype recvtype,
			int root, MPI_Comm comm, MPI_Info info,
			MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_v(&x, "MPI_Gatherv_init", sendbuf, sendcount, sendtype,
			   recvbuf, recvcounts, displs, recvtype, root, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}
