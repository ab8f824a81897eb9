/*
 * What a message costs between two processes (with one: to itself):
 *   latency_SIZE   half a round trip
 *   rate           8-byte messages in windows of 64, time per message
 * Lines "NAME VALUE us", of the medians of batches.
 *
 *   mpirun -n 2 bench_nmad [largest size [smallest, which is doubled]]
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <nmad/nmad.h>

enum { BATCHES = 31, WINDOW = 64, LARGEST = 4 << 20 };

static struct nm_session *session;
static struct nm_gate *peer;
static char *out_bytes, *in_bytes;

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void send_one(size_t bytes)
{
	struct nm_data d = nm_data_flat(out_bytes, bytes);
	struct nm_sr_request req;

	nm_sr_isend(session, peer, 1, &d, 0, &req);
	nm_sr_wait(&req);
}

static void recv_one(size_t bytes)
{
	struct nm_data d = nm_data_flat(in_bytes, bytes);
	struct nm_sr_request req;

	nm_sr_irecv(session, peer, 1, NM_TAG_EXACT, &d, &req);
	nm_sr_wait(&req);
}

static void round_trips(size_t bytes, int n)
{
	for (int i = 0; i < n; i++) {
		if (nm_rank() == 0) {
			send_one(bytes);
			recv_one(bytes);
		} else {
			recv_one(bytes);
			send_one(bytes);
		}
	}
}

/* To itself: a message is there and back at once. */
static void to_myself(size_t bytes, int n)
{
	struct nm_data to = nm_data_flat(in_bytes, bytes);
	struct nm_data from = nm_data_flat(out_bytes, bytes);
	struct nm_sr_request in, out;

	for (int i = 0; i < 2 * n; i++) {
		nm_sr_irecv(session, peer, 1, NM_TAG_EXACT, &to, &in);
		nm_sr_isend(session, peer, 1, &from, 0, &out);
		nm_sr_wait(&in);
		nm_sr_wait(&out);
	}
}

static void print(size_t bytes, double us)
{
	if (bytes >= 1 << 20 && bytes % (1 << 20) == 0)
		printf("latency_%zuM %.4f us\n", bytes >> 20, us);
	else if (bytes >= 1 << 10 && bytes % (1 << 10) == 0)
		printf("latency_%zuK %.4f us\n", bytes >> 10, us);
	else
		printf("latency_%zuB %.4f us\n", bytes, us);
}

static void latency(size_t bytes)
{
	int n = bytes < 4096 ? 2000 : bytes < 65536 ? 300 : 20;
	double t[BATCHES];

	for (int i = 0; i < BATCHES; i++) {
		double start = now_us();

		if (nm_size() == 1)
			to_myself(bytes, n);
		else
			round_trips(bytes, n);
		t[i] = (now_us() - start) / n / 2;
	}
	qsort(t, BATCHES, sizeof(t[0]), compare);
	if (nm_rank() == 0)
		print(bytes, t[BATCHES / 2]);
}

static void window(bool sender)
{
	struct nm_data d = nm_data_flat(sender ? out_bytes : in_bytes, 8);
	struct nm_sr_request reqs[WINDOW];

	for (int i = 0; i < WINDOW; i++) {
		if (sender)
			nm_sr_isend(session, peer, 1, &d, 0, &reqs[i]);
		else
			nm_sr_irecv(session, peer, 1, NM_TAG_EXACT, &d,
				    &reqs[i]);
	}
	for (int i = 0; i < WINDOW; i++)
		nm_sr_wait(&reqs[i]);
}

static void rate(void)
{
	double t[BATCHES];
	int n = 200;

	for (int i = 0; i < BATCHES; i++) {
		double start = now_us();

		for (int j = 0; j < n; j++)
			window(nm_rank() == 0);
		if (nm_rank() == 0)
			recv_one(0);
		else
			send_one(0);
		t[i] = (now_us() - start) / n / WINDOW;
	}
	qsort(t, BATCHES, sizeof(t[0]), compare);
	if (nm_rank() == 0)
		printf("rate %.4f us\n", t[BATCHES / 2]);
}

int main(int argc, char **argv)
{
	size_t largest = argc > 1 ? strtoul(argv[1], NULL, 10) : LARGEST;
	size_t smallest = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

	if (nm_init() < 0 || nm_size() > 2)
		return 1;
	out_bytes = calloc(1, LARGEST);
	in_bytes = calloc(1, LARGEST);
	peer = nm_gate_of(nm_size() - 1 - nm_rank());
	if (nm_session_open(1, &session) < 0)
		return 1;
	for (size_t bytes = smallest > 0 ? smallest : 8;
	     bytes <= largest && bytes <= LARGEST;) {
		latency(bytes);
		bytes *= smallest > 0 ? 2 : bytes < 64 ? 8 : 4;
	}
	if (nm_size() == 2)
		rate();
	nm_session_close(session);
	return nm_exit() < 0;
}
