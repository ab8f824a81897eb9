/*
 * Collective operations of intercommunicators: what one group gives, the other
 * one gets.
 *
 * The first process of each group is its leader. Steps go within a group
 * (madmpi_coll_home), as in an intracommunicator, or between the groups
 * (madmpi_coll_across), mostly between the leaders:
 *
 *     bcast           root -> leader, bcast
 *     reduce          reduce to leader -> root
 *     allreduce       reduce to leader <-> leader, bcast
 *     reduce_scatter  reduce to leader <-> leader, scatter
 *     allgather       all -> leader, bcast
 *     alltoall        all <-> all; gather and scatter: all, root (their files)
 *
 * Both directions of an operation are independent, and one may be without data.
 */
#include "coll/inter.h"

#include <errno.h>
#include <stdlib.h>

enum { LEADER = 0 };

static bool is_leader(const struct madmpi_coll *c)
{
	return c->rank == LEADER;
}

/* From the leader to the others of its group. */
static void spread(struct madmpi_coll *c, void *buf, MPI_Count n,
		   const struct madmpi_type *t)
{
	if (c->size > 1 && n * t->size > 0)
		madmpi_choose_bcast(c, n * t->size)(c, buf, n, t, LEADER);
}

/* Between the leaders. */
static void swap(struct madmpi_coll *c, const void *ours, MPI_Count n,
		 void *theirs, MPI_Count m, const struct madmpi_type *t)
{
	madmpi_coll_across(c);
	madmpi_coll_exchange(c, ours, n, t, LEADER, theirs, m, t, LEADER);
	madmpi_coll_home(c);
}

int madmpi_inter_tell_bytes(struct madmpi_coll *c, void *bytes, MPI_Count n,
			    int root)
{
	struct madmpi_type *byte = madmpi_type_of(MPI_BYTE);
	bool first = madmpi_comm_is_first(c->comm);

	madmpi_coll_across(c);
	if (first && c->rank == root)
		madmpi_coll_send(c, bytes, n, byte, LEADER);
	else if (!first && is_leader(c))
		madmpi_coll_recv(c, bytes, n, byte, root);
	madmpi_coll_home(c);
	return first ? root : LEADER;
}

void madmpi_inter_swap_bytes(struct madmpi_coll *c, const void *ours,
			     MPI_Count n, void *theirs, MPI_Count m)
{
	struct madmpi_type *byte = madmpi_type_of(MPI_BYTE);

	if (is_leader(c))
		swap(c, ours, n, theirs, m, byte);
	spread(c, theirs, m, byte);
}

/* Each leader knows of all of its group, then of all of the other one. */
void madmpi_inter_barrier(struct madmpi_coll *c)
{
	struct madmpi_type *byte = madmpi_type_of(MPI_BYTE);

	madmpi_barrier_dissemination(c);
	if (is_leader(c))
		swap(c, NULL, 0, NULL, 0, byte);
	madmpi_bcast_binomial(c, NULL, 0, byte, LEADER);
}

void madmpi_inter_bcast(struct madmpi_coll *c, void *buf, MPI_Count n,
			struct madmpi_type *t, int root)
{
	if (n * t->size == 0)
		return;
	madmpi_coll_across(c);
	if (root == MPI_ROOT)
		madmpi_coll_send(c, buf, n, t, LEADER);
	else if (is_leader(c))
		madmpi_coll_recv(c, buf, n, t, root);
	madmpi_coll_home(c);
	if (root != MPI_ROOT)
		spread(c, buf, n, t);
}

/* The group's result comes to its leader, who sends it on. */
static void reduce_to_root(struct madmpi_coll *c, const void *from, MPI_Count n,
			   struct madmpi_type *t, struct madmpi_op *op,
			   int root)
{
	void *result = NULL;

	if (is_leader(c)) {
		result = madmpi_coll_alloc(t, n);
		if (result == NULL)
			madmpi_coll_fail(c, -ENOMEM);
	}
	madmpi_reduce_binomial(c, from, result, n, t, op, LEADER);
	madmpi_coll_across(c);
	if (is_leader(c))
		madmpi_coll_send(c, result, n, t, root);
	madmpi_coll_home(c);
	madmpi_coll_free(result, t, n);
}

void madmpi_inter_reduce(struct madmpi_coll *c, const void *from, void *to,
			 MPI_Count n, struct madmpi_type *t,
			 struct madmpi_op *op, int root)
{
	if (root == MPI_ROOT) {
		madmpi_coll_across(c);
		madmpi_coll_recv(c, to, n, t, LEADER);
	} else {
		reduce_to_root(c, from, n, t, op, root);
	}
}

