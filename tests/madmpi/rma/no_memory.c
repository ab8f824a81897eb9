/*
 * A process runs out of memory: the others do not wait for it, and those whose
 * call cannot be done are told why.
 */
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

int main(int argc, char **argv)
{
	program_begin(&argc, &argv);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	windows_need_memory_of_all();
	return program_end("no_memory");
}
