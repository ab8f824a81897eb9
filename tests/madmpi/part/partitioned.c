/*
 * Partitioned messages around a ring: what is ready arrives, partition by
 * partition, however the two sides divide it, in whatever order it becomes
 * ready and whoever begins first; requests meet in the order in which they are
 * made; rounds do not mix.
 */
#include "../program.h"

enum {
	ROUNDS = 4,
	TAG = 5,
	MANY = FEWER == 1 ? 256 : 64,
	FREED = 100000 / FEWER
};

static int next, previous;

/* A value for each place of each round. */
static int value(int from, int round, int i)
{
	return from * 1000003 + round * 10007 + i;
}

static void fill(int *x, int round, int from, int n)
{
	for (int i = from; i < from + n; i++)
		x[i] = value(rank, round, i);
}

static void check(const int *x, int round, int from, int n)
{
	for (int i = from; i < from + n; i++)
		EXPECT_INT(x[i], value(previous, round, i));
}

static int arrived(MPI_Request r, int partition)
{
	int flag;

	EXPECT_INT(MPI_Parrived(r, partition, &flag), MPI_SUCCESS);
	return flag;
}

static void expect_all(MPI_Request r, int partitions)
{
	for (int i = 0; i < partitions; i++)
		EXPECT(arrived(r, i));
}

/* In what order partitions become ready. */
enum order { FORWARD, BACKWARD, RANGES, LIST, ORDERS };

static void ready(enum order order, MPI_Request r, int *x, int round, int n,
		  int each)
{
	int *list = malloc((size_t)n * sizeof(int)), half = n / 2;

	for (int i = 0; i < n; i++) {
		int p = order == FORWARD ? i : n - 1 - i;

		fill(x, round, p * each, each);
		list[i] = p % 2 == 0 ? p / 2 : n - 1 - p / 2;
		if (order == FORWARD || order == BACKWARD)
			EXPECT_INT(MPI_Pready(p, r), MPI_SUCCESS);
	}
	if (order == RANGES) {
		MPI_Pready_range(half, n - 1, r);
		if (half > 0)
			MPI_Pready_range(0, half - 1, r);
	}
	if (order == LIST) {
		MPI_Pready_list(half, list, r);
		MPI_Pready_list(n - half, list + half, r);
	}
	free(list);
}

/* Wait for it partition by partition, and look at each as it comes. */
static void receive(MPI_Request *r, const int *x, int round, int n, int each)
{
	MPI_Status st;
	int count;

	for (int i = 0; i < n; i++) {
		while (!arrived(*r, i))
			continue;
		check(x, round, i * each, each);
	}
	MPI_Wait(r, &st);
	EXPECT(*r != MPI_REQUEST_NULL);
	EXPECT(st.MPI_SOURCE == previous && st.MPI_TAG == TAG);
	MPI_Get_count(&st, MPI_INT, &count);
	EXPECT_INT(count, n * each);
	expect_all(*r, n);
}

/* The same data, divided differently. */
static void divided(int senders, int receivers, int n)
{
	int *out = calloc((size_t)n + 1, sizeof(int));
	int *in = calloc((size_t)n + 1, sizeof(int));
	int from = n / senders, to = n / receivers, flag;
	MPI_Request s, r;

	MPI_Psend_init(out, senders, from, MPI_INT, next, TAG, MPI_COMM_WORLD,
		       MPI_INFO_NULL, &s);
	MPI_Precv_init(in, receivers, to, MPI_INT, previous, TAG,
		       MPI_COMM_WORLD, MPI_INFO_NULL, &r);
	expect_all(r, receivers);
	for (int round = 0; round < ROUNDS; round++) {
		if (round % 2 == 0)
			MPI_Start(&s);
		MPI_Start(&r);
		if (round % 2 == 1)
			MPI_Start(&s);
		MPI_Test(&s, &flag, MPI_STATUS_IGNORE);
		EXPECT(!flag);
		ready(round % ORDERS, s, out, round, senders, from);
		receive(&r, in, round, receivers, to);
		MPI_Wait(&s, MPI_STATUS_IGNORE);
		memset(in, 0, (size_t)n * sizeof(int));
	}
	MPI_Request_free(&s);
	MPI_Request_free(&r);
	EXPECT(s == MPI_REQUEST_NULL && r == MPI_REQUEST_NULL);
	free(out);
	free(in);
}

