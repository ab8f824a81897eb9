/*
 * Windows: memory of each process of a group that all of them may reach.
 *
 * Two ways lead to a target's memory, and a window has one of them, so that
 * what must be atomic is so among all of its operations:
 *
 *   shared    all members map all of it (MPI_Win_allocate(_shared) on one
 *             host): whoever calls moves the bytes itself, and is done when the
 *             call returns
 *   messages  requests to the target (wire.h), where a thread of the window's
 *             serves them (serve.c), whatever the program's threads do; what a
 *             process does to its own memory it does itself. What is large and
 *             in one piece on both sides, and only put or got, the kernel
 *             copies for the origin where it can (direct.c): nothing of that
 *             has to be atomic, or in any order, and the target goes on
 *
 * What must stay true:
 *
 *  1. A target takes the requests of one origin in the order in which they were
 *     issued, and is done with each before it takes the next. So accumulates of
 *     one origin are ordered, and the answer to a request says that all before
 *     it are complete there: flush and unlock need no answer to any other.
 *  2. Elements are combined under the mutex of the target's window, by whoever
 *     does it, or, where memory is shared, by the one rule of direct.c.
 *  3. Locks are the target's: a queue in the order of arrival, which the thread
 *     that serves only looks at. It never waits for a lock.
 *  4. Nobody waits for an operation but by the counts of its target, in which
 *     it is until its last message is over. It changes them last.
 *
 * A window has a communicator of its own, which has its sessions, its error
 * handler, attributes and name: requests and answers are in the first session,
 * barriers in the second.
 */
#ifndef MADMPI_RMA_WIN_H
#define MADMPI_RMA_WIN_H

#include <base/spin.h>
#include <marcel/marcel.h>
#include <mpi.h>
#include <pioman/cond.h>

#include "comm/comm.h"
#include "core/object.h"
#include "datatype/type.h"

/* What each process brings. */
struct madmpi_win_member {
	MPI_Aint size, unit; /* bytes; of displacements */
	char *at;            /* where this process has it; NULL: not at all */
	uintptr_t its;       /* the member's own address of it; 0: do not use */
};

/* What the process may do, as origin. A fence may begin nothing. */
enum madmpi_epoch {
	MADMPI_EPOCH_NONE,
	MADMPI_EPOCH_FENCE,   /* after a fence, not used yet */
	MADMPI_EPOCH_FENCED,  /* and used: only a fence ends it */
	MADMPI_EPOCH_STARTED, /* MPI_Win_start */
	MADMPI_EPOCH_LOCKED,  /* MPI_Win_lock, of one or several */
	MADMPI_EPOCH_ALL,     /* MPI_Win_lock_all */
	MADMPI_EPOCH_BETWEEN, /* its locks are asked for, or given back */
};

/* Instead of what MPI_Win_lock has got: that is asked for, or given back. */
enum { MADMPI_HELD_BETWEEN = -1 };

/* A member, as the target of this process. */
struct madmpi_target {
	/* l: the window's lock  f: flushing */
	marcel_mutex_t flushing; /* who waits for its operations */
	int held;                /* l: 0; what MPI_Win_lock has got; BETWEEN */
	bool unchecked;          /* l: MPI_MODE_NOCHECK: nothing was asked */
	bool started;            /* l: of the group of MPI_Win_start */
	bool dirty;              /* l: sent was what no answer tells of */
	unsigned phase;          /* l: 0, 1: that of new operations */
	unsigned active[2];      /* l: operations, by phase */
	piom_cond_t *idle;       /* l: of who waits for the other phase */
	int error;               /* l: the first failure, -errno */
};

/* Attached memory: attach.c's. m: the window's mutex  -: const */
struct madmpi_region {
	struct madmpi_region *left, *right; /* m: before it, behind it */
	uint64_t priority;                  /* -: of none below it is higher */
	uintptr_t base;                     /* -: */
	MPI_Aint size;                      /* -: */
};

struct madmpi_serve;
struct madmpi_rma_op;

enum { MADMPI_WIN_INFOS = 8 };

