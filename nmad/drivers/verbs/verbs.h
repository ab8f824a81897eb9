/*
 * The ibverbs driver's structures: InfiniBand and RoCE, by queue pairs of the
 * kind that is reliable and connected, one for each link that is used.
 *
 * Two work here. The rail's owner posts and polls, and calls nothing that may
 * sleep or allocate. The clerk is a kernel thread that sleeps most of the time:
 * it makes and destroys queue pairs, exchanges hellos, registers memory, hears
 * of ports. They leave each other orders and news in lists, and ring a bell.
 *
 * A queue pair carries frames, each a head of 8 bytes and a body:
 *
 *   PACKET  a small packet
 *   PIECE   a part of a large transfer that cannot go from memory to memory:
 *           window 4 | generation 4 | bytes
 *   CREDIT  nothing but the credits in its head
 *   BYE     what follows is no death
 *
 *   head    kind 1 | 0 1 | credits 2 | number 4, little-endian
 *
 * and writes into the memory of the peer, of which the last says that all are
 * there.
 *
 * Credits: of what is sent and takes a receive at the peer, no more than
 * VERBS_CREDITS are under way or not read there; who has read some says so.
 * Frames of CREDIT and BYE need none. Receives are shared by all peers (where
 * the device can), so that memory does not grow with them; if all peers use
 * their credits at once, the adapters have the senders wait.
 *
 * Files: lib.c (libibverbs), device.c (which port), open.c and verbs.c (the
 * driver), peer.c (from first use to the end), send.c, recv.c, large.c
 * (transfers), reg.c and unmap.c (registered memory); the clerk's: clerk.h,
 * clerk.c (the thread), call.c (who calls whom), hello.c (who may speak to us),
 * mail.c (by what), queue.c (what is made of it).
 */
#ifndef NMAD_DRIVERS_VERBS_VERBS_H
#define NMAD_DRIVERS_VERBS_VERBS_H

#include <endian.h>
#include <pthread.h>
#include <string.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <base/list.h>
#include <base/mpsc.h>
#include <base/option.h>

#include "../../boot/boot.h"
#include "../../core/rail.h"
#include "back.h"
#include "bell.h"
#include "lib.h"
#include "reg.h"

enum {
	VERBS_MAX_SMALL = 8192 + 256, /* a message, and headers before it */
	VERBS_HEAD = 8,
	VERBS_PIECE_HEAD = 8,
	VERBS_PIECE = 8192,
	VERBS_SLOT = 8512, /* a frame, in whole cache lines */
	VERBS_CREDITS = 64,
	VERBS_SPARE = 8,    /* receives of a peer for what needs no credit */
	VERBS_SQ = 128,     /* work requests of a queue pair; a power of two */
	VERBS_SQ_SPARE = 8, /* of them for what needs no credit */
	VERBS_SENDS = 256,  /* frames under way, of all links */
	VERBS_SIGNAL = 8,   /* one completion for so many frames */
	VERBS_WRITES = 4,   /* writes, or reads, that go before small packets */
	VERBS_WRITE = 256 * 1024, /* bytes of a write */
	VERBS_READ = 1024 * 1024, /* of a read: it goes the other way */
	VERBS_WINDOWS = 32,       /* large receives open on one link */
	VERBS_ORDERS = 64,        /* registrations that are asked for at once */
	VERBS_HASH = 1024,        /* a power of two */
};

enum verbs_kind {
	VERBS_PACKET = 1,
	VERBS_PIECES,
	VERBS_CREDIT,
	VERBS_BYE,
};

struct verbs_head {
	uint8_t kind, zero;
	uint16_t credits;
	uint32_t number; /* PACKET: how many went before */
};

_Static_assert(sizeof(struct verbs_head) == VERBS_HEAD, "head");
_Static_assert(VERBS_HEAD + VERBS_MAX_SMALL <= VERBS_SLOT, "packet");
_Static_assert(VERBS_HEAD + VERBS_PIECE_HEAD + VERBS_PIECE <= VERBS_SLOT,
	       "piece");

/* Where a queue pair is to be reached; the rail's address is the clerk's. */
struct verbs_addr {
	uint16_t version;
	uint8_t is_ethernet; /* RoCE: by `gid` alone */
	uint8_t mtu;         /* enum ibv_mtu */
	uint16_t lid;
	uint16_t zero;
	uint32_t qpn; /* of the clerk's queue pair for hellos */
	uint32_t psn;
	union ibv_gid gid;
};

