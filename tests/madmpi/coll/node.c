/*
 * Collective operations of processes that may share memory, or read each
 * other's, before and after they do so: sizes around those of the slots, every
 * root, data with gaps, roots that run ahead, operations that do not commute,
 * in between some that do not block; communicators that come and go, and many
 * at once.
 */
#include <pthread.h>

#include "../join.h"
#include "../program.h"
#include "maps.h"

enum {
	MOST = 200000, /* bytes */
	MANY = 12,     /* more operations than it takes until memory is shared*/
	THREADS = 8,
};

/* Bytes: of a small slot, of what is reduced by all, of large slots. */
static const int sizes[] = { 1,    48,    240,   241,   4096,
			     4097, 32752, 32753, 65505, MOST };
enum { NSIZES = sizeof(sizes) / sizeof(sizes[0]) };

static unsigned char *a, *b;

static unsigned char byte_of(int from, int i)
{
	return (unsigned char)(from * 37 + i * 11 + i / 251);
}

/* MOST bytes of each rank, and behind them the sums of all. */
static unsigned char *bytes;

static const unsigned char *bytes_of(int from, int at)
{
	return bytes + (size_t)from * MOST + at;
}

static void make_bytes(void)
{
	bytes = calloc((size_t)size + 1, MOST);
	for (int r = 0; r < size; r++)
		for (int i = 0; i < MOST; i++) {
			bytes[r * MOST + i] = byte_of(r, i);
			bytes[size * MOST + i] += byte_of(r, i);
		}
}

static void fill(unsigned char *p, int n)
{
	memcpy(p, bytes_of(rank, 0), (size_t)n);
}

/* n bytes are those of another rank from `its` on. */
static void expect_bytes(const unsigned char *p, int n, int from, int its)
{
	const unsigned char *want = bytes_of(from, its);

	if (memcmp(p, want, (size_t)n) == 0)
		return;
	for (int i = 0; i < n; i++)
		EXPECT_INT(p[i], want[i]);
}

static void expect_sum(const unsigned char *p, int n)
{
	expect_bytes(p, n, size, 0);
}

static void share(MPI_Comm comm)
{
	for (int i = 0; i < MANY; i++)
		MPI_Barrier(comm);
}

static void bytes_of_every_size(void)
{
	for (int k = 0; k < NSIZES; k++) {
		int n = sizes[k], root = k % size;

		fill(a, n);
		memset(b, 0, MOST);
		MPI_Allreduce(a, b, n, MPI_UINT8_T, MPI_SUM, MPI_COMM_WORLD);
		expect_sum(b, n);
		MPI_Allreduce(MPI_IN_PLACE, a, n, MPI_UINT8_T, MPI_SUM,
			      MPI_COMM_WORLD);
		expect_sum(a, n);
		fill(a, n);
		memset(b, 0, MOST);
		MPI_Reduce(a, b, n, MPI_UINT8_T, MPI_SUM, root, MPI_COMM_WORLD);
		if (rank == root)
			expect_sum(b, n);
		MPI_Reduce(rank == root ? MPI_IN_PLACE : a, a, n, MPI_UINT8_T,
			   MPI_SUM, root, MPI_COMM_WORLD);
		if (rank == root)
			expect_sum(a, n);
		fill(a, n);
		MPI_Bcast(a, n, MPI_BYTE, root, MPI_COMM_WORLD);
		expect_bytes(a, n, root, 0);
	}
}

static void gathered(void)
{
	unsigned char *all = malloc((size_t)size * 70000);

	for (int k = 0; k < NSIZES && sizes[k] < 70000; k++) {
		int n = sizes[k];

		fill(a, n);
		memset(all, 0, (size_t)size * 70000);
		MPI_Allgather(a, n, MPI_BYTE, all, n, MPI_BYTE, MPI_COMM_WORLD);
		for (int r = 0; r < size; r++)
			expect_bytes(all + r * n, n, r, 0);
	}
	free(all);
}

static void expect_parts(const unsigned char *p, int n)
{
	for (int r = 0; r < size; r++)
		expect_bytes(p + r * n, n, r, rank * n);
}

