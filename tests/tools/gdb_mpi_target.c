/*
 * What tests/tools/gdb.c looks at: receives that wait, messages that nobody has
 * asked for and a send that waits to be matched. Alone it stops in stop_here(),
 * or, "crash", a thread dies there; of two ranks each waits for a message of
 * the other's main, until there is a SIGUSR1.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <marcel/marcel.h>
#include <mpi.h>

#include "../named.h"

enum { THREADS = 4, LARGE = 1 << 20 };

static MPI_Comm side;
static int peer; /* whom all talk to: the process itself, if it is alone */
static marcel_sem_t go_on;

void stop_here(void);

__attribute__((noinline)) void stop_here(void)
{
	__asm__ volatile("" : : : "memory");
}

static void *receiver(void *arg)
{
	int in[3];

	MPI_Recv(in, 3, MPI_INT, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
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

	MPI_Ssend(out, 5, MPI_DOUBLE, peer, 11, MPI_COMM_WORLD);
	return arg;
}

static void *chooser(void *arg)
{
	MPI_Request r[2];
	char in[2][8];
	int which;

	MPI_Irecv(in[0], 8, MPI_CHAR, peer, 21, MPI_COMM_WORLD, &r[0]);
	MPI_Irecv(in[1], 8, MPI_CHAR, peer, 22, MPI_COMM_WORLD, &r[1]);
	MPI_Waitany(2, r, &which, MPI_STATUS_IGNORE);
	MPI_Wait(&r[!which], MPI_STATUS_IGNORE);
	return arg;
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

	MPI_Send(out, count, MPI_CHAR, peer, tag, comm);
}

static __attribute__((noinline)) void *crasher(void *arg)
{
	*(volatile int *)arg = 43;
	return arg;
}

static int main_waits(const struct marcel_info *info, void *arg)
{
	(void)arg;
	return info->kind == MARCEL_KIND_MAIN &&
	       info->state == MARCEL_STATE_WAITING;
}

/* Says when all is as it stays; nobody moves until it sends. */
static void *teller(void *arg)
{
	while (marcel_threads(main_waits, NULL) == 0)
		marcel_yield();
	printf("there\n");
	fflush(stdout);
	marcel_sem_wait(&go_on);
	send(4, 5, MPI_COMM_WORLD);
	return arg;
}

static void on_signal(int sig)
{
	(void)sig;
	marcel_sem_post(&go_on);
}

/* What there is has come; and both receive first. */
static void hang(void)
{
	static char out[LARGE], in[LARGE];
	MPI_Request r;
	marcel_t t;

	marcel_sem_init(&go_on, 0, 0);
	signal(SIGUSR1, on_signal);
	MPI_Isend(out, LARGE, MPI_CHAR, peer, 13, MPI_COMM_WORLD, &r);
	MPI_Probe(peer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Probe(peer, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Probe(peer, 13, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	t = start("the teller", teller, NULL);
	MPI_Recv(in, 4, MPI_CHAR, peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	marcel_join(t, NULL);
	MPI_Recv(in, LARGE, MPI_CHAR, peer, 13, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
}

/* All that somebody waits for. */
static void release(void)
{
	char in[64];

	send(12, 7, MPI_COMM_WORLD);
	send(1, 1, side);
	send(8, 21, MPI_COMM_WORLD);
	send(8, 22, MPI_COMM_WORLD);
	MPI_Recv(in, 5, MPI_CHAR, peer, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Recv(in, 64, MPI_CHAR, peer, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	marcel_t t[THREADS];
	int n = 0, rank, size;

	setenv("MARCEL_NVP", "1", 1);
	setenv("MARCEL_TIMESLICE_US", "0", 1); /* they stay as they are */
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	peer = size - 1 - rank;
	MPI_Comm_dup(MPI_COMM_WORLD, &side);
	MPI_Comm_set_name(side, "the side");
	t[n++] = start("the receiver", receiver, NULL);
	t[n++] = start("the taker", taker, NULL);
	t[n++] = start("the sender", sender, NULL);
	t[n++] = start("the chooser", chooser, NULL);
	wait_for_all(THREADS);
	send(5, 9, MPI_COMM_WORLD);
	if (size > 1)
		hang();
	if (argc > 1)
		marcel_join(start("the crasher", crasher, NULL), NULL);
	stop_here();
	release();
	for (int i = 0; i < n; i++)
		marcel_join(t[i], NULL);
	MPI_Comm_free(&side);
	return MPI_Finalize();
}
