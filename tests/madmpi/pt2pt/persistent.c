/*
 * Persistent requests: started again and again, waited for in every way, with
 * others among them; idle ones are as good as null, and what is no persistent
 * one cannot be started.
 */
#include "../program.h"

enum { N = 40, ROUNDS = 30, LARGE = 100000 };

static int next, previous;

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

/* Small and large, of all modes that need no buffer. */
static void again_and_again(int n)
{
	int *in = malloc((size_t)n * sizeof(int));
	int *out = malloc((size_t)n * sizeof(int));
	MPI_Comm w = MPI_COMM_WORLD;
	MPI_Request r[2];
	MPI_Status st;
	int count;

	for (int mode = 0; mode < 3; mode++) {
		MPI_Recv_init(in, n, MPI_INT, previous, mode, w, &r[0]);
		if (mode == 0)
			MPI_Send_init(out, n, MPI_INT, next, mode, w, &r[1]);
		else if (mode == 1)
			MPI_Ssend_init(out, n, MPI_INT, next, mode, w, &r[1]);
		else
			MPI_Rsend_init(out, n, MPI_INT, next, mode, w, &r[1]);
		for (int i = 0; i < ROUNDS; i++) {
			fill(out, n, i);
			memset(in, 0, (size_t)n * sizeof(int));
			MPI_Start(&r[0]);
			if (mode == 2)
				MPI_Barrier(w);
			MPI_Start(&r[1]);
			MPI_Wait(&r[0], &st);
			EXPECT(st.MPI_SOURCE == previous && st.MPI_TAG == mode);
			MPI_Get_count(&st, MPI_INT, &count);
			EXPECT_INT(count, n);
			check(in, n, i);
			MPI_Wait(&r[1], &st);
			EXPECT(r[0] != MPI_REQUEST_NULL);
			EXPECT(r[1] != MPI_REQUEST_NULL);
		}
		MPI_Request_free(&r[0]);
		MPI_Request_free(&r[1]);
		EXPECT(r[0] == MPI_REQUEST_NULL);
	}
	free(in);
	free(out);
}

/* An idle one: complete at once, with an empty status, by any call. */
static void idle_is_as_good_as_null(void)
{
	MPI_Request r[3] = { 0, MPI_REQUEST_NULL, 0 };
	MPI_Status st[3];
	int x, flag = 0, index = 0, indices[3], n = 0, count = -1;

	MPI_Recv_init(&x, 1, MPI_INT, previous, 0, MPI_COMM_WORLD, &r[0]);
	MPI_Recv_init(&x, 1, MPI_INT, previous, 0, MPI_COMM_WORLD, &r[2]);
	st[0].MPI_ERROR = MPI_ERR_OTHER;
	MPI_Wait(&r[0], &st[0]);
	EXPECT(r[0] != MPI_REQUEST_NULL);
	EXPECT(st[0].MPI_SOURCE == MPI_ANY_SOURCE &&
	       st[0].MPI_TAG == MPI_ANY_TAG);
	EXPECT_INT(st[0].MPI_ERROR, MPI_SUCCESS);
	MPI_Get_count(&st[0], MPI_INT, &count);
	EXPECT_INT(count, 0);
	st[0].MPI_ERROR = MPI_ERR_OTHER;
	MPI_Test(&r[0], &flag, &st[0]);
	EXPECT_INT(flag, 1);
	EXPECT_INT(st[0].MPI_ERROR, MPI_SUCCESS);
	flag = 0;
	st[0].MPI_ERROR = MPI_ERR_OTHER;
	MPI_Request_get_status(r[0], &flag, &st[0]);
	EXPECT_INT(flag, 1);
	EXPECT_INT(st[0].MPI_ERROR, MPI_SUCCESS);
	MPI_Waitany(3, r, &index, &st[0]);
	EXPECT_INT(index, MPI_UNDEFINED);
	flag = 0;
	MPI_Testany(3, r, &index, &flag, &st[0]);
	EXPECT(flag && index == MPI_UNDEFINED);
	MPI_Waitsome(3, r, &n, indices, st);
	EXPECT_INT(n, MPI_UNDEFINED);
	n = 0;
	MPI_Testsome(3, r, &n, indices, st);
	EXPECT_INT(n, MPI_UNDEFINED);
	MPI_Waitall(3, r, st);
	flag = 0;
	MPI_Testall(3, r, &flag, st);
	EXPECT_INT(flag, 1);
	EXPECT(r[0] != MPI_REQUEST_NULL && r[2] != MPI_REQUEST_NULL);
	MPI_Request_free(&r[0]);
	MPI_Request_free(&r[2]);
}

