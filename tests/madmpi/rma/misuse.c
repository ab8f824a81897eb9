/*
 * What is refused: calls that no epoch allows, places outside of the window,
 * data that do not fit. The window is as usable after it as before.
 */
#include "windows.h"

enum { REGIONS = 100000 / FEWER };

static const struct kind *kind;
static MPI_Win win;
static int *memory, value, right;

static MPI_Aint at(int i)
{
	return place(kind, right, i, sizeof(int));
}

static int put(void)
{
	return MPI_Put(&value, 1, MPI_INT, right, at(0), 1, MPI_INT, win);
}

static void operations_need_an_epoch(void)
{
	MPI_Request request;
	MPI_Group self;
	int flag, other = (right + 1) % size;

	FAILS(put(), MPI_ERR_RMA_SYNC);
	FAILS(MPI_Win_flush(right, win), MPI_ERR_RMA_SYNC);
	FAILS(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC);
	FAILS(MPI_Win_flush_local(right, win), MPI_ERR_RMA_SYNC);
	FAILS(MPI_Win_unlock(right, win), MPI_ERR_RMA_SYNC);
	FAILS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
	FAILS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
	FAILS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
	FAILS(MPI_Win_test(win, &flag), MPI_ERR_RMA_SYNC);
	MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
	FAILS(MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win), MPI_ERR_RMA_SYNC);
	FAILS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
	FAILS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
	FAILS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
	MPI_Comm_group(MPI_COMM_SELF, &self);
	FAILS(MPI_Win_start(self, 0, win), MPI_ERR_RMA_SYNC);
	MPI_Group_free(&self);
	if (size > 1) {
		FAILS(MPI_Put(&value, 1, MPI_INT, other,
			      place(kind, other, 0, sizeof(int)), 1, MPI_INT,
			      win),
		      MPI_ERR_RMA_SYNC);
		FAILS(MPI_Win_flush(other, win), MPI_ERR_RMA_SYNC);
	}
	FAILS(put(), MPI_SUCCESS);
	MPI_Win_unlock(right, win);
	MPI_Win_lock_all(0, win);
	FAILS(MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win), MPI_ERR_RMA_SYNC);
	MPI_Win_unlock_all(win);
	/* Requests are for what is locked. */
	MPI_Win_fence(0, win);
	FAILS(MPI_Rput(&value, 1, MPI_INT, right, at(0), 1, MPI_INT, win,
		       &request),
	      MPI_ERR_RMA_SYNC);
	FAILS(put(), MPI_SUCCESS);
	FAILS(MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win), MPI_ERR_RMA_SYNC);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
	FAILS(put(), MPI_ERR_RMA_SYNC);
}

/* In a dynamic window the target finds out, and the next flush tells of it. */
static void places_must_be_in_the_window(void)
{
	int many[100] = { 0 }, got = 5, fails;
	int is_remote = kind->flavor == MPI_WIN_FLAVOR_DYNAMIC && size > 1;

	MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
	for (int i = 0; i < 4; i++) {
		if (i == 0)
			fails = MPI_Put(many, 100, MPI_INT, right, at(0), 100,
					MPI_INT, win);
		else if (i == 1)
			fails = MPI_Get(&got, 1, MPI_INT, right, at(10), 1,
					MPI_INT, win);
		else if (i == 2)
			fails = MPI_Accumulate(many, 100, MPI_INT, right, at(0),
					       100, MPI_INT, MPI_SUM, win);
		else
			fails = MPI_Fetch_and_op(many, &got, MPI_INT, right,
						 at(10), MPI_SUM, win);
		FAILS(fails, is_remote ? MPI_SUCCESS : MPI_ERR_RMA_RANGE);
		FAILS(MPI_Win_flush(right, win),
		      is_remote ? MPI_ERR_RMA_RANGE : MPI_SUCCESS);
	}
	FAILS(put(), MPI_SUCCESS);
	FAILS(MPI_Win_unlock(right, win), MPI_SUCCESS);
	EXPECT_INT(got, 5);
}

static void data_must_fit(void)
{
	int many[4] = { 0 };
	float f = 0;
	MPI_Datatype mixed, types[2] = { MPI_INT, MPI_FLOAT };
	int lengths[2] = { 1, 1 };
	MPI_Aint disps[2] = { 0, 4 };

	MPI_Type_create_struct(2, lengths, disps, types, &mixed);
	MPI_Type_commit(&mixed);
	MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
	FAILS(MPI_Put(many, 2, MPI_INT, right, at(0), 1, MPI_INT, win),
	      MPI_ERR_TRUNCATE);
	FAILS(MPI_Get(many, 1, MPI_INT, right, at(0), 2, MPI_INT, win),
	      MPI_ERR_TRUNCATE);
	FAILS(MPI_Accumulate(&f, 1, MPI_FLOAT, right, at(0), 1, MPI_INT,
			     MPI_SUM, win),
	      MPI_ERR_TYPE);
	FAILS(MPI_Accumulate(many, 1, mixed, right, at(0), 1, mixed, MPI_SUM,
			     win),
	      MPI_ERR_TYPE);
	FAILS(MPI_Compare_and_swap(&f, &f, &f, MPI_FLOAT, right, at(0), win),
	      MPI_ERR_TYPE);
	FAILS(MPI_Put(many, 1, mixed, right, at(0), 1, mixed, win),
	      MPI_SUCCESS);
	MPI_Win_unlock(right, win);
	MPI_Type_free(&mixed);
}

