/*
 * Memory that processes of a communicator map.
 */
#ifndef MADMPI_COLL_SEGMENT_H
#define MADMPI_COLL_SEGMENT_H

#include <stddef.h>

#include "coll/coll.h"

struct madmpi_segment {
	/* -: const once published */
	void *at;     /* -: the first bytes are not for use, the rest is zero */
	size_t bytes; /* -: of all */
	size_t align; /* -: of where it lies in each process */
};

/* At its beginning: what belongs to this file. */
enum { MADMPI_SEGMENT_HEAD = 64 };

/*
 * All processes that c has steps with, as steps of it: so many bytes, the same
 * in each, at an address that is a multiple of a page and of `align`, a power
 * of two. `mine`: 0, or what has gone wrong here before, -errno. 0 for all that
 * live; or for each an -errno, and then there is nothing to be dropped.
 */
int madmpi_segment_share(struct madmpi_coll *c, size_t bytes, size_t align,
			 int mine, struct madmpi_segment *out);

/*
 * Of all that share it, once: the least of their numbers from 0 on, or -errno
 * of one that has none; the same for all that live, but for which -errno.
 */
int madmpi_segment_agree(struct madmpi_coll *c, const struct madmpi_segment *s,
			 int mine);

/* By each process when it has done with it. */
void madmpi_segment_drop(struct madmpi_segment *s);

#endif
