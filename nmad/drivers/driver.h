/*
 * The contract between the core and a network.
 *
 * A *rail* is one driver instance of this process; a *link* is one rail's
 * connection to one gate. A rail has one caller at a time (rail ownership,
 * core/rail.c): every slot below is called by the owner, with no lock of the
 * core held, unless it says "anyone". A slot must not block, park or allocate,
 * but for open, join and close.
 *
 * Small packets: formed by a strategy, at most one per link in flight, whole
 * and at most max_small bytes. They need not arrive in order.
 * Large transfers: the body of one message between two agreed memories, after
 * a rendezvous:
 *
 *   sender                                 receiver
 *   xfer_offer(x) fills x->mine
 *        ---- RTS with that token ---->    matched: xfer_recv(x), x->peers is
 *                                          the token; may start pulling
 *        <--- RTR with x->mine ---------   nm_rail_xfer_ready(x)
 *   xfer_send(x), x->peers is the token
 *   nm_rail_xfer_done(x)                   nm_rail_xfer_done(x)
 *
 * What happens between is the driver's: it reports the end once on each side,
 * in any order, and after that does not touch x or the data again.
 *
 * Or the receiver begins (core/announce.c), in drivers where the sender alone
 * can move everything, and where a word that both see decides which of them has
 * the announcement:
 *
 *   sender                                 receiver
 *                                          xfer_announce(x) fills x->mine
 *        <--- ANNOUNCE with that token ---
 *   xfer_take(x), x->peers is the token
 *   xfer_offer(x) fills x->mine
 *        ---- RTS with that token -------> matched: xfer_meet(x), x->peers is
 *   xfer_send(x)                           the token
 *   nm_rail_xfer_done(x)                   nm_rail_xfer_done(x)
 *
 * Death: what had wholly left a peer before it died, packets and transfers, is
 * reported before its death is told, by nm_rail_link_dead() or as the answer of
 * a slot; after that nothing of the link is.
 *
 * A driver that resends (NM_CAP_RESENDS) may lose a link whose peer lives, and
 * the core goes on over another (core/lost.c). It delivers the packets of a
 * link in their order; each has a number, counted from 0 on each side in the
 * order in which post_send() took it. It has a copy of each until it is known
 * to have arrived, whatever post_send() answered. Then
 *
 *  - when the link dies it reports each packet of which it is not sure that it
 *    arrived, the oldest first, by nm_rail_unsure(): before it calls
 *    nm_rail_link_dead() or answers a slot with the error, and inside
 *    give_up(). One that it does not report has arrived, also the one that is
 *    still posted, of which nm_rail_sent() is not called any more;
 *  - arrived() says how many of the peer's packets it has delivered by
 *    nm_rail_recv(): final when the link is dead, so not one is delivered
 * after;
 *  - what the peer may know to have arrived (hardware has acknowledged it, say)
 *    counts as arrived: it is taken up and reported, packets and ends of
 *    transfers, before the death is, and inside give_up(), where nm_rail_recv()
 *    and nm_rail_xfer_done() are allowed for that;
 *  - a sender's transfer ends with 0 only when the receiver's has, or is sure
 *    to by the rule before: the send may be over then, and cannot be redone.
 *    The receiver's may end with 0 though the sender's does not;
 *  - once the link is dead on a side, nothing that the peer has begun reaches
 *    the memory of that side's transfers any more: they are redone elsewhere.
 *
 * The core redoes what it then has: packets, and the transfers that the driver
 * had. A transfer that is redone is given to a driver as a new one, from
 * xfer_offer() on, with `mine`, `place` and `drv` as at first. The dead link
 * stays dead: connect() is not called again. A connect() that answers
 * -EHOSTUNREACH means that the peer has no such rail: nothing is said of it.
 */
#ifndef NMAD_DRIVERS_DRIVER_H
#define NMAD_DRIVERS_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/list.h>
#include <base/mpsc.h>
#include <base/option.h>
#include <nmad/data.h>

