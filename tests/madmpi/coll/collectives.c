/*
 * Collective operations against what each process can work out by itself.
 */
#include "../program.h"
#include "maps.h"

static MPI_Comm comm = MPI_COMM_WORLD;

enum { MOST = 300000 };

/* Sizes around the limits between algorithms. */
static const int counts[] = { 0, 1, 3, 17, 1000, 8193, 20000, MOST / FEWER };
enum { NCOUNTS = sizeof(counts) / sizeof(counts[0]) };

static int value(int of, int i)
{
	return 1000003 * (of + 1) + 17 * i;
}

static void barrier_waits_for_all(void)
{
	int token = 0;

	/* Who comes late has sent before; nobody leaves without it. */
	for (int late = 0; late < size; late++) {
		MPI_Request r;
		int flag;

		MPI_Irecv(&token, 1, MPI_INT, late, 1, comm, &r);
		if (rank == late)
			for (int i = 0; i < size; i++) {
				MPI_Request s;

				MPI_Isend(&late, 1, MPI_INT, i, 1, comm, &s);
				MPI_Wait(&s, MPI_STATUS_IGNORE);
			}
		MPI_Barrier(comm);
		MPI_Iprobe(MPI_ANY_SOURCE, 2, comm, &flag, MPI_STATUS_IGNORE);
		EXPECT_INT(flag, 0);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		EXPECT_INT(token, late);
		MPI_Barrier(comm);
	}
}

static void bcast_from_every_root(int *buf)
{
	MPI_Datatype spread;

	for (int root = 0; root < size; root++)
		for (int k = 0; k < NCOUNTS; k++) {
			int n = counts[k];

			for (int i = 0; i < n; i++)
				buf[i] = rank == root ? value(root, i) : -1;
			MPI_Bcast(buf, n, MPI_INT, root, comm);
			for (int i = 0; i < n; i++)
				if (buf[i] != value(root, i))
					EXPECT_INT(buf[i], value(root, i));
		}
	/* Every second element, large enough to be cut. */
	MPI_Type_vector(100000, 1, 2, MPI_INT, &spread);
	MPI_Type_commit(&spread);
	for (int i = 0; i < 200000; i++)
		buf[i] = rank == size - 1 ? i : -1;
	MPI_Bcast(buf, 1, spread, size - 1, comm);
	for (int i = 0; i < 200000; i++)
		EXPECT_INT(buf[i], i % 2 == 0 || rank == size - 1 ? i : -1);
	MPI_Type_free(&spread);
}

static long long sum_of(int i)
{
	long long s = 0;

	for (int r = 0; r < size; r++)
		s += value(r, i);
	return s;
}

static void reductions_of_every_size(long long *in, long long *out)
{
	for (int k = 0; k < NCOUNTS; k++) {
		int n = counts[k], root = k % size;

		for (int i = 0; i < n; i++)
			in[i] = value(rank, i);
		memset(out, 0, (size_t)n * sizeof(*out));
		MPI_Reduce(in, out, n, MPI_LONG_LONG, MPI_SUM, root, comm);
		for (int i = 0; rank == root && i < n; i++)
			EXPECT_INT(out[i], sum_of(i));
		MPI_Allreduce(in, out, n, MPI_LONG_LONG, MPI_SUM, comm);
		for (int i = 0; i < n; i++)
			EXPECT_INT(out[i], sum_of(i));
		MPI_Allreduce(MPI_IN_PLACE, in, n, MPI_LONG_LONG, MPI_MAX,
			      comm);
		for (int i = 0; i < n; i++)
			EXPECT_INT(in[i], value(size - 1, i));
		for (int i = 0; i < n; i++)
			in[i] = value(rank, i);
		if (rank == root)
			MPI_Reduce(MPI_IN_PLACE, in, n, MPI_LONG_LONG, MPI_MIN,
				   root, comm);
		else
			MPI_Reduce(in, NULL, n, MPI_LONG_LONG, MPI_MIN, root,
				   comm);
		for (int i = 0; rank == root && i < n; i++)
			EXPECT_INT(in[i], value(0, i));
	}
}

