/*
 * For test programs about intercommunicators: MPI_COMM_WORLD in two halves. The
 * first half is the smaller one if there is an odd process.
 */
#ifndef TESTS_MADMPI_TWO_GROUPS_H
#define TESTS_MADMPI_TWO_GROUPS_H

#include "program.h"

static MPI_Comm inter, local; /* of both halves; of one's own */
static int first;             /* this process is in the first half */
static int mine, nmine;       /* its rank there, and how many they are */
static int nothers;           /* in the other half */

/* The rank in MPI_COMM_WORLD of rank r of the other half, or of one's own. */
static inline int world_of_other(int r)
{
	return first ? nmine + r : r;
}

static inline int world_of_own(int r)
{
	return first ? r : nothers + r;
}

/* Leaders are the last of each half. */
static inline void two_groups_begin(void)
{
	first = rank < size / 2;
	nmine = first ? size / 2 : size - size / 2;
	nothers = size - nmine;
	mine = first ? rank : rank - nothers;
	MPI_Comm_split(MPI_COMM_WORLD, first, rank, &local);
	MPI_Intercomm_create(local, nmine - 1, MPI_COMM_WORLD,
			     world_of_other(nothers - 1), 3, &inter);
}

static inline void two_groups_end(void)
{
	MPI_Comm_free(&inter);
	MPI_Comm_free(&local);
}

#endif
