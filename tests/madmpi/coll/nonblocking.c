/*
 * Non-blocking collective operations: each gives what its blocking form gives;
 * many are under way at once and end in any order, among messages and from many
 * threads; they go on while a process computes; what they use may be freed;
 * what must not be done to their requests; how they fail.
 */
#include "../join.h"

#include "calls.h"
#include "../two_groups.h"

static const int lengths[] = { 0, 1, 7, 2000 / FEWER };
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

static void one(const struct operation *op, MPI_Comm comm, int n,
		enum kind kind, int root, int in_place)
{
	struct call x = { .op = op,
			  .comm = comm,
			  .n = n,
			  .seed = n + root,
			  .kind = kind,
			  .root = root,
			  .in_place = in_place };

	if (!call_exists(&x))
		return;
	call_make(&x);
	call_fill(&x);
	EXPECT_INT(op->call(&x, NONBLOCKING), MPI_SUCCESS);
	EXPECT(x.request != MPI_REQUEST_NULL);
	EXPECT_INT(MPI_Wait(&x.request, MPI_STATUS_IGNORE), MPI_SUCCESS);
	EXPECT(x.request == MPI_REQUEST_NULL);
	call_expect(&x);
	call_drop(&x);
}

static void each_gives_what_the_blocking_one_gives(MPI_Comm comm, int last)
{
	for (int i = 0; i < OPERATIONS; i++)
		for (int k = 0; k < LENGTHS; k++)
			for (int kind = 0; kind < KINDS; kind++) {
				one(&operations[i], comm, lengths[k], kind, 0,
				    0);
				one(&operations[i], comm, lengths[k], kind, 0,
				    1);
				one(&operations[i], comm, lengths[k], kind,
				    last, 0);
			}
}

/* Large enough for the algorithms that cut. */
static void large_ones(MPI_Comm comm)
{
	for (int i = 0; i < OPERATIONS; i++)
		if (operations[i].call == bcast ||
		    operations[i].call == reduce ||
		    operations[i].call == allreduce)
			one(&operations[i], comm, 100000 / FEWER, INTS, 0, 0);
}

/* Some call of many; the same in all processes. */
static struct call some(int i, MPI_Comm comm, int nroots)
{
	struct call x = { .op = &operations[i % OPERATIONS],
			  .comm = comm,
			  .n = i * 37 % 300,
			  .seed = i,
			  .kind = i / OPERATIONS % KINDS,
			  .in_place = i / 2 % 2,
			  .root = i % nroots };

	if (!call_exists(&x))
		x.in_place = x.root = 0;
	return x;
}

enum { MANY = 6 * OPERATIONS };

/* All begin in one order, and are waited for in another one in each process. */
static void many_at_once(MPI_Comm comm, int nroots)
{
	struct call *x = calloc(MANY, sizeof(*x));
	MPI_Request r[MANY];
	int index, n = 0;

	for (int i = 0; i < MANY; i++) {
		x[i] = some(i, comm, nroots);
		if (!call_exists(&x[i])) {
			r[i] = MPI_REQUEST_NULL;
			continue;
		}
		call_make(&x[i]);
		call_fill(&x[i]);
		EXPECT_INT(x[i].op->call(&x[i], NONBLOCKING), MPI_SUCCESS);
		r[i] = x[i].request;
		n++;
	}
	for (int i = 0; i < MANY; i += 3)
		MPI_Wait(&r[(i + rank) * 41 % MANY], MPI_STATUS_IGNORE);
	for (;;) {
		MPI_Waitany(MANY / 2, r, &index, MPI_STATUS_IGNORE);
		if (index == MPI_UNDEFINED)
			break;
		EXPECT(r[index] == MPI_REQUEST_NULL);
	}
	MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < MANY; i++)
		if (x[i].in != NULL) {
			call_expect(&x[i]);
			call_drop(&x[i]);
		}
	EXPECT(n > MANY / 2);
	free(x);
}