static void locations(void)
{
	struct {
		double value;
		int index;
	} in = { (rank * 7) % size, rank }, out;

	MPI_Allreduce(&in, &out, 1, MPI_DOUBLE_INT, MPI_MINLOC, comm);
	EXPECT(out.value == 0);
	EXPECT_INT((out.index * 7) % size, 0);
}

static struct map map_of(int r, int i)
{
	return (struct map){ 2u * (unsigned)r + 3, (unsigned)(r * r + i) };
}

static struct map composed(int from, int to, int i)
{
	struct map m = map_of(from, i), n;

	for (int r = from + 1; r <= to; r++) {
		n = map_of(r, i);
		m.b = m.a * n.b + m.b;
		m.a = m.a * n.a;
	}
	return m;
}

static void expect_map(struct map got, struct map want)
{
	EXPECT_INT(got.a, want.a);
	EXPECT_INT(got.b, want.b);
}

static void operations_keep_the_order_of_ranks(void)
{
	enum { K = 5 };
	struct map in[64 * K], out[64 * K];
	MPI_Datatype type;
	MPI_Op op;

	MPI_Type_contiguous(2, MPI_UNSIGNED, &type);
	MPI_Type_commit(&type);
	MPI_Op_create(compose, 0, &op);
	EXPECT(size <= 64);
	for (int i = 0; i < K; i++)
		in[i] = map_of(rank, i);
	for (int root = 0; root < size; root++) {
		MPI_Reduce(in, out, K, type, op, root, comm);
		for (int i = 0; rank == root && i < K; i++)
			expect_map(out[i], composed(0, size - 1, i));
	}
	MPI_Allreduce(in, out, K, type, op, comm);
	for (int i = 0; i < K; i++)
		expect_map(out[i], composed(0, size - 1, i));
	MPI_Scan(in, out, K, type, op, comm);
	for (int i = 0; i < K; i++)
		expect_map(out[i], composed(0, rank, i));
	memcpy(out, in, sizeof(in));
	MPI_Scan(MPI_IN_PLACE, out, K, type, op, comm);
	for (int i = 0; i < K; i++)
		expect_map(out[i], composed(0, rank, i));
	MPI_Exscan(in, out, K, type, op, comm);
	for (int i = 0; rank > 0 && i < K; i++)
		expect_map(out[i], composed(0, rank - 1, i));
	for (int i = 0; i < K * size; i++)
		in[i] = map_of(rank, i);
	MPI_Reduce_scatter_block(in, out, K, type, op, comm);
	for (int i = 0; i < K; i++)
		expect_map(out[i], composed(0, size - 1, rank * K + i));
	MPI_Op_free(&op);
	MPI_Type_free(&type);
}

static void gather_and_scatter(int *a, int *b)
{
	static const int parts[] = { 0, 1, 13, 1000 };

	for (int k = 0; k < 4; k++)
		for (int root = 0; root < size; root++) {
			int n = parts[k];

			for (int i = 0; i < n; i++)
				a[i] = value(rank, i);
			memset(b, 0xff, (size_t)(n * size) * sizeof(int));
			MPI_Gather(a, n, MPI_INT, b, n, MPI_INT, root, comm);
			for (int i = 0; rank == root && i < n * size; i++)
				EXPECT_INT(b[i], value(i / n, i % n));
			MPI_Scatter(b, n, MPI_INT, a, n, MPI_INT, root, comm);
			for (int i = 0; i < n; i++)
				EXPECT_INT(a[i], value(rank, i));
			if (rank == root) {
				memset(b + root * n, 0, (size_t)n * 4);
				memcpy(b + root * n, a, (size_t)n * 4);
			}
			if (rank == root)
				MPI_Gather(MPI_IN_PLACE, 0, MPI_INT, b, n,
					   MPI_INT, root, comm);
			else
				MPI_Gather(a, n, MPI_INT, NULL, 0, MPI_INT,
					   root, comm);
			for (int i = 0; rank == root && i < n * size; i++)
				EXPECT_INT(b[i], value(i / n, i % n));
		}
}

