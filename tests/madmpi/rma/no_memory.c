/*
 * A process runs out of memory: the others do not wait for it, and those whose
 * call cannot be done are told why.
 */
#include <dlfcn.h>
#include <nmad/sendrecv.h>

#include "../no_memory.h"
#include "../program.h"

/* It is made everywhere or nowhere. */
static void windows_need_memory_of_all(void)
{
	enum { BEFORE_ANY_MESSAGE = 4 };
	MPI_Win win;
	int memory;

	MPI_Win_create(&memory, sizeof(memory), 1, MPI_INFO_NULL,
		       MPI_COMM_WORLD, &win);
	MPI_Win_free(&win);
	for (int i = 0; i < BEFORE_ANY_MESSAGE; i++) {
		int rc;

		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == size - 1)
			no_memory_for(i, 0);
		rc = MPI_Win_create(&memory, sizeof(memory), 1, MPI_INFO_NULL,
				    MPI_COMM_WORLD, &win);
		EXPECT_INT(no_memory_end(), rank == size - 1);
		EXPECT_INT(class_of(rc), MPI_ERR_NO_MEM);
	}
}

enum { MANY = 60000 };

static MPI_Win win;
static int *many, right;

/* All are about to begin. The targets have no memory for what is so large. */
static void meet(size_t bytes)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (bytes > 0)
		no_memory_for(0, bytes);
	else
		EXPECT_INT(no_memory_end(), 1);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* The target needs some, and says so to each way of asking. */
static void operations_need_memory_there(void)
{
	const size_t bytes = MANY * sizeof(int);
	MPI_Request r;

	for (int i = 0; i < 3; i++) {
		MPI_Win_lock_all(0, win);
		meet(bytes);
		if (i == 0) {
			FAILS(MPI_Accumulate(many, MANY, MPI_INT, right, 0,
					     MANY, MPI_INT, MPI_SUM, win),
			      MPI_SUCCESS);
			FAILS(MPI_Win_flush(right, win), MPI_ERR_NO_MEM);
		} else if (i == 1) {
			FAILS(MPI_Get_accumulate(many, MANY, MPI_INT, many,
						 MANY, MPI_INT, right, 0, MANY,
						 MPI_INT, MPI_NO_OP, win),
			      MPI_SUCCESS);
			FAILS(MPI_Win_flush_local(right, win), MPI_ERR_NO_MEM);
		} else {
			FAILS(MPI_Rget_accumulate(NULL, 0, MPI_INT, many, MANY,
						  MPI_INT, right, 0, MANY,
						  MPI_INT, MPI_NO_OP, win, &r),
			      MPI_SUCCESS);
			FAILS(MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_ERR_NO_MEM);
		}
		meet(0);
		FAILS(MPI_Win_unlock_all(win), MPI_SUCCESS);
	}
}

/* One of each two integers, and as long to describe; none is like another. */
static MPI_Datatype many_places(int which)
{
	int *places = malloc(MANY / 2 * sizeof(int));
	MPI_Datatype type;

	for (int i = 0; i < MANY / 2; i++)
		places[i] = 2 * i + i * i / (3 + which) % 2;
	MPI_Type_create_indexed_block(MANY / 2, 1, places, MPI_INT, &type);
	MPI_Type_commit(&type);
	free(places);
	return type;
}

static void put_to_the_first(MPI_Datatype type, int fails)
{
	if (right != 0)
		return;
	FAILS(MPI_Put(many, MANY / 2, MPI_INT, 0, 0, 1, type, win),
	      MPI_SUCCESS);
	FAILS(MPI_Win_flush(0, win), fails);
}

/*
 * So it does for a description: for the request that it is in, for another copy
 * of it, and for the type.
 */
static void descriptions_need_memory_there(void)
{
	static const int nth[] = { 0, 0, 1 };

	for (int i = 0; i < 3; i++) {
		MPI_Datatype type = many_places(i);

		MPI_Win_lock_all(0, win);
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank == 0)
			no_memory_for(nth[i], MANY / 2 * sizeof(MPI_Aint));
		MPI_Barrier(MPI_COMM_WORLD);
		put_to_the_first(type, MPI_ERR_NO_MEM);
		MPI_Barrier(MPI_COMM_WORLD);
		EXPECT_INT(no_memory_end(), rank == 0);
		put_to_the_first(type, MPI_SUCCESS);
		MPI_Win_unlock_all(win);
		MPI_Type_free(&type);
	}
}

/* The next receive of this process finds no memory. */
static atomic_int receive_fails;

/* Our own definition goes before the library's. */
ALL_SEE_IT int nm_sr_irecv(struct nm_session *s, struct nm_gate *from,
			   nm_tag_t tag, nm_tag_t mask,
			   const struct nm_data *data,
			   struct nm_sr_request *req)
{
	static int (*next)(struct nm_session *, struct nm_gate *, nm_tag_t,
			   nm_tag_t, const struct nm_data *,
			   struct nm_sr_request *);

	if (atomic_exchange(&receive_fails, 0))
		return -ENOMEM;
	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "nm_sr_irecv");
	return next(s, from, tag, mask, data, req);
}

/* A process that had no memory in a barrier takes part in the next one. */
static void fences_go_on_after_a_failure(void)
{
	int rc;

	MPI_Barrier(MPI_COMM_WORLD);
	receive_fails = rank == size - 1;
	rc = MPI_Win_fence(0, win);
	EXPECT_INT(class_of(rc), MPI_ERR_NO_MEM);
	EXPECT_INT(receive_fails, 0);
	FAILS(MPI_Win_fence(MPI_MODE_NOSUCCEED, win), MPI_SUCCESS);
}

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	windows_need_memory_of_all();
	right = (rank + 1) % size;
	many = calloc(MANY, sizeof(int));
	MPI_Win_create(many, MANY * (MPI_Aint)sizeof(int), sizeof(int),
		       MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	if (size > 1) {
		operations_need_memory_there();
		descriptions_need_memory_there();
		fences_go_on_after_a_failure();
	}
	MPI_Win_free(&win);
	free(many);
	return program_end("no_memory");
}
