/*
 * Collective operations: what their algorithms are made of.
 *
 * An algorithm is a sequence of steps over the communicator's collective
 * session, run by the thread that called, or by one in the background
 * (forms.h). Every operation of a communicator takes the next number of its
 * kind as its tag, the same in all processes: the steps of two operations never
 * meet. Tags from MADMPI_COLL_LEADERS on are for what not all processes of the
 * communicator do (comm/inter.c, comm/create.c).
 *
 * Blocking and non-blocking operations are two kinds. A program that calls
 * MPI_Iallreduce and MPI_Barrier in another order in each process is erroneous,
 * but other libraries carry it out, and so does this one. With MADMPI_CHECK=2
 * both kinds share one sequence, so that the operations of the wrong order meet
 * and are compared (compare.c). What makes communicators, windows and the
 * memory of a node is blocking, except MPI_Comm_idup.
 *
 * A persistent operation has a number of its own kind, which it takes when it
 * is made, as the processes may start theirs in any order. It is started again
 * only after it has ended, and of two processes one expects in each run what
 * the other one sends in it: so messages of one run, which keep their order,
 * never meet those of the next.
 *
 * An intercommunicator has one session and one count for all of it, too: its
 * groups have no process in common, so that steps within a group and steps
 * between the groups never wait for the same message (inter.c).
 *
 * A step that fails does not end the sequence: the others wait for what this
 * process has to send. The first failure is kept and reported at the end, and
 * all that is sent from then on says so: why goes ahead, under a tag for that,
 * and in the place of the data comes a message of a length that these cannot
 * have. Who gets it has failed, too, and says so in turn. What comes to a
 * process that has failed is received nowhere. So buffers that there was no
 * memory for need not exist, and nothing is computed from what never came; but
 * every step is made, and every message sent, by all that live.
 *
 * A call that takes several rounds (a window, a topology) is one operation as
 * well: it begins once, hands its struct madmpi_coll from round to round and
 * ends once. Every process makes the steps of all rounds, whatever has failed
 * here, so no step may depend on what only a process without a failure knows.
 * Processes that live agree on the next number then, too.
 *
 * A wrong argument is reported before the operation has a number. Where all
 * processes find one it is as if nothing had been called. Where only some do,
 * the program is erroneous, and stuck even if its errors return: the others
 * wait for those, whose next operation has the number of this one. To give it
 * one all the same would help nobody, as what they were to send is not known.
 * A step that gets more or fewer bytes than it expects fails.
 */
#ifndef MADMPI_COLL_COLL_H
#define MADMPI_COLL_COLL_H

#include <errno.h>

#include "coll/op.h"
#include "core/array.h"
#include "comm/comm.h"
#include "datatype/type.h"

#define MADMPI_COLL_BACKGROUND 0x08000000u /* non-blocking, not persistent */
#define MADMPI_COLL_PERSISTENT 0x10000000u
#define MADMPI_COLL_WHY        0x20000000u /* of these two: of failed ones */
#define MADMPI_COLL_FINALIZE   0x1ffffffeu /* no numbers: proc/pending.c, */
#define MADMPI_COLL_BELL       0x1fffffffu /* node.c */
#define MADMPI_COLL_LEADERS    0x40000000u /* MPI_Intercomm_create */
#define MADMPI_COLL_TAGS       0x80000000u /* MPI_Comm_create_group */

struct madmpi_node;

struct madmpi_coll {
	const char *function;
	struct madmpi_comm *comm;
	struct madmpi_node *node;    /* of those of the steps, or NULL */
	struct madmpi_node *own;     /* that this process has, if it blocks */
	struct nm_gate *const *gate; /* by rank: with whom the steps are */
	int size;                    /* how many these are */
	int rank;                    /* of this process, in its own group */
	nm_tag_t tag;
	uint32_t
		others; /* begun earlier, of kinds that do not share its tags */
	/* o: the thread that runs it */
	int error;    /* the first failure, -errno, or a class: */
	char *why;    /* what that is, owned; or NULL */
	bool is_told; /* which another process has told of */
};

/* A message on its way. */
struct madmpi_flight {
	struct nm_sr_request nm;
	struct madmpi_layout layout;
	size_t bytes; /* that it has if all is well */
	bool is_active;
};

/* Begin a blocking operation of the communicator: one thread at a time. */
void madmpi_coll_begin(struct madmpi_coll *c, const char *function,
		       struct madmpi_comm *comm);

/* The same of a non-blocking one, which runs in the background. */
void madmpi_coll_begin_background(struct madmpi_coll *c, const char *function,
				  struct madmpi_comm *comm);

