/*
 * Letters between processes that have no communicator yet: how its members
 * agree on the numbers of the first one. They go through a session of nmad's
 * that all processes have from the beginning, and say by which call they were
 * written: the string tag of the program's and the members, both carried and
 * compared. So calls that differ in either may be made at the same time.
 */
#ifndef MADMPI_SESSION_LETTER_H
#define MADMPI_SESSION_LETTER_H

#include <stdint.h>

#include <mpi.h>
#include <nmad/nmad.h>

enum madmpi_letter_kind {
	MADMPI_LETTER_INTRA,   /* of MPI_Comm_create_from_group */
	MADMPI_LETTER_LOCAL,   /* of MPI_Intercomm_create_from_groups ... */
	MADMPI_LETTER_LEADERS, /* ... between the two leaders */
};

struct madmpi_letter {
	/* Which call; the same in all that are to meet. */
	uint32_t kind;
	uint64_t members; /* who takes part: a hash of them in their order */
	char tag[MPI_MAX_STRINGTAG_LEN];
	/* What it says. */
	uint64_t ids[2];
	int32_t error; /* a class: there will be no communicator */
};

/* 0 or -errno. */
int madmpi_letters_init(void);
void madmpi_letters_exit(void);

/* Both block the calling thread only. 0 or -errno. */
int madmpi_letter_send(struct nm_gate *to, const struct madmpi_letter *l);

/* The oldest from there that belongs to the call which *l names. */
int madmpi_letter_recv(struct nm_gate *from, struct madmpi_letter *l);

#endif
