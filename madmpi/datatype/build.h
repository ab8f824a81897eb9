/*
 * Making a type from a list of parts.
 */
#ifndef MADMPI_DATATYPE_BUILD_H
#define MADMPI_DATATYPE_BUILD_H

#include "datatype/type.h"

/* `count` elements of a type in a row, the first at `disp`. */
struct madmpi_part {
	MPI_Count disp;
	MPI_Count count;
	struct madmpi_type *type;
};

/* An empty type with one reference, or NULL: no memory. */
struct madmpi_type *madmpi_type_new(void);

void madmpi_type_fill_predefined(void);

/*
 * The type of these parts, which lie in this order in messages. `pad`: round
 * the extent up to the alignment of the elements, as a struct of C does.
 * 0; -ENOMEM; -EOVERFLOW: sizes do not fit in 63 bits; -ELOOP: too deep.
 */
int madmpi_type_build(const struct madmpi_part *parts, MPI_Count n, bool pad,
		      struct madmpi_type **out);

/* n blocks of `block` elements, their beginnings `stride` bytes apart. */
int madmpi_type_build_vector(MPI_Count n, MPI_Count block, MPI_Count stride,
			     struct madmpi_type *type,
			     struct madmpi_type **out);

/* The same data between other bounds. */
int madmpi_type_build_resized(struct madmpi_type *type, MPI_Count lb,
			      MPI_Count extent, struct madmpi_type **out);

/*
 * The end of a constructor: report rc < 0 of a build, and otherwise give the
 * new type its contents, NULL meaning no memory, and the program its handle.
 */
int madmpi_type_finish(const char *fn, int rc, struct madmpi_type *t,
		       struct madmpi_contents *contents, MPI_Datatype *newtype);

#endif
