/*
 * Locks, flushes and what they make of operations; every kind of window.
 */
#include "windows.h"

static const struct kind *kind;

enum { TURNS = 10 / FEWER };

/* Between lock and unlock nobody else is there: read, then write. */
static void exclusive_locks_exclude(void)
{
	int *memory, value;
	MPI_Win win = window(kind, 2 * sizeof(int), sizeof(int), &memory);

	memory[0] = memory[1] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < TURNS; i++) {
		int target = i % size;

		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
		MPI_Get(&value, 1, MPI_INT, target,
			place(kind, target, 1, sizeof(int)), 1, MPI_INT, win);
		MPI_Win_flush(target, win);
		value++;
		MPI_Put(&value, 1, MPI_INT, target,
			place(kind, target, 1, sizeof(int)), 1, MPI_INT, win);
		MPI_Win_unlock(target, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
	value = 0;
	for (int i = 0; i < TURNS; i++)
		value += i % size == rank;
	EXPECT_INT(memory[1], value * size);
	MPI_Win_unlock(rank, win);
	end_window(kind, &win, memory);
}

/* All hold it at the same time, or the barrier would never end. */
static void shared_locks_are_held_together(void)
{
	int *memory;
	MPI_Win win = window(kind, sizeof(int), sizeof(int), &memory);

	for (int target = 0; target < size; target++) {
		MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Win_unlock(target, win);
	}
	MPI_Win_lock_all(0, win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_unlock_all(win);
	end_window(kind, &win, memory);
}

/* Who waits alone is not passed by those that could share: all come to an end,
 * however many readers there are at any time. */
static void writers_get_their_turn(void)
{
	long *memory, one = 1, seen = 0;
	int is_writer = rank == size - 1;
	MPI_Win win = window(kind, sizeof(long), sizeof(long), &memory);

	memory[0] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	if (is_writer) {
		for (int i = 0; i < TURNS; i++) {
			MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
			MPI_Accumulate(&one, 1, MPI_LONG, 0,
				       place(kind, 0, 0, sizeof(long)), 1,
				       MPI_LONG, MPI_SUM, win);
			MPI_Win_unlock(0, win);
		}
	} else {
		/* They never stop before the writer has ended. */
		while (seen < TURNS) {
			MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
			MPI_Get(&seen, 1, MPI_LONG, 0,
				place(kind, 0, 0, sizeof(long)), 1, MPI_LONG,
				win);
			MPI_Win_unlock(0, win);
		}
	}
	MPI_Barrier(MPI_COMM_WORLD);
	end_window(kind, &win, memory);
}

/* Flushed means there: the other one is told by a message, and looks. */
static void flushed_puts_are_there(void)
{
	int *memory, right = (rank + 1) % size, left = (rank + size - 1) % size;
	int value, token = 0;
	MPI_Win win =
		window(kind, TURNS * (int)sizeof(int), sizeof(int), &memory);

	memset(memory, 0, TURNS * sizeof(int));
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < TURNS; i++) {
		value = 100 * rank + i;
		MPI_Put(&value, 1, MPI_INT, right,
			place(kind, right, i, sizeof(int)), 1, MPI_INT, win);
		if (i % 2 == 0)
			MPI_Win_flush(right, win);
		else
			MPI_Win_flush_all(win);
		MPI_Sendrecv_replace(&token, 1, MPI_INT, right, 0, left, 0,
				     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Win_sync(win);
		EXPECT_INT(memory[i], 100 * left + i);
	}
	MPI_Win_unlock_all(win);
	end_window(kind, &win, memory);
}

/* Flushed locally means that the origin's memory may be used again. */
static void locally_flushed_data_may_change(void)
{
	enum { LARGE = 30000 };
	int *memory, right = (rank + 1) % size, left = (rank + size - 1) % size;
	int *value = malloc(LARGE * sizeof(int));
	MPI_Win win =
		window(kind, LARGE * (int)sizeof(int), sizeof(int), &memory);

	memset(memory, 0, LARGE * sizeof(int));
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
	for (int i = 0; i < LARGE; i++)
		value[i] = rank * LARGE + i;
	MPI_Put(value, LARGE, MPI_INT, right,
		place(kind, right, 0, sizeof(int)), LARGE, MPI_INT, win);
	MPI_Win_flush_local(right, win);
	memset(value, 0xff, LARGE * sizeof(int));
	MPI_Get(value, LARGE, MPI_INT, right,
		place(kind, right, 0, sizeof(int)), LARGE, MPI_INT, win);
	MPI_Win_flush_local_all(win);
	for (int i = 0; i < LARGE; i++)
		EXPECT_INT(value[i], rank * LARGE + i);
	MPI_Win_unlock(right, win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
	for (int i = 0; i < LARGE; i++)
		EXPECT_INT(memory[i], left * LARGE + i);
	MPI_Win_unlock(rank, win);
	free(value);
	end_window(kind, &win, memory);
}

/* Who knows that nobody else is there need not ask. */
static void unchecked_locks_are_not_asked_for(void)
{
	int *memory, value = rank, right = (rank + 1) % size;
	MPI_Win win = window(kind, sizeof(int), sizeof(int), &memory);

	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, MPI_MODE_NOCHECK, win);
	MPI_Put(&value, 1, MPI_INT, right, place(kind, right, 0, sizeof(int)),
		1, MPI_INT, win);
	MPI_Win_unlock(right, win);
	MPI_Barrier(MPI_COMM_WORLD);
	EXPECT_INT(memory[0], (rank + size - 1) % size);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
	MPI_Get(&value, 1, MPI_INT, right, place(kind, right, 0, sizeof(int)),
		1, MPI_INT, win);
	MPI_Win_unlock_all(win);
	EXPECT_INT(value, rank);
	end_window(kind, &win, memory);
}

/* One process has locks of several at once, and gives them back in any order.
 */
static void several_targets_are_locked_at_once(void)
{
	int *memory, one = 1;
	MPI_Win win = window(kind, sizeof(int), sizeof(int), &memory);

	memory[0] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		MPI_Win_lock(MPI_LOCK_SHARED, i, 0, win);
	for (int i = size - 1; i >= 0; i--) {
		MPI_Accumulate(&one, 1, MPI_INT, i,
			       place(kind, i, 0, sizeof(int)), 1, MPI_INT,
			       MPI_SUM, win);
		MPI_Win_unlock(i, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	EXPECT_INT(memory[0], size);
	end_window(kind, &win, memory);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	for (kind = kinds; kind->name != NULL; kind++) {
		exclusive_locks_exclude();
		shared_locks_are_held_together();
		writers_get_their_turn();
		flushed_puts_are_there();
		locally_flushed_data_may_change();
		unchecked_locks_are_not_asked_for();
		several_targets_are_locked_at_once();
	}
	free(addresses);
	return program_end("locks");
}
