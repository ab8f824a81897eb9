/*
 * MPI_Alltoall, MPI_Alltoallv, MPI_Alltoallw.
 */
#include <errno.h>
#include <stdlib.h>

#include "bodies.h"
#include "coll/forms.h"
#include "coll/inter.h"
#include "pt2pt/message.h"

static void copy_own(struct madmpi_coll *c, const struct madmpi_parts *s,
		     const struct madmpi_parts *r)
{
	madmpi_coll_copy(
		c, madmpi_parts_at(s, c->rank), madmpi_parts_count(s, c->rank),
		madmpi_parts_type(s, c->rank), madmpi_parts_at(r, c->rank),
		madmpi_parts_count(r, c->rank), madmpi_parts_type(r, c->rank));
}

/*
 * Pairwise: in step k everybody sends to rank + k and receives from rank - k,
 * so that no process is sent to by many at once.
 */
static void pairwise(struct madmpi_coll *c, const struct madmpi_parts *s,
		     const struct madmpi_parts *r)
{
	int to, from;

	for (int step = 1; step < c->size; step++) {
		to = (c->rank + step) % c->size;
		from = (c->rank - step + c->size) % c->size;
		madmpi_coll_exchange(
			c, madmpi_parts_at(s, to), madmpi_parts_count(s, to),
			madmpi_parts_type(s, to), to, madmpi_parts_at(r, from),
			madmpi_parts_count(r, from), madmpi_parts_type(r, from),
			from);
	}
	copy_own(c, s, r);
}

/* In place: swap with one after the other, through one packed part. */
static void in_place(struct madmpi_coll *c, const struct madmpi_parts *r)
{
	struct madmpi_type *byte = madmpi_type_of(MPI_BYTE);
	MPI_Count bytes, most = 0;
	char *tmp;

	for (int i = 0; i < c->size; i++) {
		bytes = madmpi_parts_bytes(r, i);
		most = bytes > most ? bytes : most;
	}
	tmp = malloc((size_t)most + 1);
	if (tmp == NULL)
		madmpi_coll_fail(c, -ENOMEM);
	/* Partners find each other by (i - rank) mod size: a round each. */
	for (int round = 0; round < c->size; round++) {
		int peer = (round - c->rank + c->size) % c->size;
		const struct madmpi_type *t = madmpi_parts_type(r, peer);
		MPI_Count n = madmpi_parts_count(r, peer);

		if (peer == c->rank || n * t->size == 0)
			continue;
		if (c->error == 0)
			madmpi_pack_bytes(madmpi_parts_at(r, peer), n, t, tmp);
		madmpi_coll_exchange(c, tmp, n * t->size, byte, peer,
				     madmpi_parts_at(r, peer), n, t, peer);
	}
	free(tmp);
}

/* Equal parts, which all processes know alike, may go otherwise. */
static enum madmpi_route route_of(const struct madmpi_coll *c,
				  const struct madmpi_collective *x)
{
	const struct madmpi_parts *r = &x->recv;
	enum madmpi_route route;

	if (r->counts.at != NULL || r->types != NULL)
		return MADMPI_BY_MESSAGES;
	route = madmpi_choose_alltoall(c, r->count * r->type->size);
	return route == MADMPI_DIRECT && x->send.base == MPI_IN_PLACE
		       ? MADMPI_BY_MESSAGES
		       : route;
}

static void run(struct madmpi_coll *c, const struct madmpi_collective *x)
{
	const struct madmpi_parts *s = &x->send, *r = &x->recv;
	bool is_in_place = s->base == MPI_IN_PLACE;

	if (madmpi_comm_is_inter(x->comm)) {
		madmpi_inter_alltoall(c, s, r);
		return;
	}
	switch (route_of(c, x)) {
	case MADMPI_SHARED:
		madmpi_alltoall_shared(c, is_in_place ? r : s, r);
		break;
	case MADMPI_DIRECT:
		madmpi_alltoall_direct(c, s, r);
		copy_own(c, s, r);
		break;
	case MADMPI_BY_MESSAGES:
		if (is_in_place)
			in_place(c, r);
		else
			pairwise(c, s, r);
	}
}