struct madmpi_win {
	/* -: const once published  l: lock  m: mutex */
	struct madmpi_object object;
	struct madmpi_comm *comm;         /* -: its own */
	int rank, size;                   /* -: in that */
	int flavor, model, unit;          /* -: MPI_WIN_FLAVOR_..., ... */
	bool is_shared;                   /* -: memory of all is mapped */
	size_t align;                     /* -: that allocated memory has */
	struct madmpi_win_member *member; /* -: by rank */
	void *owned;                      /* -: allocated, or NULL */
	struct madmpi_shared *shared;     /* -: shared.c's, or NULL */
	struct madmpi_serve *serve;       /* -: serve.c's */
	bool is_abandoned; /* -: not made here, so nobody touches its memory */
	bool has_lost;     /* o: the thread in a barrier: a member has died */

	struct base_spin lock;
	enum madmpi_epoch epoch;       /* l: */
	int nlocked;                   /* l: targets that are held */
	struct madmpi_group *started;  /* l: a reference, or NULL */
	struct madmpi_group *posted;   /* l: a reference, or NULL */
	uint32_t next_id;              /* l: of requests */
	struct madmpi_rma_op *over;    /* l: that are to be given back */
	struct madmpi_target *targets; /* by rank */

	marcel_mutex_t mutex;          /* elements are combined; regions */
	struct madmpi_region *regions; /* m: attached; the highest one */
	char *info[MADMPI_WIN_INFOS];  /* m: values; info.c's */
};

void madmpi_win_init(void);

/* Windows that the program has not freed: they end. */
void madmpi_win_exit(void);

/* The same of one, whose session ends: nobody waits for the other members. */
void madmpi_win_give_up(struct madmpi_win *w);

/* The object behind a handle, or NULL if it is not a window. */
static inline struct madmpi_win *madmpi_win_of(MPI_Win handle)
{
	if (madmpi_handle_is_constant(handle))
		return 0;
	return madmpi_handle_object(handle, MADMPI_WIN);
}

int madmpi_check_win(const char *fn, MPI_Win win, struct madmpi_win **out);

/* A target; MPI_PROC_NULL is one, which nothing is done to. */
int madmpi_check_target(const char *fn, const struct madmpi_win *w, int rank);

/* What may be in an assertion. */
int madmpi_check_assert(const char *fn, const struct madmpi_win *w, int assert,
			int allowed);

/* The call does not fit what the window is at: MPI_ERR_RMA_SYNC. */
int madmpi_win_refuse(const char *fn, const struct madmpi_win *w,
		      const char *why);

/*
 * Whether [low, high) from disp on, with disp an address if the window is
 * dynamic, is memory of this process's part. *out: disp's place.
 */
bool madmpi_win_find(struct madmpi_win *w, MPI_Aint disp, MPI_Count low,
		     MPI_Count high, char **out);

/*
 * How far one region that is attached reaches from an address on. The mutex is
 * held.
 */
uintptr_t madmpi_win_attached_from(const struct madmpi_win *w, uintptr_t at);

/* The window ends. */
void madmpi_win_detach_all(struct madmpi_win *w);

/* Where count elements of a type begin and end, seen from the first. */
void madmpi_win_hull(const struct madmpi_type *t, MPI_Count count,
		     MPI_Count *low, MPI_Count *high);

/* True if this process moves the bytes itself. */
static inline bool madmpi_win_is_near(const struct madmpi_win *w, int target)
{
	return w->is_shared || target == w->rank;
}

/*
 * Everything that was issued to the targets [first, end) is complete here, and
 * also there. MPI_SUCCESS, or the class of what was reported.
 */
int madmpi_win_flush_local_targets(const char *fn, struct madmpi_win *w,
				   int first, int end);
int madmpi_win_flush_targets(const char *fn, struct madmpi_win *w, int first,
			     int end);

/* The same, and their locks are given back: one answer tells of both. */
int madmpi_win_unlock_targets(const char *fn, struct madmpi_win *w, int first,
			      int end);

/* Nobody comes out before all have gone in. */
int madmpi_win_barrier(const char *fn, struct madmpi_win *w);

/* Tells the next barrier of the others that it fails, and waits for nobody. */
void madmpi_win_fail_barrier(struct madmpi_win *w);

/* info.c: what of an info object is a hint; the end of these. */
void madmpi_win_hint(struct madmpi_win *w, MPI_Info info);
void madmpi_win_forget_hints(struct madmpi_win *w);

/* Whether a key has this value; false for MPI_INFO_NULL. */
bool madmpi_win_info_says(MPI_Info info, const char *key, const char *value);

#endif
