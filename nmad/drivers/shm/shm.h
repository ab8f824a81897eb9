/*
 * The shm driver's structures: what lies in shared memory, and what each
 * process keeps about its peers.
 *
 * The processes of a host share one file, the arena, which has a part for each:
 *
 *   struct shm_arena   what all must know | a card of each process
 *   struct shm_seg     a segment: who it is | ring | control blocks of
 * transfers that it receives | its own buffers for medium packets | chunks of
 * two-copy transfers that it receives | notes struct shm_seg     ...
 *
 * A process maps the first part and its own segment when it joins, and that of
 * a peer when it uses that peer, or hears of it. Pages of the file that nobody
 * has touched are not there.
 *
 * Processes of a host are known to each other by their *index* there: the
 * number of lower ranks on the same host.
 *
 * Small packets travel in a slot of the receiver's ring (ring.h). Medium ones
 * lie in a buffer of the sender's segment, and the slot says where; the
 * receiver gives the buffer back by one store. Large transfers: large.c.
 *
 * What a peer writes is never believed without a check of its bounds: memory
 * of ours is safe from a peer gone wild, though the job is not.
 */
#ifndef NMAD_DRIVERS_SHM_SHM_H
#define NMAD_DRIVERS_SHM_SHM_H

#include <sys/types.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include <base/host.h>
#include <base/list.h>
#include <base/option.h>

#include "../../core/rail.h"
#include "bell.h"
#include "ring.h"

enum {
	SHM_MAGIC = 0x6d68736e, /* "nshm" */
	SHM_VERSION = 7,
	SHM_NONCE = 16,

	SHM_BUFS = 128,        /* a power of two */
	SHM_BUF_BYTES = 16384, /* max_small */

	SHM_CTLS = 256,
	SHM_PIPES = 8, /* the first control blocks have chunks */
	SHM_DEPTH = 8, /* chunks of a pipe */
	SHM_CHUNK = 16384,

	SHM_PACKETS = 512, /* small packets that the core may hold */
	SHM_BELLS = 64, /* peers' doorbells that are open at a time, at most */
};

/* Kinds of a slot. */
enum {
	SHM_SMALL = 1, /* the packet is in the slot */
	SHM_MEDIUM,    /* struct shm_where is */
};

struct shm_where {
	uint32_t buf;    /* index in the sender's segment */
	uint32_t number; /* what the receiver says when it gives it back */
	uint32_t length; /* of the packet */
} BASE_MAY_ALIAS;

/*
 * States of an announced transfer; above them, in the same word, the number of
 * the announcement, so that an old one cannot be taken. And what the receiver
 * knows for itself, whatever a peer may write.
 */
enum {
	SHM_OPEN = 1,
	SHM_TAKEN = 2,    /* by the sender */
	SHM_RECALLED = 3, /* by the receiver */
	SHM_STATES = 4,
};
enum shm_fate {
	SHM_AWAITED,
	SHM_VOID,    /* recalled */
	SHM_IN_VAIN, /* taken, and yet nobody awaits it any more */
};

/* Blocks of a large transfer that one side has copied. */
typedef ATOMIC(uint32_t) shm_count_t;

/*
 * One large transfer, in the receiver's segment; a line for each writer. It is
 * the receiver's while it is on the free list; the sender's too from the RTR
 * until it stores `left`.
 */
struct shm_ctl {
	/* a: by the sides named */
	struct {
		ATOMIC(uint64_t)
		claim;                  /* a: both; blocks taken: by the
					 * receiver << 32 | by the sender */
		ATOMIC(uint32_t) error; /* a: both; errno of the first */
		ATOMIC(uint64_t)
		announced;                 /* a: both; a number and a state */
		struct nm_awaited awaited; /* a: both; its receiver's news */
	} BASE_ALIGNED(BASE_CACHE_PAIR);
	struct {
		shm_count_t pulled; /* a: by the receiver;
				     * order(shm-account) */
		ATOMIC(uint32_t)
		head; /* a: chunks emptied;
		       * order(shm-head) */
	} BASE_ALIGNED(BASE_CACHE_PAIR);
	struct {
		shm_count_t pushed;    /* a: by the sender;
					* order(shm-account) */
		ATOMIC(uint32_t) tail; /* a: chunks filled; order(shm-tail) */
		ATOMIC(uint32_t)
		left; /* a: the sender has done with it;
		       * order(shm-left) */
	} BASE_ALIGNED(BASE_CACHE_PAIR);
};

