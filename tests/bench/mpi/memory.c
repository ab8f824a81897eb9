/*
 * Memory that N requests cost the receiver beside what the program itself holds
 * for them: growth of the process's resident memory, by request. Handles,
 * buffers and the library's first pages are there before.
 *
 *   posted_same, posted_tags           receives, all of one tag or a tag each
 *   unexpected_same, unexpected_tags   messages that nobody has asked for
 *
 *   memory PATTERN N [BYTES]           bytes of a message; 1
 */
#include "bench.h"

enum { WARM = 1000 };

static int rank, tags;
static size_t length = 1;

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
		buf[i * length] = (char)i;
		MPI_Isend(&buf[i * length], (int)length, MPI_BYTE, 1, tag_of(i),
			  MPI_COMM_WORLD, &reqs[i]);
	}
}

static void post_all(int n, char *buf, MPI_Request *reqs)
{
	for (int i = 0; i < n; i++)
		MPI_Irecv(&buf[i * length], (int)length, MPI_BYTE, 0, tag_of(i),
			  MPI_COMM_WORLD, &reqs[i]);
}

static void end_all(int n, char *buf, MPI_Request *reqs)
{
	MPI_Waitall(n, reqs, MPI_STATUSES_IGNORE);
	for (int i = 0; i < n && rank == 1; i++) {
		if (buf[i * length] == (char)i)
			continue;
		fprintf(stderr, "memory: not what was sent\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

/* A message by which the other one is told to go on. */
static void token(int from, int tag)
{
	char byte = 0;

	if (rank == from)
		MPI_Send(&byte, 1, MPI_BYTE, !from, tag, MPI_COMM_WORLD);
	else
		MPI_Recv(&byte, 1, MPI_BYTE, from, tag, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
}

/* What the receiver's memory has grown by while all were there. */
static double once(int unexpected, int n, char *buf, MPI_Request *reqs)
{
	double before = resident(), grown = 0;

	if (rank == 0) {
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

static void measure(const char *pattern, int n)
{
	int unexpected = strncmp(pattern, "unexpected", 10) == 0;
	MPI_Request *reqs = bench_alloc(sizeof(*reqs) * (size_t)n);
	char *buf = bench_alloc(length * (size_t)n);
	double grown;

	tags = strstr(pattern, "_tags") != NULL;
	memset(buf, -1, length * (size_t)n);
	once(unexpected, n < WARM ? n : WARM, buf, reqs);
	grown = once(unexpected, n, buf, reqs);
	if (rank == 1)
		printf("%s %.1f bytes\n", pattern, grown / n);
	free(buf);
	free(reqs);
}

int main(int argc, char **argv)
{
	int size, n;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != 2 || argc < 3) {
		fprintf(stderr,
			"usage: memory PATTERN N [BYTES], with 2 ranks (now "
			"%d)\n",
			size);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	n = (int)bench_number("memory", argv[2]);
	if (argc > 3)
		length = bench_number("memory", argv[3]);
	measure(argv[1], n);
	MPI_Finalize();
	return 0;
}
