/*
 * An OpenMP program in which every thread calls MPI: all messages arrive, every
 * thread may run on every CPU that the process was given, and a child process
 * sees those CPUs too.
 */
#include "../program.h"

#include <omp.h>
#include <sched.h>

enum { ROUNDS = 200, THREADS = 4 };

/* What `nproc` prints in a child. */
static int child_cpus(void)
{
	char line[32] = "";
	FILE *f = popen("nproc", "r");

	if (f == NULL || fgets(line, sizeof(line), f) == NULL)
		return -1;
	pclose(f);
	return atoi(line);
}

/* Thread t talks to thread t of the other rank, with a tag of its own. */
static void talk(int t)
{
	int peer = rank ^ 1, got;

	for (int i = 0; i < ROUNDS; i++) {
		int sent = rank * 1000000 + t * 1000 + i;
		int want = peer * 1000000 + t * 1000 + i;
		MPI_Request r;

		MPI_Irecv(&got, 1, MPI_INT, peer, t, MPI_COMM_WORLD, &r);
		MPI_Send(&sent, 1, MPI_INT, peer, t, MPI_COMM_WORLD);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		EXPECT(got == want);
	}
}

int main(int argc, char **argv)
{
	cpu_set_t before;
	int level;

	sched_getaffinity(0, sizeof(before), &before);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	EXPECT_INT(level, MPI_THREAD_MULTIPLE);
	EXPECT_INT(size, 2);
#pragma omp parallel num_threads(THREADS)
	{
		cpu_set_t mine;
		int t = omp_get_thread_num();

		sched_getaffinity(0, sizeof(mine), &mine);
		EXPECT(t == 0 || CPU_EQUAL(&mine, &before));
		talk(t);
	}
	EXPECT_INT(child_cpus(), CPU_COUNT(&before));
	return program_end("openmp");
}
