/*
 * A rail: one driver instance, owned by one caller at a time.
 *
 * Orders for the driver (packets, transfers) travel to the owner as posts, the
 * driver's news travel to the core as events; both are struct nm_event, in
 * lists that are taken whole. An owner collects the news of his time in
 * `news` and takes them along when he leaves.
 */
#ifndef NMAD_CORE_RAIL_H
#define NMAD_CORE_RAIL_H

#include <base/atomic.h>
#include <base/mpsc.h>

#include "../drivers/driver.h"
#include "../strategies/split.h"
#include "lock.h"
#include "mem.h"
#include "stats.h"

struct nm_core;
struct nm_req;

enum nm_event_kind {
	/* to a rail */
	NM_POST_PKT,
	NM_POST_PART,   /* likewise, a part of a message: medium.c */
	NM_POST_RESENT, /* likewise, one of a lost link: lost.c */
	NM_POST_XFER_RECV,
	NM_POST_XFER_SEND,
	NM_POST_XFER_ANNOUNCE,
	NM_POST_XFER_MEET,
	NM_POST_CONNECT,
	NM_POST_GIVE_UP,
	NM_POST_LOSE,
	/* from a rail */
	NM_EVENT_PKT_IN,
	NM_EVENT_XFER_READY,
	NM_EVENT_XFER_DONE,
	NM_EVENT_LINK_DEAD,
	NM_EVENT_UNSURE,
	/* in the core: a packet of which a part is to be copied */
	NM_EVENT_PART_IN,
};

/* Nodes in the order in which they were appended. */
struct nm_chain {
	struct base_mpsc_node *first, **last;
};

static inline void nm_chain_init(struct nm_chain *c)
{
	c->first = NULL;
	c->last = &c->first;
}

static inline void nm_chain_append(struct nm_chain *c, struct base_mpsc_node *n)
{
	n->next = NULL;
	*c->last = n;
	c->last = &n->next;
}

/* Take the first node off; NULL if there is none. */
static inline struct base_mpsc_node *nm_chain_take(struct nm_chain *c)
{
	struct base_mpsc_node *n = c->first;

	if (n == NULL)
		return NULL;
	c->first = n->next;
	if (c->first == NULL)
		c->last = &c->first;
	return n;
}

/*
 * What the time of an owner brought. It is in his frame, and nobody else sees
 * it: so he is pinned until all of it is settled. Preempted with it, he might
 * have to wait for his kernel thread, which another thread has meanwhile, and
 * that one for what he has here.
 */
struct nm_news {
	struct nm_chain events; /* for the core */
	struct nm_chain sent;   /* struct nm_req: complete now */
	bool hungry;            /* a turn ended that somebody wants */
	bool kick;              /* a packet has not left: somebody is to poll */
	bool waits;             /* for locks, where NMAD_LOCK says so */
	/* What its owner has submitted, or NULL. If a message that was kept is
	 * to be copied into it, that is his to do when he holds nothing else:
	 * `copies`. Nobody knows of it yet who could wait for it. */
	struct nm_req *own;
	bool copies;
};

static inline void nm_news_init(struct nm_news *news, bool waits)
{
	news->waits = waits;
	news->own = NULL;
	nm_chain_init(&news->events);
	nm_chain_init(&news->sent);
	news->hungry = false;
	news->kick = false;
}

/* Who gets a rail's upcalls instead of the core: a driver that wraps it. */
struct nm_rail_upcalls {
	void (*recv)(struct nm_rail *rail, struct nm_pkt_in *in);
	void (*sent)(struct nm_rail *rail, struct nm_pkt *pkt);
	void (*xfer_ready)(struct nm_rail *rail, struct nm_xfer *x);
	void (*xfer_done)(struct nm_rail *rail, struct nm_xfer *x, int status);
	void (*link_dead)(struct nm_rail *rail, struct nm_link *link,
			  int error);
	/* NULL: none beneath it resends for it. */
	void (*unsure)(struct nm_rail *rail, struct nm_link *link,
		       uint32_t number, const void *bytes, size_t length);
};

