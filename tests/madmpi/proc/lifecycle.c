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

static const struct {
	const char *name;
	void (*run)(void);
} programs[] = {
	{ "before_init", before_init },
	{ "after_finalize", after_finalize },
	{ "always_allowed", always_allowed },
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
