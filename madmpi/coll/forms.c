/*
 * The forms of a collective call.
 */
#include "coll/forms.h"

int madmpi_collective_run(const struct madmpi_collective *x)
{
	struct madmpi_coll c;

	madmpi_coll_begin(&c, x->function, x->comm);
	x->run(&c, x);
	return madmpi_coll_end(&c);
}
