/*
 * Every collective operation in every form it has, on a communicator of either
 * kind: the same arguments, of which the blocking form tells what the others
 * are to give. Inputs and lengths follow from the call alone.
 */
#ifndef TESTS_MADMPI_COLL_CALLS_H
#define TESTS_MADMPI_COLL_CALLS_H

#include "../program.h"

enum form { BLOCKING, NONBLOCKING, PERSISTENT };

/* What is moved and reduced: integers; pairs, without the gap behind each. */
enum kind { INTS, PAIRS, KINDS };

struct pair {
	unsigned a, b, gap;
};

enum { MOST = 64 };

struct call {
	const struct operation *op;
	MPI_Comm comm;
	int n, seed;
	enum kind kind;
	int root; /* of an intercommunicator: in the first group */
	int in_place;
	/* From here on it is made. */
	int inter, me, peers, own; /* own rank, sizes of the groups */
	int at_root, root_as;      /* what the call says */
	MPI_Datatype type;
	MPI_Op sum;
	char *in, *out;
	size_t bytes; /* of each */
	int counts[MOST], displs[MOST], bdispls[MOST];
	MPI_Datatype types[MOST];
	MPI_Request request;
};

struct operation {
	const char *name;
	int (*call)(struct call *x, enum form form);
	int may_be_in_place, has_root, is_reduction, within_one_group;
};

/* x -> a x + b, which does not commute. */
static void compose_pairs(void *in, void *inout, int *len, MPI_Datatype *type)
{
	struct pair *x = in, *y = inout;

	(void)type;
	for (int i = 0; i < *len; i++) {
		y[i].b = x[i].a * y[i].b + x[i].b;
		y[i].a = x[i].a * y[i].a;
	}
}

static size_t element(const struct call *x)
{
	return x->kind == INTS ? sizeof(int) : sizeof(struct pair);
}

/* Elements of the part between two processes; the same seen from both. */
static int part(const struct call *x, int other)
{
	return x->n + (x->me + other) % 3;
}

static void fill(struct call *x, char *buf)
{
	int world;
	unsigned *words = (unsigned *)buf;

	MPI_Comm_rank(MPI_COMM_WORLD, &world);
	for (size_t i = 0; i < x->bytes / sizeof(int); i++)
		words[i] =
			3 + 2 * (unsigned)(world + x->seed) + 17 * (unsigned)i;
}

static void make_type(struct call *x)
{
	MPI_Datatype two;

	x->type = MPI_INT;
	x->sum = MPI_SUM;
	if (x->kind == INTS)
		return;
	MPI_Type_contiguous(2, MPI_UNSIGNED, &two);
	MPI_Type_create_resized(two, 0, sizeof(struct pair), &x->type);
	MPI_Type_commit(&x->type);
	MPI_Type_free(&two);
	MPI_Op_create(compose_pairs, 0, &x->sum);
}

/* Types, operation: they may go while the call is pending. */
static void drop_type(struct call *x)
{
	if (x->kind == INTS || x->type == MPI_DATATYPE_NULL)
		return;
	MPI_Type_free(&x->type);
	MPI_Op_free(&x->sum);
}

static void make_parts(struct call *x)
{
	int at = 0;

	for (int i = 0; i < x->peers; i++) {
		x->counts[i] = part(x, i);
		x->displs[i] = at;
		x->bdispls[i] = at * (int)element(x);
		at += x->counts[i] + 1;
	}
}

/* Of two groups, that whose first process comes first in MPI_COMM_WORLD. */
static int is_in_first(MPI_Comm inter)
{
	MPI_Group world, own, other;
	int zero = 0, mine, theirs;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Comm_group(inter, &own);
	MPI_Comm_remote_group(inter, &other);
	MPI_Group_translate_ranks(own, 1, &zero, world, &mine);
	MPI_Group_translate_ranks(other, 1, &zero, world, &theirs);
	MPI_Group_free(&world);
	MPI_Group_free(&own);
	MPI_Group_free(&other);
	return mine < theirs;
}

/* For the root, its group, and the others. */
static void find_root(struct call *x)
{
	int first;

	x->at_root = x->me == x->root;
	x->root_as = x->root;
	if (!x->inter)
		return;
	first = is_in_first(x->comm);
	x->at_root = first && x->me == x->root;
	if (first)
		x->root_as = x->at_root ? MPI_ROOT : MPI_PROC_NULL;
}

