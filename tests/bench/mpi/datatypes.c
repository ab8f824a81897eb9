/*
 * How fast data in pieces are packed, unpacked and, with two ranks, sent from
 * such pieces into such pieces, beside memory in one piece of the same size
 * and memcpy(): GB of data per second, of messages of -b bytes, which are
 * rounded up to whole pages.
 *
 *   vector8    every other double
 *   vector16   pairs of doubles, every other one
 *   vector4K   every other page
 *   struct     an int and a double
 *   structs    every other one of them
 *   indexed    blocks of 8, 24 and 16 bytes, some of them neighbours
 *   nested     2 of 4 doubles, 8 of 16 of these
 *   subarray   half of each of three dimensions of doubles
 *   resized    every other double, one a type
 *   block8     doubles at irregular places
 */
#include "bench.h"

enum { ROOM = 10 };

static const struct bench_program program = {
	.name = "datatypes",
	.cases = "memcpy,pack,unpack,send",
	.options = "rmb",
	.ranks_least = 1,
	.ranks_most = 2,
	.repeat = 11,
	.ms = 5,
	.bytes = 1 << 20,
};

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

static int make_structs(MPI_Datatype *out)
{
	MPI_Datatype one;
	int n = make_struct(&one);

	MPI_Type_vector(n, 1, 2, one, out);
	MPI_Type_free(&one);
	return 1;
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
	{ "struct", make_struct },     { "structs", make_structs },
	{ "indexed", make_indexed },   { "nested", make_nested },
	{ "subarray", make_subarray }, { "resized", make_resized },
	{ "block8", make_block8 },
};

static MPI_Datatype type;
static int count, size; /* of the pattern; its bytes */

static void do_memcpy(void *arg, long rounds)
{
	(void)arg;
	for (; rounds > 0; rounds--)
		memcpy(flat, other, (size_t)size);
}

static void do_pack(void *arg, long rounds)
{
	(void)arg;
	for (int at = 0; rounds > 0; rounds--, at = 0)
		MPI_Pack(user, count, type, flat, size, &at, MPI_COMM_SELF);
}

static void do_unpack(void *arg, long rounds)
{
	(void)arg;
	for (int at = 0; rounds > 0; rounds--, at = 0)
		MPI_Unpack(flat, size, &at, user, count, type, MPI_COMM_SELF);
}

static void send(int to)
{
	MPI_Send(user, count, type, to, 0, MPI_COMM_WORLD);
}

static void receive(int from)
{
	MPI_Recv(user, count, type, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* There and back. */
static void do_send(void *arg, long rounds)
{
	(void)arg;
	for (; rounds > 0; rounds--) {
		if (bench.rank == 0)
			send(1);
		receive(!bench.rank);
		if (bench.rank == 1)
			send(0);
	}
}

/* Each round moves `times` the data. */
static void measure(const char *what, const char *name, bench_fn *fn, int times)
{
	double us;

	if (!bench_case(what))
		return;
	us = bench_time(fn, NULL);
	bench_say((double)size * times / us / 1e3, "GB/s", "%s_%s", what, name);
}

/* What is packed comes back where it was, and nothing else is touched. */
static void check(const char *name)
{
	size_t room = ROOM * bytes;

	for (size_t i = 0; i < room; i++)
		user[i] = (char)(i * 7 / 3);
	memcpy(other, user, room);
	do_pack(NULL, 1);
	for (size_t i = 0; i < (size_t)size; i++)
		flat[i] = (char)~flat[i];
	do_unpack(NULL, 1);
	do_pack(NULL, 1);
	for (size_t i = 0; i < (size_t)size; i++)
		flat[i] = (char)~flat[i];
	do_unpack(NULL, 1);
	if (memcmp(user, other, room) != 0)
		bench_fail("%s is packed wrongly", name);
}

/* What is sent in pieces arrives in such pieces, and nothing else is touched.
 */
static void check_send(const char *name)
{
	size_t room = ROOM * bytes;

	if (bench.size == 1)
		return;
	for (size_t i = 0; i < room; i++)
		user[i] = (char)(i * 7 / 3);
	if (bench.rank == 1)
		memset(user, 0, room);
	do_pack(NULL, 1);
	memcpy(other, flat, (size_t)size);
	do_send(NULL, 1);
	do_pack(NULL, 1);
	if (bench.rank == 0 && memcmp(flat, other, (size_t)size) != 0)
		bench_fail("%s is sent wrongly", name);
	for (size_t i = 0; bench.rank == 1 && i < room; i++)
		if (user[i] != 0 && user[i] != (char)(i * 7 / 3))
			bench_fail("%s is received wrongly", name);
}

int main(int argc, char **argv)
{
	bench_start(argc, argv, &program);
	bytes = (bench.bytes + 4095) / 4096 * 4096;
	user = bench_alloc(ROOM * bytes);
	other = bench_alloc(ROOM * bytes);
	flat = bench_alloc(bytes);
	size = (int)bytes;
	measure("memcpy", "flat", do_memcpy, 1);
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		const char *name = patterns[i].name;

		count = patterns[i].make(&type);
		MPI_Type_commit(&type);
		MPI_Type_size(type, &size);
		size *= count;
		check(name);
		check_send(name);
		measure("pack", name, do_pack, 1);
		measure("unpack", name, do_unpack, 1);
		if (bench.size == 2)
			measure("send", name, do_send, 2);
		MPI_Type_free(&type);
	}
	free(user);
	free(other);
	free(flat);
	MPI_Finalize();
	return 0;
}
