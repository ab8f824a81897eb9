/*
 * With MADMPI_CHECK=2 a message whose elements are not those of its receive is
 * an error of the receive, however the two were called. What fits passes.
 *
 * Each process sends to the next and receives from the one before. Without
 * arguments all of it; with the name of a case that one, whose error ends the
 * job.
 */
#include "../program.h"
#include "../two_groups.h"

enum { TAG = 5, LARGE = 1 << 18, ROOM = 8 * LARGE + 1024 };

/* One side of a message: what is named in a call. */
struct side {
	void *buf;
	int count;
	MPI_Datatype type;
	int peer;
	MPI_Comm comm;
};

static double out[ROOM / 8], in[ROOM / 8];
static char attached[2 * ROOM];

#define ARGS(s) (s)->buf, (s)->count, (s)->type, (s)->peer, TAG, (s)->comm

/* Peers of this process in the ring, or between the halves. */
static void peers(MPI_Comm comm, int *to, int *from)
{
	int inter_, n, own;

	MPI_Comm_test_inter(comm, &inter_);
	MPI_Comm_rank(comm, &own);
	MPI_Comm_size(comm, &n);
	*to = (own + 1) % n;
	*from = (own + n - 1) % n;
	if (inter_) /* pairs; the last of a larger half has nobody */
		*to = *from = own < nothers ? own : MPI_PROC_NULL;
}

/* --- ways to send; each is begun after its receive was posted --- */

#define BLOCKING(name)                                                         \
	static void by_##name(const struct side *s, MPI_Request *r)            \
	{                                                                      \
		*r = MPI_REQUEST_NULL;                                         \
		MPI_##name(ARGS(s));                                           \
	}
#define BEGUN(name)                                                            \
	static void by_##name(const struct side *s, MPI_Request *r)            \
	{                                                                      \
		MPI_##name(ARGS(s), r);                                        \
	}
#define STARTED(name)                                                          \
	static void by_##name(const struct side *s, MPI_Request *r)            \
	{                                                                      \
		MPI_##name(ARGS(s), r);                                        \
		MPI_Start(r);                                                  \
	}
BLOCKING(Send)
BLOCKING(Bsend)
BLOCKING(Ssend)
BLOCKING(Rsend)
BEGUN(Isend)
BEGUN(Ibsend)
BEGUN(Issend)
BEGUN(Irsend)
STARTED(Send_init)
STARTED(Bsend_init)
STARTED(Ssend_init)
STARTED(Rsend_init)

static void by_Send_c(const struct side *s, MPI_Request *r)
{
	*r = MPI_REQUEST_NULL;
	MPI_Send_c(ARGS(s));
}

typedef void send_fn(const struct side *s, MPI_Request *r);

static send_fn *const sends[] = {
	by_Send,       by_Bsend,      by_Ssend,      by_Rsend,  by_Isend,
	by_Ibsend,     by_Issend,     by_Irsend,     by_Send_c, by_Send_init,
	by_Bsend_init, by_Ssend_init, by_Rsend_init,
};

/* Of a request that may be persistent. */
static void end_send(MPI_Request *r)
{
	MPI_Wait(r, MPI_STATUS_IGNORE);
	if (*r != MPI_REQUEST_NULL)
		MPI_Request_free(r);
}

/* --- ways to receive; the error each returns --- */

static int by_recv(const struct side *s, MPI_Status *st)
{
	return MPI_Recv(ARGS(s), st);
}

static int by_recv_of_any(const struct side *s, MPI_Status *st)
{
	return MPI_Recv(s->buf, s->count, s->type, MPI_ANY_SOURCE, MPI_ANY_TAG,
			s->comm, st);
}

static int by_recv_c(const struct side *s, MPI_Status *st)
{
	return MPI_Recv_c(ARGS(s), st);
}

static int by_wait(const struct side *s, MPI_Status *st)
{
	MPI_Request r;

	MPI_Irecv(ARGS(s), &r);
	return MPI_Wait(&r, st);
}

static int by_test(const struct side *s, MPI_Status *st)
{
	MPI_Request r;
	int flag = 0, rc;

	MPI_Irecv(ARGS(s), &r);
	do
		rc = MPI_Test(&r, &flag, st);
	while (!flag);
	return rc;
}

