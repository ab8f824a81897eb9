/*
 * MADMPI_CHECK=2: before a collective operation moves anything, its processes
 * tell each other what they call, and do nothing if that does not fit together.
 */
#ifndef MADMPI_COLL_COMPARE_H
#define MADMPI_COLL_COMPARE_H

#include "coll/forms.h"

/*
 * As steps of the operation that has begun. False: no process is to make any
 * other one; c->error and c->why say what does not fit.
 */
bool madmpi_coll_compare(struct madmpi_coll *c,
			 const struct madmpi_collective *x) BASE_COLD;

/*
 * The same of an operation that is no prepared call, of which only the function
 * is compared; true if nothing is to be.
 */
bool madmpi_coll_compare_function(struct madmpi_coll *c);

#endif
