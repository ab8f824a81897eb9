/*
 * Requests of non-blocking operations.
 *
 * nmad's request lies inside the MPI request, so starting an operation
 * allocates nothing but the request itself, from a pool. A request that the
 * program frees before it is complete becomes an orphan: nobody waits for it,
 * and it goes back to the pool when somebody passes by and finds it complete.
 *
 * A persistent request (persistent.c) goes from idle to a send or receive and,
 * when that has ended, back. While it is idle it is as good as null.
 *
 * A request of an operation that is more than one message, or none, has its
 * nmad request completed by that (isendrecv.c, core/background.c). It may be
 * persistent, too.
 */
#ifndef MADMPI_PT2PT_REQUEST_H
#define MADMPI_PT2PT_REQUEST_H

#include <sched.h>

#include <base/atomic.h>
#include <marcel/hook.h>
#include <marcel/marcel.h>
#include <nmad/sendrecv.h>

#include "core/object.h"
#include "core/pool.h"
#include "datatype/type.h"
#include "pt2pt/message.h"
#include "pt2pt/status.h"

struct madmpi_request;

enum madmpi_request_what {
	MADMPI_REQUEST_IDLE,    /* persistent, and not started */
	MADMPI_REQUEST_NOTHING, /* complete from the start: MPI_PROC_NULL */
	MADMPI_REQUEST_SEND,
	MADMPI_REQUEST_RECV,
	MADMPI_REQUEST_OPERATION,
};

/*
 * What the request of an operation has at its end. It begins the memory of the
 * operation, which is the request's from madmpi_request_adopt() on.
 */
struct madmpi_operation {
	/* The function of MPI that began it. Set by madmpi_request_adopt(). */
	const char *function;
	/* How it ended, once it is complete. */
	struct madmpi_outcome (*outcome)(const struct madmpi_operation *op,
					 const struct madmpi_request *r);
	/* Try to have it complete without what has not begun; NULL: no.
	 * MPI_SUCCESS or what was reported. */
	int (*cancel)(struct madmpi_operation *op, struct madmpi_request *r);
	/* It is complete, its outcome was asked for, and its end follows: 0, or
	 * an error that counts for more; NULL: nothing. */
	int (*end)(struct madmpi_operation *op);
	/* The program frees the request, complete or not, and the operation
	 * sees to its end and to the handle. MPI_SUCCESS or what was reported.
	 * NULL: whoever passes by does. */
	int (*give_up)(struct madmpi_operation *op, MPI_Request *request);
	/* The end of it: nobody asks any more. */
	void (*release)(struct madmpi_operation *op);
	/*
	 * Begin a persistent one again; its nmad request has begun. MPI_SUCCESS
	 * or the class of what was reported. NULL: it is not persistent.
	 */
	int (*start)(const char *fn, struct madmpi_operation *op,
		     struct madmpi_request *r);
	/* It cannot be cancelled, nor freed before it is complete. */
	bool is_collective;
	/* No other process waits for it, so MPI_Finalize may leave it behind if
	 * it can never complete. */
	bool may_stay;
};

/* What a persistent request is for. */
struct madmpi_repeat {
	enum madmpi_request_what what;
	unsigned flags; /* of a send: enum nm_send_flags */
	bool buffered;
	struct madmpi_message m; /* with a reference to its type, if any */
};

struct madmpi_request {
	/* -: const from start to completion  l: the orphans' lock */
	struct madmpi_object object;
	enum madmpi_request_what what; /* -: */
	int peer, tag;                 /* -: as the caller named them */
	struct madmpi_comm *comm;      /* -: holds a reference */
	struct madmpi_type *type;      /* -: that is walked: a reference */
	struct madmpi_request *next;   /* l: next orphan */
	struct madmpi_repeat *repeat;  /* -: owned; NULL: not persistent */
	struct madmpi_operation *own;  /* -: owned; of an operation, or NULL */
	struct nm_sr_request nm;       /* nmad's */
	struct madmpi_signed walked;   /* nmad's: of data in pieces */
};

void madmpi_request_init(void);
void madmpi_request_exit(void);

/* The messages of matched probes (matched.c). */
void madmpi_matched_init(void);
void madmpi_matched_exit(void);

/* What a message taken is, as text. */
struct madmpi_object;
void madmpi_matched_describe(const struct madmpi_object *o, char *out,
			     size_t room);

/*
 * Wait for the requests of the session, or of the world model (NULL), that were
 * freed before they were complete.
 */
struct madmpi_session;
void madmpi_request_reap(const struct madmpi_session *s);

/*
 * MPI ends, and no thread runs an operation any more: release those that are
 * complete and that the program has not waited for.
 */
void madmpi_request_reap_complete(void);

/*
 * Call fn for each request that was freed before it was complete. No lock is
 * held meanwhile; no other thread may use MPI.
 */
void madmpi_request_walk_freed(void (*fn)(struct madmpi_request *r));

