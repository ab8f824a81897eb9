/*
 * Sessions: ways to MPI of parts of a program that know nothing of each other,
 * with or without MPI_Init. From a process set comes a group, from that a
 * communicator; whatever is made from these belongs to the session, too, and is
 * not to meet objects of another one, or of the world model, in one call. The
 * network, which all share, is proc/library.c's.
 */
#ifndef MADMPI_SESSION_SESSION_H
#define MADMPI_SESSION_SESSION_H

#include <base/list.h>
#include <base/spin.h>
#include <mpi.h>

#include "core/object.h"
#include "env/error.h"
#include "pt2pt/bsend.h"

struct madmpi_session {
	/* l: lock */
	struct madmpi_object object; /* what belongs to it holds a reference */
	struct base_spin lock;
	struct madmpi_errhandler *errhandler; /* l: */
	struct base_list comms, groups;       /* l: that belong to it */
	struct madmpi_buffer buffer;          /* bsend.c's */
};

/* The object behind a handle, or NULL: no session, or one that has ended. */
struct madmpi_session *madmpi_session_of(MPI_Session handle);

/* MPI_SUCCESS, or MPI_ERR_SESSION, reported. */
int madmpi_check_session(const char *fn, MPI_Session session,
			 struct madmpi_session **out);

/* An argument that is a null pointer. */
int madmpi_session_null_arg(struct madmpi_session *s, const char *fn,
			    const char *name);

/* With a reference. */
struct madmpi_errhandler *madmpi_session_errhandler(struct madmpi_session *s);

/*
 * An object that is not shared yet belongs to s, on one of its lists, or to the
 * world model if that is NULL.
 */
void madmpi_session_add(struct madmpi_session *s, struct base_list *list,
			struct base_link *on);

/*
 * Its last reference: take it off the list. Until its memory has gone the
 * object keeps the session's by madmpi_session_put(). s may be NULL.
 */
bool madmpi_session_object_put(struct madmpi_session *s,
			       struct madmpi_object *o, struct base_link *on);
void madmpi_session_put(struct madmpi_session *s);

/* Process sets (pset.c). */
enum madmpi_pset { MADMPI_PSET_NONE, MADMPI_PSET_WORLD, MADMPI_PSET_SELF };

/* The one of that name, which is a URI: letters may be large or small. */
enum madmpi_pset madmpi_pset_named(const char *name);

#endif
