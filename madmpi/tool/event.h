/*
 * Events: what nmad tells its watcher (<nmad/event.h>), of which each kind is
 * a type of event.
 *
 * A handle is a registration; raise.c calls its callbacks. nmad tells in a
 * handler, so what has happened is queued there and raised by a thread of the
 * library's, which holds nothing and calls one function at a time. So callbacks
 * may be of any level but MPI_T_CB_REQUIRE_NONE: what they may not do is call
 * MPI, which may end while they run.
 */
#ifndef MADMPI_TOOL_EVENT_H
#define MADMPI_TOOL_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include <base/list.h>
#include <base/spin.h>
#include <mpi.h>
#include <nmad/event.h>

#include "core/object.h"

/* Callbacks are called at the second one. */
enum madmpi_event_level {
	MADMPI_EVENT_NONE,
	MADMPI_EVENT_RESTRICTED,
	MADMPI_EVENT_THREAD_SAFE,
	MADMPI_EVENT_SIGNAL_SAFE,
	MADMPI_EVENT_LEVELS,
};

struct madmpi_event_callback {
	MPI_T_event_cb_function *fn; /* or NULL: none */
	void *user_data;
};

struct madmpi_registration {
	/* -: const  l: the events' lock */
	struct madmpi_object object;
	struct base_link on;  /* l: while it has a callback; by type */
	enum nm_watched what; /* -: its type */
	MPI_Count since;      /* -: what was before is not raised */
	bool is_freed;        /* l: by the program */
	bool is_called;       /* l: the thread calls a function of it */
	uint64_t ndropped;    /* l: of its type's, those it was told of */
	MPI_T_event_dropped_cb_function *dropped; /* l: or NULL */
	MPI_T_event_free_cb_function *free;       /* -: once it is freed */
	void *free_data;                          /* -: likewise */
	struct madmpi_event_callback callback[MADMPI_EVENT_LEVELS]; /* l: */
};

/* What a callback gets; it is the thread's. */
struct madmpi_event_instance {
	struct madmpi_object object;
	struct nm_sight sight;
};

extern struct base_spin madmpi_event_lock;

/*
 * A registration that is filled in: its events are raised while it has a
 * callback. 0, or -errno: there is no thread that does that.
 */
int madmpi_event_listen(struct madmpi_registration *r);

/* Its callbacks have changed. */
void madmpi_event_turn_locked(struct madmpi_registration *r);

/* Events that were dropped until now are not told to it. */
void madmpi_event_forget_dropped_locked(struct madmpi_registration *r);

/*
 * Its handle is no longer the program's. True: nobody else knows it any more,
 * and it is the caller's to release. False: one of its functions is called just
 * now, and whoever calls that releases it then.
 */
bool madmpi_event_end_locked(struct madmpi_registration *r);

/* event.c: the end of it; nobody knows it any more. */
void madmpi_event_release(struct madmpi_registration *r, MPI_T_cb_safety level);

/* The library: nmad runs; the background is about to end. 0 or -errno. */
int madmpi_event_init(void);
void madmpi_event_exit(void);

#endif