/*
 * The same of a call that is no prepared one. Returns false if MADMPI_CHECK=2
 * finds that the processes call different functions: make no step, but end it.
 */
bool madmpi_coll_begin_call(struct madmpi_coll *c, const char *function,
			    struct madmpi_comm *comm);

/* The same of a persistent one, which may be run again and again. */
void madmpi_coll_begin_persistent(struct madmpi_coll *c, const char *function,
				  struct madmpi_comm *comm);

/*
 * The same of a round of MPI_Finalize, which has no number: operations that
 * only some processes have called may be pending.
 */
void madmpi_coll_begin_finalize(struct madmpi_coll *c,
				struct madmpi_comm *comm);

/*
 * The steps from here on are with the other group of an intercommunicator; or,
 * as at first, with those of the own one; or with those of them on this host.
 */
void madmpi_coll_across(struct madmpi_coll *c);
void madmpi_coll_in_host(struct madmpi_coll *c);
void madmpi_coll_home(struct madmpi_coll *c);

/* Its end: MPI_SUCCESS, or the class of the first failure. */
int madmpi_coll_end(struct madmpi_coll *c);

void madmpi_coll_fail(struct madmpi_coll *c, int error);

/* A step gets as many bytes as it expects, or fails. */
static inline void madmpi_coll_check_bytes(struct madmpi_coll *c,
					   MPI_Count bytes, MPI_Count expected)
{
	if (unlikely(bytes != expected))
		madmpi_coll_fail(c, bytes > expected ? -EMSGSIZE : -ENODATA);
}

/* What has failed until now as -errno; 0: nothing. */
static inline int madmpi_coll_errno(const struct madmpi_coll *c)
{
	return c->error > 0 ? -EPROTO : c->error;
}

/* Start and finish one message; a flight that is not active is passed over. */
void madmpi_coll_isend(struct madmpi_coll *c, struct madmpi_flight *f,
		       const void *buf, MPI_Count count,
		       const struct madmpi_type *t, int peer);
void madmpi_coll_irecv(struct madmpi_coll *c, struct madmpi_flight *f,
		       void *buf, MPI_Count count, const struct madmpi_type *t,
		       int peer);
void madmpi_coll_wait(struct madmpi_coll *c, struct madmpi_flight *f);

/* The same for data that is already described. */
void madmpi_coll_isend_data(struct madmpi_coll *c, struct madmpi_flight *f,
			    const struct nm_data *d, int peer);
void madmpi_coll_irecv_data(struct madmpi_coll *c, struct madmpi_flight *f,
			    const struct nm_data *d, int peer);

void madmpi_coll_send(struct madmpi_coll *c, const void *buf, MPI_Count count,
		      const struct madmpi_type *t, int peer);
void madmpi_coll_recv(struct madmpi_coll *c, void *buf, MPI_Count count,
		      const struct madmpi_type *t, int peer);

/* Send to one and receive from one, which may be the same, at once. */
void madmpi_coll_exchange(struct madmpi_coll *c, const void *sbuf,
			  MPI_Count scount, const struct madmpi_type *st,
			  int to, void *rbuf, MPI_Count rcount,
			  const struct madmpi_type *rt, int from);

/*
 * Messages between a root and all others at once, without as many requests as
 * there are processes: a window of flights, the oldest finished first.
 */
#define MADMPI_WINDOW 32

struct madmpi_window {
	struct madmpi_coll *coll;
	struct madmpi_flight *flight; /* MADMPI_WINDOW, or the last one */
	unsigned n, next;
	struct madmpi_flight last; /* where there is no memory */
};

void madmpi_window_init(struct madmpi_window *w, struct madmpi_coll *c);
/* The flight to use next: waits for what it carried before. */
struct madmpi_flight *madmpi_window_next(struct madmpi_window *w);
/* Waits for all of them. */
void madmpi_window_exit(struct madmpi_window *w);

/* The address of element i. */
static inline void *madmpi_at(const void *base, MPI_Count i,
			      const struct madmpi_type *t)
{
	return (void *)((uintptr_t)base +
			(uintptr_t)(i * madmpi_type_extent(t)));
}

/*
 * Memory for count elements, in the caller's sense of a buffer: data lie
 * where the type says. NULL: no memory. Free with madmpi_coll_free().
 */
void *madmpi_coll_alloc(const struct madmpi_type *t, MPI_Count count);
void madmpi_coll_free(void *buffer, const struct madmpi_type *t,
		      MPI_Count count);

