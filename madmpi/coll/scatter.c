/*
 * MPI_Scatter, MPI_Scatterv.
 */
#include "bodies.h"
#include "coll/forms.h"
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

/* At the root, unless its part is in place. */
static void copy_own(struct madmpi_coll *c, const struct madmpi_parts *s,
		     void *rbuf, MPI_Count rcount, const struct madmpi_type *rt)
{
	if (rbuf != MPI_IN_PLACE)
		madmpi_coll_copy(c, madmpi_parts_at(s, c->rank),
				 madmpi_parts_count(s, c->rank), s->type, rbuf,
				 rcount, rt);
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
	madmpi_window_init(&w, c);
	send_parts(&w, s, root + 1, c->size - 1);
	copy_own(c, s, rbuf, rcount, rt);
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
	madmpi_window_init(&w, c);
	send_parts(&w, s, 0, c->size);
	madmpi_window_exit(&w);
}

/* Parts of different sizes, of which each process knows its own. */
static void run_v(struct madmpi_coll *c, const struct madmpi_collective *x)
{
	const struct madmpi_parts *r = &x->recv;

	if (madmpi_comm_is_inter(x->comm))
		across(c, &x->send, r->base, r->count, r->type, x->root);
	else
		madmpi_scatter_linear(c, &x->send, r->base, r->count, r->type,
				      x->root);
}

static void run(struct madmpi_coll *c, const struct madmpi_collective *x)
{
	const struct madmpi_parts *s = &x->send, *r = &x->recv;
	const struct madmpi_parts *known = c->rank == x->root ? s : r;
	enum madmpi_route route = MADMPI_BY_MESSAGES;

	if (!madmpi_comm_is_inter(x->comm))
		route = madmpi_choose_scatter(c,
					      known->count * known->type->size);
	if (route == MADMPI_BY_MESSAGES)
		run_v(c, x);
	else if (route == MADMPI_SHARED)
		madmpi_scatter_shared(c, s, r, x->root);
	else
		madmpi_scatter_direct(c, s, r, x->root);
	if (route != MADMPI_BY_MESSAGES && c->rank == x->root)
		copy_own(c, s, r->base, r->count, r->type);
}

/* What every process but a root that leaves its part in place gets. */
static int check_recv(struct madmpi_collective *x, void *recvbuf,
		      MPI_Count recvcount, MPI_Datatype recvtype)
{
	int rc = madmpi_check_root(x->function, x->comm, x->root);

	x->recv.base = recvbuf;
	if (rc != MPI_SUCCESS || x->root < 0 || /* its group receives nothing */
	    (madmpi_in_place(x->comm, recvbuf) && x->comm->rank == x->root))
		return rc;
	x->recv.count = recvcount;
	return madmpi_check_data(x->function, x->comm, recvbuf, recvcount,
				 recvtype, &x->recv.type);
}

/* At the root: what it sends itself, and where that goes. */
static int check_own(const struct madmpi_collective *x)
{
	const struct madmpi_parts *s = &x->send, *r = &x->recv;
	struct madmpi_comm *mc = x->comm;
	MPI_Count n;
	int rc;

	if (r->type == NULL)
		return MPI_SUCCESS;
	n = madmpi_parts_count(s, mc->rank);
	rc = madmpi_check_own(x->function, mc, n, s->type, r->count, r->type);
	return rc ? rc
		  : madmpi_check_alias_own(x->function, mc, r->base,
					   n * s->type->size, s);
}

static int prepare(struct madmpi_collective *x, const char *fn,
		   const void *sendbuf, MPI_Count sendcount,
		   MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		   MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	struct madmpi_parts s = { .base = (void *)sendbuf, .count = sendcount };
	int rc;

	madmpi_collective_set(x, fn, run);
	x->root = root;
	rc = madmpi_check_comm(fn, comm, &x->comm);
	if (rc == MPI_SUCCESS)
		rc = check_recv(x, recvbuf, recvcount, recvtype);
	if (rc != MPI_SUCCESS || !madmpi_is_root(x->comm, root))
		return rc;
	rc = madmpi_check_data(fn, x->comm, sendbuf, sendcount, sendtype,
			       &s.type);
	x->send = s;
	return rc ? rc : check_own(x);
}

static int prepare_v(struct madmpi_collective *x, const char *fn,
		     const void *sendbuf, struct madmpi_array sendcounts,
		     struct madmpi_array displs, MPI_Datatype sendtype,
		     void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
		     int root, MPI_Comm comm)
{
	struct madmpi_parts s = { .base = (void *)sendbuf,
				  .counts = sendcounts,
				  .displs = displs };
	int rc;

	madmpi_collective_set(x, fn, run_v);
	x->root = root;
	rc = madmpi_check_comm(fn, comm, &x->comm);
	if (rc == MPI_SUCCESS)
		rc = check_recv(x, recvbuf, recvcount, recvtype);
	if (rc != MPI_SUCCESS || !madmpi_is_root(x->comm, root))
		return rc;
	rc = madmpi_check_parts(fn, x->comm, sendtype, &s);
	x->send = s;
	return rc ? rc : check_own(x);
}

/* MPI_Scatter, MPI_Scatter_c */
int madmpi_scatter(const void *sendbuf, MPI_Count sendcount,
		   MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		   MPI_Datatype recvtype, int root, MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Scatter", sendbuf, sendcount, sendtype,
			 recvbuf, recvcount, recvtype, root, comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Iscatter, MPI_Iscatter_c */
int madmpi_iscatter(const void *sendbuf, MPI_Count sendcount,
		    MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		    MPI_Datatype recvtype, int root, MPI_Comm comm,
		    MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Iscatter", sendbuf, sendcount, sendtype,
			 recvbuf, recvcount, recvtype, root, comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Scatter_init, MPI_Scatter_init_c */
int madmpi_scatter_init(const void *sendbuf, MPI_Count sendcount,
			MPI_Datatype sendtype, void *recvbuf,
			MPI_Count recvcount, MPI_Datatype recvtype, int root,
			MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Scatter_init", sendbuf, sendcount, sendtype,
			 recvbuf, recvcount, recvtype, root, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}

/* MPI_Scatterv, MPI_Scatterv_c */
int madmpi_scatterv(const void *sendbuf, struct madmpi_array sendcounts,
		    struct madmpi_array displs, MPI_Datatype sendtype,
		    void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
		    int root, MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare_v(&x, "MPI_Scatterv", sendbuf, sendcounts, displs,
			   sendtype, recvbuf, recvcount, recvtype, root, comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Iscatterv, MPI_Iscatterv_c */
int madmpi_iscatterv(const void *sendbuf, struct madmpi_array sendcounts,
		     struct madmpi_array displs, MPI_Datatype sendtype,
		     void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
		     int root, MPI_Comm comm, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_v(&x, "MPI_Iscatterv", sendbuf, sendcounts, displs,
			   sendtype, recvbuf, recvcount, recvtype, root, comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Scatterv_init, MPI_Scatterv_init_c */
int madmpi_scatterv_init(const void *sendbuf, struct madmpi_array sendcounts,
			 struct madmpi_array displs, MPI_Datatype sendtype,
			 void *recvbuf, MPI_Count recvcount,
			 MPI_Datatype recvtype, int root, MPI_Comm comm,
			 MPI_Info info, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_v(&x, "MPI_Scatterv_init", sendbuf, sendcounts, displs,
			   sendtype, recvbuf, recvcount, recvtype, root, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}
