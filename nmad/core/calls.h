/*
 * Calls of functions of the user's: a request is complete, a message has come
 * that no receive waited for, something that is watched has happened. They are
 * left on a list when they fall due, and made in that order, in batches, one at
 * a time in a process, by whoever has brought them, once he holds nothing: no
 * lock of ours, no rail.
 *
 * Who finds somebody making calls leaves his there, because whoever ends looks
 * at the list afterwards: order(due), the same race as order(core). Hence a
 * function that calls us again never nests: what it brings is called when it
 * has returned. And who has ended the calls of a session waits for nothing but
 * the holder, in whose hands they all are.
 */
#ifndef NMAD_CORE_CALLS_H
#define NMAD_CORE_CALLS_H

#include <base/atomic.h>
#include <base/mpsc.h>

#include "rail.h"

struct nm_core;
struct nm_msg;
struct nm_session;

/* Lies in what the call is about, which stays there until it is made. */
struct nm_call {
	/* c: who leaves it, then the holder's */
	struct base_mpsc_node node; /* c: on `due`, then `taken` */
	/* c: makes the call; then the memory is not ours any more. */
	void (*make)(struct nm_core *core, struct nm_call *call);
};

struct nm_calls {
	/* a: atomic  h: who holds it  l: core lock */
	ATOMIC(uint32_t) held; /* a: order(due) */
	struct base_mpsc due;  /* a: struct nm_call; order(due),
				*    order(mpsc) */
	ATOMIC(uintptr_t)
	holder;                /* a: his kernel thread while he makes calls,
				*    which finds out whether it is itself */
	ATOMIC(uint32_t) left; /* a: the holder went before all were made */
	struct nm_chain taken; /* h: struct nm_call */
	struct base_mpsc told; /* a: notes to be used again; order(mpsc) */
	struct nm_chain notes; /* l: the same */
};

void nm_calls_init(struct nm_calls *calls);

/* Anyone: this is due. He then has it made, nm_calls_look(). */
void nm_calls_leave(struct nm_core *core, struct nm_call *call);

/* Make what is due, if nobody does: then true. Nothing held. */
bool nm_calls_make(struct nm_core *core);

/* Core lock held: this message, which has been kept, is due to be told of. */
void nm_calls_note(struct nm_core *core, struct nm_session *s,
		   const struct nm_msg *msg);

/*
 * No more notes of the session are made: on return those that were are not told
 * any more, and nobody tells of one. From user context also all else that was
 * due has been called, after waiting for the holder; the other place is a call.
 */
void nm_calls_settle(struct nm_core *core, struct nm_session *s);

#endif
