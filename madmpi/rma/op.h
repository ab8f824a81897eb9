/*
 * Operations, at their origin.
 */
#ifndef MADMPI_RMA_OP_H
#define MADMPI_RMA_OP_H

#include "coll/op.h"
#include "rma/win.h"
#include "rma/wire.h"

/* So many elements of a type, somewhere. */
struct madmpi_side {
	const void *buf; /* not looked at of the target */
	MPI_Count count;
	struct madmpi_type *type;
};

/* What a call asks for, once its arguments are objects. */
struct madmpi_rma_call {
	const char *fn;
	struct madmpi_win *win;
	enum madmpi_rma_kind kind;
	int target;
	MPI_Aint disp;              /* bytes from the window's base, or an
				     * address */
	MPI_Count bytes;            /* that are moved */
	struct madmpi_side origin;  /* what goes there; of a get: nothing */
	struct madmpi_side result;  /* what comes back, or nothing */
	struct madmpi_side there;   /* the target's */
	const void *compare;        /* SWAP */
	const struct madmpi_op *op; /* of those that combine */
	MPI_Op op_handle;           /* the same */
	struct madmpi_type *elem;   /* the same */
};

void madmpi_rma_init(void);
void madmpi_rma_exit(void);

/*
 * Do it, or begin to. With `request` it gets one, which is complete when the
 * operation is here. MPI_SUCCESS, or the class of what was reported.
 */
int madmpi_rma_start(const struct madmpi_rma_call *c, MPI_Request *request);

/* direct.c: all of it, by this process. */
int madmpi_rma_direct(const struct madmpi_rma_call *c);

/* The same, by the kernel. False: it was not done, or not all. */
bool madmpi_rma_reach(const struct madmpi_rma_call *c);

/* Give back the operations that are over. */
void madmpi_rma_reap(struct madmpi_win *w);

/*
 * Ask a target for something that it answers with a word: begun, and ended. Not
 * to be moved between. 0, and the word; or -errno.
 */
struct madmpi_ask {
	struct madmpi_rma_head head;
	madmpi_rma_word_t word;
	struct nm_sr_request send, recv;
};

void madmpi_ask_begin(struct madmpi_win *w, struct madmpi_ask *a, int target,
		      enum madmpi_rma_kind kind, uint64_t count);
int madmpi_ask_end(struct madmpi_ask *a, madmpi_rma_word_t *word);

#endif
