/*
 * Windows as objects: how they are made, what they are asked.
 */
#include "windows.h"

#include <stdint.h>

static const struct kind *kind;

/* What was asked for is what the attributes say. */
static void attributes_tell_what_was_asked_for(void)
{
	void *memory, *base;
	MPI_Aint *bytes;
	int *unit, *flavor, *model, flag;
	MPI_Win win = window(kind, 48, 8, &memory);
	int is_dynamic = kind->flavor == MPI_WIN_FLAVOR_DYNAMIC;

	MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag);
	EXPECT(flag && base == (is_dynamic ? MPI_BOTTOM : memory));
	MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &flag);
	EXPECT(flag && *bytes == (is_dynamic ? 0 : 48));
	MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &flag);
	EXPECT(flag && *unit == (is_dynamic ? 1 : 8));
	MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavor, &flag);
	EXPECT(flag && *flavor == kind->flavor);
	MPI_Win_get_attr(win, MPI_WIN_MODEL, &model, &flag);
	EXPECT(flag && *model == MPI_WIN_UNIFIED);
	end_window(kind, &win, memory);
}

static int deleted;

static int count_deleted(MPI_Win win, int keyval, void *value, void *extra)
{
	(void)win, (void)keyval;
	EXPECT(value == extra);
	deleted++;
	return MPI_SUCCESS;
}

/* The delete function is called once for each value, at the latest at the end.
 */
static void attributes_are_deleted(void)
{
	int keyval, flag, x, *value;
	void *memory;
	MPI_Win win = window(kind, 8, 1, &memory);

	deleted = 0;
	MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, count_deleted, &keyval, &x);
	MPI_Win_get_attr(win, keyval, &value, &flag);
	EXPECT(!flag);
	MPI_Win_set_attr(win, keyval, &x);
	MPI_Win_get_attr(win, keyval, &value, &flag);
	EXPECT(flag && value == &x);
	MPI_Win_set_attr(win, keyval, &x);
	EXPECT_INT(deleted, 1);
	MPI_Win_delete_attr(win, keyval);
	EXPECT_INT(deleted, 2);
	MPI_Win_set_attr(win, keyval, &x);
	MPI_Win_free_keyval(&keyval);
	EXPECT_INT(keyval, MPI_KEYVAL_INVALID);
	end_window(kind, &win, memory);
	EXPECT_INT(deleted, 3);
}

static void names_groups_and_numbers(void)
{
	char name[MPI_MAX_OBJECT_NAME];
	MPI_Group group, all;
	void *memory;
	int n;
	MPI_Win win = window(kind, 8, 1, &memory);

	MPI_Win_get_name(win, name, &n);
	EXPECT_INT(n, 0);
	MPI_Win_set_name(win, "a window");
	MPI_Win_get_name(win, name, &n);
	EXPECT(n == 8 && strcmp(name, "a window") == 0);
	MPI_Win_get_name(MPI_WIN_NULL, name, &n);
	EXPECT(strcmp(name, "MPI_WIN_NULL") == 0);
	MPI_Win_get_group(win, &group);
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_compare(group, all, &n);
	EXPECT_INT(n, MPI_IDENT);
	MPI_Group_free(&group);
	MPI_Group_free(&all);
	EXPECT(MPI_Win_fromint(MPI_Win_toint(win)) == win);
	EXPECT(MPI_Win_fromint(MPI_Win_toint(MPI_WIN_NULL)) == MPI_WIN_NULL);
	end_window(kind, &win, memory);
}

static void hints_are_told_again(void)
{
	char value[MPI_MAX_INFO_VAL];
	MPI_Info info, used;
	void *memory;
	int flag;
	MPI_Win win = window(kind, 8, 1, &memory);

	MPI_Win_get_info(win, &used);
	MPI_Info_get(used, "no_locks", sizeof(value) - 1, value, &flag);
	EXPECT(flag && strcmp(value, "false") == 0);
	MPI_Info_free(&used);
	MPI_Info_create(&info);
	MPI_Info_set(info, "accumulate_ordering", "none");
	MPI_Info_set(info, "unheard_of", "true");
	MPI_Win_set_info(win, info);
	MPI_Info_free(&info);
	MPI_Win_get_info(win, &used);
	MPI_Info_get(used, "accumulate_ordering", sizeof(value) - 1, value,
		     &flag);
	EXPECT(flag && strcmp(value, "none") == 0);
	MPI_Info_get(used, "unheard_of", sizeof(value) - 1, value, &flag);
	EXPECT(!flag);
	MPI_Info_free(&used);
	end_window(kind, &win, memory);
}

/* What MPI_Win_get_info says of the alignment; 0: nothing. */
static long told_alignment(MPI_Win win)
{
	char value[32] = "0";
	MPI_Info used;
	int flag;

	MPI_Win_get_info(win, &used);
	MPI_Info_get(used, "mpi_minimum_memory_alignment", sizeof(value) - 1,
		     value, &flag);
	MPI_Info_free(&used);
	return atol(value);
}