#include "../core/await.h"
#include "../core/lock.h"
#include "../data/place.h"

struct nm_gate;
struct nm_req;
struct nm_rail;
struct nm_pkt;
struct nm_boot_info;

enum {
	NM_ADDR_MAX = 256, /* bytes of a rail's address, exchanged at start */
	NM_TOKEN_MAX = 64, /* bytes that a driver adds to an RTS or RTR */
};

/*
 * News of a rail on its way to the core, or an order of the core on its way to
 * a rail: the core's part of the structures that a driver sees.
 */
struct nm_event {
	struct base_mpsc_node node;
	unsigned kind; /* enum nm_event_kind, core/rail.h */
};

/*
 * One rail's connection to one gate. The core allocates and zeroes it. What the
 * core counts for each packet that comes is beside what else it looks at then,
 * and what the owner counts is on another cache line (rail.c).
 */
struct nm_link {
	/* -: const once open  o: the rail's owner  l: core lock  a: atomic */
	struct nm_gate *gate; /* -: */
	struct nm_pkt *pkt;   /* who has the turn: the packet in flight;
			       * NULL before the first */
	struct nm_turn turn;  /* a: order(hungry) */
	uint32_t heard;       /* l: packets that the core has taken apart */
	bool is_dying;        /* l: it is dead, but some are to be heard of */
	bool may_lose;        /* -: the gate has other links or spare ones */
	bool hopeless;        /* o: it ends with the gate: nothing is redone */
	int rank;             /* -: the peer's */
	struct nm_rail *rail; /* -: */
	void *conn;           /* o: driver's; NULL: not used yet */
	struct base_list xfers; /* o: transfers that the driver has */
	struct nm_event dead;   /* core's: news of its end */
	struct nm_pkt *posted;  /* o: packet that is not sent yet, or NULL */
	uint32_t told;          /* o: packets that the core was told of */
	int error;              /* o: 0, or why the link is dead */
	uint32_t arrived;       /* core's: when it is dead, as arrived() */
	uint32_t last;          /* core's: when it is dead, `told` */
	struct nm_event first;  /* core's: order to connect it */
	struct nm_event giveup; /* core's: order to end it, with the gate */
	struct nm_event lose;   /* core's: likewise, the peer has lost it */
};

/* Bytes [offset, offset + length) of some data. */
struct nm_range {
	const struct nm_data *data;
	size_t offset, length;
};

struct nm_token {
	uint32_t length;
	unsigned char bytes[NM_TOKEN_MAX];
};

/* One large transfer on one side. Lives in the core's request. */
struct nm_xfer {
	struct nm_link *link;
	struct nm_data data;        /* the user's memory ... */
	size_t offset, length;      /* ... and which bytes of it */
	struct nm_data_place place; /* of nm_xfer_walk(), zero at first */
	struct nm_token mine;       /* ours, for the peer */
	struct nm_token peers;      /* the peer's, for us */
	/* driver's: of an announced one; or NULL: news of it always wake */
	struct nm_awaited *awaited;
	bool is_ready;         /* set by nm_rail_xfer_ready() */
	bool lost;             /* core's: it ended with its link */
	int status;            /* set by nm_rail_xfer_done() */
	struct nm_event ready; /* core's */
	struct nm_event done;  /* core's */
	struct base_link on;   /* core's: link->xfers */
	uint64_t drv[12];      /* driver's, zero at first */
};

/*
 * Over bytes [at, at + length) of the transfer, by who has it: near the bytes
 * of the call before it costs nothing to begin.
 */
static inline int nm_xfer_walk(struct nm_xfer *x, size_t at, size_t length,
			       nm_piece_fn each, void *arg)
{
	return nm_data_walk_on(&x->data, &x->place, x->offset + at, length,
			       each, arg);
}

