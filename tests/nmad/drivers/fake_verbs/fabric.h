/*
 * The network: a file in /dev/shm that the processes of a job map, and what
 * they keep there.
 *
 *   | fabric | slot 0: who, queue pairs, registrations, rings | slot 1 | ...
 *
 * A process has a slot. It writes what is its own; what others may change has
 * a lock, or is an atomic word. It holds a POSIX lock on byte `slot` of the
 * file, which the kernel releases when it dies: that is how others know. A
 * dead process's locks are taken over; under each, a store makes the change.
 *
 * A process that delivers to a queue pair holds its lock meanwhile, and has
 * compared the number first. Whatever is reached from there (rings,
 * registrations) stays until its owner has had that lock.
 *
 * Locks, outermost first: a process's list of objects, a send queue (both
 * private), a queue pair, a ring.
 */
#ifndef FAKE_VERBS_FABRIC_H
#define FAKE_VERBS_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <base/atomic.h>

#include "../../../../nmad/drivers/verbs/lib.h"

/* A queue pair's number: slot (6 bits), index (10), generation (8). */
enum {
	FV_SLOTS = 64,
	FV_QPS = 1024,
	FV_MRS = 1 << 14,
	FV_DEVICES = 8,
	FV_PORTS = 2,
	FV_SGE = 8,
	FV_INLINE = 1024,
	FV_WR = 1 << 14,
	FV_CQE = 1 << 16,
	FV_ARENA = 64 << 20,
};

/* Held by a process, by its id; so all its threads exclude each other. */
struct fv_lock {
	ATOMIC(uint32_t) owner;
};

/*
 * Marks: -: constant while the object lives   o: its owner's alone
 *        e: lock of the end   l: lock beside it   a: atomic
 */

/* A registration, as who delivers sees it. */
struct fv_mr {
	ATOMIC(uint32_t) key;        /* a: 0: none */
	uint32_t device, pd, access; /* -: */
	uint64_t addr, length;       /* -: */
	/* a, of its owner: bytes that are mapped to other pages now */
	ATOMIC(uint64_t) gone, gone_end;
};

struct fv_recv {
	uint64_t wr_id;
	uint32_t n;
	struct ibv_sge sge[FV_SGE];
};

/* Receives: a queue pair's own or shared ones. */
struct fv_rq {
	struct fv_lock lock;        /* who takes; the owner alone posts */
	uint32_t size, sges, pd;    /* -: */
	ATOMIC(uint32_t) head;      /* a: taken, l */
	ATOMIC(uint32_t) tail;      /* a: posted, o */
	ATOMIC(uint32_t) limit;     /* a: armed if not 0 */
	ATOMIC(uint32_t) limit_hit; /* a: its owner is to be told */
	ATOMIC(uint64_t) starved;   /* a: slots that have found nothing here */
	struct fv_recv recv[];
};

struct fv_cqe {
	struct ibv_wc wc;
	uint32_t
		sent; /* of a send: all before this one have left their queue */
	bool is_send;
};

/* A completion queue. */
struct fv_ring {
	struct fv_lock lock;      /* who pushes; the owner alone polls */
	uint32_t size;            /* -: */
	void *cq;                 /* -: in its owner's memory */
	ATOMIC(uint32_t) head;    /* a: polled, o */
	ATOMIC(uint32_t) tail;    /* a: pushed, l */
	ATOMIC(uint32_t) armed;   /* a: enum fv_armed */
	ATOMIC(uint32_t) fired;   /* a: events that its owner is to send */
	ATOMIC(uint32_t) overrun; /* a: one did not fit */
	struct fv_cqe cqe[];
};

enum fv_armed { FV_UNARMED, FV_SOLICITED, FV_ANY };

/* A queue pair, as who delivers to it sees it. */
struct fv_end {
	struct fv_lock lock;
	ATOMIC(uint32_t) qpn;   /* a, changed under e: 0: none */
	uint32_t generation;    /* o */
	ATOMIC(uint32_t) state; /* a, changed under e: enum ibv_qp_state */
	ATOMIC(uint32_t)
	trouble;               /* a: enum ibv_event_type + 1, for its owner */
	enum ibv_qp_type type; /* e, as are all below */
	uint32_t device, port, pd;
	uint32_t dest, qkey, access, rq_psn;
	uint8_t max_dest_rd;
	bool is_shared;     /* its receive queue is */
	struct fv_rq *rq;   /* in its owner's memory: fv_here() */
	struct fv_ring *cq; /* as well */
};

struct fv_slot {
	ATOMIC(uint32_t) id;   /* a: slot + generation * FV_SLOTS; 0: nobody */
	pid_t pid;             /* -: */
	ATOMIC(uint32_t) wake; /* a: something is for its threads to look at */
	ATOMIC(uint32_t) down[FV_DEVICES];  /* a: bit for each port */
	ATOMIC(uint32_t) fatal[FV_DEVICES]; /* a */
	struct fv_fabric *base; /* -: where its process has the file */
	struct fv_end ends[FV_QPS];
	struct fv_mr mrs[FV_MRS];
	_Alignas(4096) char arena[FV_ARENA];
};

struct fv_fabric {
	uint32_t generation; /* of slots, under the POSIX lock FV_JOINING */
	_Alignas(4096) struct fv_slot slots[FV_SLOTS];
};

extern struct fv_fabric *fv_fabric;
/* This process's; NULL: it has not joined. */
extern struct fv_slot *fv_me;

/* The first device is opened, the last one closed. 0, or errno. */
int fv_fabric_join(void);
void fv_fabric_leave(void);

/* Is the process there that had this id in its slot? */
bool fv_fabric_lives(uint32_t id);

/* Waits, but not for a dead process. */
void fv_lock(struct fv_lock *lock);
bool fv_lock_try(struct fv_lock *lock);
void fv_unlock(struct fv_lock *lock);

/* Its progress thread, if it sleeps, and whoever polls will look around. */
void fv_wake(struct fv_slot *slot);
/* Sleep until wake() since `seen`, or so many us; < 0: for ever. */
void fv_sleep(uint32_t seen, long us);

/* Of this slot's arena, zeroed; 0: it is full. */
uint64_t fv_arena_get(size_t bytes);
void fv_arena_put(uint64_t at, size_t bytes);

static inline void *fv_at(uint64_t where)
{
	return (char *)fv_fabric + where;
}

/* What another process calls `p`. */
static inline void *fv_here(const struct fv_slot *slot, void *p)
{
	return fv_at((uint64_t)((char *)p - (char *)slot->base));
}

static inline struct fv_slot *fv_slot_of(uint32_t qpn)
{
	return &fv_fabric->slots[qpn >> 18 & (FV_SLOTS - 1)];
}

static inline struct fv_end *fv_end_of(uint32_t qpn)
{
	return &fv_slot_of(qpn)->ends[qpn >> 8 & (FV_QPS - 1)];
}

uint64_t fv_now_us(void);

#endif
