/*
 * What the world model and all sessions use together: the network, the pools of
 * objects, MPI_COMM_SELF. It comes up with the first of them.
 *
 * When the last one has ended nobody may call MPI, but the network is not left
 * at once: other processes may be in a session that is open there still, and
 * this one may join them again. So it stays until the process exits, which
 * waits for the others then. Only if no process of the job has had a session,
 * nor MADMPI_STAY, does MPI_Finalize leave the job itself.
 */
#ifndef MADMPI_PROC_LIBRARY_H
#define MADMPI_PROC_LIBRARY_H

#include <stdbool.h>

enum madmpi_user { MADMPI_USER_WORLD, MADMPI_USER_SESSION };

/* Why it could not come up. */
struct madmpi_refusal {
	int class;
	char text[160];
};

/*
 * One more user. By anyone; waits for who is bringing it up or down. False, and
 * *out says why not.
 */
bool madmpi_library_get(enum madmpi_user user, struct madmpi_refusal *out);

/*
 * One less; what it has made has been freed, or is given up. `leave`: if it was
 * the last one, leave the job, as all processes do. 0, or -EBUSY: there were
 * operations that are not complete.
 */
int madmpi_library_put(bool leave);

/* Whether this process has had a session since it joined the job. */
bool madmpi_library_had_session(void);

#endif
