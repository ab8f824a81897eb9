/*
 * Matched probes: who has the message receives it, nobody else, whatever is
 * posted or probed for meanwhile; by several threads, too. And statuses of
 * requests that are left as they are.
 */
#include "../program.h"

#include <pthread.h>

enum { N = 200, THREADS = 4, LARGE = 60000 };

static int next, previous;
static int big[LARGE], got[LARGE];

/* A receive that is posted later gets the next one. */
static void what_is_taken_is_taken(int n)
{
	MPI_Message message = MPI_MESSAGE_NULL;
	MPI_Request s[2], r;
	MPI_Status st;
	int first[2] = { 0, 0 }, count, flag = 1;

	for (int i = 0; i < n; i++)
		big[i] = i;
	MPI_Isend(big, n, MPI_INT, next, 5, MPI_COMM_WORLD, &s[0]);
	MPI_Isend(&next, 1, MPI_INT, next, 5, MPI_COMM_WORLD, &s[1]);
	MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &st);
	EXPECT(message != MPI_MESSAGE_NULL && message != MPI_MESSAGE_NO_PROC);
	EXPECT(st.MPI_SOURCE == previous && st.MPI_TAG == 5);
	MPI_Get_count(&st, MPI_INT, &count);
	EXPECT_INT(count, n);
	MPI_Irecv(first, 2, MPI_INT, previous, 5, MPI_COMM_WORLD, &r);
	MPI_Wait(&r, &st);
	MPI_Get_count(&st, MPI_INT, &count);
	EXPECT(count == 1 && first[0] == rank);
	MPI_Iprobe(previous, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	EXPECT_INT(flag, 0);
	memset(got, 0, sizeof(got));
	MPI_Mrecv(got, n, MPI_INT, &message, &st);
	EXPECT(message == MPI_MESSAGE_NULL);
	EXPECT(st.MPI_SOURCE == previous && st.MPI_TAG == 5);
	MPI_Get_count(&st, MPI_INT, &count);
	EXPECT_INT(count, n);
	for (int i = 0; i < n; i++)
		EXPECT_INT(got[i], i);
	MPI_Waitall(2, s, MPI_STATUSES_IGNORE);
}

/* Several taken, received in the other order, without waiting in between. */
static void in_any_order(void)
{
	MPI_Message m[N];
	MPI_Request r[N], s[N];
	int in[N], out[N], flag;

	for (int i = 0; i < N; i++) {
		out[i] = i * 3;
		MPI_Isend(&out[i], 1, MPI_INT, next, 1, MPI_COMM_WORLD, &s[i]);
	}
	for (int i = 0; i < N; i++)
		do
			MPI_Improbe(previous, 1, MPI_COMM_WORLD, &flag, &m[i],
				    MPI_STATUS_IGNORE);
		while (!flag);
	MPI_Improbe(previous, 1, MPI_COMM_WORLD, &flag, &m[0],
		    MPI_STATUS_IGNORE);
	EXPECT_INT(flag, 0);
	for (int i = N - 1; i >= 0; i--)
		MPI_Imrecv(&in[i], 1, MPI_INT, &m[i], &r[i]);
	MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < N; i++)
		EXPECT(in[i] == i * 3 && m[i] == MPI_MESSAGE_NULL);
	MPI_Waitall(N, s, MPI_STATUSES_IGNORE);
}

