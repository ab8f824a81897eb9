/*
 * Buffered sends: the message is copied into memory that the program has
 * attached, and travels from there.
 */
#ifndef MADMPI_PT2PT_BSEND_H
#define MADMPI_PT2PT_BSEND_H

#include <base/list.h>
#include <marcel/marcel.h>
#include <mpi.h>

/*
 * A place for buffers: of the process, or of a communicator. The memory is used
 * as a ring, as the standard's model describes it: messages lie in it in the
 * order of their sends, and room comes back from the oldest on.
 *
 *      |....|oldest|   |   |youngest|......|
 *      base                               base + size
 */
struct madmpi_buffer {
	marcel_mutex_t mutex;
	marcel_cond_t dropped;     /* an awaited message has been taken out */
	unsigned char *base;       /* l: NULL: none; or MPI_BUFFER_AUTOMATIC */
	MPI_Count size;            /* l: */
	struct base_list messages; /* l: oldest first */
	uint64_t nput, ndropped;   /* l: messages, ever */
};

struct madmpi_message;

void madmpi_buffer_init(struct madmpi_buffer *b);

/* Blocks until what is in it has left; nobody has a buffer there then. */
void madmpi_buffer_empty(struct madmpi_buffer *b);
void madmpi_buffer_exit(struct madmpi_buffer *b);

/* True if there is memory; *size of it. The process's place for NULL. */
bool madmpi_buffer_is_attached(struct madmpi_buffer *b, MPI_Count *size);

/*
 * How many messages in it have not left. With `cancel` they are given up, so
 * that they leave whether or not they are received. The process's for NULL.
 */
int madmpi_buffer_pending(struct madmpi_buffer *b, bool cancel);

/* The place of the process: made with the network, emptied at each end of MPI.
 */
void madmpi_bsend_init_process(void);
void madmpi_bsend_empty_process(void);
void madmpi_bsend_exit_process(void);

/*
 * Send it so, to a peer that is not MPI_PROC_NULL: by the communicator's buffer
 * if it has one. MPI_SUCCESS, or what was reported: MPI_ERR_BUFFER if there is
 * no room, and none comes back within a second.
 */
int madmpi_bsend_message(const char *fn, const struct madmpi_message *m);

#endif
