/*
 * Communicators and groups.
 *
 * A communicator is a group and two sessions of nmad: one for point-to-point
 * messages, one for collective operations, so that neither can take the
 * other's messages. Session and peer are found without a search: the gate of a
 * rank is an array look-up.
 *
 * An intercommunicator has two groups without a common process. Whoever is
 * named as a peer is in the other one. Messages do not look which kind it is:
 * the peers of an intracommunicator are its own group.
 *
 *                       intra          inter, in a process of A
 *     group, rank, size     A              A
 *     peers, npeers         A              B
 *     gate[]                of A           of B
 *     local_gate[]          the same one   of A: steps of collectives
 */
#ifndef MADMPI_COMM_COMM_H
#define MADMPI_COMM_COMM_H

#include <base/list.h>
#include <base/spin.h>
#include <mpi.h>
#include <nmad/nmad.h>

#include "comm/attr.h"
#include "core/object.h"
#include "env/error.h"
#include "pt2pt/bsend.h"
#include "topo/topo.h"

/* An ordered set of processes. Constant once made, shared by reference. */
struct madmpi_group {
	struct madmpi_object object;
	int size;
	int rank;            /* -: of this process, or MPI_UNDEFINED */
	int *world;          /* -: by rank, the rank in MPI_COMM_WORLD */
	int *inverse;        /* -: by rank in MPI_COMM_WORLD, the rank or -1 */
	ATOMIC(int) handles; /* a: that the program has; nothing hangs on it */
	/* -: that it belongs to, or NULL: the world model */
	struct madmpi_session *session;
	struct base_link on; /* the session's */
};

/* Assertions that a program has made of a communicator (hints.c). */
enum { MADMPI_HINTS = 4 };
enum madmpi_hint { MADMPI_HINT_NONE, MADMPI_HINT_TRUE, MADMPI_HINT_FALSE };

struct madmpi_coll;
struct madmpi_hosts;
struct madmpi_node;
struct madmpi_win;

struct madmpi_comm {
	/* -: const once published  l: lock  o: the thread in a collective */
	struct madmpi_object object; /* a request holds a reference */
	struct madmpi_group *group;  /* -: of this process */
	int rank, size;              /* -: in it */
	struct madmpi_group *peers;  /* -: the same, or the other one */
	int npeers;                  /* -: how many are in that */
	struct nm_gate **gate;       /* -: by rank among the peers */
	struct nm_gate **local_gate; /* -: by rank in the group */
	struct nm_session *p2p;      /* -: from madmpi_comm_open() on */
	struct nm_session *coll;     /* -: the same */
	uint64_t id;                 /* -: of the first of them */
	bool is_predefined;          /* -: */
	struct madmpi_topo *topo;    /* -: with a reference, or NULL */
	uint32_t collectives;        /* o: how many were begun, blocking */
	uint32_t backgrounds;        /* o: the same, non-blocking */
	uint32_t persistents;        /* o: how many of them were made */
	uint32_t blocking;           /* o: those before it has a node */
	bool no_node;                /* o: nor will have one */
	struct madmpi_node *node;    /* o: coll/node.c's, or NULL */
	struct madmpi_hosts *hosts;  /* -: coll/hosts.c's, or NULL */
	struct nm_session *part;     /* part/part.c's; NULL: not used yet */
	nm_tag_t part_tag;           /* the same: the next message's */
	struct madmpi_attrs attrs;   /* attr.c's */
	struct madmpi_buffer buffer; /* bsend.c's */
	struct base_spin lock;
	struct madmpi_errhandler *errhandler; /* l: */
	struct madmpi_win *win; /* l: whose own one it is while that is one */
	char name[MPI_MAX_OBJECT_NAME];       /* l: */
	enum madmpi_hint hints[MADMPI_HINTS]; /* l: */
	/* -: that it belongs to, or NULL: the world model */
	struct madmpi_session *session;
	struct base_link on; /* the session's */
};

/*
 * NULL without a world model: madmpi_world. The other one is there while MPI is
 * up, but without a world model no handle is it.
 */
extern struct madmpi_comm *madmpi_world, *madmpi_self;
extern int madmpi_appnum; /* MPI_APPNUM; -1: nobody says */

/* With the network. 0 or -errno. */
int madmpi_comm_init(void);
void madmpi_comm_exit(void);

/* Of MPI_Init: MPI_COMM_WORLD. 0 or -errno. */
int madmpi_comm_begin_world(void);

/* Of MPI_Finalize: no handle is one of the two predefined ones any more. */
void madmpi_comm_end_world(void);

/*
 * The first that MPI_Finalize does, while all works still: the programs'
 * functions for the end of MPI_COMM_SELF, then of MPI_COMM_WORLD.
 */
int madmpi_comm_farewell(void);