enum { VERBS_ADDR_VERSION = 1 };

_Static_assert(sizeof(struct verbs_addr) <= NM_ADDR_MAX, "address");

/* --- device.c --- */

/* A port and what is opened on it. Constant once open. */
struct verbs_port {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_device_attr device;
	struct ibv_port_attr attr;
	const char *name; /* the device's */
	uint8_t number;
	uint8_t gid_index;
	union ibv_gid gid;
	unsigned taken; /* its number among the ports that are in use here */
};

/*
 * Open the port that `spec` ("device" or "device:port") or the settings name,
 * else the nearest that is active and not yet in use. 0; -ENODEV, explained if
 * `loud`: there is none; other -errno, explained.
 */
int nm_verbs_port_open(struct verbs_port *port, const char *spec,
		       int local_rank, bool loud);
void nm_verbs_port_close(struct verbs_port *port);

/* --- orders and news --- */

enum verbs_order_kind {
	/* to the clerk */
	VERBS_CONNECT,
	VERBS_DESTROY,
	VERBS_REGISTER, /* and back */
	/* from the clerk */
	VERBS_KNOWN, /* the queue pair may receive */
	VERBS_MET,   /* the peer's may, too */
	VERBS_FAILED,
};

struct verbs_order {
	struct base_mpsc_node node; /* order(mpsc) */
	enum verbs_order_kind kind;
	uint32_t rank;
	int error;                /* FAILED, REGISTER */
	struct verbs_addr addr;   /* CONNECT */
	struct ibv_qp *qp;        /* KNOWN, DESTROY */
	const void *memory;       /* REGISTER: ... */
	size_t bytes;             /* ... what is to be */
	struct verbs_reg *reg;    /* ... what is; NULL: error */
	struct nm_xfer *x;        /* o: for whom; NULL: nobody any more */
	struct verbs_order *next; /* o: free ones */
};

/* --- peers --- */

/* A work request that has been posted. */
struct verbs_wr {
	uint8_t kind;      /* enum verbs_wr_kind */
	uint16_t slot;     /* of a frame */
	uint32_t bytes;    /* of a frame */
	struct nm_xfer *x; /* of a write or of the last piece; or NULL */
};

enum verbs_wr_kind {
	VERBS_WR_FRAME,
	VERBS_WR_WRITE, /* or a read */
	VERBS_WR_ALIVE, /* a write of nothing: is anybody there? */
	VERBS_WR_BYE,
};

/* nm_xfer.drv */
struct verbs_x {
	struct base_link all; /* peer->xfers */
	struct base_link on;  /* peer->sending, peer->waiting */
	struct verbs_reg *reg;
	struct verbs_order *order; /* its memory is being registered */
	uint64_t remote;
	uint32_t rkey;
	uint32_t window, generation;
	uint16_t flying; /* reads or writes */
	bool receives;
	bool reads; /* what the sender has offered */
	size_t at;  /* bytes that are posted; received in pieces */
	size_t length;
} BASE_MAY_ALIAS;

_Static_assert(sizeof(struct verbs_x) <= sizeof(((struct nm_xfer *)0)->drv),
	       "nm_xfer.drv");

/* A large transfer that we receive. */
struct verbs_window {
	struct nm_xfer *x; /* or NULL: free */
	uint32_t generation;
};

/* A window in the immediate data of a last write. */
enum { VERBS_WINDOW_BITS = 5, VERBS_GENERATIONS = 1 << 27 };

_Static_assert(VERBS_WINDOWS == 1 << VERBS_WINDOW_BITS, "windows");

enum verbs_state {
	VERBS_COLD,    /* nobody has used it */
	VERBS_CALLING, /* the clerk has been asked */
	VERBS_READY,   /* it may send to us */
	VERBS_OPEN,    /* and we to it */
	VERBS_LEFT,    /* it has said goodbye */
	VERBS_CLOSED,  /* by us, or dead */
};

/* A peer: link->conn. */
struct verbs_peer {
	struct nm_link *link;
	enum verbs_state state;
	bool asks;     /* the launcher for its address */
	bool is_dying; /* on verbs->dying */
	bool bye_left; /* our goodbye has arrived */
	bool is_asked; /* a VERBS_WR_ALIVE is under way */
	int error;     /* of the dying */
	struct ibv_qp *qp;
	struct verbs_peer *next; /* of the same hash */

