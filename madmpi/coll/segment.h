/*
 * Memory that all processes of a communicator map.
 */
#ifndef MADMPI_COLL_SEGMENT_H
#define MADMPI_COLL_SEGMENT_H

#include <stddef.h>

#include "comm/comm.h"

struct madmpi_segment {
	/* -: const once published */
	void *at;     /* -: the first bytes are not for use, the rest is zero */
	size_t bytes; /* -: of all */
};

/* At its beginning: what belongs to this file. */
enum { MADMPI_SEGMENT_HEAD = 64 };

/*
 * All processes, by operations of the communicator: so many bytes, the same in
 * each. `mine`: what has gone wrong here before, -errno, or a number from 0 on.
 * The least of these numbers for all that live; or for each an -errno, and then
 * there is nothing to be dropped.
 */
int madmpi_segment_share(const char *fn, struct madmpi_comm *comm, size_t bytes,
			 int mine, struct madmpi_segment *out);

/* By each process when it has done with it. */
void madmpi_segment_drop(struct madmpi_segment *s);

#endif
