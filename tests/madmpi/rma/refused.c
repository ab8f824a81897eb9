/*
 * What only the target can refuse: in a dynamic window the next flush, unlock
 * or fence tells of it, no other call does, and all goes on.
 */
#include "windows.h"

enum { SMALL = 4, LARGE = 200000 };

static const struct kind *kind;
static MPI_Win win;
static int *memory, *many, right;

static void begin(void)
{
	win = window(kind, SMALL * sizeof(int), sizeof(int), &memory);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	memset(memory, 0, SMALL * sizeof(int));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Of itself a process knows at once. */
static int at_once(void)
{
	return size > 1 ? MPI_SUCCESS : MPI_ERR_RMA_RANGE;
}

static int later(void)
{
	return size > 1 ? MPI_ERR_RMA_RANGE : MPI_SUCCESS;
}

static int put(int n)
{
	return MPI_Put(many, n, MPI_INT, right,
		       place(kind, right, 0, sizeof(int)), n, MPI_INT, win);
}

/* An epoch in which a put is refused, which no call in it can tell of. */
static void put_too_much(int n)
{
	int left = (rank + size - 1) % size;
	MPI_Group all, to, from;

	MPI_Win_get_group(win, &all);
	MPI_Group_incl(all, 1, &right, &to);
	MPI_Group_incl(all, 1, &left, &from);
	FAILS(MPI_Win_post(from, 0, win), MPI_SUCCESS);
	FAILS(MPI_Win_start(to, 0, win), MPI_SUCCESS);
	FAILS(put(n), n > SMALL ? at_once() : MPI_SUCCESS);
	FAILS(MPI_Win_complete(win), MPI_SUCCESS);
	FAILS(MPI_Win_wait(win), MPI_SUCCESS);
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	MPI_Group_free(&all);
}

/* Who was told that it has no lock would not give it back. */
static void locks_are_had_whatever_was_refused(void)
{
	begin();
	put_too_much(SMALL + 1);
	for (int i = 0; i < 2; i++) {
		FAILS(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win),
		      MPI_SUCCESS);
		FAILS(put(SMALL), MPI_SUCCESS);
		FAILS(MPI_Win_unlock(right, win), i ? MPI_SUCCESS : later());
	}
	put_too_much(SMALL + 1);
	FAILS(MPI_Win_lock_all(0, win), MPI_SUCCESS);
	FAILS(MPI_Win_unlock_all(win), later());
	end_window(kind, &win, memory);
}

/* One process is told so; the others do not wait for it for ever. */
static void windows_end_whatever_was_refused(void)
{
	begin();
	put_too_much(rank == 0 ? SMALL + 1 : SMALL);
	FAILS(MPI_Win_free(&win), rank == 0 ? later() : MPI_SUCCESS);
	EXPECT(win == MPI_WIN_NULL);
	free(memory);
}

/* What travels by itself has to be taken off the network. */
static void much_is_refused_like_little(void)
{
	MPI_Aint at;
	int fails;

	begin();
	at = place(kind, right, 0, sizeof(int));
	MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
	for (int i = 0; i < 4; i++) {
		many[0] = 5;
		if (i == 0)
			fails = put(LARGE);
		else if (i == 1)
			fails = MPI_Get(many, LARGE, MPI_INT, right, at, LARGE,
					MPI_INT, win);
		else if (i == 2)
			fails = MPI_Accumulate(many, LARGE, MPI_INT, right, at,
					       LARGE, MPI_INT, MPI_SUM, win);
		else
			fails = MPI_Get_accumulate(
				many, LARGE, MPI_INT, many, LARGE, MPI_INT,
				right, at, LARGE, MPI_INT, MPI_NO_OP, win);
		FAILS(fails, at_once());
		FAILS(MPI_Win_flush(right, win), later());
		EXPECT_INT(many[0], 5);
		FAILS(put(1), MPI_SUCCESS);
		FAILS(MPI_Win_flush(right, win), MPI_SUCCESS);
	}
	MPI_Win_unlock(right, win);
	MPI_Barrier(MPI_COMM_WORLD);
	EXPECT_INT(memory[0], 5);
	end_window(kind, &win, memory);
}

/* Who has told of it has told of it: no later call does so again. */
static void a_request_tells_by_itself(void)
{
	MPI_Aint at;
	MPI_Request r;
	int rc;

	begin();
	at = place(kind, right, SMALL, sizeof(int));
	MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
	rc = MPI_Rget(many, 1, MPI_INT, right, at, 1, MPI_INT, win, &r);
	FAILS(rc, at_once());
	if (size > 1)
		FAILS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_RMA_RANGE);
	FAILS(MPI_Win_flush(right, win), MPI_SUCCESS);
	rc = MPI_Get(many, 1, MPI_INT, right, at, 1, MPI_INT, win);
	FAILS(rc, at_once());
	FAILS(MPI_Win_flush_local(right, win), later());
	FAILS(MPI_Win_unlock(right, win), MPI_SUCCESS);
	end_window(kind, &win, memory);
}

static MPI_Win told;
static int ntold;

static void note(MPI_Win *which, int *code, ...)
{
	EXPECT_INT(class_of(*code), MPI_ERR_RMA_RANGE);
	told = *which;
	ntold++;
}

/* Its handler is called, too, but there is no window any more. */
static void a_request_may_outlive_its_window(void)
{
	MPI_Errhandler handler;
	MPI_Request r;
	MPI_Aint at;

	begin();
	at = place(kind, right, SMALL, sizeof(int));
	MPI_Win_create_errhandler(note, &handler);
	MPI_Win_set_errhandler(win, handler);
	MPI_Errhandler_free(&handler);
	ntold = 0;
	MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
	told = win;
	if (size > 1)
		MPI_Rget(many, 1, MPI_INT, right, at, 1, MPI_INT, win, &r);
	MPI_Win_unlock(right, win);
	end_window(kind, &win, memory);
	if (size == 1)
		return;
	FAILS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_RMA_RANGE);
	EXPECT_INT(ntold, 1);
	EXPECT(told == MPI_WIN_NULL);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	right = (rank + 1) % size;
	many = calloc(LARGE, sizeof(*many));
	for (kind = kinds; kind->flavor != MPI_WIN_FLAVOR_DYNAMIC; kind++)
		;
	locks_are_had_whatever_was_refused();
	windows_end_whatever_was_refused();
	much_is_refused_like_little();
	a_request_tells_by_itself();
	a_request_may_outlive_its_window();
	free(many);
	free(addresses);
	return program_end("refused");
}
