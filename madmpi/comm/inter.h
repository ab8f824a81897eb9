/*
 * How two groups meet: their leaders hear of the other group and of the numbers
 * of the contexts, in whatever way, and tell their own group.
 */
#ifndef MADMPI_COMM_INTER_H
#define MADMPI_COMM_INTER_H

#include <stdint.h>

#include "coll/coll.h"

/* What one side says of itself, and a leader to its group of the other one. */
struct madmpi_side {
	uint64_t ids[2];
	int size;  /* of the group whose ranks in MPI_COMM_WORLD follow */
	int tag;   /* of the call */
	int error; /* to the own group, a class: nothing follows */
};

/* In each process of the two groups. */
struct madmpi_meeting {
	const char *function;
	struct madmpi_comm *local;
	struct madmpi_coll
		coll; /* of that; begun before madmpi_meeting_end() */
	int leader;   /* in the local communicator */
	struct madmpi_side theirs;
	int *world; /* their group: theirs.size, owned */
};

/* A leader has heard it. MPI_SUCCESS or what was reported. */
int madmpi_meeting_hear(struct madmpi_meeting *m, const int *world, int size,
			const uint64_t ids[2]);

/*
 * All processes of the local communicator, whose leader has met `error`, which
 * was reported, or MPI_SUCCESS. MPI_SUCCESS, or the class of what was reported.
 */
int madmpi_meeting_end(struct madmpi_meeting *m, int error,
		       struct madmpi_comm **out);

#endif
