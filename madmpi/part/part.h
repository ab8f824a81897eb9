/*
 * Partitioned communication: one message whose parts become ready one after
 * the other, and arrive so. Its two ends find each other once, when their
 * requests are made; the parts of every round travel without matching by the
 * program's tags.
 *
 *   Psend_init     terms ------------------->    Precv_init
 *                  partitions, bytes, tag t
 *   Pready(j)      message t + j ----------->    straight to bytes
 *                                                [j * bytes, (j + 1) * bytes)
 *
 * Both go in a session of the communicator's that is opened when the first
 * such request is made. There the terms have the program's tag, so that ends
 * meet in the order in which they are made; the messages have numbers above,
 * which the sender draws: after 2^31 of them from one process in one
 * communicator they come again. A partition of the sender's is one message,
 * whatever the partitions of the receiver's are: that one has arrived when all
 * messages have that reach into it. Messages of a number come in order, so a
 * round that begins early never mixes with the last one.
 */
#ifndef MADMPI_PART_PART_H
#define MADMPI_PART_PART_H

#include <base/list.h>

#include "core/background.h"

#define MADMPI_PART_MESSAGES 0x80000000u /* tags from here on */

/* What the sender tells; little-endian. */
struct madmpi_part_wire {
	uint64_t bytes;      /* of a partition */
	uint32_t partitions; /* how many */
	uint32_t tag;        /* of the first message */
	/* With MADMPI_CHECK=2, of all partitions: */
	uint64_t kinds, elements, only; /* struct madmpi_signature */
};

/* Told, or awaited. */
struct madmpi_part_terms {
	/* -: const once posted  n: nmad's while it is posted  l: lock */
	struct nm_sr_request nm;      /* n: */
	struct madmpi_part_wire wire; /* n: */
	struct base_link link;        /* l: of receives, until they are known */
	struct madmpi_comm *comm;     /* -: if abandoned: a reference */
	bool is_abandoned;            /* l: the request has gone before */
	bool is_awaited;              /* l: a thread waits for them */
};

struct madmpi_part;

/* A partition of the sender's, on either side. */
struct madmpi_part_message {
	/* n: nmad's while it is posted */
	struct nm_sr_request nm;     /* n: */
	struct madmpi_layout layout; /* n: */
	struct madmpi_part *of;      /* -: */
	ATOMIC(uint32_t)
	round; /* a: of a send: when it was ready last; the
		* program orders the rounds */
};

struct madmpi_part {
	/* -: const once made  o: who starts it, which the program orders
	 * c: of the functions that nmad calls  k: const once known */
	struct madmpi_background b; /* -: its op; runs where terms are late */
	enum madmpi_way way;        /* -: */
	struct madmpi_message m;  /* -: all partitions; its type: a reference */
	struct madmpi_signed got; /* k: of a receive, with MADMPI_CHECK=2 */
	int partitions;           /* -: on this side */
	MPI_Count bytes;          /* -: of one */
	struct madmpi_part_terms *terms; /* -: owned; NULL: with nobody */
	struct nm_sr_request *waited;    /* -: the request's */
	struct nm_sr_request known;      /* a: ends when the next are there */
	nm_tag_t tag;                    /* k: of the first message */
	int nmessages;                   /* k: */
	MPI_Count message_bytes;         /* k: of each */
	struct madmpi_part_message *message; /* k: owned */
	uint32_t round;                      /* o: */
	int left;  /* o, then c: messages that are not over */
	int error; /* o, then c: of the first that failed */
};

static inline struct madmpi_part *
madmpi_part_of(const struct madmpi_operation *op)
{
	return container_of((struct madmpi_operation *)op, struct madmpi_part,
			    b.op);
}

/* The partitioned operation behind a handle, or NULL and *rc. */
struct madmpi_part *madmpi_part_of_request(const char *fn, enum madmpi_way way,
					   MPI_Request handle,
					   struct madmpi_request **r, int *rc);

/* MPI_SUCCESS, or the error: there is no such partition. */
int madmpi_part_check(const char *fn, const struct madmpi_part *p,
		      int partition);

/* There are so many messages, of so many bytes each. 0 or -ENOMEM. */
int madmpi_part_agree(struct madmpi_part *p, int n, MPI_Count bytes,
		      nm_tag_t tag);

/*
 * The data of message j: what of it lies within the buffer. A layout of the
 * message's may be in use until it is over.
 */
struct nm_data madmpi_part_data(const struct madmpi_part *p,
				struct madmpi_part_message *msg, int j);

/* The tag of message j. */
static inline nm_tag_t madmpi_part_tag(const struct madmpi_part *p, int j)
{
	return MADMPI_PART_MESSAGES | (p->tag + (nm_tag_t)j);
}

/* What nmad calls when a message is over; arg: the message. */
void madmpi_part_over(struct nm_sr_request *req, void *arg);

/* Begin a round of either side. */
int madmpi_part_start_send(const char *fn, struct madmpi_operation *op,
			   struct madmpi_request *r);
int madmpi_part_start_recv(const char *fn, struct madmpi_operation *op,
			   struct madmpi_request *r);

/* Awaited terms. Known: they have come, or never will. */
void madmpi_part_terms_known(struct madmpi_part_terms *t);
void madmpi_part_terms_awaited(struct madmpi_part_terms *t);

/* All requests are over: give up what was never started. */
void madmpi_part_exit(void);

#endif
