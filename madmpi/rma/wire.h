/*
 * What travels for a window, all in the first session of its communicator:
 *
 *	origin                                         target
 *	head; description; payload ----- RMA_HEAD ---> taken one by one
 *(serve.c) payload that is long ------- RMA_BODY|id ----> received where it
 *belongs data, or a word <---------- RMA_REPLY|id       if the request has one
 *
 *	target of MPI_Win_post                         origin in MPI_Win_start
 *	nothing ------------------------ RMA_POST ---> received there
 *
 * A request has a number of its origin's, by which its messages are told from
 * those of others. The description says where the bytes of the target's type
 * lie (type.c); a predefined type has a number instead. The answer to a request
 * that cannot be carried out is empty, and why goes ahead (RMA_WHY|id): what
 *one process sends to another comes in order.
 *
 * Records are as the processors have them, like the data of messages.
 */
#ifndef MADMPI_RMA_WIRE_H
#define MADMPI_RMA_WIRE_H

#include <stdint.h>

enum {
	MADMPI_RMA_HEAD = 0, /* tags */
	MADMPI_RMA_POST = 1,
	MADMPI_RMA_NEVER = 2, /* never sent: who waits for it hears of deaths */
};

#define MADMPI_RMA_REPLY 0x40000000u /* | number */
#define MADMPI_RMA_BODY  0x80000000u
#define MADMPI_RMA_WHY   0xc0000000u
#define MADMPI_RMA_IDS   0x40000000u /* numbers */

enum madmpi_rma_kind {
	MADMPI_RMA_PUT,
	MADMPI_RMA_GET,            /* replies with the data */
	MADMPI_RMA_ACCUMULATE,     /* op */
	MADMPI_RMA_GET_ACCUMULATE, /* replies with what was there */
	MADMPI_RMA_SWAP,           /* payload: what to compare with, new */
	MADMPI_RMA_FLUSH,          /* replies with a word */
	MADMPI_RMA_LOCK,           /* the same, once it is granted */
	MADMPI_RMA_UNLOCK,         /* the same */
	MADMPI_RMA_COMPLETE,       /* the end of an access epoch; no reply */
	MADMPI_RMA_KINDS
};

struct madmpi_rma_head {
	uint32_t kind, id;
	uint64_t disp;      /* bytes from the window's base, or an address */
	uint64_t count;     /* of the target's type; LOCK: 1: exclusive */
	uint64_t from;      /* so many bytes of these data are left out */
	uint64_t bytes;     /* that are moved */
	uint32_t type;      /* the target's, or 0: it is described */
	uint32_t described; /* bytes of description that follow */
	uint32_t inlined;   /* bytes of payload that follow that */
	uint32_t op;        /* a handle */
	uint32_t elem[2];   /* type of an element; of value and index */
};

_Static_assert(sizeof(struct madmpi_rma_head) % 16 == 0,
	       "what follows is aligned for any element");

/* The word of a reply: an error class, or 0; of what goes ahead: an errno. */
typedef uint64_t madmpi_rma_word_t;

enum {
	MADMPI_RMA_INLINE = 4096,     /* longer payload travels by itself */
	MADMPI_RMA_ELEMENT = 64,      /* no predefined type is larger */
	MADMPI_RMA_SEGMENT = 1 << 18, /* at most so much is combined at once */
};

#endif
