/*
 * Generalised requests: complete when the program says so and not before,
 * whoever says it and however one waits; the program's functions are called
 * exactly when the standard says.
 */
#include "../program.h"

#include <marcel/marcel.h>
#include "../join.h"

enum { N = 40, COUNT = 7 };

/* What the functions of a request were asked, and what they shall say. */
struct told {
	int queries, frees, cancels;
	int complete; /* what cancel was told */
	int query_code, free_code;
	MPI_Request other; /* completed by the query, unless null */
};

static int query(void *extra, MPI_Status *status)
{
	struct told *t = extra;

	EXPECT(status != MPI_STATUS_IGNORE);
	EXPECT_INT(t->frees, 0);
	t->queries++;
	status->MPI_SOURCE = 3;
	status->MPI_TAG = 4;
	MPI_Status_set_elements(status, MPI_INT, COUNT);
	MPI_Status_set_cancelled(status, t->cancels);
	if (t->other != MPI_REQUEST_NULL) {
		MPI_Grequest_complete(t->other);
		t->other = MPI_REQUEST_NULL;
	}
	return t->query_code;
}

static int free_it(void *extra)
{
	struct told *t = extra;

	t->frees++;
	return t->free_code;
}

static int cancel(void *extra, int complete)
{
	struct told *t = extra;

	t->cancels++;
	t->complete = complete;
	return MPI_SUCCESS;
}

static MPI_Request start(struct told *t)
{
	MPI_Request r;

	*t = (struct told){ .other = MPI_REQUEST_NULL };
	EXPECT_INT(MPI_Grequest_start(query, free_it, cancel, t, &r), 0);
	EXPECT(r != MPI_REQUEST_NULL);
	return r;
}

static void expect_calls(const struct told *t, int queries, int frees)
{
	EXPECT_INT(t->queries, queries);
	EXPECT_INT(t->frees, frees);
}

static void expect_status(MPI_Status *st, int cancelled)
{
	int n, flag;

	EXPECT(st->MPI_SOURCE == 3 && st->MPI_TAG == 4);
	MPI_Get_count(st, MPI_INT, &n);
	EXPECT_INT(n, COUNT);
	MPI_Test_cancelled(st, &flag);
	EXPECT_INT(flag, cancelled);
}

static void one(void)
{
	struct told t;
	MPI_Request r = start(&t);
	MPI_Status st;
	int flag;

	MPI_Test(&r, &flag, &st);
	EXPECT(!flag);
	MPI_Request_get_status(r, &flag, &st);
	EXPECT(!flag);
	expect_calls(&t, 0, 0);
	EXPECT_INT(MPI_Grequest_complete(r), MPI_SUCCESS);
	expect_calls(&t, 0, 0);
	for (int i = 1; i <= 2; i++) {
		MPI_Request_get_status(r, &flag, &st);
		EXPECT(flag && r != MPI_REQUEST_NULL);
		expect_status(&st, 0);
		expect_calls(&t, i, 0);
	}
	st.MPI_ERROR = 77;
	MPI_Wait(&r, &st);
	EXPECT(r == MPI_REQUEST_NULL);
	EXPECT_INT(st.MPI_ERROR, 77);
	expect_status(&st, 0);
	expect_calls(&t, 3, 1);

	r = start(&t);
	MPI_Grequest_complete(r);
	MPI_Test(&r, &flag, MPI_STATUS_IGNORE);
	EXPECT(flag && r == MPI_REQUEST_NULL);
	expect_calls(&t, 1, 1);
}

static void cancelled(void)
{
	struct told t;
	MPI_Request r = start(&t);
	MPI_Status st;

	MPI_Cancel(&r);
	EXPECT(t.cancels == 1 && !t.complete);
	MPI_Grequest_complete(r);
	MPI_Cancel(&r);
	EXPECT(t.cancels == 2 && t.complete);
	MPI_Wait(&r, &st);
	expect_status(&st, 1);
	expect_calls(&t, 1, 1);
}

/* Freed by the program before it is complete, and after. */
static void given_up(void)
{
	struct told t;
	MPI_Request r = start(&t), kept = r;

	MPI_Request_free(&r);
	EXPECT(r == MPI_REQUEST_NULL);
	expect_calls(&t, 0, 0);
	EXPECT_INT(MPI_Grequest_complete(kept), MPI_SUCCESS);
	expect_calls(&t, 0, 1);

	r = start(&t);
	MPI_Grequest_complete(r);
	MPI_Request_free(&r);
	EXPECT(r == MPI_REQUEST_NULL);
	expect_calls(&t, 0, 1);
}

/* Others wait with it: all, any, some, and messages among them. */
static void several(void)
{
	struct told t[2];
	MPI_Request r[4];
	MPI_Status st[4];
	int in = 0, out = 5, flag, n, indices[4];

	r[0] = start(&t[0]);
	MPI_Irecv(&in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &r[1]);
	MPI_Isend(&out, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &r[2]);
	r[3] = start(&t[1]);
	MPI_Testall(4, r, &flag, st);
	EXPECT(!flag);
	MPI_Grequest_complete(r[3]);
	t[1].other = r[0];
	MPI_Waitany(1, &r[3], &n, &st[3]);
	EXPECT(n == 0 && r[3] == MPI_REQUEST_NULL);
	expect_status(&st[3], 0);
	MPI_Waitall(4, r, st);
	expect_status(&st[0], 0);
	EXPECT_INT(st[0].MPI_ERROR, MPI_SUCCESS);
	EXPECT_INT(in, 5);
	expect_calls(&t[0], 1, 1);
	expect_calls(&t[1], 1, 1);

	r[0] = start(&t[0]);
	r[1] = start(&t[1]);
	MPI_Testsome(2, r, &n, indices, st);
	EXPECT_INT(n, 0);
	MPI_Testany(2, r, &n, &flag, st);
	EXPECT(!flag);
	MPI_Grequest_complete(r[1]);
	MPI_Request_get_status_any(2, r, &n, &flag, st);
	EXPECT(flag && n == 1);
	MPI_Waitsome(2, r, &n, indices, st);
	EXPECT(n == 1 && indices[0] == 1);
	expect_status(&st[0], 0);
	expect_calls(&t[1], 2, 1);
	expect_calls(&t[0], 0, 0);
	MPI_Grequest_complete(r[0]);
	MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE);
	EXPECT(flag);
	expect_calls(&t[0], 1, 1);
}

