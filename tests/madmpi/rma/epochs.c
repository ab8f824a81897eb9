/*
 * Post, start, complete and wait; every kind of window.
 */
#include <marcel/marcel.h>

#include "windows.h"

static const struct kind *kind;

enum { TURNS = 10 / FEWER };

static MPI_Group group_of(int n, const int ranks[])
{
	MPI_Group all, some;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, n, ranks, &some);
	MPI_Group_free(&all);
	return some;
}

/* Each has one target and one origin, and no epoch runs into the next one. */
static void neighbours_take_turns(void)
{
	int *memory, right = (rank + 1) % size, left = (rank + size - 1) % size;
	MPI_Group to = group_of(1, &right), from = group_of(1, &left);
	MPI_Win win = window(kind, sizeof(int), sizeof(int), &memory);
	int value, flag;

	for (int i = 0; i < TURNS; i++) {
		memory[0] = -1;
		value = TURNS * rank + i;
		MPI_Win_post(from, 0, win);
		MPI_Win_start(to, 0, win);
		MPI_Put(&value, 1, MPI_INT, right,
			place(kind, right, 0, sizeof(int)), 1, MPI_INT, win);
		MPI_Win_complete(win);
		if (i % 2 == 0)
			MPI_Win_wait(win);
		else
			do
				MPI_Win_test(win, &flag);
			while (!flag);
		EXPECT_INT(memory[0], TURNS * left + i);
	}
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	end_window(kind, &win, memory);
}

/* All are origins of the first one; what was got is there after complete. */
static void one_target_has_many_origins(void)
{
	int *memory, first = 0, got = -1, value = rank + 1;
	int *others = malloc((size_t)size * sizeof(int));
	MPI_Group to = group_of(1, &first), from;
	MPI_Win win = window(kind, (size + 1) * (int)sizeof(int), sizeof(int),
			     &memory);

	for (int i = 0; i < size; i++)
		others[i] = i;
	from = group_of(size, others);
	for (int i = 0; i < TURNS; i++) {
		if (rank == 0) {
			memset(memory, 0, (size_t)size * sizeof(int));
			memory[size] = 1000 + i;
			MPI_Win_post(from, 0, win);
		}
		MPI_Win_start(to, 0, win);
		MPI_Put(&value, 1, MPI_INT, 0,
			place(kind, 0, rank, sizeof(int)), 1, MPI_INT, win);
		MPI_Get(&got, 1, MPI_INT, 0, place(kind, 0, size, sizeof(int)),
			1, MPI_INT, win);
		MPI_Win_complete(win);
		EXPECT_INT(got, 1000 + i);
		if (rank == 0) {
			MPI_Win_wait(win);
			for (int k = 0; k < size; k++)
				EXPECT_INT(memory[k], k + 1);
		}
	}
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	free(others);
	end_window(kind, &win, memory);
}

/*
 * A barrier follows the complete. Where the network keeps the order of
 * messages, the first test finds the epoch over.
 */