static int by_waitany(const struct side *s, MPI_Status *st)
{
	MPI_Request r;
	int index;

	MPI_Irecv(ARGS(s), &r);
	return MPI_Waitany(1, &r, &index, st);
}

static int by_testany(const struct side *s, MPI_Status *st)
{
	MPI_Request r;
	int index, flag = 0, rc;

	MPI_Irecv(ARGS(s), &r);
	do
		rc = MPI_Testany(1, &r, &index, &flag, st);
	while (!flag);
	return rc;
}

/* Those of several requests have the error in the status. */
static int in_status(int rc, const MPI_Status *st)
{
	if (rc == MPI_SUCCESS)
		return rc;
	FAILS(rc, MPI_ERR_IN_STATUS);
	return st->MPI_ERROR;
}

static int by_waitall(const struct side *s, MPI_Status *st)
{
	MPI_Request r;

	MPI_Irecv(ARGS(s), &r);
	return in_status(MPI_Waitall(1, &r, st), st);
}

static int by_testall(const struct side *s, MPI_Status *st)
{
	MPI_Request r;
	int flag = 0, rc;

	MPI_Irecv(ARGS(s), &r);
	do
		rc = MPI_Testall(1, &r, &flag, st);
	while (!flag);
	return in_status(rc, st);
}

static int by_waitsome(const struct side *s, MPI_Status *st)
{
	MPI_Request r;
	int n, index;

	MPI_Irecv(ARGS(s), &r);
	return in_status(MPI_Waitsome(1, &r, &n, &index, st), st);
}

/* Later rounds of a request are compared as the first is. */
static int by_start(const struct side *s, MPI_Status *st)
{
	MPI_Datatype other = s->type == MPI_BYTE ? MPI_INT : MPI_BYTE;
	int class = s->type == MPI_PACKED ? MPI_SUCCESS : MPI_ERR_TYPE;
	MPI_Request r, send;
	int rc, to, from;

	if (s->count == 0)
		class = MPI_ERR_TRUNCATE;
	peers(s->comm, &to, &from);
	MPI_Recv_init(ARGS(s), &r);
	MPI_Start(&r);
	rc = MPI_Wait(&r, st);
	for (int n = 1; n >= 0; n--) {
		MPI_Isend(out, n, other, to, TAG, s->comm, &send);
		MPI_Start(&r);
		FAILS(MPI_Wait(&r, MPI_STATUS_IGNORE),
		      n > 0 ? class : MPI_SUCCESS);
		MPI_Wait(&send, MPI_STATUS_IGNORE);
	}
	MPI_Request_free(&r);
	return rc;
}

static int by_mrecv(const struct side *s, MPI_Status *st)
{
	MPI_Message m;

	MPI_Mprobe(s->peer, TAG, s->comm, &m, MPI_STATUS_IGNORE);
	return MPI_Mrecv(s->buf, s->count, s->type, &m, st);
}

static int by_imrecv(const struct side *s, MPI_Status *st)
{
	MPI_Message m;
	MPI_Request r;
	int flag = 0;

	while (!flag)
		MPI_Improbe(MPI_ANY_SOURCE, TAG, s->comm, &flag, &m,
			    MPI_STATUS_IGNORE);
	MPI_Imrecv(s->buf, s->count, s->type, &m, &r);
	return MPI_Wait(&r, st);
}

static int by_sendrecv(const struct side *s, MPI_Status *st)
{
	return MPI_Sendrecv(NULL, 0, MPI_INT, MPI_PROC_NULL, TAG, ARGS(s), st);
}

static int by_replace(const struct side *s, MPI_Status *st)
{
	return MPI_Sendrecv_replace(s->buf, s->count, s->type, MPI_PROC_NULL,
				    TAG, s->peer, TAG, s->comm, st);
}

static int by_isendrecv(const struct side *s, MPI_Status *st)
{
	MPI_Request r;

	MPI_Isendrecv(NULL, 0, MPI_INT, MPI_PROC_NULL, TAG, ARGS(s), &r);
	return MPI_Wait(&r, st);
}

