/*
 * Neighbourhood collectives: each process sends to those that its topology
 * leads to and receives from those that lead to it, a part of a buffer each, in
 * their order. All messages are on their way at once.
 *
 * Two processes may have several edges in common, and messages between them are
 * told apart by their order alone. Of a graph the first edge in the one list
 * is the first in the other. In a grid, what is sent in one direction of a
 * dimension arrives from the other one, which is another process only if the
 * dimension is longer than two: so of each dimension, what comes from above is
 * received before what comes from below. With MPI_PROC_NULL nothing is
 * exchanged, and its part stays as it is.
 */
#include <errno.h>
#include <stdlib.h>

#include "bodies.h"
#include "coll/forms.h"
#include "pt2pt/message.h"
#include "topo/topo.h"

/* The neighbour whose message is the i-th to be received. */
static int source(const struct madmpi_topo *t, int i)
{
	return t->kind == MPI_CART ? i ^ 1 : i;
}

static void irecv(struct madmpi_coll *c, struct madmpi_flight *f,
		  const struct madmpi_parts *r, int i)
{
	const struct madmpi_topo *t = c->comm->topo;
	int k = source(t, i);

	f->is_active = false;
	if (t->sources[k] != MPI_PROC_NULL)
		madmpi_coll_irecv(c, f, madmpi_parts_at(r, k),
				  madmpi_parts_count(r, k),
				  madmpi_parts_type(r, k), t->sources[k]);
}

/* All get the first part of what is sent, or each its own. */
static void isend(struct madmpi_coll *c, struct madmpi_flight *f,
		  const struct madmpi_parts *s, int i, bool the_same)
{
	const struct madmpi_topo *t = c->comm->topo;
	int k = the_same ? 0 : i;

	f->is_active = false;
	if (t->destinations[i] != MPI_PROC_NULL)
		madmpi_coll_isend(c, f, madmpi_parts_at(s, k),
				  madmpi_parts_count(s, k),
				  madmpi_parts_type(s, k), t->destinations[i]);
}

/* There is no memory to have them all at once, but for saying so. */
static void exchange_nothing(struct madmpi_coll *c,
			     const struct madmpi_parts *s,
			     const struct madmpi_parts *r, bool the_same)
{
	const struct madmpi_topo *t = c->comm->topo;
	struct madmpi_flight f;

	madmpi_coll_fail(c, -ENOMEM);
	for (int i = 0; i < t->outdegree; i++) {
		isend(c, &f, s, i, the_same);
		madmpi_coll_wait(c, &f);
	}
	for (int i = 0; i < t->indegree; i++) {
		irecv(c, &f, r, i);
		madmpi_coll_wait(c, &f);
	}
}

static void exchange(struct madmpi_coll *c, const struct madmpi_parts *s,
		     const struct madmpi_parts *r, bool the_same)
{
	const struct madmpi_topo *t = c->comm->topo;
	size_t n = (size_t)t->indegree + (size_t)t->outdegree;
	struct madmpi_flight *f = malloc((n + 1) * sizeof(*f)), *next = f;

	if (f == NULL) {
		exchange_nothing(c, s, r, the_same);
		return;
	}
	for (int i = 0; i < t->indegree; i++)
		irecv(c, next++, r, i);
	for (int i = 0; i < t->outdegree; i++)
		isend(c, next++, s, i, the_same);
	while (next > f)
		madmpi_coll_wait(c, --next);
	free(f);
}

static void run_allgather(struct madmpi_coll *c,
			  const struct madmpi_collective *x)
{
	exchange(c, &x->send, &x->recv, true);
}

static void run_alltoall(struct madmpi_coll *c,
			 const struct madmpi_collective *x)
{
	exchange(c, &x->send, &x->recv, false);
}

/* --- arguments --- */

/* A communicator with neighbours, and two buffers. */
static int check(struct madmpi_collective *x, MPI_Comm comm)
{
	int rc = madmpi_check_comm(x->function, comm, &x->comm);

	if (rc != MPI_SUCCESS)
		return rc;
	if (x->comm->topo == NULL)
		return madmpi_error(x->comm, MPI_ERR_TOPOLOGY, x->function,
				    "comm %p has no topology", (void *)comm);
	if (x->send.base != MPI_IN_PLACE && x->recv.base != MPI_IN_PLACE)
		return MPI_SUCCESS;
	return madmpi_error(x->comm, MPI_ERR_BUFFER, x->function,
			    "a buffer is MPI_IN_PLACE, which neighbours do not "
			    "know");
}

