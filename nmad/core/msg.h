/*
 * The record of a message that came before anybody asked for it, or before its
 * turn: the envelope, and its payload (or the parts of an RTS) behind it
 * in the same block.
 *
 * It is in one place at a time: parked at its peer until the envelopes before
 * it have come, in limbo until its session is opened, in the match tables, or
 * taken (by a receive that copies, or by mprobe).
 */
#ifndef NMAD_CORE_MSG_H
#define NMAD_CORE_MSG_H

#include <stddef.h>

#include <base/mpsc.h>

#include "match.h"
#include "wire.h"

struct nm_msg {
	/* l: all, core lock; constant but for the links */
	union {
		struct nm_match_msg match; /* in the tables */
		/* The session's number, once a matched probe has taken the
		 * message: the session may be closed. It overwrites
		 * match.session; the receive still reads match.gate and .tag.
		 */
		uint64_t taken_from;
		struct {
			struct base_link on;     /* parked, or in limbo */
			struct base_link by_seq; /* core->parked */
			struct nm_gate *from;
			uint64_t session;
			uint32_t tag;
		} early;
		struct base_mpsc_node free; /* taken: on core->freed */
	};
	uint64_t length; /* of the message */
	uint64_t id;     /* of its send, if EAGER or PART with SYNC; if RTS and
			  * ANNOUNCED, of that; RETRACT: which; else 0 */
	uint32_t seq;
	uint32_t stored; /* bytes in `data` */
	uint8_t kind;    /* NM_WIRE_KIND_EAGER, _RTS, or, while parts are
			  * missing, _PART; while early, _RETRACT */
	uint8_t nparts;  /* RTS */
	int8_t priority; /* RTS */
	uint8_t class;   /* of the block */
	unsigned char data[];
};

_Static_assert(offsetof(struct nm_match_msg, gate) >= sizeof(uint64_t),
	       "taken_from leaves match.gate and match.tag alone");

#endif