/* Of each side alone all is right. */
static int check_own(const struct madmpi_collective *x)
{
	const struct madmpi_parts *s = &x->send, *r = &x->recv;
	struct madmpi_comm *mc = x->comm;
	int rc;

	if (madmpi_comm_is_inter(mc) || s->base == MPI_IN_PLACE)
		return MPI_SUCCESS;
	rc = madmpi_check_own(x->function, mc, madmpi_parts_count(s, mc->rank),
			      madmpi_parts_type(s, mc->rank),
			      madmpi_parts_count(r, mc->rank),
			      madmpi_parts_type(r, mc->rank));
	return rc ? rc
		  : madmpi_check_alias_own(x->function, mc,
					   madmpi_parts_at(s, mc->rank),
					   madmpi_parts_bytes(s, mc->rank), r);
}

static int prepare(struct madmpi_collective *x, const char *fn,
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
	rc = madmpi_check_comm(fn, comm, &x->comm);
	if (rc == MPI_SUCCESS && !madmpi_in_place(x->comm, sendbuf))
		rc = madmpi_check_data(fn, x->comm, sendbuf, sendcount,
				       sendtype, &x->send.type);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_data(fn, x->comm, recvbuf, recvcount,
				       recvtype, &x->recv.type);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_alias(fn, x->comm, sendbuf, recvbuf,
					recvcount);
	return rc ? rc : check_own(x);
}

static int prepare_v(struct madmpi_collective *x, const char *fn,
		     const void *sendbuf, struct madmpi_array sendcounts,
		     struct madmpi_array sdispls, MPI_Datatype sendtype,
		     void *recvbuf, struct madmpi_array recvcounts,
		     struct madmpi_array rdispls, MPI_Datatype recvtype,
		     MPI_Comm comm)
{
	int rc;

	madmpi_collective_set(x, fn, run);
	x->send.base = (void *)sendbuf;
	x->recv.base = recvbuf;
	x->recv.counts = recvcounts;
	x->recv.displs = rdispls;
	rc = madmpi_check_comm(fn, comm, &x->comm);
	if (rc == MPI_SUCCESS && !madmpi_in_place(x->comm, sendbuf)) {
		x->send.counts = sendcounts;
		x->send.displs = sdispls;
		rc = madmpi_check_parts(fn, x->comm, sendtype, &x->send);
	}
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_parts(fn, x->comm, recvtype, &x->recv);
	return rc ? rc : check_own(x);
}

static int prepare_w(struct madmpi_collective *x, const char *fn,
		     const void *sendbuf, struct madmpi_array sendcounts,
		     struct madmpi_array sdispls,
		     const MPI_Datatype sendtypes[], void *recvbuf,
		     struct madmpi_array recvcounts,
		     struct madmpi_array rdispls,
		     const MPI_Datatype recvtypes[], MPI_Comm comm)
{
	int rc;

	madmpi_collective_set(x, fn, run);
	x->send.base = (void *)sendbuf;
	x->recv.base = recvbuf;
	x->recv.counts = recvcounts;
	x->recv.displs = rdispls;
	x->recv.types = recvtypes;
	rc = madmpi_check_comm(fn, comm, &x->comm);
	if (rc == MPI_SUCCESS && !madmpi_in_place(x->comm, sendbuf)) {
		x->send.counts = sendcounts;
		x->send.displs = sdispls;
		x->send.types = sendtypes;
		rc = madmpi_check_typed_parts(fn, x->comm, &x->send);
	}
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_typed_parts(fn, x->comm, &x->recv);
	return rc ? rc : check_own(x);
}

