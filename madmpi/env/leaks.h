/*
 * MADMPI_LEAKS: what the program has made and not freed.
 */
#ifndef MADMPI_ENV_LEAKS_H
#define MADMPI_ENV_LEAKS_H

/*
 * Says on stderr how many objects of each kind the program still has a handle
 * of, and which the first ones are. Called by MPI_Finalize after the functions
 * of the program's have run; nobody else calls MPI meanwhile.
 */
void madmpi_leaks_report(void);

#endif
