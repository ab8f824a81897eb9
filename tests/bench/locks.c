/*
 * What locking costs a message: ping-pongs of threads, each with its partner,
 * under the scheme that NMAD_LOCK says (RenPar 2009, figures 4 and 5). Half a
 * round trip in us, as one thread sees it, by the threads that there are and
 * the size of the message.
 *
 *   mpirun -n 2 bench_locks      between the threads of two processes
 *   bench_locks                  each thread to itself, in one process
 *   bench_locks BYTES TRIPS      one thread, so many messages there and back:
 *                                for callgrind
 *
 * Two threads disturb each other only if they run at once: each process needs
 * two VPs, and should have a CPU for each.
 */
#include <string.h>

#include <marcel/marcel.h>
#include <nmad/nmad.h>

#include "measure.h"

enum { BATCHES = 31, TRIPS = 2000, THREADS_MAX = 2 };

static const size_t sizes[] = { 1, 16, 64, 256, 1024, 2048 };

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), LARGEST = 2048 };

struct partner {
	nm_tag_t tag;
	size_t bytes;
	double us[BATCHES];
};

static struct nm_session *session;
static struct nm_gate *peer;
static marcel_barrier_t together;
static int batches = BATCHES, trips = TRIPS;

static void post(struct nm_sr_request *req, const struct partner *p, char *buf)
{
	struct nm_data d = nm_data_flat(buf, p->bytes);

	nm_sr_irecv(session, peer, p->tag, NM_TAG_EXACT, &d, req);
}

static void send_now(const struct partner *p, const char *buf)
{
	struct nm_data d = nm_data_flat(buf, p->bytes);
	struct nm_sr_request req;

	nm_sr_isend(session, peer, p->tag, &d, NM_SEND_NOW, &req);
	nm_sr_wait(&req);
}

/* There and back; to oneself that is twice the way there. */
static void trip(const struct partner *p, const char *out, char *in)
{
	bool first = nm_rank() == 0;
	struct nm_sr_request req;

	for (int i = 0; i < (nm_size() == 1 ? 2 : 1); i++) {
		post(&req, p, in);
		if (first)
			send_now(p, out);
		nm_sr_wait(&req);
		if (!first)
			send_now(p, out);
	}
}

static void *talk(void *arg)
{
	struct partner *p = arg;
	char out[LARGEST], in[LARGEST];

	memset(out, 1, sizeof(out));
	for (int b = 0; b < batches; b++) {
		uint64_t start;

		marcel_barrier_wait(&together);
		start = now_ns();
		for (int i = 0; i < trips; i++)
			trip(p, out, in);
		p->us[b] = (double)(now_ns() - start) / 1000 / trips / 2;
	}
	return NULL;
}

/* The mean of the threads, the median of the batches. */
static double latency(int n, size_t bytes)
{
	static struct partner partners[THREADS_MAX];
	marcel_t threads[THREADS_MAX];
	double mean[BATCHES] = { 0 };

	must(marcel_barrier_init(&together, NULL, (unsigned)n) == 0, "barrier");
	for (int i = 0; i < n; i++) {
		partners[i].tag = (nm_tag_t)i;
		partners[i].bytes = bytes;
		must(marcel_create(&threads[i], NULL, talk, &partners[i]) == 0,
		     "marcel_create");
	}
	for (int i = 0; i < n; i++) {
		marcel_join(threads[i], NULL);
		for (int b = 0; b < batches; b++)
			mean[b] += partners[i].us[b] / n;
	}
	marcel_barrier_destroy(&together);
	return median(mean, batches);
}

static void measure(int n, size_t bytes)
{
	double us = latency(n, bytes);

	if (nm_rank() == 0)
		printf("threads_%d_%zu %.4f us\n", n, bytes, us);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	must(nm_init() == 0 && nm_size() <= 2, "nm_init");
	peer = nm_gate_of(nm_size() - 1 - nm_rank());
	must(nm_session_open(1, &session) == 0, "nm_session_open");
	if (argc == 3) {
		size_t bytes = strtoul(argv[1], NULL, 10);

		batches = 1;
		trips = atoi(argv[2]);
		must(trips > 0 && bytes <= LARGEST, "locks BYTES TRIPS");
		measure(1, bytes);
	} else {
		for (int n = 1; n <= THREADS_MAX; n++)
			for (int s = 0; s < SIZES; s++)
				measure(n, sizes[s]);
	}
	nm_session_close(session);
	return nm_exit() < 0;
}