/* All started, and taken one by one, some, or all, with others among them. */
static void several(void)
{
	MPI_Request r[2 * N], s[N];
	MPI_Status st[2 * N];
	int in[2 * N], out[N], indices[2 * N], index, n, got, seen[2 * N];

	for (int i = 0; i < N; i++) {
		MPI_Recv_init(&in[i], 1, MPI_INT, previous, i, MPI_COMM_WORLD,
			      &r[i]);
		MPI_Send_init(&out[i], 1, MPI_INT, next, i, MPI_COMM_WORLD,
			      &s[i]);
	}
	for (int round = 0; round < 3; round++) {
		memset(seen, 0, sizeof(seen));
		for (int i = 0; i < N; i++) {
			out[i] = round * N + i;
			r[N + i] = MPI_REQUEST_NULL;
		}
		MPI_Irecv(&in[N], 1, MPI_INT, previous, N, MPI_COMM_WORLD,
			  &r[N + 3]);
		MPI_Startall(N, r);
		MPI_Startall(N, s);
		MPI_Send(&round, 1, MPI_INT, next, N, MPI_COMM_WORLD);
		for (got = 0; got < N + 1; got += n) {
			n = 1;
			if (round == 0) {
				MPI_Waitany(2 * N, r, &index, st);
				indices[0] = index;
			} else if (round == 1) {
				MPI_Waitsome(2 * N, r, &n, indices, st);
			} else {
				MPI_Waitall(2 * N, r, st);
				n = N + 1;
				for (int i = 0; i < N; i++)
					indices[i] = i;
				indices[N] = N + 3;
			}
			for (int i = 0; i < n; i++)
				EXPECT_INT(seen[indices[i]]++, 0);
		}
		EXPECT_INT(got, N + 1);
		for (int i = 0; i < N; i++)
			EXPECT(seen[i] == 1 && in[i] == round * N + i);
		EXPECT(in[N] == round && r[N + 3] == MPI_REQUEST_NULL);
		MPI_Waitall(N, s, MPI_STATUSES_IGNORE);
	}
	for (int i = 0; i < N; i++) {
		MPI_Request_free(&r[i]);
		MPI_Request_free(&s[i]);
	}
}

/* Cancelled, and started again; freed while it is active. */
static void cancelled_and_freed(void)
{
	static int out = 77; /* nobody can tell when it has left */
	MPI_Request r, s;
	MPI_Status st;
	int in = 0, flag = 0;

	MPI_Recv_init(&in, 1, MPI_INT, previous, 500, MPI_COMM_WORLD, &r);
	MPI_Start(&r);
	MPI_Cancel(&r);
	MPI_Wait(&r, &st);
	MPI_Test_cancelled(&st, &flag);
	EXPECT_INT(flag, 1);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Start(&r);
	MPI_Send_init(&out, 1, MPI_INT, next, 500, MPI_COMM_WORLD, &s);
	MPI_Start(&s);
	MPI_Request_free(&s);
	EXPECT(s == MPI_REQUEST_NULL);
	MPI_Wait(&r, &st);
	MPI_Test_cancelled(&st, &flag);
	EXPECT(flag == 0 && in == 77);
	MPI_Request_free(&r);
}

/* A type that is freed is used by the requests that were made with it. */
static void types_live_on(void)
{
	int in[10] = { 0 }, out[10];
	MPI_Datatype type;
	MPI_Request r, s;

	fill(out, 10, 1);
	MPI_Type_vector(5, 1, 2, MPI_INT, &type);
	MPI_Type_commit(&type);
	MPI_Recv_init(in, 1, type, previous, 1, MPI_COMM_WORLD, &r);
	MPI_Send_init(out, 1, type, next, 1, MPI_COMM_WORLD, &s);
	MPI_Type_free(&type);
	for (int i = 0; i < 3; i++) {
		memset(in, 0, sizeof(in));
		MPI_Start(&r);
		MPI_Start(&s);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		MPI_Wait(&s, MPI_STATUS_IGNORE);
		for (int k = 0; k < 10; k++)
			EXPECT_INT(in[k], k % 2 ? 0 : out[k]);
	}
	MPI_Request_free(&r);
	MPI_Request_free(&s);
}

static void nobody(MPI_Datatype type)
{
	MPI_Request r[2];
	MPI_Status st[2];

	MPI_Send_init(NULL, 0, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &r[0]);
	MPI_Recv_init(NULL, 0, type, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &r[1]);
	MPI_Startall(2, r);
	MPI_Waitall(2, r, st);
	EXPECT_INT(st[1].MPI_SOURCE, MPI_PROC_NULL);
	MPI_Request_free(&r[0]);
	MPI_Request_free(&r[1]);
}

static void nonsense(void)
{
	MPI_Request r = MPI_REQUEST_NULL, plain;
	int x = 0;

	FAILS(MPI_Start(&r), MPI_ERR_REQUEST);
	FAILS(MPI_Start(NULL), MPI_ERR_ARG);
	FAILS(MPI_Startall(-1, &r), MPI_ERR_COUNT);
	FAILS(MPI_Send_init(&x, -1, MPI_INT, next, 0, MPI_COMM_WORLD, &r),
	      MPI_ERR_COUNT);
	FAILS(MPI_Recv_init(&x, 1, MPI_INT, size, 0, MPI_COMM_WORLD, &r),
	      MPI_ERR_RANK);
	FAILS(MPI_Recv_init(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, NULL),
	      MPI_ERR_ARG);
	EXPECT(r == MPI_REQUEST_NULL);
	MPI_Irecv(&x, 1, MPI_INT, previous, 9, MPI_COMM_WORLD, &plain);
	FAILS(MPI_Start(&plain), MPI_ERR_REQUEST);
	MPI_Cancel(&plain);
	MPI_Wait(&plain, MPI_STATUS_IGNORE);
	MPI_Recv_init(&x, 1, MPI_INT, previous, 9, MPI_COMM_WORLD, &r);
	FAILS(MPI_Cancel(&r), MPI_ERR_REQUEST);
	MPI_Start(&r);
	FAILS(MPI_Start(&r), MPI_ERR_REQUEST);
	MPI_Cancel(&r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Request_free(&r);
	/* To and from nobody. */
	MPI_Send_init(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &r);
	MPI_Start(&r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	EXPECT(r != MPI_REQUEST_NULL);
	MPI_Request_free(&r);
	nobody(MPI_DATATYPE_NULL);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	next = (rank + 1) % size;
	previous = (rank + size - 1) % size;
	again_and_again(1);
	again_and_again(LARGE);
	idle_is_as_good_as_null();
	several();
	cancelled_and_freed();
	types_live_on();
	nonsense();
	return program_end("persistent");
}
