/*
 * Wrong arguments give the right class, through the right error handler, and
 * the library goes on. Also: time, versions, names, the standard's odds and
 * ends of the environment.
 */
#include "../program.h"

/* A class of its own since MPI 4.1. */
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION > 0)
#define NO_HANDLER MPI_ERR_ERRHANDLER
#else
#define NO_HANDLER MPI_ERR_ARG
#endif

static int x[4];

static void point_to_point(void)
{
	MPI_Comm w = MPI_COMM_WORLD;
	MPI_Request r = MPI_REQUEST_NULL;
	MPI_Datatype fresh;
	MPI_Status st;
	int flag;

	FAILS(MPI_Send(x, 1, MPI_INT, 0, 0, MPI_COMM_NULL), MPI_ERR_COMM);
	FAILS(MPI_Send(x, -1, MPI_INT, 0, 0, w), MPI_ERR_COUNT);
	FAILS(MPI_Send(x, 1, MPI_INT, size, 0, w), MPI_ERR_RANK);
	FAILS(MPI_Send(x, 1, MPI_INT, -7, 0, w), MPI_ERR_RANK);
	FAILS(MPI_Send(x, 1, MPI_INT, MPI_ANY_SOURCE, 0, w), MPI_ERR_RANK);
	FAILS(MPI_Send(x, 1, MPI_INT, 0, -5, w), MPI_ERR_TAG);
	FAILS(MPI_Send(x, 1, MPI_INT, 0, MPI_ANY_TAG, w), MPI_ERR_TAG);
	FAILS(MPI_Send(x, 1, MPI_DATATYPE_NULL, 0, 0, w), MPI_ERR_TYPE);
	FAILS(MPI_Send(NULL, 1, MPI_INT, 0, 0, w), MPI_ERR_BUFFER);
	FAILS(MPI_Recv(x, 1, MPI_INT, size, 0, w, &st), MPI_ERR_RANK);
	FAILS(MPI_Recv(x, 1, MPI_INT, 0, -9, w, &st), MPI_ERR_TAG);
	FAILS(MPI_Recv(NULL, 1, MPI_INT, 0, 0, w, &st), MPI_ERR_BUFFER);
	FAILS(MPI_Irecv(x, -3, MPI_INT, 0, 0, w, &r), MPI_ERR_COUNT);
	FAILS(MPI_Isend(x, 1, MPI_INT, 99, 0, w, &r), MPI_ERR_RANK);
	FAILS(MPI_Probe(size, 0, w, &st), MPI_ERR_RANK);
	FAILS(MPI_Iprobe(0, -4, w, &flag, &st), MPI_ERR_TAG);
	FAILS(MPI_Sendrecv(x, 1, MPI_INT, 0, 0, x + 1, -1, MPI_INT, 0, 0, w,
			   &st),
	      MPI_ERR_COUNT);
	EXPECT(r == MPI_REQUEST_NULL);
	MPI_Type_contiguous(2, MPI_INT, &fresh);
	FAILS(MPI_Send(x, 1, fresh, 0, 0, w), MPI_ERR_TYPE);
	MPI_Type_free(&fresh);
	/* A null buffer is none where nothing is sent. */
	FAILS(MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, w), MPI_SUCCESS);
}

static void truncation(void)
{
	int next = (rank + 1) % size, previous = (rank - 1 + size) % size;
	int out[4] = { 1, 2, 3, 4 }, in[4] = { 0, 0, 77, 77 };
	MPI_Request r;

	MPI_Isend(out, 4, MPI_INT, next, 0, MPI_COMM_WORLD, &r);
	FAILS(MPI_Recv(in, 2, MPI_INT, previous, 0, MPI_COMM_WORLD,
		       MPI_STATUS_IGNORE),
	      MPI_ERR_TRUNCATE);
	EXPECT_INT(in[2], 77);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void objects(void)
{
	MPI_Comm comm = MPI_COMM_WORLD;
	MPI_Datatype type = MPI_INT, made;
	MPI_Op op = MPI_SUM;
	int blocks[2] = { 1, -1 }, displs[2] = { 0, 4 }, n;

	FAILS(MPI_Comm_free(&comm), MPI_ERR_COMM);
	FAILS(MPI_Comm_size(MPI_COMM_NULL, &n), MPI_ERR_COMM);
	FAILS(MPI_Comm_rank(MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
	FAILS(MPI_Type_free(&type), MPI_ERR_TYPE);
	FAILS(MPI_Op_free(&op), MPI_ERR_OP);
	FAILS(MPI_Type_contiguous(-1, MPI_INT, &made), MPI_ERR_COUNT);
	FAILS(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &made), MPI_ERR_TYPE);
	FAILS(MPI_Type_indexed(2, blocks, displs, MPI_INT, &made),
	      MPI_ERR_COUNT);
	FAILS(MPI_Type_size(MPI_DATATYPE_NULL, &n), MPI_ERR_TYPE);
	FAILS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL),
	      NO_HANDLER);
}

