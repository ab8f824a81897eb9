/*
 * The state of the thread that serves a window: its requests (rma/serve.c) and
 * the epochs that they end (rma/completed.c).
 */
#ifndef MADMPI_RMA_SERVING_H
#define MADMPI_RMA_SERVING_H

#include <base/list.h>
#include <nmad/nmad.h>

#include "rma/serve.h"
#include "rma/wire.h"

/* Somebody who waits for the lock. */
struct candidate {
	struct base_link on;
	int rank;
	uint32_t id;
	bool exclusive;
};

/* How a process holds the lock. */
enum has { NOTHING, SHARED, ALONE };

/*
 * A receive of what an origin never sends, which ends when that has died, or
 * with the window.
 */
struct watch {
	/* -: const once it is posted  a: atomic */
	struct madmpi_serve *serve; /* -: */
	ATOMIC(bool) died;          /* a: before s->ndied counts it */
	struct nm_sr_request never; /* nmad's */
};

/* A member, as an origin. */
struct origin {
	/* t: the thread's  m: mutex */
	int fault;           /* t: what went wrong since it was told */
	enum has has;        /* t: */
	bool gone;           /* t, written with m: */
	uint32_t completed;  /* m: epochs not waited for */
	struct watch *watch; /* m: or NULL */
};

struct madmpi_serve {
	/* -: const while the thread runs  t: the thread's  m: mutex */
	marcel_t thread;      /* -: */
	piom_sem_t work;      /* what has come, or died; at the end one more */
	ATOMIC(bool) closing; /* a: before the last unit of work */
	ATOMIC(unsigned) ndied; /* a: before a unit of work */
	unsigned nburied;       /* t: so many of them are known of */
	piom_sem_t unwatched;   /* watches that are over */
	ATOMIC(unsigned) ncome; /* a: requests that arrived() was told of */
	unsigned ntaken;        /* t: requests taken */

	/* t: the request that is served */
	struct {
		struct madmpi_rma_head *head;
		const char *described, *payload;
		struct nm_gate *gate;
		int rank;
		struct madmpi_type *type; /* the target's */
		char *place;              /* NULL: there is none */
		int error;                /* why, -errno */
	} now;
	char *buffer; /* t: requests are received here */
	size_t room;  /* t: */

	/* t: the last type that was described, and its description */
	struct madmpi_type *told;
	void *told_by;
	size_t told_bytes;

	bool exclusive;           /* t: somebody has the lock, alone */
	int nshared;              /* t: so many have it together */
	bool orphaned;            /* t: somebody died with it */
	struct base_list waiting; /* t: struct candidate */

	struct origin *origin; /* by rank */
	marcel_mutex_t mutex;
	piom_cond_t *more;   /* m: of who waits for one more, or NULL */
	ATOMIC(bool) asked;  /* a: before a unit of work; written with m */
	bool waits_for_data; /* m: of the network, inside a request */
};

/* The origin whose request is served has completed its epoch. */
void madmpi_serve_complete(struct madmpi_win *w);

/* The origin has died, and nothing more comes from it. */
void madmpi_serve_gone(struct madmpi_serve *s, struct origin *o);

/* The thread has served all requests that had come, if anyone asked. */
void madmpi_serve_caught_up(struct madmpi_serve *s);

/* The thread waits for a request of nmad's, which may take a long time. */
void madmpi_serve_wait(struct madmpi_serve *s, struct nm_sr_request *req);

#endif