/* The object behind a handle, or NULL if it is not a communicator. */
static inline struct madmpi_comm *madmpi_comm_of(MPI_Comm handle)
{
	if (madmpi_handle_is_constant(handle)) {
		if (handle == MPI_COMM_SELF && madmpi_world != NULL)
			return madmpi_self;
		return handle == MPI_COMM_WORLD ? madmpi_world : NULL;
	}
	return madmpi_handle_object(handle, MADMPI_COMM);
}

MPI_Comm madmpi_comm_handle(struct madmpi_comm *c);

/* The predefined ones live as long as MPI: nobody counts. */
static inline void madmpi_comm_get(struct madmpi_comm *c)
{
	if (!c->is_predefined)
		madmpi_object_get(&c->object);
}

void madmpi_comm_put_slow(struct madmpi_comm *c);

static inline void madmpi_comm_put(struct madmpi_comm *c)
{
	if (!c->is_predefined)
		madmpi_comm_put_slow(c);
}

/* As if the program freed it, which it has not. */
void madmpi_comm_give_up(struct madmpi_comm *c);

/* The rank of a peer in this communicator. */
static inline int madmpi_comm_rank_of(const struct madmpi_comm *c,
				      const struct nm_gate *gate)
{
	return c->peers->inverse[nm_gate_rank(gate)];
}

static inline bool madmpi_comm_is_inter(const struct madmpi_comm *c)
{
	return c->peers != c->group;
}

/* How many processes there are in its groups. */
static inline int madmpi_comm_everybody(const struct madmpi_comm *c)
{
	return madmpi_comm_is_inter(c) ? c->size + c->npeers : c->size;
}

/* Of the two groups, this is the one that both call the first. */
static inline bool madmpi_comm_is_first(const struct madmpi_comm *c)
{
	return c->group->world[0] < c->peers->world[0];
}

/* Numbers for a communicator's sessions that no other one has or will have. */
void madmpi_comm_new_ids(uint64_t ids[2]);

/*
 * Make a communicator of the group (whose reference it takes over, also when it
 * fails) with these two session ids; all members open the same ids. The error
 * handler is the parent's, the initial one if there is none. 0 or -errno.
 */
int madmpi_comm_new(struct madmpi_comm *parent, struct madmpi_group *group,
		    const uint64_t ids[2], struct madmpi_comm **out);

/* The same of two groups, whose references it takes over. */
int madmpi_comm_new_inter(struct madmpi_comm *parent,
			  struct madmpi_group *group,
			  struct madmpi_group *peers, const uint64_t ids[2],
			  struct madmpi_comm **out);

/*
 * Another one of the same group or groups, which cannot be used before it was
 * opened with the same ids by all members. 0 or -errno.
 */
int madmpi_comm_new_like(struct madmpi_comm *parent, struct madmpi_comm **out);
int madmpi_comm_open(struct madmpi_comm *c, const uint64_t ids[2]);

/* The program's name for it, for messages, in MPI_MAX_OBJECT_NAME bytes. */
const char *madmpi_comm_name_of(struct madmpi_comm *c, char out[]);

/* Arguments of calls that make one: the parent, a group of its processes. */
int madmpi_check_new_comm(const char *fn, MPI_Comm comm, MPI_Comm *newcomm,
			  struct madmpi_comm **out);
int madmpi_check_intra(const char *fn, struct madmpi_comm *c);
int madmpi_check_inter(const char *fn, MPI_Comm comm, struct madmpi_comm **out);
int madmpi_check_members(const char *fn, struct madmpi_comm *c, MPI_Group group,
			 struct madmpi_group **out);

/*
 * The last steps of an operation, which end it: all processes tell color and
 * key, and those of a color unite. If a process has failed before, none does.
 * Returns MPI_SUCCESS, or the class of the error that it has reported.
 */
int madmpi_comm_split_by(struct madmpi_coll *x, int color, int key,
			 MPI_Comm *newcomm);

/* What of an info object, or MPI_INFO_NULL, is a hint of the communicator. */
void madmpi_comm_hint(struct madmpi_comm *c, MPI_Info info);

void madmpi_group_init(void);
void madmpi_group_exit(void);

/* world[0..size) is copied. NULL: no memory. */
struct madmpi_group *madmpi_group_new(const int *world, int size);
struct madmpi_group *madmpi_group_of(MPI_Group handle);

/* MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL. */
int madmpi_group_relation(const struct madmpi_group *a,
			  const struct madmpi_group *b);
void madmpi_group_get(struct madmpi_group *g);
void madmpi_group_put(struct madmpi_group *g);

/* A handle for the program, with a reference of its own. */
MPI_Group madmpi_group_hand_out(struct madmpi_group *g);

/* A new group, which is not shared yet, belongs to the session if not NULL. */
void madmpi_group_join(struct madmpi_group *g, struct madmpi_session *s);

/* As if the program freed all that it has of it. */
void madmpi_group_give_up(struct madmpi_group *g);

#endif
