/*
 * Programs that do what must not be done, one by name; lifecycle.py says what
 * each of them has to end with.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../join.h"

static int x;

static void before_init(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

static void after_finalize(void)
{
	MPI_Init(NULL, NULL);
	MPI_Finalize();
	MPI_Send(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
}

static void always_allowed(void)
{
	int flag = 1, a, b;

	MPI_Initialized(&flag);
	if (flag)
		exit(9);
	MPI_Get_version(&a, &b);
	MPI_Init(NULL, NULL);
	MPI_Finalize();
	MPI_Finalized(&flag);
	exit(flag && a == 5 ? 0 : 9);
}

/* Whatever is asked for. */
static void level(int required)
{
	int provided = -1, main_thread = -1;

	MPI_Init_thread(NULL, NULL, required, &provided);
	if (provided != MPI_THREAD_MULTIPLE)
		exit(9);
	provided = -1;
	MPI_Query_thread(&provided);
	MPI_Is_thread_main(&main_thread);
	if (provided != MPI_THREAD_MULTIPLE || !main_thread)
		exit(9);
	MPI_Finalize();
	exit(0);
}

static void single(void)
{
	level(MPI_THREAD_SINGLE);
}

static void funneled(void)
{
	level(MPI_THREAD_FUNNELED);
}

static void serialized(void)
{
	level(MPI_THREAD_SERIALIZED);
}

static void multiple(void)
{
	level(MPI_THREAD_MULTIPLE);
}

static void *is_not_main(void *arg)
{
	int main_thread = -1;

	MPI_Is_thread_main(&main_thread);
	return main_thread == 0 ? arg : NULL;
}

static void main_thread(void)
{
	void *good = NULL;
	pthread_t t;

	MPI_Init(NULL, NULL);
	pthread_create(&t, NULL, is_not_main, &x);
	pthread_join(t, &good);
	MPI_Finalize();
	exit(good == &x ? 0 : 9);
}

static void finalize_twice(void)
{
	MPI_Init(NULL, NULL);
	MPI_Finalize();
	MPI_Finalize();
}

static void init_after_finalize(void)
{
	MPI_Init(NULL, NULL);
	MPI_Finalize();
	MPI_Init(NULL, NULL);
}

static void twice(void)
{
	MPI_Init(NULL, NULL);
	MPI_Init(NULL, NULL);
}

static void no_finalize(void)
{
	MPI_Init(NULL, NULL);
	exit(0);
}

static void own_exit_code(void)
{
	MPI_Init(NULL, NULL);
	exit(42);
}

static void fatal(void)
{
	MPI_Init(NULL, NULL);
	MPI_Send(&x, 1, MPI_INT, 17, 0, MPI_COMM_WORLD);
}

