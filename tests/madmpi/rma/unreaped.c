/*
 * Who dies while it combines elements of shared memory leaves the way free for
 * the others, also while its process number is still taken: nobody has asked
 * for its exit status.
 */
#include "../dies.h"
#include "../program.h"

#include <sys/mman.h>

enum { TARGET = 0, VICTIM = 1 };

static long *part;
static MPI_Aint page;
static MPI_Win win;

/* Until the survivors are through. */
static void stay(pid_t child, const sigset_t *through)
{
	siginfo_t how;
	int signal;

	if (waitid(P_PID, (id_t)child, &how, WEXITED | WNOWAIT) != 0)
		exit(1);
	if (how.si_code == CLD_EXITED)
		exit(how.si_status);
	sigwait(through, &signal);
	dies_take_leave();
	exit(0);
}

static void begin(void)
{
	sigset_t through;
	pid_t child;

	sigemptyset(&through);
	sigaddset(&through, SIGUSR1);
	sigprocmask(SIG_BLOCK, &through, NULL);
	child = fork();
	if (child < 0)
		exit(1);
	if (child > 0)
		stay(child, &through);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigprocmask(SIG_UNBLOCK, &through, NULL);
}

static void die_of(int signal)
{
	(void)signal;
	dies();
}

static void add_one(void)
{
	long one = 1;

	MPI_Accumulate(&one, 1, MPI_LONG, TARGET, 0, 1, MPI_LONG, MPI_SUM, win);
}

int main(int argc, char **argv)
{
	pid_t parent;
	long *mine;
	int unit;

	begin();
	program_begin(&argc, &argv);
	page = sysconf(_SC_PAGESIZE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Win_allocate_shared(page, sizeof(long), MPI_INFO_NULL,
				MPI_COMM_WORLD, &mine, &win);
	MPI_Win_shared_query(win, TARGET, &page, &unit, &part);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
	parent = getppid();
	MPI_Bcast(&parent, sizeof(parent), MPI_BYTE, VICTIM, MPI_COMM_WORLD);
	if (rank == VICTIM) {
		signal(SIGSEGV, die_of);
		EXPECT(mprotect(part, (size_t)page, PROT_NONE) == 0);
	} else {
		MPI_Recv(&unit, 1, MPI_INT, VICTIM, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	}
	add_one();
	EXPECT(rank != VICTIM && *part == 1);
	EXPECT(kill(parent, SIGUSR1) == 0);
	printf("unreaped: ok on %d\n", size);
	fflush(stdout);
	MPI_Finalize();
	return 0;
}
