/*
 * Data of any datatype, on both sides: as if it were sent and received; every
 * kind of window.
 */
#include "windows.h"

static const struct kind *kind;

enum { ROOM = 1 << 16 };

/* Types of so many ints each, in places of their own. */
static MPI_Datatype of_ints(int which, int n)
{
	MPI_Datatype type, inner;
	int lengths[3] = { n / 4, n - n / 4 - n / 8, n / 8 };
	int places[3] = { 3 * n / 2, 0, 3 * n };
	int gsizes[2] = { 2 * n, 3 }, sizes[2] = { n, 1 };
	int starts[2] = { n / 2, 1 };
	MPI_Aint disps[3] = { 4 * n, 40 * n / 4 * 2, 8 };
	MPI_Datatype types[3];

	switch (which) {
	case 0:
		MPI_Type_contiguous(n, MPI_INT, &type);
		break;
	case 1:
		MPI_Type_vector(n, 1, 3, MPI_INT, &type);
		break;
	case 2:
		MPI_Type_indexed(3, lengths, places, MPI_INT, &type);
		break;
	case 3:
		MPI_Type_create_subarray(2, gsizes, sizes, starts, MPI_ORDER_C,
					 MPI_INT, &type);
		break;
	case 4: /* types within types */
		MPI_Type_vector(2, 1, 2, MPI_INT, &inner);
		for (int i = 0; i < 3; i++) {
			types[i] = i == 1 ? inner : MPI_INT;
			lengths[i] = i == 1 ? n / 4 : i == 0 ? n / 4 : n / 4;
		}
		disps[0] = 0;
		disps[1] = 4 * n;
		disps[2] = 16 * n;
		lengths[0] = n - 2 * lengths[1] - lengths[2];
		MPI_Type_create_struct(3, lengths, disps, types, &type);
		MPI_Type_free(&inner);
		break;
	default: /* from the end to the beginning */
		MPI_Type_create_hvector(n, 1, -(MPI_Aint)sizeof(int), MPI_INT,
					&inner);
		disps[0] = (n - 1) * (MPI_Aint)sizeof(int);
		lengths[0] = 1;
		MPI_Type_create_hindexed(1, lengths, disps, inner, &type);
		MPI_Type_free(&inner);
		break;
	}
	MPI_Type_commit(&type);
	return type;
}

enum { WHICH = 6 };

static int *numbers; /* from 0 on, ROOM for each rank */

static void fill(int *a, int of)
{
	memcpy(a, numbers + (size_t)of * ROOM, ROOM * sizeof(int));
}

/* What a message from a to b leaves there. */
static void send(const int *a, int n, MPI_Datatype from, int *b, int m,
		 MPI_Datatype to)
{
	MPI_Sendrecv(a, n, from, 0, 0, b, m, to, 0, 0, MPI_COMM_SELF,
		     MPI_STATUS_IGNORE);
}

static int *theirs, *mine, *expected, *memory;
static MPI_Win win;