static int by_ireplace(const struct side *s, MPI_Status *st)
{
	MPI_Request r;

	MPI_Isendrecv_replace(s->buf, s->count, s->type, MPI_PROC_NULL, TAG,
			      s->peer, TAG, s->comm, &r);
	return MPI_Wait(&r, st);
}

typedef int recv_fn(const struct side *s, MPI_Status *st);

static recv_fn *const recvs[] = {
	by_recv,      by_recv_of_any, by_recv_c,  by_wait,     by_test,
	by_waitany,   by_testany,     by_waitall, by_testall,  by_waitsome,
	by_start,     by_mrecv,       by_imrecv,  by_sendrecv, by_replace,
	by_isendrecv, by_ireplace,
};

/* --- one message in each way --- */

enum { SENDS = sizeof(sends) / sizeof(*sends) };
enum { RECVS = sizeof(recvs) / sizeof(*recvs) };

/* The receive is posted before, whichever way the message is sent. */
static void each_send(const struct side *s, const struct side *r, int class)
{
	MPI_Request recv, send;

	for (int i = 0; i < SENDS; i++) {
		MPI_Irecv(ARGS(r), &recv);
		MPI_Barrier(MPI_COMM_WORLD);
		sends[i](s, &send);
		FAILS(MPI_Wait(&recv, MPI_STATUS_IGNORE), class);
		end_send(&send);
	}
}

/* The message may be there before, and is in every second case. */
static void each_recv(const struct side *s, const struct side *r, int class)
{
	MPI_Request send;
	MPI_Status st;

	for (int i = 0; i < RECVS; i++) {
		MPI_Isend(ARGS(s), &send);
		if (i % 2 == 0)
			MPI_Probe(r->peer, TAG, r->comm, &st);
		FAILS(recvs[i](r, &st), class);
		MPI_Wait(&send, MPI_STATUS_IGNORE);
	}
}

/* The same call sends, of which a copy travels. */
static void replaced(const struct side *s, const struct side *r, int class)
{
	MPI_Request recv, both;

	for (int i = 0; i < 2; i++) {
		MPI_Irecv(ARGS(r), &recv);
		if (i == 0)
			MPI_Sendrecv_replace(s->buf, s->count, s->type, s->peer,
					     TAG, MPI_PROC_NULL, TAG, s->comm,
					     MPI_STATUS_IGNORE);
		else
			MPI_Isendrecv_replace(s->buf, s->count, s->type,
					      s->peer, TAG, MPI_PROC_NULL, TAG,
					      s->comm, &both);
		FAILS(MPI_Wait(&recv, MPI_STATUS_IGNORE), class);
		if (i == 1)
			MPI_Wait(&both, MPI_STATUS_IGNORE);
	}
}

static void each_way(MPI_Comm comm, int scount, MPI_Datatype stype, int rcount,
		     MPI_Datatype rtype, int class)
{
	struct side s = { out, scount, stype, 0, comm };
	struct side r = { in, rcount, rtype, 0, comm };

	peers(comm, &s.peer, &r.peer);
	if (s.peer == MPI_PROC_NULL) {
		for (int i = 0; i < SENDS; i++)
			MPI_Barrier(MPI_COMM_WORLD);
		return;
	}
	each_send(&s, &r, class);
	each_recv(&s, &r, class);
	replaced(&s, &r, class);
}

/* --- what fits --- */

static MPI_Datatype int_double, double_int, five, every_second, named, alike,
	packed_part, char_short, nested, deep;

static MPI_Datatype record(int n, const MPI_Datatype types[])
{
	int blocks[8];
	MPI_Aint displs[8];
	MPI_Datatype t;

	for (int i = 0; i < n; i++) {
		blocks[i] = 1;
		displs[i] = 16 * i;
	}
	MPI_Type_create_struct(n, blocks, displs, types, &t);
	MPI_Type_commit(&t);
	return t;
}

