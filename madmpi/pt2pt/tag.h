/*
 * (communicator, rank, tag) of MPI -> (session, gate, tag, mask) of nmad.
 *
 * Each communicator has sessions of its own, so an MPI tag is an nmad tag as
 * it is: all 31 bits belong to the program.
 */
#ifndef MADMPI_PT2PT_TAG_H
#define MADMPI_PT2PT_TAG_H

#include <limits.h>

#include "comm/comm.h"

#define MADMPI_TAG_UB INT_MAX

static inline struct nm_gate *madmpi_gate(const struct madmpi_comm *c, int rank)
{
	return rank == MPI_ANY_SOURCE ? NM_ANY_GATE : c->gate[rank];
}

static inline nm_tag_t madmpi_tag(int tag)
{
	return tag == MPI_ANY_TAG ? 0 : (nm_tag_t)tag;
}

static inline nm_tag_t madmpi_tag_mask(int tag)
{
	return tag == MPI_ANY_TAG ? NM_TAG_ANY : NM_TAG_EXACT;
}

#endif
