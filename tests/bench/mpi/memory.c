/*
 * Memory that N requests cost the receiver beside what the program itself holds
 * for them: growth of the process's resident memory, by request. Handles,
 * buffers and the library's first pages are there before.
 *
 *   posted_same, posted_tags           receives, all of one tag or a tag each
 *   unexpected_same, unexpected_tags   messages that nobody has asked for
 */
#include "bench.h"

enum { WARM = 1000 };

static int tags; /* a tag each */

/* Bytes of memory that has no file: its own, and what it shares. */
static double resident(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	double kib = 0, more;
	char line[256];

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "RssAnon: %lf", &more) == 1 ||
		    sscanf(line, "RssShmem: %lf", &more) == 1)
			kib += more;
	if (f != NULL)
		fclose(f);
	return kib * 1024;
}

static int tag_of(int i)
{
	return tags ? i : 0;
}

static void send_all(int n, char *buf, MPI_Request *reqs)
{
	for (int i = 0; i < n; i++) {
		buf[i * bench.bytes] = (char)i;
		MPI_Isend(&buf[i * bench.bytes], (int)bench.bytes, MPI_BYTE, 1,
			  tag_of(i), MPI_COMM_WORLD, &reqs[i]);
	}
}

static void post_all(int n, char *buf, MPI_Request *reqs)
{
	for (int i = 0; i < n; i++)
		MPI_Irecv(&buf[i * bench.bytes], (int)bench.bytes, MPI_BYTE, 0,
			  tag_of(i), MPI_COMM_WORLD, &reqs[i]);
}

static void end_all(int n, char *buf, MPI_Request *reqs)
{
	MPI_Waitall(n, reqs, MPI_STATUSES_IGNORE);
	for (int i = 0; i < n && bench.rank == 1; i++) {
		if (buf[i * bench.bytes] != (char)i)
			bench_fail("message %d is not what was sent", i);
	}
}

/* A message by which the other one is told to go on. */
static void token(int from, int tag)
{
	char byte = 0;

	if (bench.rank == from)
		MPI_Send(&byte, 1, MPI_BYTE, !from, tag, MPI_COMM_WORLD);
	else
		MPI_Recv(&byte, 1, MPI_BYTE, from, tag, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
}

/* What the receiver's memory has grown by while all were there. */
static double once(int unexpected, int n, char *buf, MPI_Request *reqs)
{
	double before = resident(), grown = 0;

	if (bench.rank == 0) {
		if (!unexpected)
			token(1, n);
		send_all(n, buf, reqs);
		if (unexpected)
			token(0, n);
	} else if (unexpected) {
		token(0, n); /* behind all others */
		grown = resident() - before;
		post_all(n, buf, reqs);
	} else {
		post_all(n, buf, reqs);
		grown = resident() - before;
		token(1, n);
	}
	end_all(n, buf, reqs);
	return grown;
}

static void measure(const char *pattern, int unexpected, int a_tag_each, int n)
{
	MPI_Request *reqs;
	double grown;
	char *buf;

	if (!bench_case(pattern))
		return;
	reqs = bench_alloc(sizeof(*reqs) * (size_t)n);
	buf = bench_alloc(bench.bytes * (size_t)n);
	tags = a_tag_each;
	memset(buf, -1, bench.bytes * (size_t)n);
	once(unexpected, n < WARM ? n : WARM, buf, reqs);
	memset(buf, -1, bench.bytes * (size_t)n);
	grown = bench_of(once(unexpected, n, buf, reqs), 1);
	bench_say(grown / n, "bytes", "%s_%d", pattern, n);
	free(buf);
	free(reqs);
}

int main(int argc, char **argv)
{
	static const struct bench_program program = {
		.name = "memory",
		.cases = "posted_same,posted_tags,"
			 "unexpected_same,unexpected_tags",
		.options = "b",
		.what = "REQUESTS",
		.ranks_least = 2,
		.ranks_most = 2,
		.least = 1,
		.most = 100000000,
		.bytes = 1,
		.numbers = { 100000 },
	};

	bench_start(argc, argv, &program);
	for (int i = 0; i < bench.n; i++) {
		int n = (int)bench.numbers[i];

		measure("posted_same", 0, 0, n);
		measure("posted_tags", 0, 1, n);
		measure("unexpected_same", 1, 0, n);
		measure("unexpected_tags", 1, 1, n);
	}
	MPI_Finalize();
	return 0;
}