static void puts_are_as_messages(int count, MPI_Datatype from, MPI_Datatype to)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size;

	fill(mine, rank);
	fill(theirs, left);
	memset(memory, 0xff, ROOM * sizeof(int));
	memset(expected, 0xff, ROOM * sizeof(int));
	send(theirs, count, from, expected, count, to);
	MPI_Win_fence(0, win);
	MPI_Put(mine, count, from, right, place(kind, right, 0, sizeof(int)),
		count, to, win);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	EXPECT(memcmp(memory, expected, ROOM * sizeof(int)) == 0);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void gets_are_as_messages(int count, MPI_Datatype from, MPI_Datatype to)
{
	int right = (rank + 1) % size;

	fill(memory, rank);
	fill(theirs, right);
	memset(mine, 0xff, ROOM * sizeof(int));
	memset(expected, 0xff, ROOM * sizeof(int));
	send(theirs, count, from, expected, count, to);
	MPI_Win_fence(0, win);
	MPI_Get(mine, count, to, right, place(kind, right, 0, sizeof(int)),
		count, from, win);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	EXPECT(memcmp(mine, expected, ROOM * sizeof(int)) == 0);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* The types may be freed as soon as the call has returned. */
static void all_pairs_of_types(int n, int count)
{
	for (int i = 0; i < WHICH; i++)
		for (int k = i == 0 ? 0 : (i + size) % 2; k < WHICH;
		     k += i == 0 ? 1 : 2) {
			MPI_Datatype from = of_ints(i, n), to = of_ints(k, n);

			puts_are_as_messages(count, from, to);
			gets_are_as_messages(count, from, to);
			MPI_Type_free(&from);
			MPI_Type_free(&to);
		}
}

/* Four ints of each of so many types, no two of which are alike. */
static void types_may_have_many_parts(void)
{
	enum { PARTS = 100 };
	int lengths[PARTS], places[2] = { 0 };
	MPI_Datatype types[PARTS], type, flat;
	MPI_Aint disps[PARTS];

	for (int i = 0; i < PARTS; i++) {
		places[1] = i + 2;
		MPI_Type_create_indexed_block(2, 1, places, MPI_INT, &types[i]);
		lengths[i] = 2;
		disps[i] = 4 * PARTS * i * (MPI_Aint)sizeof(int);
	}
	MPI_Type_create_struct(PARTS, lengths, disps, types, &type);
	MPI_Type_commit(&type);
	MPI_Type_contiguous(4 * PARTS, MPI_INT, &flat);
	MPI_Type_commit(&flat);
	puts_are_as_messages(1, flat, type);
	gets_are_as_messages(1, type, flat);
	for (int i = 0; i < PARTS; i++)
		MPI_Type_free(&types[i]);
	MPI_Type_free(&flat);
	MPI_Type_free(&type);
}

static void types_may_be_freed_at_once(void)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	MPI_Datatype type;

	fill(mine, rank);
	memset(memory, 0xff, ROOM * sizeof(int));
	MPI_Win_fence(0, win);
	for (int i = 0; i < 8; i++) {
		type = of_ints(1, 1000);
		MPI_Put(mine + i, 1, type, right,
			place(kind, right, 4000 * i, sizeof(int)), 1, type,
			win);
		MPI_Type_free(&type);
	}
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	for (int i = 0; i < 8; i++)
		for (int k = 0; k < 1000; k++)
			EXPECT_INT(memory[4000 * i + 3 * k],
				   left * ROOM + i + 3 * k);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Nothing is moved, and nothing needs to be there. */
static void nothing_may_be_moved(void)
{
	int *none, value = 1;
	MPI_Win own = window(kind, 0, 1, &none);

	MPI_Win_fence(0, own);
	MPI_Put(NULL, 0, MPI_INT, rank, 0, 0, MPI_INT, own);
	MPI_Get(NULL, 0, MPI_INT, (rank + 1) % size, 0, 0, MPI_INT, own);
	MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, own);
	MPI_Get(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, own);
	MPI_Accumulate(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT,
		       MPI_SUM, own);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, own);
	EXPECT_INT(value, 1);
	end_window(kind, &own, none);
}

/* Each target has a unit of its own. */
static void displacements_count_in_the_targets_unit(void)
{
	int unit = 4 * (rank + 1), right = (rank + 1) % size;
	int their_unit = 4 * (right + 1);
	int left = (rank + size - 1) % size;
	char *base;
	MPI_Win own = window(kind, 400, unit, &base);
	MPI_Aint at = place(kind, right, 3, their_unit);

	memset(base, 0, 400);
	MPI_Win_fence(0, own);
	MPI_Put(&rank, 1, MPI_INT, right, at, 1, MPI_INT, own);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, own);
	EXPECT_INT(*(int *)(base + 3 * unit), left);
	end_window(kind, &own, base);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	numbers = malloc((size_t)size * ROOM * sizeof(int));
	for (int i = 0; i < size * ROOM; i++)
		numbers[i] = i;
	theirs = malloc(ROOM * sizeof(int));
	mine = malloc(ROOM * sizeof(int));
	expected = malloc(ROOM * sizeof(int));
	for (kind = kinds; kind->name != NULL; kind++) {
		win = window(kind, ROOM * sizeof(int), sizeof(int), &memory);
		/* In a request, and too long for it. */
		all_pairs_of_types(16, 2);
		all_pairs_of_types(2000, 3);
		types_may_be_freed_at_once();
		types_may_have_many_parts();
		end_window(kind, &win, memory);
		nothing_may_be_moved();
		displacements_count_in_the_targets_unit();
	}
	free(numbers);
	free(theirs);
	free(mine);
	free(expected);
	free(addresses);
	return program_end("data");
}