static void exchanged(void)
{
	static const int parts[] = { 1, 8, 34, 120, 121, 9000, 28000 };

	for (int k = 0; k < 7; k++) {
		int n = parts[k];

		fill(a, size * n);
		memset(b, 0, MOST);
		MPI_Alltoall(a, n, MPI_BYTE, b, n, MPI_BYTE, MPI_COMM_WORLD);
		expect_parts(b, n);
		MPI_Alltoall(MPI_IN_PLACE, 0, MPI_BYTE, a, n, MPI_BYTE,
			     MPI_COMM_WORLD);
		expect_parts(a, n);
	}
}

/* From and to every root, whose own part may be in place. */
static void parts_of_one(void)
{
	static const int parts[] = { 1, 8, 34, 240, 241, 3000, 9000, 28000 };

	for (int k = 0; k < 16; k++) {
		int n = parts[k % 8], root = k % size, mine = root * n;
		int in_place = rank == root && k >= 8;

		fill(a, n);
		memset(b, 0, MOST);
		if (in_place)
			memcpy(b + mine, a, (size_t)n);
		MPI_Gather(in_place ? MPI_IN_PLACE : a, n, MPI_BYTE, b, n,
			   MPI_BYTE, root, MPI_COMM_WORLD);
		for (int r = 0; r < size && rank == root; r++)
			expect_bytes(b + r * n, n, r, 0);
		fill(a, size * n);
		memset(b, 0, MOST);
		MPI_Scatter(a, n, MPI_BYTE, in_place ? MPI_IN_PLACE : b, n,
			    MPI_BYTE, root, MPI_COMM_WORLD);
		if (!in_place)
			expect_bytes(b, n, root, rank * n);
	}
}

/* --- data with gaps, in every other process --- */

/* Of elements of one byte, one after the other or with a gap behind each. */
struct spaced {
	unsigned char *at;
	MPI_Datatype type;
	int stride;
};

static void spaced_make(struct spaced *s, int elements)
{
	s->stride = 1 + rank % 2;
	s->at = malloc((size_t)(s->stride * elements));
	MPI_Type_create_resized(MPI_BYTE, 0, s->stride, &s->type);
	MPI_Type_commit(&s->type);
	for (int i = 0; i < elements; i++)
		s->at[i * s->stride] = byte_of(rank, i);
	for (int i = 0; i < elements && s->stride == 2; i++)
		s->at[i * 2 + 1] = 77;
}

static void spaced_drop(struct spaced *s)
{
	MPI_Type_free(&s->type);
	free(s->at);
}

/* n elements from `at` on are those of another rank from `its` on. */
static void spaced_expect(const struct spaced *s, int at, int n, int from,
			  int its)
{
	const unsigned char *p = s->at + at * s->stride;

	for (int i = 0; i < n; i++, p += s->stride) {
		EXPECT_INT(*p, byte_of(from, its + i));
		if (s->stride == 2)
			EXPECT_INT(p[1], 77);
	}
}

static void with_gaps_of(int n)
{
	struct spaced s, r;

	/* Each byte is looked at: one root, where there are many to look at. */
	for (int root = n > 9000 && FEWER > 1 ? size - 1 : 0; root < size;
	     root++) {
		spaced_make(&s, size * n);
		spaced_make(&r, size * n);
		MPI_Alltoall(s.at, n, s.type, r.at, n, r.type, MPI_COMM_WORLD);
		for (int i = 0; i < size; i++)
			spaced_expect(&r, i * n, n, i, rank * n);
		MPI_Allgather(s.at, n, s.type, r.at, n, r.type, MPI_COMM_WORLD);
		for (int i = 0; i < size; i++)
			spaced_expect(&r, i * n, n, i, 0);
		MPI_Scatter(s.at, n, s.type, r.at, n, r.type, root,
			    MPI_COMM_WORLD);
		spaced_expect(&r, 0, n, root, rank * n);
		MPI_Gather(s.at, n, s.type, r.at, n, r.type, root,
			   MPI_COMM_WORLD);
		for (int i = 0; i < size && rank == root; i++)
			spaced_expect(&r, i * n, n, i, 0);
		MPI_Bcast(s.at, n, s.type, root, MPI_COMM_WORLD);
		spaced_expect(&s, 0, n, root, 0);
		spaced_drop(&r);
		spaced_drop(&s);
	}
}

