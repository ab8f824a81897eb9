/*
 * Sends to processes that are on their way out: MPI_Finalize waits for all, but
 * the first process still sends, cancels, and waits for that, which is local;
 * or leaves it to its own MPI_Finalize.
 */
#include <stdbool.h>

#include "../program.h"

enum { ROUNDS = 300 };

static char out[4 << 20];

static MPI_Request cancelled_send(int to, bool large)
{
	MPI_Request r;

	if (large)
		MPI_Isend(out, sizeof(out), MPI_BYTE, to, 1, MPI_COMM_WORLD,
			  &r);
	else
		MPI_Issend(out, 100, MPI_BYTE, to, 1, MPI_COMM_WORLD, &r);
	MPI_Cancel(&r);
	return r;
}

/* Nobody receives any of them, so each of them is cancelled. */
static void cancel_while_others_leave(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Request r = cancelled_send((i / 2 + 1) % size, i % 2);
		MPI_Status st;
		int flag;

		MPI_Wait(&r, &st);
		MPI_Test_cancelled(&st, &flag);
		EXPECT_INT(flag, 1);
	}
}

static void leave_some_to_the_end(void)
{
	for (int i = 0; i < 2 * size; i++) {
		MPI_Request r = cancelled_send(i % size, i >= size);

		MPI_Request_free(&r);
	}
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0) {
		cancel_while_others_leave();
		leave_some_to_the_end();
		printf("cancel: ok on %d\n", size);
		fflush(stdout);
	}
	return MPI_Finalize();
}
