/*
 * Fences, with puts, gets and accumulates between them; every kind of window,
 * by messages and in shared memory.
 */
#include "windows.h"

enum { N = 1000 };

/* Each puts its rank into all others, a place for each. */
static void all_see_what_all_have_put(const struct kind *kind)
{
	int *memory, mine = rank + 1;
	MPI_Win win =
		window(kind, size * (int)sizeof(int), sizeof(int), &memory);

	for (int i = 0; i < size; i++)
		memory[i] = 0;
	MPI_Win_fence(0, win);
	for (int i = 0; i < size; i++)
		MPI_Put(&mine, 1, MPI_INT, i, place(kind, i, rank, sizeof(int)),
			1, MPI_INT, win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < size; i++)
		EXPECT_INT(memory[i], i + 1);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	end_window(kind, &win, memory);
}

/* What was got is there after the fence, and not changed by what follows. */
static void gets_are_complete_at_the_fence(const struct kind *kind)
{
	int *memory, got[N], right = (rank + 1) % size;
	MPI_Win win = window(kind, N * (int)sizeof(int), sizeof(int), &memory);

	for (int i = 0; i < N; i++)
		memory[i] = 1000 * rank + i;
	MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
	MPI_Get(got, N, MPI_INT, right, place(kind, right, 0, sizeof(int)), N,
		MPI_INT, win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < N; i++) {
		EXPECT_INT(got[i], 1000 * right + i);
		memory[i] = -1;
	}
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	end_window(kind, &win, memory);
}

/* Of all processes, long enough to travel in parts. */
static void accumulates_of_all_are_added(const struct kind *kind)
{
	enum { MANY = 200 * 1000 };
	double *memory, *mine = malloc(MANY * sizeof(double));
	MPI_Win win = window(kind, MANY * (int)sizeof(double), sizeof(double),
			     &memory);

	for (int i = 0; i < MANY; i++) {
		memory[i] = i;
		mine[i] = rank + 1;
	}
	MPI_Win_fence(0, win);
	for (int i = 0; i < size; i++)
		MPI_Accumulate(mine, MANY, MPI_DOUBLE, i,
			       place(kind, i, 0, sizeof(double)), MANY,
			       MPI_DOUBLE, MPI_SUM, win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < MANY; i++)
		EXPECT(memory[i] == i + size * (size + 1) / 2);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	free(mine);
	end_window(kind, &win, memory);
}

/* A large put goes straight into the window. */
static void large_puts_arrive(const struct kind *kind)
{
	enum { LARGE = 3 << 20 };
	char *memory, *mine = malloc(LARGE);
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	MPI_Win win = window(kind, LARGE, 1, &memory);

	memset(mine, 'a' + rank, LARGE);
	memset(memory, 0, LARGE);
	MPI_Win_fence(0, win);
	MPI_Put(mine, LARGE, MPI_CHAR, right, place(kind, right, 0, 1), LARGE,
		MPI_CHAR, win);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	for (int i = 0; i < LARGE; i++)
		EXPECT_INT(memory[i], 'a' + left);
	free(mine);
	end_window(kind, &win, memory);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	for (const struct kind *kind = kinds; kind->name != NULL; kind++) {
		all_see_what_all_have_put(kind);
		gets_are_complete_at_the_fence(kind);
		accumulates_of_all_are_added(kind);
		large_puts_arrive(kind);
	}
	free(addresses);
	return program_end("fence");
}
