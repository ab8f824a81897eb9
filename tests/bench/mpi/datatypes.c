/*
 * How fast data in pieces are packed, unpacked and, with two ranks, sent from
 * such pieces into such pieces, beside memory in one piece of the same size
 * and memcpy(). GB of data per second, 1 MB of data or as many bytes as the
 * argument says, a multiple of 4096.
 *
 *   datatypes [BYTES]
 *
 *   vector8    every other double         struct   an int and a double
 *   vector16   pairs of doubles           indexed  blocks of 8, 24 and 16
 * bytes, vector4K   every other page                    some of them neighbours
 *   nested     2 of 4 doubles, 8 of 16 of these
 *   subarray   half of each of three dimensions of doubles
 *   resized    every other double, one a type
 *   block8     doubles at irregular places
 */
#include "bench.h"

enum { REPEAT = 11, ROOM = 10 };

static int rank, nranks;
static size_t bytes;
static char *user, *flat, *other;

struct pattern {
	const char *name;
	int (*make)(MPI_Datatype *out); /* returns how many of the type */
};

static int n_of(size_t each)
{
	return (int)(bytes / each);
}

static int make_flat(MPI_Datatype *out)
{
	MPI_Type_contiguous(n_of(8), MPI_DOUBLE, out);
	return 1;
}

static int make_vector8(MPI_Datatype *out)
{
	MPI_Type_vector(n_of(8), 1, 2, MPI_DOUBLE, out);
	return 1;
}

static int make_vector16(MPI_Datatype *out)
{
	MPI_Type_vector(n_of(16), 2, 4, MPI_DOUBLE, out);
	return 1;
}

static int make_vector4K(MPI_Datatype *out)
{
	MPI_Type_vector(n_of(4096), 512, 1024, MPI_DOUBLE, out);
	return 1;
}

static int make_struct(MPI_Datatype *out)
{
	int blocks[] = { 1, 1 };
	MPI_Aint displs[] = { 0, 8 };
	MPI_Datatype types[] = { MPI_INT, MPI_DOUBLE };

	MPI_Type_create_struct(2, blocks, displs, types, out);
	return n_of(12);
}

static int make_indexed(MPI_Datatype *out)
{
	int n = n_of(8) / 6, *blocks = malloc((size_t)n * 4 * sizeof(int));
	int *displs = malloc((size_t)n * 4 * sizeof(int));

	for (int i = 0; i < n; i++) {
		int at = 12 * i;

		blocks[4 * i] = 1;
		displs[4 * i] = at;
		blocks[4 * i + 1] = 2;
		displs[4 * i + 1] = at + 3;
		blocks[4 * i + 2] = 1;
		displs[4 * i + 2] = at + 5; /* goes on */
		blocks[4 * i + 3] = 2;
		displs[4 * i + 3] = at + 8;
	}
	MPI_Type_indexed(4 * n, blocks, displs, MPI_DOUBLE, out);
	free(blocks);
	free(displs);
	return 1;
}

static int make_nested(MPI_Datatype *out)
{
	MPI_Datatype inner;

	MPI_Type_vector(8, 2, 4, MPI_DOUBLE, &inner);
	MPI_Type_create_hvector(n_of(128), 1, 8 * 64, inner, out);
	MPI_Type_free(&inner);
	return 1;
}

static int make_subarray(MPI_Datatype *out)
{
	int sizes[] = { 2, 2, 2 }, sub[3], starts[3];

	while ((size_t)sizes[0] * (size_t)sizes[1] * (size_t)sizes[2] <
	       bytes) /* an eighth of it, of 8 bytes each */
		sizes[sizes[2] > sizes[1]   ? 1
		      : sizes[1] > sizes[0] ? 0
					    : 2] *= 2;
	for (int i = 0; i < 3; i++)
		starts[i] = (sub[i] = sizes[i] / 2) / 2;
	MPI_Type_create_subarray(3, sizes, sub, starts, MPI_ORDER_C, MPI_DOUBLE,
				 out);
	return 1;
}

