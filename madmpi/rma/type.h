/*
 * The target's datatype, as a request has it.
 */
#ifndef MADMPI_RMA_TYPE_H
#define MADMPI_RMA_TYPE_H

#include "datatype/type.h"
#include "rma/wire.h"

/*
 * The predefined type that all elements of t are of, or NULL: there are several
 * of them, or none.
 */
struct madmpi_type *madmpi_rma_element(struct madmpi_type *t);

/* Two handles that say which one it is, and back. NULL: they say nothing. */
void madmpi_rma_tell_element(struct madmpi_type *elem, uint32_t out[2]);
struct madmpi_type *madmpi_rma_told_element(const uint32_t in[2]);

/*
 * Describe t after `room` bytes: memory for both, to be freed, and the bytes of
 * the description in *bytes, a multiple of 16. NULL: no memory.
 */
void *madmpi_rma_describe(const struct madmpi_type *t, size_t room,
			  size_t *bytes);

/*
 * A type that has the layout of the one described, and nothing else, to be
 * freed; NULL: that is no description. 0 or -ENOMEM.
 */
int madmpi_rma_described(const void *from, size_t bytes,
			 struct madmpi_type **out);

#endif
