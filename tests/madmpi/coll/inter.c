/*
 * Collective operations of intercommunicators: what one group gives the other
 * one gets, in both directions, from and to every root.
 */
#include "../two_groups.h"
#include "maps.h"

/* Around the limits between algorithms. */
static const int counts[] = { 0, 1, 17, 1000, 40000, 150000 };
enum { NCOUNTS = sizeof(counts) / sizeof(counts[0]), MOST = 150000 };

static int value(int world, int i)
{
	return 1000003 * (world + 1) + 17 * i;
}

/* With what process `world` has, or with nothing. */
enum { NOTHING = -1 };

static void fill(int *buf, int n, int world)
{
	for (int i = 0; i < n; i++)
		buf[i] = world == NOTHING ? -1 : value(world, i);
}

static void expect_filled(const int *buf, int n, int world)
{
	for (int i = 0; i < n; i++) {
		int want = world == NOTHING ? -1 : value(world, i);

		if (buf[i] != want)
			EXPECT_INT(buf[i], want);
	}
}

/* What this process says of the root, which is one of the first or not. */
static int root_arg(int in_first, int root)
{
	if (first != in_first)
		return root;
	return mine == root ? MPI_ROOT : MPI_PROC_NULL;
}

static int roots(int in_first)
{
	return first == in_first ? nmine : nothers;
}

/* For every root r of both groups: `root` is as the caller says it. */
#define EACH_ROOT(in_first, r, root)                                           \
	for (int in_first = 0; in_first < 2; in_first++)                       \
		for (int r = 0, root;                                          \
		     r < roots(in_first) && (root = root_arg(in_first, r), 1); \
		     r++)

/* Nobody of the one group has left while one of the other is outside. */
static void barrier_waits_for_the_other_group(void)
{
	enum { COMES = 1, LEFT = 2 };
	int flag;

	EACH_ROOT(in_first, r, root)
	{
		if (root == MPI_ROOT) {
			for (int i = 0; i < nothers; i++)
				MPI_Recv(NULL, 0, MPI_INT, i, COMES, inter,
					 MPI_STATUS_IGNORE);
			for (int i = 0; i < 200; i++) {
				MPI_Iprobe(MPI_ANY_SOURCE, LEFT, inter, &flag,
					   MPI_STATUS_IGNORE);
				EXPECT(!flag);
			}
		} else if (root != MPI_PROC_NULL) {
			MPI_Send(NULL, 0, MPI_INT, root, COMES, inter);
		}
		MPI_Barrier(inter);
		if (root == MPI_ROOT)
			for (int i = 0; i < nothers; i++)
				MPI_Recv(NULL, 0, MPI_INT, i, LEFT, inter,
					 MPI_STATUS_IGNORE);
		else if (root != MPI_PROC_NULL)
			MPI_Send(NULL, 0, MPI_INT, root, LEFT, inter);
	}
}

/* The root's group has no other arguments, but for the root. */
static void bcast_goes_to_the_other_group(int *buf)
{
	for (int k = 0; k < NCOUNTS; k++)
		EACH_ROOT(in_first, r, root)
		{
			int from = in_first ? r : size / 2 + r;

			fill(buf, counts[k], root == MPI_ROOT ? rank : NOTHING);
			if (root == MPI_PROC_NULL)
				MPI_Bcast(NULL, -1, MPI_DATATYPE_NULL, root,
					  inter);
			else
				MPI_Bcast(buf, counts[k], MPI_INT, root, inter);
			expect_filled(buf, counts[k],
				      root == MPI_PROC_NULL ? NOTHING : from);
		}
}