static void collectives(void)
{
	MPI_Comm w = MPI_COMM_WORLD;
	int y[4], n[64] = { 0 };

	FAILS(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM);
	FAILS(MPI_Bcast(x, 1, MPI_INT, size, w), MPI_ERR_ROOT);
	FAILS(MPI_Bcast(x, 1, MPI_INT, -1, w), MPI_ERR_ROOT);
	FAILS(MPI_Bcast(x, -1, MPI_INT, 0, w), MPI_ERR_COUNT);
	FAILS(MPI_Bcast(NULL, 1, MPI_INT, 0, w), MPI_ERR_BUFFER);
	FAILS(MPI_Allreduce(x, y, 1, MPI_DATATYPE_NULL, MPI_SUM, w),
	      MPI_ERR_TYPE);
	FAILS(MPI_Allreduce(x, y, 1, MPI_INT, MPI_OP_NULL, w), MPI_ERR_OP);
	FAILS(MPI_Allreduce(x, y, 1, MPI_INT, MPI_MINLOC, w), MPI_ERR_OP);
	FAILS(MPI_Allreduce(x, y, 1, MPI_DOUBLE, MPI_BAND, w), MPI_ERR_OP);
	FAILS(MPI_Allreduce(x, x, 1, MPI_INT, MPI_SUM, w), MPI_ERR_BUFFER);
	FAILS(MPI_Reduce(x, y, 1, MPI_INT, MPI_SUM, 99, w), MPI_ERR_ROOT);
	FAILS(MPI_Gather(x, -1, MPI_INT, y, 1, MPI_INT, 0, w), MPI_ERR_COUNT);
	n[0] = -1;
	FAILS(MPI_Allgatherv(x, 0, MPI_INT, y, n, n + 1, MPI_INT, w),
	      MPI_ERR_COUNT);
}

