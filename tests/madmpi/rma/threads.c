/*
 * Many threads of a process use one window at once.
 */
#include <pthread.h>

#include "windows.h"

static const struct kind *kind;
static MPI_Win win;
static int others; /* the process that all threads reach into */

enum { THREADS = 8, TURNS = 10 / FEWER, SLOT = 500 };

/* Each has a place of its own there, which only it uses. */
static void *put_and_get(void *arg)
{
	int me = (int)(size_t)arg, values[SLOT], got[SLOT];
	MPI_Aint at = place(kind, others, 1 + me * SLOT, sizeof(int));

	for (int turn = 0; turn < TURNS; turn++) {
		for (int i = 0; i < SLOT; i++)
			values[i] = turn + me * i;
		MPI_Put(values, SLOT, MPI_INT, others, at, SLOT, MPI_INT, win);
		MPI_Win_flush(others, win);
		MPI_Get(got, SLOT, MPI_INT, others, at, SLOT, MPI_INT, win);
		MPI_Win_flush_local(others, win);
		EXPECT(memcmp(values, got, sizeof(got)) == 0);
	}
	return NULL;
}

/* All count in one place. */
static void *count(void *arg)
{
	MPI_Aint at = place(kind, others, 0, sizeof(int));
	MPI_Request request;
	int one = 1, last = -1, got;

	for (int turn = 0; turn < TURNS; turn++) {
		if (turn % 2 == 0) {
			MPI_Fetch_and_op(&one, &got, MPI_INT, others, at,
					 MPI_SUM, win);
			MPI_Win_flush_all(win);
		} else {
			MPI_Rget_accumulate(&one, 1, MPI_INT, &got, 1, MPI_INT,
					    others, at, 1, MPI_INT, MPI_SUM,
					    win, &request);
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		}
		EXPECT(got > last);
		last = got;
	}
	return arg;
}

static void run_all(void *(*fn)(void *))
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, fn, (void *)(size_t)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* A lock of each target, taken by a thread of its own. */
static void *lock_one(void *arg)
{
	int target = (int)(size_t)arg, one = 1;

	for (int turn = 0; turn < TURNS; turn++) {
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
		MPI_Accumulate(&one, 1, MPI_INT, target,
			       place(kind, target, 0, sizeof(int)), 1, MPI_INT,
			       MPI_SUM, win);
		MPI_Win_unlock(target, win);
	}
	return NULL;
}

static void lock_all_targets(void)
{
	pthread_t *threads = calloc((size_t)size, sizeof(*threads));

	for (int i = 0; i < size; i++)
		pthread_create(&threads[i], NULL, lock_one, (void *)(size_t)i);
	for (int i = 0; i < size; i++)
		pthread_join(threads[i], NULL);
	free(threads);
}

int main(int argc, char **argv)
{
	int *memory;

	program_begin(&argc, &argv);
	others = (rank + 1) % size;
	for (kind = kinds; kind->name != NULL; kind++) {
		win = window(kind, (1 + THREADS * SLOT) * (int)sizeof(int),
			     sizeof(int), &memory);
		memory[0] = 0;
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Win_lock_all(0, win);
		run_all(put_and_get);
		run_all(count);
		MPI_Win_unlock_all(win);
		MPI_Barrier(MPI_COMM_WORLD);
		EXPECT_INT(memory[0], THREADS * TURNS);
		MPI_Barrier(MPI_COMM_WORLD);
		lock_all_targets();
		MPI_Barrier(MPI_COMM_WORLD);
		EXPECT_INT(memory[0], THREADS * TURNS + TURNS * size);
		end_window(kind, &win, memory);
	}
	free(addresses);
	return program_end("threads");
}