/* So many levels, each with the one below twice, and a short between. */
static MPI_Datatype nest(int levels)
{
	int blocks[] = { 1, 1, 1 };
	MPI_Aint displs[3] = { 0 };
	MPI_Datatype types[] = { MPI_CHAR, MPI_SHORT, MPI_CHAR }, t;
	MPI_Count bytes;

	for (int i = 0; i < levels; i++) {
		MPI_Type_size_c(types[0], &bytes);
		displs[1] = bytes;
		displs[2] = bytes + (MPI_Count)sizeof(short);
		MPI_Type_create_struct(3, blocks, displs, types, &t);
		if (i > 0)
			MPI_Type_free(&types[0]);
		MPI_Type_create_resized(t, 0, displs[2] + bytes, &types[0]);
		MPI_Type_free(&t);
		types[2] = types[0];
	}
	MPI_Type_commit(&types[0]);
	return types[0];
}

static void make_types(void)
{
	MPI_Datatype of[] = { MPI_INT, MPI_DOUBLE, MPI_INT, MPI_DOUBLE,
			      MPI_INT };
	MPI_Datatype float_int[] = { MPI_FLOAT, MPI_INT };
	MPI_Datatype part[] = { MPI_INT, MPI_PACKED };
	MPI_Datatype chars[] = { MPI_CHARACTER, MPI_SHORT };

	int_double = record(2, of);
	double_int = record(2, of + 1);
	five = record(5, of);
	alike = record(2, float_int);
	packed_part = record(2, part);
	char_short = record(2, chars);
	nested = nest(12);
	deep = nest(60);
	MPI_Type_vector(3, 1, 2, MPI_DOUBLE, &every_second);
	MPI_Type_commit(&every_second);
	MPI_Type_dup(MPI_DOUBLE, &named);
}

static void free_types(void)
{
	MPI_Datatype *all[] = { &int_double, &double_int,  &five,
				&alike,      &packed_part, &every_second,
				&named,      &char_short,  &nested,
				&deep };

	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++)
		MPI_Type_free(all[i]);
}

