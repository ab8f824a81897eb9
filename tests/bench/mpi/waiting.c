/*
 * Two ranks, of which one waits for the other for N ms: how many cores it keeps
 * busy, CPU time of its process / time. The other one sleeps.
 *
 *   recv      in MPI_Recv
 *   barrier   in MPI_Barrier
 */
#include <time.h>

#include "bench.h"

enum { TOKEN = 4711 };

static double clock_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void sleep_for(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000,
			      .tv_nsec = ms % 1000 * 1000000 };

	while (nanosleep(&t, &t) != 0)
		;
}

static void wait_in_recv(void)
{
	int token = TOKEN;

	if (bench.rank == 0) {
		MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
		return;
	}
	token = 0;
	MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (token != TOKEN)
		bench_fail("recv: %d came, not %d", token, TOKEN);
}

static void wait_in_barrier(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Cores; at all ranks. */
static double measure(void (*wait)(void), long ms)
{
	double cpu, wall;

	MPI_Barrier(MPI_COMM_WORLD);
	if (bench.rank == 0)
		sleep_for(ms);
	cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID);
	wall = clock_of(CLOCK_MONOTONIC);
	wait();
	cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	wall = clock_of(CLOCK_MONOTONIC) - wall;
	return bench_of(cpu / wall, 1);
}

int main(int argc, char **argv)
{
	static const struct bench_program program = {
		.name = "waiting",
		.cases = "recv,barrier",
		.options = "",
		.what = "MS",
		.ranks_least = 2,
		.ranks_most = 2,
		.least = 1,
		.most = 3600000,
		.numbers = { 1000 },
	};

	bench_start(argc, argv, &program);
	for (int i = 0; i < bench.n; i++) {
		long ms = bench.numbers[i];

		if (bench_case("recv"))
			bench_say(measure(wait_in_recv, ms), "cores",
				  "recv_%ld", ms);
		if (bench_case("barrier"))
			bench_say(measure(wait_in_barrier, ms), "cores",
				  "barrier_%ld", ms);
	}
	MPI_Finalize();
	return 0;
}