/* Nor may it be combined with nothing, but for what is fetched. */
static void nothing_is_not_accumulated(void)
{
	int many[10] = { 0 };
	MPI_Request request;

	MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
	FAILS(MPI_Accumulate(many, 10, MPI_INT, right, at(0), 10, MPI_INT,
			     MPI_NO_OP, win),
	      MPI_ERR_OP);
	FAILS(MPI_Raccumulate(many, 10, MPI_INT, right, at(0), 10, MPI_INT,
			      MPI_NO_OP, win, &request),
	      MPI_ERR_OP);
	FAILS(MPI_Get_accumulate(NULL, 0, MPI_INT, many, 10, MPI_INT, right,
				 at(0), 10, MPI_INT, MPI_NO_OP, win),
	      MPI_SUCCESS);
	MPI_Win_unlock(right, win);
}

/* A count that is not 0 needs a type, on either side. */
static void a_type_is_needed_for_elements_only(void)
{
	MPI_Datatype none = MPI_DATATYPE_NULL;
	MPI_Request request[4];
	int got = 5, n = 0;

	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
	FAILS(MPI_Put(NULL, 0, none, right, at(0), 0, none, win), MPI_SUCCESS);
	FAILS(MPI_Put(NULL, 0, none, right, at(0), 1, MPI_INT, win),
	      MPI_SUCCESS);
	FAILS(MPI_Get(NULL, 0, none, right, at(0), 0, none, win), MPI_SUCCESS);
	FAILS(MPI_Get(&got, 1, MPI_INT, right, at(0), 0, none, win),
	      MPI_SUCCESS);
	FAILS(MPI_Accumulate(NULL, 0, none, right, at(0), 0, none, MPI_SUM,
			     win),
	      MPI_SUCCESS);
	FAILS(MPI_Get_accumulate(NULL, 0, none, NULL, 0, none, right, at(0), 0,
				 none, MPI_SUM, win),
	      MPI_SUCCESS);
	FAILS(MPI_Get_accumulate(NULL, 0, none, NULL, 0, none, right, at(0), 0,
				 none, MPI_NO_OP, win),
	      MPI_SUCCESS);
	FAILS(MPI_Rput(NULL, 0, none, right, at(0), 0, none, win,
		       &request[n++]),
	      MPI_SUCCESS);
	FAILS(MPI_Rget(NULL, 0, none, right, at(0), 0, none, win,
		       &request[n++]),
	      MPI_SUCCESS);
	FAILS(MPI_Raccumulate(NULL, 0, none, right, at(0), 0, none, MPI_SUM,
			      win, &request[n++]),
	      MPI_SUCCESS);
	FAILS(MPI_Rget_accumulate(NULL, 0, none, NULL, 0, none, right, at(0), 0,
				  none, MPI_SUM, win, &request[n++]),
	      MPI_SUCCESS);
	MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
	FAILS(MPI_Put(&value, 1, none, right, at(0), 0, none, win),
	      MPI_ERR_TYPE);
	FAILS(MPI_Get(&got, 1, MPI_INT, right, at(0), 1, none, win),
	      MPI_ERR_TYPE);
	FAILS(MPI_Fetch_and_op(&value, &got, none, right, at(0), MPI_SUM, win),
	      MPI_ERR_TYPE);
	FAILS(MPI_Compare_and_swap(&value, &value, &got, none, right, at(0),
				   win),
	      MPI_ERR_TYPE);
	MPI_Win_unlock(right, win);
	EXPECT_INT(got, 5);
}