static void divisions(void)
{
	divided(1, 1, 1);
	divided(8, 8, 64);
	divided(1, 16, 64);
	divided(16, 1, 64);
	divided(17, 33, 561);
	divided(33, 17, 561);
	divided(MANY, 64, 3840);
	divided(4, 6, 1200000); /* too large to go at once */
	divided(2, 3, 0);
}

/* Every second int, on one side or the other. */
static void in_pieces(int sender, int receiver)
{
	enum { N = 6, EACH = 1500 };
	static int out[2 * N * EACH], in[2 * N * EACH];
	int so = sender ? 2 : 1, ro = receiver ? 2 : 1;
	MPI_Datatype spread;
	MPI_Request s, r;

	MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread);
	MPI_Type_commit(&spread);
	memset(in, 0, sizeof(in));
	MPI_Precv_init(in, N / 2, 2 * EACH, receiver ? spread : MPI_INT,
		       previous, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
	MPI_Psend_init(out, N, EACH, sender ? spread : MPI_INT, next, TAG,
		       MPI_COMM_WORLD, MPI_INFO_NULL, &s);
	MPI_Type_free(&spread);
	for (int round = 0; round < ROUNDS; round++) {
		MPI_Start(&r);
		MPI_Start(&s);
		for (int i = 0; i < N * EACH; i++)
			out[i * so] = value(rank, round, i);
		for (int i = N - 1; i >= 0; i--)
			MPI_Pready(i, s);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		MPI_Wait(&s, MPI_STATUS_IGNORE);
		for (int i = 0; i < N * EACH; i++)
			EXPECT_INT(in[i * ro], value(previous, round, i));
		for (int i = 0; receiver && i < N * EACH; i++)
			EXPECT_INT(in[2 * i + 1], 0);
	}
	MPI_Request_free(&s);
	MPI_Request_free(&r);
}

