/*
 * Persistent collective operations: each gives what its blocking form gives,
 * every time that it is started; the processes may start theirs in different
 * orders, and other operations between; what they were made of may be freed;
 * what must not be done to their requests.
 */
#include "calls.h"
#include "../two_groups.h"

static struct call some(int i, MPI_Comm comm, int nroots)
{
	struct call x = { .op = &operations[i % OPERATIONS],
			  .comm = comm,
			  .n = i % 5 == 0 ? 0 : i * 37 % 300,
			  .seed = i,
			  .kind = i / OPERATIONS % KINDS,
			  .in_place = i / 2 % 2,
			  .root = i % nroots };

	if (!call_exists(&x))
		x.in_place = x.root = 0;
	return x;
}

static void make(struct call *x)
{
	call_make(x);
	EXPECT_INT(x->op->call(x, PERSISTENT), MPI_SUCCESS);
	EXPECT(x->request != MPI_REQUEST_NULL);
}

/* Another input each time; the buffers are the same. */
static void prepare(struct call *x, int seed)
{
	x->seed = seed;
	call_fill(x);
	if (x->op->call == bcast && x->at_root)
		memcpy(x->out, x->in, x->bytes);
}

static void drop(struct call *x)
{
	MPI_Request_free(&x->request);
	EXPECT(x->request == MPI_REQUEST_NULL);
	call_drop(x);
}

static void each_gives_what_the_blocking_one_gives(MPI_Comm comm, int nroots)
{
	for (int i = 0; i < 4 * OPERATIONS; i++) {
		struct call x = some(i, comm, nroots);
		MPI_Status st;
		int flag;

		if (!call_exists(&x))
			continue;
		make(&x);
		for (int round = 0; round < 3; round++) {
			prepare(&x, round);
			MPI_Start(&x.request);
			EXPECT_INT(MPI_Wait(&x.request, &st), MPI_SUCCESS);
			EXPECT(x.request != MPI_REQUEST_NULL);
			call_expect(&x);
			/* As good as null now. */
			MPI_Test(&x.request, &flag, &st);
			EXPECT(flag && st.MPI_SOURCE == MPI_ANY_SOURCE);
			EXPECT_INT(MPI_Wait(&x.request, &st), MPI_SUCCESS);
		}
		drop(&x);
	}
}

enum { MANY = 2 * OPERATIONS, STARTS = 12 / FEWER };

/* The i-th that this process starts: of 34, by steps that do not divide it. */
static int at(int i, int round)
{
	static const int steps[] = { 1, 3, 33, 5, 31, 7, 13 };

	return (steps[rank % 7] * i + rank * 7 + round) % MANY;
}

/*
 * Every process starts its own in an order of its own, one by one or all at
 * once, and some of them twice before it starts others.
 */
static void in_any_order(MPI_Comm comm)
{
	struct call x[MANY];
	MPI_Request r[MANY];
	int sum, index;

	for (int i = 0; i < MANY; i++) {
		x[i] = some(i, comm, size);
		make(&x[i]);
		r[i] = x[i].request;
	}
	for (int round = 0; round < STARTS; round++) {
		for (int i = 0; i < MANY; i++)
			prepare(&x[i], round);
		MPI_Startall(MANY / 3, r);
		for (int i = 0; i < MANY; i++)
			if (at(i, round) >= MANY / 3)
				MPI_Start(&r[at(i, round)]);
		MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, comm);
		EXPECT_INT(sum, round * size);
		for (int i = 0; i < MANY / 2; i++) {
			MPI_Waitany(MANY, r, &index, MPI_STATUS_IGNORE);
			EXPECT(index >= 0 && r[index] == x[index].request);
		}
		MPI_Waitall(MANY, r, MPI_STATUSES_IGNORE);
		for (int i = 0; i < MANY; i++)
			call_expect(&x[i]);
	}
	for (int i = MANY - 1; i >= 0; i--)
		drop(&x[i]);
}