/* Put the request in words: the operation, peer, tag, communicator, state. */
void madmpi_request_describe(const struct madmpi_request *r, char *out,
			     size_t room);

/*
 * A request for this message, not started; NULL after an error that *rc says.
 * The caller fills the layout, and starts it or gives it back.
 */
struct madmpi_request *madmpi_request_new(const char *function,
					  enum madmpi_request_what what,
					  const struct madmpi_message *m,
					  int *rc);

/*
 * Start what r is for, with this message. 0 or -errno; then it was not started.
 */
int madmpi_request_start(struct madmpi_request *r,
			 const struct madmpi_message *m, unsigned flags);

/* It has been started with these data: the type lives as long as it is walked.
 */
static inline void madmpi_request_hold(struct madmpi_request *r,
				       const struct madmpi_message *m,
				       const struct nm_data *data)
{
	if (likely(!madmpi_data_is_walked(data)) || r->type != NULL)
		return;
	r->type = m->type;
	madmpi_type_get(r->type);
}

/*
 * A request for an operation of the communicator: idle if it is persistent,
 * else with its nmad request begun (nm_sr_general_begin()), which the operation
 * ends. NULL after an error that *rc says; then the operation is still the
 * caller's.
 */
struct madmpi_request *madmpi_request_adopt(const char *function,
					    struct madmpi_comm *c,
					    struct madmpi_operation *op,
					    int *rc);

/* Of an active one, which nobody will wait for: put when it is complete. */
void madmpi_request_abandon(struct madmpi_request *r);

/* Give back a request that is complete or was never started. */
void madmpi_request_put(struct madmpi_request *r);

/* The same of several; the chain is put last. */
void madmpi_request_put_later(struct madmpi_request *r,
			      struct madmpi_pool_chain *chain);
void madmpi_request_put_chain(struct madmpi_pool_chain *chain);

/* The request behind a handle other than MPI_REQUEST_NULL, or NULL and *rc. */
struct madmpi_request *madmpi_request_of(const char *function,
					 MPI_Request handle, int *rc);

/* How a complete one ended, which is not idle. */
struct madmpi_outcome madmpi_request_outcome(const struct madmpi_request *r);

/* The same, for the last time. */
struct madmpi_outcome madmpi_request_last(const struct madmpi_request *r);

/*
 * Whether its outcome is no failure, for sure: for those who ask no more. Of a
 * complete one.
 */
bool madmpi_request_is_well(const struct madmpi_request *r);

/*
 * The handle of a complete one: null, and true: the request is for the caller
 * to give back; or it is persistent, and idle again.
 */
bool madmpi_request_leave(MPI_Request *request);

/*
 * A complete one: status, error handler, end. Sets the handle to null, unless
 * it is persistent.
 */
int madmpi_request_end(const char *function, MPI_Request *request,
		       MPI_Status *status);

/* The status of a null request. */
void madmpi_status_fill_empty(MPI_Status *status);

static inline bool madmpi_request_is_persistent(const struct madmpi_request *r)
{
	return r->repeat != NULL || (r->own != NULL && r->own->start != NULL);
}

/* Neither null nor idle. */
static inline bool madmpi_request_is_active(MPI_Request handle)
{
	const struct madmpi_request *r = (const struct madmpi_request *)handle;

	return handle != MPI_REQUEST_NULL && r->what != MADMPI_REQUEST_IDLE;
}

/* How many threads run operations (core/background.c); a hint. */
extern struct madmpi_background_count {
	ATOMIC(uint32_t) threads;
} madmpi_background_count;

/*
 * Who has asked in vain, and may ask again and again, is in the way: of those
 * threads, wherever they may run; of one that has been woken to serve what just
 * came, or has not come to the end of that while it was favoured; and of other
 * processes, if there are more than CPUs, one of which has to send what is
 * asked for.
 */
static inline void madmpi_make_way(void)
{
	if (unlikely(load_relaxed(&madmpi_background_count.threads) != 0) ||
	    unlikely(marcel_asked_in_vain()))
		marcel_yield();
	else if (unlikely(marcel_is_oversubscribed()))
		sched_yield();
}

/* Of active ones. */
static inline bool madmpi_request_is_complete(const struct madmpi_request *r)
{
	return r->what <= MADMPI_REQUEST_NOTHING || nm_sr_is_complete(&r->nm);
}

/* The same after an attempt to make progress. */
static inline bool madmpi_request_poll(struct madmpi_request *r)
{
	if (r->what <= MADMPI_REQUEST_NOTHING || nm_sr_test(&r->nm) == 0)
		return true;
	madmpi_make_way();
	return nm_sr_is_complete(&r->nm);
}

static inline void madmpi_request_wait(struct madmpi_request *r)
{
	if (r->what > MADMPI_REQUEST_NOTHING)
		nm_sr_wait(&r->nm);
}

#endif
