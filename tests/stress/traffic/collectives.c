/*
 * Collective operations, blocking or several at once, and a message around the
 * ring while these go on.
 */
#include "traffic.h"

#include <stdlib.h>

enum { AT_ONCE = 4, SERIES = 8, MOST = 64 << 10 /* words */ };

enum kind {
	BARRIER,
	BCAST,
	REDUCE,
	ALLREDUCE,
	SCAN,
	GATHER,
	SCATTER,
	ALLGATHER,
	ALLTOALL,
	ALLTOALLV,
	REDUCE_SCATTER,
	KINDS,
};

struct op {
	enum kind kind;
	int root, n; /* words of a member's share */
	uint64_t key;
	uint64_t *out, *in;
	int *of_each, *at; /* ALLTOALLV */
	MPI_Request request;
};

/* What member r gives, to all or to member `to`. */
static uint64_t given(const struct op *o, int r, int to, size_t i)
{
	return word(mix(o->key, (uint64_t)r), (size_t)to * (size_t)o->n + i);
}

/* Words of a pair's message: the same for who sends and who receives. */
static int of_pair(const struct op *o, int a, int b)
{
	return (int)((mix(o->key, (uint64_t)(a * 64 + b)) >> 32) %
		     ((unsigned)o->n + 1));
}

static void prepare(struct group *g, struct op *o, uint64_t *lot)
{
	size_t all = (size_t)g->size;

	o->kind = (enum kind)draw_below(lot, KINDS);
	o->root = (int)draw_below(lot, (unsigned)g->size);
	o->n = (int)draw_below(
		lot,
		(unsigned)MOST / (draw_below(lot, 4) == 0
					  ? (unsigned)g->size
					  : 1u << (6 + draw_below(lot, 10))));
	o->key = draw(lot);
	all *= (size_t)o->n + 1;
	o->out = must_alloc(g, 8 * all);
	o->in = must_alloc(g, 8 * all);
	o->of_each = must_alloc(g, sizeof(int) * (size_t)g->size * 4);
	for (size_t i = 0; i < all; i++) {
		o->out[i] = given(o, g->rank, 0, i);
		o->in[i] = 0;
	}
	for (int r = 0; r < g->size; r++) {
		o->of_each[r] = of_pair(o, g->rank, r);
		o->of_each[g->size + r] = r * o->n;
		o->of_each[2 * g->size + r] = of_pair(o, r, g->rank);
	}
	o->request = MPI_REQUEST_NULL;
}

