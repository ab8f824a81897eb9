/*
 * One-sided communication, us until it is done at the target: the call, then
 * MPI_Win_flush, of rank 0 on rank 1's part of a window that all have locked
 * (MPI_Win_lock_all). X is its bytes. The window is MPI_Win_allocate's, or of
 * the program's own memory (..._created).
 *
 *   put, get   MPI_Put, MPI_Get; rank 1 waits in a barrier
 *   fetch      MPI_Fetch_and_op, a sum of 8 bytes, likewise
 *   waits      a put to rank 1 that waits in a barrier, one at a time
 *   computes   the same, while rank 1 computes for -u us and calls nothing of
 *              MPI: the median
 *   most       and the longest
 */
#include "window.h"

/* With 8 bytes a rank, MPICH 4.0.2 puts into those of another one. */
enum { AFTER_US = 1000, PAGE = 4096 };

/* What is measured: rank 0 changes or reads the window of rank 1. */
struct access {
	struct window *w;
	size_t bytes;
	char *buf;  /* rank 0's */
	long count; /* of operations so far, the same at both */
};

static void put_one(struct access *a)
{
	bench_stamp(a->buf, a->bytes, a->count);
	MPI_Put(a->buf, (int)a->bytes, MPI_BYTE, 1, 0, (int)a->bytes, MPI_BYTE,
		a->w->win);
	MPI_Win_flush(1, a->w->win);
}

static void put(void *arg, long rounds)
{
	struct access *a = arg;

	for (long i = 0; i < rounds; i++, a->count++)
		if (bench.rank == 0)
			put_one(a);
}

/* What rank 1 has is always the same: rank 0 forgets it each time. */
static void get(void *arg, long rounds)
{
	struct access *a = arg;

	for (long i = 0; i < rounds && bench.rank == 0; i++) {
		bench_stamp(a->buf, a->bytes, 1);
		MPI_Get(a->buf, (int)a->bytes, MPI_BYTE, 1, 0, (int)a->bytes,
			MPI_BYTE, a->w->win);
		MPI_Win_flush(1, a->w->win);
		bench_stamped(a->buf, a->bytes, 2);
	}
}

static void fetch(void *arg, long rounds)
{
	struct access *a = arg;
	long long one = 1, before = -1;

	for (long i = 0; i < rounds; i++, a->count++) {
		if (bench.rank != 0)
			continue;
		MPI_Fetch_and_op(&one, &before, MPI_LONG_LONG, 1, 0, MPI_SUM,
				 a->w->win);
		MPI_Win_flush(1, a->w->win);
		if (before != a->count)
			bench_fail("fetched %lld, not %ld", before, a->count);
	}
}

/* Rank 1 looks whether the last put has come. */
static void check_put(struct access *a, int filled)
{
	window_look(a->w);
	if (bench.rank == 1) {
		bench_check(a->w->at, a->bytes, filled);
		bench_stamped(a->w->at, a->bytes, a->count - 1);
	}
}

/* One put beside a rank 1 that computes so long, or not at all. */
static double beside(struct access *a, double us)
{
	double begin, took = 0;

	MPI_Barrier(MPI_COMM_WORLD);
	if (bench.rank == 0) {
		bench_compute(AFTER_US);
		begin = MPI_Wtime();
		put_one(a);
		took = (MPI_Wtime() - begin) * 1e6;
	} else if (us > 0) {
		bench_compute(us);
	}
	a->count++;
	MPI_Barrier(MPI_COMM_WORLD);
	return took;
}

/* The median, and the longest in *most. */
static double measure_beside(struct access *a, double us, double *most)
{
	double *t = bench_alloc(sizeof(*t) * (size_t)bench.repeat), median;

	beside(a, us);
	for (int r = 0; r < bench.repeat; r++)
		t[r] = beside(a, us);
	median = bench_median(t, bench.repeat);
	*most = t[bench.repeat - 1];
	free(t);
	return median;
}

static void measure_computes(struct access *a, const char *of)
{
	double median, most;
	char x[16];

	bench_size(x, a->bytes);
	median = measure_beside(a, 0, &most);
	bench_say(median, "us", "waits%s_%s", of, x);
	median = measure_beside(a, bench.us, &most);
	bench_say(median, "us", "computes%s_%s", of, x);
	bench_say(most, "us", "most%s_%s", of, x);
	check_put(a, 3);
}

static void measure_put(struct access *a, const char *of)
{
	double us = bench_time(put, a);
	char x[16];

	check_put(a, 3);
	bench_say(us, "us", "put%s_%s", of, bench_size(x, a->bytes));
}

static void measure_get(struct access *a, const char *of)
{
	char x[16];

	if (bench.rank == 1)
		bench_stamp(a->w->at, a->bytes, 2);
	window_look(a->w);
	bench_say(bench_time(get, a), "us", "get%s_%s", of,
		  bench_size(x, a->bytes));
	if (bench.rank == 0)
		bench_check(a->buf, a->bytes, 1);
}

static void measure_fetch(struct access *a, const char *of)
{
	if (bench.rank == 1)
		*(long long *)a->w->at = 0;
	window_look(a->w);
	bench_say(bench_time(fetch, a), "us", "fetch%s_8B", of);
}

typedef void measure_fn(struct access *a, const char *of);

/* With a window and a buffer of its own; rank 0's buffer has other bytes. */
static void measure(measure_fn *fn, enum window_kind kind, size_t bytes)
{
	struct window w;
	struct access a = { .w = &w, .bytes = bytes };

	window_open(&w, kind, bytes < PAGE ? PAGE : bytes);
	a.buf = bench_alloc(bytes);
	bench_fill(a.buf, bytes, 3);
	fn(&a, kind == CREATED ? "_created" : "");
	free(a.buf);
	window_close(&w);
}

static const struct {
	const char *name;
	measure_fn *fn;
	enum window_kind kind;
} cases[] = {
	{ "put", measure_put, ALLOCATED },
	{ "get", measure_get, ALLOCATED },
	{ "fetch", measure_fetch, ALLOCATED },
	{ "computes", measure_computes, ALLOCATED },
	{ "put_created", measure_put, CREATED },
	{ "get_created", measure_get, CREATED },
	{ "fetch_created", measure_fetch, CREATED },
	{ "computes_created", measure_computes, CREATED },
};

int main(int argc, char **argv)
{
	static const struct bench_program program = {
		.name = "onesided",
		.cases = "put,get,fetch,computes,put_created,get_created,"
			 "fetch_created,computes_created",
		.options = "rmu",
		.what = "BYTES",
		.ranks_least = 2,
		.ranks_most = 2,
		.least = 1,
		.most = 1 << 30,
		.repeat = 21,
		.ms = 5,
		.us = 5000,
		.numbers = { 8, 1 << 20 },
	};

	bench_start(argc, argv, &program);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (!bench_case(cases[i].name))
			continue;
		if (cases[i].fn == measure_fetch)
			measure(measure_fetch, cases[i].kind,
				sizeof(long long));
		for (int n = 0; n < bench.n && cases[i].fn != measure_fetch;
		     n++)
			measure(cases[i].fn, cases[i].kind,
				(size_t)bench.numbers[n]);
	}
	MPI_Finalize();
	return 0;
}
