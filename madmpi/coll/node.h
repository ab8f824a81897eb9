/*
 * The processes of a communicator, or of those on one of its hosts, that are
 * all on one node: memory that they share, for blocking collective operations
 * (shared.c).
 *
 * Who may use it, and for which operation, is decided by what all processes
 * know alike: how many blocking operations of the communicator there were, its
 * size, the arguments that must be the same everywhere, and settings. Only
 * blocking operations do: they come one after the other, in the same order
 * everywhere, and never meet one that is not blocking.
 *
 * An operation is a sequence of parts, each with the next number of one of two
 * lanes: of many small slots, or of few large ones. In a part some processes
 * write a slot of theirs, slot number modulo how many there are, and tell that;
 * others wait for it, read it, and need it no more. What keeps a slot from
 * being written before all have read what was in it:
 *
 *     low    all processes need nothing any more up to this number: known from
 *            what they have told since, or else from what they say is done
 *     part k may be written if k - slots is not past low
 *
 * What is done is said now and then, at the latest after half as many parts as
 * there are slots: so when all have come through part k - 1, all have said what
 * who writes part k must know.
 *
 * A process that dies does not tell; who waits for it sleeps in nmad, which
 * says so. It goes on then as if that one had told: the others wait for it.
 */
#ifndef MADMPI_COLL_NODE_H
#define MADMPI_COLL_NODE_H

#include "coll/coll.h"
#include "coll/segment.h"
#include "coll/slots.h"

enum {
	MADMPI_NODE_MOST = 32, /* processes: bits of a word */
	MADMPI_NODE_AFTER = 8, /* blocking operations before it is made */
};

struct madmpi_lane {
	/* -: const once published  o: the thread in a blocking collective */
	char *slots;    /* -: of rank 0, of rank 1, ... */
	uint32_t n;     /* -: of a process */
	uint32_t bytes; /* -: of data in one */
	uint64_t next;  /* o: number of the next part */
	uint64_t low;   /* o: */
	uint64_t said;  /* o: to be done */
};

struct madmpi_node {
	/* -: const once published  o: as above */
	struct madmpi_segment segment;         /* -: */
	struct madmpi_line *line;              /* -: by rank */
	struct madmpi_lane lane[MADMPI_LANES]; /* o: */
	bool reads;    /* -: each may read the memory of all (direct.c) */
	uint32_t dead; /* o: a bit for each that was lost */
};

/* NULL: there is none, or not yet. By each blocking operation, once. */
struct madmpi_node *madmpi_node_find(struct madmpi_comm *c);

static inline struct madmpi_node *madmpi_node_of(struct madmpi_comm *c)
{
	return likely(c->node != NULL) || c->no_node ? c->node
						     : madmpi_node_find(c);
}

/* The end of the communicator. */
void madmpi_node_free(struct madmpi_node *n);

/* The small slots for so many bytes at once, if they will do. */
static inline struct madmpi_lane *madmpi_node_lane(struct madmpi_coll *c,
						   MPI_Count bytes)
{
	struct madmpi_lane *little = &c->node->lane[MADMPI_LITTLE];

	return bytes <= little->bytes ? little : &c->node->lane[MADMPI_MUCH];
}

/*
 * How much of many data goes into one slot. Two processes stay in their caches;
 * where more share a core, each part costs a change between them.
 */
static inline MPI_Count madmpi_node_piece(const struct madmpi_coll *c,
					  const struct madmpi_lane *l)
{
	MPI_Count cached = 32 * 1024;

	return c->size == 2 && cached < l->bytes ? cached : l->bytes;
}

static inline struct madmpi_slot *madmpi_node_slot(const struct madmpi_lane *l,
						   int rank, uint64_t part)
{
	size_t i = (size_t)rank * l->n + part % l->n;

	return (void *)(l->slots + i * (sizeof(struct madmpi_slot) + l->bytes));
}

/* My slot of a part, which may be written now. */
struct madmpi_slot *madmpi_node_take(struct madmpi_coll *c,
				     struct madmpi_lane *l, uint64_t part);

/* It is written. */
void madmpi_node_tell(struct madmpi_coll *c, struct madmpi_slot *s,
		      uint64_t part, MPI_Count bytes);

/*
 * The slot of another process, once it is written. c fails if that is lost, has
 * failed, or has written the slot in another call: where calls do not fit
 * together, two processes may have made another number of parts before.
 */
struct madmpi_slot *madmpi_node_await(struct madmpi_coll *c,
				      struct madmpi_lane *l, int rank,
				      uint64_t part);

/* All blocking calls of a communicator have a number, alike everywhere. */
static inline uint16_t madmpi_node_call(const struct madmpi_coll *c)
{
	return (uint16_t)c->tag;
}

/* Whether what is in a slot was written for this call. */
static inline bool madmpi_node_is_written(const struct madmpi_coll *c,
					  const struct madmpi_slot *s,
					  uint64_t part)
{
	return madmpi_word_has_come(&s->number, part) &&
	       s->call == madmpi_node_call(c);
}

/* This process needs nothing any more up to that part. */
void madmpi_node_done(struct madmpi_coll *c, struct madmpi_lane *l,
		      uint64_t part);

/* The same, and whoever waits until all have done is to know now. */
void madmpi_node_done_now(struct madmpi_coll *c, struct madmpi_lane *l,
			  uint64_t part);
/* A process has said so, or is lost. */
void madmpi_node_await_done(struct madmpi_coll *c, struct madmpi_lane *l,
			    int rank, uint64_t part);

/* All processes do not: it follows from what was waited for. */
static inline void madmpi_lane_all_done(struct madmpi_lane *l, uint64_t part)
{
	if (part > l->low)
		l->low = part;
}

#endif
