/*
 * MPI_Scan, MPI_Exscan.
 */
#include <errno.h>

#include "bodies.h"
#include "coll/coll.h"
#include "pt2pt/message.h"

/* The buffers of a scan: three besides the result. */
struct scan {
	struct madmpi_coll c;
	struct madmpi_type *t;
	struct madmpi_op *op;
	MPI_Count n;
	void *block; /* the result of the block of ranks that ends with me */
	void *other; /* what comes from a lower block */
	bool any;    /* `result` holds something */
};

/* result = lower op result, where the first value is taken as it is. */
static void add_lower(struct scan *s, void *result)
{
	if (s->any)
		madmpi_op_apply(s->op, s->other, result, s->n, s->t);
	else
		madmpi_copy_bytes(s->other, s->n, s->t, result, s->n, s->t);
	s->any = true;
}

/*
 * Recursive doubling: in round k process r exchanges with r ^ 2^k the result
 * of their blocks; what comes from below is added on the left. `result` is the
 * scan without the own value if it begins empty.
 */
static void doubling(struct scan *s, void *result)
{
	struct madmpi_coll *c = &s->c;
	void *swap;

	for (int mask = 1; mask < c->size; mask *= 2) {
		int peer = c->rank ^ mask;

		if (peer >= c->size)
			continue;
		madmpi_coll_exchange(c, s->block, s->n, s->t, peer, s->other,
				     s->n, s->t, peer);
		if (peer < c->rank) {
			add_lower(s, result);
			madmpi_op_apply(s->op, s->other, s->block, s->n, s->t);
		} else {
			madmpi_op_apply(s->op, s->block, s->other, s->n, s->t);
			swap = s->block;
			s->block = s->other;
			s->other = swap;
		}
	}
}

static int run(const char *fn, const void *sendbuf, void *recvbuf,
	       MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
	       bool inclusive)
{
	struct scan s = { .n = count };
	struct madmpi_comm *mc;
	int rc = madmpi_check_comm(fn, comm, &mc);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_intra(fn, mc);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_data(
			fn, mc, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf,
			count, datatype, &s.t);
	if (rc == MPI_SUCCESS && (inclusive || mc->rank > 0))
		rc = madmpi_check_buffer(fn, mc, "recvbuf", recvbuf, count,
					 s.t);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_alias(fn, mc, sendbuf, recvbuf, count);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_op(fn, mc, op, s.t, &s.op);
	if (rc != MPI_SUCCESS || count == 0)
		return rc;
	madmpi_coll_begin(&s.c, fn, mc);
	s.block = madmpi_coll_alloc(s.t, count);
	s.other = madmpi_coll_alloc(s.t, count);
	if (s.block == NULL || s.other == NULL) {
		madmpi_coll_fail(&s.c, -ENOMEM);
	} else {
		if (sendbuf == MPI_IN_PLACE)
			sendbuf = recvbuf;
		madmpi_copy_bytes(sendbuf, count, s.t, s.block, count, s.t);
		if (inclusive && sendbuf != recvbuf)
			madmpi_copy_bytes(sendbuf, count, s.t, recvbuf, count,
					  s.t);
		s.any = inclusive;
		doubling(&s, recvbuf);
	}
	madmpi_coll_free(s.block, s.t, count);
	madmpi_coll_free(s.other, s.t, count);
	return madmpi_coll_end(&s.c);
}

/* MPI_Scan, MPI_Scan_c */
int madmpi_scan(const void *sendbuf, void *recvbuf, MPI_Count count,
		MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
	return run("MPI_Scan", sendbuf, recvbuf, count, datatype, op, comm,
		   true);
}

/* MPI_Exscan, MPI_Exscan_c */
int madmpi_exscan(const void *sendbuf, void *recvbuf, MPI_Count count,
		  MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
	return run("MPI_Exscan", sendbuf, recvbuf, count, datatype, op, comm,
		   false);
}