/* Both of its names, since the second begins with a capital letter. */
#define START(iname, name, ...)                                                \
	(at_once ? MPI_##iname(__VA_ARGS__, &o->request)                       \
		 : MPI_##name(__VA_ARGS__))

static void start(struct group *g, struct op *o, bool at_once)
{
	MPI_Datatype t = MPI_UINT64_T;
	int n = o->n, root = o->root, *v = o->of_each;
	uint64_t *data = g->rank == root ? o->out : o->in;

	switch (o->kind) {
	case BCAST:
		START(Ibcast, Bcast, data, n, t, root, g->comm);
		break;
	case REDUCE:
		START(Ireduce, Reduce, o->out, o->in, n, t, MPI_SUM, root,
		      g->comm);
		break;
	case ALLREDUCE:
		START(Iallreduce, Allreduce, o->out, o->in, n, t, MPI_SUM,
		      g->comm);
		break;
	case SCAN:
		START(Iscan, Scan, o->out, o->in, n, t, MPI_SUM, g->comm);
		break;
	case GATHER:
		START(Igather, Gather, o->out, n, t, o->in, n, t, root,
		      g->comm);
		break;
	case SCATTER:
		START(Iscatter, Scatter, o->out, n, t, o->in, n, t, root,
		      g->comm);
		break;
	case ALLGATHER:
		START(Iallgather, Allgather, o->out, n, t, o->in, n, t,
		      g->comm);
		break;
	case ALLTOALL:
		START(Ialltoall, Alltoall, o->out, n, t, o->in, n, t, g->comm);
		break;
	case ALLTOALLV:
		START(Ialltoallv, Alltoallv, o->out, v, v + g->size, t, o->in,
		      v + 2 * g->size, v + g->size, t, g->comm);
		break;
	case REDUCE_SCATTER:
		START(Ireduce_scatter_block, Reduce_scatter_block, o->out,
		      o->in, n, t, MPI_SUM, g->comm);
		break;
	default:
		START(Ibarrier, Barrier, g->comm);
	}
	counts[COLLECTIVES]++;
}

/* What member g->rank has now, word i of what is from `from`. */
static uint64_t wanted(const struct group *g, const struct op *o, int from,
		       size_t i)
{
	int last = o->kind == SCAN ? g->rank : g->size - 1;
	uint64_t sum = 0;

	switch (o->kind) {
	case BCAST:
		return given(o, o->root, 0, i);
	case SCATTER:
		return given(o, o->root, g->rank, i);
	case GATHER:
	case ALLGATHER:
		return given(o, from, 0, i);
	case ALLTOALL:
	case ALLTOALLV:
		return given(o, from, g->rank, i);
	default:
		for (int r = 0; r <= last; r++)
			sum += given(o, r,
				     o->kind == REDUCE_SCATTER ? g->rank : 0,
				     i);
		return sum;
	}
}

static void check(const struct group *g, struct op *o)
{
	bool root = g->rank == o->root, many = false;
	const uint64_t *in = o->in;

	switch (o->kind) {
	case BARRIER:
		return;
	case REDUCE:
	case GATHER:
		if (!root)
			return;
		many = o->kind == GATHER;
		break;
	case BCAST:
		in = root ? o->out : o->in;
		break;
	case ALLGATHER:
	case ALLTOALL:
	case ALLTOALLV:
		many = true;
		break;
	default:
		break;
	}
	for (int from = 0; from < (many ? g->size : 1); from++) {
		size_t n = o->kind == ALLTOALLV
				   ? (size_t)of_pair(o, from, g->rank)
				   : (size_t)o->n;

		for (size_t i = 0; i < n; i++)
			if (in[(size_t)from * (size_t)o->n + i] !=
			    wanted(g, o, from, i))
				fail(g, __FILE__, __LINE__,
				     "collective %d of %d words, root %d: "
				     "another word %zu from %d",
				     (int)o->kind, o->n, o->root, i, from);
	}
}

static void release(struct op *o)
{
	free(o->out);
	free(o->in);
	free(o->of_each);
}

static void around(struct group *g, uint64_t key)
{
	int to = (g->rank + 1) % g->size;
	int from = (g->rank + g->size - 1) % g->size;
	uint64_t out = word(key, (size_t)g->rank), in;

	MPI_Sendrecv(&out, 1, MPI_UINT64_T, to, 0, &in, 1, MPI_UINT64_T, from,
		     0, g->comm, MPI_STATUS_IGNORE);
	MUST_INT(g, in, word(key, (size_t)from));
}

/* Each in its own way. */
static void finish(struct group *g, MPI_Request *requests, int n)
{
	uint64_t lot = mix(lot_of(g, 5), (uint64_t)g->rank);
	int flag = 0, which;

	switch (draw_below(&lot, 3)) {
	case 0:
		MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
		break;
	case 1:
		for (int i = 0; i < n; i++)
			MPI_Waitany(n, requests, &which, MPI_STATUS_IGNORE);
		break;
	default:
		while (!flag)
			MPI_Testall(n, requests, &flag, MPI_STATUSES_IGNORE);
	}
}

static void several(struct group *g, uint64_t *lot)
{
	struct op ops[AT_ONCE];
	MPI_Request requests[AT_ONCE];
	int n = 1 + (int)draw_below(lot, AT_ONCE);

	for (int i = 0; i < n; i++) {
		prepare(g, &ops[i], lot);
		start(g, &ops[i], true);
		requests[i] = ops[i].request;
	}
	around(g, draw(lot));
	finish(g, requests, n);
	for (int i = 0; i < n; i++) {
		check(g, &ops[i]);
		release(&ops[i]);
	}
}

void collectives(struct group *g)
{
	uint64_t lot = lot_of(g, 6);
	struct op o;

	for (int i = 0; i < SERIES; i++) {
		if (draw_below(&lot, 2) == 0) {
			several(g, &lot);
			continue;
		}
		prepare(g, &o, &lot);
		start(g, &o, false);
		check(g, &o);
		release(&o);
	}
}
