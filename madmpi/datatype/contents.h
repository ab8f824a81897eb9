/*
 * With which call a type was made: what MPI_Type_get_envelope and
 * MPI_Type_get_contents tell the program.
 *
 * Arguments are kept in the order in which the standard lists them. What is a
 * count, or an address, is an integer, or an address, of the form with int,
 * and a large count of the form with MPI_Count.
 */
#ifndef MADMPI_DATATYPE_CONTENTS_H
#define MADMPI_DATATYPE_CONTENTS_H

#include <stdbool.h>

#include <mpi.h>

#include "core/array.h"

struct madmpi_type;

/* Const once its type is published. One piece of memory. */
struct madmpi_contents {
	int combiner;
	bool is_large; /* made by a function of the large-count form */
	MPI_Count nints, naddrs, ncounts, ntypes;
	int *ints;
	MPI_Aint *addrs;
	MPI_Count *counts;
	struct madmpi_type **types; /* each holds a reference */
};

/* How many arguments there are of each sort. */
struct madmpi_arguments {
	MPI_Count ints;   /* that are int in both forms */
	MPI_Count counts; /* int, or MPI_Count */
	MPI_Count addrs;  /* MPI_Aint, or MPI_Count */
	MPI_Count types;
};

/* Room for these, to be filled by the functions below; NULL: no memory. */
struct madmpi_contents *madmpi_contents_new(int combiner, bool is_large,
					    struct madmpi_arguments n);

void madmpi_contents_int(struct madmpi_contents *c, int value);
void madmpi_contents_count(struct madmpi_contents *c, MPI_Count value);
void madmpi_contents_addr(struct madmpi_contents *c, MPI_Count value);
void madmpi_contents_type(struct madmpi_contents *c, struct madmpi_type *t);

/* The first n of an array each. */
void madmpi_contents_ints(struct madmpi_contents *c, const int *a, MPI_Count n);
void madmpi_contents_counts(struct madmpi_contents *c, struct madmpi_array a,
			    MPI_Count n);
void madmpi_contents_addrs(struct madmpi_contents *c, const MPI_Count *a,
			   MPI_Count n);

/* With the references to types, or without. NULL is nothing. */
void madmpi_contents_free(struct madmpi_contents *c);
void madmpi_contents_forget(struct madmpi_contents *c);

#endif
