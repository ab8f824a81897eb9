/*
 * MPI_Reduce_scatter, MPI_Reduce_scatter_block.
 */
#include <errno.h>
#include <stdlib.h>

#include "bodies.h"
#include "coll/forms.h"
#include "coll/inter.h"
#include "pt2pt/message.h"

/*
 * Pairwise: in step k send the part of rank + k there, and add the own part of
 * what rank - k has. Every process moves the data once. Commutative only.
 */
static void pairwise(struct madmpi_coll *c, const struct madmpi_parts *s,
		     void *recvbuf, struct madmpi_type *t, struct madmpi_op *op)
{
	MPI_Count n = madmpi_parts_count(s, c->rank);
	void *result = madmpi_coll_alloc(t, n), *tmp = madmpi_coll_alloc(t, n);
	int to;

	if (result == NULL || tmp == NULL)
		madmpi_coll_fail(c, -ENOMEM);
	madmpi_coll_copy(c, madmpi_parts_at(s, c->rank), n, t, result, n, t);
	for (int step = 1; step < c->size; step++) {
		to = (c->rank + step) % c->size;
		madmpi_coll_exchange(c, madmpi_parts_at(s, to),
				     madmpi_parts_count(s, to), t, to, tmp, n,
				     t, (c->rank - step + c->size) % c->size);
		madmpi_coll_apply(c, op, tmp, result, n, t);
	}
	madmpi_coll_copy(c, result, n, t, recvbuf, n, t);
	madmpi_coll_free(result, t, n);
	madmpi_coll_free(tmp, t, n);
}

/* Operations that do not commute: reduce in order to rank 0, then scatter. */
static void by_root(struct madmpi_coll *c, const struct madmpi_parts *s,
		    MPI_Count total, void *recvbuf, struct madmpi_type *t,
		    struct madmpi_op *op)
{
	struct madmpi_parts p = *s;
	void *all = madmpi_coll_alloc(t, total);

	if (all == NULL)
		madmpi_coll_fail(c, -ENOMEM);
	madmpi_reduce_binomial(c, s->base, all, total, t, op, 0);
	p.base = all;
	madmpi_scatter_linear(c, &p, recvbuf, madmpi_parts_count(s, c->rank), t,
			      0);
	madmpi_coll_free(all, t, total);
}

static void reduce(struct madmpi_coll *c, const struct madmpi_collective *x,
		   const struct madmpi_parts *s, MPI_Count total)
{
	void *to = x->recv.base;

	if (total == 0)
		return;
	if (madmpi_comm_is_inter(x->comm))
		madmpi_inter_reduce_scatter(c, s, total, to, s->type, x->op);
	else if (madmpi_choose_pairwise(x->op))
		pairwise(c, s, to, s->type, x->op);
	else
		by_root(c, s, total, to, s->type, x->op);
}

/* Parts of different lengths lie in a row, too. */
static void run(struct madmpi_coll *c, const struct madmpi_collective *x)
{
	struct madmpi_parts s = x->send;
	MPI_Count total = 0, *displs;

	displs = malloc((size_t)c->size * sizeof(*displs));
	if (displs == NULL)
		madmpi_coll_fail(c, -ENOMEM);
	for (int i = 0; i < c->size; i++) {
		if (displs != NULL)
			displs[i] = total;
		total += madmpi_parts_count(&s, i);
	}
	/* Where they lie does not matter to who has failed. */
	s.displs = displs ? madmpi_array_count(displs) : s.counts;
	reduce(c, x, &s, total);
	free(displs);
}

static void run_block(struct madmpi_coll *c, const struct madmpi_collective *x)
{
	reduce(c, x, &x->send, x->send.count * c->size);
}

/* Both buffers and the operation; how long the parts are is known. */
static int check(struct madmpi_collective *x, const void *sendbuf,
		 void *recvbuf, MPI_Count total, MPI_Datatype datatype,
		 MPI_Op op)
{
	const char *fn = x->function;
	struct madmpi_comm *mc = x->comm;
	struct madmpi_parts *s = &x->send;
	int rc;

	s->base = madmpi_in_place(mc, sendbuf) ? recvbuf : (void *)sendbuf;
	x->recv.base = recvbuf;
	rc = madmpi_check_data(fn, mc, s->base, total, datatype, &s->type);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_data(fn, mc, recvbuf,
				       madmpi_parts_count(s, mc->rank),
				       datatype, &s->type);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_alias(fn, mc, sendbuf, recvbuf, total);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_op(fn, mc, op, total, s->type, &x->op);
	return rc;
}

