/*
 * Many threads of a process use one window at once.
 */
#include "../join.h"
#include <stdatomic.h>

#include "windows.h"

static const struct kind *kind;
static MPI_Win win;
static int others; /* the process that all threads reach into */

enum { THREADS = 8, TURNS = 10 / FEWER, SLOT = 500, LOOKS = 40 / FEWER };

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
		program_join(threads[i]);
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
		program_join(threads[i]);
	free(threads);
}

/*
 * Messages, to memory that this process sees, too: what a thread has flushed is
 * there, though the other half does nothing but flush.
 */
static struct {
	int *there;       /* the target's memory, here */
	_Atomic int busy; /* threads that put */
} seen;

static void *flush_and_look(void *arg)
{
	int me = (int)(size_t)arg, values[SLOT];
	MPI_Datatype type;

	if (me >= THREADS / 2) {
		while (atomic_load(&seen.busy) > 0)
			MPI_Win_flush(others, win);
		return NULL;
	}
	MPI_Type_vector(SLOT / 2, 1, 2, MPI_INT, &type);
	MPI_Type_commit(&type);
	for (int turn = 1; turn <= LOOKS; turn++) {
		for (int i = 0; i < SLOT; i++)
			values[i] = turn;
		MPI_Accumulate(values, SLOT / 2, MPI_INT, others, me * SLOT, 1,
			       type, MPI_MAX, win);
		MPI_Win_flush(others, win);
		EXPECT_INT(seen.there[me * SLOT + SLOT - 2], turn);
	}
	MPI_Type_free(&type);
	atomic_fetch_sub(&seen.busy, 1);
	return NULL;
}

static void flushes_cover_all_that_was_issued(void)
{
	MPI_Aint bytes = THREADS * SLOT * (int)sizeof(int);
	MPI_Win shared;
	int unit, *mine;

	MPI_Win_allocate_shared(bytes, sizeof(int), MPI_INFO_NULL,
				MPI_COMM_WORLD, &mine, &shared);
	MPI_Win_shared_query(shared, others, &bytes, &unit, &seen.there);
	memset(mine, 0, (size_t)bytes);
	MPI_Win_create(mine, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
		       &win);
	seen.busy = THREADS / 2;
	MPI_Win_lock_all(0, win);
	run_all(flush_and_look);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	MPI_Win_free(&shared);
}

/* Of those that do the same, one does; the others are told. */
static _Atomic int done;

static void one_of_them(int code)
{
	int class = class_of(code);

	if (class == MPI_SUCCESS)
		atomic_fetch_add(&done, 1);
	else
		EXPECT_INT(class, MPI_ERR_RMA_SYNC);
}

static void *unlock_one(void *arg)
{
	one_of_them(MPI_Win_unlock(others, win));
	return arg;
}

static void *begin_all(void *arg)
{
	one_of_them(MPI_Win_lock_all(0, win));
	return arg;
}

static void *unlock_all(void *arg)
{
	one_of_them(MPI_Win_unlock_all(win));
	return arg;
}

static void run_one(void *(*fn)(void *))
{
	done = 0;
	run_all(fn);
	EXPECT_INT(done, 1);
}

static void locks_are_given_back_once(void)
{
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	for (int i = 0; i < 3; i++) {
		MPI_Win_lock(MPI_LOCK_SHARED, others, 0, win);
		run_one(unlock_one);
		run_one(begin_all);
		run_one(unlock_all);
	}
	/* Nobody has it now. */
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, others, 0, win);
	MPI_Win_unlock(others, win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_ARE_FATAL);
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
		locks_are_given_back_once();
		end_window(kind, &win, memory);
	}
	flushes_cover_all_that_was_issued();
	free(addresses);
	return program_end("threads");
}
