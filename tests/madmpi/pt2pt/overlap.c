/*
 * A message that needs its receiver's help arrives while that one computes: it
 * calls neither MPI nor marcel until the sender, whose call has returned, says
 * so by other means.
 */
#include "../program.h"

enum { MESSAGES = 5, BYTES = 3000000 };

/* What both processes see beside messages. */
static volatile int *open_word(MPI_Win *win)
{
	MPI_Aint bytes;
	int unit, *word;

	MPI_Win_allocate_shared(rank == 0 ? sizeof(int) : 0, 1, MPI_INFO_NULL,
				MPI_COMM_WORLD, &word, win);
	MPI_Win_shared_query(*win, 0, &bytes, &unit, &word);
	if (rank == 0)
		*word = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	return word;
}

static void send_all(volatile int *sent, unsigned char *bytes)
{
	for (int i = 0; i < MESSAGES; i++) {
		memset(bytes, i + 1, BYTES);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Send(bytes, BYTES, MPI_BYTE, 1, i, MPI_COMM_WORLD);
		__atomic_store_n(sent, i + 1, __ATOMIC_RELEASE);
	}
}

static void receive_all(volatile int *sent, unsigned char *bytes)
{
	MPI_Request r;

	for (int i = 0; i < MESSAGES; i++) {
		memset(bytes, 0, BYTES);
		MPI_Irecv(bytes, BYTES, MPI_BYTE, 0, i, MPI_COMM_WORLD, &r);
		MPI_Barrier(MPI_COMM_WORLD);
		while (__atomic_load_n(sent, __ATOMIC_ACQUIRE) <= i)
			;
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		for (int j = 0; j < BYTES; j++)
			if (bytes[j] != i + 1)
				EXPECT_INT(bytes[j], i + 1);
	}
}

int main(int argc, char **argv)
{
	const char *engine = getenv("PIOM_ENGINE");
	unsigned char *bytes = malloc(BYTES);
	volatile int *sent;
	MPI_Win win;

	/* Where only those poll who wait, nothing is promised meanwhile. */
	if (engine != NULL && strcmp(engine, "none") == 0)
		unsetenv("PIOM_ENGINE");
	program_begin(&argc, &argv);
	EXPECT(bytes != NULL);
	sent = open_word(&win);
	if (rank == 0)
		send_all(sent, bytes);
	else
		receive_all(sent, bytes);
	free(bytes);
	MPI_Win_free(&win);
	return program_end("overlap");
}