static void bcast_of_data_in_pieces(int *buf)
{
	MPI_Datatype spread;

	MPI_Type_vector(70000, 1, 2, MPI_INT, &spread);
	MPI_Type_commit(&spread);
	EACH_ROOT(in_first, r, root)
	{
		fill(buf, 140000, root == MPI_ROOT ? 0 : NOTHING);
		MPI_Bcast(buf, 1, spread, root, inter);
		for (int i = 0; i < 140000; i++) {
			int comes = root >= 0 && i % 2 == 0;
			int want = root == MPI_ROOT || comes ? value(0, i) : -1;

			if (buf[i] != want)
				EXPECT_INT(buf[i], want);
		}
	}
	MPI_Type_free(&spread);
}

/* --- gather and scatter --- */

static void gather_comes_from_the_other_group(int *a, int *b)
{
	int n = 1000;

	EACH_ROOT(in_first, r, root)
	{
		fill(a, n, rank);
		fill(b, n * nothers, NOTHING);
		if (root < 0)
			MPI_Gather(NULL, -1, MPI_DATATYPE_NULL, b, n, MPI_INT,
				   root, inter);
		else
			MPI_Gather(a, n, MPI_INT, NULL, -1, MPI_DATATYPE_NULL,
				   root, inter);
		for (int i = 0; i < nothers; i++)
			expect_filled(b + i * n, n,
				      root == MPI_ROOT ? world_of_other(i)
						       : NOTHING);
	}
}

/* Rank r has r elements, so that the first one has none; gaps between them. */
static void triangle(int n, int *c, int *d)
{
	for (int i = 0, at = 0; i < n; at += 2 * i, i++) {
		c[i] = i;
		d[i] = at;
	}
}

static void gatherv_of_different_lengths(int *a, int *b)
{
	int c[64], d[64];

	triangle(nothers, c, d);
	EACH_ROOT(in_first, r, root)
	{
		fill(a, mine, rank);
		fill(b, size * size, NOTHING);
		MPI_Gatherv(a, mine, MPI_INT, b, root == MPI_ROOT ? c : NULL,
			    root == MPI_ROOT ? d : NULL, MPI_INT, root, inter);
		for (int i = 0; i < nothers; i++) {
			expect_filled(b + d[i], c[i],
				      root == MPI_ROOT ? world_of_other(i)
						       : NOTHING);
			expect_filled(b + d[i] + c[i], c[i], NOTHING);
		}
	}
}

static void scatter_goes_to_the_other_group(int *a, int *b)
{
	int n = 1000;

	EACH_ROOT(in_first, r, root)
	{
		for (int i = 0; i < nothers; i++)
			fill(a + i * n, n, world_of_other(i));
		fill(b, n, NOTHING);
		if (root < 0)
			MPI_Scatter(a, n, MPI_INT, NULL, -1, MPI_DATATYPE_NULL,
				    root, inter);
		else
			MPI_Scatter(NULL, -1, MPI_DATATYPE_NULL, b, n, MPI_INT,
				    root, inter);
		expect_filled(b, n, root < 0 ? NOTHING : rank);
	}
}

static void scatterv_of_different_lengths(int *a, int *b)
{
	int c[64], d[64];

	triangle(nothers, c, d);
	EACH_ROOT(in_first, r, root)
	{
		for (int i = 0; i < nothers; i++)
			fill(a + d[i], c[i], world_of_other(i));
		fill(b, size, NOTHING);
		MPI_Scatterv(a, root == MPI_ROOT ? c : NULL,
			     root == MPI_ROOT ? d : NULL, MPI_INT, b, mine,
			     MPI_INT, root, inter);
		expect_filled(b, mine, root < 0 ? NOTHING : rank);
		expect_filled(b + mine, size - mine, NOTHING);
	}
}

/* --- all to all --- */

static void allgather_swaps_the_groups(int *a, int *b)
{
	for (int k = 0; k < NCOUNTS; k++) {
		int n = counts[k] / 8;

		fill(a, n, rank);
		fill(b, n * nothers, NOTHING);
		MPI_Allgather(a, n, MPI_INT, b, n, MPI_INT, inter);
		for (int i = 0; i < nothers; i++)
			expect_filled(b + i * n, n, world_of_other(i));
	}
}

