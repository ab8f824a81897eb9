/*
 * Operations in the background and computation at once, as overlap is about
 * messages: us from when the operation is started until all ranks have its end,
 * a barrier. Nobody computes (OPERATION_X); or rank 0 (first), the others
 * (rest) or all of them (all) compute as long as that takes (-u: so many us)
 * between the call that starts it and the one that waits for it, without a look
 * at MPI. X is its bytes, of an all-to-all those for each rank.
 *
 *   iallreduce, ibcast, ialltoall   non-blocking collectives
 *   put, get                        of rank 0 on the window of the last rank,
 *                                   which only computes, or waits; the window
 *                                   is MPI_Win_allocate's, or of the program's
 *                                   memory (put_created, get_created)
 *
 *   hidden_OPERATION_WHO   the share of it that the computation hides:
 *                          (computation + operation - time) / operation
 */
#include "window.h"

enum who { NOBODY, FIRST, REST, ALL };

static const char *const names[] = { "", "first", "rest", "all" };

/* What is measured. */
struct work {
	const struct operation *operation;
	size_t bytes;
	char *out, *in;
	struct window w;
	MPI_Request req;
	long count; /* of operations so far, the same at all ranks */
};

struct operation {
	const char *name;
	void (*start)(struct work *w);
	void (*wait)(struct work *w);
	void (*check)(struct work *w);
	int shares; /* a share for each rank */
	int has_window;
	enum window_kind kind;
};

static int last(void)
{
	return bench.size - 1;
}

static void wait_request(struct work *w)
{
	MPI_Wait(&w->req, MPI_STATUS_IGNORE);
}

/* Each rank's numbers are its rank and the count. */
static void start_iallreduce(struct work *w)
{
	long long *out = (long long *)w->out;
	size_t n = w->bytes / sizeof(*out);

	out[0] = out[n - 1] = w->count + bench.rank;
	MPI_Iallreduce(w->out, w->in, (int)n, MPI_LONG_LONG, MPI_SUM,
		       MPI_COMM_WORLD, &w->req);
}

static void check_iallreduce(struct work *w)
{
	const long long *in = (const long long *)w->in;
	size_t n = w->bytes / sizeof(*in);
	long long p = bench.size, want = p * w->count + p * (p - 1) / 2;

	if (in[0] != want || in[n - 1] != want)
		bench_fail("iallreduce: %lld and %lld, not %lld", in[0],
			   in[n - 1], want);
}

static void start_ibcast(struct work *w)
{
	char *buf = bench.rank == 0 ? w->out : w->in;

	if (bench.rank == 0)
		bench_stamp(buf, w->bytes, w->count);
	MPI_Ibcast(buf, (int)w->bytes, MPI_BYTE, 0, MPI_COMM_WORLD, &w->req);
}

static void check_ibcast(struct work *w)
{
	if (bench.rank != 0)
		bench_stamped(w->in, w->bytes, w->count);
}

static void start_ialltoall(struct work *w)
{
	for (int r = 0; r < bench.size; r++)
		bench_stamp(w->out + w->bytes * (size_t)r, w->bytes,
			    w->count + 3 * bench.rank + 5 * r);
	MPI_Ialltoall(w->out, (int)w->bytes, MPI_BYTE, w->in, (int)w->bytes,
		      MPI_BYTE, MPI_COMM_WORLD, &w->req);
}

static void check_ialltoall(struct work *w)
{
	for (int r = 0; r < bench.size; r++)
		bench_stamped(w->in + w->bytes * (size_t)r, w->bytes,
			      w->count + 3 * r + 5 * bench.rank);
}

static void start_put(struct work *w)
{
	if (bench.rank != 0)
		return;
	bench_stamp(w->out, w->bytes, w->count);
	MPI_Put(w->out, (int)w->bytes, MPI_BYTE, last(), 0, (int)w->bytes,
		MPI_BYTE, w->w.win);
}

static void check_put(struct work *w)
{
	window_look(&w->w);
	if (bench.rank == last())
		bench_stamped(w->w.at, w->bytes, w->count);
}

