/*
 * Operations that are not complete when MPI_Finalize is called.
 */
#ifndef MADMPI_PROC_PENDING_H
#define MADMPI_PROC_PENDING_H

#include <stdbool.h>

/*
 * Wait until all processes are in MPI_Finalize. *stay becomes true if any
 * process passes true or has had a session. Otherwise wait until every
 * operation that can complete has done so; then, on success, the library is
 * closed.
 *
 * Returns MPI_SUCCESS, or the class of what was reported: MPI_ERR_PENDING if an
 * operation of this process can never complete. Then MPI still works, processes
 * without an error stay inside, and the program may call MPI_Finalize again.
 * After a death it proves nothing, and waits for no operation.
 */
int madmpi_pending_settle(bool *stay);

/* Whether the last call of the function above reported MPI_ERR_PENDING. */
bool madmpi_pending_refused(void);

/*
 * The process is about to leave the job: name operations it has to complete.
 * Returns false if a thread of ours runs one of them: then MPI cannot end.
 */
bool madmpi_pending_tell(void);

#endif