static void *thread(void *arg)
{
	MPI_Recv(&x, 1, MPI_INT, 0, -77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return arg;
}

static void fatal_in_thread(void)
{
	pthread_t t;

	MPI_Init(NULL, NULL);
	pthread_create(&t, NULL, thread, NULL);
	pthread_join(t, NULL);
}

static void aborts(void)
{
	MPI_Init(NULL, NULL);
	MPI_Abort(MPI_COMM_WORLD, 7);
}

/* The last one; the others would wait for ever. */
static void one_aborts(void)
{
	int rank, size;

	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank == size - 1)
		MPI_Abort(MPI_COMM_SELF, 43);
	MPI_Recv(&x, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
}

static void aborts_with_0(void)
{
	MPI_Init(NULL, NULL);
	MPI_Abort(MPI_COMM_WORLD, 0);
}

/* --- error handlers where there is no communicator, or no handler yet --- */

static void expect(int good)
{
	if (!good)
		exit(9);
}

static int is_first_handler(MPI_Errhandler wanted)
{
	MPI_Errhandler of_world, of_self;

	MPI_Comm_get_errhandler(MPI_COMM_WORLD, &of_world);
	MPI_Comm_get_errhandler(MPI_COMM_SELF, &of_self);
	return of_world == wanted && of_self == wanted;
}

static void error_before(void)
{
	int class;

	MPI_Error_class(-1, &class);
}

static void error_after(void)
{
	MPI_Init(NULL, NULL);
	MPI_Finalize();
	error_before();
}

/* With an initial handler that returns. */
static void initial_returns(void)
{
	int class, provided;

	expect(MPI_Error_class(-1, &class) == MPI_ERR_ARG);
	expect(MPI_Init_thread(NULL, NULL, 77, &provided) == MPI_ERR_ARG);
	expect(MPI_Init_thread(NULL, NULL, 0, NULL) == MPI_ERR_ARG);
	expect(MPI_Init_thread(NULL, NULL, 0, &provided) == MPI_SUCCESS);
	expect(is_first_handler(MPI_ERRORS_RETURN));
	expect(MPI_Init(NULL, NULL) == MPI_ERR_OTHER);
	expect(MPI_Comm_size(MPI_COMM_NULL, &x) == MPI_ERR_COMM);
	MPI_Finalize();
	expect(MPI_Error_class(-1, &class) == MPI_ERR_ARG);
	exit(0);
}

static void initial_is_fatal(void)
{
	MPI_Init(NULL, NULL);
	expect(is_first_handler(MPI_ERRORS_ARE_FATAL));
	MPI_Finalize();
	exit(0);
}

static void initial_aborts(void)
{
	MPI_Init(NULL, NULL);
	expect(is_first_handler(MPI_ERRORS_ABORT));
	MPI_Comm_size(MPI_COMM_NULL, &x);
}

static int handled;

static void handler(MPI_Comm *comm, int *code, ...)
{
	handled += *comm == MPI_COMM_SELF && *code == MPI_ERR_ARG;
}

/* That of MPI_COMM_SELF is there when MPI has gone. */
static void handler_remains(void)
{
	MPI_Errhandler e;
	int class;

	MPI_Init(NULL, NULL);
	MPI_Comm_create_errhandler(handler, &e);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, e);
	MPI_Errhandler_free(&e);
	MPI_Finalize();
	expect(MPI_Error_class(-1, &class) == MPI_ERR_ARG && handled == 1);
	exit(0);
}

/* Who has given MPI_COMM_SELF a handler means that one. */
static void self_is_fatal(void)
{
	MPI_Init(NULL, NULL);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_size(MPI_COMM_NULL, &x);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	MPI_Comm_size(MPI_COMM_NULL, &x);
}

