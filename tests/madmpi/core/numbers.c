/*
 * Handles as integers and back: constants are what they are, objects have a
 * number of their own while they live, and what is no handle has none.
 */
#include "../program.h"

#include <pthread.h>

enum { MANY = 1000, THREADS = 4 };

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

/* One of each other kind. */
static void kinds(void)
{
	MPI_Request request;
	MPI_Message message;
	MPI_Group group;
	MPI_Comm comm;
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
	EXPECT(MPI_Comm_fromint(n[0]) == comm);
	EXPECT(MPI_Group_fromint(n[1]) == group);
	EXPECT(MPI_Info_fromint(n[2]) == info);
	EXPECT(MPI_Request_fromint(n[3]) == request);
	EXPECT(MPI_Message_fromint(n[4]) == message);
	MPI_Mrecv(&x, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	EXPECT(MPI_Request_fromint(n[3]) == 0);
	EXPECT(MPI_Message_fromint(n[4]) == 0);
	MPI_Info_free(&info);
	MPI_Group_free(&group);
	MPI_Comm_free(&comm);
	EXPECT(MPI_Comm_fromint(n[0]) == 0 && MPI_Info_fromint(n[2]) == 0);
}

static void *make(void *unused)
{
	MPI_Info info;

	(void)unused;
	for (int i = 0; i < MANY; i++) {
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

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)in, (void)inout, (void)n, (void)type;
}

static void ignore(MPI_Comm *comm, int *code, ...)
{
	(void)comm, (void)code;
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
	program_begin(&argc, &argv);
	objects();
	kinds();
	several_threads();
	leave_some();
	program_end("numbers");
	after_the_end();
	return 0;
}
