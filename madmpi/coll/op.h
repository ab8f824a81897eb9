/*
 * Reduction operations.
 */
#ifndef MADMPI_COLL_OP_H
#define MADMPI_COLL_OP_H

#include <mpi.h>

#include "core/object.h"
#include "datatype/type.h"

/* inout[i] = in[i] op inout[i] for n elements of one predefined type. */
typedef void (*madmpi_loop_fn)(const void *in, void *inout, MPI_Count n);

struct madmpi_op {
	/* -: const once published */
	struct madmpi_object object;
	bool commutes;                   /* -: */
	const char *name;                /* -: of a predefined one, else NULL */
	const madmpi_loop_fn *loops;     /* -: of a predefined one, by basic */
	MPI_User_function *user;         /* -: one of these two otherwise */
	MPI_User_function_c *user_large; /* -: */
};

void madmpi_op_init(void);
void madmpi_op_exit(void);

/* The object behind a handle, or NULL if it is not an operation. */
struct madmpi_op *madmpi_op_of(MPI_Op handle);

/* Not counted for predefined ones. */
void madmpi_op_get(struct madmpi_op *op);
void madmpi_op_put(struct madmpi_op *op);

/* True if the operation is defined on this type. */
bool madmpi_op_takes(const struct madmpi_op *op, const struct madmpi_type *t);

/* inout = in op inout; the operation takes the type. May run user code. */
void madmpi_op_apply(const struct madmpi_op *op, const void *in, void *inout,
		     MPI_Count n, struct madmpi_type *t);

/* MPI_MINLOC or MPI_MAXLOC on pairs of type MADMPI_VALUE_INDEX. */
void madmpi_pairs_apply(const struct madmpi_op *op, const char *in, char *inout,
			MPI_Count n, const struct madmpi_type *t);

/* The loops of each predefined operation, by enum madmpi_basic. */
extern const madmpi_loop_fn madmpi_loops_sum[], madmpi_loops_prod[],
	madmpi_loops_min[], madmpi_loops_max[], madmpi_loops_band[],
	madmpi_loops_bor[], madmpi_loops_bxor[], madmpi_loops_land[],
	madmpi_loops_lor[], madmpi_loops_lxor[], madmpi_loops_minloc[],
	madmpi_loops_maxloc[], madmpi_loops_none[];

#endif