struct shm_seg {
	/* -: const once published  a: atomic  others: see their types */
	uint32_t magic, version;        /* -: */
	unsigned char nonce[SHM_NONCE]; /* -: of this instance */
	uint32_t rank, nranks;          /* -: */
	struct shm_bell bell;           /* a: */
	ATOMIC(uint64_t) head BASE_ALIGNED(BASE_CACHE_PAIR); /* a: ring's */
	ATOMIC(uint64_t) tail BASE_ALIGNED(BASE_CACHE_PAIR); /* a: ring's */
	ATOMIC(uint64_t) claim[SHM_SLOTS] BASE_ALIGNED(BASE_CACHE_PAIR);
	struct shm_slot slot[SHM_SLOTS];
	struct shm_ctl ctl[SHM_CTLS];
	ATOMIC(uint32_t)
	back[SHM_BUFS] BASE_ALIGNED(
		BASE_CACHE_PAIR); /* a: of each buffer, the number under which
				   * it was given back last; order(shm-buf) */
	unsigned char
		buf[SHM_BUFS][SHM_BUF_BYTES] BASE_ALIGNED(BASE_CACHE_PAIR);
	unsigned char chunk[SHM_PIPES][SHM_DEPTH][SHM_CHUNK];
	struct shm_note note[]; /* a: by index: the peer and I */
};

/* Where a doorbell is: its descriptor there, or -1; device and inode. */
struct shm_where_bell {
	int32_t fd;
	uint64_t id[2];
};

/* What a process says of itself to all of its host. */
struct shm_card {
	/* -: const once all have joined */
	uint32_t there;  /* -: it has joined */
	uint32_t rank;   /* -: */
	int32_t pid;     /* -: */
	uint64_t secret; /* -: where a copy of its nonce lies; see cma.c */
	struct shm_where_bell bell; /* -: */
};

/* The first part of the file. */
struct shm_arena {
	/* -: const once its maker has put its address  a: atomic */
	uint32_t magic, version;        /* -: */
	unsigned char nonce[SHM_NONCE]; /* -: */
	ATOMIC(uint32_t) joined;        /* a: processes */
	ATOMIC(uint32_t)
	deaf; /* a: some bell cannot be rung by
	       * all; const once all have joined */
	ATOMIC(uint32_t)
	heavy;                  /* a: some process has no barrier;
				 * likewise; see bell.h */
	struct shm_card card[]; /* by index */
};

/* What the others must know to map the file: the maker's rail's address. */
struct shm_addr {
	uint32_t magic, version;
	char host[BASE_HOST_ID]; /* the same text: the same kernel */
	uint64_t pidns[2]; /* device and inode: the same process numbers */
	unsigned char nonce[SHM_NONCE];
	uint64_t bytes; /* of the file */
	int32_t pid, fd;
	uint32_t uid;
	char name[64]; /* of a file in /dev/shm instead of fd, or "" */
	struct shm_where_bell bell;
};

/* A peer: link->conn. One for each process of the host; zero: not used. */
struct shm_peer {
	/* -: const after connect  o: the rail's owner's  a: atomic */
	struct nm_link *link; /* -: */
	struct shm_seg *seg;  /* -: its segment */
	uint32_t index;       /* -: */
	int pid;              /* -: */
	ATOMIC(int)
	cma;                   /* a: its number if its memory can be reached
				* while it is known to live; else 0. Set by
				* connect, and read by anybody */
	bool light;            /* -: asking whether it sleeps is cheap */
	int bell;              /* o: open here, or -1 */
	bool owes;             /* o: it is to be rung, and could not be */
	struct shm_ring_tx tx; /* o: to it */
	unsigned nbufs;        /* o: buffers of mine that it holds */
	bool stuck;            /* o: a packet found no room there ... */
	bool no_buf;           /* o: ... but perhaps in the ring */
	bool said;             /* o: and arm() has said so to who can help */
	int pidfd;             /* o: or -1 */
	bool left;             /* o: by us: nothing of it is told any more */
	bool blind;            /* o: no pidfd tells of its death */
	bool exited;           /* o: the process is gone */
	bool gone;             /* o: and all it sent has been taken */
	uint64_t drain;        /* o: exited: it has no ticket from here on */
	struct base_link all;  /* o: on shm->peers */
};

