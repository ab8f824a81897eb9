/*
 * Keyvals: the numbers under which programs keep attributes, with functions of
 * theirs for when an object is copied or freed.
 *
 * One mutex is enough for all keyvals and attributes: it is held for a few
 * loads and stores, never while a function of the program's runs.
 */
#ifndef MADMPI_COMM_KEYVAL_H
#define MADMPI_COMM_KEYVAL_H

#include <marcel/marcel.h>
#include <mpi.h>

enum madmpi_keyval_kind {
	MADMPI_KEYVAL_COMM,
	MADMPI_KEYVAL_TYPE,
	MADMPI_KEYVAL_WIN,
};

/* No predefined one has such a number. */
#define MADMPI_KEYVAL_FIRST 1024

struct madmpi_keyval {
	/* -: const while it lives  l: madmpi_keyval_mutex */
	enum madmpi_keyval_kind kind; /* -: */
	int number;                   /* -: */
	int refs;   /* l: the program, each attribute, who uses it */
	bool freed; /* l: by the program */
	union {
		MPI_Comm_copy_attr_function *comm;
		MPI_Type_copy_attr_function *type;
	} copy; /* -: windows are not copied */
	union {
		MPI_Comm_delete_attr_function *comm;
		MPI_Type_delete_attr_function *type;
		MPI_Win_delete_attr_function *win;
	} delete;    /* -: */
	void *extra; /* -: */
};

extern marcel_mutex_t madmpi_keyval_mutex;

/* The mutex is held. NULL: there is none of that number and kind. */
struct madmpi_keyval *madmpi_keyval_find(int number,
					 enum madmpi_keyval_kind kind);

/* The first one from `number` on that the program has not freed, or -1. */
int madmpi_keyval_kept(int number, enum madmpi_keyval_kind *kind);

/* The mutex is held: a reference less. The last one frees it. */
void madmpi_keyval_put(struct madmpi_keyval *k);

struct madmpi_comm;
int madmpi_keyval_refuse(struct madmpi_comm *c, const char *fn, int number);

#endif
