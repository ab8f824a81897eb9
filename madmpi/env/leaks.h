/*
 * MADMPI_LEAKS: what the program has made and not freed.
 */
#ifndef MADMPI_ENV_LEAKS_H
#define MADMPI_ENV_LEAKS_H

#include <stdbool.h>

/* Whether it is set. */
bool madmpi_leaks_wanted(void);

/*
 * Says on stderr how many objects of each kind the program still has a handle
 * of, and which the first ones are. Called at the end of the world model or the
 * last session, whichever is later, after the functions of the program's have
 * run; nobody else calls MPI meanwhile.
 */
void madmpi_leaks_report(void);

/* The same of the communicators and groups of one session that ends. */
struct madmpi_session;
void madmpi_leaks_session(struct madmpi_session *s);

#endif