static void memory_is_attached_once(void)
{
	char bytes[16];

	if (kind->flavor != MPI_WIN_FLAVOR_DYNAMIC) {
		FAILS(MPI_Win_attach(win, bytes, 16), MPI_ERR_RMA_FLAVOR);
		FAILS(MPI_Win_detach(win, bytes), MPI_ERR_RMA_FLAVOR);
		return;
	}
	FAILS(MPI_Win_attach(win, memory, 4), MPI_ERR_RMA_ATTACH);
	FAILS(MPI_Win_attach(win, bytes, 16), MPI_SUCCESS);
	FAILS(MPI_Win_attach(win, bytes + 15, 1), MPI_ERR_RMA_ATTACH);
	/* Regions that touch are as good as one. */
	FAILS(MPI_Win_detach(win, bytes), MPI_SUCCESS);
	FAILS(MPI_Win_attach(win, bytes, 7), MPI_SUCCESS);
	FAILS(MPI_Win_attach(win, bytes + 7, 9), MPI_SUCCESS);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
	FAILS(MPI_Put(&value, 1, MPI_INT, rank, (MPI_Aint)(bytes + 5), 1,
		      MPI_INT, win),
	      MPI_SUCCESS);
	MPI_Win_unlock(rank, win);
	FAILS(MPI_Win_detach(win, bytes + 7), MPI_SUCCESS);
	FAILS(MPI_Win_detach(win, bytes + 1), MPI_ERR_RMA_ATTACH);
	FAILS(MPI_Win_detach(win, bytes), MPI_SUCCESS);
	FAILS(MPI_Win_detach(win, bytes), MPI_ERR_RMA_ATTACH);
}

/* Region i, of every second pair of bytes, in an order that skips about. */
static char *region(char *bytes, int i)
{
	return bytes + 4 * (int)(i * 7919ll % REGIONS);
}

static int put_byte(char *where)
{
	return MPI_Put("x", 1, MPI_CHAR, rank, (MPI_Aint)where, 1, MPI_CHAR,
		       win);
}

/* Every second region is detached, and what touches another is refused. */
static void memory_is_attached_in_many_regions(void)
{
	char *bytes;

	if (kind->flavor != MPI_WIN_FLAVOR_DYNAMIC)
		return;
	bytes = calloc(REGIONS, 4);
	for (int i = 0; i < REGIONS; i++)
		FAILS(MPI_Win_attach(win, region(bytes, i), 2), MPI_SUCCESS);
	for (int i = 0; i < REGIONS; i += 2)
		FAILS(MPI_Win_detach(win, region(bytes, i)), MPI_SUCCESS);
	MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
	for (int i = 0; i < REGIONS; i++) {
		int code = i % 2 ? MPI_SUCCESS : MPI_ERR_RMA_RANGE;
		char *at = region(bytes, i);

		FAILS(put_byte(at + 1), code);
		code = i % 2 ? MPI_ERR_RMA_ATTACH : MPI_SUCCESS;
		FAILS(MPI_Win_attach(win, at + 1, 2), code);
		if (i % 16 > 1) /* errors take their time */
			continue;
		FAILS(put_byte(at + 3), MPI_ERR_RMA_RANGE);
		FAILS(MPI_Win_attach(win, at + 1, 1), MPI_ERR_RMA_ATTACH);
		FAILS(MPI_Win_attach(win, at, 3), MPI_ERR_RMA_ATTACH);
	}
	MPI_Win_unlock(rank, win);
	for (int i = 0; i < REGIONS; i++) {
		char *at = region(bytes, i) + (i % 2 == 0);

		EXPECT(i % 2 == 0 || at[1] == 'x');
		FAILS(MPI_Win_detach(win, at), MPI_SUCCESS);
	}
	FAILS(MPI_Win_detach(win, bytes), MPI_ERR_RMA_ATTACH);
	free(bytes);
}

static void empty_regions_may_begin_at_one_address(void)
{
	char byte;

	if (kind->flavor != MPI_WIN_FLAVOR_DYNAMIC)
		return;
	for (int i = 0; i < REGIONS; i++)
		FAILS(MPI_Win_attach(win, &byte, 0), MPI_SUCCESS);
	FAILS(MPI_Win_attach(win, &byte, 1), MPI_SUCCESS);
	for (int i = 0; i <= REGIONS; i++)
		FAILS(MPI_Win_detach(win, &byte), MPI_SUCCESS);
	FAILS(MPI_Win_detach(win, &byte), MPI_ERR_RMA_ATTACH);
}

int main(int argc, char **argv)
{
	MPI_Win freed;

	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	right = (rank + 1) % size;
	for (kind = kinds; kind->name != NULL; kind++) {
		win = window(kind, 10 * sizeof(int), sizeof(int), &memory);
		MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
		MPI_Barrier(MPI_COMM_WORLD);
		operations_need_an_epoch();
		MPI_Barrier(MPI_COMM_WORLD);
		places_must_be_in_the_window();
		data_must_fit();
		nothing_is_not_accumulated();
		a_type_is_needed_for_elements_only();
		memory_is_attached_once();
		memory_is_attached_in_many_regions();
		empty_regions_may_begin_at_one_address();
		freed = win;
		end_window(kind, &win, memory);
		FAILS(MPI_Win_fence(0, freed), MPI_ERR_WIN);
	}
	FAILS(MPI_Win_fence(0, MPI_WIN_NULL), MPI_ERR_WIN);
	free(addresses);
	return program_end("misuse");
}
