/*
 * A target that computes: what others do to its window is complete without any
 * call of its own. They tell it so through memory that both see, where it looks
 * in a loop that never ends otherwise.
 */
#include "windows.h"

#include <stdatomic.h>

static const struct kind *kind;

/* The last one computes until all others are through. */
static void compute(_Atomic int *through)
{
	while (atomic_load(through) < size - 1)
		;
}

static void others(MPI_Win win, MPI_Aint at)
{
	int target = size - 1, value = rank, got = -1, one = 1, next = 7;

	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
	MPI_Put(&value, 1, MPI_INT, target, at, 1, MPI_INT, win);
	MPI_Win_flush(target, win);
	MPI_Get(&got, 1, MPI_INT, target, at, 1, MPI_INT, win);
	MPI_Win_flush(target, win);
	EXPECT_INT(got, rank);
	MPI_Accumulate(&one, 1, MPI_INT, target, at, 1, MPI_INT, MPI_SUM, win);
	MPI_Fetch_and_op(&one, &got, MPI_INT, target, at, MPI_SUM, win);
	MPI_Win_flush_local(target, win);
	EXPECT_INT(got, rank + 1);
	value = rank + 2;
	MPI_Compare_and_swap(&next, &value, &got, MPI_INT, target, at, win);
	MPI_Win_unlock(target, win);
	EXPECT_INT(got, rank + 2);
}

/* More than fits into a request, either way. */
static void others_with_much(MPI_Win win, MPI_Aint at, int n)
{
	int target = size - 1, *a = malloc((size_t)n * sizeof(int));

	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
	for (int i = 0; i < n; i++)
		a[i] = rank + i;
	MPI_Put(a, n, MPI_INT, target, at, n, MPI_INT, win);
	MPI_Win_flush(target, win);
	memset(a, 0, (size_t)n * sizeof(int));
	MPI_Get(a, n, MPI_INT, target, at, n, MPI_INT, win);
	MPI_Win_unlock(target, win);
	for (int i = 0; i < n; i++)
		EXPECT_INT(a[i], rank + i);
	free(a);
}

int main(int argc, char **argv)
{
	enum { N = 300 * 1000 };
	_Atomic int *through;
	MPI_Aint bytes;
	int *memory, unit;
	MPI_Win flags, win;
	void *base;

	program_begin(&argc, &argv);
	for (kind = kinds; kind->name != NULL; kind++) {
		MPI_Win_allocate_shared(rank == 0 ? sizeof(int) : 0, 1,
					MPI_INFO_NULL, MPI_COMM_WORLD, &base,
					&flags);
		MPI_Win_shared_query(flags, 0, &bytes, &unit, &base);
		through = base;
		if (rank == 0)
			atomic_store(through, 0);
		win = window(kind, N * sizeof(int), sizeof(int), &memory);
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == size - 1) {
			compute(through);
		} else {
			MPI_Aint at = place(kind, size - 1, 0, sizeof(int));

			others(win, at);
			others_with_much(win, at, N);
			atomic_fetch_add(through, 1);
		}
		MPI_Barrier(MPI_COMM_WORLD);
		end_window(kind, &win, memory);
		MPI_Win_free(&flags);
	}
	free(addresses);
	return program_end("progress");
}
