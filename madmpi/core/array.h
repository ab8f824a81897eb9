/*
 * An array of counts or displacements as the caller gave it: of int, or of the
 * 64-bit types of the large-count functions. Reading it element by element
 * spares a widened copy and the need to know its length beforehand.
 */
#ifndef MADMPI_CORE_ARRAY_H
#define MADMPI_CORE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

_Static_assert(sizeof(MPI_Aint) == sizeof(MPI_Count),
	       "arrays of MPI_Aint and of MPI_Count are read alike");

struct madmpi_array {
	const void *at; /* NULL if the caller gave NULL */
	bool is_wide;
};

static inline struct madmpi_array madmpi_array_int(const int *at)
{
	return (struct madmpi_array){ .at = at, .is_wide = false };
}

static inline struct madmpi_array madmpi_array_count(const MPI_Count *at)
{
	return (struct madmpi_array){ .at = at, .is_wide = true };
}

static inline MPI_Count madmpi_array_get(struct madmpi_array a, size_t i)
{
	return a.is_wide ? ((const MPI_Count *)a.at)[i]
			 : ((const int *)a.at)[i];
}

#endif