static void cut_and_typed(void)
{
	MPI_Datatype type;
	MPI_Message m;
	MPI_Request s;
	int in[4] = { -1, -1, -1, -1 };

	MPI_Type_vector(2, 1, 2, MPI_INT, &type);
	MPI_Type_commit(&type);
	for (int i = 0; i < 4; i++)
		big[i] = 10 + i;
	MPI_Isend(big, 4, MPI_INT, next, 2, MPI_COMM_WORLD, &s);
	MPI_Mprobe(previous, 2, MPI_COMM_WORLD, &m, MPI_STATUS_IGNORE);
	FAILS(MPI_Mrecv(in, 1, type, &m, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
	EXPECT(in[0] == 10 && in[1] == -1 && in[2] == 11);
	MPI_Type_free(&type);
	MPI_Wait(&s, MPI_STATUS_IGNORE);
}

/* --- many threads take from one source: each gets what it has seen --- */

static int taken[N];

static void *take(void *unused)
{
	MPI_Message m;
	MPI_Status st;
	int n = 0, count;

	(void)unused;
	for (int i = 0; i < N / THREADS; i++) {
		MPI_Mprobe(previous, 3, MPI_COMM_WORLD, &m, &st);
		MPI_Get_count(&st, MPI_INT, &count);
		int buffer[N];

		MPI_Mrecv(buffer, count, MPI_INT, &m, &st);
		for (int k = 0; k < count; k++)
			EXPECT_INT(buffer[k], count);
		__atomic_fetch_add(&taken[count - 1], 1, __ATOMIC_RELAXED);
		n++;
	}
	EXPECT_INT(n, N / THREADS);
	return NULL;
}

static void several_threads(void)
{
	pthread_t t[THREADS];
	int out[N];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, take, NULL);
	for (int i = 1; i <= N; i++) {
		for (int k = 0; k < i; k++)
			out[k] = i;
		MPI_Send(out, i, MPI_INT, next, 3, MPI_COMM_WORLD);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < N; i++)
		EXPECT_INT(taken[i], 1);
}

/* --- statuses, and the requests stay --- */

static void statuses(void)
{
	MPI_Request r[4] = { 0, 0, MPI_REQUEST_NULL, 0 };
	MPI_Status st[4];
	int in[3], out = 4, flag = 1, n = -1, index = -1, indices[4];

	for (int i = 0; i < 3; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, previous, 10 + i, MPI_COMM_WORLD,
			  &r[i == 2 ? 3 : i]);
	MPI_Request_get_status_any(4, r, &index, &flag, &st[0]);
	EXPECT(flag == 0 && index == MPI_UNDEFINED);
	MPI_Request_get_status_some(4, r, &n, indices, st);
	EXPECT_INT(n, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Send(&out, 1, MPI_INT, next, 11, MPI_COMM_WORLD);
	do
		MPI_Request_get_status_any(4, r, &index, &flag, &st[0]);
	while (!flag);
	EXPECT(index == 1 && st[0].MPI_TAG == 11);
	MPI_Request_get_status_all(4, r, &flag, st);
	EXPECT_INT(flag, 0);
	MPI_Request_get_status_some(4, r, &n, indices, st);
	EXPECT(n == 1 && indices[0] == 1 && st[0].MPI_SOURCE == previous);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Send(&out, 1, MPI_INT, next, 10, MPI_COMM_WORLD);
	MPI_Send(&out, 1, MPI_INT, next, 12, MPI_COMM_WORLD);
	do
		MPI_Request_get_status_all(4, r, &flag, st);
	while (!flag);
	EXPECT(st[0].MPI_TAG == 10 && st[1].MPI_TAG == 11);
	EXPECT(st[2].MPI_TAG == MPI_ANY_TAG && st[3].MPI_TAG == 12);
	for (int i = 0; i < 4; i++)
		EXPECT((r[i] == MPI_REQUEST_NULL) == (i == 2));
	MPI_Waitall(4, r, st);
	MPI_Request_get_status_some(4, r, &n, indices, st);
	EXPECT_INT(n, MPI_UNDEFINED);
	flag = 0;
	MPI_Request_get_status_any(4, r, &index, &flag, &st[0]);
	EXPECT(flag && index == MPI_UNDEFINED);
}

static void nonsense(void)
{
	MPI_Message m = MPI_MESSAGE_NULL;
	MPI_Request r;
	MPI_Status st;
	int x, flag = 0;

	FAILS(MPI_Mrecv(&x, 1, MPI_INT, &m, &st), MPI_ERR_REQUEST);
	m = (MPI_Message)MPI_COMM_WORLD;
	FAILS(MPI_Imrecv(&x, 1, MPI_INT, &m, &r), MPI_ERR_REQUEST);
	FAILS(MPI_Mrecv(&x, 1, MPI_INT, NULL, &st), MPI_ERR_ARG);
	FAILS(MPI_Mprobe(size, 0, MPI_COMM_WORLD, &m, &st), MPI_ERR_RANK);
	FAILS(MPI_Mprobe(0, 0, MPI_COMM_WORLD, NULL, &st), MPI_ERR_ARG);
	FAILS(MPI_Improbe(0, 0, MPI_COMM_WORLD, NULL, &m, &st), MPI_ERR_ARG);
	/* From nobody. */
	MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &m, &st);
	EXPECT(m == MPI_MESSAGE_NO_PROC && st.MPI_SOURCE == MPI_PROC_NULL);
	MPI_Mrecv(&x, 1, MPI_INT, &m, &st);
	EXPECT(m == MPI_MESSAGE_NULL && st.MPI_SOURCE == MPI_PROC_NULL);
	MPI_Improbe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &m, &st);
	EXPECT(flag && m == MPI_MESSAGE_NO_PROC);
	MPI_Imrecv(&x, 1, MPI_INT, &m, &r);
	MPI_Wait(&r, &st);
	EXPECT_INT(st.MPI_SOURCE, MPI_PROC_NULL);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	next = (rank + 1) % size;
	previous = (rank + size - 1) % size;
	what_is_taken_is_taken(10);
	MPI_Barrier(MPI_COMM_WORLD);
	what_is_taken_is_taken(LARGE);
	MPI_Barrier(MPI_COMM_WORLD);
	in_any_order();
	MPI_Barrier(MPI_COMM_WORLD);
	cut_and_typed();
	MPI_Barrier(MPI_COMM_WORLD);
	several_threads();
	statuses();
	nonsense();
	return program_end("matched");
}
