/*
 * A collective call and the forms it has. Each collective operation has one
 * function that checks the arguments and turns them into a prepared call, and
 * one that runs the steps of it. What differs between the forms is here alone:
 *
 *     blocking       run by the calling thread, from its stack; nothing is
 *                    allocated or copied
 *     non-blocking   copied into the memory of a request, and run in the
 *                    background; its number is taken in the call
 *     persistent     the same, but run each time that it is started; it has
 *                    its number for good
 *
 * What is in the background holds the types and the operation, which may be
 * freed meanwhile, and has its own copies of the arrays.
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

/*
 * MPI_SUCCESS, or the class of what could not be done here, after it was
 * reported. A failure of the operation is told to whoever waits for it.
 */
int madmpi_collective_start(const struct madmpi_collective *x,
			    MPI_Request *request);

/*
 * The same of a persistent one. A process without memory does not tell the
 * others: they make no step before they start theirs, and must not start it.
 */
int madmpi_collective_init(const struct madmpi_collective *x, MPI_Info info,
			   MPI_Request *request);

#endif