static void parts_of_different_lengths(int *a, int *b)
{
	int n[64], at[64], total = 0;

	EXPECT(size <= 64);
	for (int r = 0; r < size; r++) {
		n[r] = 3 * r + r % 2;
		at[r] = total + 2;
		total += n[r] + 2;
	}
	for (int i = 0; i < n[rank]; i++)
		a[i] = value(rank, i);
	memset(b, 0xff, (size_t)(total + 2) * sizeof(int));
	MPI_Gatherv(a, n[rank], MPI_INT, b, n, at, MPI_INT, 0, comm);
	for (int r = 0; rank == 0 && r < size; r++) {
		EXPECT_INT(b[at[r] - 1], -1);
		for (int i = 0; i < n[r]; i++)
			EXPECT_INT(b[at[r] + i], value(r, i));
	}
	memset(a, 0, (size_t)n[rank] * sizeof(int));
	MPI_Scatterv(b, n, at, MPI_INT, a, n[rank], MPI_INT, 0, comm);
	for (int i = 0; i < n[rank]; i++)
		EXPECT_INT(a[i], value(rank, i));
	memset(b, 0xff, (size_t)(total + 2) * sizeof(int));
	MPI_Allgatherv(a, n[rank], MPI_INT, b, n, at, MPI_INT, comm);
	for (int r = 0; r < size; r++)
		for (int i = 0; i < n[r]; i++)
			EXPECT_INT(b[at[r] + i], value(r, i));
}

static void allgather_of_every_size(int *a, int *b)
{
	static const int parts[] = { 0, 1, 9, 500, 40000 };

	for (int k = 0; k < 5; k++) {
		int n = parts[k];

		if (n * size > MOST)
			continue;
		for (int i = 0; i < n; i++)
			a[i] = value(rank, i);
		memset(b, 0xff, (size_t)(n * size) * sizeof(int));
		MPI_Allgather(a, n, MPI_INT, b, n, MPI_INT, comm);
		for (int i = 0; i < n * size; i++)
			EXPECT_INT(b[i], value(i / n, i % n));
		for (int i = 0; i < n * size; i++)
			if (i / n != rank)
				b[i] = -1;
		MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, n, MPI_INT,
			      comm);
		for (int i = 0; i < n * size; i++)
			EXPECT_INT(b[i], value(i / n, i % n));
	}
}

static void alltoall_of_every_size(int *a, int *b)
{
	static const int parts[] = { 0, 1, 9, 700, 20000 };
	int sn[64], sat[64], rn[64], rat[64], s = 0, r = 0;

	for (int k = 0; k < 5; k++) {
		int n = parts[k];

		if (n * size > MOST)
			continue;
		for (int i = 0; i < n * size; i++)
			a[i] = value(rank, i);
		MPI_Alltoall(a, n, MPI_INT, b, n, MPI_INT, comm);
		for (int i = 0; i < n * size; i++)
			EXPECT_INT(b[i], value(i / n, rank * n + i % n));
		MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, a, n, MPI_INT, comm);
		for (int i = 0; i < n * size; i++)
			EXPECT_INT(a[i], b[i]);
	}
	for (int i = 0; i < size; i++) {
		sn[i] = rank + 2 * i;
		rn[i] = i + 2 * rank;
		sat[i] = s;
		rat[i] = r + 1;
		s += sn[i];
		r += rn[i] + 1;
	}
	for (int i = 0; i < s; i++)
		a[i] = value(rank, i);
	memset(b, 0xff, (size_t)(r + 1) * sizeof(int));
	MPI_Alltoallv(a, sn, sat, MPI_INT, b, rn, rat, MPI_INT, comm);
	for (int from = 0; from < size; from++) {
		int before = rank * from + rank * (rank - 1);

		for (int i = 0; i < rn[from]; i++)
			EXPECT_INT(b[rat[from] + i], value(from, before + i));
	}
}

