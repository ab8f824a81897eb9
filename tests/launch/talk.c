/*
 * An MPI program for launchers: messages between all pairs, collectives, and
 * who shares a host with whom. "talk", or what rank 1 does before the end:
 *
 *   talk [exit NUMBER | abort NUMBER | kill | outlive | hang | lock]
 *
 * With "outlive", as with "kill", rank 1 kills itself, and the others say what
 * they make of it and go on. With "hang" all wait for the next, with "lock"
 * rank 1 for itself, and the others for it.
 */
#include "../madmpi/program.h"

#include <signal.h>
#include <unistd.h>

#include <marcel/marcel.h>

enum { WORDS = 20000 };

static void exchange(int peer, int n)
{
	static int out[WORDS], in[WORDS];

	for (int i = 0; i < n; i++)
		out[i] = rank * n + i;
	MPI_Sendrecv(out, n, MPI_INT, peer, n, in, n, MPI_INT, peer, n,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < n; i++)
		EXPECT_INT(in[i], peer * n + i);
}

static void collectives(void)
{
	int *in = calloc((size_t)size, sizeof(*in));
	int *out = calloc((size_t)size, sizeof(*out));
	int sum = 0, word = rank == size - 1 ? 77 : 0;

	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	EXPECT_INT(sum, size * (size - 1) / 2);
	MPI_Bcast(&word, 1, MPI_INT, size - 1, MPI_COMM_WORLD);
	EXPECT_INT(word, 77);
	for (int i = 0; i < size; i++)
		out[i] = rank * size + i;
	MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		EXPECT_INT(in[i], i * size + rank);
	MPI_Barrier(MPI_COMM_WORLD);
	free(in);
	free(out);
}

/* At rank 0: how many share the host of each rank. */
static void hosts(void)
{
	int *all = calloc((size_t)size, sizeof(*all)), n;
	MPI_Comm near;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
			    MPI_INFO_NULL, &near);
	MPI_Comm_size(near, &n);
	MPI_Comm_free(&near);
	MPI_Gather(&n, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		printf("%d talked, near:", size);
		for (int i = 0; i < size; i++)
			printf(" %d", all[i]);
		printf("\n");
		fflush(stdout);
	}
	free(all);
}

static void end(const char *how, int number)
{
	if (strcmp(how, "exit") == 0) {
		MPI_Finalize();
		exit(number);
	}
	if (strcmp(how, "abort") == 0)
		MPI_Abort(MPI_COMM_WORLD, number);
	kill(getpid(), SIGKILL);
}

static void hang(bool alone)
{
	marcel_mutex_t mutex = MARCEL_MUTEX_INITIALIZER;
	int word;

	if (rank == 0)
		printf("launched by process %d.\n", (int)getppid());
	fflush(stdout);
	for (int i = 0; alone && rank == 1 && i < 2; i++)
		marcel_mutex_lock(&mutex);
	MPI_Recv(&word, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
}

/* What waits for rank 1 fails, and there is an end without it. */
static void outlive(void)
{
	int error, word, class = 0;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	error = MPI_Recv(&word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	MPI_Error_class(error, &class);
	EXPECT_INT(class, MPI_ERR_PROC_ABORTED);
	MPI_Finalize();
	printf("%d outlived it\n", rank);
	exit(0);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 0; i < size; i++) {
		int peer = (size + i - rank) % size; /* mine, as I am its */

		exchange(peer, 1);
		exchange(peer, WORDS);
	}
	collectives();
	hosts();
	if (argc > 1 && strcmp(argv[1], "hang") == 0)
		hang(false);
	if (argc > 1 && strcmp(argv[1], "lock") == 0)
		hang(true);
	if (argc > 1 && rank == 1)
		end(argv[1], argc > 2 ? atoi(argv[2]) : 0);
	if (argc > 1 && strcmp(argv[1], "outlive") == 0)
		outlive();
	/* Who dies is missed by those who wait for it. */
	if (argc > 1 && strcmp(argv[1], "exit") != 0)
		MPI_Barrier(MPI_COMM_WORLD);
	return MPI_Finalize();
}
