/*
 * Point-to-point messages round a ring of all processes (with one process: to
 * itself): modes, sizes, order, wildcards, statuses, datatypes.
 */
#include "../program.h"

static int next, previous;

/* Byte i of a message. */
static unsigned char byte_of(int from, int tag, size_t i)
{
	return (unsigned char)(31 * (unsigned)from + 7 * (unsigned)tag +
			       (unsigned)i * 13 + (unsigned)(i >> 8));
}

static void fill(unsigned char *p, size_t n, int from, int tag)
{
	for (size_t i = 0; i < n; i++)
		p[i] = byte_of(from, tag, i);
}

static void check(const unsigned char *p, size_t n, int from, int tag)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != byte_of(from, tag, i))
			EXPECT_INT(p[i], byte_of(from, tag, i));
}

static const size_t sizes[] = { 0,     1,     64,    65,     1000,    4096,
				16384, 65535, 65536, 300000, 1 << 20, 3000001 };
enum { NSIZES = sizeof(sizes) / sizeof(sizes[0]), MOST = 3000001 };

typedef int start_fn(const void *, int, MPI_Datatype, int, int, MPI_Comm,
		     MPI_Request *);

static void one_size(start_fn *start, unsigned char *out, unsigned char *in,
		     int n, int tag)
{
	MPI_Request r[2];
	MPI_Status st;
	int count;

	fill(out, (size_t)n, rank, tag);
	memset(in, 0, (size_t)n);
	MPI_Irecv(in, n, MPI_BYTE, previous, tag, MPI_COMM_WORLD, &r[0]);
	MPI_Barrier(MPI_COMM_WORLD);
	start(out, n, MPI_BYTE, next, tag, MPI_COMM_WORLD, &r[1]);
	MPI_Wait(&r[1], MPI_STATUS_IGNORE);
	MPI_Wait(&r[0], &st);
	EXPECT(r[0] == MPI_REQUEST_NULL);
	EXPECT_INT(st.MPI_SOURCE, previous);
	EXPECT_INT(st.MPI_TAG, tag);
	MPI_Get_count(&st, MPI_BYTE, &count);
	EXPECT_INT(count, n);
	check(in, (size_t)n, previous, tag);
}

static void every_size_arrives_in_every_mode(void)
{
	start_fn *const modes[] = { MPI_Isend, MPI_Issend, MPI_Irsend };
	unsigned char *out = malloc(MOST), *in = malloc(MOST);

	for (int mode = 0; mode < 3; mode++)
		for (int k = 0; k < NSIZES; k++)
			one_size(modes[mode], out, in, (int)sizes[k],
				 100 * mode + k);
	free(out);
	free(in);
}

/* Blocking sends to a partner that receives first. */
static void blocking_modes_arrive(void)
{
	int out = 7 + rank, in = 0;

	if (size == 1)
		return;
	for (int mode = 0; mode < 3; mode++) {
		if (rank == 1) {
			MPI_Recv(&in, 1, MPI_INT, 0, mode, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			EXPECT_INT(in, 7);
		} else if (rank == 0) {
			if (mode == 0)
				MPI_Send(&out, 1, MPI_INT, 1, mode,
					 MPI_COMM_WORLD);
			else
				MPI_Ssend(&out, 1, MPI_INT, 1, mode,
					  MPI_COMM_WORLD);
		}
	}
}

static void unexpected_messages_wait_for_their_receive(void)
{
	enum { N = 200 };
	MPI_Request r[N];
	int out[N], in;

	for (int i = 0; i < N; i++) {
		out[i] = 1000 * rank + i;
		MPI_Isend(&out[i], 1, MPI_INT, next, i, MPI_COMM_WORLD, &r[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = N - 1; i >= 0; i--) {
		MPI_Recv(&in, 1, MPI_INT, previous, i, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		EXPECT_INT(in, 1000 * previous + i);
	}
	MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
}

static void messages_of_one_sender_do_not_overtake(void)
{
	enum { N = 300 };
	MPI_Request r[N];
	MPI_Status st;
	int out[N], in;

	for (int i = 0; i < N; i++) {
		out[i] = i;
		MPI_Isend(&out[i], 1, MPI_INT, next, i % 3, MPI_COMM_WORLD,
			  &r[i]);
	}
	for (int i = 0; i < N; i++) {
		MPI_Recv(&in, 1, MPI_INT, i % 2 ? MPI_ANY_SOURCE : previous,
			 MPI_ANY_TAG, MPI_COMM_WORLD, &st);
		EXPECT_INT(in, i);
		EXPECT_INT(st.MPI_SOURCE, previous);
		EXPECT_INT(st.MPI_TAG, i % 3);
	}
	MPI_Waitall(N, r, MPI_STATUSES_IGNORE);
}

static void the_earliest_receive_that_fits_gets_the_message(void)
{
	static const int tags[] = { 78, 78, 77 };
	MPI_Request r[3], s[3];
	MPI_Status st[3];
	int in[3] = { -1, -1, -1 }, out[3] = { 5, 6, 7 };

	MPI_Irecv(&in[0], 1, MPI_INT, previous, 77, MPI_COMM_WORLD, &r[0]);
	MPI_Irecv(&in[1], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
		  MPI_COMM_WORLD, &r[1]);
	MPI_Irecv(&in[2], 1, MPI_INT, previous, 78, MPI_COMM_WORLD, &r[2]);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < 3; i++)
		MPI_Isend(&out[i], 1, MPI_INT, next, tags[i], MPI_COMM_WORLD,
			  &s[i]);
	MPI_Waitall(3, r, st);
	EXPECT_INT(in[0], 7);
	EXPECT_INT(in[1], 5);
	EXPECT_INT(in[2], 6);
	EXPECT_INT(st[1].MPI_TAG, 78);
	EXPECT_INT(st[1].MPI_SOURCE, previous);
	MPI_Waitall(3, s, MPI_STATUSES_IGNORE);
}

static void nobody_is_a_partner_too(void)
{
	MPI_Status st;
	MPI_Request r;
	int x = 42, count, flag;

	MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
	MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &st);
	EXPECT_INT(x, 42);
	EXPECT_INT(st.MPI_SOURCE, MPI_PROC_NULL);
	EXPECT_INT(st.MPI_TAG, MPI_ANY_TAG);
	MPI_Get_count(&st, MPI_INT, &count);
	EXPECT_INT(count, 0);
	MPI_Irecv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &r);
	MPI_Wait(&r, &st);
	EXPECT_INT(st.MPI_SOURCE, MPI_PROC_NULL);
	MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, MPI_COMM_WORLD,
		 &st);
	EXPECT_INT(st.MPI_SOURCE, MPI_PROC_NULL);
	MPI_Iprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &st);
	EXPECT_INT(flag, 1);
	EXPECT_INT(st.MPI_SOURCE, MPI_PROC_NULL);
}