static void unchecked(void)
{
	int in = 0, out = 5;
	MPI_Request r;

	MPI_Init(NULL, NULL);
	MPI_Isend(&out, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &r);
	MPI_Recv(&in, 1, MPI_INT, 0, 3, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	/* Not even a type is needed. */
	MPI_Send_init(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0,
		      MPI_COMM_SELF, &r);
	MPI_Start(&r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Request_free(&r);
	MPI_Sendrecv_replace(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0,
			     MPI_PROC_NULL, 0, MPI_COMM_SELF,
			     MPI_STATUS_IGNORE);
	MPI_Finalize();
	exit(in == 5 ? 0 : 9);
}

/* The child is no part of the job; the parent goes on. */
static void forks(void)
{
	int status = 0, in = 0, out = 3;
	MPI_Request r;
	pid_t child;

	MPI_Init(NULL, NULL);
	MPI_Irecv(&in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &r);
	child = fork();
	if (child == 0) {
		MPI_Send(&out, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
		_exit(0);
	}
	waitpid(child, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
		exit(8);
	/* A child that only ends does no harm either. */
	child = fork();
	if (child == 0)
		exit(5);
	waitpid(child, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 5)
		exit(7);
	if (system("exit 3") != 3 << 8)
		exit(6);
	MPI_Send(&out, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Finalize();
	exit(in == 3 ? 0 : 9);
}

static void leaves_objects(void)
{
	MPI_Comm dup, part;
	MPI_Datatype type, other;
	MPI_Request request;
	MPI_Group group;
	MPI_Info info;
	int key;

	MPI_Init(NULL, NULL);
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	MPI_Comm_split(dup, 0, 0, &part);
	MPI_Comm_group(part, &group);
	MPI_Type_vector(3, 1, 2, MPI_INT, &type);
	MPI_Type_contiguous(3, type, &other);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN,
			       &key, NULL);
	MPI_Comm_set_attr(dup, key, &key);
	MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN,
			       &key, NULL);
	MPI_Type_set_attr(type, key, &key);
	MPI_Info_create(&info);
	MPI_Info_set(info, "key", "value");
	MPI_Recv_init(&x, 1, MPI_INT, 0, 0, part, &request);
	MPI_Finalize();
	exit(0);
}

/* --- sessions --- */

static MPI_Session begin_session(void)
{
	MPI_Session s = MPI_SESSION_NULL;

	expect(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s) ==
	       MPI_SUCCESS);
	return s;
}

/* All processes meet in it. */
static void whole_session(void)
{
	MPI_Session s = begin_session();
	MPI_Group all;
	MPI_Comm c;

	MPI_Group_from_session_pset(s, "mpi://WORLD", &all);
	MPI_Comm_create_from_group(all, "all", MPI_INFO_NULL,
				   MPI_ERRORS_ARE_FATAL, &c);
	MPI_Group_free(&all);
	MPI_Barrier(c);
	MPI_Comm_free(&c);
	MPI_Session_finalize(&s);
}

static void session_no_finalize(void)
{
	whole_session();
	begin_session();
	exit(0);
}

static void after_session(void)
{
	whole_session();
	MPI_Send(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
}

static void session_after_world(void)
{
	MPI_Init(NULL, NULL);
	MPI_Finalize();
	whole_session();
	whole_session();
	exit(0);
}

/* The child is no part of the job, in a session and after it. */
static void session_forks(void)
{
	MPI_Session s = begin_session(), t;
	int status = 0;

	for (int i = 0; i < 2; i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN,
					       &t) == MPI_SUCCESS);
		waitpid(child, &status, 0);
		expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		if (i == 0)
			MPI_Session_finalize(&s);
	}
	whole_session();
	exit(0);
}

static void *exits(void *arg)
{
	whole_session();
	exit(arg == &x ? 5 : 9);
}

/* One that the main thread knows nothing of. */
static void exit_in_thread(void)
{
	pthread_t t;

	whole_session();
	pthread_create(&t, NULL, exits, &x);
	program_join(t);
}

static const struct {
	const char *name;
	void (*run)(void);
} programs[] = {
	{ "before_init", before_init },
	{ "after_finalize", after_finalize },
	{ "always_allowed", always_allowed },
	{ "single", single },
	{ "funneled", funneled },
	{ "serialized", serialized },
	{ "multiple", multiple },
	{ "main_thread", main_thread },
	{ "finalize_twice", finalize_twice },
	{ "init_after_finalize", init_after_finalize },
	{ "one_aborts", one_aborts },
	{ "aborts_with_0", aborts_with_0 },
	{ "error_before", error_before },
	{ "error_after", error_after },
	{ "initial_returns", initial_returns },
	{ "initial_is_fatal", initial_is_fatal },
	{ "initial_aborts", initial_aborts },
	{ "handler_remains", handler_remains },
	{ "self_is_fatal", self_is_fatal },
	{ "session_no_finalize", session_no_finalize },
	{ "after_session", after_session },
	{ "session_after_world", session_after_world },
	{ "session_forks", session_forks },
	{ "exit_in_thread", exit_in_thread },
	{ "twice", twice },
	{ "no_finalize", no_finalize },
	{ "own_exit_code", own_exit_code },
	{ "fatal", fatal },
	{ "fatal_in_thread", fatal_in_thread },
	{ "aborts", aborts },
	{ "unchecked", unchecked },
	{ "forks", forks },
	{ "leaves_objects", leaves_objects },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (argc == 2 && strcmp(argv[1], programs[i].name) == 0)
			programs[i].run();
	return 77;
}
