/*
 * nmad: two processes play ping-pong with the send and receive interface.
 *
 *   mpirun -n 2 ping
 */
#include <nmad/nmad.h>
#include <stdio.h>
#include <time.h>

enum { ROUNDS = 10000, TAG = 1 };

static struct nm_session *session;
static struct nm_gate *peer;

static void send(char *ball)
{
	struct nm_data data = nm_data_flat(ball, 1);

	nm_sr_send(session, peer, TAG, &data, 0);
}

static void receive(char *ball)
{
	struct nm_data data = nm_data_flat(ball, 1);

	nm_sr_recv(session, peer, TAG, NM_TAG_EXACT, &data, NULL);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(void)
{
	double start;
	char ball = 0;
	int rank;

	if (nm_init() != 0)
		return 1;
	if (nm_size() != 2) {
		fprintf(stderr, "ping: run it as two processes\n");
		nm_exit();
		return 2;
	}
	/* Sessions of programs have small numbers, the same in all. */
	if (nm_session_open(1, &session) != 0)
		return 1;
	rank = nm_rank();
	peer = nm_gate_of(1 - rank);
	start = now();
	for (int i = 0; i < ROUNDS; i++) {
		if (rank == 0)
			send(&ball);
		receive(&ball);
		ball++;
		if (rank == 1)
			send(&ball);
	}
	if (rank == 0)
		printf("%d rounds, %.2f us each way\n", ROUNDS,
		       (now() - start) * 1e6 / ROUNDS / 2);
	nm_session_close(session);
	nm_exit();
	return ball != (char)(rank == 0 ? 2 * ROUNDS : 2 * ROUNDS - 1);
}
