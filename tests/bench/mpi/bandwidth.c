/*
 * Two ranks: a stream of messages, several of them under way at once, by their
 * size; MB/s = bytes of a window / its time, from the first send until the
 * receiver's answer that it has all.
 *
 *   stream   from rank 0 to rank 1
 *   both     both ways at once; the bytes of both
 *
 * A window is of 64 messages, or 16 MB, but of 4 at least, each with a place of
 * its own at both ends.
 */
#include "bench.h"

enum { WINDOW_MOST = 64, WINDOW_LEAST = 4, WINDOW_BYTES = 16 << 20 };

struct stream {
	char *out, *in;
	size_t bytes;
	int window, sends, receives;
	long n; /* of the first message of the window */
};

static int window_of(size_t bytes)
{
	size_t n = WINDOW_BYTES / bytes;

	return n < WINDOW_LEAST  ? WINDOW_LEAST
	       : n > WINDOW_MOST ? WINDOW_MOST
				 : (int)n;
}

static int post(struct stream *s, MPI_Request *reqs)
{
	int n = 0;

	for (int w = 0; s->receives && w < s->window; w++)
		MPI_Irecv(s->in + s->bytes * (size_t)w, (int)s->bytes, MPI_BYTE,
			  !bench.rank, 0, MPI_COMM_WORLD, &reqs[n++]);
	for (int w = 0; s->sends && w < s->window; w++) {
		char *buf = s->out + s->bytes * (size_t)w;

		bench_stamp(buf, s->bytes, s->n + w);
		MPI_Isend(buf, (int)s->bytes, MPI_BYTE, !bench.rank, 0,
			  MPI_COMM_WORLD, &reqs[n++]);
	}
	return n;
}

/* Who receives says that it has all. */
static void answer(struct stream *s)
{
	MPI_Request reqs[2];
	char out = 0, in;
	int n = 0;

	if (s->sends)
		MPI_Irecv(&in, 1, MPI_BYTE, !bench.rank, 1, MPI_COMM_WORLD,
			  &reqs[n++]);
	if (s->receives)
		MPI_Isend(&out, 1, MPI_BYTE, !bench.rank, 1, MPI_COMM_WORLD,
			  &reqs[n++]);
	MPI_Waitall(n, reqs, MPI_STATUSES_IGNORE);
}

static void windows(void *arg, long rounds)
{
	struct stream *s = arg;
	MPI_Request reqs[2 * WINDOW_MOST];

	for (long i = 0; i < rounds; i++, s->n += s->window) {
		MPI_Waitall(post(s, reqs), reqs, MPI_STATUSES_IGNORE);
		for (int w = 0; s->receives && w < s->window; w++)
			bench_stamped(s->in + s->bytes * (size_t)w, s->bytes,
				      s->n + w);
		answer(s);
	}
}

static void measure(const char *name, int both, size_t bytes)
{
	struct stream s = { .bytes = bytes, .window = window_of(bytes) };
	size_t all = bytes * (size_t)s.window;
	char x[16];
	double us;

	if (!bench_case(name))
		return;
	s.sends = both || bench.rank == 0;
	s.receives = both || bench.rank == 1;
	s.out = bench_alloc(all);
	s.in = bench_alloc(all);
	for (int w = 0; w < s.window; w++)
		bench_fill(s.out + bytes * (size_t)w, bytes, w);
	us = bench_time(windows, &s);
	for (int w = 0; s.receives && w < s.window; w++)
		bench_check(s.in + bytes * (size_t)w, bytes, w);
	bench_say((double)all * (1 + both) / us, "MB/s", "%s_%s", name,
		  bench_size(x, bytes));
	free(s.in);
	free(s.out);
}

int main(int argc, char **argv)
{
	static const struct bench_program program = {
		.name = "bandwidth",
		.cases = "stream,both",
		.options = "rm",
		.what = "BYTES",
		.ranks_least = 2,
		.ranks_most = 2,
		.least = 1,
		.most = INT_MAX,
		.repeat = 7,
		.ms = 10,
		.numbers = { 1024, 8192, 65536, 262144, 1 << 20, 4 << 20 },
	};

	bench_start(argc, argv, &program);
	for (int i = 0; i < bench.n; i++) {
		measure("stream", 0, (size_t)bench.numbers[i]);
		measure("both", 1, (size_t)bench.numbers[i]);
	}
	MPI_Finalize();
	return 0;
}