/* A received packet. */
struct shm_pkt {
	struct nm_pkt_in in; /* in.drv: of a medium one where in the sender's
			      * segment it is given back, or NULL */
	uint32_t number;     /* and as what */
	ATOMIC(uint32_t)
	busy; /* a: set by the rail's owner, cleared by who has done with it;
	       * order(shm-pkt) */
	unsigned char data[SHM_INLINE];
};

/*
 * My buffers for medium packets. The rail's owner's.
 *
 * They are lent in turn: what has just come back is in the caches of who has
 * read it, and written from there at a third of the speed. But who sends one
 * and hears something before the next finds the last one back, and a short
 * packet is there at once where both have been before. A peer may hold half of
 * what no other one holds: so there is one left for many that give none back.
 *
 * Who lends writes the number here only, so that the words by which buffers
 * come back change their side once for a line of them.
 */
struct shm_lending {
	uint32_t number[SHM_BUFS]; /* under which it is, or was last, lent */
	struct shm_peer *holder[SHM_BUFS]; /* who may have it still, or NULL */
	unsigned nlent;                    /* of them there are holders */
	unsigned next;                     /* whose turn it is: the coldest */
	uint64_t heard; /* the ring's head when the last one was lent */
};

/* My control blocks. The rail's owner's. */
struct shm_ctls {
	uint16_t plain[SHM_CTLS], pipe[SHM_PIPES]; /* stacks of free ones */
	unsigned nplain, npipe;
	uint16_t linger[SHM_CTLS]; /* done, but the sender has not left */
	unsigned nlinger;
	uint16_t announced[SHM_CTLS]; /* and not yet met */
	unsigned nannounced;
	ATOMIC(uint8_t)
	fate[SHM_CTLS]; /* a: of those, enum shm_fate; by who recalls */
	struct shm_peer *sender[SHM_CTLS];
};

/* Peers whose doorbell is open and may be closed: a queue. */
struct shm_bells {
	struct shm_peer *open[SHM_BELLS];
	unsigned first, n;
};

/* An instance: rail->drv. */
struct shm {
	/* -: const once open  o: the rail's owner's  a: atomic */
	struct shm_ring_rx rx;       /* o: */
	unsigned next;               /* o: the packets below are busy */
	struct base_list active;     /* o: transfers that poll() moves */
	struct base_list waiting[2]; /* o: for a block: plain, with chunks */
	bool several;                /* o: of the former move, as of now */
	unsigned npolls;             /* o: */
	unsigned nexited;            /* o: peers exited and not yet gone */
	unsigned nowed;              /* o: peers that are to be rung */
	unsigned nstuck;             /* o: peers that have no room for us */
	bool noted;                  /* o: some note says that we are hungry */
	bool refused;                /* o: a peer could not be connected */
	bool light;                  /* o: all have the barrier, as known */
	unsigned nblind;             /* o: peers without a pidfd */
	unsigned npidfds, maxpidfds; /* o, -: open; of those that we may have */
	struct shm_bells bells;      /* o: */
	unsigned maxbells;           /* -: so many, at most SHM_BELLS */
	int spare;                   /* o: a descriptor for a bell, or -1 */