static int make_resized(MPI_Datatype *out)
{
	MPI_Type_create_resized(MPI_DOUBLE, 0, 16, out);
	return n_of(8);
}

static int make_block8(MPI_Datatype *out)
{
	int n = n_of(8), *displs = malloc((size_t)n * sizeof(int));
	unsigned lot = 1;

	for (int i = 0; i < n; i++) {
		lot = lot * 1103515245 + 12345;
		displs[i] = 4 * i + (int)(lot >> 16) % 3;
	}
	MPI_Type_create_indexed_block(n, 1, displs, MPI_DOUBLE, out);
	free(displs);
	return 1;
}

static const struct pattern patterns[] = {
	{ "flat", make_flat },         { "vector8", make_vector8 },
	{ "vector16", make_vector16 }, { "vector4K", make_vector4K },
	{ "struct", make_struct },     { "indexed", make_indexed },
	{ "nested", make_nested },     { "subarray", make_subarray },
	{ "resized", make_resized },   { "block8", make_block8 },
};

static MPI_Datatype type;
static int count, size; /* of the pattern; its bytes */

static void do_memcpy(void)
{
	memcpy(flat, other, (size_t)size);
}

static void do_pack(void)
{
	int at = 0;

	MPI_Pack(user, count, type, flat, size, &at, MPI_COMM_SELF);
}

static void do_unpack(void)
{
	int at = 0;

	MPI_Unpack(flat, size, &at, user, count, type, MPI_COMM_SELF);
}

/* There and back. */
static void do_send(void)
{
	if (rank == 0) {
		MPI_Send(user, count, type, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(user, count, type, 1, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	} else if (rank == 1) {
		MPI_Recv(user, count, type, 0, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		MPI_Send(user, count, type, 0, 0, MPI_COMM_WORLD);
	}
}

/* Each turn moves `times` the data. */
static void measure(const char *what, const char *name, void (*turn)(void),
		    int times)
{
	int turns = (int)(((size_t)4 << 20) / (size_t)size) + 1;
	double rate[REPEAT], begin;

	turn();
	for (int r = 0; r < REPEAT; r++) {
		begin = MPI_Wtime();
		for (int i = 0; i < turns; i++)
			turn();
		rate[r] = (double)size * turns * times / (MPI_Wtime() - begin) /
			  1e9;
	}
	if (rank == 0)
		printf("%s_%s %.3f GB/s\n", what, name,
		       bench_median(rate, REPEAT));
}

/* What is packed comes back where it was, and nothing else is touched. */
static void check(const char *name)
{
	size_t room = ROOM * bytes;

	for (size_t i = 0; i < room; i++)
		user[i] = (char)(i * 7 / 3);
	memcpy(other, user, room);
	do_pack();
	for (size_t i = 0; i < (size_t)size; i++)
		flat[i] = (char)~flat[i];
	do_unpack();
	do_pack();
	for (size_t i = 0; i < (size_t)size; i++)
		flat[i] = (char)~flat[i];
	do_unpack();
	if (memcmp(user, other, room) != 0) {
		fprintf(stderr, "datatypes: %s is packed wrongly\n", name);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nranks);
	bytes = argc > 1 ? bench_number("datatypes", argv[1]) : 1 << 20;
	bytes = (bytes + 4095) / 4096 * 4096;
	user = bench_alloc(ROOM * bytes);
	other = bench_alloc(ROOM * bytes);
	flat = bench_alloc(bytes);
	size = (int)bytes;
	measure("memcpy", "flat", do_memcpy, 1);
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		count = patterns[i].make(&type);
		MPI_Type_commit(&type);
		MPI_Type_size(type, &size);
		size *= count;
		check(patterns[i].name);
		measure("pack", patterns[i].name, do_pack, 1);
		measure("unpack", patterns[i].name, do_unpack, 1);
		if (nranks > 1)
			measure("send", patterns[i].name, do_send, 2);
		MPI_Type_free(&type);
	}
	free(user);
	free(other);
	free(flat);
	MPI_Finalize();
	return 0;
}
