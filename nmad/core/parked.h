/*
 * Envelopes that came before their turn: in one table, by session, peer and
 * number, and all of a peer on a list of its own. To park one, and to find the
 * next, takes as long among many as among few, however far the rails that bring
 * them are apart. The core lock covers it.
 */
#ifndef NMAD_CORE_PARKED_H
#define NMAD_CORE_PARKED_H

#include "msg.h"
#include "session.h"

struct nm_core;

/* Of the core's table. */
uint64_t nm_parked_hash(const struct base_link *first, bool mark, unsigned arg);

/* -EBADMSG: it is behind, too far ahead, or already there. */
int nm_parked_add(struct nm_core *core, struct nm_peer *peer,
		  struct nm_msg *msg);
void nm_parked_remove(struct nm_core *core, struct nm_msg *msg);

/* Returns the envelope whose number is due, or NULL. */
struct nm_msg *nm_parked_due(const struct nm_core *core,
			     const struct nm_session *s,
			     const struct nm_gate *gate);

/* Takes out one envelope of the peer; NULL: there is none. */
struct nm_msg *nm_parked_take_any(struct nm_core *core, struct nm_peer *peer);

#endif
