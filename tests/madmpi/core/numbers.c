/*
 * Handles as integers and back: constants are what they are, objects have a
 * number of their own while they live, and what is no handle has none. The
 * numbers are Fortran's handles.
 */
#include "../program.h"

#include <limits.h>
#include <pthread.h>

enum { MANY = 100000 / FEWER, ROUNDS = 10000, THREADS = 4 };

/* The program's own function stands before the library's, as a tool's does. */
static int calls_of_comm_c2f;

MPI_Fint MPI_Comm_c2f(MPI_Comm comm)
{
	calls_of_comm_c2f++;
	return PMPI_Comm_c2f(comm);
}

/* A handle and its number, in both spellings of all functions. */
#define GOES_ROUND(kind, handle)                                               \
	do {                                                                   \
		MPI_Fint number_ = MPI_##kind##_c2f(handle);                   \
		EXPECT(number_ != 0);                                          \
		EXPECT_INT(PMPI_##kind##_c2f(handle), number_);                \
		EXPECT_INT(MPI_##kind##_toint(handle), number_);               \
		EXPECT(MPI_##kind##_f2c(number_) == (handle));                 \
		EXPECT(PMPI_##kind##_f2c(number_) == (handle));                \
		EXPECT(MPI_##kind##_fromint(number_) == (handle));             \
	} while (0)

/* No handle at all: neither an object nor a null handle. */
#define IS_NONE(kind, number, handle)                                          \
	do {                                                                   \
		EXPECT(MPI_##kind##_f2c(number) == NULL);                      \
		EXPECT_INT(MPI_##kind##_c2f(handle), 0);                       \
	} while (0)

static void fortran_constants(void)
{
	GOES_ROUND(Comm, MPI_COMM_NULL);
	GOES_ROUND(Comm, MPI_COMM_WORLD);
	GOES_ROUND(Comm, MPI_COMM_SELF);
	GOES_ROUND(Errhandler, MPI_ERRHANDLER_NULL);
	GOES_ROUND(Errhandler, MPI_ERRORS_ARE_FATAL);
	GOES_ROUND(Errhandler, MPI_ERRORS_ABORT);
	GOES_ROUND(Errhandler, MPI_ERRORS_RETURN);
	GOES_ROUND(File, MPI_FILE_NULL);
	GOES_ROUND(Group, MPI_GROUP_NULL);
	GOES_ROUND(Group, MPI_GROUP_EMPTY);
	GOES_ROUND(Info, MPI_INFO_NULL);
	GOES_ROUND(Info, MPI_INFO_ENV);
	GOES_ROUND(Message, MPI_MESSAGE_NULL);
	GOES_ROUND(Message, MPI_MESSAGE_NO_PROC);
	GOES_ROUND(Op, MPI_OP_NULL);
	GOES_ROUND(Op, MPI_SUM);
	GOES_ROUND(Op, MPI_NO_OP);
	GOES_ROUND(Request, MPI_REQUEST_NULL);
	GOES_ROUND(Session, MPI_SESSION_NULL);
	GOES_ROUND(Type, MPI_DATATYPE_NULL);
	GOES_ROUND(Type, MPI_DOUBLE_PRECISION);
	GOES_ROUND(Type, MPI_COMPLEX32);
	GOES_ROUND(Win, MPI_WIN_NULL);
	EXPECT_INT(MPI_Comm_c2f(MPI_COMM_WORLD), 0x101);
	EXPECT(calls_of_comm_c2f > 0);
}

static void constants(void)
{
	EXPECT(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_WORLD)) ==
	       MPI_COMM_WORLD);
	EXPECT(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_NULL)) ==
	       MPI_COMM_NULL);
	EXPECT(MPI_Type_fromint(MPI_Type_toint(MPI_DOUBLE)) == MPI_DOUBLE);
	EXPECT(MPI_Op_fromint(MPI_Op_toint(MPI_SUM)) == MPI_SUM);
	EXPECT(MPI_Errhandler_fromint(MPI_Errhandler_toint(
		       MPI_ERRORS_RETURN)) == MPI_ERRORS_RETURN);
	EXPECT(MPI_Group_fromint(MPI_Group_toint(MPI_GROUP_EMPTY)) ==
	       MPI_GROUP_EMPTY);
	EXPECT(MPI_Info_fromint(MPI_Info_toint(MPI_INFO_ENV)) == MPI_INFO_ENV);
	EXPECT(MPI_Message_fromint(MPI_Message_toint(MPI_MESSAGE_NO_PROC)) ==
	       MPI_MESSAGE_NO_PROC);
	EXPECT(MPI_Request_fromint(MPI_Request_toint(MPI_REQUEST_NULL)) ==
	       MPI_REQUEST_NULL);
	EXPECT_INT(MPI_Comm_toint(MPI_COMM_WORLD), (long)MPI_COMM_WORLD);
}

/* Free one of many and make another, often: each has a number of its own. */
static void take_turns(MPI_Datatype *type, int *number)
{
	unsigned x = 12345;

	for (int i = 0; i < MANY; i++) {
		int at = (int)((x = x * 1664525 + 1013904223) >> 8) % MANY;

		MPI_Type_free(&type[at]);
		EXPECT(MPI_Type_fromint(number[at]) == 0);
		MPI_Type_contiguous(2, MPI_INT, &type[at]);
		number[at] = MPI_Type_toint(type[at]);
	}
	for (int i = 0; i < MANY; i++) {
		EXPECT(number[i] >= 4096);
		EXPECT_INT(MPI_Type_toint(type[i]), number[i]);
		EXPECT(MPI_Type_fromint(number[i]) == type[i]);
	}
}

static void objects(void)
{
	static MPI_Datatype type[MANY];
	static int number[MANY];
	MPI_Datatype another;
	int old;

	for (int i = 0; i < MANY; i++) {
		MPI_Type_contiguous(i + 1, MPI_INT, &type[i]);
		number[i] = MPI_Type_toint(type[i]);
		EXPECT(number[i] >= 4096);
		EXPECT(i == 0 || number[i] != number[i - 1]);
	}
	for (int i = 0; i < MANY; i++) {
		EXPECT_INT(MPI_Type_toint(type[i]), number[i]);
		EXPECT(MPI_Type_fromint(number[i]) == type[i]);
		EXPECT(MPI_Comm_fromint(number[i]) == 0);
	}
	take_turns(type, number);
	old = number[7];
	another = type[7];
	MPI_Type_free(&type[7]);
	EXPECT(MPI_Type_fromint(old) == 0);
	EXPECT_INT(MPI_Type_toint(another), 0);
	MPI_Type_contiguous(2, MPI_CHAR, &another);
	EXPECT_INT(MPI_Type_toint(another), old);
	EXPECT(MPI_Type_fromint(old) == another);
	MPI_Type_free(&another);
	for (int i = 0; i < MANY; i++)
		if (type[i] != MPI_DATATYPE_NULL)
			MPI_Type_free(&type[i]);
	EXPECT(MPI_Type_fromint(1 << 30) == 0 && MPI_Type_fromint(-5) == 0);
}

/* One object of each kind whose number ends with the object. */
static void kinds(void)
{
	MPI_Request request;
	MPI_Message message;
	MPI_Group group;
	MPI_Comm comm, kept;
	MPI_Info info;
	int x = 0, n[5];

	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	MPI_Comm_group(comm, &group);
	MPI_Info_create(&info);
	MPI_Isend(&x, 1, MPI_INT, 0, 0, comm, &request);
	MPI_Mprobe(0, 0, comm, &message, MPI_STATUS_IGNORE);
	n[0] = MPI_Comm_toint(comm);
	n[1] = MPI_Group_toint(group);
	n[2] = MPI_Info_toint(info);
	n[3] = MPI_Request_toint(request);
	n[4] = MPI_Message_toint(message);
	GOES_ROUND(Comm, comm);
	GOES_ROUND(Group, group);
	GOES_ROUND(Info, info);
	GOES_ROUND(Request, request);
	GOES_ROUND(Message, message);
	EXPECT_INT(MPI_Message_c2f(message), n[4]);
	kept = comm;
	MPI_Mrecv(&x, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	EXPECT(MPI_Request_fromint(n[3]) == 0);
	EXPECT(MPI_Message_fromint(n[4]) == 0);
	MPI_Info_free(&info);
	MPI_Group_free(&group);
	MPI_Comm_free(&comm);
	EXPECT(MPI_Comm_fromint(n[0]) == 0 && MPI_Info_fromint(n[2]) == 0);
	IS_NONE(Comm, n[0], kept);
}

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)in, (void)inout, (void)n, (void)type;
}

static void ignore(MPI_Comm *comm, int *code, ...)
{
	(void)comm, (void)code;
}

/*
 * tests/madmpi/session/sessions.c has sessions: after one, the objects of the
 * program stay until exit().
 */
static void other_kinds(void)
{
	MPI_Errhandler errhandler;
	MPI_Datatype type;
	MPI_Win win;
	MPI_Op op;

	MPI_Comm_create_errhandler(ignore, &errhandler);
	MPI_Type_vector(2, 1, 2, MPI_INT, &type);
	MPI_Op_create(add, 1, &op);
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &win);
	GOES_ROUND(Errhandler, errhandler);
	GOES_ROUND(Type, type);
	GOES_ROUND(Op, op);
	GOES_ROUND(Win, win);
	MPI_Win_free(&win);
	MPI_Op_free(&op);
	MPI_Type_free(&type);
	MPI_Errhandler_free(&errhandler);
}

/* A wrong number becomes no handle, and every function refuses that. */
static void wrong_numbers(void)
{
	static const MPI_Fint wrong[] = { 0, -1, INT_MIN, INT_MAX, 1 << 20 };
	MPI_Datatype type;
	int n, x = 0;

	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		IS_NONE(Comm, wrong[i], NULL);
		IS_NONE(Errhandler, wrong[i], NULL);
		IS_NONE(File, wrong[i], NULL);
		IS_NONE(Group, wrong[i], NULL);
		IS_NONE(Info, wrong[i], NULL);
		IS_NONE(Message, wrong[i], NULL);
		IS_NONE(Op, wrong[i], NULL);
		IS_NONE(Request, wrong[i], NULL);
		IS_NONE(Session, wrong[i], NULL);
		IS_NONE(Type, wrong[i], NULL);
		IS_NONE(Win, wrong[i], NULL);
		FAILS(MPI_Comm_rank(MPI_Comm_f2c(wrong[i]), &n), MPI_ERR_COMM);
		FAILS(MPI_Type_size(MPI_Type_f2c(wrong[i]), &n), MPI_ERR_TYPE);
		FAILS(MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_INT,
				    MPI_Op_f2c(wrong[i]), MPI_COMM_SELF),
		      MPI_ERR_OP);
	}
	/* A constant of another kind is no handle of this one either. */
	FAILS(MPI_Comm_rank(MPI_Comm_f2c(MPI_Type_c2f(MPI_INT)), &n),
	      MPI_ERR_COMM);
	MPI_Type_contiguous(2, MPI_INT, &type);
	IS_NONE(Comm, MPI_Type_c2f(type), (MPI_Comm)type);
	IS_NONE(File, MPI_Type_c2f(type), (MPI_File)type);
	MPI_Type_free(&type);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void *make(void *unused)
{
	MPI_Info info;

	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Info_create(&info);
		EXPECT(MPI_Info_fromint(MPI_Info_toint(info)) == info);
		MPI_Info_free(&info);
	}
	return NULL;
}

