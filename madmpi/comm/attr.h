/*
 * Attributes: what programs keep with a communicator or a datatype, under
 * keyvals.
 */
#ifndef MADMPI_COMM_ATTR_H
#define MADMPI_COMM_ATTR_H

#include <mpi.h>

struct madmpi_attr;

/* Those of one object; zero at first. */
struct madmpi_attrs {
	struct madmpi_attr *newest; /* madmpi_keyval_mutex */
};

/*
 * An object that has some: exactly one of the two is set. Those of a window
 * are with the communicator that is its own.
 */
struct madmpi_bearer {
	struct madmpi_comm *comm;
	struct madmpi_type *type;
};

/*
 * What programs call. MPI_SUCCESS or what was reported. The program's functions
 * are called with nothing held: they may use attributes themselves.
 */
int madmpi_attr_set(const char *fn, struct madmpi_bearer b, int number,
		    void *value);
int madmpi_attr_find(const char *fn, struct madmpi_bearer b, int number,
		     void *out, int *flag);
int madmpi_attr_remove(const char *fn, struct madmpi_bearer b, int number);

/*
 * The object has been copied; it is about to be freed: in the opposite order of
 * setting. After an error what was not reached yet stays as it is.
 */
int madmpi_attrs_copy(const char *fn, struct madmpi_bearer from,
		      struct madmpi_bearer to);
int madmpi_attrs_delete(const char *fn, struct madmpi_bearer of);

/* The object has gone: what is left has, too. No function is called. */
void madmpi_attrs_forget(struct madmpi_attrs *attrs);

#endif
