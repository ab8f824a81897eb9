/*
 * MPI_T, what tools may ask: settings are control variables, counters are
 * performance variables, what nmad's watcher is told of are events, and each
 * module of the libraries is a category of all three. All exists before
 * MPI_Init and after MPI_Finalize; errors are returned and no handler is
 * called.
 *
 * What is asked for by an index is a fact of the process: tables of settings
 * and of counters never change. Handles are objects from pools, so one that was
 * freed is found out.
 */
#ifndef MADMPI_TOOL_TOOL_H
#define MADMPI_TOOL_TOOL_H

#include <stdbool.h>
#include <stddef.h>

#include <base/option.h>
#include <mpi.h>

#include "core/state.h"

/* MPI_SUCCESS, or MPI_T_ERR_NOT_INITIALIZED. */
int madmpi_tool_check(void);

/*
 * As the standard returns strings: up to *len - 1 characters and a zero to
 * `out`, the length with the zero to *len. Without `out` or with *len 0 the
 * length only; without `len` nothing.
 */
void madmpi_tool_text(const char *text, char *out, int *len);

/* *out = value, unless the caller does not ask. */
static inline void madmpi_tool_tell(int *out, int value)
{
	if (out != NULL)
		*out = value;
}

/* The names of the modules, which are the categories. */
const char *madmpi_tool_module(enum madmpi_module m);

/* --- settings: cvar.c --- */

/* The settings of the modules before m; of all for MADMPI_MODULES. */
int madmpi_tool_settings(enum madmpi_module m);

/* The setting of this index, or NULL. */
const struct base_option *madmpi_tool_setting(int index);

/* Whether settings may be written when tools first ask: for ever. */
void madmpi_tool_cvar_init(void);

/* --- counters: pvar.c --- */

/* As those of settings. */
int madmpi_tool_counters(enum madmpi_module m);

/* --- types of events: event.c --- */

/* As those of settings. */
int madmpi_tool_events(enum madmpi_module m);

#endif
