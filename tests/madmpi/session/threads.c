/*
 * Sessions of threads that know nothing of each other: each begins one of its
 * own, as the first of the process or while others are there, makes
 * communicators and ends it. The thread that was the first to begin ends before
 * the process does. All at once, and in another order in every process; the
 * world model comes and goes meanwhile.
 */
#include "../join.h"

#include "session.h"

enum { THREADS = 6, ROUNDS = 10 / FEWER };

static void *one(void *arg)
{
	int number = *(int *)arg;
	char tag[32];

	for (int i = 0; i < ROUNDS; i++) {
		MPI_Session s = session_of_errors_return();
		MPI_Group self = group_of(s, "mpi://SELF");
		MPI_Comm all, alone;

		snprintf(tag, sizeof(tag), "thread %d", number);
		all = comm_of(s, tag);
		alone = comm_from(self, "alone");
		expect_works(all, size);
		expect_works(alone, 1);
		MPI_Comm_free(&alone);
		/* It goes with its session. */
		if (number % 2 == 0)
			MPI_Comm_free(&all);
		MPI_Group_free(&self);
		EXPECT_INT(MPI_Session_finalize(&s), MPI_SUCCESS);
	}
	return NULL;
}

static void *first(void *arg)
{
	MPI_Session s = session_of_errors_return();

	learn(s);
	MPI_Session_finalize(&s);
	return arg;
}

int main(void)
{
	pthread_t t[THREADS], before;
	int number[THREADS];

	setenv("MADMPI_INITIAL_ERRHANDLER", "mpi_errors_return", 1);
	pthread_create(&before, NULL, first, NULL);
	program_join(before);
	for (int i = 0; i < THREADS; i++) {
		number[i] = (i + rank) % THREADS;
		pthread_create(&t[i], NULL, one, &number[i]);
	}
	EXPECT_INT(MPI_Init(NULL, NULL), MPI_SUCCESS);
	expect_works(MPI_COMM_WORLD, size);
	EXPECT_INT(MPI_Finalize(), MPI_SUCCESS);
	for (int i = 0; i < THREADS; i++)
		program_join(t[i]);
	return 0;
}
