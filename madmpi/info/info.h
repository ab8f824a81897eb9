/*
 * Info objects: keys with values, numbered in the order in which the keys were
 * set first; when a key is deleted, the last key gets its number. They exist
 * before MPI_Init and after MPI_Finalize.
 */
#ifndef MADMPI_INFO_INFO_H
#define MADMPI_INFO_INFO_H

#include <stddef.h>

#include <mpi.h>

#include "core/object.h"

/*
 * The object behind a handle, or NULL: no info object, which MPI_INFO_NULL is
 * neither. What MPI_INFO_ENV says is the library's: it cannot be changed.
 */
struct madmpi_info *madmpi_info_of(MPI_Info handle);

/* What it holds, as text; false: it is the library's own. */
bool madmpi_info_describe(struct madmpi_object *o, char *out, size_t room);

/*
 * Check an info argument, which may be MPI_INFO_NULL: then *out is NULL.
 * MPI_SUCCESS or the error, reported for `comm` or NULL.
 */
struct madmpi_comm;
int madmpi_check_info(struct madmpi_comm *comm, const char *fn, MPI_Info info,
		      struct madmpi_info **out);

/*
 * The alignment of memory that the hint mpi_minimum_memory_alignment asks for,
 * or of a cache line, if that is more or the value is not a power of two.
 */
size_t madmpi_info_alignment(MPI_Info info);

#endif