/* The first and the last byte of the last rank's are always the same. */
static void start_get(struct work *w)
{
	if (bench.rank != 0)
		return;
	bench_stamp(w->in, w->bytes, 1);
	MPI_Get(w->in, (int)w->bytes, MPI_BYTE, last(), 0, (int)w->bytes,
		MPI_BYTE, w->w.win);
}

static void check_get(struct work *w)
{
	if (bench.rank == 0)
		bench_stamped(w->in, w->bytes, 2);
}

static void wait_flush(struct work *w)
{
	if (bench.rank == 0)
		MPI_Win_flush(last(), w->w.win);
}

static const struct operation operations[] = {
	{ "iallreduce", start_iallreduce, wait_request, check_iallreduce, 0, 0,
	  ALLOCATED },
	{ "ibcast", start_ibcast, wait_request, check_ibcast, 0, 0, ALLOCATED },
	{ "ialltoall", start_ialltoall, wait_request, check_ialltoall, 1, 0,
	  ALLOCATED },
	{ "put", start_put, wait_flush, check_put, 0, 1, ALLOCATED },
	{ "get", start_get, wait_flush, check_get, 0, 1, ALLOCATED },
	{ "put_created", start_put, wait_flush, check_put, 0, 1, CREATED },
	{ "get_created", start_get, wait_flush, check_get, 0, 1, CREATED },
};

/* us, at rank 0. */
static double once(struct work *w, enum who who, double us)
{
	int mine = bench.rank == 0 ? who & FIRST : who & REST;
	double begin, took;

	w->count++;
	MPI_Barrier(MPI_COMM_WORLD);
	begin = MPI_Wtime();
	w->operation->start(w);
	if (mine)
		bench_compute(us);
	w->operation->wait(w);
	MPI_Barrier(MPI_COMM_WORLD);
	took = (MPI_Wtime() - begin) * 1e6;
	w->operation->check(w);
	return took;
}

static double median(struct work *w, enum who who, double us)
{
	double *t = bench_alloc(sizeof(*t) * (size_t)bench.repeat), found;

	once(w, who, us);
	for (int r = 0; r < bench.repeat; r++)
		t[r] = once(w, who, us);
	found = bench_of(bench_median(t, bench.repeat), 0);
	free(t);
	return found;
}

static void compare(struct work *w)
{
	const char *name = w->operation->name;
	double alone = median(w, NOBODY, 0);
	double us = bench.us > 0 ? bench.us : alone;
	char x[16];

	bench_size(x, w->bytes);
	bench_say(alone, "us", "%s_%s", name, x);
	for (int who = FIRST; who <= ALL; who++) {
		double took = median(w, (enum who)who, us);

		bench_say((us + alone - took) / alone, "share",
			  "hidden_%s_%s_%s", name, names[who], x);
	}
}

static void measure(const struct operation *o, size_t bytes)
{
	size_t room = bytes * (size_t)(o->shares ? bench.size : 1);
	struct work w = { .operation = o, .bytes = bytes };

	w.out = bench_alloc(room);
	w.in = bench_alloc(room);
	if (o->has_window) {
		window_open(&w.w, o->kind, bytes);
		bench_stamp(w.w.at, bytes, 2);
		window_look(&w.w);
	}
	compare(&w);
	if (o->has_window)
		window_close(&w.w);
	free(w.in);
	free(w.out);
}

int main(int argc, char **argv)
{
	static const struct bench_program program = {
		.name = "background",
		.cases = "iallreduce,ibcast,ialltoall,put,get,put_created,"
			 "get_created",
		.options = "ru",
		.what = "BYTES",
		.ranks_least = 2,
		.ranks_most = 1000,
		.least = 8,
		.most = 1 << 28,
		.repeat = 51,
		.numbers = { 64 << 10, 1 << 20 },
	};

	bench_start(argc, argv, &program);
	for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++)
		for (int n = 0; n < bench.n && bench_case(operations[i].name);
		     n++)
			measure(&operations[i],
				(size_t)bench.numbers[n] / 8 * 8);
	MPI_Finalize();
	return 0;
}