/* Of each part that the process reaches. */
static void parts_are_aligned(MPI_Win win, uintptr_t alignment)
{
	MPI_Aint bytes;
	int unit;
	void *at;

	for (int r = 0; r < size; r++) {
		MPI_Win_shared_query(win, r, &bytes, &unit, &at);
		if (bytes > 0)
			EXPECT_INT((uintptr_t)at % alignment, 0);
	}
}

/* One process asks for more than the others: that is what all get. */
static void memory_is_aligned_as_asked(long alignment)
{
	char text[32];
	MPI_Info info;
	int *memory;
	MPI_Win win;

	MPI_Info_create(&info);
	snprintf(text, sizeof(text), "%ld", alignment);
	if (rank == size - 1)
		MPI_Info_set(info, "mpi_minimum_memory_alignment", text);
	MPI_Info_set(info, "alloc_shared_noncontig", "true");
	if (kind->shm != NULL)
		MPI_Info_set(info, "alloc_shm", kind->shm);
	if (kind->flavor == MPI_WIN_FLAVOR_ALLOCATE)
		MPI_Win_allocate(100 * rank + 4, 4, info, MPI_COMM_WORLD,
				 &memory, &win);
	else
		MPI_Win_allocate_shared(100 * rank + 4, 4, info, MPI_COMM_WORLD,
					&memory, &win);
	EXPECT_INT((uintptr_t)memory % (uintptr_t)alignment, 0);
	parts_are_aligned(win, (uintptr_t)alignment);
	EXPECT_INT(told_alignment(win), alignment);
	memory[0] = rank;
	MPI_Win_fence(0, win);
	EXPECT_INT(memory[0], rank);
	MPI_Win_free(&win);
	/* Directly behind one another: as their sizes allow. */
	if (kind->flavor == MPI_WIN_FLAVOR_SHARED && size > 1) {
		MPI_Info_set(info, "alloc_shared_noncontig", "false");
		MPI_Win_allocate_shared(2 * alignment, 4, info, MPI_COMM_WORLD,
					&memory, &win);
		parts_are_aligned(win, (uintptr_t)alignment);
		EXPECT_INT(told_alignment(win), alignment);
		MPI_Win_free(&win);
		MPI_Win_allocate_shared(12, 4, info, MPI_COMM_WORLD, &memory,
					&win);
		EXPECT_INT(told_alignment(win), 4);
		MPI_Win_free(&win);
	}
	MPI_Info_free(&info);
}

static void memory_is_aligned(void)
{
	MPI_Win win;
	void *memory;

	if (kind->flavor == MPI_WIN_FLAVOR_ALLOCATE ||
	    kind->flavor == MPI_WIN_FLAVOR_SHARED) {
		for (long n = 64; n <= 1 << 22; n *= 4)
			memory_is_aligned_as_asked(n);
		return;
	}
	win = window(kind, 8, 1, &memory);
	EXPECT_INT(told_alignment(win), 0);
	end_window(kind, &win, memory);
}

static MPI_Win failed;
static int failed_with;

static void note(MPI_Win *win, int *code, ...)
{
	failed = *win;
	failed_with = *code;
}

/* Errors go to the window's handler, with the window. */
static void handlers_get_the_window(void)
{
	MPI_Errhandler handler, got;
	void *memory;
	MPI_Win win = window(kind, 8, 1, &memory);

	MPI_Win_get_errhandler(win, &got);
	EXPECT(got == MPI_ERRORS_ARE_FATAL);
	MPI_Win_create_errhandler(note, &handler);
	MPI_Win_set_errhandler(win, handler);
	MPI_Win_get_errhandler(win, &got);
	EXPECT(got == handler);
	MPI_Errhandler_free(&got);
	MPI_Errhandler_free(&handler);
	failed = MPI_WIN_NULL;
	FAILS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
	EXPECT(failed == win);
	EXPECT_INT(class_of(failed_with), MPI_ERR_RMA_SYNC);
	MPI_Win_call_errhandler(win, MPI_ERR_OTHER);
	EXPECT_INT(failed_with, MPI_ERR_OTHER);
	/* One of communicators is none of windows, nor the other way round. */
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Win_get_errhandler(win, &got);
	FAILS(MPI_Comm_set_errhandler(MPI_COMM_SELF, got), MPI_ERR_ERRHANDLER);
	MPI_Errhandler_free(&got);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
	end_window(kind, &win, memory);
}

/* On one host all see the memory of all, at addresses of their own. */
static void shared_memory_is_seen_by_all(void)
{
	MPI_Aint bytes;
	int unit, *memory, *theirs, is_whole;
	MPI_Win win;

	MPI_Win_allocate_shared((rank + 1) * (MPI_Aint)sizeof(int), sizeof(int),
				MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i <= rank; i++)
		memory[i] = 100 * rank + i;
	MPI_Win_sync(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(win);
	for (int r = 0; r < size; r++) {
		MPI_Win_shared_query(win, r, &bytes, &unit, &theirs);
		EXPECT(bytes == (r + 1) * (MPI_Aint)sizeof(int));
		EXPECT_INT(unit, sizeof(int));
		for (int i = 0; i <= r; i++)
			EXPECT_INT(theirs[i], 100 * r + i);
	}
	/* Directly behind one another, as nobody has allowed anything else. */
	MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &theirs);
	is_whole = theirs + rank * (rank + 1) / 2 == memory;
	EXPECT(is_whole);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
}