/* Rank r sends rows to odd ranks, columns to even ones; rows are received. */
static void alltoall_of_different_types(int *a, int *b)
{
	enum { N = 6, PART = 2 * N };
	int n[2][64], at[64], bytes = PART * (int)sizeof(int);
	MPI_Datatype column, types[2][64];

	MPI_Type_vector(N, 1, 2, MPI_INT, &column);
	MPI_Type_commit(&column);
	for (int i = 0; i < size; i++) {
		at[i] = i * bytes;
		types[0][i] = i % 2 ? MPI_INT : column;
		n[0][i] = i % 2 ? N : 1;
		types[1][i] = MPI_INT;
		n[1][i] = N;
		for (int k = 0; k < N; k++)
			a[i * PART + (i % 2 ? k : 2 * k)] =
				value(rank, 10 * i + k);
	}
	memset(b, 0xff, (size_t)(bytes * size));
	MPI_Alltoallw(a, n[0], at, types[0], b, n[1], at, types[1], comm);
	for (int i = 0; i < size * PART; i++)
		EXPECT_INT(b[i], i % PART < N
					 ? value(i / PART, 10 * rank + i % PART)
					 : -1);
	/* In place, by columns where both ranks are even. */
	for (int i = 0; i < size; i++) {
		int columns = rank % 2 == 0 && i % 2 == 0;

		types[0][i] = columns ? column : MPI_INT;
		n[0][i] = columns ? 1 : N;
		for (int k = 0; k < PART; k++)
			b[i * PART + k] = value(rank, 100 * i + k);
	}
	MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, b, n[0], at, types[0],
		      comm);
	for (int i = 0; i < size * PART; i++) {
		int of = i / PART, k = i % PART;
		int moved = types[0][of] == column ? k % 2 == 0 : k < N;

		EXPECT_INT(b[i], moved ? value(of, 100 * rank + k)
				       : value(rank, 100 * of + k));
	}
	MPI_Type_free(&column);
}

/* Each talks to the next one only, and has no types for all others. */
static void alltoallw_needs_no_types_for_empty_parts(void)
{
	int next = (rank + 1) % size, previous = (rank + size - 1) % size;
	int n[2][64] = { 0 }, at[64] = { 0 }, out = value(rank, 5), in;
	MPI_Datatype types[2][64];

	for (int i = 0; i < size; i++)
		types[0][i] = types[1][i] = MPI_DATATYPE_NULL;
	n[0][next] = n[1][previous] = 1;
	types[0][next] = types[1][previous] = MPI_INT;
	in = 0;
	MPI_Alltoallw(&out, n[0], at, types[0], &in, n[1], at, types[1], comm);
	EXPECT_INT(in, value(previous, 5));
#if MPI_VERSION >= 4
	MPI_Count wide[2][64] = { 0 };
	MPI_Aint wide_at[64] = { 0 };

	wide[0][next] = wide[1][previous] = 1;
	in = 0;
	MPI_Alltoallw_c(&out, wide[0], wide_at, types[0], &in, wide[1], wide_at,
			types[1], comm);
	EXPECT_INT(in, value(previous, 5));
#endif
#ifdef MPI_ABI_VERSION
	/* Nothing at all. */
	memset(n, 0, sizeof(n));
	FAILS(MPI_Alltoallv(NULL, n[0], at, MPI_DATATYPE_NULL, NULL, n[1], at,
			    MPI_DATATYPE_NULL, comm),
	      MPI_SUCCESS);
	FAILS(MPI_Alltoall(NULL, 0, MPI_DATATYPE_NULL, NULL, 0,
			   MPI_DATATYPE_NULL, comm),
	      MPI_SUCCESS);
	FAILS(MPI_Gatherv(NULL, 0, MPI_DATATYPE_NULL, NULL, n[1], at,
			  MPI_DATATYPE_NULL, 0, comm),
	      MPI_SUCCESS);
	FAILS(MPI_Bcast(NULL, 0, MPI_DATATYPE_NULL, 0, comm), MPI_SUCCESS);
#endif
}

