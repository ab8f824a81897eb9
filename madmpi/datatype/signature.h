/*
 * The signature of data: the sequence of its basic elements, wherever they lie
 * in memory. Two sequences fit if they are equal, and elements are equal if
 * their sizes and kinds are (enum madmpi_basic): MPI_INT fits MPI_INT32_T and
 * MPI_INTEGER, MPI_CHAR fits MPI_CHARACTER, MPI_LONG fits MPI_AINT, but not
 * MPI_UNSIGNED_LONG. MPI_BYTE fits only MPI_BYTE, as the standard says. Data
 * that contain MPI_PACKED fit anything: what was packed is not known.
 */
#ifndef MADMPI_DATATYPE_SIGNATURE_H
#define MADMPI_DATATYPE_SIGNATURE_H

#include "datatype/type.h"

/* Travels between processes: fixed sizes, no padding, no pointers. */
struct madmpi_signature {
	uint64_t kinds;     /* a hash of the sequence; 0: fits anything */
	MPI_Count elements; /* basic elements */
	int64_t only;       /* as struct madmpi_kinds has it */
};

/* The end of making a type: sets its kinds, from its runs. */
void madmpi_signature_set(struct madmpi_type *t);

struct madmpi_signature madmpi_signature_of(const struct madmpi_type *t,
					    MPI_Count n);

/*
 * Returns whether n elements of the type begin with what was sent: a message
 * may be shorter than its receive.
 */
bool madmpi_signature_fits(const struct madmpi_signature *sent,
			   const struct madmpi_type *t, MPI_Count n);

/* As text: "3 x MPI_DOUBLE". */
void madmpi_signature_describe(const struct madmpi_signature *s, char *out,
			       size_t room);

#endif