/* One count and type for all; of a side without neighbours no buffer. */
static int check_side(const struct madmpi_collective *x, MPI_Datatype datatype,
		      int degree, struct madmpi_parts *p)
{
	int rc = madmpi_check_count(x->function, x->comm, "count", p->count);

	return rc ? rc
		  : madmpi_check_data(x->function, x->comm, p->base,
				      degree > 0 ? p->count : 0, datatype,
				      &p->type);
}

static int check_alias(const struct madmpi_collective *x)
{
	const struct madmpi_topo *t = x->comm->topo;

	return madmpi_check_alias(x->function, x->comm, x->send.base,
				  x->recv.base,
				  t->indegree > 0 && t->outdegree > 0
					  ? x->recv.count * x->recv.type->size
					  : 0);
}

static int prepare(struct madmpi_collective *x, const char *fn,
		   void (*run)(struct madmpi_coll *c,
			       const struct madmpi_collective *x),
		   const void *sendbuf, MPI_Count sendcount,
		   MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		   MPI_Datatype recvtype, MPI_Comm comm)
{
	int rc;

	madmpi_collective_set(x, fn, run);
	x->send.base = (void *)sendbuf;
	x->send.count = sendcount;
	x->recv.base = recvbuf;
	x->recv.count = recvcount;
	rc = check(x, comm);
	if (rc == MPI_SUCCESS)
		rc = check_side(x, sendtype, x->comm->topo->outdegree,
				&x->send);
	if (rc == MPI_SUCCESS)
		rc = check_side(x, recvtype, x->comm->topo->indegree, &x->recv);
	return rc ? rc : check_alias(x);
}

static int prepare_allgatherv(struct madmpi_collective *x, const char *fn,
			      const void *sendbuf, MPI_Count sendcount,
			      MPI_Datatype sendtype, void *recvbuf,
			      struct madmpi_array recvcounts,
			      struct madmpi_array displs, MPI_Datatype recvtype,
			      MPI_Comm comm)
{
	int rc;

	madmpi_collective_set(x, fn, run_allgather);
	x->send.base = (void *)sendbuf;
	x->send.count = sendcount;
	x->recv.base = recvbuf;
	x->recv.counts = recvcounts;
	x->recv.displs = displs;
	rc = check(x, comm);
	if (rc == MPI_SUCCESS)
		rc = check_side(x, sendtype, x->comm->topo->outdegree,
				&x->send);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_n_parts(fn, x->comm, recvtype,
					  x->comm->topo->indegree, &x->recv);
	return rc;
}

static int prepare_alltoallv(struct madmpi_collective *x, const char *fn,
			     const void *sendbuf,
			     struct madmpi_array sendcounts,
			     struct madmpi_array sdispls, MPI_Datatype sendtype,
			     void *recvbuf, struct madmpi_array recvcounts,
			     struct madmpi_array rdispls, MPI_Datatype recvtype,
			     MPI_Comm comm)
{
	int rc;

	madmpi_collective_set(x, fn, run_alltoall);
	x->send.base = (void *)sendbuf;
	x->send.counts = sendcounts;
	x->send.displs = sdispls;
	x->recv.base = recvbuf;
	x->recv.counts = recvcounts;
	x->recv.displs = rdispls;
	rc = check(x, comm);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_n_parts(fn, x->comm, sendtype,
					  x->comm->topo->outdegree, &x->send);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_n_parts(fn, x->comm, recvtype,
					  x->comm->topo->indegree, &x->recv);
	return rc;
}

/* Its displacements are MPI_Aint in the form with int, too. */
static int prepare_alltoallw(struct madmpi_collective *x, const char *fn,
			     const void *sendbuf,
			     struct madmpi_array sendcounts,
			     const MPI_Aint sdispls[],
			     const MPI_Datatype sendtypes[], void *recvbuf,
			     struct madmpi_array recvcounts,
			     const MPI_Aint rdispls[],
			     const MPI_Datatype recvtypes[], MPI_Comm comm)
{
	int rc;

	madmpi_collective_set(x, fn, run_alltoall);
	x->send.base = (void *)sendbuf;
	x->send.counts = sendcounts;
	x->send.displs =
		(struct madmpi_array){ .at = sdispls, .is_wide = true };
	x->send.types = sendtypes;
	x->recv.base = recvbuf;
	x->recv.counts = recvcounts;
	x->recv.displs =
		(struct madmpi_array){ .at = rdispls, .is_wide = true };
	x->recv.types = recvtypes;
	rc = check(x, comm);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_n_typed_parts(
			fn, x->comm, x->comm->topo->outdegree, &x->send);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_n_typed_parts(
			fn, x->comm, x->comm->topo->indegree, &x->recv);
	return rc;
}