/* What the functions return is the program's answer to itself. */
static void failures(void)
{
	struct told t[2];
	MPI_Request r[2];
	MPI_Status st[2];
	int code, n;

	MPI_Add_error_code(MPI_ERR_OTHER, &code);
	r[0] = start(&t[0]);
	t[0].query_code = MPI_ERR_IO;
	MPI_Grequest_complete(r[0]);
	EXPECT_INT(MPI_Wait(&r[0], st), MPI_ERR_IO);
	EXPECT(r[0] == MPI_REQUEST_NULL);

	r[0] = start(&t[0]);
	t[0].query_code = MPI_ERR_IO;
	t[0].free_code = code;
	MPI_Grequest_complete(r[0]);
	EXPECT_INT(MPI_Waitany(1, r, &n, st), code);

	r[0] = start(&t[0]);
	r[1] = start(&t[1]);
	t[1].free_code = code;
	MPI_Grequest_complete(r[0]);
	MPI_Grequest_complete(r[1]);
	EXPECT_INT(MPI_Waitall(2, r, st), MPI_ERR_IN_STATUS);
	EXPECT_INT(st[0].MPI_ERROR, MPI_SUCCESS);
	EXPECT_INT(st[1].MPI_ERROR, code);

	r[0] = start(&t[0]);
	t[0].free_code = code;
	MPI_Grequest_complete(r[0]);
	EXPECT_INT(MPI_Request_free(&r[0]), code);
}

static void misuse(void)
{
	struct told t;
	MPI_Request r = start(&t), message;
	int in;

	MPI_Irecv(&in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &message);
	FAILS(MPI_Grequest_complete(message), MPI_ERR_REQUEST);
	FAILS(MPI_Grequest_complete(MPI_REQUEST_NULL), MPI_ERR_REQUEST);
	MPI_Cancel(&message);
	MPI_Wait(&message, MPI_STATUS_IGNORE);
	FAILS(MPI_Start(&r), MPI_ERR_REQUEST);
	MPI_Grequest_complete(r);
	FAILS(MPI_Grequest_complete(r), MPI_ERR_REQUEST);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	expect_calls(&t, 1, 1);
}

/* --- completed by others, while one waits --- */

static void *complete_all(void *requests)
{
	MPI_Request *r = requests;

	for (int i = 0; i < N; i++)
		EXPECT_INT(MPI_Grequest_complete(r[i]), MPI_SUCCESS);
	return NULL;
}

static void begin(MPI_Request r[N], MPI_Request copy[N], struct told t[N])
{
	for (int i = 0; i < N; i++)
		copy[i] = r[i] = start(&t[i]);
}

static void end(const struct told t[N])
{
	for (int i = 0; i < N; i++)
		expect_calls(&t[i], 1, 1);
}

static void wait_in_turn(MPI_Request r[N], int how)
{
	int done = 0, n, indices[N];

	switch (how) {
	case 0:
		MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
		break;
	case 1:
		for (; done < N; done++)
			MPI_Waitany(N, r, &n, MPI_STATUS_IGNORE);
		break;
	case 2:
		for (; done < N; done += n)
			MPI_Waitsome(N, r, &n, indices, MPI_STATUSES_IGNORE);
		break;
	default:
		for (int i = N - 1; i >= 0; i--)
			MPI_Wait(&r[i], MPI_STATUS_IGNORE);
		break;
	}
}

static void threads(void)
{
	MPI_Request r[N], copy[N];
	struct told t[N];
	pthread_t kernel;
	marcel_t user;

	for (int how = 0; how < 4; how++) {
		begin(r, copy, t);
		pthread_create(&kernel, NULL, complete_all, copy);
		wait_in_turn(r, how);
		program_join(kernel);
		end(t);
		begin(r, copy, t);
		marcel_create(&user, NULL, complete_all, copy);
		wait_in_turn(r, how);
		marcel_join(user, NULL);
		end(t);
	}
}

/* Given up by one, completed by another at the same time: freed once. */
static void races(void)
{
	MPI_Request r[N], copy[N];
	struct told t[N];
	pthread_t kernel;

	for (int round = 0; round < 50 / FEWER; round++) {
		begin(r, copy, t);
		pthread_create(&kernel, NULL, complete_all, copy);
		for (int i = N - 1; i >= 0; i--)
			MPI_Request_free(&r[i]);
		program_join(kernel);
		for (int i = 0; i < N; i++)
			expect_calls(&t[i], 0, 1);
	}
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	one();
	cancelled();
	given_up();
	several();
	threads();
	races();
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	failures();
	misuse();
	return program_end("grequest");
}