static void several_threads(void)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, make, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

static struct {
	int comm, group, type, op, request, errhandler;
	MPI_Errhandler handler;
} left;

/* Never freed. */
static void leave_some(void)
{
	static int x;
	MPI_Request request;
	MPI_Datatype type;
	MPI_Group group;
	MPI_Comm comm;
	MPI_Op op;

	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	MPI_Comm_group(comm, &group);
	MPI_Type_vector(2, 1, 2, MPI_INT, &type);
	MPI_Op_create(add, 1, &op);
	MPI_Send_init(&x, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
	MPI_Comm_create_errhandler(ignore, &left.handler);
	left.comm = MPI_Comm_toint(comm);
	left.group = MPI_Group_toint(group);
	left.type = MPI_Type_toint(type);
	left.op = MPI_Op_toint(op);
	left.request = MPI_Request_toint(request);
	left.errhandler = MPI_Errhandler_toint(left.handler);
}

/* What ends with MPI has no number any more; error handlers go on. */
static void after_the_end(void)
{
	EXPECT(MPI_Comm_fromint(left.comm) == 0);
	EXPECT(MPI_Group_fromint(left.group) == 0);
	EXPECT(MPI_Type_fromint(left.type) == 0);
	EXPECT(MPI_Op_fromint(left.op) == 0);
	EXPECT(MPI_Request_fromint(left.request) == 0);
	EXPECT(MPI_Errhandler_fromint(left.errhandler) == left.handler);
	MPI_Errhandler_free(&left.handler);
	EXPECT(MPI_Errhandler_fromint(left.errhandler) == 0);
}

int main(int argc, char **argv)
{
	constants();
	fortran_constants();
	program_begin(&argc, &argv);
	objects();
	kinds();
	other_kinds();
	wrong_numbers();
	several_threads();
	leave_some();
	program_end("numbers");
	after_the_end();
	fortran_constants();
	return 0;
}
