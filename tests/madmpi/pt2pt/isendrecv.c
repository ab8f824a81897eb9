/*
 * Sending and receiving by one request: what is received and said of it, with
 * neighbours, with nobody, with oneself; the order of matching is that of the
 * calls; several at once, waited for among others; also in place of what is
 * sent. Derived types that are freed meanwhile, and what goes wrong.
 */
#include "../program.h"

enum { N = 50, LARGE = 100000 };

static int next, previous;
static int in[LARGE], out[LARGE];

static void fill(int *x, int n, int seed)
{
	for (int i = 0; i < n; i++)
		x[i] = seed * 1000 + i;
}

static void check(const int *x, int n, int seed)
{
	for (int i = 0; i < n; i++)
		EXPECT_INT(x[i], seed * 1000 + i);
}

static void check_status(const MPI_Status *st, int source, int tag, int n)
{
	int count;

	EXPECT_INT(st->MPI_SOURCE, source);
	EXPECT_INT(st->MPI_TAG, tag);
	MPI_Get_count(st, MPI_INT, &count);
	EXPECT_INT(count, n);
}

static void round_the_ring(int n, int source, int tag)
{
	MPI_Request r;
	MPI_Status st;

	fill(out, n, rank);
	memset(in, 0, sizeof(in));
	EXPECT_INT(MPI_Isendrecv(out, n, MPI_INT, next, 7, in, LARGE, MPI_INT,
				 source, tag, MPI_COMM_WORLD, &r),
		   MPI_SUCCESS);
	EXPECT(r != MPI_REQUEST_NULL);
	MPI_Wait(&r, &st);
	EXPECT(r == MPI_REQUEST_NULL);
	check_status(&st, previous, 7, n);
	check(in, n, previous);
}

static void replacing(int n)
{
	MPI_Request r;
	MPI_Status st;

	fill(in, n, rank);
	MPI_Isendrecv_replace(in, n, MPI_INT, next, 8, previous, 8,
			      MPI_COMM_WORLD, &r);
	MPI_Wait(&r, &st);
	check_status(&st, previous, 8, n);
	check(in, n, previous);
}