static void reduce_scatter_of_different_lengths(int *a, int *b)
{
	int n[64], total = 0, before = 0;

	for (int i = 0; i < size; i++) {
		n[i] = (i + 1) % 3 * 100;
		before += i < rank ? n[i] : 0;
		total += n[i];
	}
	for (int i = 0; i < total; i++)
		a[i] = rank + i;
	MPI_Reduce_scatter(a, b, n, MPI_INT, MPI_SUM, comm);
	for (int i = 0; i < n[rank]; i++)
		EXPECT_INT(b[i], size * (size - 1) / 2 + size * (before + i));
}

/* Of no element it does not matter that MPI_SUM does not take bytes. */
static void no_elements_fit_to_any_operation(void)
{
	MPI_Datatype byte = MPI_BYTE;
	int none[64] = { 0 };
	char a = 1, b = 2;
	MPI_Request r;

	MPI_Reduce(&a, &b, 0, byte, MPI_SUM, 0, comm);
	MPI_Allreduce(&a, &b, 0, byte, MPI_SUM, comm);
	MPI_Allreduce(&a, &b, 0, MPI_DOUBLE, MPI_BAND, comm);
	MPI_Allreduce(&a, &b, 0, MPI_INT, MPI_MAXLOC, comm);
	MPI_Scan(&a, &b, 0, byte, MPI_SUM, comm);
	MPI_Exscan(&a, &b, 0, byte, MPI_SUM, comm);
	MPI_Reduce_scatter(&a, &b, none, byte, MPI_SUM, comm);
	MPI_Reduce_scatter_block(&a, &b, 0, byte, MPI_SUM, comm);
	MPI_Reduce_local(&a, &b, 0, byte, MPI_SUM);
	MPI_Ireduce_scatter(&a, &b, none, byte, MPI_SUM, comm, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Iallreduce(MPI_IN_PLACE, &b, 0, byte, MPI_SUM, comm, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
#if MPI_VERSION >= 4
	MPI_Allreduce_init(&a, &b, 0, byte, MPI_SUM, comm, MPI_INFO_NULL, &r);
	MPI_Start(&r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Request_free(&r);
#endif
	EXPECT(a == 1 && b == 2);
}

/* It concerns no communicator. */
static void a_local_reduction_has_two_buffers(int *a)
{
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	FAILS(MPI_Reduce_local(MPI_IN_PLACE, a, 1, MPI_INT, MPI_SUM),
	      MPI_ERR_BUFFER);
	FAILS(MPI_Reduce_local(a, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM),
	      MPI_ERR_BUFFER);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

static void run_all(void)
{
	long long *in = malloc(MOST * sizeof(*in));
	long long *out = malloc(MOST * sizeof(*out));

	barrier_waits_for_all();
	bcast_from_every_root((int *)in);
	reductions_of_every_size(in, out);
	locations();
	operations_keep_the_order_of_ranks();
	gather_and_scatter((int *)in, (int *)out);
	parts_of_different_lengths((int *)in, (int *)out);
	allgather_of_every_size((int *)in, (int *)out);
	alltoall_of_every_size((int *)in, (int *)out);
	alltoall_of_different_types((int *)in, (int *)out);
	alltoallw_needs_no_types_for_empty_parts();
	reduce_scatter_of_different_lengths((int *)in, (int *)out);
	no_elements_fit_to_any_operation();
	a_local_reduction_has_two_buffers((int *)in);
	free(in);
	free(out);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	run_all();
	/* The same in a communicator whose ranks run the other way. */
	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
	rank = size - 1 - rank;
	run_all();
	MPI_Comm_free(&comm);
	return program_end("collectives");
}