static int prepare_block(struct madmpi_collective *x, const char *fn,
			 const void *sendbuf, void *recvbuf,
			 MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
			 MPI_Comm comm)
{
	int rc;

	madmpi_collective_set(x, fn, run_block);
	x->send.count = recvcount;
	rc = madmpi_check_comm(fn, comm, &x->comm);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_count(fn, x->comm, "recvcount", recvcount);
	return rc ? rc
		  : check(x, sendbuf, recvbuf, recvcount * x->comm->size,
			  datatype, op);
}

static int prepare(struct madmpi_collective *x, const char *fn,
		   const void *sendbuf, void *recvbuf,
		   struct madmpi_array recvcounts, MPI_Datatype datatype,
		   MPI_Op op, MPI_Comm comm)
{
	MPI_Count total = 0;
	int rc;

	madmpi_collective_set(x, fn, run);
	x->send.counts = recvcounts;
	rc = madmpi_check_comm(fn, comm, &x->comm);
	if (rc != MPI_SUCCESS)
		return rc;
	if (recvcounts.at == NULL)
		return madmpi_null_arg(x->comm, fn, "recvcounts");
	x->send.n = x->comm->size;
	for (int i = 0; i < x->send.n && rc == MPI_SUCCESS; i++) {
		MPI_Count n = madmpi_parts_count(&x->send, i);

		total += n;
		rc = madmpi_check_count(fn, x->comm, "a count", n);
	}
	return rc ? rc : check(x, sendbuf, recvbuf, total, datatype, op);
}

/* MPI_Reduce_scatter_block, MPI_Reduce_scatter_block_c */
int madmpi_reduce_scatter_block(const void *sendbuf, void *recvbuf,
				MPI_Count recvcount, MPI_Datatype datatype,
				MPI_Op op, MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare_block(&x, "MPI_Reduce_scatter_block", sendbuf, recvbuf,
			       recvcount, datatype, op, comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Ireduce_scatter_block, MPI_Ireduce_scatter_block_c */
int madmpi_ireduce_scatter_block(const void *sendbuf, void *recvbuf,
				 MPI_Count recvcount, MPI_Datatype datatype,
				 MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_block(&x, "MPI_Ireduce_scatter_block", sendbuf,
			       recvbuf, recvcount, datatype, op, comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Reduce_scatter_block_init, MPI_Reduce_scatter_block_init_c */
int madmpi_reduce_scatter_block_init(const void *sendbuf, void *recvbuf,
				     MPI_Count recvcount, MPI_Datatype datatype,
				     MPI_Op op, MPI_Comm comm, MPI_Info info,
				     MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_block(&x, "MPI_Reduce_scatter_block_init", sendbuf,
			       recvbuf, recvcount, datatype, op, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}

/* MPI_Reduce_scatter, MPI_Reduce_scatter_c */
int madmpi_reduce_scatter(const void *sendbuf, void *recvbuf,
			  struct madmpi_array recvcounts, MPI_Datatype datatype,
			  MPI_Op op, MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Reduce_scatter", sendbuf, recvbuf, recvcounts,
			 datatype, op, comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Ireduce_scatter, MPI_Ireduce_scatter_c */
int madmpi_ireduce_scatter(const void *sendbuf, void *recvbuf,
			   struct madmpi_array recvcounts,
			   MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
			   MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Ireduce_scatter", sendbuf, recvbuf,
			 recvcounts, datatype, op, comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Reduce_scatter_init, MPI_Reduce_scatter_init_c */
int madmpi_reduce_scatter_init(const void *sendbuf, void *recvbuf,
			       struct madmpi_array recvcounts,
			       MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
			       MPI_Info info, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Reduce_scatter_init", sendbuf, recvbuf,
			 recvcounts, datatype, op, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}
