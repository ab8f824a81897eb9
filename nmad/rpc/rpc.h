/*
 * A call on the wire, all in the session of its struct nm_rpc:
 *
 *	caller                                   who serves
 *	head: service, slot, length; header ---> NM_RPC_HEAD, taken by a worker
 *	body, if any ---------- NM_RPC_BODY|slot ---> received by the handler
 *	answer <--------------- NM_RPC_ANSWER|slot    when it has returned
 *
 * A slot is one of the NM_RPC_WINDOW calls of the caller to this peer that are
 * not over: the answer gives it back, so it is the flow control, too. It is the
 * caller's receive from one gate, which ends when that dies; who serves
 * receives from anyone by a monitor and nm_sr_mprobe(), which no death ends.
 */
#ifndef NMAD_RPC_RPC_H
#define NMAD_RPC_RPC_H

#include <base/hash.h>
#include <base/list.h>
#include <base/spin.h>
#include <marcel/marcel.h>
#include <nmad/nmad.h>
#include <nmad/rpc.h>
#include <pioman/cond.h>

enum {
	NM_RPC_HEAD = 0, /* tags */
	NM_RPC_BODY = 1 << 16,
	NM_RPC_ANSWER = 2 << 16,
};

/* Little-endian, in front of the header. */
struct nm_rpc_head {
	uint32_t service, slot;
	uint64_t length; /* of the body */
};

struct nm_rpc_answer {
	uint32_t unknown; /* 1: no such service */
	int32_t result;
};

/* Calls from here to one process. */
struct nm_rpc_peer {
	/* s: its lock */
	struct base_spin lock;
	uint64_t slots;           /* s: bits: taken */
	struct base_list waiting; /* s: struct call of send.c, for a slot */
};

struct nm_rpc_service {
	/* -: const  l: rpc->lock */
	struct base_link by_number; /* l: rpc->services */
	uint32_t number;            /* -: */
	nm_rpc_fn fn;               /* -: */
	void *arg;                  /* -: */
	unsigned running;           /* l: handlers */
};

struct nm_rpc_worker;

struct nm_rpc {
	/* -: const while open  l: lock  a: atomic */
	struct nm_session *session; /* -: */
	unsigned limit;             /* -: of workers */
	piom_sem_t work;     /* a: pioman's: heads that have come; at the end a
			      *    unit for each worker */
	marcel_mutex_t lock; /* a: marcel's */
	marcel_cond_t idle;  /* l: some service runs no more */
	bool closing;        /* l: */
	unsigned nworkers;   /* l: threads, in `workers` */
	unsigned nfree;      /* l: of them who wait for a head, or will */
	struct base_list workers;  /* l: struct nm_rpc_worker */
	struct base_hash services; /* l: by number; grows */
	unsigned nservices; /* l: these, and those whose end is waited for */
	int npeers;         /* -: */
	struct nm_rpc_peer peers[]; /* by rank */
};

/* send.c: whether a call from here to any process is not over. */
bool nm_rpc_is_calling(struct nm_rpc *rpc);

/* serve.c */
/* One more that waits for heads. 0 or -errno. rpc->lock is held. */
int nm_rpc_worker_add(struct nm_rpc *rpc);
/* Have them all end, when nothing is left to be answered. */
void nm_rpc_workers_end(struct nm_rpc *rpc);
/* rpc->lock held: whether the caller is a handler, of this service or any. */
bool nm_rpc_is_inside(struct nm_rpc *rpc, const struct nm_rpc_service *service);

/* rpc.c: rpc->lock held; NULL: none. */
struct nm_rpc_service *nm_rpc_find(struct nm_rpc *rpc, uint32_t number);

#endif