/* Programs name none where nothing is moved. */
static void nothing_has_no_type(void)
{
	MPI_Request r;
	MPI_Status st;
	int count = -1;

	MPI_Irecv(NULL, 0, MPI_DATATYPE_NULL, rank, 7, MPI_COMM_WORLD, &r);
	MPI_Send(NULL, 0, MPI_DATATYPE_NULL, rank, 7, MPI_COMM_WORLD);
	MPI_Wait(&r, &st);
	EXPECT_INT(st.MPI_SOURCE, rank);
	MPI_Get_count(&st, MPI_INT, &count);
	EXPECT_INT(count, 0);
}

static void sendrecv_exchanges_without_deadlock(void)
{
	enum { N = 200000 };
	int *out = malloc(N * sizeof(int)), *in = malloc(N * sizeof(int));
	MPI_Status st;

	for (int i = 0; i < N; i++)
		out[i] = rank + i;
	MPI_Sendrecv(out, N, MPI_INT, next, 9, in, N, MPI_INT, previous, 9,
		     MPI_COMM_WORLD, &st);
	EXPECT_INT(st.MPI_SOURCE, previous);
	for (int i = 0; i < N; i++)
		if (in[i] != previous + i)
			EXPECT_INT(in[i], previous + i);
	MPI_Sendrecv_replace(out, N, MPI_INT, next, 10, previous, 10,
			     MPI_COMM_WORLD, &st);
	EXPECT(memcmp(out, in, N * sizeof(int)) == 0);
	free(out);
	free(in);
}