/* What is computed here, and only if all has come until now. */
static inline void madmpi_coll_apply(const struct madmpi_coll *c,
				     const struct madmpi_op *op, const void *in,
				     void *inout, MPI_Count n,
				     struct madmpi_type *t)
{
	if (likely(c->error == 0))
		madmpi_op_apply(op, in, inout, n, t);
}

static inline void madmpi_coll_copy(const struct madmpi_coll *c,
				    const void *from, MPI_Count nfrom,
				    const struct madmpi_type *from_type,
				    void *to, MPI_Count nto,
				    const struct madmpi_type *to_type)
{
	if (likely(c->error == 0))
		madmpi_copy_bytes(from, nfrom, from_type, to, nto, to_type);
}

/*
 * Bytes from the root to all processes, as steps of an operation. With an
 * intercommunicator the root is one of the first group, and both groups get
 * what it has.
 */
void madmpi_coll_tell(struct madmpi_coll *c, void *bytes, MPI_Count n,
		      int root);

/*
 * The least that a process says: a number, or -errno of one that cannot go on.
 * As steps of an operation, which need no memory.
 */
int madmpi_coll_least(struct madmpi_coll *c, int mine);

/*
 * Gathers n bytes of each process, as steps of an operation. With an
 * intercommunicator all[] has those of the own group, then those of the other.
 * NULL means that there is no memory for it: the operation fails everywhere.
 * all[] is undefined after a failure.
 */
void madmpi_coll_allgather_bytes(struct madmpi_coll *c, const void *mine,
				 MPI_Count n, void *all);

/* In an intercommunicator it is no buffer, and refused as such. */
static inline bool madmpi_in_place(const struct madmpi_comm *c, const void *buf)
{
	return buf == MPI_IN_PLACE && !madmpi_comm_is_inter(c);
}

static inline bool madmpi_is_root(const struct madmpi_comm *c, int root)
{
	return madmpi_comm_is_inter(c) ? root == MPI_ROOT : root == c->rank;
}

/*
 * Arguments of collective functions. The root is a rank; of an
 * intercommunicator also MPI_ROOT, and MPI_PROC_NULL: no argument but root and
 * communicator matters then.
 */
int madmpi_check_root(const char *function, struct madmpi_comm *c, int root);
/* Any operation fits to no elements, whatever their type. */
int madmpi_check_op(const char *function, struct madmpi_comm *c, MPI_Op op,
		    MPI_Count count, const struct madmpi_type *t,
		    struct madmpi_op **out);
/* Count, type and buffer of one side. */
int madmpi_check_data(const char *function, struct madmpi_comm *c,
		      const void *buf, MPI_Count count, MPI_Datatype datatype,
		      struct madmpi_type **out);
/* Two buffers of one operation must not be the same. */
int madmpi_check_alias(const char *function, struct madmpi_comm *c,
		       const void *sendbuf, const void *recvbuf,
		       MPI_Count bytes);

/* In every file of an operation: its algorithms, by name. */
typedef void (*madmpi_barrier_fn)(struct madmpi_coll *c);
typedef void (*madmpi_bcast_fn)(struct madmpi_coll *c, void *buf, MPI_Count n,
				const struct madmpi_type *t, int root);
typedef void (*madmpi_reduce_fn)(struct madmpi_coll *c, const void *from,
				 void *to, MPI_Count n, struct madmpi_type *t,
				 struct madmpi_op *op, int root);
typedef void (*madmpi_allreduce_fn)(struct madmpi_coll *c, void *buf,
				    MPI_Count n, struct madmpi_type *t,
				    struct madmpi_op *op);
typedef void (*madmpi_allgather_fn)(struct madmpi_coll *c, void *buf,
				    MPI_Count n, struct madmpi_type *t);

/* Nobody comes out before all have gone in. */
void madmpi_barrier_dissemination(struct madmpi_coll *c);

void madmpi_bcast_binomial(struct madmpi_coll *c, void *buf, MPI_Count n,
			   const struct madmpi_type *t, int root);
void madmpi_bcast_scatter_ring(struct madmpi_coll *c, void *buf, MPI_Count n,
			       const struct madmpi_type *t, int root);
void madmpi_allreduce_doubling(struct madmpi_coll *c, void *buf, MPI_Count n,
			       struct madmpi_type *t, struct madmpi_op *op);
void madmpi_allreduce_ring(struct madmpi_coll *c, void *buf, MPI_Count n,
			   struct madmpi_type *t, struct madmpi_op *op);
void madmpi_allgather_bruck(struct madmpi_coll *c, void *buf, MPI_Count n,
			    struct madmpi_type *t);
