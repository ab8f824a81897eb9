/*
 * Collective operations, us each; X is the bytes of a rank's share: what it
 * sends to each other, or gets from each. All results are looked at: the ends
 * of each share each time, the whole of the last one.
 *
 *   barrier_RANKS       MPI_Barrier
 *   bcast_RANKS         MPI_Bcast
 *   reduce_RANKS        MPI_Reduce, 64-bit integers, MPI_SUM
 *   allreduce_RANKS     MPI_Allreduce, likewise
 *   gather_RANKS        MPI_Gather
 *   scatter_RANKS       MPI_Scatter
 *   allgather_RANKS     MPI_Allgather
 *   alltoall_RANKS      MPI_Alltoall
 *
 * The root is rank 0, whose time counts: where it only sends it may be ahead of
 * the others, as in each program that calls one after the other.
 */
#include "bench.h"

/* Of the collective that is measured. */
struct share {
	const char *name;
	size_t bytes;
	char *out, *in; /* a share for each rank */
	long count;     /* of operations so far, the same at all ranks */
};

static char *at(char *all, const struct share *s, int rank)
{
	return all + s->bytes * (size_t)rank;
}

/* What rank `from` sends to rank `to` the next time. */
static long stamp(const struct share *s, int from, int to)
{
	return s->count * 3 + from * 5 + to * 7;
}

static void stamp_for(struct share *s, int to, int slot)
{
	bench_stamp(at(s->out, s, slot), s->bytes, stamp(s, bench.rank, to));
}

static void stamped_by(struct share *s, int from, int to, int slot)
{
	bench_stamped(at(s->in, s, slot), s->bytes, stamp(s, from, to));
}

