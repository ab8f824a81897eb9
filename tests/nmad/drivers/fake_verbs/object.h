/*
 * What a process has of the network: contexts, queues, and the sends that
 * have not been begun.
 */
#ifndef FAKE_VERBS_OBJECT_H
#define FAKE_VERBS_OBJECT_H

#include "fabric.h"
#include "fake_verbs.h"

#define EXPORT __attribute__((visibility("default")))

typedef ATOMIC(uint32_t) fv_count_t;

/* --- settings and faults: setting.c, fault.c --- */

enum fv_setting {
	FV_SET_DEVICES,
	FV_SET_PORTS,
	FV_SET_LINK,
	FV_SET_EACCES,
	FV_SET_MTU,
	FV_SET_MAX_MSG,
	FV_SET_MAX_INLINE,
	FV_SET_MAX_WR,
	FV_SET_MAX_QP,
	FV_SET_SRQ,
	FV_SET_MEMLOCK,
	FV_SET_TIMEOUT_MS,
	FV_SET_RNR_US,
	FV_SET_DELAY_US,
	FV_SET_LOSS,
	FV_SET_DUPLICATES,
	FV_SET_SEED,
	FV_SETTINGS
};

enum { FV_LINK_ROCE, FV_LINK_IB };

long fv_setting(enum fv_setting which);
void fv_settings_read(void);
void fv_set(const char *name, const char *value);
/* From 0 to n - 1. */
uint32_t fv_lot(uint32_t n);

void fv_fail(const struct fake_verbs_fault *fault);
/* Does the next send to this process fail, and how? Uses it up. */
bool fv_fault_due(pid_t to, int device, struct fake_verbs_fault *out);

/* --- counters --- */

struct fv_counts {
#define X(name) ATOMIC(uint64_t) name;
	FAKE_VERBS_OBJECTS(X)
	ATOMIC(uint64_t) doorbells;
	struct {
		FAKE_VERBS_CALLS(X)
	} calls;
#undef X
};
extern struct fv_counts fv_counts;

#define FV_CALLED(name) fetch_add_relaxed(&fv_counts.calls.name, 1)
#define FV_MORE(name)   fetch_add_relaxed(&fv_counts.name, 1)
#define FV_LESS(name)   fetch_sub_relaxed(&fv_counts.name, 1)

/* --- events: event.c --- */

/*
 * A descriptor that is readable while something is queued; who polls may put,
 * so that nothing is allocated.
 */
struct fv_events {
	int fd;
	struct fv_lock lock;
	uint32_t head, tail;               /* l */
	struct ibv_async_event what[1024]; /* l; of a channel: element.cq */
};

int fv_events_init(struct fv_events *q);
void fv_events_exit(struct fv_events *q);
void fv_events_put(struct fv_events *q, const struct ibv_async_event *what);
/* false: none, and errno. Sleeps, unless the descriptor does not block. */
bool fv_events_get(struct fv_events *q, struct ibv_async_event *out);
/* What concerns this object is forgotten. */
void fv_events_drop(struct fv_events *q, const void *object);

/* --- objects --- */

struct fv_context {
	struct ibv_context ibv;
	struct fv_context *next;
	uint32_t device;
	struct fv_events async;
	uint32_t told_down; /* bits of ports that are known to be down */
	bool told_fatal;
	ATOMIC(uint32_t) users; /* protection domains and completion queues */
};

struct fv_pd {
	struct ibv_pd ibv;
	ATOMIC(uint32_t) users;
};

struct fv_channel {
	struct ibv_comp_channel ibv;
	struct fv_events events;
};

struct fv_cq {
	struct ibv_cq ibv;
	struct fv_cq *next;
	struct fv_lock poll_lock;
	struct fv_ring *ring;
	size_t bytes;
	ATOMIC(uint32_t) delivered, async_delivered;
	ATOMIC(bool) told_overrun;
	ATOMIC(uint32_t) users;
};

/* Receives of a queue pair or shared; rq->lock is for others, this is ours. */
struct fv_receives {
	struct fv_lock post_lock;
	struct fv_rq *rq;
	size_t bytes;
	ATOMIC(uint32_t) retired; /* whose completions have been polled */
};

struct fv_srq {
	struct ibv_srq ibv;
	struct fv_srq *next;
	struct fv_receives receives;
	ATOMIC(uint32_t) delivered;
	ATOMIC(uint32_t) users;
};

/* Whom an address means; port 0: nobody. */
struct fv_place {
	uint32_t device, port;
};

struct fv_ah {
	struct ibv_ah ibv;
	struct ibv_ah_attr attr;
};

struct fv_send {
	uint64_t wr_id;
	enum ibv_wr_opcode opcode;
	unsigned flags;
	uint32_t imm, length, rkey;
	uint64_t remote;
	uint64_t not_before; /* us */
	int n;
	struct ibv_sge sge[FV_SGE];
	struct ibv_ah_attr to; /* datagrams: as are the next two */
	uint32_t qpn, qkey;
	bool is_too_long;
	char inlined[];
};

struct fv_qp {
	struct ibv_qp ibv;
	struct fv_qp *next;
	struct fv_end *end;
	struct ibv_qp_attr attr; /* what modify_qp() has set */
	struct ibv_qp_cap cap;
	bool signals_all;
	struct fv_cq *send_cq, *recv_cq;
	struct fv_srq *srq;
	struct fv_receives own;     /* if there is no srq */
	ATOMIC(uint32_t) delivered; /* asynchronous events */