static void call_make(struct call *x)
{
	MPI_Comm_test_inter(x->comm, &x->inter);
	MPI_Comm_rank(x->comm, &x->me);
	MPI_Comm_size(x->comm, &x->own);
	x->peers = x->own;
	if (x->inter)
		MPI_Comm_remote_size(x->comm, &x->peers);
	EXPECT(x->peers <= MOST && x->own <= MOST);
	make_type(x);
	make_parts(x);
	find_root(x);
	x->bytes = (size_t)(x->n + 4) * (size_t)(x->peers * x->own + 1) *
		   element(x);
	x->in = malloc(x->bytes);
	x->out = malloc(x->bytes);
	x->request = MPI_REQUEST_NULL;
	EXPECT(x->in != NULL && x->out != NULL);
}

/* Before each run. What is in place is the input, too. */
static void call_fill(struct call *x)
{
	fill(x, x->in);
	memset(x->out, 0xff, x->bytes);
	if (x->in_place)
		memcpy(x->out, x->in, x->bytes);
}

static void call_drop(struct call *x)
{
	drop_type(x);
	free(x->in);
	free(x->out);
}

/* --- the operations --- */

#define FORMS(form, name, lower, ...)                                          \
	((form) == BLOCKING ? MPI_##name(__VA_ARGS__)                          \
	 : (form) == NONBLOCKING                                               \
		 ? MPI_I##lower(__VA_ARGS__, &x->request)                      \
		 : MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &x->request))

/* The input, unless it is in place in this process. */
static const void *input(const struct call *x, int in_place)
{
	return in_place ? MPI_IN_PLACE : x->in;
}

static int barrier(struct call *x, enum form form)
{
	return FORMS(form, Barrier, barrier, x->comm);
}

static int bcast(struct call *x, enum form form)
{
	if (x->at_root)
		memcpy(x->out, x->in, x->bytes);
	return FORMS(form, Bcast, bcast, x->out, x->n, x->type, x->root_as,
		     x->comm);
}

static int gather(struct call *x, enum form form)
{
	return FORMS(form, Gather, gather, input(x, x->in_place && x->at_root),
		     x->n, x->type, x->out, x->n, x->type, x->root_as, x->comm);
}

/* How much this process sends to, or gets from, the root. */
static int to_root(const struct call *x)
{
	return part(x, x->root);
}

static int gatherv(struct call *x, enum form form)
{
	return FORMS(
		form, Gatherv, gatherv, input(x, x->in_place && x->at_root),
		to_root(x), x->type, x->out, x->at_root ? x->counts : NULL,
		x->at_root ? x->displs : NULL, x->type, x->root_as, x->comm);
}

static int scatter(struct call *x, enum form form)
{
	void *to = x->in_place && x->at_root ? MPI_IN_PLACE : x->out;

	return FORMS(form, Scatter, scatter, x->in, x->n, x->type, to, x->n,
		     x->type, x->root_as, x->comm);
}

static int scatterv(struct call *x, enum form form)
{
	void *to = x->in_place && x->at_root ? MPI_IN_PLACE : x->out;

	return FORMS(form, Scatterv, scatterv, x->in,
		     x->at_root ? x->counts : NULL,
		     x->at_root ? x->displs : NULL, x->type, to, to_root(x),
		     x->type, x->root_as, x->comm);
}

static int allgather(struct call *x, enum form form)
{
	return FORMS(form, Allgather, allgather, input(x, x->in_place), x->n,
		     x->type, x->out, x->n, x->type, x->comm);
}

/* Process r gives n + r % 3 elements to each. */
static int allgatherv(struct call *x, enum form form)
{
	int at = 0;

	for (int i = 0; i < x->peers; i++) {
		x->counts[i] = x->n + i % 3;
		x->displs[i] = at;
		at += x->counts[i] + 1;
	}
	return FORMS(form, Allgatherv, allgatherv, input(x, x->in_place),
		     x->n + x->me % 3, x->type, x->out, x->counts, x->displs,
		     x->type, x->comm);
}

static int alltoall(struct call *x, enum form form)
{
	return FORMS(form, Alltoall, alltoall, input(x, x->in_place), x->n,
		     x->type, x->out, x->n, x->type, x->comm);
}

static int alltoallv(struct call *x, enum form form)
{
	return FORMS(form, Alltoallv, alltoallv, input(x, x->in_place),
		     x->counts, x->displs, x->type, x->out, x->counts,
		     x->displs, x->type, x->comm);
}