	/* sending */
	uint32_t posted, done; /* work requests; known to be over */
	uint32_t told;         /* of which all completions have come */
	uint32_t signaled;     /* posted, when one was last to be told of */
	uint32_t number;       /* packets sent */
	unsigned credits;
	unsigned nwrites;         /* under way */
	struct base_list xfers;   /* transfers, struct verbs_x */
	struct base_list sending; /* those that go on */
	struct verbs_wr wr[VERBS_SQ];

	/* receiving */
	uint32_t arrived;   /* packets */
	unsigned owed;      /* credits to be given back */
	unsigned held;      /* those, and receives in the core's hands */
	unsigned nreceives; /* posted for it alone, without a shared queue */
	unsigned nwindows;
	struct verbs_window window[VERBS_WINDOWS];
	struct base_list waiting; /* for a window */

	uint32_t heard, heard_before; /* signs of life; at the last look */

	struct base_link on_used;    /* verbs->used */
	struct base_link on_dying;   /* verbs->dying */
	struct base_link on_send;    /* verbs->sending */
	struct base_link on_owing;   /* verbs->owing */
	struct base_link on_asks;    /* verbs->asking */
	struct base_link on_thirsty; /* verbs->thirsty */

	struct verbs_order connect, destroy;
};

/* A receive. */
struct verbs_slot {
	struct nm_pkt_in in;
	struct base_mpsc_node free; /* order(mpsc) */
	uint32_t rank;              /* o: whose packet it holds */
};

struct verbs_clerk;

/* An instance: rail->drv. */
struct verbs {
	/* -: const once open  o: the rail's owner  a: atomic */
	struct nm_rail *rail;             /* -: */
	const struct nm_boot_info *info;  /* -: */
	struct verbs_port port;           /* -: */
	struct verbs_clerk *clerk;        /* -: its own affair, clerk.c */
	struct verbs_regs *regs;          /* -: see reg.h */
	struct ibv_comp_channel *channel; /* -: */
	struct ibv_cq *cq;                /* -: */
	struct ibv_srq *srq;              /* -: or NULL */
	int epoll;                        /* -: rail->fd */
	struct verbs_bell bell; /* a: rung by the clerk, and for what is back */
	bool may_read;          /* -: from who offers it */
	unsigned max_inline;    /* -: bytes */
	size_t max_write;       /* -: bytes of a request */
	size_t max_read;        /* -: likewise */

	unsigned char *memory;      /* -: receives, then frames to be sent */
	size_t bytes;               /* -: */
	struct ibv_mr *mr;          /* -: */
	struct verbs_slot *slots;   /* -: nslots receives */
	unsigned nslots;            /* -: */
	uint16_t free[VERBS_SENDS]; /* o: frames, nfree of them */
	unsigned nfree;             /* o: */
	unsigned cq_room;           /* o: work requests that may be posted */
	bool is_notified; /* o: an event has been asked for, and not read */
	bool has_failed; /* o: a queue pair, since the last look at what came */
	bool is_starved; /* o: somebody found no frame since then */

	struct verbs_peer *peers;            /* o: by rank; zero: never used */
	struct verbs_peer *hash[VERBS_HASH]; /* o: by the queue pair */
	struct base_list used, dying, sending, owing, asking; /* o: peers */
	struct base_list thirsty; /* o: peers that lack receives */
	unsigned nhungry; /* o: peers whose credits are in the core's hands */
	unsigned nkept;   /* o: receives that are */
	struct base_mpsc_node *refill; /* o: receives to be posted */
	unsigned nrefill;              /* o: */
	struct verbs_back back;        /* a: receives; see back.h */

	struct verbs_order orders[VERBS_ORDERS]; /* o: of registrations */
	struct verbs_order *free_orders;         /* o: */
	struct base_mpsc news;  /* a: struct verbs_order; order(mpsc) */
	ATOMIC(uint32_t) ticks; /* a: relaxed; the clerk's: look who lives */
	ATOMIC(int) down;       /* a: relaxed; why all is over, or 0 */
	uint32_t ticks_seen;    /* o: */
	struct verbs *next;     /* of all instances, for fork */
};

