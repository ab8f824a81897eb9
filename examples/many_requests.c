/*
 * nmad: as many requests as you like at once, with tags of their own, received
 * in another order than sent. The cost of a message does not grow with their
 * number.
 *
 *   mpirun -n 2 many_requests [number]
 */
#include <nmad/nmad.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct nm_session *session;
static struct nm_gate *peer;
static struct nm_sr_request *reqs;
static unsigned *values;

/* A permutation: the tag of the i-th receive. */
static unsigned shuffled(unsigned i, unsigned n)
{
	return (unsigned)((unsigned long long)i * 7919u % n);
}

static void send_all(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct nm_data data = nm_data_flat(&values[i], sizeof(*values));

		values[i] = i;
		nm_sr_isend(session, peer, i, &data, 0, &reqs[i]);
	}
}

static void receive_all(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned tag = shuffled(i, n);
		struct nm_data data =
			nm_data_flat(&values[tag], sizeof(*values));

		nm_sr_irecv(session, peer, tag, NM_TAG_EXACT, &data, &reqs[i]);
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int exchange(unsigned n)
{
	double start = now();
	int bad = 0;

	reqs = calloc(n, sizeof(*reqs));
	values = calloc(n, sizeof(*values));
	if (reqs == NULL || values == NULL)
		return 1;
	if (nm_rank() == 0)
		send_all(n);
	else
		receive_all(n);
	for (unsigned i = 0; i < n; i++)
		nm_sr_wait(&reqs[i]);
	for (unsigned i = 0; i < n; i++)
		bad |= values[i] != i;
	if (nm_rank() == 1)
		printf("%u messages, %.0f ns each, %s\n", n,
		       (now() - start) * 1e9 / n, bad ? "WRONG" : "all right");
	free(reqs);
	free(values);
	return bad;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 10000, bad;

	if (nm_init() != 0)
		return 1;
	if (nm_size() != 2 || n < 1 || n % 7919 == 0) {
		fprintf(stderr, "usage: mpirun -n 2 many_requests [number, no "
				"multiple of 7919]\n");
		nm_exit();
		return 2;
	}
	if (nm_session_open(1, &session) != 0)
		return 1;
	peer = nm_gate_of(1 - nm_rank());
	bad = exchange((unsigned)n);
	nm_session_close(session);
	nm_exit();
	return bad;
}
