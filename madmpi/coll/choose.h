/*
 * The table of algorithms: what there is of each collective operation, when it
 * is used, and what it costs. MADMPI_COLL_<OPERATION> forces one where there is
 * a choice; it has to be the same in all processes.
 *
 * Costs are formulas, which tests/madmpi/coll/growth.c evaluates and holds
 * against what the algorithms do with up to 1,024 processes:
 *
 *   p      processes
 *   h      hosts: what happens in each of them is a step, by its memory
 *   n      bytes: of the data, or where these have a part for or from each
 *          process, as in an all-gather, of such a part
 *   log x  of 2, rounded up
 *   e      1, but 0 if p is a power of two
 *   x / y  rounded up: messages in flight at a time, or blocks
 *
 * A step is what a message takes, from when both of its ends have come to it.
 * Messages and bytes are those of the process that has most of them, in the
 * direction in which it has more. Through memory that all share there go no
 * messages: a step is what one waits for another, and bytes are what a process
 * writes there or reads, of which it has more.
 */
#ifndef MADMPI_COLL_CHOOSE_H
#define MADMPI_COLL_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>

#include <base/option.h>

struct madmpi_algorithm {
	const char *operation, *name;
	const char *when; /* without an option */
	const char *steps, *messages, *bytes;
	const char *only; /* when if forced; NULL: always */
};

extern const struct madmpi_algorithm madmpi_algorithms[];
extern const size_t madmpi_algorithms_n;

/* Whether the memory of a node is of any use. */
bool madmpi_choose_node(void);

/* MADMPI_COLL_...: read by MPI_Init. */
extern const struct base_option_table madmpi_coll_options;

#endif