/* The leader has got the other group's result in `theirs`, the others not. */
static void reduce_and_swap(struct madmpi_coll *c, const void *from,
			    void *theirs, MPI_Count n, struct madmpi_type *t,
			    struct madmpi_op *op)
{
	void *ours = NULL;

	if (is_leader(c)) {
		ours = madmpi_coll_alloc(t, n);
		if (ours == NULL)
			madmpi_coll_fail(c, -ENOMEM);
	}
	madmpi_reduce_binomial(c, from, ours, n, t, op, LEADER);
	if (is_leader(c))
		swap(c, ours, n, theirs, n, t);
	madmpi_coll_free(ours, t, n);
}

void madmpi_inter_allreduce(struct madmpi_coll *c, const void *from, void *to,
			    MPI_Count n, struct madmpi_type *t,
			    struct madmpi_op *op)
{
	reduce_and_swap(c, from, to, n, t, op);
	spread(c, to, n, t);
}

void madmpi_inter_reduce_scatter(struct madmpi_coll *c,
				 const struct madmpi_parts *s, MPI_Count total,
				 void *to, struct madmpi_type *t,
				 struct madmpi_op *op)
{
	struct madmpi_parts theirs = *s;

	theirs.base = is_leader(c) ? madmpi_coll_alloc(t, total) : NULL;
	if (is_leader(c) && theirs.base == NULL)
		madmpi_coll_fail(c, -ENOMEM);
	reduce_and_swap(c, s->base, theirs.base, total, t, op);
	madmpi_scatter_linear(c, &theirs, to, madmpi_parts_count(s, c->rank), t,
			      LEADER);
	madmpi_coll_free(theirs.base, t, total);
}

/* The leader has all n parts; the others get them as one message. */
static void spread_parts(struct madmpi_coll *c, const struct madmpi_parts *r,
			 int n)
{
	MPI_Count bytes = 0;
	char *packed, *at;

	if (r->counts.at == NULL) {
		spread(c, r->base, n * r->count, r->type);
		return;
	}
	for (int i = 0; i < n; i++)
		bytes += madmpi_parts_bytes(r, i);
	if (c->size == 1 || bytes == 0)
		return;
	at = packed = malloc((size_t)bytes);
	if (packed == NULL)
		madmpi_coll_fail(c, -ENOMEM);
	for (int i = 0; i < n && is_leader(c) && c->error == 0; i++) {
		madmpi_pack_bytes(madmpi_parts_at(r, i),
				  madmpi_parts_count(r, i), r->type, at);
		at += madmpi_parts_bytes(r, i);
	}
	spread(c, packed, bytes, madmpi_type_of(MPI_BYTE));
	for (int i = 0; i < n && !is_leader(c) && c->error == 0; i++) {
		madmpi_unpack_bytes(at, madmpi_parts_at(r, i),
				    madmpi_parts_count(r, i), r->type);
		at += madmpi_parts_bytes(r, i);
	}
	free(packed);
}

void madmpi_inter_allgather(struct madmpi_coll *c, const void *from,
			    MPI_Count n, const struct madmpi_type *t,
			    const struct madmpi_parts *r)
{
	struct madmpi_flight mine = { .is_active = false };

	madmpi_coll_across(c);
	if (n * t->size > 0)
		madmpi_coll_isend(c, &mine, from, n, t, LEADER);
	if (is_leader(c))
		madmpi_gather_parts(c, r, 0, c->size);
	madmpi_coll_wait(c, &mine);
	madmpi_coll_home(c);
	spread_parts(c, r, c->comm->npeers);
}

/*
 * In step k of as many as the larger group has processes, send to rank + k and
 * receive from rank - k, if there are such.
 */
void madmpi_inter_alltoall(struct madmpi_coll *c, const struct madmpi_parts *s,
			   const struct madmpi_parts *r)
{
	const struct madmpi_comm *comm = c->comm;
	int most = comm->size > comm->npeers ? comm->size : comm->npeers;
	struct madmpi_flight out, in;

	madmpi_coll_across(c);
	for (int step = 0; step < most; step++) {
		int to = (c->rank + step) % most;
		int from = (c->rank - step + most) % most;

		out.is_active = in.is_active = false;
		if (from < c->size && madmpi_parts_any(r, from))
			madmpi_coll_irecv(c, &in, madmpi_parts_at(r, from),
					  madmpi_parts_count(r, from),
					  madmpi_parts_type(r, from), from);
		if (to < c->size && madmpi_parts_any(s, to))
			madmpi_coll_isend(c, &out, madmpi_parts_at(s, to),
					  madmpi_parts_count(s, to),
					  madmpi_parts_type(s, to), to);
		madmpi_coll_wait(c, &out);
		madmpi_coll_wait(c, &in);
	}
}
