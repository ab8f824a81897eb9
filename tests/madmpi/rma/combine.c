/*
 * What combines: operations, types, atomicity and order; every kind of window.
 */
#include "windows.h"

static const struct kind *kind;

enum { TURNS = 20 / FEWER };

/* Each operation with a value of each process, on one element of each. */
#define COMBINES(name, ctype, mtype, op, start, value, expected)               \
	static void name(void)                                                 \
	{                                                                      \
		ctype *memory, mine = (ctype)(value), want = (ctype)(start);   \
		MPI_Win win = window(kind, 2 * sizeof(ctype), sizeof(ctype),   \
				     &memory);                                 \
                                                                               \
		memory[1] = (ctype)(start);                                    \
		for (int r = 0; r < size; r++)                                 \
			want = (ctype)(expected);                              \
		MPI_Win_fence(0, win);                                         \
		for (int i = 0; i < size; i++)                                 \
			MPI_Accumulate(&mine, 1, mtype, i,                     \
				       place(kind, i, 1, sizeof(ctype)), 1,    \
				       mtype, op, win);                        \
		MPI_Win_fence(MPI_MODE_NOSUCCEED, win);                        \
		EXPECT(memory[1] == want);                                     \
		end_window(kind, &win, memory);                                \
	}

COMBINES(sums_of_int, int, MPI_INT, MPI_SUM, 5, rank + 1, want + r + 1)
COMBINES(products_of_double, double, MPI_DOUBLE, MPI_PROD, 2, rank + 1,
	 want *(r + 1))
COMBINES(maxima_of_short, short, MPI_SHORT, MPI_MAX, -1, 7 * rank, 7 * r)
COMBINES(minima_of_long, long, MPI_LONG, MPI_MIN, 1000, -rank, -r)
COMBINES(bits_of_unsigned, unsigned, MPI_UNSIGNED, MPI_BOR, 1u << 20,
	 1u << rank, want | 1u << r)
COMBINES(parities_of_char, signed char, MPI_SIGNED_CHAR, MPI_BXOR, 64, rank,
	 want ^ r)
COMBINES(ands_of_bytes, unsigned char, MPI_BYTE, MPI_BAND, 255, ~(1 << rank),
	 want & ~(1 << r))
COMBINES(logic_of_int, int, MPI_INT, MPI_LAND, 3, rank != 1, want &&r != 1)
COMBINES(sums_of_long_double, long double, MPI_LONG_DOUBLE, MPI_SUM, 0.5, rank,
	 want + r)

/* Pairs, in memory with padding, of a derived type. */
static void pairs_of_value_and_index(void)
{
	struct pair {
		double value;
		int index;
	} * memory, mine[3];
	MPI_Datatype type;
	MPI_Win win =
		window(kind, 6 * sizeof(*memory), sizeof(*memory), &memory);

	MPI_Type_vector(3, 1, 2, MPI_DOUBLE_INT, &type);
	MPI_Type_commit(&type);
	for (int i = 0; i < 6; i++)
		memory[i] = (struct pair){ 1, 99 };
	for (int i = 0; i < 3; i++)
		mine[i] = (struct pair){ rank == i % size ? 5 : -5, rank };
	MPI_Win_fence(0, win);
	for (int i = 0; i < size; i++)
		MPI_Accumulate(mine, 3, MPI_DOUBLE_INT, i,
			       place(kind, i, 0, sizeof(*memory)), 1, type,
			       MPI_MAXLOC, win);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	for (int i = 0; i < 5; i++) {
		EXPECT(memory[i].value == (i % 2 == 0 ? 5 : 1));
		EXPECT_INT(memory[i].index, i % 2 == 0 ? i / 2 % size : 99);
	}
	MPI_Type_free(&type);
	end_window(kind, &win, memory);
}

