/*
 * MPI_Alltoall, MPI_Alltoallv, MPI_Alltoallw.
 */
#include <errno.h>
#include <stdlib.h>

#include "bodies.h"
#include "coll/coll.h"
#include "coll/inter.h"
#include "pt2pt/message.h"

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
	madmpi_copy_bytes(
		madmpi_parts_at(s, c->rank), madmpi_parts_count(s, c->rank),
		madmpi_parts_type(s, c->rank), madmpi_parts_at(r, c->rank),
		madmpi_parts_count(r, c->rank), madmpi_parts_type(r, c->rank));
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
	if (tmp == NULL) {
		madmpi_coll_fail(c, -ENOMEM);
		return;
	}
	/* Partners find each other by (i - rank) mod size: a round each. */
	for (int round = 0; round < c->size; round++) {
		int peer = (round - c->rank + c->size) % c->size;
		const struct madmpi_type *t = madmpi_parts_type(r, peer);
		MPI_Count n = madmpi_parts_count(r, peer);

		if (peer == c->rank || n * t->size == 0)
			continue;
		madmpi_pack_bytes(madmpi_parts_at(r, peer), n, t, tmp);
		madmpi_coll_exchange(c, tmp, n * t->size, byte, peer,
				     madmpi_parts_at(r, peer), n, t, peer);
	}
	free(tmp);
}

static int run(const char *fn, struct madmpi_comm *mc,
	       const struct madmpi_parts *s, const struct madmpi_parts *r)
{
	struct madmpi_coll c;
	int rc;

	if (madmpi_comm_is_inter(mc))
		return madmpi_inter_alltoall(fn, mc, s, r);
	if (s->base != MPI_IN_PLACE) {
		rc = madmpi_check_own(fn, mc, madmpi_parts_count(s, mc->rank),
				      madmpi_parts_type(s, mc->rank),
				      madmpi_parts_count(r, mc->rank),
				      madmpi_parts_type(r, mc->rank));
		if (rc == MPI_SUCCESS)
			rc = madmpi_check_alias_own(
				fn, mc, madmpi_parts_at(s, mc->rank),
				madmpi_parts_bytes(s, mc->rank), r);
		if (rc != MPI_SUCCESS)
			return rc;
	}
	madmpi_coll_begin(&c, fn, mc);
	if (s->base == MPI_IN_PLACE)
		in_place(&c, r);
	else
		pairwise(&c, s, r);
	return madmpi_coll_end(&c);
}

/* MPI_Alltoall, MPI_Alltoall_c */
int madmpi_alltoall(const void *sendbuf, MPI_Count sendcount,
		    MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		    MPI_Datatype recvtype, MPI_Comm comm)
{
	const char *fn = "MPI_Alltoall";
	struct madmpi_parts s = { .base = (void *)sendbuf, .count = sendcount };
	struct madmpi_parts r = { .base = recvbuf, .count = recvcount };
	struct madmpi_type *st = NULL, *rt;
	struct madmpi_comm *mc;
	int rc = madmpi_check_comm(fn, comm, &mc);

	if (rc == MPI_SUCCESS && !madmpi_in_place(mc, sendbuf))
		rc = madmpi_check_data(fn, mc, sendbuf, sendcount, sendtype,
				       &st);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_data(fn, mc, recvbuf, recvcount, recvtype,
				       &rt);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_alias(fn, mc, sendbuf, recvbuf, recvcount);
	if (rc != MPI_SUCCESS)
		return rc;
	s.type = st;
	r.type = rt;
	return run(fn, mc, &s, &r);
}

/* MPI_Alltoallv, MPI_Alltoallv_c */
int madmpi_alltoallv(const void *sendbuf, struct madmpi_array sendcounts,
		     struct madmpi_array sdispls, MPI_Datatype sendtype,
		     void *recvbuf, struct madmpi_array recvcounts,
		     struct madmpi_array rdispls, MPI_Datatype recvtype,
		     MPI_Comm comm)
{
	const char *fn = "MPI_Alltoallv";
	struct madmpi_parts s = { .base = (void *)sendbuf,
				  .counts = sendcounts,
				  .displs = sdispls };
	struct madmpi_parts r = { .base = recvbuf,
				  .counts = recvcounts,
				  .displs = rdispls };
	struct madmpi_type *st = NULL, *rt;
	struct madmpi_comm *mc;
	int rc = madmpi_check_comm(fn, comm, &mc);

	if (rc == MPI_SUCCESS && !madmpi_in_place(mc, sendbuf))
		rc = madmpi_check_parts(fn, mc, sendbuf, sendcounts, sdispls,
					sendtype, &st);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_parts(fn, mc, recvbuf, recvcounts, rdispls,
					recvtype, &rt);
	if (rc != MPI_SUCCESS)
		return rc;
	s.type = st;
	r.type = rt;
	return run(fn, mc, &s, &r);
}

/* MPI_Alltoallw, MPI_Alltoallw_c */
int madmpi_alltoallw(const void *sendbuf, struct madmpi_array sendcounts,
		     struct madmpi_array sdispls,
		     const MPI_Datatype sendtypes[], void *recvbuf,
		     struct madmpi_array recvcounts,
		     struct madmpi_array rdispls,
		     const MPI_Datatype recvtypes[], MPI_Comm comm)
{
	const char *fn = "MPI_Alltoallw";
	struct madmpi_parts s = { .base = (void *)sendbuf,
				  .counts = sendcounts,
				  .displs = sdispls,
				  .types = sendtypes };
	struct madmpi_parts r = { .base = recvbuf,
				  .counts = recvcounts,
				  .displs = rdispls,
				  .types = recvtypes };
	struct madmpi_comm *mc;
	int rc = madmpi_check_comm(fn, comm, &mc);

	if (rc == MPI_SUCCESS && !madmpi_in_place(mc, sendbuf))
		rc = madmpi_check_typed_parts(fn, mc, &s);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_typed_parts(fn, mc, &r);
	return rc == MPI_SUCCESS ? run(fn, mc, &s, &r) : rc;
}