static void one_direction_may_be_empty(int *a, int *b)
{
	for (int giver = 0; giver < 2; giver++) {
		int out = first == giver ? 100 : 0, in = 100 - out;

		fill(a, 100, rank);
		fill(b, 100 * nothers, NOTHING);
		MPI_Allgather(a, out, MPI_INT, b, in, MPI_INT, inter);
		for (int i = 0; i < nothers; i++)
			expect_filled(b + i * 100, 100,
				      in ? world_of_other(i) : NOTHING);
		fill(b, 100 * nothers, NOTHING);
		for (int i = 0; i < nothers; i++)
			fill(a + i * 100, 100, rank);
		MPI_Alltoall(a, out, MPI_INT, b, in, MPI_INT, inter);
		for (int i = 0; i < nothers; i++)
			expect_filled(b + i * 100, 100,
				      in ? world_of_other(i) : NOTHING);
	}
}

static void allgatherv_of_different_lengths(int *a, int *b)
{
	int c[64], d[64];

	triangle(nothers, c, d);
	fill(a, mine, rank);
	fill(b, size * size, NOTHING);
	MPI_Allgatherv(a, mine, MPI_INT, b, c, d, MPI_INT, inter);
	for (int i = 0; i < nothers; i++) {
		expect_filled(b + d[i], c[i], world_of_other(i));
		expect_filled(b + d[i] + c[i], c[i], NOTHING);
	}
}

/* What `from` has for `to`. */
static int part(int from, int to, int i)
{
	return 100000 * from + 1000 * to + i;
}

static void alltoall_reaches_each_of_the_others(int *a, int *b)
{
	for (int n = 0; n < 6000; n = 3 * n + 1) {
		for (int i = 0; i < nothers * n; i++)
			a[i] = part(rank, world_of_other(i / n), i % n);
		MPI_Alltoall(a, n, MPI_INT, b, n, MPI_INT, inter);
		for (int i = 0; i < nothers * n; i++)
			EXPECT_INT(b[i],
				   part(world_of_other(i / n), rank, i % n));
	}
}

/* Rank r of either group gives rank s of the other r + s elements. */
static void alltoallv_of_different_lengths(int *a, int *b)
{
	int c[64], d[64];

	for (int i = 0, at = 0; i < nothers; at += c[i++]) {
		c[i] = mine + i;
		d[i] = at;
		for (int j = 0; j < c[i]; j++)
			a[at + j] = part(rank, world_of_other(i), j);
	}
	MPI_Alltoallv(a, c, d, MPI_INT, b, c, d, MPI_INT, inter);
	for (int i = 0; i < nothers; i++)
		for (int j = 0; j < c[i]; j++)
			EXPECT_INT(b[d[i] + j],
				   part(world_of_other(i), rank, j));
}

/* Each part of a type of its own: rows here are columns there. */
static void alltoallw_of_different_types(int *a, int *b)
{
	enum { N = 5 };
	MPI_Datatype column, types[2][64];
	int c[2][64], d[64];

	MPI_Type_vector(N, 1, 2, MPI_INT, &column);
	MPI_Type_commit(&column);
	for (int i = 0; i < nothers; i++) {
		d[i] = (int)sizeof(int) * 2 * N * i;
		for (int j = 0; j < N; j++)
			a[2 * N * i + j] = part(rank, world_of_other(i), j);
		types[0][i] = MPI_INT;
		c[0][i] = N;
		types[1][i] = i % 2 ? column : MPI_INT;
		c[1][i] = i % 2 ? 1 : N;
	}
	fill(b, 2 * N * nothers, NOTHING);
	MPI_Alltoallw(a, c[0], d, types[0], b, c[1], d, types[1], inter);
	for (int i = 0; i < nothers; i++)
		for (int j = 0; j < 2 * N; j++) {
			int k = i % 2 ? j / 2 : j;
			int comes = i % 2 ? j % 2 == 0 : j < N;

			EXPECT_INT(b[2 * N * i + j],
				   comes ? part(world_of_other(i), rank, k)
					 : -1);
		}
	MPI_Type_free(&column);
}