/* MPI_Alltoall, MPI_Alltoall_c */
int madmpi_alltoall(const void *sendbuf, MPI_Count sendcount,
		    MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		    MPI_Datatype recvtype, MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Alltoall", sendbuf, sendcount, sendtype,
			 recvbuf, recvcount, recvtype, comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Ialltoall, MPI_Ialltoall_c */
int madmpi_ialltoall(const void *sendbuf, MPI_Count sendcount,
		     MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		     MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Ialltoall", sendbuf, sendcount, sendtype,
			 recvbuf, recvcount, recvtype, comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Alltoall_init, MPI_Alltoall_init_c */
int madmpi_alltoall_init(const void *sendbuf, MPI_Count sendcount,
			 MPI_Datatype sendtype, void *recvbuf,
			 MPI_Count recvcount, MPI_Datatype recvtype,
			 MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Alltoall_init", sendbuf, sendcount, sendtype,
			 recvbuf, recvcount, recvtype, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}

/* MPI_Alltoallv, MPI_Alltoallv_c */
int madmpi_alltoallv(const void *sendbuf, struct madmpi_array sendcounts,
		     struct madmpi_array sdispls, MPI_Datatype sendtype,
		     void *recvbuf, struct madmpi_array recvcounts,
		     struct madmpi_array rdispls, MPI_Datatype recvtype,
		     MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare_v(&x, "MPI_Alltoallv", sendbuf, sendcounts, sdispls,
			   sendtype, recvbuf, recvcounts, rdispls, recvtype,
			   comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Ialltoallv, MPI_Ialltoallv_c */
int madmpi_ialltoallv(const void *sendbuf, struct madmpi_array sendcounts,
		      struct madmpi_array sdispls, MPI_Datatype sendtype,
		      void *recvbuf, struct madmpi_array recvcounts,
		      struct madmpi_array rdispls, MPI_Datatype recvtype,
		      MPI_Comm comm, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_v(&x, "MPI_Ialltoallv", sendbuf, sendcounts, sdispls,
			   sendtype, recvbuf, recvcounts, rdispls, recvtype,
			   comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Alltoallv_init, MPI_Alltoallv_init_c */
int madmpi_alltoallv_init(const void *sendbuf, struct madmpi_array sendcounts,
			  struct madmpi_array sdispls, MPI_Datatype sendtype,
			  void *recvbuf, struct madmpi_array recvcounts,
			  struct madmpi_array rdispls, MPI_Datatype recvtype,
			  MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_v(&x, "MPI_Alltoallv_init", sendbuf, sendcounts,
			   sdispls, sendtype, recvbuf, recvcounts, rdispls,
			   recvtype, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}

/* MPI_Alltoallw, MPI_Alltoallw_c */
int madmpi_alltoallw(const void *sendbuf, struct madmpi_array sendcounts,
		     struct madmpi_array sdispls,
		     const MPI_Datatype sendtypes[], void *recvbuf,
		     struct madmpi_array recvcounts,
		     struct madmpi_array rdispls,
		     const MPI_Datatype recvtypes[], MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare_w(&x, "MPI_Alltoallw", sendbuf, sendcounts, sdispls,
			   sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
			   comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Ialltoallw, MPI_Ialltoallw_c */
int madmpi_ialltoallw(const void *sendbuf, struct madmpi_array sendcounts,
		      struct madmpi_array sdispls,
		      const MPI_Datatype sendtypes[], void *recvbuf,
		      struct madmpi_array recvcounts,
		      struct madmpi_array rdispls,
		      const MPI_Datatype recvtypes[], MPI_Comm comm,
		      MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_w(&x, "MPI_Ialltoallw", sendbuf, sendcounts, sdispls,
			   sendtypes, recvbuf, recvcounts, rdispls, recvtypes,
			   comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Alltoallw_init, MPI_Alltoallw_init_c */
int madmpi_alltoallw_init(const void *sendbuf, struct madmpi_array sendcounts,
			  struct madmpi_array sdispls,
			  const MPI_Datatype sendtypes[], void *recvbuf,
			  struct madmpi_array recvcounts,
			  struct madmpi_array rdispls,
			  const MPI_Datatype recvtypes[], MPI_Comm comm,
			  MPI_Info info, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_w(&x, "MPI_Alltoallw_init", sendbuf, sendcounts,
			   sdispls, sendtypes, recvbuf, recvcounts, rdispls,
			   recvtypes, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}