enum {
	VERBS_OPT_DEVICE,
	VERBS_OPT_PORT,
	VERBS_OPT_GID,
	VERBS_OPT_TIMEOUT,
	VERBS_OPT_DEAD,
	VERBS_OPT_RECEIVES,
	VERBS_OPT_SRQ,
	VERBS_OPT_INLINE,
	VERBS_OPT_PINNED,
	VERBS_OPT_CACHE,
	VERBS_OPT_READ,
	VERBS_NOPTS
};
extern struct base_option nm_verbs_options[VERBS_NOPTS];

static inline struct verbs_x *nm_verbs_x(struct nm_xfer *x)
{
	return (struct verbs_x *)(void *)x->drv;
}

static inline struct nm_xfer *nm_verbs_xfer(struct base_link *on)
{
	struct verbs_x *vx = container_of(on, struct verbs_x, on);

	return container_of((void *)vx, struct nm_xfer, drv);
}

/* Which work request a completion is of: a receive's slot, or ... */
enum { VERBS_ID_SEND = 1 };

static inline uint64_t nm_verbs_id(uint32_t rank, uint32_t index)
{
	return (uint64_t)index << 32 | (uint64_t)rank << 1 | VERBS_ID_SEND;
}

/* --- clerk.c --- */

/* Fills mine.qpn. 0 or -errno. */
int nm_verbs_clerk_open(struct verbs *v, struct verbs_addr *mine);
/* From now on hellos are heard; the key of the job is known. 0 or -errno. */
int nm_verbs_clerk_start(struct verbs *v);
/* All queue pairs are destroyed when it returns. */
void nm_verbs_clerk_close(struct verbs *v);
/* In a forked child, which has no such thread. */
void nm_verbs_clerk_forked(struct verbs *v);
/* By the rail's owner. */
void nm_verbs_order(struct verbs *v, struct verbs_order *o);
void nm_verbs_clean(void *v);

/* --- hello.c --- */

enum { VERBS_HELLO = 72 };

/* What the clerks send each other until both know that both know. */
struct verbs_hello {
	uint32_t from, to;       /* ranks */
	struct verbs_addr queue; /* of the link's queue pair; qpn, psn */
	struct verbs_addr clerk; /* qpn, where to answer */
	uint32_t heard;          /* the peer's qpn, if it is known; or 0 */
	bool is_met;             /* and the peer knows mine */
};

void nm_verbs_hello_put(unsigned char to[static VERBS_HELLO],
			const struct verbs_hello *h,
			const unsigned char key[static 16]);
/* NULL, or what is wrong with it. */
const char *nm_verbs_hello_get(const unsigned char *from, size_t length,
			       struct verbs_hello *h,
			       const unsigned char key[static 16]);

/* --- send.c --- */

int nm_verbs_post(struct nm_link *link, struct nm_pkt *pkt);

/* May it post? And is there a frame? `spare`: for what needs no credit. */
bool nm_verbs_has_room(const struct verbs *v, const struct verbs_peer *p,
		       bool spare);
bool nm_verbs_has_frame(struct verbs *v, struct verbs_peer *p, bool spare);
/* The frame that is to be sent next: room for a body. */
unsigned char *nm_verbs_frame(struct verbs *v);
/*
 * Send it. `x`: to be ended when it has arrived, or NULL. 0 or -errno: the link
 * is to be given up.
 */
int nm_verbs_frame_send(struct verbs *v, struct verbs_peer *p,
			enum verbs_kind kind, size_t bytes, struct nm_xfer *x);
/* Write to the peer; `last`: say so. Or read from it. As above. */
int nm_verbs_write(struct verbs *v, struct verbs_peer *p, struct nm_xfer *x,
		   size_t bytes, bool last);

/* Credits that are owed and have not gone with anything. */
void nm_verbs_pay(struct verbs *v, struct verbs_peer *p);
void nm_verbs_bye(struct verbs *v, struct verbs_peer *p);
/* Ask the peer's adapter for a sign of life, if nothing else does. */
void nm_verbs_ask(struct verbs *v, struct verbs_peer *p);
/* Of its queue pair, in the state of error, all completions are to come. */
void nm_verbs_mark_end(struct verbs *v, struct verbs_peer *p);
/* The work requests up to this one have been done. */
void nm_verbs_done(struct verbs *v, struct verbs_peer *p, uint32_t index);
/* Those up to this one are over, whatever became of them. */
void nm_verbs_flushed(struct verbs *v, struct verbs_peer *p, uint32_t index);
/* The frame of a work request, and how long it is; NULL: it has none. */
const struct verbs_head *
nm_verbs_frame_of(struct verbs *v, const struct verbs_wr *w, size_t *bytes);
/* The frames of all that are not done are free. */
void nm_verbs_drop_frames(struct verbs *v, struct verbs_peer *p);

