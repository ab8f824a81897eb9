/*
 * MPI_Scan, MPI_Exscan.
 */
#include <errno.h>

#include "bodies.h"
#include "coll/forms.h"
#include "pt2pt/message.h"

/* What a scan works with, besides the result. */
struct scan {
	struct madmpi_coll *c;
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
		madmpi_coll_apply(s->c, s->op, s->other, result, s->n, s->t);
	else
		madmpi_coll_copy(s->c, s->other, s->n, s->t, result, s->n,
				 s->t);
	s->any = true;
}

/*
 * Recursive doubling: in round k process r exchanges with r ^ 2^k the result
 * of their blocks; what comes from below is added on the left. `result` is the
 * scan without the own value if it begins empty.
 */
static void doubling(struct scan *s, void *result)
{
	struct madmpi_coll *c = s->c;
	void *swap;

	for (int mask = 1; mask < c->size; mask *= 2) {
		int peer = c->rank ^ mask;

		if (peer >= c->size)
			continue;
		madmpi_coll_exchange(c, s->block, s->n, s->t, peer, s->other,
				     s->n, s->t, peer);
		if (peer < c->rank) {
			add_lower(s, result);
			madmpi_coll_apply(s->c, s->op, s->other, s->block, s->n,
					  s->t);
		} else {
			madmpi_coll_apply(s->c, s->op, s->block, s->other, s->n,
					  s->t);
			swap = s->block;
			s->block = s->other;
			s->other = swap;
		}
	}
}

static void scan(struct madmpi_coll *c, const struct madmpi_collective *x,
		 bool inclusive)
{
	const void *from = x->send.base;
	void *to = x->recv.base;
	MPI_Count n = x->recv.count;
	struct madmpi_type *t = x->recv.type;
	struct scan s = {
		.c = c, .t = t, .op = x->op, .n = n, .any = inclusive
	};

	if (n == 0)
		return;
	s.block = madmpi_coll_alloc(t, n);
	s.other = madmpi_coll_alloc(t, n);
	if (s.block == NULL || s.other == NULL)
		madmpi_coll_fail(c, -ENOMEM);
	madmpi_coll_copy(c, from, n, t, s.block, n, t);
	if (inclusive && from != to)
		madmpi_coll_copy(c, from, n, t, to, n, t);
	doubling(&s, to);
	madmpi_coll_free(s.block, t, n);
	madmpi_coll_free(s.other, t, n);
}

static void run(struct madmpi_coll *c, const struct madmpi_collective *x)
{
	scan(c, x, true);
}

static void run_exclusive(struct madmpi_coll *c,
			  const struct madmpi_collective *x)
{
	scan(c, x, false);
}

static int check(struct madmpi_collective *x, const void *sendbuf,
		 MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
	const char *fn = x->function;
	struct madmpi_parts *r = &x->recv;
	int rc = madmpi_check_comm(fn, comm, &x->comm);

	if (rc == MPI_SUCCESS)
		rc = madmpi_check_intra(fn, x->comm);
	x->send.base = sendbuf == MPI_IN_PLACE ? r->base : (void *)sendbuf;
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_data(fn, x->comm, x->send.base, r->count,
				       datatype, &r->type);
	if (rc == MPI_SUCCESS && (x->run == run || x->comm->rank > 0))
		rc = madmpi_check_buffer(fn, x->comm, "recvbuf", r->base,
					 r->count, r->type);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_alias(fn, x->comm, sendbuf, r->base,
					r->count);
	if (rc == MPI_SUCCESS)
		rc = madmpi_check_op(fn, x->comm, op, r->count, r->type,
				     &x->op);
	return rc;
}

static int prepare(struct madmpi_collective *x, const char *fn,
		   const void *sendbuf, void *recvbuf, MPI_Count count,
		   MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
	madmpi_collective_set(x, fn, run);
	x->recv.base = recvbuf;
	x->recv.count = count;
	return check(x, sendbuf, datatype, op, comm);
}

static int prepare_exclusive(struct madmpi_collective *x, const char *fn,
			     const void *sendbuf, void *recvbuf,
			     MPI_Count count, MPI_Datatype datatype, MPI_Op op,
			     MPI_Comm comm)
{
	madmpi_collective_set(x, fn, run_exclusive);
	x->recv.base = recvbuf;
	x->recv.count = count;
	return check(x, sendbuf, datatype, op, comm);
}

/* MPI_Scan, MPI_Scan_c */
int madmpi_scan(const void *sendbuf, void *recvbuf, MPI_Count count,
		MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Scan", sendbuf, recvbuf, count, datatype, op,
			 comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Iscan, MPI_Iscan_c */
int madmpi_iscan(const void *sendbuf, void *recvbuf, MPI_Count count,
		 MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
		 MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Iscan", sendbuf, recvbuf, count, datatype, op,
			 comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Scan_init, MPI_Scan_init_c */
int madmpi_scan_init(const void *sendbuf, void *recvbuf, MPI_Count count,
		     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
		     MPI_Info info, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare(&x, "MPI_Scan_init", sendbuf, recvbuf, count, datatype,
			 op, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}

/* MPI_Exscan, MPI_Exscan_c */
int madmpi_exscan(const void *sendbuf, void *recvbuf, MPI_Count count,
		  MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
	struct madmpi_collective x;
	int rc = prepare_exclusive(&x, "MPI_Exscan", sendbuf, recvbuf, count,
				   datatype, op, comm);

	return rc ? rc : madmpi_collective_run(&x);
}

/* MPI_Iexscan, MPI_Iexscan_c */
int madmpi_iexscan(const void *sendbuf, void *recvbuf, MPI_Count count,
		   MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
		   MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_exclusive(&x, "MPI_Iexscan", sendbuf, recvbuf, count,
				   datatype, op, comm);

	return rc ? rc : madmpi_collective_start(&x, request);
}

/* MPI_Exscan_init, MPI_Exscan_init_c */
int madmpi_exscan_init(const void *sendbuf, void *recvbuf, MPI_Count count,
		       MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
		       MPI_Info info, MPI_Request *request)
{
	struct madmpi_collective x;
	int rc = prepare_exclusive(&x, "MPI_Exscan_init", sendbuf, recvbuf,
				   count, datatype, op, comm);

	return rc ? rc : madmpi_collective_init(&x, info, request);
}
