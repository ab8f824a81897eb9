/*
 * The target's side of a window: a thread that serves the requests of others.
 */
#ifndef MADMPI_RMA_SERVE_H
#define MADMPI_RMA_SERVE_H

#include "rma/win.h"

/* Starts the thread, which takes no request yet. 0 or -errno. */
int madmpi_serve_start(struct madmpi_win *w);

/*
 * From now on requests are served, also those that have come already. Call this
 * when it is certain whether this process has the window: another process that
 * knows it earlier may send requests before.
 */
void madmpi_serve_open(struct madmpi_win *w);

/* Nobody sends requests any more: what has come is served, and the end. */
void madmpi_serve_stop(struct madmpi_win *w);

/* If that member dies nobody waits for it. 0 or -ENOMEM. */
int madmpi_serve_watch(struct madmpi_win *w, int rank);

/*
 * Of each of these members one access epoch is over that had not been waited
 * for; it is then. `wait`: until that is so. 0; -EAGAIN: it is not yet;
 * -ECONNRESET: it is, but for those that are watched and have died.
 */
int madmpi_serve_completed(struct madmpi_win *w, const int ranks[], int n,
			   bool wait);

#endif