/* The two ends of a line: one half has nobody. */
static void with_nobody(void)
{
	int to = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
	int from = rank > 0 ? rank - 1 : MPI_PROC_NULL;
	MPI_Request r;
	MPI_Status st;
	int flag = 0;

	in[0] = -1;
	out[0] = rank;
	MPI_Isendrecv(out, 1, MPI_INT, to, 1, in, 1, MPI_INT, from, 1,
		      MPI_COMM_WORLD, &r);
	while (!flag)
		MPI_Test(&r, &flag, &st);
	EXPECT_INT(in[0], rank - 1);
	if (from == MPI_PROC_NULL)
		check_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	else
		check_status(&st, from, 1, 1);
	MPI_Isendrecv_replace(in, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_PROC_NULL,
			      1, MPI_COMM_WORLD, &r);
	MPI_Wait(&r, &st);
	EXPECT_INT(in[0], rank - 1);
	check_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	/* Not even a type is needed, in none of the forms. */
	MPI_Isendrecv_replace(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1,
			      MPI_PROC_NULL, 1, MPI_COMM_WORLD, &r);
	MPI_Wait(&r, &st);
	check_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	MPI_Sendrecv_replace(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1,
			     MPI_PROC_NULL, 1, MPI_COMM_WORLD, &st);
	check_status(&st, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

/* One tag: each takes the next message, whatever kind of call has sent it. */
static void in_order(void)
{
	MPI_Request r[3 * N];
	int sent[3 * N], got[3 * N];

	for (int i = 0; i < 3 * N; i++)
		sent[i] = i;
	for (int i = 0; i < N; i++) {
		int k = 3 * i;

		MPI_Isendrecv(&sent[k], 1, MPI_INT, next, 2, &got[k], 1,
			      MPI_INT, previous, 2, MPI_COMM_WORLD, &r[k]);
		MPI_Irecv(&got[k + 1], 1, MPI_INT, previous, 2, MPI_COMM_WORLD,
			  &r[k + 1]);
		MPI_Send(&sent[k + 1], 1, MPI_INT, next, 2, MPI_COMM_WORLD);
		got[k + 2] = sent[k + 2];
		MPI_Isendrecv_replace(&got[k + 2], 1, MPI_INT, next, 2,
				      MPI_ANY_SOURCE, 2, MPI_COMM_WORLD,
				      &r[k + 2]);
	}
	MPI_Waitall(3 * N, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < 3 * N; i++) {
		EXPECT(r[i] == MPI_REQUEST_NULL);
		EXPECT_INT(got[i], i);
	}
}

/* One that cannot end among those that do. */
static void among_others(void)
{
	MPI_Request r[3];
	int sent[3], got[3], index, done[3] = { 0, 0, 0 };

	for (int i = 0; i < 3; i++) {
		sent[i] = 10 * rank + i;
		MPI_Isendrecv(&sent[i], i == 1 ? 0 : 1, MPI_INT,
			      i == 1 ? MPI_PROC_NULL : next, 20 + i, &got[i], 1,
			      MPI_INT, previous, 20 + i, MPI_COMM_WORLD, &r[i]);
	}
	for (int i = 0; i < 2; i++) {
		MPI_Waitany(3, r, &index, MPI_STATUS_IGNORE);
		EXPECT(index == 0 || index == 2);
		done[index]++;
	}
	EXPECT(done[0] == 1 && done[2] == 1);
	EXPECT(got[0] == 10 * previous && got[2] == 10 * previous + 2);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Send(&rank, 1, MPI_INT, next, 21, MPI_COMM_WORLD);
	MPI_Waitany(3, r, &index, MPI_STATUS_IGNORE);
	EXPECT_INT(index, 1);
	EXPECT_INT(got[1], previous);
}

/* The types are freed before it is over, and so is the request. */
static void of_derived_types(void)
{
	MPI_Datatype column;
	MPI_Request r, r2;
	int a[30], b[30];

	for (int i = 0; i < 30; i++) {
		a[i] = rank * 100 + i;
		b[i] = -1;
	}
	fill(out, 10, rank);
	MPI_Type_vector(10, 1, 3, MPI_INT, &column);
	MPI_Type_commit(&column);
	MPI_Isendrecv(a, 1, column, next, 3, b, 1, column, previous, 3,
		      MPI_COMM_WORLD, &r);
	MPI_Isendrecv_replace(&a[1], 1, column, MPI_PROC_NULL, 4, previous, 5,
			      MPI_COMM_WORLD, &r2);
	MPI_Type_free(&column);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	for (int i = 0; i < 30; i++)
		EXPECT_INT(b[i], i % 3 == 0 ? previous * 100 + i : -1);
	MPI_Send(out, 10, MPI_INT, next, 5, MPI_COMM_WORLD);
	MPI_Wait(&r2, MPI_STATUS_IGNORE);
	for (int i = 0; i < 30; i++)
		EXPECT_INT(a[i], i % 3 == 1 ? previous * 1000 + i / 3
					    : rank * 100 + i);
}

/* Nobody waits for it, at the latest MPI_Finalize does. */
static void freed(void)
{
	static int unseen, first;
	MPI_Request r;

	MPI_Isendrecv(&rank, 1, MPI_INT, next, 6, &unseen, 1, MPI_INT, previous,
		      9, MPI_COMM_WORLD, &r);
	MPI_Request_free(&r);
	EXPECT(r == MPI_REQUEST_NULL);
	MPI_Recv(&first, 1, MPI_INT, previous, 6, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	EXPECT_INT(first, previous);
	MPI_Send(&rank, 1, MPI_INT, next, 9, MPI_COMM_WORLD);
}

/* A receive that has met nothing is given up; what has left is not. */
static void cancelled(void)
{
	MPI_Request r;
	MPI_Status st;
	int got = -1, flag = 0;

	MPI_Isendrecv(&rank, 1, MPI_INT, next, 10, &got, 1, MPI_INT, previous,
		      11, MPI_COMM_WORLD, &r);
	MPI_Cancel(&r);
	MPI_Wait(&r, &st);
	MPI_Test_cancelled(&st, &flag);
	EXPECT(flag);
	EXPECT_INT(got, -1);
	MPI_Recv(&got, 1, MPI_INT, previous, 10, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	EXPECT_INT(got, previous);
}

/* Nobody has received what is too large to have left. */
static void cancelled_while_it_waits(void)
{
	MPI_Request r;
	MPI_Status st;
	int flag = 0;

	MPI_Isendrecv(out, LARGE, MPI_INT, next, 13, in, LARGE, MPI_INT,
		      previous, 14, MPI_COMM_WORLD, &r);
	MPI_Cancel(&r);
	MPI_Wait(&r, &st);
	MPI_Test_cancelled(&st, &flag);
	EXPECT(flag);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Iprobe(previous, 13, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	EXPECT(!flag);
}

/* Three bytes of an int, as for every other receive into pieces. */
static void ends_within_an_element(void)
{
	MPI_Datatype column;
	MPI_Request r;
	int a[4];

	MPI_Type_vector(2, 1, 2, MPI_INT, &column);
	MPI_Type_commit(&column);
	MPI_Isendrecv("abc", 3, MPI_BYTE, next, 15, a, 1, column, previous, 15,
		      MPI_COMM_WORLD, &r);
	FAILS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
	MPI_Type_free(&column);
}

static void wrong(void)
{
	MPI_Comm w = MPI_COMM_WORLD;
	MPI_Request r, *none = NULL;
	MPI_Status st;
	int x[2] = { 1, 2 }, y[1];

	FAILS(MPI_Isendrecv(x, -1, MPI_INT, next, 0, y, 1, MPI_INT, previous, 0,
			    w, &r),
	      MPI_ERR_COUNT);
	FAILS(MPI_Isendrecv(x, 1, MPI_DATATYPE_NULL, next, 0, y, 1, MPI_INT,
			    previous, 0, w, &r),
	      MPI_ERR_TYPE);
	FAILS(MPI_Isendrecv(x, 1, MPI_INT, size, 0, y, 1, MPI_INT, previous, 0,
			    w, &r),
	      MPI_ERR_RANK);
	FAILS(MPI_Isendrecv(x, 1, MPI_INT, next, 0, y, 1, MPI_INT, previous, -7,
			    w, &r),
	      MPI_ERR_TAG);
	FAILS(MPI_Isendrecv(x, 1, MPI_INT, next, 0, y, 1, MPI_INT, previous, 0,
			    MPI_COMM_NULL, &r),
	      MPI_ERR_COMM);
	FAILS(MPI_Isendrecv(x, 1, MPI_INT, next, 0, y, 1, MPI_INT, previous, 0,
			    w, none),
	      MPI_ERR_ARG);
	FAILS(MPI_Isendrecv_replace(x, 1, MPI_INT, next, 0, size, 0, w, &r),
	      MPI_ERR_RANK);
	FAILS(MPI_Isendrecv_replace(x, 1, MPI_INT, next, 0, previous, 0, w,
				    none),
	      MPI_ERR_ARG);
	/* Too long for the buffer: told when it is waited for. */
	MPI_Isendrecv(x, 2, MPI_INT, next, 12, y, 1, MPI_INT, previous, 12, w,
		      &r);
	FAILS(MPI_Wait(&r, &st), MPI_ERR_TRUNCATE);
	EXPECT(r == MPI_REQUEST_NULL);
	EXPECT_INT(y[0], 1);
	ends_within_an_element();
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	next = (rank + 1) % size;
	previous = (rank + size - 1) % size;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	round_the_ring(1, previous, 7);
	round_the_ring(0, MPI_ANY_SOURCE, MPI_ANY_TAG);
	MPI_Barrier(MPI_COMM_WORLD);
	round_the_ring(LARGE, MPI_ANY_SOURCE, 7);
	replacing(1);
	replacing(LARGE);
	with_nobody();
	MPI_Barrier(MPI_COMM_WORLD);
	in_order();
	among_others();
	of_derived_types();
	freed();
	cancelled();
	cancelled_while_it_waits();
	wrong();
	return program_end("isendrecv");
}