/* The types are freed at once; a part of none is given no type. */
static int alltoallw(struct call *x, enum form form)
{
	int rc;

	for (int i = 0; i < x->peers; i++) {
		x->types[i] = MPI_DATATYPE_NULL;
		if (x->counts[i] == 0)
			continue;
		MPI_Type_dup(x->type, &x->types[i]);
		MPI_Type_commit(&x->types[i]);
	}
	rc = FORMS(form, Alltoallw, alltoallw, input(x, x->in_place), x->counts,
		   x->bdispls, x->types, x->out, x->counts, x->bdispls,
		   x->types, x->comm);
	for (int i = 0; i < x->peers; i++) {
		MPI_Datatype type = x->types[i];

		if (type != MPI_DATATYPE_NULL)
			MPI_Type_free(&type);
	}
	return rc;
}

static int reduce(struct call *x, enum form form)
{
	return FORMS(form, Reduce, reduce, input(x, x->in_place && x->at_root),
		     x->out, x->n, x->type, x->sum, x->root_as, x->comm);
}

static int allreduce(struct call *x, enum form form)
{
	return FORMS(form, Allreduce, allreduce, input(x, x->in_place), x->out,
		     x->n, x->type, x->sum, x->comm);
}

static int reduce_scatter(struct call *x, enum form form)
{
	/* Of both groups together as much. */
	for (int i = 0; i < x->own; i++)
		x->counts[i] = x->inter ? x->n * x->peers : x->n + i % 3;
	return FORMS(form, Reduce_scatter, reduce_scatter,
		     input(x, x->in_place), x->out, x->counts, x->type, x->sum,
		     x->comm);
}

static int reduce_scatter_block(struct call *x, enum form form)
{
	int n = x->inter ? x->n * x->peers : x->n;

	return FORMS(form, Reduce_scatter_block, reduce_scatter_block,
		     input(x, x->in_place), x->out, n, x->type, x->sum,
		     x->comm);
}

static int scan(struct call *x, enum form form)
{
	return FORMS(form, Scan, scan, input(x, x->in_place), x->out, x->n,
		     x->type, x->sum, x->comm);
}

static int exscan(struct call *x, enum form form)
{
	return FORMS(form, Exscan, exscan, input(x, x->in_place), x->out, x->n,
		     x->type, x->sum, x->comm);
}

static const struct operation operations[] = {
	{ "barrier", barrier, 0, 0, 0, 0 },
	{ "bcast", bcast, 0, 1, 0, 0 },
	{ "gather", gather, 1, 1, 0, 0 },
	{ "gatherv", gatherv, 1, 1, 0, 0 },
	{ "scatter", scatter, 1, 1, 0, 0 },
	{ "scatterv", scatterv, 1, 1, 0, 0 },
	{ "allgather", allgather, 1, 0, 0, 0 },
	{ "allgatherv", allgatherv, 1, 0, 0, 0 },
	{ "alltoall", alltoall, 1, 0, 0, 0 },
	{ "alltoallv", alltoallv, 1, 0, 0, 0 },
	{ "alltoallw", alltoallw, 1, 0, 0, 0 },
	{ "reduce", reduce, 1, 1, 1, 0 },
	{ "allreduce", allreduce, 1, 0, 1, 0 },
	{ "reduce_scatter", reduce_scatter, 1, 0, 1, 0 },
	{ "reduce_scatter_block", reduce_scatter_block, 1, 0, 1, 0 },
	{ "scan", scan, 1, 0, 1, 1 },
	{ "exscan", exscan, 1, 0, 1, 1 },
};

enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

/* Whether there is such a call. */
static inline int call_exists(const struct call *x)
{
	int inter;

	MPI_Comm_test_inter(x->comm, &inter);
	if (x->in_place && (inter || !x->op->may_be_in_place))
		return 0;
	if (x->root > 0 && !x->op->has_root)
		return 0;
	return !inter || !x->op->within_one_group;
}

/* x is over: it has what the blocking form gives. */
static inline void call_expect(const struct call *x)
{
	struct call ref = *x;

	call_make(&ref);
	call_fill(&ref);
	EXPECT_INT(ref.op->call(&ref, BLOCKING), MPI_SUCCESS);
	if (memcmp(ref.out, x->out, x->bytes) != 0) {
		fprintf(stderr,
			"%s of %d of kind %d from root %d%s differs from its "
			"blocking form\n",
			x->op->name, x->n, x->kind, x->root,
			x->in_place ? ", in place," : "");
		EXPECT(!"the same");
	}
	call_drop(&ref);
}

#endif