/* Who brings nothing is passed over when the first memory is looked for. */
static void memory_may_be_empty(void)
{
	int *memory, *first, unit;
	MPI_Aint bytes;
	MPI_Win win;

	MPI_Win_allocate_shared(rank == size - 1 ? sizeof(int) : 0, 1,
				MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
	if (rank == size - 1)
		*memory = 42;
	MPI_Win_fence(0, win);
	MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &first);
	EXPECT(bytes == sizeof(int));
	EXPECT_INT(*first, 42);
	MPI_Win_fence(0, win);
	MPI_Win_free(&win);
}

/*
 * In windows of all kinds that have memory the first memory is that of process
 * 1, or 0 alone, also for a process that has some itself but cannot reach it.
 */
static void the_first_memory_is_the_same_for_all(void)
{
	int first = size > 1, unit = 0;
	MPI_Aint bytes = -1, want = (MPI_Aint)sizeof(int);
	int *memory, *at = NULL;
	MPI_Win win;

	if (kind->flavor == MPI_WIN_FLAVOR_DYNAMIC)
		return;
	win = window(kind, rank < first ? 0 : want * (rank + 1), sizeof(int),
		     &memory);
	if (rank == first)
		memory[0] = 42;
	MPI_Win_fence(0, win);
	MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &at);
	/* Of memory that a process cannot reach the size is 0. */
	EXPECT(bytes == want * (first + 1) || (bytes == 0 && rank != first));
	if (bytes > 0) {
		EXPECT_INT(unit, sizeof(int));
		EXPECT_INT(at[0], 42);
	}
	if (kind->flavor == MPI_WIN_FLAVOR_SHARED)
		EXPECT(bytes > 0);
	MPI_Win_fence(0, win);
	end_window(kind, &win, memory);
}

/* Of a part of the processes, others first: ranks are those of the window. */
static void ranks_are_those_of_the_window(void)
{
	int *memory, n, r, value = rank;
	MPI_Comm comm;
	MPI_Win win;

	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &comm);
	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &r);
	win = window_on(&kinds[0], comm, sizeof(int), sizeof(int), &memory);
	MPI_Comm_free(&comm);
	MPI_Win_fence(0, win);
	MPI_Put(&value, 1, MPI_INT, (r + 1) % n, 0, 1, MPI_INT, win);
	MPI_Win_fence(0, win);
	/* Their order is the opposite one. */
	EXPECT_INT(memory[0], r == 0 ? rank % 2 : rank + 2);
	end_window(&kinds[0], &win, memory);
}

/* Windows are independent of each other, and of messages. */
static void many_windows_at_once(void)
{
	enum { MANY = 20 };
	int *memory[MANY], value;
	MPI_Win win[MANY];

	for (int i = 0; i < MANY; i++) {
		win[i] = window(&kinds[i % 4], sizeof(int), sizeof(int),
				&memory[i]);
		MPI_Win_fence(0, win[i]);
	}
	for (int i = 0; i < MANY; i++) {
		value = 10 * rank + i;
		MPI_Put(&value, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT,
			win[i]);
		MPI_Win_fence(0, win[i]);
		EXPECT_INT(memory[i][0], 10 * ((rank + size - 1) % size) + i);
	}
	for (int i = MANY - 1; i >= 0; i--)
		end_window(&kinds[i % 4], &win[i], memory[i]);
}

/* What is too large for an int is not cut. */
static void units_may_be_large(void)
{
	MPI_Aint large = ((MPI_Aint)1 << 32) + 8, bytes, unit;
	int *narrow, flag;
	MPI_Win win;
	void *base;

	MPI_Win_allocate_c(16, large, MPI_INFO_NULL, MPI_COMM_WORLD, &base,
			   &win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	MPI_Win_shared_query_c(win, rank, &bytes, &unit, &base);
	EXPECT_INT(unit, large);
	FAILS(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &narrow, &flag),
	      MPI_ERR_VALUE_TOO_LARGE);
	MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	for (kind = kinds; kind->name != NULL; kind++) {
		attributes_tell_what_was_asked_for();
		attributes_are_deleted();
		names_groups_and_numbers();
		hints_are_told_again();
		memory_is_aligned();
		handlers_get_the_window();
		the_first_memory_is_the_same_for_all();
	}
	shared_memory_is_seen_by_all();
	memory_may_be_empty();
	ranks_are_those_of_the_window();
	many_windows_at_once();
	units_may_be_large();
	free(addresses);
	return program_end("windows");
}
