/*
 * Operations in the background: a user thread runs what the blocking form of
 * the operation runs, and its end completes a request. What such a thread waits
 * for comes as it does for every other one, so the operation goes on whatever
 * the program's threads do. It begins on an idle VP; if there is none, in the
 * place of the caller, who goes on when it first waits. Where all compute, one
 * of them makes way for it at once, for a short time: it is favoured whenever
 * it is woken (marcel_favour_woken()), and real-time where it cannot begin at
 * once.
 *
 * A thread costs less than a message, and nothing of an operation has to be
 * written twice: no list of steps, no states. Functions of the program's, such
 * as reductions, have a full stack and may do what they like.
 */
#ifndef MADMPI_CORE_BACKGROUND_H
#define MADMPI_CORE_BACKGROUND_H

#include <base/atomic.h>
#include <marcel/marcel.h>

#include "pt2pt/request.h"

/*
 * Begins the memory of the operation. The caller sets `run` and of `op` what
 * `release` is, and whether it is collective; the rest is zero.
 */
struct madmpi_background {
	/* -: const once started  t: the thread's, then the request's */
	struct madmpi_operation op;
	/* 0, -errno or a class, which whoever waits is told of. */
	int (*run)(struct madmpi_background *b); /* -: */
	/* -: that ends with it, or NULL: `run` sees to that, and to b */
	struct nm_sr_request *waited;
	int error;       /* t: what `run` returned */
	const char *why; /* t: what `run` has to say about that, or NULL */
};

static inline struct madmpi_background *
madmpi_background_of(struct madmpi_operation *op)
{
	return container_of(op, struct madmpi_background, op);
}

/*
 * Start it. MPI_SUCCESS, and the operation is the request's; or the class of
 * what was reported, and it has been released.
 */
int madmpi_background_start(const char *fn, struct madmpi_comm *c,
			    struct madmpi_background *b, MPI_Request *request);

/* The same of a persistent one, which MPI_Start starts. */
int madmpi_background_repeat(const char *fn, struct madmpi_comm *c,
			     struct madmpi_background *b, MPI_Request *request);

/* Run it, whatever it is a part of. 0, or -errno: it does not run. */
int madmpi_background_run(struct madmpi_background *b);

/* Whether one of the threads runs the operation of this request. */
bool madmpi_background_runs(const struct madmpi_request *r);

/*
 * Surround calls of the program's functions that one of the threads may make:
 * such a function may wait for anything, and the program may wake it. The first
 * returns false if there are no threads; then the second is not called.
 */
bool madmpi_background_call(void);
void madmpi_background_called(void);

/*
 * Only for MPI_Finalize. Returns false if each of the threads waits for a
 * message or for another one of them. One of them may have been woken since.
 */
bool madmpi_background_works(void);

void madmpi_background_init(void);

/* All requests are complete: wait until no thread uses nmad any more. */
void madmpi_background_exit(void);

#endif