static inline void nm_xfer_copy_out(struct nm_xfer *x, size_t at, void *to,
				    size_t length)
{
	nm_data_copy_out_on(&x->data, &x->place, x->offset + at, to, length);
}

static inline void nm_xfer_copy_in(struct nm_xfer *x, size_t at,
				   const void *from, size_t length)
{
	nm_data_copy_in_on(&x->data, &x->place, x->offset + at, from, length);
}

/* A small packet that came. Driver's memory until released. */
struct nm_pkt_in {
	struct nm_link *link;
	const unsigned char *data;
	size_t length;
	struct nm_event event; /* core's */
	struct {
		struct nm_req *req;
		const void *from;
		size_t offset, length;
	} part;    /* core's: a copy that is to be made, medium.c */
	void *drv; /* driver's */
};

enum nm_caps {
	NM_CAP_SELF = 1,  /* reaches this process only */
	NM_CAP_NODE = 2,  /* reaches processes of this host only */
	NM_CAP_SYNC = 4,  /* post_send never answers NM_POSTED */
	NM_CAP_ROOM = 8,  /* arm() promises room for what post_send refused */
	NM_CAP_DEAR = 16, /* a packet costs a system call: see core/burst.c */
	NM_CAP_RESENDS =
		32, /* a link may be lost without its peer: see above */
};

enum nm_post_result {
	NM_SENT,   /* the packet left; it is the core's again */
	NM_POSTED, /* the driver's until nm_rail_sent() */
};

struct nm_driver {
	const char *name;
	unsigned caps;
	size_t max_small;     /* bytes of a small packet, headers included, if
			       * open() does not set rail->max_small; the core
			       * may lower that later, for the most of them */
	size_t fill;          /* packets of several messages end here: beyond
			       * it one more packet costs less */
	size_t rdv_threshold; /* messages above go by rendezvous */
	int weight;           /* lower is preferred when several reach a peer */
	const struct base_option_table
		*options; /* that open() loads; or NULL */

	/*
	 * Make an instance: fill rail->addr, rail->addr_len, rail->drv. `spec`
	 * is what followed "name:" in NMAD_DRIVER, or NULL. May block and
	 * allocate. -ENODEV: cannot be used here, said why if rail->is_listed.
	 */
	int (*open)(struct nm_rail *rail, const struct nm_boot_info *info,
		    const char *spec);
	/* Undo; all links are closed. May block a bounded time. */
	void (*close)(struct nm_rail *rail);

	/*
	 * All have opened, and all will have joined before anything more is
	 * asked of the rail. `addr` is what the lowest rank of this host has
	 * put into rail->addr; NULL: it has no such rail. Its work does not
	 * grow with the job. May block and allocate. NULL: nothing to do. 0, or
	 * -errno, explained: the job cannot start. It is no error if there is
	 * nobody to be reached.
	 */
	int (*join)(struct nm_rail *rail, const void *addr, size_t len);

	/*
	 * Anyone, from then on: does it lead to this rank? Both ends answer the
	 * same, by a few loads.
	 */
	bool (*reaches)(const struct nm_rail *rail, int rank);

	/*
	 * Anyone: does the kernel copy between our memory and the peer's, which
	 * both know to be connected? Then `copy` does that, to `remote` there
	 * if `push`, without the peer: 0; -ENOTSUP: not any more; other -errno:
	 * nothing of the link is over by that. NULL, both: no.
	 */
	bool (*copies)(const struct nm_rail *rail, int rank);
	int (*copy)(const struct nm_rail *rail, int rank,
		    const struct nm_range *range, uint64_t remote, bool push);

	/*
	 * The peer is used for the first time: make link->conn. The core calls
	 * it before the first other slot with this link; the driver does what
	 * is in it by itself if it hears from the peer before. Need not connect
	 * yet: packets may wait for that inside the driver. 0; -EAGAIN: it
	 * lacks something now, is asked again, and is_busy() until then; other
	 * -errno: the link is dead.
	 */
	int (*connect)(struct nm_link *link);
	/*
	 * Everything posted has left or failed. Says goodbye, so that the peer
	 * does not take what follows for a death. Only what was connected.
	 */
	void (*disconnect)(struct nm_link *link);

