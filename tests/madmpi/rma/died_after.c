/*
 * Who dies after it has completed its access epoch has completed it: all that
 * it did is there, and the target is told of no death.
 *
 * The target is stopped while the other one works, completes and dies, so that
 * it finds the requests and the death at once; and while one of its threads
 * takes them one by one another one looks all the time, on a VP of its own.
 */
#include "../dies.h"
#include "../program.h"
#include "../stop.h"

enum {
	N = 512, /* elements, as many as go with a request */
	TIMES = 12,
	PIECE = 8, /* elements that are attached at once */
	MANY = 16000 / FEWER,
	TARGET = 0,
	OTHER = 1
};

static long window[N];
static char aside[MANY];
static MPI_Aint at;
static pid_t its;
static MPI_Win win;

/* Until this process has died. */
static void stop_target(void)
{
	pid_t mine = getpid();

	if (fork() == 0) {
		while (getppid() == mine)
			sched_yield();
		kill(its, SIGCONT);
		_exit(0);
	}
	stop(its);
}

/* Small pieces, found behind many others: the target is at each for a while. */
static void attach(void)
{
	MPI_Get_address(window, &at);
	for (int i = 0; i < MANY; i++)
		FAILS(MPI_Win_attach(win, aside + i, 1), MPI_SUCCESS);
	for (int i = 0; i < N; i += PIECE)
		FAILS(MPI_Win_attach(win, window + i, PIECE * sizeof(long)),
		      MPI_SUCCESS);
}

static void complete_and_die(MPI_Group target)
{
	long ones[N];

	for (int i = 0; i < N; i++)
		ones[i] = 1;
	MPI_Win_start(target, 0, win);
	stop_target();
	for (int i = 0; i < TIMES; i++)
		MPI_Accumulate(ones, N, MPI_LONG, TARGET, at, N, MPI_LONG,
			       MPI_SUM, win);
	FAILS(MPI_Win_complete(win), MPI_SUCCESS);
	dies();
}

int main(int argc, char **argv)
{
	int partner[] = { OTHER, TARGET };
	MPI_Group all, group;

	setenv("MARCEL_NVP", "2", 1);
	dies_begin();
	program_begin(&argc, &argv);
	its = getpid();
	MPI_Bcast(&its, sizeof(its), MPI_BYTE, TARGET, MPI_COMM_WORLD);
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (rank == TARGET)
		attach();
	MPI_Bcast(&at, 1, MPI_AINT, TARGET, MPI_COMM_WORLD);
	MPI_Win_get_group(win, &all);
	MPI_Group_incl(all, 1, &partner[rank], &group);
	if (rank == OTHER)
		complete_and_die(group);
	FAILS(MPI_Win_post(group, 0, win), MPI_SUCCESS);
	for (int over = 0; !over;)
		FAILS(MPI_Win_test(win, &over), MPI_SUCCESS);
	for (int i = 0; i < N; i++)
		EXPECT_INT(window[i], TIMES);
	/* And of the next it is known that it will not complete it. */
	FAILS(MPI_Win_post(group, MPI_MODE_NOCHECK, win), MPI_SUCCESS);
	FAILS(MPI_Win_wait(win), MPI_ERR_PROC_ABORTED);
	MPI_Group_free(&group);
	MPI_Group_free(&all);
	printf("died_after: ok on %d\n", size);
	fflush(stdout);
	MPI_Finalize();
	return 0;
}
