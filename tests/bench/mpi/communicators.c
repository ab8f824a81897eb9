/*
 * Two ranks: what N other open communicators cost, duplicates of
 * MPI_COMM_WORLD. N = 0 comes first, always.
 *
 *   latency, least, most   half a round trip of 8 bytes on MPI_COMM_WORLD, us:
 *                          median, least and most of the repetitions
 *   dup, free              one more MPI_Comm_dup and its MPI_Comm_free, us:
 *                          the median over batches of 64
 *
 * If this MPI cannot open N communicators, the program says so and ends; the
 * line "limit" has the number that it could open.
 */
#include "bench.h"

enum { BATCH = 64, MESSAGE = 8, REPEAT_MOST = 1000 };

static MPI_Comm *others;
static long nothers; /* open ones */
static int at_limit;

/* Returns how many of `more` all ranks can open. */
static long open_more(long more)
{
	long n = 0, least;
	int rc = MPI_SUCCESS;

	while (n < more && rc == MPI_SUCCESS) {
		rc = MPI_Comm_dup(MPI_COMM_WORLD, &others[nothers + n]);
		n += rc == MPI_SUCCESS;
	}
	MPI_Allreduce(&n, &least, 1, MPI_LONG, MPI_MIN, MPI_COMM_WORLD);
	if (n != least)
		bench_fail("MPI_Comm_dup failed on the other rank only");
	if (n < more && !at_limit) {
		char text[MPI_MAX_ERROR_STRING];
		int length;

		at_limit = 1;
		MPI_Error_string(rc, text, &length);
		if (bench.rank == 0)
			fprintf(stderr,
				"%s: this MPI opens no more than %ld others: "
				"%s\n",
				bench.program->name, nothers + n, text);
		bench_say((double)(nothers + n), "communicators", "limit");
	}
	nothers += n;
	return n;
}

static void close_last(long n)
{
	while (n-- > 0)
		MPI_Comm_free(&others[--nothers]);
}

static void round_trips(void *arg, long rounds)
{
	char *buf = arg;

	for (long i = 0; i < rounds; i++) {
		if (bench.rank == 0) {
			bench_stamp(buf, MESSAGE, i);
			MPI_Send(buf, MESSAGE, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		}
		MPI_Recv(buf, MESSAGE, MPI_BYTE, !bench.rank, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		bench_stamped(buf, MESSAGE, i);
		if (bench.rank == 1)
			MPI_Send(buf, MESSAGE, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
	}
}

static void measure_latency(long n)
{
	double us[REPEAT_MOST];
	char buf[MESSAGE];
	long rounds;

	bench_fill(buf, MESSAGE, n);
	rounds = bench_rounds(round_trips, buf);
	for (int r = 0; r < bench.repeat; r++)
		us[r] = bench_once(round_trips, buf, rounds) * 5e5 /
			(double)rounds;
	bench_check(buf, MESSAGE, n);
	bench_say(bench_median(us, bench.repeat), "us", "latency_%ld", n);
	bench_say(us[0], "us", "least_%ld", n);
	bench_say(us[bench.repeat - 1], "us", "most_%ld", n);
}

static void measure_dup(long n)
{
	double dup[REPEAT_MOST], drop[REPEAT_MOST], begin;

	for (int r = 0; r < bench.repeat; r++) {
		long opened;

		MPI_Barrier(MPI_COMM_WORLD);
		begin = MPI_Wtime();
		opened = open_more(BATCH);
		dup[r] = (MPI_Wtime() - begin) * 1e6 / BATCH;
		begin = MPI_Wtime();
		close_last(opened);
		drop[r] = (MPI_Wtime() - begin) * 1e6 / BATCH;
		if (opened < BATCH)
			return;
	}
	bench_say(bench_median(dup, bench.repeat), "us", "dup_%ld", n);
	bench_say(bench_median(drop, bench.repeat), "us", "free_%ld", n);
}

static void measure(long n)
{
	if (n < nothers)
		close_last(nothers - n);
	else
		open_more(n - nothers);
	if (nothers != n)
		return;
	measure_latency(n);
	measure_dup(n);
}

int main(int argc, char **argv)
{
	static const struct bench_program program = {
		.name = "communicators",
		.options = "rm",
		.what = "OTHERS",
		.ranks_least = 2,
		.ranks_most = 2,
		.least = 1,
		.most = 1000000,
		.repeat = 11,
		.ms = 5,
		.numbers = { 100, 1000, 5000, 20000, 100000 },
	};
	long most = 0;

	bench_start(argc, argv, &program);
	if (bench.repeat > REPEAT_MOST)
		bench_refuse("at most %d repetitions", REPEAT_MOST);
	for (int i = 0; i < bench.n; i++)
		if (bench.numbers[i] > most)
			most = bench.numbers[i];
	others = bench_alloc(sizeof(*others) * (size_t)(most + BATCH));
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	measure(0);
	for (int i = 0; i < bench.n && !at_limit; i++)
		measure(bench.numbers[i]);
	close_last(nothers);
	free(others);
	MPI_Finalize();
	return 0;
}
