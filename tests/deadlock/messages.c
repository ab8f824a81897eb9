/* Programs whose ranks hang, each in another way: messages WHICH. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <marcel/marcel.h>
#include <mpi.h>
#include <nmad/event.h>

static int rank, size;
static char large[1 << 20];

static void receive(int from, int tag)
{
	int n;

	MPI_Recv(&n, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void each_other(void)
{
	receive((rank + 1) % size, 5);
}

static void wrong_tag(void)
{
	if (rank == 0)
		MPI_Send(&rank, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
	receive(!rank, 8);
}

static void ssends(void)
{
	MPI_Ssend(&rank, 1, MPI_INT, !rank, 3, MPI_COMM_WORLD);
}

static void large_receives(void)
{
	MPI_Recv(large, sizeof(large), MPI_CHAR, !rank, 9, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
}

static void large_sends(void)
{
	MPI_Send(large, sizeof(large), MPI_CHAR, !rank, 9, MPI_COMM_WORLD);
}

/* Many others before it, so that they go by memory that is shared. */
static void skipped(void)
{
	for (int i = 0; i < 20; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	if (rank != 1)
		MPI_Barrier(MPI_COMM_WORLD);
	else
		receive(0, 1);
}

static void end_too_soon(void)
{
	if (rank == 0)
		receive(1, 1);
}

/* Rank 0 hangs by itself. */
static void alone(void)
{
	static marcel_mutex_t mutex = MARCEL_MUTEX_INITIALIZER;

	if (rank == 0) {
		marcel_mutex_lock(&mutex);
		marcel_mutex_lock(&mutex);
	}
	receive(0, 1);
}

/* --- not dead --- */

static void ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

static void sleeper(void)
{
	ready();
	if (rank == 0)
		marcel_sleep(100000);
	else
		receive(0, 1);
}

static marcel_sem_t sight;

static void saw(const struct nm_sight *s)
{
	(void)s;
	marcel_sem_post(&sight);
}

/* No receive, and still a message would wake it. */
static void watcher(void)
{
	marcel_sem_init(&sight, 0, 0);
	nm_watch(NM_SAW_UNEXPECTED, saw);
	ready();
	if (rank == 0)
		marcel_sleep(100000);
	else
		marcel_sem_wait(&sight);
}

static void runner(void)
{
	volatile int turns = 0;

	ready();
	while (rank == 0)
		turns++;
	receive(0, 1);
}

static void stopped(void)
{
	ready();
	if (rank == 0)
		raise(SIGSTOP);
	receive(0, 1);
}

static const struct {
	const char *name;
	void (*fn)(void);
} ways[] = {
	{ "each_other", each_other },
	{ "wrong_tag", wrong_tag },
	{ "ssends", ssends },
	{ "large_receives", large_receives },
	{ "large_sends", large_sends },
	{ "skipped", skipped },
	{ "end_too_soon", end_too_soon },
	{ "alone", alone },
	{ "sleeper", sleeper },
	{ "watcher", watcher },
	{ "runner", runner },
	{ "stopped", stopped },
};

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (argc > 1 && strcmp(argv[1], ways[i].name) == 0)
			ways[i].fn();
	return MPI_Finalize();
}
