/*
 * Where the process stands between the beginning and the end of MPI.
 */
#ifndef MADMPI_CORE_STATE_H
#define MADMPI_CORE_STATE_H

#include <stdbool.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <base/option.h>

enum madmpi_phase {
	MADMPI_NEW,
	MADMPI_STARTING,
	MADMPI_UP,
	MADMPI_STOPPING,
	MADMPI_DOWN,
	MADMPI_FORKED, /* a child of fork() while it was up */
};

/*
 * Of all of MPI, which is up while the world model or a session is, and of the
 * world model: MPI_Init to MPI_Finalize. Written by the thread that brings it
 * up or down, and in a forked child. No order hangs on it: the program orders
 * its other threads' calls itself.
 */
struct madmpi_state {
	ATOMIC(int) phase; /* a: enum madmpi_phase */
	ATOMIC(int) world; /* a: the same, but for MADMPI_FORKED */
};

extern struct madmpi_state madmpi_state;

extern const struct base_option_table madmpi_options;

/* Where the settings are, from the lowest module up. */
enum madmpi_module {
	MADMPI_OF_MARCEL,
	MADMPI_OF_PIOMAN,
	MADMPI_OF_NMAD,
	MADMPI_OF_MADMPI,
	MADMPI_MODULES
};

/* The i-th table of the module; NULL: it has no more. At any time. */
const struct base_option_table *madmpi_settings(enum madmpi_module module,
						size_t i);

/*
 * MADMPI_CHECK: whether functions look at their arguments; and processes at
 * those of each other, and at the types of messages. -: after init
 */
extern bool madmpi_checks, madmpi_checks_all;

/* Read the settings, and print them if that is set. 0 or -EINVAL. */
int madmpi_options_load(void);

/*
 * MADMPI_INITIAL_ERRHANDLER: 0 fatal, 1 abort, 2 return; at any time. What is
 * no such word MPI_Init refuses; until then it is 0.
 */
int madmpi_initial_errhandler(void);

/*
 * Says that `function` may not be called now, and ends the process; waits for
 * ever if another thread ends it already.
 */
void madmpi_enter_refuse(const char *function) BASE_NORETURN BASE_COLD;

/*
 * End the whole job with this exit code, after a line on stderr. Where there
 * is no job it ends the process.
 */
void madmpi_kill(int code, const char *why) BASE_NORETURN BASE_COLD;

#endif
