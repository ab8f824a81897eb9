/*
 * Memory that all members of a window map.
 */
#ifndef MADMPI_RMA_SHARED_H
#define MADMPI_RMA_SHARED_H

#include "rma/win.h"

struct madmpi_shared;

/*
 * All members, by steps in c: a part for each, as large as they say, directly
 * behind one another or, if that is allowed, each on pages of its own. On
 * success each member has its place. `error`: what has gone wrong before. 0 or
 * -errno, the same for all.
 */
int madmpi_shared_make(const char *fn, struct madmpi_win *w,
		       struct madmpi_comm *c, bool apart, int error);

/* Of a window that nobody uses any more. */
void madmpi_shared_drop(struct madmpi_win *w);

/* A lock of each member, for a short time: nothing may wait inside. */
void madmpi_shared_lock(struct madmpi_win *w, int rank);
void madmpi_shared_unlock(struct madmpi_win *w, int rank);

#endif