static void probes_see_what_a_receive_would_take(void)
{
	MPI_Request r;
	MPI_Status st;
	int out[3] = { 1, 2, 3 }, in[3], flag, count;

	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &st);
	EXPECT_INT(flag, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Isend(out, 3, MPI_INT, next, 55, MPI_COMM_WORLD, &r);
	MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
	EXPECT_INT(st.MPI_SOURCE, previous);
	EXPECT_INT(st.MPI_TAG, 55);
	MPI_Get_count(&st, MPI_INT, &count);
	EXPECT_INT(count, 3);
	MPI_Iprobe(previous, 55, MPI_COMM_WORLD, &flag, &st);
	EXPECT_INT(flag, 1);
	MPI_Iprobe(previous, 56, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	EXPECT_INT(flag, 0);
	MPI_Recv(in, 3, MPI_INT, st.MPI_SOURCE, st.MPI_TAG, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	EXPECT_INT(in[2], 3);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void counts_are_undefined_where_data_end_within_an_element(void)
{
	char out[6] = { 0 };
	short in[4];
	MPI_Datatype pair;
	MPI_Request r;
	MPI_Status st;
	int count;

	MPI_Type_contiguous(2, MPI_SHORT, &pair);
	MPI_Type_commit(&pair);
	MPI_Isend(out, 3, MPI_SHORT, next, 1, MPI_COMM_WORLD, &r);
	MPI_Recv(in, 2, pair, previous, 1, MPI_COMM_WORLD, &st);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Get_count(&st, MPI_DOUBLE, &count);
	EXPECT_INT(count, MPI_UNDEFINED);
	MPI_Get_count(&st, pair, &count);
	EXPECT_INT(count, MPI_UNDEFINED);
	MPI_Get_elements(&st, pair, &count);
	EXPECT_INT(count, 3);
	MPI_Type_free(&pair);
}

enum { ROWS = 300, COLUMNS = 200 };

static double matrix(int from, int row, int column)
{
	return 1000.0 * row + column + 0.5 * from;
}

static void data_in_pieces_travel_both_ways(void)
{
	double(*m)[COLUMNS] = calloc(ROWS, sizeof(*m));
	double(*o)[COLUMNS] = calloc(ROWS, sizeof(*o));
	MPI_Datatype column, columns;
	MPI_Request r;
	MPI_Status st;
	int count;

	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++)
			o[i][j] = matrix(rank, i, j);
	MPI_Type_vector(ROWS, 1, COLUMNS, MPI_DOUBLE, &column);
	MPI_Type_create_resized(column, 0, sizeof(double), &columns);
	MPI_Type_commit(&columns);
	MPI_Type_free(&column);
	/* A transposition: by columns out, one row after the other in. */
	MPI_Isend(o, COLUMNS, columns, next, 4, MPI_COMM_WORLD, &r);
	MPI_Recv(m, ROWS * COLUMNS, MPI_DOUBLE, previous, 4, MPI_COMM_WORLD,
		 &st);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++)
			EXPECT((&m[0][0])[j * ROWS + i] ==
			       matrix(previous, i, j));
	/* And back: one row after the other out, by columns in. */
	MPI_Isend(m, ROWS * COLUMNS, MPI_DOUBLE, previous, 5, MPI_COMM_WORLD,
		  &r);
	memset(o, 0, ROWS * sizeof(*o));
	MPI_Recv(o, COLUMNS, columns, next, 5, MPI_COMM_WORLD, &st);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Get_count(&st, columns, &count);
	EXPECT_INT(count, COLUMNS);
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++)
			EXPECT(o[i][j] == matrix(rank, i, j));
	MPI_Type_free(&columns);
	free(m);
	free(o);
}

static void a_type_may_be_freed_while_it_is_used(void)
{
	enum { N = 50000 };
	int *out = malloc(2 * N * sizeof(int)), *in = malloc(N * sizeof(int));
	MPI_Datatype spread;
	MPI_Request r;

	for (int i = 0; i < 2 * N; i++)
		out[i] = i + rank;
	MPI_Type_vector(N, 1, 2, MPI_INT, &spread);
	MPI_Type_commit(&spread);
	MPI_Isend(out, 1, spread, next, 2, MPI_COMM_WORLD, &r);
	MPI_Type_free(&spread);
	EXPECT(spread == MPI_DATATYPE_NULL);
	MPI_Type_vector(3, 1, 7, MPI_CHAR, &spread);
	MPI_Recv(in, N, MPI_INT, previous, 2, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	for (int i = 0; i < N; i++)
		if (in[i] != 2 * i + previous)
			EXPECT_INT(in[i], 2 * i + previous);
	MPI_Type_free(&spread);
	free(out);
	free(in);
}

static void absolute_addresses_need_no_buffer(void)
{
	int a = 10 + rank, b = 20 + rank, in[2];
	int blocks[2] = { 1, 1 };
	MPI_Aint at[2];
	MPI_Datatype type, types[2] = { MPI_INT, MPI_INT };
	MPI_Request r;

	MPI_Get_address(&a, &at[0]);
	MPI_Get_address(&b, &at[1]);
	MPI_Type_create_struct(2, blocks, at, types, &type);
	MPI_Type_commit(&type);
	MPI_Isend(MPI_BOTTOM, 1, type, next, 6, MPI_COMM_WORLD, &r);
	MPI_Recv(in, 2, MPI_INT, previous, 6, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	EXPECT_INT(in[0], 10 + previous);
	EXPECT_INT(in[1], 20 + previous);
	MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	next = (rank + 1) % size;
	previous = (rank - 1 + size) % size;
	every_size_arrives_in_every_mode();
	blocking_modes_arrive();
	unexpected_messages_wait_for_their_receive();
	MPI_Barrier(MPI_COMM_WORLD);
	messages_of_one_sender_do_not_overtake();
	MPI_Barrier(MPI_COMM_WORLD);
	the_earliest_receive_that_fits_gets_the_message();
	nobody_is_a_partner_too();
	nothing_has_no_type();
	sendrecv_exchanges_without_deadlock();
	MPI_Barrier(MPI_COMM_WORLD);
	probes_see_what_a_receive_would_take();
	counts_are_undefined_where_data_end_within_an_element();
	data_in_pieces_travel_both_ways();
	a_type_may_be_freed_while_it_is_used();
	absolute_addresses_need_no_buffer();
	return program_end("messages");
}
