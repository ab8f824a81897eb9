/*
 * MPI_Reduce.
 */
#include <errno.h>
#include <stdlib.h>

#include "bodies.h"
#include "coll/forms.h"
#include "coll/inter.h"
#include "pt2pt/message.h"

/*
 * A binomial tree. What a process holds is always the result of neighbouring
 * ranks, and the left operand is that of the lower ones, so that operations
 * which do not commute come out right: for those the tree's root is rank 0,
 * which passes the result on.
 */
static void *tree(struct madmpi_coll *c, void *mine, void *other, MPI_Count n,
		  struct madmpi_type *t, struct madmpi_op *op, int root)
{
	int me = (c->rank - root + c->size) % c->size;
	void *swap;

	for (int mask = 1; mask < c->size; mask *= 2) {
		if (me & mask) {
			madmpi_coll_send(c, mine, n, t,
					 (c->rank - mask + c->size) % c->size);
			break;
		}
		if (me + mask >= c->size)
			continue;
		madmpi_coll_recv(c, other, n, t, (c->rank + mask) % c->size);
		madmpi_coll_apply(c, op, mine, other, n, t);
		swap = mine;
		mine = other;
		other = swap;
	}
	return mine;
}

void madmpi_reduce_binomial(struct madmpi_coll *c, const void *from, void *to,
			    MPI_Count n, struct madmpi_type *t,
			    struct madmpi_op *op, int root)
{
	void *mine = madmpi_coll_alloc(t, n), *other = madmpi_coll_alloc(t, n);
	int top = op->commutes ? root : 0;
	void *result;

	if (mine == NULL || other == NULL)
		madmpi_coll_fail(c, -ENOMEM);
	madmpi_coll_copy(c, from, n, t, mine, n, t);
	result = tree(c, mine, other, n, t, op, top);
	if (c->rank == top && top != root)
		madmpi_coll_send(c, result, n, t, root);
	else if (c->rank == root && top != root)
		madmpi_coll_recv(c, to, n, t, top);
	else if (c->rank == root)
		madmpi_coll_copy(c, result, n, t, to, n, t);
	madmpi_coll_free(mine, t, n);
	madmpi_coll_free(other, t, n);
}

static void run(struct madmpi_coll *c, const struct madmpi_collective *x)
{
	const struct madmpi_parts *s = &x->send, *r = &x->recv;

	if (x->root == MPI_PROC_NULL || r->count == 0)
		return;
	if (unlikely(madmpi_comm_is_inter(x->comm)))
		madmpi_inter_reduce(c, s->base, r->base, r->count, r->type,
				    x->op, x->root);
	else
		madmpi_choose_reduce(c, r->count, r->type, x->op)(
			c, s->base, r->base, r->count, r->type, x->op, x->root);
}

static int check(struct madmpi_collective *x, MPI_Datatype datatype)
{
	const char *fn = x->function;
	struct madmpi_comm *mc = x->comm;
	struct madmpi_parts *s = &x->send, *r = &x->recv;
	bool is_root = madmpi_is_root(mc, x->root);
	/* A root in one of two groups has no part in what is reduced. */
	bool one = is_root && (x->root == MPI_ROOT || s->base == MPI_IN_PLACE);
	int rc = madmpi_check_data(fn, mc, one ? r->base : s->base, r->count,
				   datatype, &r->type);

	if (rc == MPI_SUCCESS && is_root && !one)
		rc = madmpi_check_buffer(fn, mc, "recvbuf", r->base, r->count,
					 r->type);
	if (rc == MPI_SUCCESS && is_root && !one)
		rc = madmpi_check_alias(fn, mc, s->base, r->base, r->count);
	if (one)
		s->base = r->base;
	return rc;
}

static int prepare(struct madmpi_collective *x, const char *fn,
		   const void *sendbuf, void *recvbuf, MPI_Count count,
		   MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm)
{
	int rc;

	madmpi_collective_set(x, fn, run);
	x->send.base = (void *)sendbuf;
	x->recv.base = recvbuf;
	x->recv.count = count;
	x->root = root;
	rc = madmpi_check_comm(fn, comm, &x->comm);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_check_root(fn, x->comm, root);
	if (likely(rc == MPI_SUCCESS) && root != MPI_PROC_NULL)
		rc = check(x, datatype);
	if (likely(rc == MPI_SUCCESS) && root != MPI_PROC_NULL)
		rc = madmpi_check_op(fn, x->comm, op, count, x->recv.type,
				     &x->op);
	return rc;
}

/* MPI_Reduce, MPI_Reduce_c */
int madmpi_reduce(const void *sendbuf, void *recvbuf, MPI_Count count,
		  MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Reduce", sendbuf, recvbuf, count, datatype,
			 op, root, comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Ireduce, MPI_Ireduce_c */
int madmpi_ireduce(const void *sendbuf, void *recvbuf, MPI_Count count,
		   MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
		   MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Ireduce", sendbuf, recvbuf, count, datatype,
			 op, root, comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Reduce_init, MPI_Reduce_init_c */
int madmpi_reduce_init(const void *sendbuf, void *recvbuf, MPI_Count count,
		       MPI_Datatype datatype, MPI_Op op, int root,
		       MPI_Comm comm, MPI_Info info, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Reduce_init", sendbuf, recvbuf, count,
			 datatype, op, root, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}
