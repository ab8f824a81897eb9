/*
 * Partitions that many threads make ready at once, and that as many wait for:
 * user threads and the program's own kernel threads, round after round.
 */
#include "../program.h"

#include <marcel/marcel.h>
#include "../join.h"

enum { PARTITIONS = 48, EACH = 20, THREADS = 8, ROUNDS = 30 / FEWER };

static int out[PARTITIONS * EACH], in[PARTITIONS * EACH];
static int next, previous, round_now;
static MPI_Request send_request, receive_request;

static int value(int from, int i)
{
	return from * 100000 + round_now * 1000 + i;
}

/* Thread k makes every THREADS-th partition ready, from k on. */
static void *sends(void *arg)
{
	int first = *(int *)arg;

	for (int p = first; p < PARTITIONS; p += THREADS) {
		for (int i = p * EACH; i < (p + 1) * EACH; i++)
			out[i] = value(rank, i);
		EXPECT_INT(MPI_Pready(p, send_request), MPI_SUCCESS);
	}
	return NULL;
}

static void *receives(void *arg)
{
	int last = PARTITIONS - 1 - *(int *)arg, flag;

	for (int p = last; p >= 0; p -= THREADS) {
		while (MPI_Parrived(receive_request, p, &flag), !flag)
			marcel_yield();
		for (int i = p * EACH; i < (p + 1) * EACH; i++)
			EXPECT_INT(in[i], value(previous, i));
	}
	return NULL;
}

static void user_threads(int id[THREADS])
{
	marcel_t t[2 * THREADS];

	for (int i = 0; i < THREADS; i++) {
		marcel_create(&t[i], NULL, receives, &id[i]);
		marcel_create(&t[THREADS + i], NULL, sends, &id[i]);
	}
	for (int i = 0; i < 2 * THREADS; i++)
		marcel_join(t[i], NULL);
}

static void kernel_threads(int id[THREADS])
{
	pthread_t t[2 * THREADS];

	for (int i = 0; i < THREADS; i++) {
		pthread_create(&t[i], NULL, receives, &id[i]);
		pthread_create(&t[THREADS + i], NULL, sends, &id[i]);
	}
	for (int i = 0; i < 2 * THREADS; i++)
		program_join(t[i]);
}

int main(int argc, char **argv)
{
	MPI_Request both[2];
	int id[THREADS];

	program_begin(&argc, &argv);
	next = (rank + 1) % size;
	previous = (rank - 1 + size) % size;
	for (int i = 0; i < THREADS; i++)
		id[i] = i;
	MPI_Psend_init(out, PARTITIONS, EACH, MPI_INT, next, 0, MPI_COMM_WORLD,
		       MPI_INFO_NULL, &send_request);
	MPI_Precv_init(in, PARTITIONS, EACH, MPI_INT, previous, 0,
		       MPI_COMM_WORLD, MPI_INFO_NULL, &receive_request);
	for (round_now = 0; round_now < ROUNDS; round_now++) {
		both[0] = send_request;
		both[1] = receive_request;
		MPI_Startall(2, both);
		if (round_now % 2 == 0)
			user_threads(id);
		else
			kernel_threads(id);
		MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
	}
	MPI_Request_free(&send_request);
	MPI_Request_free(&receive_request);
	return program_end("threads");
}
