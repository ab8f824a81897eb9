/*
 * A message that needs its receiver's help arrives while that one computes: it
 * calls neither MPI nor marcel until the sender, whose call has returned, says
 * so by other means.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../program.h"

enum { MESSAGES = 5, BYTES = 3000000 };

/*
 * What both processes see beside messages: memory of rank 0. That of a window
 * would do, too, but for the thread that waits in the library as long as there
 * is one. NULL: this process cannot have it.
 */
static volatile int *open_word(void)
{
	int at[2] = { (int)getpid(), -1 }, fd;
	char path[64];
	void *word;

	if (rank == 0) {
		at[1] = memfd_create("overlap", MFD_CLOEXEC);
		EXPECT(at[1] >= 0 && ftruncate(at[1], sizeof(int)) == 0);
	}
	MPI_Bcast(at, 2, MPI_INT, 0, MPI_COMM_WORLD);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", at[0], at[1]);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		perror(path);
		return NULL;
	}
	word = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	EXPECT(word != MAP_FAILED);
	close(fd);
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
	int can;

	/* Where only those poll who wait, nothing is promised meanwhile. */
	if (engine != NULL && strcmp(engine, "none") == 0)
		unsetenv("PIOM_ENGINE");
	program_begin(&argc, &argv);
	EXPECT(bytes != NULL);
	sent = open_word();
	can = sent != NULL;
	MPI_Allreduce(MPI_IN_PLACE, &can, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	if (!can) {
		MPI_Finalize();
		return 77;
	}
	if (rank == 0)
		send_all(sent, bytes);
	else
		receive_all(sent, bytes);
	free(bytes);
	return program_end("overlap");
}
