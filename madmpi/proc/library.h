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
 * Add a user. Any thread; waits while another one brings MPI up, or while
 * MPI_Finalize finds out whether it leaves the job. Returns false, with the
 * reason in *out, if MPI cannot come up or the process leaves the job.
 */
bool madmpi_library_get(enum madmpi_user user, struct madmpi_refusal *out);

/*
 * Remove a user, which has freed its objects or gives them up. `leave`: it is
 * the last one, the library is closed, and the process leaves the job, as all
 * do; the library is open again afterwards. Returns 0, or -EBUSY if operations
 * are not complete.
 */
int madmpi_library_put(bool leave);

/*
 * MPI_Finalize, once all processes have come to it: let no user be added until
 * the process has left the job, or the same thread calls the second function.
 * Returns false, and changes nothing, if the process has had a session since it
 * joined the job.
 */
bool madmpi_library_close(void);
void madmpi_library_reopen(void);

#endif