/* All fetch from one, and no number is given twice. */
static void fetches_are_atomic(void)
{
	long *memory, one = 1, got, sum = 0, all, n = (long)TURNS * size;
	MPI_Win win = window(kind, sizeof(long), sizeof(long), &memory);
	MPI_Aint at = place(kind, 0, 0, sizeof(long));

	memory[0] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < TURNS; i++) {
		MPI_Fetch_and_op(&one, &got, MPI_LONG, 0, at, MPI_SUM, win);
		MPI_Win_flush(0, win);
		sum += got;
	}
	MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	EXPECT_INT(all, n * (n - 1) / 2);
	MPI_Fetch_and_op(NULL, &got, MPI_LONG, 0, at, MPI_NO_OP, win);
	MPI_Win_flush(0, win);
	EXPECT_INT(got, n);
	MPI_Win_unlock_all(win);
	end_window(kind, &win, memory);
}

/* A counter that is only changed by who has seen its last value. */
static void swaps_are_atomic(void)
{
	int *memory, seen = 0, next, got;
	MPI_Win win = window(kind, sizeof(int), sizeof(int), &memory);
	MPI_Aint at = place(kind, 0, 0, sizeof(int));

	memory[0] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < TURNS;) {
		next = seen + 1;
		MPI_Compare_and_swap(&next, &seen, &got, MPI_INT, 0, at, win);
		MPI_Win_flush(0, win);
		i += got == seen;
		seen = got == seen ? next : got;
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		EXPECT_INT(memory[0], TURNS * size);
	end_window(kind, &win, memory);
}

/* From one origin to one place: in the order of the calls. */
static void accumulates_keep_their_order(void)
{
	enum { N = 100 };
	int *memory, right = (rank + 1) % size, values[N], old[N];
	int last = N - 1;
	MPI_Win win = window(kind, sizeof(int), sizeof(int), &memory);
	MPI_Aint at = place(kind, right, 0, sizeof(int));

	memory[0] = -1;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
	for (int i = 0; i < N; i++) {
		values[i] = i;
		if (i % 2 == 0)
			MPI_Get_accumulate(&values[i], 1, MPI_INT, &old[i], 1,
					   MPI_INT, right, at, 1, MPI_INT,
					   MPI_REPLACE, win);
		else
			MPI_Accumulate(&values[i], 1, MPI_INT, right, at, 1,
				       MPI_INT, MPI_REPLACE, win);
	}
	MPI_Win_flush(right, win);
	MPI_Get(&last, 1, MPI_INT, right, at, 1, MPI_INT, win);
	MPI_Win_unlock(right, win);
	EXPECT_INT(last, N - 1);
	for (int i = 0; i < N; i += 2)
		EXPECT_INT(old[i], i - 1);
	end_window(kind, &win, memory);
}

/* Long ones, of types with holes on all sides: what was there comes back. */
static void long_ones_give_back_what_was_there(void)
{
	enum { N = 100 * 1000 };
	int *memory, right = (rank + 1) % size;
	int *in = malloc(2 * N * sizeof(int)),
	    *out = malloc(3 * N * sizeof(int));
	MPI_Datatype two, three;
	MPI_Win win = window(kind, 2 * N * sizeof(int), sizeof(int), &memory);

	MPI_Type_vector(N, 1, 2, MPI_INT, &two);
	MPI_Type_commit(&two);
	MPI_Type_vector(N, 1, 3, MPI_INT, &three);
	MPI_Type_commit(&three);
	for (int i = 0; i < 2 * N; i++) {
		memory[i] = i;
		in[i] = 2 * i;
	}
	memset(out, 0xff, 3 * N * sizeof(int));
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
	MPI_Get_accumulate(in, 1, two, out, 1, three, right,
			   place(kind, right, 0, sizeof(int)), 1, two, MPI_SUM,
			   win);
	MPI_Win_unlock(right, win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < N; i++) {
		EXPECT_INT(out[3 * i], 2 * i);
		EXPECT(i == N - 1 || out[3 * i + 1] == -1);
		EXPECT_INT(memory[2 * i], 6 * i);
		EXPECT_INT(memory[2 * i + 1], 2 * i + 1);
	}
	MPI_Type_free(&two);
	MPI_Type_free(&three);
	free(in);
	free(out);
	end_window(kind, &win, memory);
}