/* Blocking ones and messages with small tags pass those that are pending. */
static void among_others(MPI_Comm comm)
{
	int next = (rank + 1) % size, previous = (rank + size - 1) % size;
	int token[20], sum[20], in, total, flag;
	MPI_Request r[20], late;
	MPI_Status st;

	/* It cannot end before all have come to it. */
	MPI_Ibarrier(comm, &late);
	for (int i = 0; i < 20; i++) {
		token[i] = rank * 100 + i;
		MPI_Iallreduce(&token[i], &sum[i], 1, MPI_INT, MPI_SUM, comm,
			       &r[i]);
		MPI_Sendrecv(&token[i], 1, MPI_INT, next, i, &in, 1, MPI_INT,
			     previous, i, comm, &st);
		EXPECT_INT(in, previous * 100 + i);
		MPI_Allreduce(&i, &total, 1, MPI_INT, MPI_SUM, comm);
		EXPECT_INT(total, i * size);
	}
	for (int i = 19; i >= 0; i--) {
		do
			MPI_Test(&r[i], &flag, &st);
		while (!flag);
		EXPECT(r[i] == MPI_REQUEST_NULL);
		EXPECT_INT(sum[i], size * (size - 1) / 2 * 100 + size * i);
	}
	MPI_Wait(&late, MPI_STATUS_IGNORE);
}

/* Nobody is past a barrier that somebody has not come to. */
static void a_barrier_waits_for_all(void)
{
	MPI_Request r;
	int flag, token = 1;

	for (int late = 0; late < size; late++) {
		if (rank != late) {
			MPI_Ibarrier(MPI_COMM_WORLD, &r);
			for (int i = 0; i < 10; i++) {
				MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
				EXPECT(!flag);
			}
			MPI_Send(&token, 1, MPI_INT, late, 8, MPI_COMM_WORLD);
		} else {
			for (int i = 1; i < size; i++)
				MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 8,
					 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Ibarrier(MPI_COMM_WORLD, &r);
		}
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	}
}

/*
 * Process 0 computes, in the middle of everybody's operations, until the others
 * have ended theirs: its memory changes then. It needs ticks, which there are
 * none of with TSan.
 */
#ifndef __SANITIZE_THREAD__
static void while_a_process_computes(const struct operation *op)
{
	struct call x = {
		.op = op, .comm = MPI_COMM_WORLD, .n = 3000, .kind = PAIRS
	};
	MPI_Request *go = NULL;
	int token = 0, *there = calloc((size_t)size, sizeof(int));

	call_make(&x);
	call_fill(&x);
	if (rank == 0) {
		go = calloc((size_t)size, sizeof(*go));
		go[0] = MPI_REQUEST_NULL;
		for (int i = 1; i < size; i++)
			MPI_Irecv(&there[i], 1, MPI_INT, i, 3, MPI_COMM_WORLD,
				  &go[i]);
	}
	op->call(&x, NONBLOCKING);
	for (int i = 1; rank == 0 && i < size; i++)
		while (*(volatile int *)&there[i] == 0)
			;
	MPI_Wait(&x.request, MPI_STATUS_IGNORE);
	if (rank > 0) {
		token = 1;
		MPI_Send(&token, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
	} else {
		MPI_Waitall(size, go, MPI_STATUSES_IGNORE);
	}
	call_expect(&x);
	call_drop(&x);
	free(go);
	free(there);
}
#endif

/* Types, operation and communicator go while the call is pending. */
static void what_is_used_may_be_freed(void)
{
	for (int i = 0; i < OPERATIONS; i++) {
		struct call x = some(i, MPI_COMM_WORLD, size);
		MPI_Comm comm;

		x.kind = PAIRS;
		x.n = 500;
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		x.comm = comm;
		call_make(&x);
		call_fill(&x);
		EXPECT_INT(x.op->call(&x, NONBLOCKING), MPI_SUCCESS);
		drop_type(&x);
		MPI_Comm_free(&comm);
		MPI_Wait(&x.request, MPI_STATUS_IGNORE);
		x.comm = MPI_COMM_WORLD;
		call_expect(&x);
		call_drop(&x);
	}
}

/* --- threads --- */

enum { THREADS = 6, ROUNDS = 60 / FEWER };

struct worker {
	pthread_t thread;
	int id;
	MPI_Comm comm;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	struct call x[4];

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < 4; i++) {
			x[i] = some(5 * round + 3 * w->id + i, w->comm, size);
			call_make(&x[i]);
			call_fill(&x[i]);
			EXPECT_INT(x[i].op->call(&x[i], NONBLOCKING),
				   MPI_SUCCESS);
		}
		for (int i = 3; i >= 0; i--)
			MPI_Wait(&x[(i + rank) % 4].request, MPI_STATUS_IGNORE);
		for (int i = 0; i < 4; i++) {
			call_expect(&x[i]);
			call_drop(&x[i]);
		}
	}
	return NULL;
}