/* --- reductions --- */

static struct map map_of(int world, int i)
{
	return (struct map){ 2u * (unsigned)world + 3,
			     (unsigned)(world * world + i) };
}

/* Of the other group, in the order of its ranks. */
static void expect_others(struct map got, int i)
{
	struct map m = map_of(world_of_other(0), i), n;

	for (int r = 1; r < nothers; r++) {
		n = map_of(world_of_other(r), i);
		m.b = m.a * n.b + m.b;
		m.a = m.a * n.a;
	}
	EXPECT_INT(got.a, m.a);
	EXPECT_INT(got.b, m.b);
}

static MPI_Datatype maps;
static MPI_Op composition;

static struct map *maps_of_this(int n)
{
	struct map *in = malloc(sizeof(*in) * (size_t)(n + 1));

	for (int i = 0; i < n; i++)
		in[i] = map_of(rank, i);
	return in;
}

static void reduce_is_of_the_other_group(int n)
{
	struct map *in = maps_of_this(n), *out = maps_of_this(n);

	EACH_ROOT(in_first, r, root)
	{
		memset(out, 0, sizeof(*out) * (size_t)n);
		if (root == MPI_PROC_NULL)
			MPI_Reduce(NULL, NULL, -1, MPI_DATATYPE_NULL,
				   MPI_OP_NULL, root, inter);
		else
			MPI_Reduce(root == MPI_ROOT ? NULL : in,
				   root == MPI_ROOT ? out : NULL, n, maps,
				   composition, root, inter);
		for (int i = 0; i < n; i++)
			if (root == MPI_ROOT)
				expect_others(out[i], i);
			else
				EXPECT_INT(out[i].a, 0);
	}
	MPI_Allreduce(in, out, n, maps, composition, inter);
	for (int i = 0; i < n; i++)
		expect_others(out[i], i);
	free(in);
	free(out);
}

static void sums_of_every_size(int *a, int *b)
{
	for (int k = 0; k < NCOUNTS; k++) {
		int n = counts[k], ranks = 0;

		for (int r = 0; r < nothers; r++)
			ranks += world_of_other(r);
		for (int i = 0; i < n; i++)
			a[i] = rank + i;
		MPI_Allreduce(a, b, n, MPI_INT, MPI_SUM, inter);
		for (int i = 0; i < n; i++)
			if (b[i] != ranks + nothers * i)
				EXPECT_INT(b[i], ranks + nothers * i);
	}
}

/* Both groups reduce as many elements, and share out what comes. */
static void reduce_scatter_shares_out_the_result(int k)
{
	int n = k * nmine * nothers, each = k * nothers, c[64], at = 0;
	struct map *in = maps_of_this(n), *out = maps_of_this(n);

	MPI_Reduce_scatter_block(in, out, each, maps, composition, inter);
	for (int i = 0; i < each; i++)
		expect_others(out[i], mine * each + i);
	/* The first has nothing, the last what it would have had, too. */
	for (int i = 0; i < nmine; i++)
		c[i] = each;
	c[0] -= each;
	c[nmine - 1] += each;
	for (int i = 0; i < mine; i++)
		at += c[i];
	MPI_Reduce_scatter(in, out, c, maps, composition, inter);
	for (int i = 0; i < c[mine]; i++)
		expect_others(out[i], at + i);
	free(in);
	free(out);
}

/* --- what is refused --- */

