/*
 * MPI_Status and what it is filled from.
 *
 *   MPI_internal   [0] [1]              [2]         [3] [4]
 *                  bytes, 64 bits       cancelled   unused
 *
 * A status is only 4-aligned: the 64 bits go through memcpy. MPI_ERROR is
 * written by multiple completions alone.
 */
#ifndef MADMPI_PT2PT_STATUS_H
#define MADMPI_PT2PT_STATUS_H

#include <stdbool.h>
#include <string.h>

#include <mpi.h>
#include <nmad/sendrecv.h>

struct madmpi_comm;
struct madmpi_signed;
struct madmpi_type;

/* Room for the text of madmpi_outcome_differs(). */
enum { MADMPI_DIFFERS = 256 + MPI_MAX_OBJECT_NAME };

/* How an operation ended. */
struct madmpi_outcome {
	int error;             /* 0, -errno, or a code that the program gave */
	const char *operation; /* the function that began it; NULL: a message */
	/* Both while the request is there, or NULL. */
	const char *why;                   /* of an operation: its error */
	const struct madmpi_signed *unfit; /* of a message with -EPROTOTYPE */
	int source;
	int tag;
	bool is_cancelled;
	MPI_Count bytes; /* received */
	MPI_Count sent;  /* what the message had */
};

static inline void madmpi_status_set_bytes(MPI_Status *s, MPI_Count bytes)
{
	memcpy(&s->MPI_internal[0], &bytes, sizeof(bytes));
}

static inline MPI_Count madmpi_status_bytes(const MPI_Status *s)
{
	MPI_Count bytes;

	memcpy(&bytes, &s->MPI_internal[0], sizeof(bytes));
	return bytes;
}

/* Everything but the error; s may be MPI_STATUS_IGNORE. */
static inline void madmpi_status_fill(MPI_Status *s,
				      const struct madmpi_outcome *o)
{
	if (s == MPI_STATUS_IGNORE)
		return;
	s->MPI_SOURCE = o->source;
	s->MPI_TAG = o->tag;
	s->MPI_internal[2] = o->is_cancelled;
	madmpi_status_set_bytes(s, o->bytes);
}

/* Of nothing: a null request, or a send. */
static inline struct madmpi_outcome madmpi_outcome_empty(void)
{
	return (struct madmpi_outcome){ .source = MPI_ANY_SOURCE,
					.tag = MPI_ANY_TAG };
}

/* Of a receive from MPI_PROC_NULL. */
static inline struct madmpi_outcome madmpi_outcome_proc_null(void)
{
	return (struct madmpi_outcome){ .source = MPI_PROC_NULL,
					.tag = MPI_ANY_TAG };
}

/* Of a receive or a probe that was asked for this source. */
struct madmpi_outcome madmpi_outcome_recv(const struct madmpi_comm *c,
					  int source,
					  const struct nm_sr_status *st);

/* Of a send: only whether it failed. */
struct madmpi_outcome madmpi_outcome_send(const struct nm_sr_status *st);

/* The error as the program sees it: MPI_SUCCESS if there is none. */
int madmpi_outcome_code(const struct madmpi_outcome *o);

/* Writes how the message of o->unfit differs from its receive. */
void madmpi_outcome_differs(struct madmpi_comm *c,
			    const struct madmpi_outcome *o, char *out,
			    size_t room);

/* Reports a failure to the communicator's handler; MPI_SUCCESS if none. */
int madmpi_outcome_raise(struct madmpi_comm *c, const char *function,
			 const struct madmpi_outcome *o);

#endif