/* MPI_Neighbor_allgather, MPI_Neighbor_allgather_c */
int madmpi_neighbor_allgather(const void *sendbuf, MPI_Count sendcount,
			      MPI_Datatype sendtype, void *recvbuf,
			      MPI_Count recvcount, MPI_Datatype recvtype,
			      MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Neighbor_allgather", run_allgather, sendbuf,
			 sendcount, sendtype, recvbuf, recvcount, recvtype,
			 comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Ineighbor_allgather, MPI_Ineighbor_allgather_c */
int madmpi_ineighbor_allgather(const void *sendbuf, MPI_Count sendcount,
			       MPI_Datatype sendtype, void *recvbuf,
			       MPI_Count recvcount, MPI_Datatype recvtype,
			       MPI_Comm comm, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Ineighbor_allgather", run_allgather, sendbuf,
			 sendcount, sendtype, recvbuf, recvcount, recvtype,
			 comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Neighbor_allgather_init, MPI_Neighbor_allgather_init_c */
int madmpi_neighbor_allgather_init(const void *sendbuf, MPI_Count sendcount,
				   MPI_Datatype sendtype, void *recvbuf,
				   MPI_Count recvcount, MPI_Datatype recvtype,
				   MPI_Comm comm, MPI_Info info,
				   MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Neighbor_allgather_init", run_allgather,
			 sendbuf, sendcount, sendtype, recvbuf, recvcount,
			 recvtype, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}

/* MPI_Neighbor_allgatherv, MPI_Neighbor_allgatherv_c */
int madmpi_neighbor_allgatherv(const void *sendbuf, MPI_Count sendcount,
			       MPI_Datatype sendtype, void *recvbuf,
			       struct madmpi_array recvcounts,
			       struct madmpi_array displs,
			       MPI_Datatype recvtype, MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare_allgatherv(&x, "MPI_Neighbor_allgatherv", sendbuf,
				    sendcount, sendtype, recvbuf, recvcounts,
				    displs, recvtype, comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Ineighbor_allgatherv, MPI_Ineighbor_allgatherv_c */
int madmpi_ineighbor_allgatherv(const void *sendbuf, MPI_Count sendcount,
				MPI_Datatype sendtype, void *recvbuf,
				struct madmpi_array recvcounts,
				struct madmpi_array displs,
				MPI_Datatype recvtype, MPI_Comm comm,
				MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_allgatherv(&x, "MPI_Ineighbor_allgatherv", sendbuf,
				    sendcount, sendtype, recvbuf, recvcounts,
				    displs, recvtype, comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Neighbor_allgatherv_init, MPI_Neighbor_allgatherv_init_c */
int madmpi_neighbor_allgatherv_init(const void *sendbuf, MPI_Count sendcount,
				    MPI_Datatype sendtype, void *recvbuf,
				    struct madmpi_array recvcounts,
				    struct madmpi_array displs,
				    MPI_Datatype recvtype, MPI_Comm comm,
				    MPI_Info info, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_allgatherv(&x, "MPI_Neighbor_allgatherv_init", sendbuf,
				    sendcount, sendtype, recvbuf, recvcounts,
				    displs, recvtype, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}

/* MPI_Neighbor_alltoall, MPI_Neighbor_alltoall_c */
int madmpi_neighbor_alltoall(const void *sendbuf, MPI_Count sendcount,
			     MPI_Datatype sendtype, void *recvbuf,
			     MPI_Count recvcount, MPI_Datatype recvtype,
			     MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Neighbor_alltoall", run_alltoall, sendbuf,
			 sendcount, sendtype, recvbuf, recvcount, recvtype,
			 comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Ineighbor_alltoall, MPI_Ineighbor_alltoall_c */
int madmpi_ineighbor_alltoall(const void *sendbuf, MPI_Count sendcount,
			      MPI_Datatype sendtype, void *recvbuf,
			      MPI_Count recvcount, MPI_Datatype recvtype,
			      MPI_Comm comm, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Ineighbor_alltoall", run_alltoall, sendbuf,
			 sendcount, sendtype, recvbuf, recvcount, recvtype,
			 comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Neighbor_alltoall_init, MPI_Neighbor_alltoall_init_c */
int madmpi_neighbor_alltoall_init(const void *sendbuf, MPI_Count sendcount,
				  MPI_Datatype sendtype, void *recvbuf,
				  MPI_Count recvcount, MPI_Datatype recvtype,
				  MPI_Comm comm, MPI_Info info,
				  MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Neighbor_alltoall_init", run_alltoall,
			 sendbuf, sendcount, sendtype, recvbuf, recvcount,
			 recvtype, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}

/* MPI_Neighbor_alltoallv, MPI_Neighbor_alltoallv_c */
int madmpi_neighbor_alltoallv(const void *sendbuf,
			      struct madmpi_array sendcounts,
			      struct madmpi_array sdispls,
			      MPI_Datatype sendtype, void *recvbuf,
			      struct madmpi_array recvcounts,
			      struct madmpi_array rdispls,
			      MPI_Datatype recvtype, MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare_alltoallv(&x, "MPI_Neighbor_alltoallv", sendbuf,
				   sendcounts, sdispls, sendtype, recvbuf,
				   recvcounts, rdispls, recvtype, comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Ineighbor_alltoallv, MPI_Ineighbor_alltoallv_c */
int madmpi_ineighbor_alltoallv(
	const void *sendbuf, struct madmpi_array sendcounts,
	struct madmpi_array sdispls, MPI_Datatype sendtype, void *recvbuf,
	struct madmpi_array recvcounts, struct madmpi_array rdispls,
	MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_alltoallv(&x, "MPI_Ineighbor_alltoallv", sendbuf,
				   sendcounts, sdispls, sendtype, recvbuf,
				   recvcounts, rdispls, recvtype, comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Neighbor_alltoallv_init, MPI_Neighbor_alltoallv_init_c */
int madmpi_neighbor_alltoallv_init(const void *sendbuf,
				   struct madmpi_array sendcounts,
				   struct madmpi_array sdispls,
				   MPI_Datatype sendtype, void *recvbuf,
				   struct madmpi_array recvcounts,
				   struct madmpi_array rdispls,
				   MPI_Datatype recvtype, MPI_Comm comm,
				   MPI_Info info, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_alltoallv(&x, "MPI_Neighbor_alltoallv_init", sendbuf,
				   sendcounts, sdispls, sendtype, recvbuf,
				   recvcounts, rdispls, recvtype, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}

/* MPI_Neighbor_alltoallw, MPI_Neighbor_alltoallw_c */
int madmpi_neighbor_alltoallw(const void *sendbuf,
			      struct madmpi_array sendcounts,
			      const MPI_Aint sdispls[],
			      const MPI_Datatype sendtypes[], void *recvbuf,
			      struct madmpi_array recvcounts,
			      const MPI_Aint rdispls[],
			      const MPI_Datatype recvtypes[], MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare_alltoallw(&x, "MPI_Neighbor_alltoallw", sendbuf,
				   sendcounts, sdispls, sendtypes, recvbuf,
				   recvcounts, rdispls, recvtypes, comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Ineighbor_alltoallw, MPI_Ineighbor_alltoallw_c */
int madmpi_ineighbor_alltoallw(
	const void *sendbuf, struct madmpi_array sendcounts,
	const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void *recvbuf,
	struct madmpi_array recvcounts, const MPI_Aint rdispls[],
	const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_alltoallw(&x, "MPI_Ineighbor_alltoallw", sendbuf,
				   sendcounts, sdispls, sendtypes, recvbuf,
				   recvcounts, rdispls, recvtypes, comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Neighbor_alltoallw_init, MPI_Neighbor_alltoallw_init_c */
int madmpi_neighbor_alltoallw_init(
	const void *sendbuf, struct madmpi_array sendcounts,
	const MPI_Aint sdispls[], const MPI_Datatype sendtypes[], void *recvbuf,
	struct madmpi_array recvcounts, const MPI_Aint rdispls[],
	const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
	MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_alltoallw(&x, "MPI_Neighbor_alltoallw_init", sendbuf,
				   sendcounts, sdispls, sendtypes, recvbuf,
				   recvcounts, rdispls, recvtypes, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}
