/*
 * What every generated function does: ask whether MPI runs, and bring results
 * of 64 bits into an int.
 */
#ifndef MADMPI_CORE_ENTER_H
#define MADMPI_CORE_ENTER_H

#include <base/atomic.h>
#include <base/compiler.h>
#include <mpi.h>

#include "core/state.h"

/*
 * Between MPI_Init and MPI_Finalize this is one load. Outside it says which
 * function was called too early, too late or in a forked child, and ends the
 * process with a nonzero exit code. If another thread is known to be in exit(),
 * the caller waits there for ever instead, without a message.
 */
static inline void madmpi_enter(const char *function)
{
	if (unlikely(load_relaxed(&madmpi_state.phase) != MADMPI_UP))
		madmpi_enter_refuse(function);
}

/* The exported functions, generated: what number i of a trace is called. */
extern const char *const madmpi_function_names[];
extern const unsigned madmpi_functions;

/* A result that does not fit is MPI_UNDEFINED, as the standard says here. */
static inline int madmpi_narrow_undefined(const char *function, MPI_Count value,
					  int *out)
{
	(void)function;
	*out = value == (int)value ? (int)value : MPI_UNDEFINED;
	return MPI_SUCCESS;
}

/* A result that does not fit is the error MPI_ERR_VALUE_TOO_LARGE. */
int madmpi_narrow_fit(const char *function, MPI_Count value, int *out);

#endif
