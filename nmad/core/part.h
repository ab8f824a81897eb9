/*
 * The parts of a large message, on each side: rdv.c, and redo.c where a rail is
 * lost.
 */
#ifndef NMAD_CORE_PART_H
#define NMAD_CORE_PART_H

#include "gate.h"
#include "grant.h"

struct nm_pass;
struct nm_req;
struct nm_trans;

/* Of a part that was made for an announcement. */
enum nm_announcement {
	NM_NO_MORE,   /* or never was one: the message has come */
	NM_ASKED,     /* the driver makes a place */
	NM_SAID,      /* the chunk is queued, or has left */
	NM_WITHDRAWN, /* while the driver was asked; no receive has it any
		       * more */
};

/* What goes over one link. */
struct nm_part {
	/* l: core lock, while no driver has it  -: const */
	struct nm_xfer x;
	uint64_t id;          /* -: that the peer answers, or 0 */
	struct nm_rail *rail; /* l: x.link may be one beneath it */
	/* l: receiver: the RTR, or the ANNOUNCE; sender: the OFFER */
	struct nm_answer rtr;
	enum nm_announcement announcement; /* l: receiver */
	struct nm_grant grant;             /* l: receiver: while it is held */
	struct nm_trans *trans;            /* -: */
	/* l: sender: gate->offers, until it is answered; receiver:
	 * gate->wanted, until it is over, unless it was announced */
	struct base_link on;
	bool granted;     /* l: sender: the RTR has come */
	bool rtr_queued;  /* l: */
	bool heard_ready; /* l: receiver: nm_rdv_ready() was here */
	bool over;        /* l: the driver has done with it, or never
			   *    gets it */
	/* l: receiver: of redo.c: no driver has it; it waits for an offer,
	 * which it has */
	bool let_go, stranded, offered;
	uint8_t offer_rail;    /* l: if offered */
	struct nm_token offer; /* l: if offered */
};

/* One side of one large message. */
struct nm_trans {
	/* l: core lock  -: const */
	struct nm_req *req;     /* -: until all parts are over */
	struct nm_gate *gate;   /* -: */
	int error;              /* l: -EMSGSIZE if cut, -ECONNRESET */
	bool is_send;           /* -: */
	unsigned char running;  /* l: parts that are not over */
	unsigned char nparts;   /* l: parts that are in use */
	unsigned class;         /* -: of the block */
	struct nm_part parts[]; /* at first nparts */
};

/* Sender: its driver has nothing of it any more. */
static inline void nm_part_withdraw(struct nm_part *p)
{
	const struct nm_driver *driver = p->rail->driver;

	if (unlikely(driver->xfer_withdraw != NULL))
		driver->xfer_withdraw(&p->x);
}

/* --- rdv.c --- */

/* Nobody touches its bytes any more. The last one ends the request. */
void nm_part_over(struct nm_pass *pass, struct nm_part *p, int error);
/* Receiver: to its driver; or held, as too many are there. */
void nm_part_grant(struct nm_pass *pass, struct nm_part *p);
/* Sender: its rail has it to move, and has done with it. */
void nm_part_given(struct nm_part *p);
void nm_part_taken(struct nm_part *p);
/* Receiver: nothing is wanted of the part of that id, or no more. */
void nm_part_refuse(struct nm_gate *gate, uint64_t id, uint8_t flags);

/* --- redo.c --- */

/* Receiver: whether a part can come over that rail. */
bool nm_redo_may(const struct nm_gate *gate, unsigned rail);
/*
 * It has ended with its link, which is lost. False: the gate is dead, and the
 * part is the caller's to end.
 */
bool nm_redo_lost(struct nm_pass *pass, struct nm_part *p);
/* Receiver: no driver has it, if nothing more will be heard of the last. */
void nm_redo_strand(struct nm_pass *pass, struct nm_part *p);
/* Sender: it is granted, but not over this rail. 0 or -EBADMSG. */
int nm_redo_granted(struct nm_pass *pass, struct nm_part *p, bool again);
/* Receiver: an OFFER has come. 0 or -EBADMSG. */
int nm_redo_heard(struct nm_pass *pass, struct nm_gate *gate,
		  const struct nm_wire_chunk *c);
/* The gate is dead: those that no driver has. */
void nm_redo_fail(struct nm_pass *pass, struct nm_gate *gate);

#endif