	struct fv_lock sq_lock; /* of all below */
	char *sends;
	size_t send_bytes;        /* of one */
	uint32_t head, tail;      /* begun, posted */
	ATOMIC(uint32_t) retired; /* whose completions have been polled */
	bool is_waiting;          /* counted in fv_waiting */
	bool is_flushed;
	bool is_judged;    /* sends[head] has met a fault, or none */
	bool is_unacked;   /* sends[head] has come, but so it will not seem */
	uint64_t next_try; /* us, as are these */
	uint64_t silent_since, rnr_since;
	bool is_doomed; /* the fault that sends[head] has met */
	struct fake_verbs_fault fault;
};

/* Under this lock: lists of all objects, and what a round of progress does. */
extern struct fv_lock fv_list_lock;
extern struct fv_context *fv_contexts;
/* Who polls need not be who has made it. */
extern struct fv_number {
	ATOMIC(struct fv_qp *) qp; /* a: */
} fv_qps[FV_QPS];
extern struct fv_qp *fv_qp_list;
extern struct fv_cq *fv_cq_list;
extern struct fv_srq *fv_srq_list;
extern fv_count_t fv_waiting; /* queue pairs */

/* After a fork. */
void fv_objects_forget(void);
static inline struct fv_context *fv_context(struct ibv_context *c)
{
	return (struct fv_context *)c;
}

/* --- device.c --- */
bool fv_is_fatal(uint32_t device);
bool fv_port_is_up(const struct fv_slot *slot, uint32_t device, uint32_t port);
struct fv_place fv_place_of(const struct ibv_ah_attr *a);
bool fv_is_address(const struct ibv_ah_attr *a);
void fv_gid(uint32_t device, uint32_t port, int index, union ibv_gid *out);
uint16_t fv_lid(uint32_t device, uint32_t port);
uint32_t fv_mtu(void);
/* An event for who has this device open; its lock of the list is held. */
void fv_tell(uint32_t device, enum ibv_event_type type, int port);

/* --- memory.c --- */
enum { FV_PAGE = 4096 };

static inline uint64_t fv_page_of(uint64_t addr)
{
	return addr & ~(uint64_t)(FV_PAGE - 1);
}

/* Bytes of whole pages. */
static inline uint64_t fv_pages(uint64_t addr, uint64_t length)
{
	return fv_page_of(addr + length + FV_PAGE - 1) - fv_page_of(addr);
}

/* Is this memory of the slot's process registered so? */
bool fv_mr_covers(struct fv_slot *slot, uint32_t key, uint32_t device,
		  uint32_t pd, uint64_t addr, uint64_t length, uint32_t access);
void fv_mr_gone(const void *at, size_t bytes);

/* --- cq.c --- */
void fv_push(struct fv_slot *owner, struct fv_ring *ring,
	     const struct fv_cqe *cqe, bool solicited);
void fv_cq_look(struct fv_cq *cq);
/* Completions of this queue pair are forgotten. */
void fv_cq_clean(struct fv_cq *cq, uint32_t qpn);

/* --- recv.c --- */
bool fv_take(struct fv_slot *owner, struct fv_rq *rq, struct fv_recv *out);
int fv_post(struct fv_receives *r, struct ibv_recv_wr *wr,
	    struct ibv_recv_wr **bad);
struct fv_rq *fv_rq_new(struct fv_receives *r, uint32_t wrs, uint32_t sges,
			uint32_t pd);
void fv_rq_free(struct fv_receives *r);
void fv_srq_look(struct fv_srq *srq);
/* Of the queue pair's receives one has been polled. */
static inline struct fv_receives *fv_receives_of(struct fv_qp *q)
{
	return q->srq != NULL ? &q->srq->receives : &q->own;
}

/* --- qp.c --- */
/* The queue pair has failed; its owner says so; sq_lock is held. */
void fv_qp_error(struct fv_qp *q, enum ibv_qp_state state);
void fv_qp_tell(struct fv_qp *q, enum ibv_event_type type);
void fv_qp_flush_receives(struct fv_qp *q);
void fv_qp_look(struct fv_qp *q);

/* --- send.c --- */
/* Begin what can be; sq_lock is held. */
void fv_run(struct fv_qp *q, bool now);

/* --- deliver.c --- */
enum { FV_NOT_READY = -1, FV_SILENCE = -2 };
/* A status, or one of these. */
int fv_deliver(struct fv_qp *q, struct fv_send *w);

/* --- progress.c --- */
/*
 * Look at what others have left and what waits; unless somebody does so now,
 * for whom one may be patient.
 */
void fv_progress(bool patient);
bool fv_progress_due(void);
int fv_progress_start(void);
void fv_progress_stop(void);

#define FV_POLLS struct ibv_cq *cq, int n, struct ibv_wc *wc
int fv_poll_cq(FV_POLLS);
int fv_req_notify_cq(struct ibv_cq *cq, int solicited_only);
int fv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		 struct ibv_send_wr **bad);
int fv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		 struct ibv_recv_wr **bad);
int fv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad);

#endif
