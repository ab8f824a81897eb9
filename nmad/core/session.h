/*
 * A session: a world of tags of its own, and for each peer the count of
 * envelopes sent and received in it.
 *
 * Envelopes are numbered per (gate, session) and matched strictly in that
 * order, whatever rail they came over; an early one is parked here.
 *
 * Who has which of the 64 bits of a session's number:
 *
 *   63 62 | 61 ... 40 | 39 ... 0
 *    0  0 |     0     |  chosen     by programs
 *    0  0 | rank + 1  |  counter    nm_session_new_id()
 *    1  0 |  hash of a name         nm_session_open_name()
 *    1  1 |  counted from the end   nmad's own, MPI's predefined ones
 */
#ifndef NMAD_CORE_SESSION_H
#define NMAD_CORE_SESSION_H

#include <base/list.h>
#include <nmad/nmad.h>

#include "match.h"

struct nm_core;
struct nm_req;

/*
 * Envelopes ahead of their turn; beyond, and behind, a number is nonsense. What
 * holds up the one before them may last (a preempted thread, a slow rail), and
 * they cost no more than unexpected ones, which nothing bounds either.
 */
enum { NM_PARKED_MAX = 1 << 30 };

enum { NM_RECENT = 8 }; /* a power of two */

/* What a session knows of one peer. l: all, core lock */
struct nm_peer {
	uint32_t send_seq;        /* of the next envelope to it */
	uint32_t recv_seq;        /* of the next envelope from it */
	uint32_t sent[NM_RECENT]; /* tags of the last ones, by send_seq */
	struct base_list parked;  /* struct nm_msg: see parked.h */
	struct nm_req *last_out; /* the strategy's, NULL at first: see prio.c */
	bool is_outside;         /* nothing of this session comes from it */
};

struct nm_session {
	/* -: const while open  l: core lock */
	uint64_t id;                   /* -: */
	struct nm_core *core;          /* -: */
	struct base_link on;           /* l: core->sessions */
	struct base_link by_id;        /* l: core->by_id */
	struct nm_match_session match; /* l: */
	struct nm_peer *peers;         /* l: by rank */
	uint64_t nactive;              /* l: receives and probes that are not
					*    over, sends on gates' lists */
	int ndead;                     /* l: of its members */
	int nmembers;                  /* l: */
	bool is_watched;               /* l: of each member the death will be
					*    heard of */
	nm_arrival_fn monitor;         /* l: or NULL: nobody is told */
	void *monitor_arg;             /* l: */
	nm_describe_fn describe;       /* l: or NULL: nobody knows */
	void *describe_arg;            /* l: */
	char name[];                   /* -: "" if it has only a number */
};

/*
 * Who waits for anyone hears of the death of each member of a session of at
 * most so many; of a larger one, of those that this process has used. For what
 * is watched is connected.
 */
enum { NM_WATCHED_MAX = 64 };

/* The number that a name has in every process. */
uint64_t nm_session_id_of(const char *name);

/*
 * The table by number grows with the sessions that are open, a few slots with
 * each opening. Only openings and closings change it. They and all look-ups
 * hold the core lock, so that a look-up needs no order of its own.
 */
uint64_t nm_session_hash(const struct base_link *first, bool mark,
			 unsigned arg);

/* Core lock held. NULL: not open here. */
struct nm_session *nm_session_find(struct nm_core *core, uint64_t id);

/* Core lock held: nothing more is noted for its monitor. False: it has none. */
bool nm_session_forget(struct nm_session *s);

#endif