static void barrier(void *arg, long rounds)
{
	(void)arg;
	for (long i = 0; i < rounds; i++)
		MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(void *arg, long rounds)
{
	struct share *s = arg;
	char *buf = bench.rank == 0 ? s->out : s->in;

	for (long i = 0; i < rounds; i++, s->count++) {
		if (bench.rank == 0)
			stamp_for(s, 0, 0);
		MPI_Bcast(buf, (int)s->bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
		if (bench.rank != 0)
			stamped_by(s, 0, 0, 0);
	}
}

static void gather(void *arg, long rounds)
{
	struct share *s = arg;
	int n = (int)s->bytes;

	for (long i = 0; i < rounds; i++, s->count++) {
		stamp_for(s, 0, 0);
		MPI_Gather(s->out, n, MPI_BYTE, s->in, n, MPI_BYTE, 0,
			   MPI_COMM_WORLD);
		for (int r = 0; r < bench.size && bench.rank == 0; r++)
			stamped_by(s, r, 0, r);
	}
}

static void scatter(void *arg, long rounds)
{
	struct share *s = arg;
	int n = (int)s->bytes;

	for (long i = 0; i < rounds; i++, s->count++) {
		for (int r = 0; r < bench.size && bench.rank == 0; r++)
			stamp_for(s, r, r);
		MPI_Scatter(s->out, n, MPI_BYTE, s->in, n, MPI_BYTE, 0,
			    MPI_COMM_WORLD);
		stamped_by(s, 0, bench.rank, 0);
	}
}

static void allgather(void *arg, long rounds)
{
	struct share *s = arg;
	int n = (int)s->bytes;

	for (long i = 0; i < rounds; i++, s->count++) {
		stamp_for(s, 0, 0);
		MPI_Allgather(s->out, n, MPI_BYTE, s->in, n, MPI_BYTE,
			      MPI_COMM_WORLD);
		for (int r = 0; r < bench.size; r++)
			stamped_by(s, r, 0, r);
	}
}

static void alltoall(void *arg, long rounds)
{
	struct share *s = arg;
	int n = (int)s->bytes;

	for (long i = 0; i < rounds; i++, s->count++) {
		for (int r = 0; r < bench.size; r++)
			stamp_for(s, r, r);
		MPI_Alltoall(s->out, n, MPI_BYTE, s->in, n, MPI_BYTE,
			     MPI_COMM_WORLD);
		for (int r = 0; r < bench.size; r++)
			stamped_by(s, r, bench.rank, r);
	}
}

/* --- reductions: the kth number of rank r is count + k + r --- */

static size_t numbers(const struct share *s)
{
	return s->bytes / sizeof(long long);
}

static void set(struct share *s, size_t k)
{
	((long long *)s->out)[k] = s->count + (long long)k + bench.rank;
}

static void expect(const struct share *s, size_t k)
{
	long long n = bench.size, got = ((long long *)s->in)[k];
	long long want = n * (s->count + (long long)k) + n * (n - 1) / 2;

	if (got != want)
		bench_fail("%s: number %zu is %lld, not %lld", s->name, k, got,
			   want);
}

static void reduce(void *arg, long rounds)
{
	struct share *s = arg;
	size_t last = numbers(s) - 1;

	for (long i = 0; i < rounds; i++, s->count++) {
		set(s, 0);
		set(s, last);
		MPI_Reduce(s->out, s->in, (int)last + 1, MPI_LONG_LONG, MPI_SUM,
			   0, MPI_COMM_WORLD);
		if (bench.rank == 0) {
			expect(s, 0);
			expect(s, last);
		}
	}
}

static void allreduce(void *arg, long rounds)
{
	struct share *s = arg;
	size_t last = numbers(s) - 1;

	for (long i = 0; i < rounds; i++, s->count++) {
		set(s, 0);
		set(s, last);
		MPI_Allreduce(s->out, s->in, (int)last + 1, MPI_LONG_LONG,
			      MPI_SUM, MPI_COMM_WORLD);
		expect(s, 0);
		expect(s, last);
	}
}

/* --- all of a share, once --- */

enum kind { BYTES, NUMBERS };

static void fill(struct share *s, enum kind kind)
{
	for (size_t k = 0; kind == NUMBERS && k < numbers(s); k++)
		set(s, k);
	for (int r = 0; r < bench.size && kind == BYTES; r++)
		bench_fill(at(s->out, s, r), s->bytes, 1);
}

static void check(struct share *s, enum kind kind, int shares)
{
	for (size_t k = 0; kind == NUMBERS && k < numbers(s); k++)
		expect(s, k);
	for (int r = 0; r < shares && kind == BYTES; r++)
		bench_check(at(s->in, s, r), s->bytes, 1);
}

/* Whose results there are, of how many shares: of root 0, all, or the others.*/
enum where { ROOT, EACH, OTHERS };

struct collective {
	const char *name;
	bench_fn *fn;
	enum kind kind;
	enum where where;
	int all; /* a share of each rank: else one */
};

static const struct collective collectives[] = {
	{ "bcast", bcast, BYTES, OTHERS, 0 },
	{ "reduce", reduce, NUMBERS, ROOT, 0 },
	{ "allreduce", allreduce, NUMBERS, EACH, 0 },
	{ "gather", gather, BYTES, ROOT, 1 },
	{ "scatter", scatter, BYTES, EACH, 0 },
	{ "allgather", allgather, BYTES, EACH, 1 },
	{ "alltoall", alltoall, BYTES, EACH, 1 },
};

static void measure(const struct collective *c, size_t bytes)
{
	size_t room = bytes * (size_t)bench.size;
	struct share s = { .name = c->name, .bytes = bytes };
	int has = c->where == EACH || (c->where == ROOT) == (bench.rank == 0);
	char x[16];

	s.out = bench_alloc(room);
	s.in = bench_alloc(room);
	fill(&s, c->kind);
	c->fn(&s, 1);
	s.count = 0; /* of the first one all is looked at */
	if (has)
		check(&s, c->kind, c->all ? bench.size : 1);
	bench_say(bench_time(c->fn, &s), "us", "%s_%d_%s", c->name, bench.size,
		  bench_size(x, bytes));
	free(s.in);
	free(s.out);
}

int main(int argc, char **argv)
{
	static const struct bench_program program = {
		.name = "collectives",
		.cases = "barrier,bcast,reduce,allreduce,gather,scatter,"
			 "allgather,alltoall",
		.options = "rm",
		.what = "BYTES",
		.ranks_least = 1,
		.ranks_most = 1000,
		.least = 8,
		.most = 1 << 28,
		.repeat = 5,
		.ms = 20,
		.numbers = { 8, 64 << 10, 1 << 20 },
	};

	bench_start(argc, argv, &program);
	if (bench_case("barrier"))
		bench_say(bench_time(barrier, NULL), "us", "barrier_%d",
			  bench.size);
	for (size_t i = 0; i < sizeof(collectives) / sizeof(*collectives); i++)
		for (int n = 0; n < bench.n && bench_case(collectives[i].name);
		     n++)
			measure(&collectives[i],
				(size_t)bench.numbers[n] / 8 * 8);
	MPI_Finalize();
	return 0;
}
