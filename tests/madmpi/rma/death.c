/*
 * A process dies with locks that others wait for, or in an epoch: they are
 * told, and nobody waits for ever.
 */
#include "../dies.h"
#include "../join.h"
#include "windows.h"

#include <sys/mman.h>

enum { KINDS = 5, TARGET = 0, OTHER = 1 };

static int victim, *part;
static MPI_Aint page;
static int *memory[KINDS + 2];
static MPI_Win locked[KINDS], wanted, posted, shared;

/* Of windows whose memory the death leaves alone. */
static MPI_Win window_here(int i)
{
	MPI_Win win =
		window(&kinds[i % KINDS], sizeof(int), sizeof(int), &memory[i]);

	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	return win;
}

/* Of which each process can take the memory of another out of its own. */
static void share_pages(void)
{
	int unit, *mine;
	MPI_Info apart;

	page = sysconf(_SC_PAGESIZE);
	MPI_Info_create(&apart);
	MPI_Info_set(apart, "alloc_shared_noncontig", "true");
	MPI_Win_allocate_shared(page, sizeof(int), apart, MPI_COMM_WORLD, &mine,
				&shared);
	MPI_Info_free(&apart);
	MPI_Win_shared_query(shared, TARGET, &page, &unit, &part);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, shared);
}

static void make_windows(void)
{
	share_pages();
	for (int i = 0; i < KINDS; i++)
		locked[i] = window_here(i);
	wanted = window_here(KINDS);
	posted = window_here(KINDS + 1);
}

static void die_of(int signal)
{
	(void)signal;
	dies();
}

static void add_one(void)
{
	int one = 1;

	MPI_Accumulate(&one, 1, MPI_INT, TARGET, 0, 1, MPI_INT, MPI_SUM,
		       shared);
}

/* It dies of what it adds to, while all others have to wait. */
static void die_while_adding(void)
{
	signal(SIGSEGV, die_of);
	EXPECT(mprotect(part, (size_t)page, PROT_NONE) == 0);
	add_one();
}

static void *want(void *arg)
{
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, wanted);
	return arg;
}

/* It has some locks, waits for another, and others wait for it. */
static void live_and_die(void)
{
	pthread_t thread;
	int nothing;

	for (int i = 0; i < KINDS; i++)
		FAILS(MPI_Win_lock(i % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE,
				   TARGET, 0, locked[i]),
		      MPI_SUCCESS);
	MPI_Barrier(MPI_COMM_WORLD);
	pthread_create(&thread, NULL, want, NULL);
	for (int i = 0; i < KINDS * (size - 1); i++)
		MPI_Recv(&nothing, 1, MPI_INT, MPI_ANY_SOURCE, 0,
			 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	/* Whoever was about to ask has asked, most likely. */
	for (int i = 0; i < 20; i++) {
		MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, posted);
		MPI_Win_unlock(TARGET, posted);
	}
	die_while_adding();
}

/* Of the one that has died nobody gets a lock, nor any epoch that needs it. */
static void *ask(void *arg)
{
	int i = (int)(size_t)arg;

	MPI_Send(&i, 1, MPI_INT, victim, 0, MPI_COMM_WORLD);
	FAILS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, locked[i]),
	      MPI_ERR_PROC_ABORTED);
	FAILS(MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, locked[i]),
	      MPI_ERR_PROC_ABORTED);
	/* It has ended: another one may begin, and has no locks from this. */
	for (int k = 0; k < 2; k++)
		FAILS(MPI_Win_lock_all(0, locked[i]), MPI_ERR_PROC_ABORTED);
	if (victim == OTHER)
		return NULL;
	FAILS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, OTHER, 0, locked[i]),
	      MPI_SUCCESS);
	FAILS(MPI_Win_unlock(OTHER, locked[i]), MPI_SUCCESS);
	return NULL;
}

static void survive(void)
{
	pthread_t threads[KINDS];
	MPI_Group all, from;

	MPI_Win_get_group(posted, &all);
	MPI_Group_incl(all, 1, &victim, &from);
	FAILS(MPI_Win_post(from, MPI_MODE_NOCHECK, posted), MPI_SUCCESS);
	if (rank == TARGET)
		FAILS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, wanted),
		      MPI_SUCCESS);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < KINDS; i++)
		pthread_create(&threads[i], NULL, ask, (void *)(size_t)i);
	for (int i = 0; i < KINDS; i++)
		program_join(threads[i]);
	FAILS(MPI_Win_wait(posted), MPI_ERR_PROC_ABORTED);
	FAILS(MPI_Win_wait(posted), MPI_ERR_RMA_SYNC);
	add_one();
	if (rank == TARGET)
		FAILS(MPI_Win_unlock(TARGET, wanted), MPI_SUCCESS);
	/* The dead one is not next. */
	FAILS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, wanted), MPI_SUCCESS);
	FAILS(MPI_Win_unlock(TARGET, wanted), MPI_SUCCESS);
	MPI_Group_free(&from);
	MPI_Group_free(&all);
}

int main(int argc, char **argv)
{
	dies_begin();
	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	victim = size - 1;
	make_windows();
	if (rank == victim)
		live_and_die();
	survive();
	if (rank == 0)
		printf("death: ok on %d\n", size);
	fflush(stdout);
	MPI_Finalize();
	return 0;
}