/* The processes need not be in the same run of it: a root runs ahead. */
static void runs_do_not_mix(void)
{
	enum { RUNS = 200 / FEWER, N = 3 };
	int word[N], in[N], sum[N], last = size - 1;
	MPI_Request r[2];

	MPI_Bcast_init(word, N, MPI_INT, last, MPI_COMM_WORLD, MPI_INFO_NULL,
		       &r[0]);
	MPI_Reduce_init(in, sum, N, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD,
			MPI_INFO_NULL, &r[1]);
	for (int run = 0; run < RUNS; run++) {
		for (int i = 0; i < N; i++) {
			word[i] = rank == last ? run + i : -1;
			in[i] = run * i;
		}
		MPI_Start(&r[run % 2]);
		MPI_Start(&r[1 - run % 2]);
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		for (int i = 0; i < N; i++) {
			EXPECT_INT(word[i], run + i);
			if (rank == 0)
				EXPECT_INT(sum[i], size * run * i);
		}
	}
	MPI_Request_free(&r[0]);
	MPI_Request_free(&r[1]);
}

/* Types, operation and communicator are freed before the first start. */
static void what_is_used_may_be_freed(void)
{
	for (int i = 0; i < OPERATIONS; i++) {
		struct call x = some(i, MPI_COMM_WORLD, size);
		MPI_Comm comm;

		x.kind = PAIRS;
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		x.comm = comm;
		make(&x);
		drop_type(&x);
		MPI_Comm_free(&comm);
		x.comm = MPI_COMM_WORLD;
		for (int round = 0; round < 2; round++) {
			prepare(&x, round);
			MPI_Start(&x.request);
			MPI_Wait(&x.request, MPI_STATUS_IGNORE);
			call_expect(&x);
		}
		drop(&x);
	}
}

static void one_that_is_never_started(void)
{
	struct call x = some(1, MPI_COMM_WORLD, size);

	make(&x);
	drop(&x);
}

static void what_must_not_be_done(void)
{
	int in = rank, out, flag, token = 0;
	MPI_Request r, none = MPI_REQUEST_NULL, started;
	MPI_Status st;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	FAILS(MPI_Allreduce_init(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
				 (MPI_Info)MPI_INT, &none),
	      MPI_ERR_INFO);
	FAILS(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, NULL),
	      MPI_ERR_ARG);
	EXPECT(none == MPI_REQUEST_NULL);
	MPI_Allreduce_init(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
			   MPI_INFO_NULL, &r);
	FAILS(MPI_Cancel(&r), MPI_ERR_REQUEST);
	/* Process 0 has one that is pending. */
	if (rank == 1)
		MPI_Recv(&token, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, &st);
	MPI_Start(&r);
	started = r;
	FAILS(MPI_Start(&r), MPI_ERR_REQUEST);
	FAILS(MPI_Startall(1, &r), MPI_ERR_REQUEST);
	FAILS(MPI_Cancel(&r), MPI_ERR_REQUEST);
	if (rank == 0 && size > 1) {
		FAILS(MPI_Request_free(&r), MPI_ERR_REQUEST);
		MPI_Send(&token, 1, MPI_INT, 1, 6, MPI_COMM_WORLD);
	}
	EXPECT(r == started);
	do
		MPI_Request_get_status(r, &flag, &st);
	while (!flag);
	FAILS(MPI_Start(&r), MPI_ERR_REQUEST); /* still active */
	MPI_Wait(&r, &st);
	EXPECT_INT(out, size * (size - 1) / 2);
	EXPECT_INT(MPI_Request_free(&r), MPI_SUCCESS);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* It fails in the run in which it fails, and may be started again. */
static void an_error_is_of_one_run(void)
{
	int buf[4] = { 0 }, rc, n = rank == 1 ? 2 : 4;
	MPI_Request r;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Bcast_init(buf, n, MPI_INT, 0, comm, MPI_INFO_NULL, &r);
	for (int round = 0; round < 3; round++) {
		MPI_Start(&r);
		rc = class_of(MPI_Wait(&r, MPI_STATUS_IGNORE));
		EXPECT(r != MPI_REQUEST_NULL);
		if (rank <= 1)
			EXPECT_INT(rc, rank ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
	}
	MPI_Request_free(&r);
	MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	each_gives_what_the_blocking_one_gives(MPI_COMM_WORLD, size);
	each_gives_what_the_blocking_one_gives(MPI_COMM_SELF, 1);
	in_any_order(MPI_COMM_WORLD);
	runs_do_not_mix();
	what_is_used_may_be_freed();
	one_that_is_never_started();
	what_must_not_be_done();
	if (!calls_are_compared())
		an_error_is_of_one_run();
	if (size > 1) {
		two_groups_begin();
		each_gives_what_the_blocking_one_gives(inter, size / 2);
		two_groups_end();
	}
	return program_end("persistent");
}
