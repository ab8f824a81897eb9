/*
 * MPI_Allgather, MPI_Allgatherv.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bodies.h"
#include "coll/forms.h"
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

	if (tmp == NULL)
		madmpi_coll_fail(c, -ENOMEM);
	if (c->error == 0)
		madmpi_pack_bytes(madmpi_at(buf, c->rank * n, t), n, t, tmp);
	for (; have < c->size; have += more) {
		more = have < c->size - have ? have : c->size - have;
		part = more * bytes;
		madmpi_coll_exchange(c, tmp, part, byte,
				     (c->rank - have + c->size) % c->size,
				     madmpi_at(tmp, have * bytes, byte), part,
				     byte, (c->rank + have) % c->size);
	}
	for (int i = 1; i < c->size && c->error == 0; i++)
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

/* Of two, from where the data are: not from a copy that was just made. */
static void swap(struct madmpi_coll *c, const struct madmpi_parts *s,
		 const struct madmpi_parts *r)
{
	int peer = !c->rank;

	madmpi_coll_exchange(c, s->base, s->count, s->type, peer,
			     madmpi_parts_at(r, peer),
			     madmpi_parts_count(r, peer), r->type, peer);
	madmpi_coll_copy_own(c, s, r);
}

/* Parts of different sizes, which all processes know. */
static void run_v(struct madmpi_coll *c, const struct madmpi_parts *s,
		  const struct madmpi_parts *r)
{
	if (c->size == 2 && s->base != MPI_IN_PLACE) {
		swap(c, s, r);
		return;
	}
	madmpi_coll_copy_own(c, s, r);
	ring(c, r);
}

static void by_messages(struct madmpi_coll *c, const struct madmpi_parts *s,
			const struct madmpi_parts *r)
{
	madmpi_allgather_fn fn =
		madmpi_choose_allgather(c, r->count * r->type->size);

	if (fn == madmpi_allgather_ring) {
		run_v(c, s, r);
		return;
	}
	madmpi_coll_copy_own(c, s, r);
	fn(c, r->base, r->count, r->type);
}

static void run(struct madmpi_coll *c, const struct madmpi_collective *x)
{
	const struct madmpi_parts *s = &x->send, *r = &x->recv;

	if (madmpi_comm_is_inter(x->comm)) {
		madmpi_inter_allgather(c, s->base, s->count, s->type, r);
		return;
	}
	if (r->counts.at != NULL) {
		run_v(c, s, r);
		return;
	}
	switch (madmpi_choose_allgather_route(c, r->count * r->type->size)) {
	case MADMPI_SHARED:
		madmpi_coll_copy_own(c, s, r);
		madmpi_allgather_shared(c, r->base, r->count, r->type);
		break;
	case MADMPI_DIRECT:
		madmpi_allgather_direct(c, s, r);
		madmpi_coll_copy_own(c, s, r);
		break;
	case MADMPI_BY_MESSAGES:
		if (r->count * r->type->size > 0)
			by_messages(c, s, r);
	}
}

/* What comes from all is checked; now what goes to all. */
static int check_send(struct madmpi_collective *x, const void *sendbuf,
		      MPI_Count sendcount, MPI_Datatype sendtype)
{
	const char *fn = x->function;
	struct madmpi_comm *mc = x->comm;
	struct madmpi_parts *s = &x->send, *r = &x->recv;
	int rc;

	s->base = (void *)sendbuf;
	if (madmpi_in_place(mc, sendbuf))
		return MPI_SUCCESS;
	s->count = sendcount;
	rc = madmpi_check_data(fn, mc, sendbuf, sendcount, sendtype, &s->type);
	if (rc == MPI_SUCCESS && !madmpi_comm_is_inter(mc))
		rc = madmpi_check_own(fn, mc, sendcount, s->type,
				      madmpi_parts_count(r, mc->rank), r->type);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_alias_own(fn, mc, sendbuf,
					    sendcount * s->type->size, r);
	return rc;
}