static void fitting_messages_pass_and_others_fail(MPI_Comm comm)
{
	const struct {
		int scount;
		MPI_Datatype stype;
		int rcount;
		MPI_Datatype rtype;
		int class;
	} cases[] = {
		{ 3, MPI_DOUBLE, 6, MPI_FLOAT, MPI_ERR_TYPE },
		{ LARGE, MPI_DOUBLE, 2 * LARGE, MPI_FLOAT, MPI_ERR_TYPE },
		{ LARGE, MPI_DOUBLE, LARGE, MPI_DOUBLE, MPI_SUCCESS },
		{ 3, MPI_DOUBLE, 6, MPI_DOUBLE, MPI_SUCCESS },
		{ 0, MPI_DOUBLE, 6, MPI_FLOAT, MPI_SUCCESS },
		{ 0, MPI_DOUBLE, 0, MPI_FLOAT, MPI_SUCCESS },
		{ 3, MPI_INT, 3, MPI_INT32_T, MPI_SUCCESS },
		{ 3, MPI_INT, 3, MPI_INTEGER, MPI_SUCCESS },
		{ 3, MPI_LONG, 3, MPI_AINT, MPI_SUCCESS },
		{ 3, MPI_CHAR, 3, MPI_SIGNED_CHAR, MPI_SUCCESS },
		{ 3, MPI_CHAR, 3, MPI_CHARACTER, MPI_SUCCESS },
		{ 3, MPI_CHARACTER, 3, MPI_UNSIGNED_CHAR, MPI_ERR_TYPE },
		{ 3, MPI_WCHAR, 3, MPI_WCHAR, MPI_SUCCESS },
		{ 3, MPI_WCHAR, 3, MPI_COMPLEX4, MPI_ERR_TYPE },
		{ 3, MPI_INT, 3, MPI_UNSIGNED, MPI_ERR_TYPE },
		{ 3, MPI_INT, 3, MPI_FLOAT, MPI_ERR_TYPE },
		{ 4, MPI_INT, 2, MPI_DOUBLE, MPI_ERR_TYPE },
		{ 8, MPI_BYTE, 8, MPI_BYTE, MPI_SUCCESS },
		{ 8, MPI_BYTE, 2, MPI_INT, MPI_ERR_TYPE },
		{ 2, MPI_INT, 8, MPI_BYTE, MPI_ERR_TYPE },
		{ 8, MPI_CHAR, 8, MPI_BYTE, MPI_ERR_TYPE },
		{ 8, MPI_PACKED, 1, MPI_DOUBLE, MPI_SUCCESS },
		{ 1, MPI_DOUBLE, 64, MPI_PACKED, MPI_SUCCESS },
		{ 1, packed_part, 5, MPI_BYTE, MPI_SUCCESS },
		{ 2, MPI_C_COMPLEX, 4, MPI_FLOAT, MPI_ERR_TYPE },
		{ 3, named, 3, MPI_DOUBLE, MPI_SUCCESS },
		{ 3, MPI_DOUBLE, 1, every_second, MPI_SUCCESS },
		{ 1, every_second, 6, MPI_FLOAT, MPI_ERR_TYPE },
		{ 3, MPI_FLOAT_INT, 3, alike, MPI_SUCCESS },
		{ 1, int_double, 1, double_int, MPI_ERR_TYPE },
		{ 2, int_double, 1, five, MPI_SUCCESS },
		{ 1, five, 3, int_double, MPI_SUCCESS },
		{ 1, MPI_INT, 1, int_double, MPI_SUCCESS },
		{ 1, MPI_DOUBLE, 1, int_double, MPI_ERR_TYPE },
		{ 99, char_short, 1, nested, MPI_SUCCESS },
		{ 99, MPI_CHAR, 1, nested, MPI_ERR_TYPE },
		{ 2, nested, 8192, char_short, MPI_ERR_TYPE },
		{ 0, deep, 0, deep, MPI_SUCCESS },
		/* Truncation takes precedence. */
		{ 6, MPI_DOUBLE, 3, MPI_FLOAT, MPI_ERR_TRUNCATE },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		each_way(comm, cases[i].scount, cases[i].stype, cases[i].rcount,
			 cases[i].rtype, cases[i].class);
}

/* --- other things that must hold --- */

/* The program sees its own bytes only, whoever asks. */
static void counts_are_of_the_data(MPI_Comm comm)
{
	int to, from, n;
	MPI_Request send;
	MPI_Message m;
	MPI_Status st;

	peers(comm, &to, &from);
	for (int count = 0; count <= LARGE; count += LARGE / 2) {
		MPI_Isend(out, count, MPI_DOUBLE, to, TAG, comm, &send);
		MPI_Probe(from, TAG, comm, &st);
		MPI_Get_count(&st, MPI_DOUBLE, &n);
		EXPECT_INT(n, count);
		MPI_Mprobe(from, TAG, comm, &m, &st);
		MPI_Get_count(&st, MPI_DOUBLE, &n);
		EXPECT_INT(n, count);
		MPI_Mrecv(in, LARGE, MPI_DOUBLE, &m, &st);
		MPI_Get_count(&st, MPI_DOUBLE, &n);
		EXPECT_INT(n, count);
		MPI_Wait(&send, MPI_STATUS_IGNORE);
	}
}

/* All that fits in the buffer is there, and the status says how much. */
static void a_cut_message_has_its_beginning(MPI_Comm comm)
{
	int to, from, n;
	MPI_Request send;
	MPI_Status st;

	peers(comm, &to, &from);
	for (int i = 0; i < 6; i++)
		out[i] = i + 1;
	in[2] = in[3] = -1;
	MPI_Isend(out, 6, MPI_DOUBLE, to, TAG, comm, &send);
	FAILS(MPI_Recv(in, 3, MPI_DOUBLE, from, TAG, comm, &st),
	      MPI_ERR_TRUNCATE);
	MPI_Get_count(&st, MPI_DOUBLE, &n);
	EXPECT_INT(n, 3);
	EXPECT(in[0] == 1 && in[2] == 3 && in[3] == -1);
	MPI_Wait(&send, MPI_STATUS_IGNORE);
}

static void a_cancelled_receive_is_no_mismatch(MPI_Comm comm)
{
	MPI_Request r;
	MPI_Status st;
	int to, from, flag;

	peers(comm, &to, &from);
	MPI_Irecv(in, 3, MPI_DOUBLE, from, TAG + 1, comm, &r);
	MPI_Cancel(&r);
	EXPECT_INT(MPI_Wait(&r, &st), MPI_SUCCESS);
	MPI_Test_cancelled(&st, &flag);
	EXPECT(flag);
}

/* Of partitions: by all of them together, in each round. */
static void partitions_are_compared(MPI_Comm comm, MPI_Datatype rtype,
				    int rcount, int class)
{
	MPI_Request r[2];
	MPI_Status st[2];
	int to, from, rc;

	peers(comm, &to, &from);
	MPI_Psend_init(out, 4, 3, MPI_DOUBLE, to, TAG, comm, MPI_INFO_NULL,
		       &r[0]);
	MPI_Precv_init(in, 2, rcount, rtype, from, TAG, comm, MPI_INFO_NULL,
		       &r[1]);
	for (int round = 0; round < 2; round++) {
		MPI_Startall(2, r);
		MPI_Pready_range(0, 3, r[0]);
		rc = MPI_Waitall(2, r, st);
		EXPECT_INT(class_of(rc),
			   class ? MPI_ERR_IN_STATUS : MPI_SUCCESS);
		EXPECT_INT(class_of(st[1].MPI_ERROR), class);
	}
	MPI_Request_free(&r[0]);
	MPI_Request_free(&r[1]);
}

static void all(MPI_Comm comm)
{
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	fitting_messages_pass_and_others_fail(comm);
}

/* --- one that ends the job --- */

static int one(const char *name)
{
	struct side s = { out, 3, MPI_DOUBLE, 0, MPI_COMM_WORLD };
	struct side r = { in, 6, MPI_FLOAT, 0, MPI_COMM_WORLD };
	MPI_Request send, part[2];
	MPI_Comm comm;
	MPI_Status st;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_name(comm, "ring");
	peers(comm, &s.peer, &r.peer);
	MPI_Barrier(comm);
	if (strcmp(name, "partitions") == 0) {
		MPI_Psend_init(out, 1, 3, MPI_DOUBLE, s.peer, TAG, comm,
			       MPI_INFO_NULL, &part[0]);
		MPI_Precv_init(in, 1, 6, MPI_FLOAT, r.peer, TAG, comm,
			       MPI_INFO_NULL, &part[1]);
		MPI_Startall(2, part);
		MPI_Pready(0, part[0]);
		return MPI_Wait(&part[1], &st);
	}
	if (strcmp(name, "inter") == 0) {
		s.comm = r.comm = inter;
		peers(inter, &s.peer, &r.peer);
	} else if (strcmp(name, "structs") == 0) {
		s.count = 2;
		s.type = five;
		r.type = MPI_BYTE;
		r.count = 100;
		s.comm = r.comm = comm;
	} else {
		s.comm = r.comm = comm;
	}
	MPI_Isend(ARGS(&s), &send);
	return strcmp(name, "waitall") ? by_recv(&r, &st) : by_waitall(&r, &st);
}

int main(int argc, char **argv)
{
	MPI_Comm comm;

	program_begin(&argc, &argv);
	make_types();
	if (size > 1)
		two_groups_begin();
	if (argc > 1)
		return one(argv[1]);
	EXPECT(calls_are_compared());
	MPI_Buffer_attach(attached, sizeof(attached));
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	all(comm);
	all(MPI_COMM_SELF);
	counts_are_of_the_data(comm);
	a_cut_message_has_its_beginning(comm);
	a_cancelled_receive_is_no_mismatch(comm);
	partitions_are_compared(comm, MPI_DOUBLE, 6, MPI_SUCCESS);
	partitions_are_compared(comm, every_second, 2, MPI_SUCCESS);
	partitions_are_compared(comm, MPI_FLOAT, 12, MPI_ERR_TYPE);
	MPI_Comm_free(&comm);
	if (size > 1) {
		all(inter);
		two_groups_end();
	}
	free_types();
	MPI_Buffer_detach(attached, &(int){ 0 });
	return program_end("pt2pt/signature");
}
