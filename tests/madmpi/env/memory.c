/*
 * Memory that MPI gives: of any size, none included, aligned as the program
 * asks for; a wish that makes no sense is passed over.
 */
#include "../program.h"

#include <stdint.h>

static void *aligned(MPI_Aint bytes, const char *wish)
{
	MPI_Info info;
	void *p = NULL;

	MPI_Info_create(&info);
	MPI_Info_set(info, "mpi_minimum_memory_alignment", wish);
	EXPECT_INT(MPI_Alloc_mem(bytes, info, &p), MPI_SUCCESS);
	EXPECT(p != NULL);
	memset(p, 7, (size_t)bytes);
	MPI_Info_free(&info);
	return p;
}

static void give_back(void *p, uintptr_t alignment)
{
	EXPECT_INT((uintptr_t)p % alignment, 0);
	EXPECT_INT(MPI_Free_mem(p), MPI_SUCCESS);
}

int main(int argc, char **argv)
{
	void *p;

	program_begin(&argc, &argv);
	for (MPI_Aint bytes = 0; bytes < 100000; bytes = 3 * bytes + 1) {
		EXPECT_INT(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &p),
			   MPI_SUCCESS);
		memset(p, 1, (size_t)bytes);
		give_back(p, sizeof(void *));
		give_back(aligned(bytes, "1"), sizeof(void *));
		give_back(aligned(bytes, "128"), 128);
		give_back(aligned(bytes, "65536"), 65536);
		give_back(aligned(bytes, "48"), sizeof(void *));
		give_back(aligned(bytes, "-64"), sizeof(void *));
		give_back(aligned(bytes, "a lot"), sizeof(void *));
	}
	return program_end("memory");
}