static int prepare(struct madmpi_collective *x, const char *fn,
		   const void *sendbuf, MPI_Count sendcount,
		   MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		   MPI_Datatype recvtype, MPI_Comm comm)
{
	int rc;

	madmpi_collective_set(x, fn, run);
	x->recv.base = recvbuf;
	x->recv.count = recvcount;
	rc = madmpi_check_comm(fn, comm, &x->comm);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_data(fn, x->comm, recvbuf, recvcount,
				       recvtype, &x->recv.type);
	return rc ? rc : check_send(x, sendbuf, sendcount, sendtype);
}

static int prepare_v(struct madmpi_collective *x, const char *fn,
		     const void *sendbuf, MPI_Count sendcount,
		     MPI_Datatype sendtype, void *recvbuf,
		     struct madmpi_array recvcounts, struct madmpi_array displs,
		     MPI_Datatype recvtype, MPI_Comm comm)
{
	int rc;

	madmpi_collective_set(x, fn, run);
	x->recv.base = recvbuf;
	x->recv.counts = recvcounts;
	x->recv.displs = displs;
	rc = madmpi_check_comm(fn, comm, &x->comm);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_parts(fn, x->comm, recvtype, &x->recv);
	return rc ? rc : check_send(x, sendbuf, sendcount, sendtype);
}

/* MPI_Allgather, MPI_Allgather_c */
int madmpi_allgather(const void *sendbuf, MPI_Count sendcount,
		     MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		     MPI_Datatype recvtype, MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Allgather", sendbuf, sendcount, sendtype,
			 recvbuf, recvcount, recvtype, comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Iallgather, MPI_Iallgather_c */
int madmpi_iallgather(const void *sendbuf, MPI_Count sendcount,
		      MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
		      MPI_Datatype recvtype, MPI_Comm comm,
		      MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Iallgather", sendbuf, sendcount, sendtype,
			 recvbuf, recvcount, recvtype, comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Allgather_init, MPI_Allgather_init_c */
int madmpi_allgather_init(const void *sendbuf, MPI_Count sendcount,
			  MPI_Datatype sendtype, void *recvbuf,
			  MPI_Count recvcount, MPI_Datatype recvtype,
			  MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Allgather_init", sendbuf, sendcount, sendtype,
			 recvbuf, recvcount, recvtype, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}

/* MPI_Allgatherv, MPI_Allgatherv_c */
int madmpi_allgatherv(const void *sendbuf, MPI_Count sendcount,
		      MPI_Datatype sendtype, void *recvbuf,
		      struct madmpi_array recvcounts,
		      struct madmpi_array displs, MPI_Datatype recvtype,
		      MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare_v(&x, "MPI_Allgatherv", sendbuf, sendcount, sendtype,
			   recvbuf, recvcounts, displs, recvtype, comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Iallgatherv, MPI_Iallgatherv_c */
int madmpi_iallgatherv(const void *sendbuf, MPI_Count sendcount,
		       MPI_Datatype sendtype, void *recvbuf,
		       struct madmpi_array recvcounts,
		       struct madmpi_array displs, MPI_Datatype recvtype,
		       MPI_Comm comm, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_v(&x, "MPI_Iallgatherv", sendbuf, sendcount, sendtype,
			   recvbuf, recvcounts, displs, recvtype, comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Allgatherv_init, MPI_Allgatherv_init_c */
int madmpi_allgatherv_init(const void *sendbuf, MPI_Count sendcount,
			   MPI_Datatype sendtype, void *recvbuf,
			   struct madmpi_array recvcounts,
			   struct madmpi_array displs, MPI_Datatype recvtype,
			   MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_v(&x, "MPI_Allgatherv_init", sendbuf, sendcount,
			   sendtype, recvbuf, recvcounts, displs, recvtype,
			   comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}