void madmpi_allgather_ring(struct madmpi_coll *c, void *buf, MPI_Count n,
			   struct madmpi_type *t);

/*
 * Through the memory of a node, which c has. Reductions take a type without
 * gaps, and may be in place.
 */
void madmpi_barrier_shared(struct madmpi_coll *c);
void madmpi_bcast_shared(struct madmpi_coll *c, void *buf, MPI_Count n,
			 const struct madmpi_type *t, int root);
void madmpi_reduce_shared(struct madmpi_coll *c, const void *from, void *to,
			  MPI_Count n, struct madmpi_type *t,
			  struct madmpi_op *op, int root);
void madmpi_allreduce_shared(struct madmpi_coll *c, const void *from, void *to,
			     MPI_Count n, struct madmpi_type *t,
			     struct madmpi_op *op);
void madmpi_allgather_shared(struct madmpi_coll *c, void *buf, MPI_Count n,
			     struct madmpi_type *t);

/* Read in the memory of the others, which the node lets all do (direct.c). */
void madmpi_reduce_direct(struct madmpi_coll *c, const void *from, void *to,
			  MPI_Count n, struct madmpi_type *t,
			  struct madmpi_op *op, int root);
void madmpi_bcast_direct(struct madmpi_coll *c, void *buf, MPI_Count n,
			 const struct madmpi_type *t, int root);

/* In steps within hosts and among them (hosts.c). */
void madmpi_barrier_hosts(struct madmpi_coll *c);
void madmpi_bcast_hosts(struct madmpi_coll *c, void *buf, MPI_Count n,
			const struct madmpi_type *t, int root);
void madmpi_reduce_hosts(struct madmpi_coll *c, const void *from, void *to,
			 MPI_Count n, struct madmpi_type *t,
			 struct madmpi_op *op, int root);
void madmpi_allreduce_hosts(struct madmpi_coll *c, void *buf, MPI_Count n,
			    struct madmpi_type *t, struct madmpi_op *op);

/* How data go, where there is a choice. */
enum madmpi_route { MADMPI_BY_MESSAGES, MADMPI_SHARED, MADMPI_DIRECT };

/* Whether it is through the memory of a node, if c has it. */
bool madmpi_choose_allreduce_shared(const struct madmpi_coll *c,
				    const struct madmpi_type *t,
				    const struct madmpi_op *op);

/* What to use for so many bytes among so many processes (choose.c). */
madmpi_barrier_fn madmpi_choose_barrier(const struct madmpi_coll *c);
madmpi_reduce_fn madmpi_choose_reduce(const struct madmpi_coll *c, MPI_Count n,
				      const struct madmpi_type *t,
				      const struct madmpi_op *op);
madmpi_bcast_fn madmpi_choose_bcast(const struct madmpi_coll *c,
				    MPI_Count bytes);
madmpi_allreduce_fn madmpi_choose_allreduce(const struct madmpi_coll *c,
					    MPI_Count n,
					    const struct madmpi_type *t,
					    const struct madmpi_op *op);
madmpi_allgather_fn madmpi_choose_allgather(const struct madmpi_coll *c,
					    MPI_Count bytes);
/* Of MPI_Reduce_scatter, or else by a root. */
bool madmpi_choose_pairwise(const struct madmpi_op *op);

/* Reduce in[] of all processes to `to` in the process root. */
void madmpi_reduce_binomial(struct madmpi_coll *c, const void *from, void *to,
			    MPI_Count n, struct madmpi_type *t,
			    struct madmpi_op *op, int root);

/*
 * The parts of a buffer, one per process or neighbour: equal ones in a row, or
 * each with a count and a displacement of its own, in elements; or also a type
 * of its own, and then displacements are in bytes.
 */
struct madmpi_parts {
	void *base;
	MPI_Count count; /* of each, if counts.at is NULL */
	struct madmpi_array counts, displs;
	struct madmpi_type *type;  /* of each, if types is NULL */
	const MPI_Datatype *types; /* checked; null only where nothing is */
	int n;                     /* elements of the arrays, if there are */
};

/* Of equal parts; send and recv are one if in place. */
void madmpi_alltoall_shared(struct madmpi_coll *c, const struct madmpi_parts *s,
			    const struct madmpi_parts *r);
void madmpi_gather_shared(struct madmpi_coll *c, const struct madmpi_parts *s,
			  const struct madmpi_parts *r, int root);
void madmpi_scatter_shared(struct madmpi_coll *c, const struct madmpi_parts *s,
			   const struct madmpi_parts *r, int root);

