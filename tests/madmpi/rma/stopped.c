/*
 * A target that does nothing at all, as its process is stopped: what is large
 * gets there and back, where the kernel lets one process reach the memory of
 * another on the same machine.
 */
#include "../program.h"
#include "../stop.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

enum { N = 50000, TARGET = 1 };

static int mine[N], other[N], window[N];
static pid_t its;
static void *its_window;
static MPI_Win win;

static bool may_reach(void)
{
	const char *networks = getenv("NMAD_DRIVER");
	struct iovec here = { other, sizeof(int) };
	struct iovec there = { its_window, sizeof(int) };

	return networks != NULL && strcmp(networks, "shm") == 0 &&
	       process_vm_readv(its, &here, 1, &there, 1, 0) == sizeof(int);
}

static void put_and_get(void)
{
	MPI_Request req;

	for (int i = 0; i < N; i++)
		mine[i] = 3 * i + 1;
	MPI_Put(mine, N - 2, MPI_INT, TARGET, 1, N - 2, MPI_INT, win);
	MPI_Win_flush(TARGET, win);
	MPI_Get(other, N, MPI_INT, TARGET, 0, N, MPI_INT, win);
	MPI_Win_flush_local(TARGET, win);
	EXPECT(other[0] == -1 && other[N - 1] == -1);
	EXPECT(memcmp(other + 1, mine, (N - 2) * sizeof(int)) == 0);
	MPI_Rput(mine, N, MPI_INT, TARGET, 0, N, MPI_INT, win, &req);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	memset(other, 0, sizeof(other));
	MPI_Rget(other, N, MPI_INT, TARGET, 0, N, MPI_INT, win, &req);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	EXPECT(memcmp(other, mine, sizeof(mine)) == 0);
	MPI_Win_flush_all(win);
}

/* What lies apart goes by messages, in the same epoch. */
static void put_from_pieces(void)
{
	MPI_Datatype every_other;

	MPI_Type_vector(N / 2, 1, 2, MPI_INT, &every_other);
	MPI_Type_commit(&every_other);
	MPI_Put(mine, 1, every_other, TARGET, 0, N / 2, MPI_INT, win);
	MPI_Type_free(&every_other);
	MPI_Win_flush(TARGET, win);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	its = getpid();
	its_window = window;
	MPI_Bcast(&its, sizeof(its), MPI_BYTE, TARGET, MPI_COMM_WORLD);
	MPI_Bcast(&its_window, sizeof(its_window), MPI_BYTE, TARGET,
		  MPI_COMM_WORLD);
	memset(window, 0xff, sizeof(window));
	MPI_Win_create(window, sizeof(window), sizeof(int), MPI_INFO_NULL,
		       MPI_COMM_WORLD, &win);
	MPI_Win_lock_all(0, win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank != TARGET) {
		bool stops = may_reach();

		if (stops)
			stop(its);
		put_and_get();
		if (stops)
			EXPECT(kill(its, SIGCONT) == 0);
		put_from_pieces();
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < N && rank == TARGET; i++)
		EXPECT_INT(window[i], 3 * (i < N / 2 ? 2 * i : i) + 1);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	return program_end("stopped");
}
