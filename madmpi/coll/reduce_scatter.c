/*
 * MPI_Reduce_scatter, MPI_Reduce_scatter_block.
 */
#include <errno.h>
#include <stdlib.h>

#include "bodies.h"
#include "coll/coll.h"
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

	if (result == NULL || tmp == NULL) {
		madmpi_coll_fail(c, -ENOMEM);
		goto done;
	}
	madmpi_copy_bytes(madmpi_parts_at(s, c->rank), n, t, result, n, t);
	for (int step = 1; step < c->size; step++) {
		to = (c->rank + step) % c->size;
		madmpi_coll_exchange(c, madmpi_parts_at(s, to),
				     madmpi_parts_count(s, to), t, to, tmp, n,
				     t, (c->rank - step + c->size) % c->size);
		madmpi_op_apply(op, tmp, result, n, t);
	}
	madmpi_copy_bytes(result, n, t, recvbuf, n, t);
done:
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

	if (all == NULL) {
		madmpi_coll_fail(c, -ENOMEM);
		return;
	}
	madmpi_reduce_binomial(c, s->base, all, total, t, op, 0);
	p.base = all;
	madmpi_scatter_linear(c, &p, recvbuf, madmpi_parts_count(s, c->rank), t,
			      0);
	madmpi_coll_free(all, t, total);
}

static int run(const char *fn, const void *sendbuf, void *recvbuf,
	       struct madmpi_parts *s, MPI_Count total, MPI_Datatype datatype,
	       MPI_Op op, struct madmpi_comm *mc)
{
	struct madmpi_type *t;
	struct madmpi_op *o;
	struct madmpi_coll c;
	int rc;

	s->base = madmpi_in_place(mc, sendbuf) ? recvbuf : (void *)sendbuf;
	rc = madmpi_check_data(fn, mc, s->base, total, datatype, &t);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_data(fn, mc, recvbuf,
				       madmpi_parts_count(s, mc->rank),
				       datatype, &t);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_alias(fn, mc, sendbuf, recvbuf, total);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_op(fn, mc, op, t, &o);
	if (rc != MPI_SUCCESS)
		return rc;
	s->type = t;
	if (madmpi_comm_is_inter(mc))
		return madmpi_inter_reduce_scatter(fn, mc, s, total, recvbuf, t,
						   o);
	if (total == 0)
		return MPI_SUCCESS;
	madmpi_coll_begin(&c, fn, mc);
	if (o->commutes)
		pairwise(&c, s, recvbuf, t, o);
	else
		by_root(&c, s, total, recvbuf, t, o);
	return madmpi_coll_end(&c);
}

/* MPI_Reduce_scatter_block, MPI_Reduce_scatter_block_c */
int madmpi_reduce_scatter_block(const void *sendbuf, void *recvbuf,
				MPI_Count recvcount, MPI_Datatype datatype,
				MPI_Op op, MPI_Comm comm)
{
	const char *fn = "MPI_Reduce_scatter_block";
	struct madmpi_parts s = { .count = recvcount };
	struct madmpi_comm *mc;
	int rc = madmpi_check_comm(fn, comm, &mc);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_count(fn, mc, "recvcount", recvcount);
	if (rc != MPI_SUCCESS)
		return rc;
	return run(fn, sendbuf, recvbuf, &s, recvcount * mc->size, datatype, op,
		   mc);
}

/* MPI_Reduce_scatter, MPI_Reduce_scatter_c */
int madmpi_reduce_scatter(const void *sendbuf, void *recvbuf,
			  struct madmpi_array recvcounts, MPI_Datatype datatype,
			  MPI_Op op, MPI_Comm comm)
{
	const char *fn = "MPI_Reduce_scatter";
	struct madmpi_parts s = { .counts = recvcounts };
	struct madmpi_comm *mc;
	MPI_Count total = 0, *displs;
	int rc = madmpi_check_comm(fn, comm, &mc);

	if (rc != MPI_SUCCESS)
		return rc;
	if (recvcounts.at == NULL)
		return madmpi_null_arg(mc, fn, "recvcounts");
	displs = malloc((size_t)mc->size * sizeof(*displs));
	if (displs == NULL)
		return madmpi_error(mc, MPI_ERR_NO_MEM, fn,
				    "no memory for %d displacements", mc->size);
	for (int i = 0; i < mc->size && rc == MPI_SUCCESS; i++) {
		displs[i] = total;
		total += madmpi_array_get(recvcounts, (size_t)i);
		rc = madmpi_check_count(
			fn, mc, "a count",
			madmpi_array_get(recvcounts, (size_t)i));
	}
	s.displs = madmpi_array_count(displs);
	if (rc == MPI_SUCCESS)
		rc = run(fn, sendbuf, recvbuf, &s, total, datatype, op, mc);
	free(displs);
	return rc;
}