/* --- recv.c --- */

/* What has come and what has left; *empty: all of it. True if anything. */
bool nm_verbs_poll_cq(struct verbs *v, int *budget, bool *empty);
/* The frames of this queue pair are the peer's; no more. */
void nm_verbs_know(struct verbs *v, struct verbs_peer *p);
void nm_verbs_unknow(struct verbs *v, struct verbs_peer *p);
struct verbs_peer *nm_verbs_find(struct verbs *v, uint32_t qpn);
/* What was owed has gone with a frame. */
void nm_verbs_paid(struct verbs *v, struct verbs_peer *p);
void nm_verbs_release(struct nm_rail *rail, struct nm_pkt_in *in);
/* A peer may wait for one that the core has: it must not be slept over. */
bool nm_verbs_wants_back(const struct verbs *v);
/* Receives that others have given back. */
void nm_verbs_take_back(struct verbs *v);
/* All of them, at the start. */
void nm_verbs_fill(struct verbs *v);
/* The core may hold what it likes of this peer, which is closed. */
void nm_verbs_hold_nothing(struct verbs *v, struct verbs_peer *p);
/* Post them. */
void nm_verbs_refill(struct verbs *v, bool all);

/* --- large.c --- */

void nm_verbs_xfer_offer(struct nm_xfer *x);
void nm_verbs_xfer_withdraw(struct nm_xfer *x);
int nm_verbs_xfer_recv(struct nm_xfer *x);
int nm_verbs_xfer_send(struct nm_xfer *x);
/* Go on with what the peer has granted. True if anything left. */
bool nm_verbs_push(struct verbs *v, struct verbs_peer *p);
void nm_verbs_registered(struct verbs *v, struct verbs_order *o);
/* A read or a write has been done. */
void nm_verbs_written(struct verbs *v, struct verbs_peer *p, struct nm_xfer *x);
/* The last piece has arrived. */
void nm_verbs_sent(struct verbs *v, struct nm_xfer *x);
/* All has been written here. False: nonsense. */
bool nm_verbs_window_full(struct verbs *v, struct verbs_peer *p,
			  uint32_t immediate);
/* A piece has come. False: nonsense. */
bool nm_verbs_piece(struct verbs *v, struct verbs_peer *p,
		    const unsigned char *body, size_t bytes);
/* Let go of all transfers. */
void nm_verbs_forget(struct verbs *v, struct verbs_peer *p);

/* --- open.c --- */

void nm_verbs_do_not_block(int fd);
/* Make this eventfd readable; anyone. And not any more. */
void nm_verbs_ring(struct verbs_bell *b);
void nm_verbs_hush(struct verbs_bell *b);

extern const struct base_option_table nm_verbs_option_table;

int nm_verbs_open(struct nm_rail *rail, const struct nm_boot_info *info,
		  const char *spec);
void nm_verbs_close(struct nm_rail *rail);

/* --- peer.c --- */

struct verbs_peer *nm_verbs_peer(struct verbs *v, uint32_t rank);
int nm_verbs_connect(struct nm_link *link);
/* Those whose address the launcher had not answered for. */
void nm_verbs_ask_again(struct verbs *v);
/* Take up what the clerk says. True if anything. */
bool nm_verbs_news(struct verbs *v);
/* It may be sent to. */
void nm_verbs_met(struct verbs *v, struct verbs_peer *p);
/* Whose adapter has done nothing for us since the last look is asked. */
void nm_verbs_look(struct verbs *v);

/* Its end is told when all that has come from it is read ... */
void nm_verbs_fail(struct verbs *v, struct verbs_peer *p, int error);
/* ... as it is now. */
void nm_verbs_bury(struct verbs *v);
/* It is over, and nobody is told. */
void nm_verbs_hang_up(struct verbs *v, struct verbs_peer *p);
/* Likewise: -ECONNRESET, which the core takes for its death. */
int nm_verbs_refuse(struct verbs *v, struct verbs_peer *p);
void nm_verbs_give_up(struct nm_link *link);
uint32_t nm_verbs_arrived(const struct nm_link *link);
/* Of a peer that is closed: its queue pair, when it is flushed. */
void nm_verbs_destroy(struct verbs *v, struct verbs_peer *p);

#endif