/*
 * Read where they lie: equal parts, and the own one is left to the caller.
 * MPI_Alltoall: not in place.
 */
void madmpi_scatter_direct(struct madmpi_coll *c, const struct madmpi_parts *s,
			   const struct madmpi_parts *r, int root);
void madmpi_allgather_direct(struct madmpi_coll *c,
			     const struct madmpi_parts *s,
			     const struct madmpi_parts *r);
void madmpi_alltoall_direct(struct madmpi_coll *c, const struct madmpi_parts *s,
			    const struct madmpi_parts *r);

/* For so many bytes from or for each process; none are no operation. */
bool madmpi_choose_gather_shared(const struct madmpi_coll *c, MPI_Count bytes);
enum madmpi_route madmpi_choose_scatter(const struct madmpi_coll *c,
					MPI_Count bytes);
enum madmpi_route madmpi_choose_allgather_route(const struct madmpi_coll *c,
						MPI_Count bytes);
enum madmpi_route madmpi_choose_alltoall(const struct madmpi_coll *c,
					 MPI_Count bytes);

static inline struct madmpi_type *
madmpi_parts_type(const struct madmpi_parts *p, int i)
{
	return p->types ? madmpi_type_of(madmpi_type_or_byte(p->types[i]))
			: p->type;
}

static inline MPI_Count madmpi_parts_count(const struct madmpi_parts *p, int i)
{
	return p->counts.at ? madmpi_array_get(p->counts, (size_t)i) : p->count;
}

static inline void *madmpi_parts_at(const struct madmpi_parts *p, int i)
{
	MPI_Count at = i * p->count;

	if (p->counts.at != NULL)
		at = madmpi_array_get(p->displs, (size_t)i);
	if (p->types != NULL)
		return (void *)((uintptr_t)p->base + (uintptr_t)at);
	return madmpi_at(p->base, at, p->type);
}

static inline MPI_Count madmpi_parts_bytes(const struct madmpi_parts *p, int i)
{
	return madmpi_parts_count(p, i) * madmpi_parts_type(p, i)->size;
}

/* What a process gives itself, unless it is in place. */
static inline void madmpi_coll_copy_own(const struct madmpi_coll *c,
					const struct madmpi_parts *mine,
					const struct madmpi_parts *all)
{
	if (mine->base != MPI_IN_PLACE)
		madmpi_coll_copy(c, mine->base, mine->count, mine->type,
				 madmpi_parts_at(all, c->rank),
				 madmpi_parts_count(all, c->rank), all->type);
}

/* Whether part i has any data. */
static inline bool madmpi_parts_any(const struct madmpi_parts *p, int i)
{
	return madmpi_parts_bytes(p, i) > 0;
}

/*
 * A side where each of n, or each peer, has a count and a displacement of its
 * own: arrays, type and buffer, and p->type and p->n are set; or where each
 * also has a type of its own.
 */
int madmpi_check_n_parts(const char *function, struct madmpi_comm *c,
			 MPI_Datatype datatype, int n, struct madmpi_parts *p);
int madmpi_check_n_typed_parts(const char *function, struct madmpi_comm *c,
			       int n, struct madmpi_parts *p);

static inline int madmpi_check_parts(const char *function,
				     struct madmpi_comm *c,
				     MPI_Datatype datatype,
				     struct madmpi_parts *p)
{
	return madmpi_check_n_parts(function, c, datatype, c->npeers, p);
}

static inline int madmpi_check_typed_parts(const char *function,
					   struct madmpi_comm *c,
					   struct madmpi_parts *p)
{
	return madmpi_check_n_typed_parts(function, c, c->npeers, p);
}

/* The own part of a buffer, as if it were sent; `to` must be large enough. */
int madmpi_check_own(const char *function, struct madmpi_comm *c,
		     MPI_Count scount, const struct madmpi_type *st,
		     MPI_Count rcount, const struct madmpi_type *rt);

/* A buffer of so many bytes must not be the own part of the other one. */
int madmpi_check_alias_own(const char *function, struct madmpi_comm *c,
			   const void *buf, MPI_Count bytes,
			   const struct madmpi_parts *p);

/* Receive the parts of n processes at once, the first of them `first`. */
void madmpi_gather_parts(struct madmpi_coll *c, const struct madmpi_parts *x,
			 int first, int n);

/* The root sends every other process its part, and all at once. */
void madmpi_scatter_linear(struct madmpi_coll *c, const struct madmpi_parts *s,
			   void *rbuf, MPI_Count rcount,
			   const struct madmpi_type *rt, int root);

#endif
