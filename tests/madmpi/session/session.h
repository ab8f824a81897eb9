/*
 * For programs that use MPI through sessions, and perhaps nothing else.
 */
#ifndef TESTS_MADMPI_SESSION_H
#define TESTS_MADMPI_SESSION_H

#include "../program.h"

static inline MPI_Session session_of_errors_return(void)
{
	MPI_Session s = MPI_SESSION_NULL;

	EXPECT_INT(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s),
		   MPI_SUCCESS);
	EXPECT(s != MPI_SESSION_NULL);
	return s;
}

static inline MPI_Group group_of(MPI_Session s, const char *pset)
{
	MPI_Group g = MPI_GROUP_NULL;

	EXPECT_INT(MPI_Group_from_session_pset(s, pset, &g), MPI_SUCCESS);
	return g;
}

static inline MPI_Comm comm_from(MPI_Group g, const char *tag)
{
	MPI_Comm c = MPI_COMM_NULL;

	EXPECT_INT(MPI_Comm_create_from_group(g, tag, MPI_INFO_NULL,
					      MPI_ERRORS_RETURN, &c),
		   MPI_SUCCESS);
	return c;
}

/* Of all processes. */
static inline MPI_Comm comm_of(MPI_Session s, const char *tag)
{
	MPI_Group g = group_of(s, "mpi://WORLD");
	MPI_Comm c = comm_from(g, tag);

	EXPECT_INT(MPI_Group_free(&g), MPI_SUCCESS);
	return c;
}

/* All of its processes come to know that it has that many. */
static inline void expect_works(MPI_Comm c, int n)
{
	int one = 1, sum = 0;

	EXPECT_INT(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c),
		   MPI_SUCCESS);
	EXPECT_INT(sum, n);
}

/* rank and size, which no MPI_COMM_WORLD tells. */
static inline void learn(MPI_Session s)
{
	MPI_Group g = group_of(s, "mpi://WORLD");

	MPI_Group_rank(g, &rank);
	MPI_Group_size(g, &size);
	EXPECT_INT(MPI_Group_free(&g), MPI_SUCCESS);
}

#endif