/* A request is complete when its operation is, here. */
static void requests_complete(void)
{
	enum { N = 5000 };
	int *memory, right = (rank + 1) % size, ones[N], got[N], old[N];
	MPI_Win win = window(kind, N * sizeof(int), sizeof(int), &memory);
	MPI_Aint at = place(kind, right, 0, sizeof(int));
	MPI_Request all[2], one;
	MPI_Status status;

	for (int i = 0; i < N; i++) {
		memory[i] = i;
		ones[i] = 1;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	MPI_Rget(got, N, MPI_INT, right, at, N, MPI_INT, win, &one);
	MPI_Wait(&one, &status);
	for (int i = 0; i < N; i++)
		EXPECT_INT(got[i], i);
	MPI_Rput(ones, N, MPI_INT, right, at, N, MPI_INT, win, &one);
	MPI_Wait(&one, MPI_STATUS_IGNORE);
	MPI_Win_flush(right, win);
	MPI_Raccumulate(ones, N, MPI_INT, right, at, N, MPI_INT, MPI_SUM, win,
			&all[0]);
	MPI_Rget_accumulate(ones, N, MPI_INT, old, N, MPI_INT, right, at, N,
			    MPI_INT, MPI_SUM, win, &all[1]);
	MPI_Waitall(2, all, MPI_STATUSES_IGNORE);
	for (int i = 0; i < N; i++)
		EXPECT_INT(old[i], 2);
	MPI_Rget(got, 0, MPI_INT, right, at, 0, MPI_INT, win, &one);
	MPI_Wait(&one, MPI_STATUS_IGNORE);
	MPI_Rput(ones, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win, &one);
	MPI_Wait(&one, MPI_STATUS_IGNORE);
	/* Freed: the unlock completes it. */
	MPI_Rget(got, N, MPI_INT, right, at, N, MPI_INT, win, &one);
	MPI_Request_free(&one);
	MPI_Win_unlock_all(win);
	for (int i = 0; i < N; i++)
		EXPECT_INT(got[i], 3);
	end_window(kind, &win, memory);
}

/* As in a reduction; all of it is a request, or nothing, to the target. */
static void no_elements_fit_to_any_operation(void)
{
	int right = (rank + 1) % size;
	char *memory, mine = 1, got = 2;
	MPI_Win win = window(kind, 1, 1, &memory);
	MPI_Aint at = place(kind, right, 0, 1);
	MPI_Datatype byte = MPI_BYTE;
	MPI_Request r[2];

	*memory = 3;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	MPI_Accumulate(&mine, 0, byte, right, at, 0, byte, MPI_SUM, win);
	MPI_Accumulate(&mine, 0, MPI_DOUBLE, right, at, 0, MPI_DOUBLE, MPI_BAND,
		       win);
	MPI_Get_accumulate(&mine, 0, byte, &got, 0, byte, right, at, 0, byte,
			   MPI_SUM, win);
	MPI_Raccumulate(&mine, 0, byte, right, at, 0, byte, MPI_SUM, win,
			&r[0]);
	MPI_Rget_accumulate(&mine, 0, byte, &got, 0, byte, right, at, 0, byte,
			    MPI_SUM, win, &r[1]);
	MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	EXPECT(*memory == 3 && got == 2);
	end_window(kind, &win, memory);
}

int main(int argc, char **argv)
{
	static void (*const operations[])(void) = {
		sums_of_int,    products_of_double, maxima_of_short,
		minima_of_long, bits_of_unsigned,   parities_of_char,
		ands_of_bytes,  logic_of_int,       sums_of_long_double,
	};

	program_begin(&argc, &argv);
	for (kind = kinds; kind->name != NULL; kind++) {
		for (size_t i = 0; i < sizeof(operations) / sizeof(*operations);
		     i++)
			operations[i]();
		pairs_of_value_and_index();
		fetches_are_atomic();
		swaps_are_atomic();
		accumulates_keep_their_order();
		long_ones_give_back_what_was_there();
		requests_complete();
		no_elements_fit_to_any_operation();
	}
	free(addresses);
	return program_end("combine");
}
