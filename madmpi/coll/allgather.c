/*
 * MPI_Allgather, MPI_Allgatherv.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bodies.h"
#include "coll/coll.h"
#include "coll/inter.h"
#include "pt2pt/message.h"

/*
 * Bruck: log2(size) messages, each with all that the sender holds. tmp is the
 * packed data, beginning with the own part.
 */
void madmpi_allgather_bruck(struct madmpi_coll *c, void *buf, MPI_Count n,
			    struct madmpi_type *t)
{
	struct madmpi_type *byte = madmpi_type_of(MPI_BYTE);
	MPI_Count bytes = n * t->size, part;
	char *tmp = malloc((size_t)(bytes * c->size) + 1);
	int have = 1, more;

	if (tmp == NULL) {
		madmpi_coll_fail(c, -ENOMEM);
		return;
	}
	madmpi_pack_bytes(madmpi_at(buf, c->rank * n, t), n, t, tmp);
	for (; have < c->size; have += more) {
		more = have < c->size - have ? have : c->size - have;
		part = more * bytes;
		madmpi_coll_exchange(c, tmp, part, byte,
				     (c->rank - have + c->size) % c->size,
				     tmp + have * bytes, part, byte,
				     (c->rank + have) % c->size);
	}
	for (int i = 1; i < c->size; i++)
		madmpi_unpack_bytes(
			tmp + i * bytes,
			madmpi_at(buf, (c->rank + i) % c->size * n, t), n, t);
	free(tmp);
}

/* size - 1 steps: pass on what came in the step before. */
static void ring(struct madmpi_coll *c, const struct madmpi_parts *p)
{
	int next = (c->rank + 1) % c->size;
	int previous = (c->rank - 1 + c->size) % c->size;
	int s, r;

	for (int step = 0; step < c->size - 1; step++) {
		s = (c->rank - step + c->size) % c->size;
		r = (s - 1 + c->size) % c->size;
		madmpi_coll_exchange(
			c, madmpi_parts_at(p, s), madmpi_parts_count(p, s),
			p->type, next, madmpi_parts_at(p, r),
			madmpi_parts_count(p, r), p->type, previous);
	}
}

void madmpi_allgather_ring(struct madmpi_coll *c, void *buf, MPI_Count n,
			   struct madmpi_type *t)
{
	struct madmpi_parts p = { .base = buf, .count = n, .type = t };

	ring(c, &p);
}

static int check_send(const char *fn, struct madmpi_comm *mc,
		      const void *sendbuf, MPI_Count sendcount,
		      MPI_Datatype sendtype, const struct madmpi_parts *p,
		      struct madmpi_type **st)
{
	int rc;

	if (madmpi_in_place(mc, sendbuf))
		return MPI_SUCCESS;
	rc = madmpi_check_data(fn, mc, sendbuf, sendcount, sendtype, st);
	if (rc == MPI_SUCCESS && !madmpi_comm_is_inter(mc))
		rc = madmpi_check_own(fn, mc, sendcount, *st,
				      madmpi_parts_count(p, mc->rank), p->type);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_alias_own(fn, mc, sendbuf,
					    sendcount * (*st)->size, p);
	return rc;
}

static void copy_own(struct madmpi_coll *c, const void *sendbuf,
		     MPI_Count sendcount, const struct madmpi_type *st,
		     const struct madmpi_parts *p)
{
	if (sendbuf != MPI_IN_PLACE)
		madmpi_copy_bytes(sendbuf, sendcount, st,
				  madmpi_parts_at(p, c->rank),
				  madmpi_parts_count(p, c->rank), p->type);
}

/* MPI_Allgather, MPI_Allgather_c */
int madmpi_allgather(const void *sendbuf, MPI_Count sendcount,
		     MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		     MPI_Datatype recvtype, MPI_Comm comm)
{
	const char *fn = "MPI_Allgather";
	struct madmpi_parts p = { .base = recvbuf, .count = recvcount };
	struct madmpi_type *st = NULL, *rt;
	struct madmpi_comm *mc;
	struct madmpi_coll c;
	int rc = madmpi_check_comm(fn, comm, &mc);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_data(fn, mc, recvbuf, recvcount, recvtype,
				       &rt);
	if (rc == MPI_SUCCESS) {
		p.type = rt;
		rc = check_send(fn, mc, sendbuf, sendcount, sendtype, &p, &st);
	}
	if (rc != MPI_SUCCESS)
		return rc;
	if (madmpi_comm_is_inter(mc))
		return madmpi_inter_allgather(fn, mc, sendbuf, sendcount, st,
					      &p);
	madmpi_coll_begin(&c, fn, mc);
	copy_own(&c, sendbuf, sendcount, st, &p);
	if (c.size > 1 && recvcount * rt->size > 0)
		madmpi_choose_allgather(&c, recvcount * rt->size)(
			&c, recvbuf, recvcount, rt);
	return madmpi_coll_end(&c);
}

/* MPI_Allgatherv, MPI_Allgatherv_c */
int madmpi_allgatherv(const void *sendbuf, MPI_Count sendcount,
		      MPI_Datatype sendtype, void *recvbuf,
		      struct madmpi_array recvcounts,
		      struct madmpi_array displs, MPI_Datatype recvtype,
		      MPI_Comm comm)
{
	const char *fn = "MPI_Allgatherv";
	struct madmpi_parts p = { .base = recvbuf,
				  .counts = recvcounts,
				  .displs = displs };
	struct madmpi_type *st = NULL, *rt;
	struct madmpi_comm *mc;
	struct madmpi_coll c;
	int rc = madmpi_check_comm(fn, comm, &mc);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_parts(fn, mc, recvbuf, recvcounts, displs,
					recvtype, &rt);
	if (rc == MPI_SUCCESS) {
		p.type = rt;
		rc = check_send(fn, mc, sendbuf, sendcount, sendtype, &p, &st);
	}
	if (rc != MPI_SUCCESS)
		return rc;
	if (madmpi_comm_is_inter(mc))
		return madmpi_inter_allgather(fn, mc, sendbuf, sendcount, st,
					      &p);
	madmpi_coll_begin(&c, fn, mc);
	copy_own(&c, sendbuf, sendcount, st, &p);
	ring(&c, &p);
	return madmpi_coll_end(&c);
}
