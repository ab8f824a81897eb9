/*
 * A collective call and the forms it has. Each collective operation has one
 * function that checks the arguments and turns them into a prepared call, and
 * one that runs the steps of it. What differs between the forms is here alone:
 *
 *     blocking   run by the calling thread, from the stack: nothing is copied
 */
#ifndef MADMPI_COLL_FORMS_H
#define MADMPI_COLL_FORMS_H

#include "coll/coll.h"

/*
 * What does not matter in this process, such as the root's side elsewhere, is
 * zero. An operation on one buffer, such as MPI_Bcast, has it in `recv`.
 */
struct madmpi_collective {
	const char *function;
	struct madmpi_comm *comm;
	/* The steps, also of those that have nothing to do. */
	void (*run)(struct madmpi_coll *c, const struct madmpi_collective *x);
	struct madmpi_parts send, recv;
	struct madmpi_op *op;
	int root;
};

/*
 * All zero but these: piece by piece, as one large assignment is made by a
 * string instruction, which takes longer than what is prepared so.
 */
static inline void madmpi_collective_set(
	struct madmpi_collective *x, const char *function,
	void (*run)(struct madmpi_coll *c, const struct madmpi_collective *x))
{
	x->function = function;
	x->comm = NULL;
	x->run = run;
	x->send = x->recv = (struct madmpi_parts){ .base = NULL };
	x->op = NULL;
	x->root = 0;
}

/* MPI_SUCCESS, or the class of the first failure after it was reported. */
int madmpi_collective_run(const struct madmpi_collective *x);

#endif