	struct nm_rail *rail;    /* -: */
	struct shm_arena *arena; /* -: or NULL: nobody is reached */
	struct shm_seg *seg;     /* -: mine */
	size_t bytes;            /* -: of a segment */
	int fd;                  /* -: of the file */
	char name[64];           /* -: of the file if it has one still, or "" */
	uint32_t nranks, rank;   /* -: */
	uint32_t nlocal, index;  /* -: processes of this host; mine */
	int32_t *indices;        /* -: by rank; -1: of another host */
	struct shm_peer *all;    /* o: by index; see struct shm_peer */
	struct shm_pkt *packets; /* -: SHM_PACKETS of them */
	unsigned char *secret;   /* -: private copy of the nonce */
	int epoll;               /* -: of pidfds, bell, alarm: rail->fd */
	int bell;                /* -: what peers ring, or -1 */
	struct shm_where_bell bell_at; /* -: for them */
	int alarm;                     /* -: a timer, for naps, or -1 */
	uint64_t nap;                  /* o: the last one, ns */
	bool is_alarmed;               /* o: the alarm is set, or has rung */
	bool barrier;                  /* -: see bell.h */
	struct base_list peers;        /* o: those that are used */
	uint64_t next_look;            /* o: when to look for deaths, ns */
	struct shm_lending lending;    /* o: */
	struct shm_ctls ctls;          /* o: */
	bool said_no_cma;              /* o: */
};

/* Options, read by open(). */
enum { SHM_OPT_CMA, SHM_OPT_SEGMENT, SHM_NOPTS };
extern struct base_option nm_shm_options[SHM_NOPTS];

/* --- seg.c: the arena and its segments --- */

/* nlocal is known. */
void nm_shm_arena_init(struct shm *shm);
/* Make the file, and fill the address. 0 or -errno, explained. */
int nm_shm_arena_make(struct shm *shm, struct shm_addr *addr);
/*
 * Map the beginning and my segment, and leave my card. 0, and shm->arena is
 * NULL if I share no memory with the maker; or -errno, explained.
 */
int nm_shm_arena_join(struct shm *shm, const struct shm_addr *addr);
void nm_shm_arena_drop(struct shm *shm);

/* Map a peer's segment: 0; -EAGAIN: no memory now; -EPROTO, explained. */
int nm_shm_seg_map(struct shm *shm, struct shm_peer *p);
void nm_shm_seg_unmap(struct shm *shm, struct shm_peer *p);

static inline struct shm_ring nm_shm_seg_ring(struct shm_seg *seg)
{
	struct shm_ring ring;

	ring.head = (void *)&seg->head;
	ring.tail = (void *)&seg->tail;
	ring.claim = (void *)seg->claim;
	ring.slot = seg->slot;
	ring.nslots = SHM_SLOTS;
	return ring;
}

/* --- shm.c: peers --- */

/*
 * The process with this index is used from now on: 0, and it is a peer.
 * -EAGAIN: not now, and the rail is busy until the next try; -EPROTO: there is
 * no such process.
 */
int nm_shm_meet(struct shm *shm, uint32_t index);

static inline bool nm_shm_has_cma(const struct shm_peer *p)
{
	return load_relaxed(&p->cma) != 0;
}

static inline struct shm_peer *nm_shm_peer(struct shm *shm, uint32_t index)
{
	return shm->all[index].link != NULL ? &shm->all[index] : NULL;
}

/* --- live.c: deaths --- */

/* How many descriptors peers may take. */
void nm_shm_live_init(struct shm *shm);

/* From now on its death is noticed. False: it is gone. */
bool nm_shm_live_add(struct shm *shm, struct shm_peer *p);
void nm_shm_live_remove(struct shm *shm, struct shm_peer *p);
/* The process is gone. */
void nm_shm_live_lose(struct shm *shm, struct shm_peer *p);

/* Look now if the time has come, or if `now`. True if a peer was lost. */
bool nm_shm_live_look(struct shm *shm, bool now);

/*
 * The ring is empty or stands at a slot that is claimed and not filled. Skip
 * what the dead have left; report those whose packets have all been taken.
 */
bool nm_shm_live_bury(struct shm *shm);

/* --- bell.c: being woken --- */

