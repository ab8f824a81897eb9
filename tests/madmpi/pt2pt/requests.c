/*
 * Requests: all, any and some, tests, cancelling, giving up, failures among
 * several.
 */
#include <stdbool.h>

#include "../program.h"

enum { N = 70 }; /* more than fit in any small array of the library */

static int next, previous;

static void any_takes_each_request_once(void)
{
	MPI_Request r[N], s[N];
	MPI_Status st;
	int in[N], out[N], seen[N] = { 0 }, index, flag;

	for (int i = 0; i < N; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, previous, i, MPI_COMM_WORLD,
			  &r[i]);
	MPI_Testany(N, r, &index, &flag, &st);
	EXPECT_INT(flag, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = N - 1; i >= 0; i--) {
		out[i] = i * i;
		MPI_Isend(&out[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &s[i]);
	}
	for (int i = 0; i < N; i++) {
		flag = 0;
		if (i % 2)
			MPI_Waitany(N, r, &index, &st);
		while (i % 2 == 0 && !flag)
			MPI_Testany(N, r, &index, &flag, &st);
		EXPECT(index >= 0 && index < N && !seen[index]);
		seen[index] = 1;
		EXPECT_INT(st.MPI_TAG, index);
		EXPECT_INT(in[index], index * index);
		EXPECT(r[index] == MPI_REQUEST_NULL);
	}
	MPI_Waitany(N, r, &index, &st);
	EXPECT_INT(index, MPI_UNDEFINED);
	MPI_Testany(N, r, &index, &flag, &st);
	EXPECT_INT(flag, 1);
	EXPECT_INT(index, MPI_UNDEFINED);
	MPI_Waitall(N, s, MPI_STATUSES_IGNORE);
}

static void some_takes_what_is_there(void)
{
	MPI_Request r[N], s[N];
	MPI_Status st[N];
	int in[N], out[N], indices[N], n, got = 0, count;

	for (int i = 0; i < N; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, previous, i, MPI_COMM_WORLD,
			  &r[i]);
	MPI_Testsome(N, r, &n, indices, st);
	EXPECT_INT(n, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < N; i++) {
		out[i] = i + 5;
		MPI_Isend(&out[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &s[i]);
	}
	for (int turn = 0; got < N; turn++) {
		if (turn % 2)
			MPI_Testsome(N, r, &n, indices, st);
		else
			MPI_Waitsome(N, r, &n, indices, st);
		EXPECT(n >= (turn % 2 ? 0 : 1));
		for (int i = 0; i < n; i++) {
			EXPECT_INT(st[i].MPI_TAG, indices[i]);
			EXPECT_INT(in[indices[i]], indices[i] + 5);
			MPI_Get_count(&st[i], MPI_INT, &count);
			EXPECT_INT(count, 1);
		}
		got += n;
	}
	EXPECT_INT(got, N);
	MPI_Waitsome(N, r, &n, indices, st);
	EXPECT_INT(n, MPI_UNDEFINED);
	MPI_Testsome(N, r, &n, indices, st);
	EXPECT_INT(n, MPI_UNDEFINED);
	MPI_Waitall(N, s, MPI_STATUSES_IGNORE);
}

static void testall_waits_for_the_last(void)
{
	MPI_Request r[3] = { MPI_REQUEST_NULL, MPI_REQUEST_NULL,
			     MPI_REQUEST_NULL };
	MPI_Request s;
	MPI_Status st[3];
	int in = 0, out = 3, flag;

	MPI_Testall(3, r, &flag, st);
	EXPECT_INT(flag, 1);
	EXPECT_INT(st[1].MPI_SOURCE, MPI_ANY_SOURCE);
	MPI_Irecv(&in, 1, MPI_INT, previous, 3, MPI_COMM_WORLD, &r[1]);
	MPI_Testall(3, r, &flag, st);
	EXPECT_INT(flag, 0);
	EXPECT(r[1] != MPI_REQUEST_NULL);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Isend(&out, 1, MPI_INT, next, 3, MPI_COMM_WORLD, &s);
	while (!flag)
		MPI_Testall(3, r, &flag, st);
	EXPECT_INT(in, 3);
	EXPECT_INT(st[1].MPI_SOURCE, previous);
	MPI_Wait(&s, MPI_STATUS_IGNORE);
}

static void test_and_get_status_tell_the_same(void)
{
	MPI_Request r, s;
	MPI_Status st;
	int in = 0, out = 4, flag = 0;

	MPI_Irecv(&in, 1, MPI_INT, previous, 4, MPI_COMM_WORLD, &r);
	MPI_Test(&r, &flag, &st);
	EXPECT_INT(flag, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Isend(&out, 1, MPI_INT, next, 4, MPI_COMM_WORLD, &s);
	while (!flag)
		MPI_Request_get_status(r, &flag, &st);
	EXPECT_INT(st.MPI_TAG, 4);
	EXPECT(r != MPI_REQUEST_NULL);
	flag = 0;
	MPI_Test(&r, &flag, &st);
	EXPECT_INT(flag, 1);
	EXPECT_INT(in, 4);
	EXPECT(r == MPI_REQUEST_NULL);
	MPI_Wait(&s, MPI_STATUS_IGNORE);
}

static void null_requests_are_complete_and_empty(void)
{
	MPI_Request r = MPI_REQUEST_NULL;
	MPI_Status st;
	int flag = 0, count;

	MPI_Wait(&r, &st);
	EXPECT_INT(st.MPI_SOURCE, MPI_ANY_SOURCE);
	EXPECT_INT(st.MPI_TAG, MPI_ANY_TAG);
	MPI_Get_count(&st, MPI_INT, &count);
	EXPECT_INT(count, 0);
	MPI_Test(&r, &flag, &st);
	EXPECT_INT(flag, 1);
}

static void a_cancelled_receive_takes_no_message(void)
{
	MPI_Request r, s;
	MPI_Status st;
	int in = 1, out = 2, flag;

	MPI_Irecv(&in, 1, MPI_INT, previous, 8, MPI_COMM_WORLD, &r);
	MPI_Cancel(&r);
	MPI_Wait(&r, &st);
	MPI_Test_cancelled(&st, &flag);
	EXPECT_INT(flag, 1);
	EXPECT_INT(in, 1);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Isend(&out, 1, MPI_INT, next, 8, MPI_COMM_WORLD, &s);
	MPI_Recv(&in, 1, MPI_INT, previous, 8, MPI_COMM_WORLD, &st);
	MPI_Test_cancelled(&st, &flag);
	EXPECT_INT(flag, 0);
	EXPECT_INT(in, 2);
	MPI_Wait(&s, MPI_STATUS_IGNORE);
}

/* To be started if it is persistent. */
static MPI_Request make_send(const char *out, int bytes, bool sync,
			     bool persistent)
{
	MPI_Request r;

	if (persistent && sync)
		MPI_Ssend_init(out, bytes, MPI_BYTE, next, 9, MPI_COMM_WORLD,
			       &r);
	else if (persistent)
		MPI_Send_init(out, bytes, MPI_BYTE, next, 9, MPI_COMM_WORLD,
			      &r);
	else if (sync)
		MPI_Issend(out, bytes, MPI_BYTE, next, 9, MPI_COMM_WORLD, &r);
	else
		MPI_Isend(out, bytes, MPI_BYTE, next, 9, MPI_COMM_WORLD, &r);
	return r;
}

/*
 * Nobody receives it: a send that waits for a match is cancelled, any other is
 * or has completed, and the wait is local.
 */
static void cancel_send(int bytes, bool sync, bool persistent)
{
	char *out = calloc((size_t)bytes + 1, 1);
	bool awaits_match = sync || bytes > 1 << 20;
	MPI_Request r = make_send(out, bytes, sync, persistent);
	MPI_Status st;
	int flag, gone, n;

	if (persistent)
		MPI_Start(&r);
	MPI_Cancel(&r);
	MPI_Wait(&r, &st);
	MPI_Test_cancelled(&st, &flag);
	EXPECT(flag || !awaits_match);
	EXPECT((r != MPI_REQUEST_NULL) == persistent);
	if (persistent)
		MPI_Request_free(&r);
	MPI_Sendrecv(&flag, 1, MPI_INT, next, 10, &gone, 1, MPI_INT, previous,
		     10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (!gone)
		MPI_Recv(out, bytes, MPI_BYTE, previous, 9, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	MPI_Iprobe(previous, 9, MPI_COMM_WORLD, &n, MPI_STATUS_IGNORE);
	EXPECT_INT(n, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	free(out);
}

static void a_wait_for_a_cancelled_send_is_local(void)
{
	static const int bytes[] = { 0, 100, 4 << 20 };

	for (int i = 0; i < 12; i++)
		cancel_send(bytes[i / 4], i & 1, i & 2);
}

/* Nor does the end of the program wait for a receive. */
static void so_is_the_end_of_one_that_was_freed(void)
{
	static char out[4 << 20];
	MPI_Request r;

	for (int i = 0; i < 2; i++) {
		MPI_Issend(out, i == 0 ? 1 : sizeof(out), MPI_BYTE, next, 10,
			   MPI_COMM_WORLD, &r);
		MPI_Cancel(&r);
		MPI_Request_free(&r);
	}
}

static void a_freed_request_completes_all_the_same(void)
{
	static int out[N], in[N];
	MPI_Request r;

	for (int i = 0; i < N; i++) {
		out[i] = i;
		MPI_Isend(&out[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &r);
		MPI_Request_free(&r);
		EXPECT(r == MPI_REQUEST_NULL);
	}
	for (int i = 0; i < N; i++) {
		MPI_Recv(&in[i], 1, MPI_INT, previous, i, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		EXPECT_INT(in[i], i);
	}
}

static void of_several_the_status_tells_which_failed(void)
{
	MPI_Request r[3], s[3];
	MPI_Status st[3];
	int in[3][2], out[4] = { 1, 2, 3, 4 }, rc, class;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int i = 0; i < 3; i++)
		MPI_Irecv(in[i], 2, MPI_INT, previous, i, MPI_COMM_WORLD,
			  &r[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < 3; i++)
		MPI_Isend(out, i == 1 ? 4 : 2, MPI_INT, next, i, MPI_COMM_WORLD,
			  &s[i]);
	rc = MPI_Waitall(3, r, st);
	MPI_Error_class(rc, &class);
	EXPECT_INT(class, MPI_ERR_IN_STATUS);
	for (int i = 0; i < 3; i++) {
		MPI_Error_class(st[i].MPI_ERROR, &class);
		/* Those after the failure may be left for another wait. */
		if (class == MPI_ERR_PENDING)
			class = MPI_Wait(&r[i], MPI_STATUS_IGNORE);
		EXPECT_INT(class, i == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
		if (i == 1)
			continue;
		EXPECT_INT(in[i][0], 1);
		EXPECT_INT(in[i][1], 2);
	}
	MPI_Waitall(3, s, MPI_STATUSES_IGNORE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* Also where nobody asks for statuses. */
static void of_several_a_failure_is_told_without_statuses(void)
{
	MPI_Request r[3], s[3];
	int in[3], out[2] = { 1, 2 };

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (int i = 0; i < 3; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, previous, i, MPI_COMM_WORLD,
			  &r[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < 3; i++)
		MPI_Isend(out, i == 1 ? 2 : 1, MPI_INT, next, i, MPI_COMM_WORLD,
			  &s[i]);
	FAILS(MPI_Waitall(3, r, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS);
	MPI_Waitall(3, s, MPI_STATUSES_IGNORE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void of_several_that_end_together_none_is_left(void)
{
	MPI_Request r[N], was[N];
	int in[N], out = 1;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	for (int i = 0; i < N; i++) {
		MPI_Irecv(&in[i], 1, MPI_INT, 0, i, MPI_COMM_SELF, &r[i]);
		MPI_Send(&out, 1, MPI_INT, 0, i, MPI_COMM_SELF);
		was[i] = r[i];
	}
	MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < N; i++) {
		EXPECT(r[i] == MPI_REQUEST_NULL);
		FAILS(MPI_Wait(&was[i], MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
	}
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void many_requests_at_once(void)
{
	enum { MANY = 5000 };
	MPI_Request *r = malloc(2 * MANY * sizeof(*r));
	int *in = malloc(MANY * sizeof(int)), *out = malloc(MANY * sizeof(int));

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MANY; i++)
			MPI_Irecv(&in[i], 1, MPI_INT, previous, i,
				  MPI_COMM_WORLD, &r[i]);
		for (int i = 0; i < MANY; i++) {
			int tag = (i * 7919) % MANY;

			out[tag] = tag + round;
			MPI_Isend(&out[tag], 1, MPI_INT, next, tag,
				  MPI_COMM_WORLD, &r[MANY + i]);
		}
		MPI_Waitall(2 * MANY, r, MPI_STATUSES_IGNORE);
		for (int i = 0; i < MANY; i++)
			EXPECT_INT(in[i], i + round);
	}
	free(r);
	free(in);
	free(out);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	next = (rank + 1) % size;
	previous = (rank - 1 + size) % size;
	null_requests_are_complete_and_empty();
	any_takes_each_request_once();
	some_takes_what_is_there();
	testall_waits_for_the_last();
	test_and_get_status_tell_the_same();
	a_cancelled_receive_takes_no_message();
	a_wait_for_a_cancelled_send_is_local();
	a_freed_request_completes_all_the_same();
	MPI_Barrier(MPI_COMM_WORLD);
	of_several_the_status_tells_which_failed();
	of_several_a_failure_is_told_without_statuses();
	of_several_that_end_together_none_is_left();
	many_requests_at_once();
	so_is_the_end_of_one_that_was_freed();
	return program_end("requests");
}
