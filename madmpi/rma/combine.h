/*
 * Combining what comes with what is there.
 */
#ifndef MADMPI_RMA_COMBINE_H
#define MADMPI_RMA_COMBINE_H

#include <nmad/data.h>

#include "coll/op.h"
#include "datatype/type.h"

/* What may be accumulated: predefined operations; and the two of their own. */
struct madmpi_op *madmpi_rma_replace(void);
struct madmpi_op *madmpi_rma_no_op(void);
bool madmpi_rma_op_takes(const struct madmpi_op *op,
			 const struct madmpi_type *elem);

/*
 * The elements of `there`, bytes [0, bytes), become there op in; `in` is packed
 * (not looked at by MPI_NO_OP), and so is what was there before, if it is
 * asked for. Whoever calls has seen to it that nobody else does it meanwhile.
 */
void madmpi_rma_combine(const struct madmpi_op *op, struct madmpi_type *elem,
			const void *in, const struct nm_data *there,
			size_t bytes, void *before);

/* One element, packed, becomes `new` if it is `compare`. */
void madmpi_rma_swap(struct madmpi_type *elem, const void *compare,
		     const void *new, const struct nm_data *there,
		     void *before);

#endif
