/*
 * Memory that all members of a window map.
 */
#ifndef MADMPI_RMA_SHARED_H
#define MADMPI_RMA_SHARED_H

#include "rma/win.h"

struct madmpi_coll;
struct madmpi_shared;

/*
 * All members, as steps of c: a part for each, as large as they say, directly
 * behind one another or, if that is allowed, each on pages of its own. On
 * success each member has its place. `error`: what has gone wrong before, and w
 * may be NULL then. Returns 0 or -errno; 0 for one that lives is 0 for all.
 */
int madmpi_shared_make(struct madmpi_coll *c, struct madmpi_win *w, bool apart,
		       int error);

/* Of a window that nobody uses any more. */
void madmpi_shared_drop(struct madmpi_win *w);

/* A lock of each member, for a short time: nothing may wait inside. */
void madmpi_shared_lock(struct madmpi_win *w, int rank);
void madmpi_shared_unlock(struct madmpi_win *w, int rank);

#endif
