/*
 * User threads that wait in MPI continue on other kernel threads; errno follows
 * them there (<marcel/errno.h>).
 */
#include "../program.h"

#include <marcel/marcel.h>
#include <errno.h>

enum { THREADS = 300 / FEWER, ROUNDS = 100 };

static void keep(int value)
{
	errno = value;
	marcel_yield();
	EXPECT_INT(errno, value);
}

static void *exchange(void *arg)
{
	int tag = (int)(long)arg, peer = rank ^ 1, got;

	for (int i = 0; i < ROUNDS; i++) {
		keep(1000 + tag);
		EXPECT_INT(MPI_Sendrecv(&i, 1, MPI_INT, peer, tag, &got, 1,
					MPI_INT, peer, tag, MPI_COMM_WORLD,
					MPI_STATUS_IGNORE),
			   MPI_SUCCESS);
		EXPECT_INT(got, i);
		keep(2000 + tag);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	marcel_t t[THREADS];

	program_begin(&argc, &argv);
	for (long i = 0; i < THREADS; i++)
		EXPECT_INT(marcel_create(&t[i], NULL, exchange, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		EXPECT_INT(marcel_join(t[i], NULL), 0);
	return program_end("errno");
}