struct nm_rail {
	/* -: const once open  o: the rail's owner  a: atomic, see name */
	const struct nm_driver *driver;   /* -: */
	const struct nm_rail_upcalls *up; /* -: NULL: the core itself */
	struct nm_core *core;             /* -: */
	int rank;                         /* -: of this process */
	int index;                        /* -: among the rails */
	bool is_listed;                   /* -: NMAD_DRIVER names it */
	size_t max_small; /* -: of the packets that are formed: the driver's,
			   *    or open()'s, or less: nm_rails_link() */
	size_t fill;      /* -: the driver's, or max_small if that is less */
	size_t largest;   /* -: max_small, as open() left it */
	unsigned char addr[NM_ADDR_MAX]; /* -: for the peers */
	size_t addr_len;                 /* -: */
	struct nm_link *links;           /* -: by rank, nlinks of them */
	int nlinks;                      /* -: */
	int nused;                       /* -: links that gates have */
	bool is_spare;                   /* -: at first, all of those */
	int fd;                          /* -: readable if polling pays, or -1;
					  *    see driver.h, arm() */
	void *drv;                       /* driver's */
	struct nm_rail_stats *stats;     /* -: those of the outermost rail */

	uint64_t
		nbytes; /* l: core lock: of bodies that we sent, for the dump */
	/* How long bodies take, and eager messages, if that is known; and when
	 * it will have done with the bodies that are on their way. */
	struct nm_curve *curve; /* -: or NULL */
	struct nm_curve *eager; /* -: or NULL; only beside `curve` */
	double free_ns;         /* l: core lock: a date, if nparts > 0 */
	unsigned nparts; /* l: core lock: that we send and are not over */

	struct nm_rail_lock lock; /* a: order(rail) */
	struct nm_news *news;     /* o: of this owner's time */
	struct nm_chain stuck;    /* o: orders that found no room */
	struct nm_mem mem;        /* o: for packets in doubt: lost.c */
	struct base_mpsc settled; /* a: those that are not; order(mpsc) */
	bool armed;               /* o: the driver's promise, arm(), holds */
	/* a: written by the owner: packets and transfers not over */
	ATOMIC(uint32_t) backlog;
	ATOMIC(uint32_t) skipped; /* a: polls left out, a hint */
};

/*
 * Own the rail for a moment: hand over what was posted (and `post`, if not
 * NULL), poll the driver if asked, append its news to `news`. If somebody else
 * owns it, `post` is left for him, or he is waited for, as NMAD_LOCK says. No
 * lock held. True if anything moved.
 */
bool nm_rail_run(struct nm_rail *rail, struct nm_event *post, bool poll,
		 struct nm_news *news);

/* What its owner does, under whatever lock: hand over, poll. As above. */
bool nm_rail_drive(struct nm_rail *rail, struct nm_event *post, bool poll,
		   struct nm_news *news);

/*
 * Have the driver promise that what comes makes rail->fd readable. 0, or
 * -EAGAIN: the rail must be polled first, or somebody owns it, who does that.
 * While the promise holds, who leaves the rail with something that only polling
 * moves makes the core's set readable himself. No lock held; news are appended
 * to `news`.
 */
int nm_rail_arm(struct nm_rail *rail, struct nm_news *news);

/* A driver makes a system call. Anyone. */
static inline void nm_rail_calls(const struct nm_rail *rail,
				 enum nm_syscall call)
{
	nm_count_shared(&rail->stats->calls[call]);
}

/* The rail that an order is for. */
struct nm_rail *nm_post_rail(struct nm_event *post);

/* Nothing is in the driver's hands: a hint. */
static inline bool nm_rail_is_quiet(struct nm_rail *rail)
{
	return load_relaxed(&rail->backlog) == 0 &&
	       base_mpsc_is_empty(&rail->lock.posts);
}

#endif
