/*
 * The table of algorithms: what there is of each collective operation, when it
 * is used, and what it costs. MADMPI_COLL_<OPERATION> forces one where there is
 * a choice; it has to be the same in all processes.
 */
#ifndef MADMPI_COLL_CHOOSE_H
#define MADMPI_COLL_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>

#include <base/option.h>

struct madmpi_algorithm {
	const char *operation, *name;
	const char *when; /* without an option */
	const char *cost; /* p processes, n bytes */
	const char *only; /* when if forced; NULL: always */
};

extern const struct madmpi_algorithm madmpi_algorithms[];
extern const size_t madmpi_algorithms_n;

/* MADMPI_COLL_...: read by MPI_Init. */
extern const struct base_option_table madmpi_coll_options;

#endif
