/*
 * MPI_Allreduce.
 */
#include <errno.h>
#include <stdlib.h>

#include "bodies.h"
#include "coll/forms.h"
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
	madmpi_coll_apply(c, op, other, mine, n, t);
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

	if (other == NULL)
		madmpi_coll_fail(c, -ENOMEM);
	while (2 * power <= c->size)
		power *= 2;
	extra = c->size - power;
	me = represent(c, extra, mine, other, n, t, op);
	for (int mask = 1; me >= 0 && mask < power; mask *= 2) {
		peer = me ^ mask;
		peer = peer < extra ? 2 * peer + 1 : peer + extra;
		madmpi_coll_exchange(c, mine, n, t, peer, other, n, t, peer);
		if (peer > c->rank) {
			madmpi_coll_apply(c, op, mine, other, n, t);
			swap = mine;
			mine = other;
			other = swap;
		} else {
			madmpi_coll_apply(c, op, other, mine, n, t);
		}
	}
	if (me < 0)
		madmpi_coll_recv(c, mine, n, t, c->rank + 1);
	else if (c->rank < 2 * extra)
		madmpi_coll_send(c, mine, n, t, c->rank - 1);
	if (mine != buf)
		madmpi_coll_copy(c, mine, n, t, buf, n, t);
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
		madmpi_coll_apply(c, op, tmp, madmpi_at(buf, rfrom, t), rn, t);
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

	if (tmp == NULL)
		madmpi_coll_fail(c, -ENOMEM);
	for (int step = 0; step < c->size - 1; step++)
		ring_step(c, buf, n, t, c->rank - step, op, tmp);
	for (int step = 0; step < c->size - 1; step++)
		ring_step(c, buf, n, t, c->rank + 1 - step, NULL, NULL);
	madmpi_coll_free(tmp, t, most);
}

static void run(struct madmpi_coll *c, const struct madmpi_collective *x)
{
	const void *from = x->send.base;
	void *to = x->recv.base;
	MPI_Count n = x->recv.count;
	struct madmpi_type *t = x->recv.type;

	if (n == 0)
		return;
	if (unlikely(madmpi_comm_is_inter(x->comm))) {
		madmpi_inter_allreduce(c, from, to, n, t, x->op);
		return;
	}
	if (madmpi_choose_allreduce_shared(c, t, x->op)) {
		madmpi_allreduce_shared(c, from != MPI_IN_PLACE ? from : to, to,
					n, t, x->op);
		return;
	}
	if (from != MPI_IN_PLACE)
		madmpi_copy_bytes(from, n, t, to, n, t);
	if (c->size > 1)
		madmpi_choose_allreduce(c, n, t, x->op)(c, to, n, t, x->op);
}

static int prepare(struct madmpi_collective *x, const char *fn,
		   const void *sendbuf, void *recvbuf, MPI_Count count,
		   MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
	struct madmpi_type **t = &x->recv.type;
	int rc;

	madmpi_collective_set(x, fn, run);
	x->send.base = (void *)sendbuf;
	x->recv.base = recvbuf;
	x->recv.count = count;
	rc = madmpi_check_comm(fn, comm, &x->comm);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_check_data(fn, x->comm, recvbuf, count, datatype,
				       t);
	if (likely(rc == MPI_SUCCESS) && !madmpi_in_place(x->comm, sendbuf))
		rc = madmpi_check_data(fn, x->comm, sendbuf, count, datatype,
				       t);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_check_alias(fn, x->comm, sendbuf, recvbuf, count);
	if (likely(rc == MPI_SUCCESS))
		rc = madmpi_check_op(fn, x->comm, op, count, *t, &x->op);
	return rc;
}

/* MPI_Allreduce, MPI_Allreduce_c */
int madmpi_allreduce(const void *sendbuf, void *recvbuf, MPI_Count count,
		     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Allreduce", sendbuf, recvbuf, count, datatype,
			 op, comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Iallreduce, MPI_Iallreduce_c */
int madmpi_iallreduce(const void *sendbuf, void *recvbuf, MPI_Count count,
		      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
		      MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Iallreduce", sendbuf, recvbuf, count,
			 datatype, op, comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Allreduce_init, MPI_Allreduce_init_c */
int madmpi_allreduce_init(const void *sendbuf, void *recvbuf, MPI_Count count,
			  MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
			  MPI_Info info, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Allreduce_init", sendbuf, recvbuf, count,
			 datatype, op, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}
