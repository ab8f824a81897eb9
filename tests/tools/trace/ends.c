/*
 * What ends.py has traced: jobs of two that do not come to their end, each in
 * the way that the argument says; and one that does, whose child ends before.
 */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <marcel/marcel.h>

enum { LARGE = 4 << 20, TAG = 5 };

static char *body;
static int rank;

/* It is on its way: the receiver knows of it, and has not taken it. */
static void be_in_mid_message(void)
{
	MPI_Request r;

	if (rank == 0) {
		MPI_Isend(body, LARGE, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, &r);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	} else {
		MPI_Probe(0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

/* Called by MPI_Finalize, which never returns. */
static int die(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm, (void)key, (void)value, (void)extra;
	raise(SIGKILL);
	return MPI_SUCCESS;
}

static void die_in_finalize(void)
{
	int key;

	if (rank == 1) {
		MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, die, &key, NULL);
		MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
	}
	MPI_Finalize();
}

static void *nothing(void *arg)
{
	return arg;
}

/* The child has threads of its own, and leaves by exit(). */
static void fork_one(void)
{
	pid_t child = fork();
	marcel_t t;
	int status;

	if (child == 0) {
		for (int i = 0; i < 100; i++)
			if (marcel_create(&t, NULL, nothing, NULL) != 0 ||
			    marcel_join(t, NULL) != 0)
				_exit(1);
		exit(0);
	}
	waitpid(child, &status, 0);
	if (status != 0)
		MPI_Abort(MPI_COMM_WORLD, 1);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	body = calloc(1, LARGE);
	if (strcmp(how, "fork") == 0)
		fork_one();
	else if (strcmp(how, "finalize") == 0)
		die_in_finalize();
	else
		be_in_mid_message();
	if (strcmp(how, "kill") == 0)
		raise(SIGKILL);
	if (strcmp(how, "abort") == 0)
		abort();
	free(body);
	return 0;
}