static void test_is_true_once_wait_would_return(void)
{
	int *memory, right = (rank + 1) % size, left = (rank + size - 1) % size;
	MPI_Group to = group_of(1, &right), from = group_of(1, &left);
	MPI_Win win = window(kind, sizeof(int), sizeof(int), &memory);
	const char *network = getenv("NMAD_DRIVER");
	int flag, in_order = network != NULL && strcmp(network, "shm") == 0;

	for (int i = 0; i < TURNS; i++) {
		MPI_Win_post(from, 0, win);
		MPI_Win_start(to, 0, win);
		MPI_Win_complete(win);
		MPI_Barrier(MPI_COMM_WORLD);
		flag = 0;
		MPI_Win_test(win, &flag);
		EXPECT(flag || !in_order);
		while (!flag)
			MPI_Win_test(win, &flag);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	end_window(kind, &win, memory);
}

/* Nobody: such epochs begin and end by themselves. */
static void groups_may_be_empty(void)
{
	int *memory, flag;
	MPI_Win win = window(kind, sizeof(int), sizeof(int), &memory);

	for (int i = 0; i < 2; i++) {
		MPI_Win_post(MPI_GROUP_EMPTY, 0, win);
		MPI_Win_start(MPI_GROUP_EMPTY, 0, win);
		MPI_Win_complete(win);
		if (i == 0) {
			MPI_Win_wait(win);
		} else {
			MPI_Win_test(win, &flag);
			EXPECT(flag);
		}
	}
	end_window(kind, &win, memory);
}

/* Who has posted, and said so, is not waited for. */
static void unchecked_starts_do_not_wait(void)
{
	int *memory, right = (rank + 1) % size, left = (rank + size - 1) % size;
	MPI_Group to = group_of(1, &right), from = group_of(1, &left);
	MPI_Win win = window(kind, sizeof(int), sizeof(int), &memory);

	MPI_Win_post(from, MPI_MODE_NOCHECK, win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_start(to, MPI_MODE_NOCHECK, win);
	MPI_Put(&rank, 1, MPI_INT, right, place(kind, right, 0, sizeof(int)), 1,
		MPI_INT, win);
	MPI_Win_complete(win);
	MPI_Win_wait(win);
	EXPECT_INT(memory[0], left);
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	end_window(kind, &win, memory);
}

static void *wait_for_all(void *win)
{
	MPI_Win_wait(*(MPI_Win *)win);
	return win;
}

/* No call of MPI is a cancellation point, and what waits holds up nobody. */
static void waits_are_not_cancelled(void)
{
	int *memory, right = (rank + 1) % size, left = (rank + size - 1) % size;
	MPI_Group to = group_of(1, &right), from = group_of(1, &left);
	MPI_Win win = window(kind, sizeof(int), sizeof(int), &memory);
	marcel_t waiter;
	void *end = NULL;

	MPI_Win_post(from, 0, win);
	marcel_create(&waiter, NULL, wait_for_all, &win);
	marcel_cancel(waiter);
	marcel_yield();
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_start(to, 0, win);
	MPI_Win_complete(win);
	marcel_join(waiter, &end);
	EXPECT(end == &win);
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	end_window(kind, &win, memory);
}

/* The kinds of epochs follow each other on one window. */
static void epochs_of_all_kinds_follow_each_other(void)
{
	int *memory, right = (rank + 1) % size, left = (rank + size - 1) % size;
	MPI_Group to = group_of(1, &right), from = group_of(1, &left);
	MPI_Win win = window(kind, sizeof(int), sizeof(int), &memory);
	int one = 1;
	MPI_Aint at = place(kind, right, 0, sizeof(int));

	memory[0] = 0;
	MPI_Win_fence(0, win);
	MPI_Accumulate(&one, 1, MPI_INT, right, at, 1, MPI_INT, MPI_SUM, win);
	MPI_Win_fence(0, win);
	MPI_Win_post(from, 0, win);
	MPI_Win_start(to, 0, win);
	MPI_Accumulate(&one, 1, MPI_INT, right, at, 1, MPI_INT, MPI_SUM, win);
	MPI_Win_complete(win);
	MPI_Win_wait(win);
	EXPECT_INT(memory[0], 2);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
	MPI_Accumulate(&one, 1, MPI_INT, right, at, 1, MPI_INT, MPI_SUM, win);
	MPI_Win_unlock(right, win);
	MPI_Win_fence(0, win);
	EXPECT_INT(memory[0], 3);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	MPI_Accumulate(&one, 1, MPI_INT, right, at, 1, MPI_INT, MPI_SUM, win);
	MPI_Win_unlock_all(win);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	EXPECT_INT(memory[0], 4);
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	end_window(kind, &win, memory);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	for (kind = kinds; kind->name != NULL; kind++) {
		neighbours_take_turns();
		one_target_has_many_origins();
		test_is_true_once_wait_would_return();
		groups_may_be_empty();
		unchecked_starts_do_not_wait();
		waits_are_not_cancelled();
		epochs_of_all_kinds_follow_each_other();
	}
	free(addresses);
	return program_end("epochs");
}