/* Make mine; or I sleep by the clock. */
void nm_shm_bell_make(struct shm *shm, struct shm_where_bell *where);
void nm_shm_bell_drop(struct shm *shm);

/*
 * A descriptor of a process' bell, which shows that this process has that
 * number; -EAGAIN: there is none to spare; other -errno.
 */
int nm_shm_bell_open(int pid, const struct shm_where_bell *where);

/* Make the alarm; or I do not sleep where I need it. */
void nm_shm_bell_alarm(struct shm *shm);

/*
 * From now on who fills a slot of my ring, moves a transfer, or makes the room
 * that I say next to lack makes the bell readable.
 */
void nm_shm_bell_set(struct shm *shm);

/* Not that: and what has rung is taken away. */
void nm_shm_bell_mute(struct shm *shm);

/*
 * The peer's. -ESRCH: its process is gone; -EAGAIN: it cannot be seen now
 * whether it is.
 */
int nm_shm_bell_know(struct shm *shm, struct shm_peer *p);
/* Have a descriptor for one, whatever the program opens. 0 or -errno. */
int nm_shm_bell_spare(struct shm *shm);
void nm_shm_bell_forget(struct shm *shm, struct shm_peer *p);

/* It has said that it sleeps: wake it. */
void nm_shm_bell_ring(struct shm *shm, struct shm_peer *p);
/* Those that lack room here: there may be some now. */
void nm_shm_bell_feed(struct shm *shm);
/* Anyone: make my own readable. */
void nm_shm_bell_self(struct shm *shm);

/* Something has moved that the peer may wait for. */
static inline void nm_shm_bell_tell(struct shm *shm, struct shm_peer *p)
{
	if (unlikely(shm_bell_is_wanted(&p->seg->bell, p->light)))
		nm_shm_bell_ring(shm, p);
}

/*
 * Somebody cannot ring, or dies without a word: wake up by the clock. False:
 * there is none.
 */
bool nm_shm_bell_nap(struct shm *shm, uint64_t longest);

/* There is no reason any more: what has rung is taken away. */
void nm_shm_bell_no_nap(struct shm *shm);
/* Those that are owed a ring, again. */
void nm_shm_bell_pay(struct shm *shm);

/* --- cma.c: one copy, by the kernel, from process to process --- */

/* Whether our process may read and write the peer's memory. */
bool nm_shm_cma_prove(const struct shm_peer *p, uint64_t secret);

/*
 * Copy bytes [offset, offset + length) of the transfer, counted from its
 * start, from or to the peer's contiguous memory at `remote` + offset. 0 or
 * -errno: how much was copied is not known.
 */
int nm_shm_cma_move(struct nm_xfer *x, size_t offset, size_t length,
		    uint64_t remote, bool push);

/* The driver's `copies` and `copy`. */
bool nm_shm_cma_copies(const struct nm_rail *rail, int rank);
int nm_shm_cma_copy(const struct nm_rail *rail, int rank,
		    const struct nm_range *range, uint64_t remote, bool push);

/* --- large.c: large transfers --- */

void nm_shm_large_init(struct shm *shm);
void nm_shm_large_offer(struct nm_xfer *x);
int nm_shm_large_recv(struct nm_xfer *x);
int nm_shm_large_send(struct nm_xfer *x);
int nm_shm_large_announce(struct nm_xfer *x);
int nm_shm_large_meet(struct nm_xfer *x);
int nm_shm_large_take(struct nm_xfer *x);
int nm_shm_large_recall(struct nm_xfer *x, bool for_good);
/*
 * Whether some transfer has not been seen to wait; and whether some would move
 * now: what arm() asks before and after the bell is set.
 */
bool nm_shm_large_is_busy(const struct shm *shm);
bool nm_shm_large_may_move(struct shm *shm);
/* One bounded step of each transfer. True if anything moved. */
bool nm_shm_large_poll(struct shm *shm);
/*
 * Let go of all transfers with this peer. They are reported with `error`, or
 * not at all if it is 0, and then it is for the core to end them.
 */
void nm_shm_large_drop(struct shm *shm, struct shm_peer *p, int error);

#endif