static void there_is_no_place_in_two_groups(int *a, int *b)
{
	int c[64] = { 0 }, d[64] = { 0 }, bad = MPI_ERR_BUFFER;
	void *in = MPI_IN_PLACE;
	MPI_Datatype t[64];

	for (int i = 0; i < 64; i++)
		t[i] = MPI_INT;
	FAILS(MPI_Bcast(in, 1, MPI_INT, MPI_ROOT, inter), bad);
	FAILS(MPI_Gather(in, 1, MPI_INT, b, 1, MPI_INT, 0, inter), bad);
	FAILS(MPI_Gatherv(in, 1, MPI_INT, b, c, d, MPI_INT, 0, inter), bad);
	FAILS(MPI_Scatter(a, 1, MPI_INT, in, 1, MPI_INT, 0, inter), bad);
	FAILS(MPI_Scatterv(a, c, d, MPI_INT, in, 1, MPI_INT, 0, inter), bad);
	FAILS(MPI_Allgather(in, 0, MPI_INT, b, 0, MPI_INT, inter), bad);
	FAILS(MPI_Allgatherv(in, 0, MPI_INT, b, c, d, MPI_INT, inter), bad);
	FAILS(MPI_Alltoall(in, 0, MPI_INT, b, 0, MPI_INT, inter), bad);
	FAILS(MPI_Alltoallv(in, c, d, MPI_INT, b, c, d, MPI_INT, inter), bad);
	FAILS(MPI_Alltoallw(in, c, d, t, b, c, d, t, inter), bad);
	FAILS(MPI_Reduce(in, b, 1, MPI_INT, MPI_SUM, 0, inter), bad);
	FAILS(MPI_Reduce(a, in, 1, MPI_INT, MPI_SUM, MPI_ROOT, inter), bad);
	FAILS(MPI_Allreduce(in, b, 1, MPI_INT, MPI_SUM, inter), bad);
	FAILS(MPI_Allreduce(in, b, 0, MPI_INT, MPI_SUM, inter), bad);
	FAILS(MPI_Reduce_scatter_block(in, b, 1, MPI_INT, MPI_SUM, inter), bad);
	FAILS(MPI_Reduce_scatter(in, b, c, MPI_INT, MPI_SUM, inter), bad);
}

static void roots_are_of_the_other_group(int *a, int *b)
{
	FAILS(MPI_Bcast(a, 1, MPI_INT, nothers, inter), MPI_ERR_ROOT);
	FAILS(MPI_Bcast(a, 1, MPI_INT, -1, inter), MPI_ERR_ROOT);
	FAILS(MPI_Gather(a, 1, MPI_INT, b, 1, MPI_INT, nothers, inter),
	      MPI_ERR_ROOT);
	FAILS(MPI_Scatter(a, 1, MPI_INT, b, 1, MPI_INT, nothers, inter),
	      MPI_ERR_ROOT);
	FAILS(MPI_Reduce(a, b, 1, MPI_INT, MPI_SUM, nothers, inter),
	      MPI_ERR_ROOT);
	/* These are no ranks within one group. */
	FAILS(MPI_Bcast(a, 1, MPI_INT, MPI_ROOT, local), MPI_ERR_ROOT);
	FAILS(MPI_Bcast(a, 1, MPI_INT, MPI_PROC_NULL, local), MPI_ERR_ROOT);
}

