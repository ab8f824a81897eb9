/*
 * Programs for MADMPI_LEAKS: one leaves something of each kind behind, one has
 * freed all, in such an order that much of it is in use for longer. leaks.py
 * knows what is said of them.
 */
#include "../program.h"

enum { TAG = 7 };

static char memory[2][4096];
static int x[8];

static void note(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	(void)code;
}

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
	(void)in, (void)inout, (void)n, (void)type;
}

/* --- in use for longer than the program has a handle of them --- */

static void type_in_a_type(MPI_Datatype *outer)
{
	MPI_Datatype inner;

	MPI_Type_vector(2, 1, 2, MPI_INT, &inner);
	MPI_Type_contiguous(2, inner, outer);
	MPI_Type_free(&inner);
}

/* Of several types that the program never sees; others are predefined. */
static void part_of_an_array(MPI_Datatype *type)
{
	int sizes[2] = { 5, 6 }, subsizes[2] = { 2, 3 }, starts[2] = { 1, 1 };
	MPI_Datatype real;

	MPI_Type_create_f90_real(6, 30, &real);
	MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, real,
				 type);
}

static void comm_of_a_handler(MPI_Comm *comm)
{
	MPI_Errhandler e;
	MPI_Group group;

	MPI_Comm_dup(MPI_COMM_SELF, comm);
	MPI_Comm_create_errhandler(note, &e);
	MPI_Comm_set_errhandler(*comm, e);
	MPI_Errhandler_free(&e);
	MPI_Comm_get_errhandler(*comm, &e);
	MPI_Errhandler_free(&e);
	MPI_Comm_group(*comm, &group);
	MPI_Group_free(&group);
	MPI_Comm_group(MPI_COMM_WORLD, &group);
	MPI_Group_free(&group);
}

/* A receive that a communicator and a type live for. */
static void receive_alone(MPI_Comm comm, MPI_Request *request)
{
	MPI_Datatype type;
	MPI_Comm dup;

	MPI_Comm_dup(comm, &dup);
	type_in_a_type(&type);
	MPI_Type_commit(&type);
	MPI_Irecv(x, 1, type, 0, TAG, dup, request);
	MPI_Type_free(&type);
	MPI_Send(x, 4, MPI_INT, 0, TAG, dup);
	MPI_Comm_free(&dup);
}

static void keyval_of_an_attribute(MPI_Comm comm)
{
	int key;

	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN,
			       &key, NULL);
	MPI_Comm_set_attr(comm, key, x);
	MPI_Comm_free_keyval(&key);
}

/* --- the programs --- */

static void frees_all(void)
{
	MPI_Request request, orphan;
	MPI_Datatype type;
	MPI_Info env;
	MPI_Comm comm;
	void *buffer;
	MPI_Op op;
	int bytes;

	type_in_a_type(&type);
	MPI_Type_free(&type);
	part_of_an_array(&type);
	MPI_Type_free(&type);
	comm_of_a_handler(&comm);
	receive_alone(comm, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	receive_alone(comm, &orphan);
	MPI_Request_free(&orphan);
	keyval_of_an_attribute(comm);
	keyval_of_an_attribute(MPI_COMM_WORLD);
	MPI_Op_create(add, 1, &op);
	MPI_Op_free(&op);
	MPI_Info_create_env(0, NULL, &env);
	MPI_Info_free(&env);
	MPI_Info_get_nkeys(MPI_INFO_ENV, &bytes);
	MPI_Buffer_attach(memory, sizeof(memory[0]));
	MPI_Buffer_detach(&buffer, &bytes);
	MPI_Comm_attach_buffer(comm, memory[1], sizeof(memory[1]));
	MPI_Comm_free(&comm);
}

static void leaves_objects(void)
{
	MPI_Comm comm, dup, part;
	MPI_Errhandler e;
	MPI_Datatype t[6];
	MPI_Group group;
	MPI_Info info;
	MPI_Op op;

	comm_of_a_handler(&comm);
	MPI_Comm_set_name(comm, "mine");
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	MPI_Comm_split(dup, 0, 0, &part);
	MPI_Comm_free(&dup);
	MPI_Comm_group(part, &group);
	MPI_Comm_get_errhandler(comm, &e);
	for (int i = 0; i < 6; i++)
		MPI_Type_contiguous(i + 1, MPI_CHAR, &t[i]);
	MPI_Type_commit(&t[0]);
	MPI_Type_set_name(t[0], "mine");
	part_of_an_array(&t[5]);
	MPI_Op_create(add, 0, &op);
	MPI_Info_create(&info);
	MPI_Info_set(info, "key", "value");
}

static void leaves_messages(void)
{
	MPI_Request r;
	MPI_Message m;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_SELF, &comm);
	MPI_Comm_set_name(comm, "talk");
	MPI_Recv_init(x, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &r);
	MPI_Send_init(x, 1, MPI_INT, MPI_PROC_NULL, 0, comm, &r);
	MPI_Start(&r);
	MPI_Irecv(x, 1, MPI_INT, 0, TAG, comm, &r);
	MPI_Send(x, 1, MPI_INT, 0, TAG, comm);
	MPI_Send(x, 3, MPI_INT, 0, TAG + 1, comm);
	MPI_Mprobe(0, TAG + 1, comm, &m, MPI_STATUS_IGNORE);
	MPI_Comm_attach_buffer(comm, memory[0], sizeof(memory[0]));
	MPI_Buffer_attach(memory[1], 1000);
}

static void leaves_keyvals(void)
{
	int key;

	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN,
			       &key, NULL);
	MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN,
			       &key, NULL);
}

/* They are told of when it ends. */
static void leaves_in_a_session(void)
{
	MPI_Session s;
	MPI_Group all, freed;
	MPI_Comm comm;
	MPI_Win win;

	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s);
	MPI_Group_from_session_pset(s, "mpi://WORLD", &all);
	MPI_Comm_create_from_group(all, "all", MPI_INFO_NULL,
				   MPI_ERRORS_ARE_FATAL, &comm);
	MPI_Comm_set_name(comm, "mine");
	MPI_Comm_group(comm, &freed);
	MPI_Group_free(&freed);
	MPI_Win_create(memory, 32, 1, MPI_INFO_NULL, comm, &win);
	MPI_Session_finalize(&s);
}

/* They end with MPI, and what has not been flushed of them is lost. */
static void leaves_windows(void)
{
	MPI_Win win;
	void *base;
	int key;

	MPI_Win_create(memory, 32, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
	MPI_Win_set_name(win, "wall");
	MPI_Win_allocate(16, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
	MPI_Win_fence(0, win);
	MPI_Put(x, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &win);
	MPI_Win_free(&win);
	MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN,
			      &key, NULL);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} programs[] = {
		{ "frees_all", frees_all },
		{ "leaves_objects", leaves_objects },
		{ "leaves_messages", leaves_messages },
		{ "leaves_keyvals", leaves_keyvals },
		{ "leaves_in_a_session", leaves_in_a_session },
		{ "leaves_windows", leaves_windows },
	};

	program_begin(&argc, &argv);
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (argc == 2 && strcmp(argv[1], programs[i].name) == 0)
			programs[i].run();
	return program_end("leaks");
}