static void from_many_threads(void)
{
	struct worker w[THREADS];

	for (int i = 0; i < THREADS; i++) {
		w[i].id = i;
		MPI_Comm_dup(MPI_COMM_WORLD, &w[i].comm);
	}
	for (int i = 0; i < THREADS; i++)
		EXPECT(pthread_create(&w[i].thread, NULL, work, &w[i]) == 0);
	for (int i = 0; i < THREADS; i++) {
		EXPECT(program_join(w[i].thread) == 0);
		MPI_Comm_free(&w[i].comm);
	}
}

/* --- what is wrong --- */

static int called;
static char said[MPI_MAX_ERROR_STRING];

static void note(MPI_Comm *comm, int *code, ...)
{
	int length;

	(void)comm;
	called++;
	MPI_Error_string(*code, said, &length);
}

/* Of one that is pending, as another process has not begun it. */
static void requests_of_pending_ones(void)
{
	MPI_Request r, kept;
	int token = 0;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (rank == 1)
		MPI_Recv(&token, 1, MPI_INT, 0, 6, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	MPI_Ibarrier(MPI_COMM_WORLD, &r);
	kept = r;
	FAILS(MPI_Cancel(&r), MPI_ERR_REQUEST);
	FAILS(MPI_Start(&r), MPI_ERR_REQUEST);
	if (rank == 0) {
		FAILS(MPI_Request_free(&r), MPI_ERR_REQUEST);
		MPI_Send(&token, 1, MPI_INT, 1, 6, MPI_COMM_WORLD);
	}
	EXPECT(r == kept);
	EXPECT_INT(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void requests_of_complete_ones(void)
{
	MPI_Request r, kept;
	MPI_Status st;
	int flag, in = rank, out;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
	kept = r;
	do
		MPI_Request_get_status(r, &flag, &st);
	while (!flag);
	FAILS(MPI_Cancel(&r), MPI_ERR_REQUEST);
	EXPECT(r == kept);
	memset(&st, 0x55, sizeof(st));
	MPI_Test(&r, &flag, &st);
	EXPECT(flag && r == MPI_REQUEST_NULL);
	EXPECT_INT(out, size * (size - 1) / 2);
	MPI_Test_cancelled(&st, &flag);
	EXPECT(!flag);
	MPI_Ibarrier(MPI_COMM_WORLD, &r);
	do
		MPI_Request_get_status(r, &flag, &st);
	while (!flag);
	EXPECT_INT(MPI_Request_free(&r), MPI_SUCCESS);
	EXPECT(r == MPI_REQUEST_NULL);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* The error is of the request, and of the communicator's handler. */
static void an_error_is_told_by_the_request(void)
{
	int buf[4] = { 0 }, fine, rc, n = rank == 0 ? 4 : 2;
	MPI_Errhandler handler;
	MPI_Request r[2];
	MPI_Status st[2];
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)note,
				   &handler);
	MPI_Comm_set_errhandler(comm, handler);
	MPI_Errhandler_free(&handler);
	called = 0;
	EXPECT_INT(MPI_Ibcast(buf, n, MPI_INT, 0, comm, &r[0]), MPI_SUCCESS);
	rc = class_of(MPI_Wait(&r[0], MPI_STATUS_IGNORE));
	EXPECT(r[0] == MPI_REQUEST_NULL);
	/* Of a tree, those that pass on what they have got send as little. */
	if (rank == 1) {
		EXPECT_INT(rc, MPI_ERR_TRUNCATE);
		EXPECT_INT(called, 1);
	}
	if (rank == 0)
		EXPECT(rc == MPI_SUCCESS && called == 0);
	MPI_Ibcast(buf, n, MPI_INT, 0, comm, &r[0]);
	MPI_Iallreduce(&rank, &fine, 1, MPI_INT, MPI_SUM, comm, &r[1]);
	rc = class_of(MPI_Waitall(2, r, st));
	EXPECT_INT(fine, size * (size - 1) / 2);
	if (rank == 1) {
		EXPECT_INT(rc, MPI_ERR_IN_STATUS);
		EXPECT_INT(class_of(st[0].MPI_ERROR), MPI_ERR_TRUNCATE);
		EXPECT_INT(st[1].MPI_ERROR, MPI_SUCCESS);
		EXPECT_INT(called, 2);
	}
	MPI_Comm_free(&comm);
}

/* What is wrong in the call is told by the call, and nothing has begun. */
static void a_wrong_call_begins_nothing(void)
{
	MPI_Request r = MPI_REQUEST_NULL;
	int buf = 0;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	FAILS(MPI_Ibcast(&buf, 1, MPI_INT, size, MPI_COMM_WORLD, &r),
	      MPI_ERR_ROOT);
	FAILS(MPI_Ibcast(&buf, -1, MPI_INT, 0, MPI_COMM_WORLD, &r),
	      MPI_ERR_COUNT);
	FAILS(MPI_Ibarrier(MPI_COMM_NULL, &r), MPI_ERR_COMM);
	FAILS(MPI_Ibarrier(MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
	EXPECT(r == MPI_REQUEST_NULL);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Erroneous, but the blocking and the others do not wait for each other. */
static void blocking_and_others_may_change_places(void)
{
	MPI_Comm comm, made;
	MPI_Request r[2];
	int sum, odd = rank == size - 1;
	MPI_Win win;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (int i = 0; i < 20; i++) {
		sum = -1;
		if (odd)
			MPI_Barrier(comm);
		MPI_Iallreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm, &r[0]);
		MPI_Comm_idup(comm, &made, &r[1]);
		if (!odd)
			MPI_Barrier(comm);
		MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, comm, &win);
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		EXPECT_INT(sum, size * (size - 1) / 2);
		MPI_Barrier(made);
		MPI_Win_free(&win);
		MPI_Comm_free(&made);
	}
	MPI_Comm_free(&comm);
}

/* More or fewer bytes than agreed: an error, with and without a node. */
static void another_length_is_an_error(MPI_Comm comm)
{
	int root = rank % 2 == 0, x[3] = { 0 }, sum = -1, rc;
	MPI_Request r;

	for (int i = 0; i < 20; i++) {
		rc = MPI_Bcast(x, root ? 1 : 2, MPI_INT, 0, comm);
		EXPECT_INT(class_of(rc), root ? MPI_SUCCESS : MPI_ERR_COUNT);
		rc = MPI_Bcast(x, root ? 3 : 2, MPI_INT, 0, comm);
		EXPECT_INT(class_of(rc), root ? MPI_SUCCESS : MPI_ERR_TRUNCATE);
		if (root)
			MPI_Iallreduce(x, &sum, 1, MPI_INT, MPI_SUM, comm, &r);
		else
			MPI_Ibarrier(comm, &r);
		rc = MPI_Wait(&r, MPI_STATUS_IGNORE);
		EXPECT_INT(class_of(rc),
			   root ? MPI_ERR_COUNT : MPI_ERR_TRUNCATE);
	}
}

static void pairs_find_another_length(void)
{
	MPI_Comm two;
	int n;

	MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &two);
	MPI_Comm_set_errhandler(two, MPI_ERRORS_RETURN);
	MPI_Comm_size(two, &n);
	if (n == 2)
		another_length_is_an_error(two);
	MPI_Comm_free(&two);
}

int main(int argc, char **argv)
{
	int provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	each_gives_what_the_blocking_one_gives(MPI_COMM_WORLD, size - 1);
	each_gives_what_the_blocking_one_gives(MPI_COMM_SELF, 0);
	large_ones(MPI_COMM_WORLD);
	many_at_once(MPI_COMM_WORLD, size);
	among_others(MPI_COMM_WORLD);
	what_is_used_may_be_freed();
	from_many_threads();
	requests_of_complete_ones();
	an_error_is_told_by_the_request();
	a_wrong_call_begins_nothing();
	if (size > 1) {
		requests_of_pending_ones();
		a_barrier_waits_for_all();
#ifndef __SANITIZE_THREAD__
		for (int i = 0; i < OPERATIONS; i++)
			while_a_process_computes(&operations[i]);
#endif
		two_groups_begin();
		each_gives_what_the_blocking_one_gives(inter, size / 2 - 1);
		many_at_once(inter, size / 2);
		two_groups_end();
	}
	blocking_and_others_may_change_places();
	pairs_find_another_length();
	return program_end("nonblocking");
}
