/*
 * Threads that are cancelled go to the end of a call of MPI: what it has locked
 * for a moment is not locked for ever.
 */
#include <marcel/marcel.h>

#include "../program.h"

enum { THREADS = 4, LARGE = 1 << 18 };

static int out[LARGE], in[LARGE];
static _Atomic int begun, returned;

/* It will end at the next cancellation point. */
static void *flush(void *arg)
{
	marcel_cancel(marcel_self());
	begun++;
	MPI_Comm_flush_buffer(MPI_COMM_WORLD);
	returned++;
	marcel_testcancel();
	return arg;
}

int main(int argc, char **argv)
{
	marcel_t threads[THREADS];
	MPI_Request r;
	void *result;
	int size_of;

	program_begin(&argc, &argv);
	MPI_Comm_attach_buffer(MPI_COMM_WORLD, MPI_BUFFER_AUTOMATIC, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Bsend(out, LARGE, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
	for (int i = 0; i < THREADS; i++)
		marcel_create(&threads[i], NULL, flush, NULL);
	/* All wait in it, for the message to leave. */
	while (begun < THREADS)
		marcel_yield();
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Irecv(in, LARGE, MPI_INT, (rank + size - 1) % size, 0,
		  MPI_COMM_WORLD, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	for (int i = 0; i < THREADS; i++) {
		EXPECT(marcel_join(threads[i], &result) == 0);
		EXPECT(result == MARCEL_CANCELED);
	}
	EXPECT_INT(returned, THREADS);
	MPI_Comm_flush_buffer(MPI_COMM_WORLD);
	MPI_Comm_detach_buffer(MPI_COMM_WORLD, &result, &size_of);
	return program_end("cancelled");
}
