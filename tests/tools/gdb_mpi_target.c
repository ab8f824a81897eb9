/*
 * What tests/tools/gdb.c looks at: a process with receives that wait, messages
 * that nobody has asked for and a send that waits to be matched. Stops in
 * stop_here().
 */
#include <stdlib.h>
#include <string.h>

#include <marcel/marcel.h>
#include <mpi.h>

enum { THREADS = 4 };

static MPI_Comm side;

void stop_here(void);

__attribute__((noinline)) void stop_here(void)
{
	__asm__ volatile("" : : : "memory");
}

static void *receiver(void *arg)
{
	int in[3];

	MPI_Recv(in, 3, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return arg;
}

static void *taker(void *arg)
{
	char in[100];

	MPI_Recv(in, 100, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, side,
		 MPI_STATUS_IGNORE);
	return arg;
}

static void *sender(void *arg)
{
	double out[5] = { 0 };

	MPI_Ssend(out, 5, MPI_DOUBLE, 0, 11, MPI_COMM_WORLD);
	return arg;
}

static void *chooser(void *arg)
{
	MPI_Request r[2];
	char in[2][8];
	int which;

	MPI_Irecv(in[0], 8, MPI_CHAR, 0, 21, MPI_COMM_WORLD, &r[0]);
	MPI_Irecv(in[1], 8, MPI_CHAR, 0, 22, MPI_COMM_WORLD, &r[1]);
	MPI_Waitany(2, r, &which, MPI_STATUS_IGNORE);
	MPI_Wait(&r[!which], MPI_STATUS_IGNORE);
	return arg;
}

static marcel_t start(const char *name, void *(*fn)(void *))
{
	marcel_attr_t attr;
	marcel_t t;

	if (marcel_attr_init(&attr) != 0 ||
	    marcel_attr_setname(&attr, name) != 0 ||
	    marcel_create(&t, &attr, fn, NULL) != 0)
		__builtin_trap();
	return t;
}

/* Counts in arg those of ours that wait. */
static int count(const struct marcel_info *info, void *arg)
{
	*(int *)arg += info->kind == MARCEL_KIND_USER &&
		       info->state == MARCEL_STATE_WAITING &&
		       strncmp(info->name, "the ", 4) == 0;
	return 0;
}

static void wait_for_all(int n)
{
	for (int waiting = 0; waiting < n;) {
		marcel_yield();
		waiting = 0;
		marcel_threads(count, &waiting);
	}
}

static void send(int count, int tag, MPI_Comm comm)
{
	char out[64] = { 0 };

	MPI_Send(out, count, MPI_CHAR, 0, tag, comm);
}

int main(int argc, char **argv)
{
	marcel_t t[THREADS];
	char in[64];
	int n = 0;

	setenv("MARCEL_NVP", "1", 1);
	setenv("MARCEL_TIMESLICE_US", "0", 1); /* they stay as they are */
	MPI_Init(&argc, &argv);
	MPI_Comm_dup(MPI_COMM_WORLD, &side);
	MPI_Comm_set_name(side, "the side");
	t[n++] = start("the receiver", receiver);
	t[n++] = start("the taker", taker);
	t[n++] = start("the sender", sender);
	t[n++] = start("the chooser", chooser);
	wait_for_all(THREADS);
	send(5, 9, MPI_COMM_WORLD);
	stop_here();
	send(12, 7, MPI_COMM_WORLD);
	send(1, 1, side);
	send(8, 21, MPI_COMM_WORLD);
	send(8, 22, MPI_COMM_WORLD);
	MPI_Recv(in, 5, MPI_CHAR, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Recv(in, 64, MPI_CHAR, 0, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < n; i++)
		marcel_join(t[i], NULL);
	MPI_Comm_free(&side);
	return MPI_Finalize();
}