	/*
	 * The core gives the link up (its peer sent garbage, or has lost it):
	 * close it without a goodbye, let go of its packet and transfers,
	 * report nothing of it any more. With NM_CAP_RESENDS what is said above
	 * is reported now, inside, also of a link that was never connected: the
	 * peer may have come. May be NULL, without that.
	 */
	void (*give_up)(struct nm_link *link);

	/*
	 * NM_CAP_RESENDS: how many packets of the peer have been delivered.
	 * Asked once, when the link is dead, if it has ever been connected.
	 */
	uint32_t (*arrived)(const struct nm_link *link);

	/*
	 * Send one small packet: nm_pkt_length(), then nm_pkt_copy() into a
	 * buffer of the driver's, or nm_pkt_iov() for gathering. NM_SENT or
	 * NM_POSTED; -EAGAIN: no room, nothing taken, asked again after the
	 * next poll; other -errno: the link is dead.
	 */
	int (*post_send)(struct nm_link *link, struct nm_pkt *pkt);

	/*
	 * Move everything: report arrivals (nm_rail_recv), sent packets
	 * (nm_rail_sent), ends of transfers (nm_rail_xfer_done) and deaths
	 * (nm_rail_link_dead). At most `budget` arrivals. True if anything
	 * moved.
	 */
	bool (*poll)(struct nm_rail *rail, int budget);

	/*
	 * Anyone, any thread: might poll() bring something? A hint of a load or
	 * two, asked only while nothing is in the driver's hands; poll() is
	 * called now and then whatever the answer. May be NULL: yes.
	 */
	bool (*peek)(const struct nm_rail *rail);

	/*
	 * Waiting in the kernel instead of polling. NULL: the rail is only ever
	 * polled. Otherwise open() has set rail->fd: what becomes readable, or
	 * -1 where nothing comes but by our own doing; the core closes nothing.
	 *
	 * arm() is a promise: from now on whatever comes from outside (packets,
	 * steps of transfers, room to send, deaths, dates) makes the descriptor
	 * readable, in the level-triggered sense, unless a poll() has taken it
	 * up before. It holds however often the rail is polled and given work
	 * until the descriptor has become readable, and each call renews it.
	 * What made it readable before is taken away here, at the latest. 0:
	 * promised, and nothing was there. -EAGAIN: something was there already
	 * or no promise can be made now: poll() it, then ask again. Reports
	 * news like poll(), if it finds any.
	 */
	int (*arm)(struct nm_rail *rail);
	/*
	 * With arm(): is something in the driver's hands that moves only when
	 * it is polled, for which no promise holds? A few loads. rail->armed
	 * says whether one has been made for all that there was.
	 */
	bool (*is_busy)(const struct nm_rail *rail);

	/* Anyone, any thread, any order: the core has done with the packet. */
	void (*release)(struct nm_rail *rail, struct nm_pkt_in *in);

	/*
	 * See above. xfer_offer may be called by anyone and touches only x;
	 * NULL: nothing to offer. What it has taken stays until xfer_withdraw
	 * or the end of x. xfer_recv must lead to nm_rail_xfer_ready(),
	 * once, even if the receiver can fetch everything alone: it is how the
	 * sender learns of the end, for xfer_send() then finds nothing left to
	 * do. Offer and answer may come over other rails: this link may have
	 * carried nothing before. 0, or -errno: the link is dead.
	 */
	void (*xfer_offer)(struct nm_xfer *x);
	/*
	 * Anyone: what xfer_offer() has of x is let go of, because no
	 * xfer_send() comes any more, or because the driver has done with x,
	 * and then there may be nothing. Touches only x. NULL: nothing to do.
	 */
	void (*xfer_withdraw)(struct nm_xfer *x);
	int (*xfer_recv)(struct nm_xfer *x);
	int (*xfer_send)(struct nm_xfer *x);