/* What is ready arrives though the rest is not: the receiver answers it. */
static void one_by_one(void)
{
	enum { N = 5, EACH = 3 };
	int out[N * EACH], in[N * EACH], token;
	MPI_Request s, r;

	MPI_Psend_init(out, N, EACH, MPI_INT, next, TAG, MPI_COMM_WORLD,
		       MPI_INFO_NULL, &s);
	MPI_Precv_init(in, N, EACH, MPI_INT, previous, TAG, MPI_COMM_WORLD,
		       MPI_INFO_NULL, &r);
	MPI_Start(&r);
	MPI_Start(&s);
	for (int i = N - 1; i >= 0; i--) {
		EXPECT(!arrived(r, i));
		MPI_Sendrecv(&i, 1, MPI_INT, previous, 0, &token, 1, MPI_INT,
			     next, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		EXPECT_INT(token, i);
		fill(out, 0, i * EACH, EACH);
		MPI_Pready(i, s);
		while (!arrived(r, i))
			continue;
		check(in, 0, i * EACH, EACH);
	}
	MPI_Wait(&s, MPI_STATUS_IGNORE);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Request_free(&s);
	MPI_Request_free(&r);
}

/* A token that says that all have come here. */
static void together(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Receives begin before there is a send, and sends before a receive. */
static void early(int n)
{
	int *out = malloc((size_t)n * sizeof(int));
	int *in = calloc((size_t)n, sizeof(int));
	MPI_Request s, r;

	MPI_Precv_init(in, 2, n / 2, MPI_INT, previous, TAG, MPI_COMM_WORLD,
		       MPI_INFO_NULL, &r);
	MPI_Start(&r);
	EXPECT(!arrived(r, 0));
	together();
	MPI_Psend_init(out, 4, n / 4, MPI_INT, next, TAG, MPI_COMM_WORLD,
		       MPI_INFO_NULL, &s);
	MPI_Start(&s);
	ready(BACKWARD, s, out, 0, 4, n / 4);
	receive(&r, in, 0, 2, n / 2);
	MPI_Wait(&s, MPI_STATUS_IGNORE);
	/* The next round is sent before this one is begun over there. */
	MPI_Start(&s);
	ready(FORWARD, s, out, 1, 4, n / 4);
	together();
	MPI_Start(&r);
	receive(&r, in, 1, 2, n / 2);
	MPI_Wait(&s, MPI_STATUS_IGNORE);
	MPI_Request_free(&r);
	MPI_Request_free(&s);

	MPI_Psend_init(out, 4, n / 4, MPI_INT, next, TAG, MPI_COMM_WORLD,
		       MPI_INFO_NULL, &s);
	MPI_Start(&s);
	ready(FORWARD, s, out, 2, 4, n / 4);
	together();
	MPI_Precv_init(in, 2, n / 2, MPI_INT, previous, TAG, MPI_COMM_WORLD,
		       MPI_INFO_NULL, &r);
	MPI_Start(&r);
	receive(&r, in, 2, 2, n / 2);
	MPI_Wait(&s, MPI_STATUS_IGNORE);
	MPI_Request_free(&r);
	MPI_Request_free(&s);
	free(out);
	free(in);
}

/* Two of the same tag and one of another, on two communicators. */
static void meetings(void)
{
	static const int tag[] = { 3, 3, 4, 3 };
	MPI_Request s[4], r[4];
	MPI_Comm comm[4];
	int out[4], in[4], flag;

	for (int i = 0; i < 3; i++)
		comm[i] = MPI_COMM_WORLD;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm[3]);
	for (int i = 0; i < 4; i++) {
		MPI_Psend_init(&out[i], 1, 1, MPI_INT, next, tag[i], comm[i],
			       MPI_INFO_NULL, &s[i]);
		/* Those of other tags and communicators in another order. */
		MPI_Precv_init(&in[3 - i], 1, 1, MPI_INT, previous, tag[3 - i],
			       comm[3 - i], MPI_INFO_NULL, &r[3 - i]);
		out[i] = 100 * rank + i;
	}
	MPI_Startall(4, r);
	MPI_Startall(4, s);
	for (int i = 3; i >= 0; i--)
		MPI_Pready(0, s[i]);
	MPI_Request_get_status_all(4, s, &flag, MPI_STATUSES_IGNORE);
	MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
	MPI_Waitall(4, s, MPI_STATUSES_IGNORE);
	/* The receives of the same tag were made last first. */
	EXPECT_INT(in[0], 100 * previous + 1);
	EXPECT_INT(in[1], 100 * previous + 0);
	EXPECT_INT(in[2], 100 * previous + 2);
	EXPECT_INT(in[3], 100 * previous + 3);
	for (int i = 0; i < 4; i++) {
		MPI_Request_free(&s[i]);
		MPI_Request_free(&r[i]);
	}
	MPI_Comm_free(&comm[3]);
}

/* Freed before the other end is made: the next one is no end of it. */
static void never_started(void)
{
	int out[2] = { 1, 2 }, in[2] = { 0, 0 };
	MPI_Request s[2], r[2];

	MPI_Precv_init(&in[0], 1, 1, MPI_INT, previous, TAG, MPI_COMM_WORLD,
		       MPI_INFO_NULL, &r[0]);
	MPI_Request_free(&r[0]);
	together();
	for (int i = 0; i < 2; i++)
		MPI_Psend_init(&out[i], 1, 1, MPI_INT, next, TAG,
			       MPI_COMM_WORLD, MPI_INFO_NULL, &s[i]);
	MPI_Request_free(&s[0]);
	MPI_Precv_init(&in[1], 1, 1, MPI_INT, previous, TAG, MPI_COMM_WORLD,
		       MPI_INFO_NULL, &r[1]);
	MPI_Start(&r[1]);
	MPI_Start(&s[1]);
	MPI_Pready(0, s[1]);
	MPI_Wait(&r[1], MPI_STATUS_IGNORE);
	MPI_Wait(&s[1], MPI_STATUS_IGNORE);
	EXPECT(in[0] == 0 && in[1] == 2);
	MPI_Request_free(&s[1]);
	MPI_Request_free(&r[1]);
}

/* The same of many: each is an end of what is made then, and none is lost. */
static void many_never_started(void)
{
	int out[2] = { 1, 2 }, in[2] = { 0, 0 };
	MPI_Request s, r;

	for (int i = 0; i < FREED; i++) {
		MPI_Precv_init(&in[0], 1, 1, MPI_INT, 0, i, MPI_COMM_SELF,
			       MPI_INFO_NULL, &r);
		MPI_Request_free(&r);
	}
	for (int i = 0; i < FREED; i++) {
		MPI_Psend_init(&out[0], 1, 1, MPI_INT, 0, i, MPI_COMM_SELF,
			       MPI_INFO_NULL, &s);
		MPI_Request_free(&s);
	}
	MPI_Psend_init(&out[1], 1, 1, MPI_INT, 0, 0, MPI_COMM_SELF,
		       MPI_INFO_NULL, &s);
	MPI_Precv_init(&in[1], 1, 1, MPI_INT, 0, 0, MPI_COMM_SELF,
		       MPI_INFO_NULL, &r);
	MPI_Start(&r);
	MPI_Start(&s);
	MPI_Pready(0, s);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Wait(&s, MPI_STATUS_IGNORE);
	EXPECT(in[0] == 0 && in[1] == 2);
	MPI_Request_free(&s);
	MPI_Request_free(&r);
}

static void nobody(void)
{
	const MPI_Count many = (MPI_Count)1 << 31;
	int x[4] = { 0 }, flag;
	MPI_Request s, r;
	MPI_Status st;

	/* More elements than an int can say: the functions have no other form.
	 */
	MPI_Psend_init(x, 2, many, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
		       MPI_INFO_NULL, &s);
	MPI_Precv_init(x, 2, many, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD,
		       MPI_INFO_NULL, &r);
	for (int round = 0; round < 2; round++) {
		MPI_Start(&s);
		MPI_Start(&r);
		MPI_Pready(1, s);
		MPI_Test(&s, &flag, &st);
		EXPECT(!flag);
		MPI_Pready(0, s);
		MPI_Wait(&s, &st);
		expect_all(r, 2);
		MPI_Wait(&r, &st);
		EXPECT_INT(st.MPI_SOURCE, MPI_PROC_NULL);
	}
	MPI_Request_free(&s);
	MPI_Request_free(&r);
}

/* Parrived of a null request answers as Test does. */
static void partitions_of_a_null_request_have_arrived(void)
{
	int flag = 0;

	EXPECT_INT(MPI_Parrived(MPI_REQUEST_NULL, 0, &flag), MPI_SUCCESS);
	EXPECT_INT(flag, 1);
}

/* --- what is wrong --- */

static void misuse(void)
{
	int x[4], flag, list[2] = { 1, 4 };
	MPI_Request s, r, kept;

	FAILS(MPI_Precv_init(x, 4, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_SELF,
			     MPI_INFO_NULL, &r),
	      MPI_ERR_RANK);
	FAILS(MPI_Precv_init(x, 4, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_SELF,
			     MPI_INFO_NULL, &r),
	      MPI_ERR_TAG);
	FAILS(MPI_Psend_init(x, -1, 1, MPI_INT, 0, 0, MPI_COMM_SELF,
			     MPI_INFO_NULL, &s),
	      MPI_ERR_ARG);
	FAILS(MPI_Psend_init(x, 4, (MPI_Count)1 << 61, MPI_BYTE, 0, 0,
			     MPI_COMM_SELF, MPI_INFO_NULL, &s),
	      MPI_ERR_COUNT);
	FAILS(MPI_Precv_init(x, 4, (MPI_Count)1 << 61, MPI_BYTE, 0, 0,
			     MPI_COMM_SELF, MPI_INFO_NULL, &r),
	      MPI_ERR_COUNT);
	MPI_Psend_init(x, 4, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL,
		       &s);
	MPI_Precv_init(x, 4, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL,
		       &r);
	FAILS(MPI_Pready(0, s), MPI_ERR_REQUEST);
	MPI_Start(&s);
	MPI_Start(&r);
	FAILS(MPI_Start(&s), MPI_ERR_REQUEST);
	FAILS(MPI_Pready(4, s), MPI_ERR_ARG);
	FAILS(MPI_Pready(-1, s), MPI_ERR_ARG);
	FAILS(MPI_Pready(0, r), MPI_ERR_REQUEST);
	FAILS(MPI_Parrived(s, 0, &flag), MPI_ERR_REQUEST);
	FAILS(MPI_Parrived(r, 4, &flag), MPI_ERR_ARG);
	FAILS(MPI_Pready_range(2, 1, s), MPI_ERR_ARG);
	FAILS(MPI_Pready_range(2, 4, s), MPI_ERR_ARG);
	FAILS(MPI_Pready_list(2, list, s), MPI_ERR_ARG);
	FAILS(MPI_Cancel(&r), MPI_ERR_REQUEST);
	kept = s;
	FAILS(MPI_Request_free(&s), MPI_ERR_REQUEST);
	EXPECT(s == kept);
	MPI_Pready(1, s);
	FAILS(MPI_Pready(1, s), MPI_ERR_ARG);
	FAILS(MPI_Pready_range(1, 1, s), MPI_ERR_ARG);
	MPI_Pready(0, s);
	MPI_Pready_range(2, 3, s);
	MPI_Wait(&s, MPI_STATUS_IGNORE);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	FAILS(MPI_Pready(0, s), MPI_ERR_REQUEST);
	MPI_Request_free(&s);
	MPI_Request_free(&r);
}

/* Two ends of different sizes are told so, and nothing else is written to. */
static void mismatch(int sent, int room, int class)
{
	int out[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, in[10] = { 0 };
	MPI_Request s, r;

	MPI_Psend_init(out, sent, 1, MPI_INT, 0, 0, MPI_COMM_SELF,
		       MPI_INFO_NULL, &s);
	MPI_Precv_init(in, 1, room, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL,
		       &r);
	for (int round = 0; round < 2; round++) {
		MPI_Start(&r);
		MPI_Start(&s);
		MPI_Pready_range(0, sent - 1, s);
		FAILS(MPI_Wait(&r, MPI_STATUS_IGNORE), class);
		MPI_Wait(&s, MPI_STATUS_IGNORE);
		EXPECT_INT(in[0], 1);
		EXPECT_INT(in[room], 0);
	}
	MPI_Request_free(&s);
	MPI_Request_free(&r);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	next = (rank + 1) % size;
	previous = (rank - 1 + size) % size;
	divisions();
	for (int i = 0; i < 4; i++)
		in_pieces(i & 1, i >> 1);
	one_by_one();
	early(64);
	early(400000);
	meetings();
	never_started();
	many_never_started();
	nobody();
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	partitions_of_a_null_request_have_arrived();
	misuse();
	mismatch(8, 5, MPI_ERR_TRUNCATE);
	mismatch(5, 8, MPI_ERR_COUNT);
	return program_end("partitioned");
}
