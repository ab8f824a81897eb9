/*
 * MPI_Allreduce.
 */
#include <errno.h>
#include <stdlib.h>

#include "bodies.h"
#include "coll/coll.h"
#include "coll/inter.h"
#include "pt2pt/message.h"

/*
 * With a number of processes that is no power of two, the first pairs of
 * neighbours are represented by their second member. Returns the rank among
 * those that go on, or -1.
 */
static int represent(struct madmpi_coll *c, int extra, void *mine, void *other,
		     MPI_Count n, struct madmpi_type *t, struct madmpi_op *op)
{
	if (c->rank >= 2 * extra)
		return c->rank - extra;
	if (c->rank % 2 == 0) {
		madmpi_coll_send(c, mine, n, t, c->rank + 1);
		return -1;
	}
	madmpi_coll_recv(c, other, n, t, c->rank - 1);
	madmpi_op_apply(op, other, mine, n, t);
	return c->rank / 2;
}

/*
 * Recursive doubling: log2(size) exchanges of all the data. Each holds the
 * result of a block of neighbouring ranks; the lower block is the left operand.
 */
void madmpi_allreduce_doubling(struct madmpi_coll *c, void *buf, MPI_Count n,
			       struct madmpi_type *t, struct madmpi_op *op)
{
	void *mine = buf, *other = madmpi_coll_alloc(t, n), *swap;
	void *allocated = other;
	int power = 1, extra, me, peer;

	if (other == NULL) {
		madmpi_coll_fail(c, -ENOMEM);
		return;
	}
	while (2 * power <= c->size)
		power *= 2;
	extra = c->size - power;
	me = represent(c, extra, mine, other, n, t, op);
	for (int mask = 1; me >= 0 && mask < power; mask *= 2) {
		peer = me ^ mask;
		peer = peer < extra ? 2 * peer + 1 : peer + extra;
		madmpi_coll_exchange(c, mine, n, t, peer, other, n, t, peer);
		if (peer > c->rank) {
			madmpi_op_apply(op, mine, other, n, t);
			swap = mine;
			mine = other;
			other = swap;
		} else {
			madmpi_op_apply(op, other, mine, n, t);
		}
	}
	if (me < 0)
		madmpi_coll_recv(c, mine, n, t, c->rank + 1);
	else if (c->rank < 2 * extra)
		madmpi_coll_send(c, mine, n, t, c->rank - 1);
	if (mine != buf)
		madmpi_copy_bytes(mine, n, t, buf, n, t);
	madmpi_coll_free(allocated, t, n);
}

/* Elements of block i of as many blocks as processes; *from: the first. */
static MPI_Count block(const struct madmpi_coll *c, MPI_Count n, int i,
		       MPI_Count *from)
{
	MPI_Count each = n / c->size, more = n % c->size;

	*from = i * each + (i < more ? i : more);
	return each + (i < more);
}

/* Block i goes to the next process, block i - 1 comes and is added. */
static void ring_step(struct madmpi_coll *c, void *buf, MPI_Count n,
		      struct madmpi_type *t, int i, struct madmpi_op *op,
		      void *tmp)
{
	int next = (c->rank + 1) % c->size;
	int previous = (c->rank - 1 + c->size) % c->size;
	MPI_Count sfrom, rfrom, sn, rn;
	void *to;

	i = (i + 2 * c->size) % c->size;
	sn = block(c, n, i, &sfrom);
	rn = block(c, n, (i - 1 + c->size) % c->size, &rfrom);
	to = op ? tmp : madmpi_at(buf, rfrom, t);
	madmpi_coll_exchange(c, madmpi_at(buf, sfrom, t), sn, t, next, to, rn,
			     t, previous);
	if (op != NULL)
		madmpi_op_apply(op, tmp, madmpi_at(buf, rfrom, t), rn, t);
}

/*
 * Two rounds of a ring: blocks are reduced on their way, then handed to all.
 * Each process moves twice the data, however many they are. Commutative only.
 */
void madmpi_allreduce_ring(struct madmpi_coll *c, void *buf, MPI_Count n,
			   struct madmpi_type *t, struct madmpi_op *op)
{
	MPI_Count most = n / c->size + 1;
	void *tmp = madmpi_coll_alloc(t, most);

	if (tmp == NULL) {
		madmpi_coll_fail(c, -ENOMEM);
		return;
	}
	for (int step = 0; step < c->size - 1; step++)
		ring_step(c, buf, n, t, c->rank - step, op, tmp);
	for (int step = 0; step < c->size - 1; step++)
		ring_step(c, buf, n, t, c->rank + 1 - step, NULL, NULL);
	madmpi_coll_free(tmp, t, most);
}

/* MPI_Allreduce, MPI_Allreduce_c */
int madmpi_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count,
		     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
	const char *fn = "MPI_Allreduce";
	struct madmpi_comm *mc;
	struct madmpi_type *t;
	struct madmpi_op *o;
	struct madmpi_coll c;
	int rc = madmpi_check_comm(fn, comm, &mc);

	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_check_data(fn, mc, recvbuf, count, datatype, &t);
	if (likely(rc == MPI_SUCCESS) && !madmpi_in_place(mc, sendbuf))
		rc = madmpi_check_data(fn, mc, sendbuf, count, datatype, &t);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_check_alias(fn, mc, sendbuf, recvbuf, count);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_check_op(fn, mc, op, t, &o);
	if (unlikely(rc != MPI_SUCCESS))
		return rc;
	if (unlikely(madmpi_comm_is_inter(mc)))
		return madmpi_inter_allreduce(fn, mc, sendbuf, recvbuf, count,
					      t, o);
	if (count == 0)
		return MPI_SUCCESS;
	madmpi_coll_begin(&c, fn, mc);
	if (sendbuf != MPI_IN_PLACE)
		madmpi_copy_bytes(sendbuf, count, t, recvbuf, count, t);
	if (mc->size > 1)
		madmpi_choose_allreduce(&c, count, t, o)(&c, recvbuf, count, t,
							 o);
	return madmpi_coll_end(&c);
}