	/*
	 * NULL, or all four. xfer_announce: 0 and x->mine, or -EAGAIN: not
	 * now; then the driver has nothing of x. It has not got x until
	 * xfer_meet(); the length of x is the message's by then. As the sender
	 * may have died when it had moved everything, that is called for a
	 * dead link, too: 0, and the end is reported, if all of it is there.
	 * xfer_take, xfer_recall: anyone, on the two sides; exactly one of them
	 * answers 0. Else xfer_recall answers -EALREADY, or, `for_good`, that
	 * the peer may do what it likes with what it has taken: x is forgotten.
	 * xfer_take checks the token. The first two may set x->awaited to a
	 * word that both sides see (core/await.h): then the sender's steps of
	 * the transfer, and a packet that has nm_pkt_awaited(), make an armed
	 * receiver's descriptor readable only if somebody waits for it.
	 */
	int (*xfer_announce)(struct nm_xfer *x);
	int (*xfer_meet)(struct nm_xfer *x);
	int (*xfer_take)(struct nm_xfer *x);
	int (*xfer_recall)(struct nm_xfer *x, bool for_good);

	/* Part of the state dump; signal-safe. May be NULL. */
	void (*dump)(const struct nm_rail *rail);
};

/* What the core offers to drivers (core/pkt.c, core/rail.c, core/connect.c). */
size_t nm_pkt_length(const struct nm_pkt *pkt);
/* NULL, or who is to be woken for it: if that word is set (core/await.h). */
struct nm_awaited *nm_pkt_awaited(const struct nm_pkt *pkt);
/* Copy the whole packet, headers and data, to `to`. */
void nm_pkt_copy(const struct nm_pkt *pkt, void *to);
/*
 * Describe [offset, length of the packet) by at most n pieces. The number of
 * pieces; fewer bytes than asked if n is too small. Valid until it is sent.
 */
int nm_pkt_iov(struct nm_pkt *pkt, size_t offset, struct iovec *iov, int n);

/*
 * What the peer has put into rail->addr; to[] has NM_ADDR_MAX bytes. By the
 * owner of the rail. The launcher is asked, a round trip, so it is for the
 * first call of a peer only. -EAGAIN: it has not answered yet: the driver calls
 * again at its next poll, and is_busy() until then, or nm_rail_address_drop()s
 * it. -EHOSTUNREACH: it has no such rail; other -errno: explained.
 */
int nm_rail_address(const struct nm_link *link, void *to, size_t *len);
void nm_rail_address_drop(const struct nm_link *link);

/* Upcalls, by the owner of the rail only, from inside a slot. */
void nm_rail_recv(struct nm_rail *rail, struct nm_pkt_in *in);
void nm_rail_sent(struct nm_rail *rail, struct nm_pkt *pkt);
void nm_rail_xfer_ready(struct nm_rail *rail, struct nm_xfer *x);
void nm_rail_xfer_done(struct nm_rail *rail, struct nm_xfer *x, int status);
/*
 * NM_CAP_RESENDS, before the link is dead: its packet of that number may not
 * have arrived. All of it, as nm_pkt_copy() gave it; copied before this
 * returns.
 */
void nm_rail_unsure(struct nm_rail *rail, struct nm_link *link, uint32_t number,
		    const void *bytes, size_t length);
/*
 * The peer is gone, or, with NM_CAP_RESENDS, the link to it is. At most once a
 * link; the driver has let go of the link's packet and transfers before: the
 * core fails them, no further upcall names them.
 */
void nm_rail_link_dead(struct nm_rail *rail, struct nm_link *link, int error);

/* The visible list, in the order of preference; ends with NULL. */
extern const struct nm_driver *const nm_drivers[];

#endif