/* What this library finds out and others may crash on. */
static void freed_and_foreign_handles(void)
{
	MPI_Request r, copy;
	MPI_Comm comm, old;
	MPI_Datatype type, dead;
	int in, flag, n;

	MPI_Irecv(&in, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, &r);
	copy = r;
	MPI_Cancel(&r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
#ifdef MPI_ABI_VERSION
	FAILS(MPI_Wait(&copy, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
	FAILS(MPI_Test(&copy, &flag, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	old = comm;
	MPI_Comm_free(&comm);
	FAILS(MPI_Comm_size(old, &n), MPI_ERR_COMM);
	MPI_Type_dup(MPI_INT, &type);
	dead = type;
	MPI_Type_free(&type);
	FAILS(MPI_Type_size(dead, &n), MPI_ERR_TYPE);
	FAILS(MPI_Comm_size((MPI_Comm)0, &n), MPI_ERR_COMM);
	FAILS(MPI_Type_size((MPI_Datatype)0, &n), MPI_ERR_TYPE);
	FAILS(MPI_Comm_size((MPI_Comm)MPI_INT, &n), MPI_ERR_COMM);
	FAILS(MPI_Comm_split(MPI_COMM_WORLD, -5, 0, &comm), MPI_ERR_ARG);
	copy = (MPI_Request)0;
	FAILS(MPI_Wait(&copy, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
	MPI_Type_dup(MPI_INT, &type);
	FAILS(MPI_Comm_size((MPI_Comm)type, &n), MPI_ERR_COMM);
	MPI_Type_free(&type);
#else
	(void)copy, (void)comm, (void)old, (void)type, (void)dead, (void)flag;
	(void)n;
#endif
}

#ifdef MPI_ABI_VERSION
static void ignore(MPI_Comm *comm, int *code, ...)
{
	(void)comm, (void)code;
}

/* Freed by the program, and held by another object or by a communication. */
static void handles_of_what_is_still_used(void)
{
	MPI_Group group, gone;
	MPI_Datatype inner, outer, dead;
	MPI_Errhandler handler, old;
	MPI_Comm comm, copy;
	MPI_Request r;
	int n;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_group(comm, &group);
	gone = group;
	EXPECT_INT(MPI_Group_free(&group), MPI_SUCCESS);
	FAILS(MPI_Group_free(&gone), MPI_ERR_GROUP);
	FAILS(MPI_Group_size(gone, &n), MPI_ERR_GROUP);
	/* One handle for each time that it was asked for. */
	MPI_Comm_group(comm, &group);
	MPI_Comm_group(comm, &gone);
	EXPECT_INT(MPI_Group_free(&group), MPI_SUCCESS);
	EXPECT_INT(MPI_Group_free(&gone), MPI_SUCCESS);
	MPI_Comm_create_errhandler(ignore, &handler);
	MPI_Comm_set_errhandler(comm, handler);
	old = handler;
	EXPECT_INT(MPI_Errhandler_free(&handler), MPI_SUCCESS);
	FAILS(MPI_Errhandler_free(&old), NO_HANDLER);
	FAILS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, old), NO_HANDLER);
	MPI_Irecv(&n, 1, MPI_INT, rank, 3, comm, &r);
	copy = comm;
	MPI_Send(&rank, 1, MPI_INT, rank, 3, comm);
	EXPECT_INT(MPI_Comm_free(&comm), MPI_SUCCESS);
	FAILS(MPI_Comm_free(&copy), MPI_ERR_COMM);
	FAILS(MPI_Comm_disconnect(&copy), MPI_ERR_COMM);
	EXPECT_INT(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_SUCCESS);
	EXPECT_INT(n, rank);
	MPI_Type_vector(2, 1, 2, MPI_INT, &inner);
	MPI_Type_contiguous(2, inner, &outer);
	dead = inner;
	EXPECT_INT(MPI_Type_free(&inner), MPI_SUCCESS);
	FAILS(MPI_Type_free(&dead), MPI_ERR_TYPE);
	EXPECT_INT(MPI_Type_free(&outer), MPI_SUCCESS);
}
#endif

/* Only this library notices it. */
static void a_request_given_twice_is_ended_once(void)
{
#ifdef MPI_ABI_VERSION
	MPI_Request r[2];
	MPI_Status st[2];

	MPI_Irecv(x, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &r[0]);
	r[1] = r[0];
	MPI_Send(x + 1, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
	FAILS(MPI_Waitall(2, r, st), MPI_ERR_IN_STATUS);
	EXPECT_INT(st[0].MPI_ERROR, MPI_SUCCESS);
	EXPECT_INT(st[1].MPI_ERROR, MPI_ERR_REQUEST);
	EXPECT(r[0] == MPI_REQUEST_NULL && r[1] == MPI_REQUEST_NULL);
#endif
}

static int handled;

static void handler(MPI_Comm *comm, int *code, ...)
{
	int n;

	MPI_Comm_size(*comm, &n);
	handled = 100 * n + class_of(*code);
}

static void handlers_of_the_program_are_called(void)
{
	MPI_Errhandler e, got;
	MPI_Comm dup;

	MPI_Comm_create_errhandler(handler, &e);
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	MPI_Comm_set_errhandler(dup, e);
	MPI_Errhandler_free(&e);
	EXPECT(e == MPI_ERRHANDLER_NULL);
	FAILS(MPI_Send(x, 1, MPI_INT, size + 3, 0, dup), MPI_ERR_RANK);
	EXPECT_INT(handled, 100 * size + MPI_ERR_RANK);
	MPI_Comm_get_errhandler(dup, &got);
	MPI_Comm_call_errhandler(dup, MPI_ERR_OTHER);
	EXPECT_INT(handled, 100 * size + MPI_ERR_OTHER);
	MPI_Errhandler_free(&got);
	MPI_Comm_free(&dup);
}

static void environment(void)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING];
	int a = 0, b = -1, flag = 0;
	double t = MPI_Wtime();
	void *memory;

	EXPECT(MPI_Wtime() >= t);
	EXPECT(MPI_Wtick() > 0 && MPI_Wtick() < 1e-3);
	MPI_Get_version(&a, &b);
	EXPECT(a == MPI_VERSION && b == MPI_SUBVERSION);
	MPI_Get_library_version(text, &a);
	EXPECT_INT(strlen(text), a);
	MPI_Get_processor_name(text, &a);
	EXPECT_INT(strlen(text), a);
	EXPECT(a > 0);
	MPI_Initialized(&flag);
	EXPECT_INT(flag, 1);
	MPI_Finalized(&flag);
	EXPECT_INT(flag, 0);
	MPI_Is_thread_main(&flag);
	EXPECT_INT(flag, 1);
	MPI_Error_string(MPI_ERR_TRUNCATE, text, &a);
	EXPECT_INT(strlen(text), a);
	MPI_Alloc_mem(1000, MPI_INFO_NULL, &memory);
	memset(memory, 1, 1000);
	MPI_Free_mem(memory);
}

#ifdef MPI_ABI_VERSION
static void info_says(MPI_Info info, const char *key, const char *wanted)
{
	char value[16] = "";
	int flag = 0, room = sizeof(value);

	MPI_Info_get_string(info, key, &room, value, &flag);
	EXPECT_INT(flag, 1);
	if (strcmp(value, wanted) != 0)
		fprintf(stderr, "%s is %s, not %s\n", key, value, wanted);
	EXPECT(strcmp(value, wanted) == 0);
}

static void integers_of_the_abi_have_8_bytes(void)
{
	MPI_Info info = MPI_INFO_NULL;
	int nkeys = 0;

	EXPECT_INT(MPI_Abi_get_info(&info), MPI_SUCCESS);
	info_says(info, "mpi_aint_size", "8");
	info_says(info, "mpi_count_size", "8");
	info_says(info, "mpi_offset_size", "8");
	MPI_Info_get_nkeys(info, &nkeys);
	EXPECT_INT(nkeys, 3);
	MPI_Info_free(&info);
}

/* The info has the same sizes as MPI_Type_size. */
static void fortran_types_are_known(void)
{
	static const struct {
		const char *key;
		MPI_Datatype type;
	} sizes[] = { { "mpi_logical_size", MPI_LOGICAL },
		      { "mpi_integer_size", MPI_INTEGER },
		      { "mpi_real_size", MPI_REAL },
		      { "mpi_double_precision_size", MPI_DOUBLE_PRECISION } };
	static const char *const optional[] = {
		"logical1",  "logical2",       "logical4", "logical8",
		"logical16", "integer1",       "integer2", "integer4",
		"integer8",  "integer16",      "real2",    "real4",
		"real8",     "real16",         "complex4", "complex8",
		"complex16", "double_complex", "complex32"
	};
	MPI_Info info = MPI_INFO_NULL;
	char text[64];
	int nkeys = 0, bytes;

	EXPECT_INT(MPI_Abi_get_fortran_info(&info), MPI_SUCCESS);
	for (int i = 0; i < 4; i++) {
		MPI_Type_size(sizes[i].type, &bytes);
		snprintf(text, sizeof(text), "%d", bytes);
		info_says(info, sizes[i].key, text);
	}
	for (int i = 0; i < 19; i++) {
		snprintf(text, sizeof(text), "mpi_%s_supported", optional[i]);
		info_says(info, text, "true");
	}
	MPI_Info_get_nkeys(info, &nkeys);
	EXPECT_INT(nkeys, 4 + 19);
	MPI_Info_free(&info);
}

/* They are what a reduction of MPI_LOGICAL makes. */
static void fortran_booleans_are_known(void)
{
	int yes[2] = { 3, 77 }, no[2] = { 0, 77 }, made_yes, made_no, is_set;
	char wide[2][32];

	made_yes = 5;
	made_no = 0;
	MPI_Reduce_local(yes, &made_yes, 1, MPI_LOGICAL, MPI_LAND);
	MPI_Reduce_local(no, &made_no, 1, MPI_LOGICAL, MPI_LOR);
	EXPECT_INT(MPI_Abi_get_fortran_booleans(4, yes, no, &is_set),
		   MPI_SUCCESS);
	EXPECT_INT(is_set, 1);
	EXPECT_INT(yes[0], made_yes);
	EXPECT_INT(no[0], made_no);
	EXPECT(yes[1] == 77 && no[1] == 77);
	for (int n = 1; n <= 16; n *= 2) {
		memset(wide, 9, sizeof(wide));
		EXPECT_INT(MPI_Abi_get_fortran_booleans(n, wide[0], wide[1],
							&is_set),
			   MPI_SUCCESS);
		EXPECT_INT(is_set, 1);
		for (int i = 0; i < 32; i++) {
			EXPECT_INT(wide[0][i], i >= n ? 9 : i == 0);
			EXPECT_INT(wide[1][i], i >= n ? 9 : 0);
		}
	}
	EXPECT_INT(MPI_Abi_get_fortran_booleans(32, wide[0], wide[1], &is_set),
		   MPI_SUCCESS);
	EXPECT_INT(is_set, 0);
}

/* As MPI_Init leaves them, errors end the job: these are none. */
static void questions_are_answered(void)
{
	MPI_Comm parent = MPI_COMM_WORLD;
	int major = 0, minor = -1;

	EXPECT_INT(MPI_Comm_get_parent(&parent), MPI_SUCCESS);
	EXPECT(parent == MPI_COMM_NULL);
	EXPECT_INT(MPI_Abi_get_version(&major, &minor), MPI_SUCCESS);
	EXPECT(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION);
	integers_of_the_abi_have_8_bytes();
	fortran_types_are_known();
	fortran_booleans_are_known();
	EXPECT_INT(MPI_File_toint(MPI_FILE_NULL), (int)(size_t)MPI_FILE_NULL);
	EXPECT(MPI_File_fromint(MPI_File_toint(MPI_FILE_NULL)) ==
	       MPI_FILE_NULL);
}

/* Equal values are no exception. */
static void fortran_types_cannot_be_set(void)
{
	int yes = -1, no = 0, is_set;
	MPI_Info info;

	MPI_Abi_get_fortran_info(&info);
	FAILS(MPI_Abi_set_fortran_info(info), MPI_ERR_ABI);
	MPI_Info_free(&info);
	FAILS(MPI_Abi_set_fortran_booleans(4, &yes, &no), MPI_ERR_ABI);
	FAILS(MPI_Abi_set_fortran_booleans(3, &yes, &no), MPI_ERR_ARG);
	FAILS(MPI_Abi_get_fortran_booleans(0, &yes, &no, &is_set), MPI_ERR_ARG);
	EXPECT_INT(yes, -1);
	MPI_Abi_get_fortran_booleans(4, &yes, &no, &is_set);
	FAILS(MPI_Abi_set_fortran_booleans(4, &yes, &no), MPI_ERR_ABI);
}

static void no_name_is_published(void)
{
	char port[MPI_MAX_PORT_NAME] = "unchanged";

	FAILS(MPI_Lookup_name("ocean", MPI_INFO_NULL, port), MPI_ERR_NAME);
	EXPECT(strcmp(port, "unchanged") == 0);
}
#endif

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
#ifdef MPI_ABI_VERSION
	questions_are_answered();
#endif
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	environment();
	point_to_point();
	truncation();
	objects();
	collectives();
	freed_and_foreign_handles();
#ifdef MPI_ABI_VERSION
	handles_of_what_is_still_used();
	fortran_types_cannot_be_set();
	no_name_is_published();
#endif
	a_request_given_twice_is_ended_once();
	handlers_of_the_program_are_called();
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	return program_end("errors");
}
