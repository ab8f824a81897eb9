/*
 * What holds after a fault, for each process that is left: whoever needs the
 * lost ones is told, all else works.
 */
#ifndef TESTS_FAULTS_AFTER_H
#define TESTS_FAULTS_AFTER_H

#include <mpi.h>
#include <stdbool.h>

struct view {
	int rank, size;    /* in MPI_COMM_WORLD */
	bool *lost;        /* by rank: to this process */
	bool *with_me;     /* by rank: of those that go on together, me too */
	bool loses_any;    /* itself */
	bool some_is_lost; /* to it or to another */
	MPI_Comm world;    /* of all, with collectives that nobody began */
};

void after_fault(const struct view *v, bool with_session);

#endif