static void wrong_arguments(int *a, int *b)
{
	int c[64] = { 0 }, d[64] = { 0 };
	MPI_Datatype t[64];

	c[nothers - 1] = -1;
	for (int i = 0; i < 64; i++)
		t[i] = MPI_INT;
	FAILS(MPI_Scan(a, b, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_COMM);
	FAILS(MPI_Exscan(a, b, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_COMM);
	FAILS(MPI_Bcast(a, -1, MPI_INT, MPI_ROOT, inter), MPI_ERR_COUNT);
	FAILS(MPI_Bcast(NULL, 1, MPI_INT, 0, inter), MPI_ERR_BUFFER);
	FAILS(MPI_Reduce(a, b, 1, MPI_INT, MPI_OP_NULL, 0, inter), MPI_ERR_OP);
	FAILS(MPI_Reduce(a, b, 1, MPI_DATATYPE_NULL, MPI_SUM, 0, inter),
	      MPI_ERR_TYPE);
	FAILS(MPI_Allreduce(a, a, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_BUFFER);
	/* Counts are as many as there are processes in the other group. */
	FAILS(MPI_Allgatherv(a, 0, MPI_INT, b, c, d, MPI_INT, inter),
	      MPI_ERR_COUNT);
	FAILS(MPI_Alltoallv(a, c, d, MPI_INT, b, c, d, MPI_INT, inter),
	      MPI_ERR_COUNT);
	FAILS(MPI_Alltoallw(a, c, d, t, b, c, d, t, inter), MPI_ERR_COUNT);
	/* Only a part of none needs no type. */
	c[nothers - 1] = 1;
	t[nothers - 1] = MPI_DATATYPE_NULL;
	FAILS(MPI_Alltoallw(a, c, d, t, b, c, d, t, inter), MPI_ERR_TYPE);
	FAILS(MPI_Alltoallw(a, c, d, NULL, b, c, d, t, inter), MPI_ERR_ARG);
	FAILS(MPI_Alltoallw(a, NULL, d, t, b, c, d, t, inter), MPI_ERR_ARG);
	FAILS(MPI_Reduce_scatter(a, b, NULL, MPI_INT, MPI_SUM, inter),
	      MPI_ERR_ARG);
}

/* More than fits is cut, and said. */
static void too_much_is_an_error(int *a, int *b)
{
	int root = root_arg(1, 0), code;

	code = MPI_Bcast(a, root == MPI_ROOT ? 2 : 1, MPI_INT, root, inter);
	EXPECT_INT(class_of(code), first ? MPI_SUCCESS : MPI_ERR_TRUNCATE);
	root = root_arg(0, 0);
	code = MPI_Gather(a, 2, MPI_INT, b, 1, MPI_INT, root, inter);
	EXPECT_INT(class_of(code),
		   root == MPI_ROOT ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
}

static void all_that_are_good(int *a, int *b)
{
	barrier_waits_for_the_other_group();
	bcast_goes_to_the_other_group(a);
	bcast_of_data_in_pieces(a);
	gather_comes_from_the_other_group(a, b);
	gatherv_of_different_lengths(a, b);
	scatter_goes_to_the_other_group(a, b);
	scatterv_of_different_lengths(a, b);
	allgather_swaps_the_groups(a, b);
	one_direction_may_be_empty(a, b);
	allgatherv_of_different_lengths(a, b);
	alltoall_reaches_each_of_the_others(a, b);
	alltoallv_of_different_lengths(a, b);
	alltoallw_of_different_types(a, b);
	for (int n = 0; n < 30000; n = 9 * n + 1)
		reduce_is_of_the_other_group(n);
	sums_of_every_size(a, b);
	for (int k = 0; k < 1000; k = 9 * k + 1)
		reduce_scatter_shares_out_the_result(k);
}

int main(int argc, char **argv)
{
	int *a = malloc(sizeof(int) * MOST), *b = malloc(sizeof(int) * MOST);

	program_begin(&argc, &argv);
	two_groups_begin();
	MPI_Type_contiguous(2, MPI_UNSIGNED, &maps);
	MPI_Type_commit(&maps);
	MPI_Op_create(compose, 0, &composition);
	all_that_are_good(a, b);
	MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(local, MPI_ERRORS_RETURN);
	there_is_no_place_in_two_groups(a, b);
	roots_are_of_the_other_group(a, b);
	wrong_arguments(a, b);
	if (!calls_are_compared())
		too_much_is_an_error(a, b);
	MPI_Op_free(&composition);
	MPI_Type_free(&maps);
	two_groups_end();
	free(a);
	free(b);
	return program_end("inter");
}
