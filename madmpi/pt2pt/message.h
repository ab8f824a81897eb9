/*
 * The arguments that all point-to-point calls share, checked and turned into
 * objects.
 */
#ifndef MADMPI_PT2PT_MESSAGE_H
#define MADMPI_PT2PT_MESSAGE_H

#include "comm/comm.h"
#include "core/state.h"
#include "datatype/type.h"
#include "pt2pt/signed.h"
#include "pt2pt/tag.h"

enum madmpi_way {
	MADMPI_SEND,
	MADMPI_RECV,
};

struct madmpi_message {
	const void *buf;
	MPI_Count count;
	int peer; /* a rank, MPI_PROC_NULL, or MPI_ANY_SOURCE */
	int tag;
	struct madmpi_comm *comm;
	struct madmpi_type *type;
};

/*
 * Fill *out. MPI_SUCCESS, or the class of the first wrong argument after its
 * error handler returned: communicator, count, rank, tag, datatype, buffer.
 */
int madmpi_message_open(const char *function, enum madmpi_way way,
			const void *buf, MPI_Count count, MPI_Datatype datatype,
			int peer, int tag, MPI_Comm comm,
			struct madmpi_message *out);

/* The same for calls without data. */
int madmpi_message_envelope(const char *function, enum madmpi_way way, int peer,
			    int tag, MPI_Comm comm, struct madmpi_message *out);

/* Whether this buffer may be used with so many of the type. */
int madmpi_check_buffer(const char *function, struct madmpi_comm *c,
			const char *name, const void *buf, MPI_Count count,
			const struct madmpi_type *t);

/* A datatype that may be used for communication. */
int madmpi_check_type(const char *function, struct madmpi_comm *c,
		      const char *name, MPI_Datatype datatype,
		      struct madmpi_type **out);

int madmpi_check_count(const char *function, struct madmpi_comm *c,
		       const char *name, MPI_Count count);

/* The communicator behind a handle. */
int madmpi_check_comm(const char *function, MPI_Comm comm,
		      struct madmpi_comm **out);

/*
 * What is sent lies in packed memory from now on, so that its buffer may be
 * received into. It is the caller's, in *copy, to be freed when the message has
 * left; NULL if there is nobody to send to. 0 or -ENOMEM.
 */
int madmpi_message_pack(struct madmpi_message *m, void **copy);

/*
 * Describe the message to nmad. With MADMPI_CHECK=2 its signature is that of
 * the message `as`, of which m is a packed copy, or m itself.
 */
static inline struct nm_data
madmpi_message_data_as(const struct madmpi_message *m,
		       const struct madmpi_message *as,
		       struct madmpi_signed *to)
{
	if (unlikely(madmpi_checks_all))
		return madmpi_signed_data(to, m->buf, m->count, m->type,
					  as->count, as->type);
	return madmpi_layout_data(&to->layout, m->buf, m->count, m->type);
}

static inline struct nm_data madmpi_message_data(const struct madmpi_message *m,
						 struct madmpi_signed *to)
{
	return madmpi_message_data_as(m, m, to);
}

#endif
