/*
 * For test programs that use nothing but MPI and run on any number of
 * processes, on this library or another one. A condition that does not hold
 * is said, and the job ends with exit code 1.
 */
#ifndef TESTS_MADMPI_PROGRAM_H
#define TESTS_MADMPI_PROGRAM_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size; /* in MPI_COMM_WORLD */

/*
 * TSan takes milliseconds for what else takes microseconds, and what ASan looks
 * for is there in the first rounds.
 */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { FEWER = 5 };
#else
enum { FEWER = 1 };
#endif

#define EXPECT(x)                                                              \
	do {                                                                   \
		if (!(x)) {                                                    \
			fprintf(stderr, "%s:%d: rank %d of %d: %s\n",          \
				__FILE__, __LINE__, rank, size, #x);           \
			MPI_Abort(MPI_COMM_WORLD, 1);                          \
		}                                                              \
	} while (0)

#define EXPECT_INT(got, want)                                                  \
	do {                                                                   \
		long long g_ = (long long)(got), w_ = (long long)(want);       \
		if (g_ != w_) {                                                \
			fprintf(stderr,                                        \
				"%s:%d: rank %d of %d: %s is %lld, not "       \
				"%lld\n",                                      \
				__FILE__, __LINE__, rank, size, #got, g_, w_); \
			MPI_Abort(MPI_COMM_WORLD, 1);                          \
		}                                                              \
	} while (0)

/* The class of what a call returns. */
static inline int class_of(int code)
{
	int found = -1;

	MPI_Error_class(code, &found);
	return found;
}

/* Then calls that do not fit together are an error of another class. */
static inline int calls_are_compared(void)
{
	const char *check = getenv("MADMPI_CHECK");

	return check != NULL && strcmp(check, "2") == 0;
}

#define FAILS(call, wanted) EXPECT_INT(class_of(call), wanted)

static inline void program_begin(int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
}

/* All processes have come here; the first one says so. */
static inline int program_end(const char *name)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("%s: ok on %d\n", name, size);
	fflush(stdout);
	return MPI_Finalize();
}

#endif
