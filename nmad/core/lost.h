/*
 * Links that are lost while their peer lives: lost.c.
 */
#ifndef NMAD_CORE_LOST_H
#define NMAD_CORE_LOST_H

#include "gate.h"

struct nm_pass;

/* A packet of a lost link: it may have arrived, or never left (`unsent`). */
struct nm_doubt {
	/* o: the link's rail's owner, until the core hears of it; then l: core
	 * lock; then in a packet's payload */
	struct nm_event event;   /* also: on rail->settled */
	struct nm_answer answer; /* l: the RESENT */
	struct nm_link *link;
	struct nm_data data; /* `bytes` */
	uint32_t number;     /* unless `unsent` */
	bool unsent;
	uint8_t class; /* of the block, in rail->mem */
	unsigned char bytes[];
};

/* --- the owner of the link's rail --- */

/* For so many bytes, which are to be filled in; then it is told. */
struct nm_doubt *nm_doubt_new(struct nm_link *link, size_t length);
/* Anyone: the packet that carries it has left, or there will be none. */
void nm_lost_carried(struct nm_doubt *d);

/* --- the core --- */

/*
 * The link is lost, if that is not known: by our driver, or the peer has told
 * (`heard`). The gate goes on, or waits for its end if it has no other.
 */
void nm_lost(struct nm_pass *pass, struct nm_link *link, int error, bool heard);
/* The peer has lost that rail. 0, or -EBADMSG: it cannot. */
int nm_lost_heard(struct nm_pass *pass, struct nm_gate *gate, unsigned rail);
/* A packet is in doubt. */
void nm_lost_unsure(struct nm_pass *pass, struct nm_doubt *d);
/* The link is over, of a rail of whatever kind: dead, and all of it heard. */
void nm_lost_dead(struct nm_pass *pass, struct nm_link *link);
/* A RESENT that is queued, into the packet, if that is empty; it is full. */
void nm_lost_add(struct nm_gate *gate, struct nm_pkt *pkt, struct nm_answer *a);
/* It never will be in one. */
void nm_lost_forget(struct nm_answer *a);
/*
 * Not an ordinary packet. 0: a RESENT, and what is in it is in `in` now, to be
 * looked at; -EALREADY: that has come; -EINPROGRESS: it is held, and comes to
 * nm_in_held(); -EBADMSG.
 */
int nm_lost_unwrap(struct nm_pass *pass, struct nm_gate *gate,
		   struct nm_pkt_in *in);
/* The gate is dead. */
void nm_lost_fail(struct nm_pass *pass, struct nm_gate *gate);

#endif