static void with_gaps(void)
{
	with_gaps_of(5);
	with_gaps_of(9000);
	with_gaps_of(70000);
}

/* Where the others do not wait for all, the root is several parts ahead. */
static void roots_run_ahead(void)
{
	long long x, sum = 0, mine;
	int rounds = 400 / FEWER;

	for (int i = 0; i < rounds; i++) {
		x = rank == i / 50 % size ? i * 3 : -1;
		MPI_Bcast(&x, 1, MPI_LONG_LONG, i / 50 % size, MPI_COMM_WORLD);
		EXPECT_INT(x, i * 3);
	}
	for (int i = 0; i < rounds; i++) {
		mine = i + rank;
		MPI_Reduce(&mine, &sum, 1, MPI_LONG_LONG, MPI_SUM,
			   i / 50 % size, MPI_COMM_WORLD);
		if (rank == i / 50 % size)
			EXPECT_INT(sum, size * i + size * (size - 1) / 2);
	}
}

/* Maps that a basic type carries: each element, and however they are cut. */
static void order_is_that_of_ranks(void)
{
	enum { N = 20000 };
	struct map *x = malloc(N * sizeof(*x)), *y = malloc(N * sizeof(*y));
	struct map want = { 1, 0 };
	MPI_Op op;

	MPI_Op_create(compose, 0, &op);
	for (int r = 0; r < size; r++) {
		want.b += want.a * (unsigned)(r + 5);
		want.a *= (unsigned)(2 * r + 3);
	}
	for (int n = 1; n <= N; n += N - 1) {
		for (int i = 0; i < n; i++)
			x[i] = (struct map){ 2 * (unsigned)rank + 3,
					     (unsigned)rank + 5 };
		MPI_Allreduce(x, y, n, MPI_UINT64_T, op, MPI_COMM_WORLD);
		for (int i = 0; i < n; i++)
			EXPECT(y[i].a == want.a && y[i].b == want.b);
	}
	MPI_Op_free(&op);
	free(x);
	free(y);
}

static void beside_those_that_do_not_block(void)
{
	MPI_Request r[3];
	int in[2] = { rank, 1 }, out[3], x;

	for (int i = 0; i < 40 / FEWER; i++) {
		MPI_Iallreduce(&in[0], &out[0], 1, MPI_INT, MPI_SUM,
			       MPI_COMM_WORLD, &r[0]);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Ibarrier(MPI_COMM_WORLD, &r[1]);
		MPI_Allreduce(&in[1], &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		EXPECT_INT(x, size);
		out[1] = rank == 0 ? i : -1;
		MPI_Ibcast(&out[1], 1, MPI_INT, 0, MPI_COMM_WORLD, &r[2]);
		out[2] = rank == size - 1 ? i : -1;
		MPI_Bcast(&out[2], 1, MPI_INT, size - 1, MPI_COMM_WORLD);
		MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
		EXPECT_INT(out[0], size * (size - 1) / 2);
		EXPECT_INT(out[1], i);
		EXPECT_INT(out[2], i);
	}
}

static void use(MPI_Comm comm, int salt)
{
	int n, me, in, out;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &me);
	for (int i = 0; i < 2 * MANY; i++) {
		in = me * salt + i;
		MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm);
		EXPECT_INT(out, n * (n - 1) / 2 * salt + n * i);
	}
}

static void communicators_come_and_go(void)
{
	MPI_Comm comm;

	for (int i = 0; i < 20 / FEWER; i++) {
		MPI_Comm_split(MPI_COMM_WORLD, i % 2 ? rank % 2 : 0, -rank,
			       &comm);
		use(comm, i);
		MPI_Comm_free(&comm);
	}
}

static void *uses(void *comm)
{
	use(*(MPI_Comm *)comm, 5);
	return NULL;
}

static void many_at_once(void)
{
	MPI_Comm comm[THREADS];
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, uses, &comm[i]);
	for (int i = 0; i < THREADS; i++)
		program_join(t[i]);
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_free(&comm[i]);
}

