/*
 * MPI_Reduce.
 */
#include <errno.h>
#include <stdlib.h>

#include "bodies.h"
#include "coll/coll.h"
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
		madmpi_op_apply(op, mine, other, n, t);
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

	if (mine == NULL || other == NULL) {
		madmpi_coll_fail(c, -ENOMEM);
		goto done;
	}
	madmpi_copy_bytes(from, n, t, mine, n, t);
	result = tree(c, mine, other, n, t, op, top);
	if (c->rank == top && top != root)
		madmpi_coll_send(c, result, n, t, root);
	else if (c->rank == root && top != root)
		madmpi_coll_recv(c, to, n, t, top);
	else if (c->rank == root)
		madmpi_copy_bytes(result, n, t, to, n, t);
done:
	madmpi_coll_free(mine, t, n);
	madmpi_coll_free(other, t, n);
}

static int check(const char *fn, struct madmpi_comm *mc, const void *sendbuf,
		 void *recvbuf, MPI_Count count, MPI_Datatype datatype,
		 int root, struct madmpi_type **t)
{
	bool is_root = madmpi_is_root(mc, root);
	/* A root in one of two groups has no part in what is reduced. */
	bool one = is_root && (root == MPI_ROOT || sendbuf == MPI_IN_PLACE);
	int rc = madmpi_check_data(fn, mc, one ? recvbuf : sendbuf, count,
				   datatype, t);

	if (rc == MPI_SUCCESS && is_root && !one)
		rc = madmpi_check_buffer(fn, mc, "recvbuf", recvbuf, count, *t);
	if (rc == MPI_SUCCESS && is_root && !one)
		rc = madmpi_check_alias(fn, mc, sendbuf, recvbuf, count);
	return rc;
}

/* MPI_Reduce, MPI_Reduce_c */
int madmpi_reduce(const void *sendbuf, void *recvbuf, MPI_Count count,
		  MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm)
{
	const char *fn = "MPI_Reduce";
	struct madmpi_comm *mc;
	struct madmpi_type *t = NULL;
	struct madmpi_op *o = NULL;
	struct madmpi_coll c;
	int rc = madmpi_check_comm(fn, comm, &mc);

	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_check_root(fn, mc, root);
	if (likely(rc == MPI_SUCCESS) && root != MPI_PROC_NULL)
		rc = check(fn, mc, sendbuf, recvbuf, count, datatype, root, &t);
	if (likely(rc == MPI_SUCCESS) && root != MPI_PROC_NULL)
		rc = madmpi_check_op(fn, mc, op, t, &o);
	if (unlikely(rc != MPI_SUCCESS))
		return rc;
	if (unlikely(madmpi_comm_is_inter(mc)))
		return madmpi_inter_reduce(fn, mc, sendbuf, recvbuf, count, t,
					   o, root);
	if (count == 0)
		return MPI_SUCCESS;
	madmpi_coll_begin(&c, fn, mc);
	if (sendbuf == MPI_IN_PLACE)
		sendbuf = recvbuf;
	madmpi_reduce_binomial(&c, sendbuf, recvbuf, count, t, o, root);
	return madmpi_coll_end(&c);
}