/* More than is expected is an error of whoever gets it from the root. */
static void too_much(void)
{
	MPI_Comm comm;
	int x[8] = { rank }, rc;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	share(comm);
	rc = MPI_Bcast(x, rank == 0 ? 8 : 4, MPI_INT, 0, comm);
	if (rank == 1)
		EXPECT_INT(class_of(rc), MPI_ERR_TRUNCATE);
	rc = MPI_Scatter(a, rank == 0 ? 8 : 4, MPI_INT, b, rank == 0 ? 8 : 4,
			 MPI_INT, 0, comm);
	if (rank == 1)
		EXPECT_INT(class_of(rc), MPI_ERR_TRUNCATE);
	use(comm, 3);
	MPI_Comm_free(&comm);
}

static int shares(void)
{
	const char *driver = getenv("NMAD_DRIVER");

	return driver != NULL && strcmp(driver, "shm") == 0;
}

static MPI_Comm sharing(void)
{
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	share(comm);
	return comm;
}

/* Returns the error of one call, in which a process has another length. */
static int one_of_all(MPI_Comm comm, int call, int odd)
{
	int n = 4 + odd, much = 5000 + odd;

	switch (call) {
	case 0:
		return MPI_Allgather(a, n, MPI_INT, b, n, MPI_INT, comm);
	case 1:
		return MPI_Alltoall(a, n, MPI_INT, b, n, MPI_INT, comm);
	case 2:
		return MPI_Allreduce(a, b, much, MPI_INT, MPI_SUM, comm);
	case 3:
		return MPI_Allreduce(a, b, n, MPI_INT, MPI_SUM, comm);
	default:
		return odd ? MPI_Allreduce(a, b, 1, MPI_INT, MPI_SUM, comm)
			   : MPI_Barrier(comm);
	}
}

/*
 * Through memory each looks at what each gives, and fails if it is more or less
 * than it expects. By messages not all need get another length.
 */
static void other_lengths_are_errors(void)
{
	MPI_Comm comm;

	for (int call = 0; call < 5; call++) {
		comm = sharing();
		FAILS(one_of_all(comm, call, rank == 1),
		      rank == 1 ? MPI_ERR_COUNT : MPI_ERR_TRUNCATE);
		MPI_Comm_free(&comm);
	}
}

/*
 * In two calls rank 1 gives other lengths than the others expect, but as many
 * parts. The others do not take data of the second call for those of the first.
 */
static void parts_of_another_call_are_errors(void)
{
	enum { NONE = -1, SLOT = 131056, MORE = 304 };
	/* Bytes of rank 1, and of the others: through small slots, or large
	 * ones; in one slot, or two, which is by messages among two. */
	static const int bytes[][2][2] = {
		{ { 16, 400 }, { 400, 16 } },
		{ { SLOT, MORE }, { SLOT + MORE, NONE } },
	};
	unsigned char *all = malloc((size_t)size * (SLOT + MORE));
	MPI_Comm comm = sharing();
	int n;

	/* No part, or one. */
	n = rank == 1 ? 0 : 16;
	FAILS(MPI_Bcast(a, n, MPI_BYTE, 1, comm), n ? MPI_ERR_OTHER : 0);
	FAILS(MPI_Bcast(a, 16 - n, MPI_BYTE, 1, comm), MPI_SUCCESS);
	MPI_Comm_free(&comm);
	for (int i = 0; i < (size > 2 ? 2 : 1); i++) {
		comm = sharing();
		for (int call = 0; call < 2; call++) {
			n = bytes[i][rank != 1][call];
			if (n == NONE)
				continue;
			FAILS(MPI_Gather(a, n, MPI_BYTE, all, n, MPI_BYTE, 0,
					 comm),
			      rank == 0 ? MPI_ERR_OTHER : MPI_SUCCESS);
		}
		MPI_Comm_free(&comm);
	}
	free(all);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	a = malloc(MOST);
	b = malloc(MOST);
	make_bytes();
	bytes_of_every_size();
	share(MPI_COMM_WORLD);
	bytes_of_every_size();
	gathered();
	exchanged();
	parts_of_one();
	with_gaps();
	roots_run_ahead();
	order_is_that_of_ranks();
	beside_those_that_do_not_block();
	communicators_come_and_go();
	many_at_once();
	too_much();
	if (size > 1 && shares()) {
		other_lengths_are_errors();
		parts_of_another_call_are_errors();
	}
	free(a);
	free(b);
	free(bytes);
	return program_end("node");
}
