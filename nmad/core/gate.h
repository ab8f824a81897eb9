/*
 * A gate: the connection to one process (oneself included) over one or more
 * rails, and what waits to be sent there.
 */
#ifndef NMAD_CORE_GATE_H
#define NMAD_CORE_GATE_H

#include <base/atomic.h>
#include <base/list.h>

#include "../drivers/driver.h"
#include "rail.h"
#include "stats.h"
#include "wire.h"

struct nm_core;
struct nm_grants;
struct nm_levels;
struct nm_part;
struct nm_announced;

enum {
	NM_GATE_LINKS = NM_WIRE_PARTS_MAX,
	/* Payload up to this rides in its envelope and needs no credit. */
	NM_FREE_PAYLOAD = 64,
};

/*
 * What waits to be sent, before messages: the RTR, the ANNOUNCE or the OFFER of
 * a part, an ACK, an RTR that wants nothing, a RETRACT, a LOST or a RESENT.
 */
struct nm_answer {
	/* l: all, core lock */
	struct base_link on;  /* gate->answers */
	struct nm_part *part; /* NULL: one of the others */
	uint64_t id;
	uint8_t kind, flags; /* of the others: on the wire */
};

/* The answer of that kind. l: all, core lock */
struct nm_retraction {
	struct nm_answer answer;
	uint64_t session;
	uint32_t tag, seq;
};

/* Where the next message of a session and tag may go: announce.c */
struct nm_place {
	uint64_t session, id, length;
	uint32_t tag;
	uint8_t rail;
	struct nm_token token;
};

/*
 * Something that costs a little and may be in vain: each time that it was, it
 * is left out the next times, twice as many as the time before.
 */
struct nm_trial {
	/* l: core lock  a: written under it */
	ATOMIC(uint8_t) skip; /* a: times that it is left out */
	uint8_t penalty;      /* l: that many, the last time */
};

enum { NM_PENALTY_MAX = 32 };

static inline bool nm_trial_is_due(const struct nm_trial *t)
{
	return load_relaxed(&t->skip) == 0;
}

/* It was left out. */
static inline void nm_trial_left_out(struct nm_trial *t)
{
	store_relaxed(&t->skip, (uint8_t)(load_relaxed(&t->skip) - 1));
}

static inline void nm_trial_learn(struct nm_trial *t, bool of_use)
{
	uint8_t penalty = (uint8_t)(t->penalty == 0 ? 1 : 2 * t->penalty);

	if (penalty > NM_PENALTY_MAX)
		penalty = NM_PENALTY_MAX;
	t->penalty = of_use ? 0 : penalty;
	store_relaxed(&t->skip, t->penalty);
}

struct nm_gate {
	/* -: const once connected  l: core lock */
	struct nm_core *core; /* -: */
	int rank;             /* -: */
	/* l: best first, of the rails of the lowest weight that lead there;
	 * constant but while measure.c looks at one of them, and when one is
	 * lost: lost.c */
	struct nm_link *links[NM_GATE_LINKS];
	int nlinks;
	ATOMIC(size_t)
	eager_max;      /* a: written under the lock: bytes of payload
			 *    that every link takes; a hint without it */
	size_t cut_min; /* l: from which on a message may go in parts */
	int turn;       /* l: the link to be tried first */
	int error;      /* l: 0, or why it is dead */
	/* Rails, a bit each. */
	uint8_t reach; /* -: that lead there: those of `links` and spare ones */
	uint8_t lost;  /* l: of those: on no link any more; lost.c */
	uint8_t over;  /* l: of those: what has come over it is final */
	int first_error;      /* l: 0, or why the first of them was lost */
	struct nm_chain held; /* l: RESENTs that wait for `over` */
	bool awaited;         /* l: a receive has named it: its links connect */
	ATOMIC(bool)
	mourned; /* a: its loss has been said; nothing hangs on it */

	/* To be sent: answers go first, then messages in their order. */
	struct base_list answers; /* l: struct nm_answer */
	struct base_list out;     /* l: struct nm_req, send.on */
	struct nm_levels *levels; /* l: the strategy's, of those on `out` */
	struct base_list waiting; /* l: sends that wait for an answer */
	struct base_list offers;  /* l: parts whose RTR has not come */
	struct base_list wanted;  /* l: parts that come, but for announced */
	struct nm_chain posts;    /* l: orders that come with a packet */
	struct base_list medium;  /* l: messages whose parts come: medium.c */
	struct nm_announced *announced; /* l: the peer's receives, or NULL */
	bool announces; /* l: our receives are announced; as `links`, and
			 *    never written if it has spare ones */
	struct nm_trial announcing; /* an announcement, for a receive ... */
	struct nm_trial looking;    /* ... and a look for one, before a send */
	struct nm_grants
		*grants;         /* l: by rail: parts to be received; or NULL */
	struct base_link active; /* l: core->active while there is work, or
				  *    core->gathering, see burst.c */
	bool is_dear;         /* l: a packet costs a system call; as `links` */
	bool gathers;         /* l: */
	uint32_t burst;       /* l: sends of this round, up to a few */
	uint32_t burst_round; /* l: which one that is */
	size_t gathered;      /* l: bytes, about */

	/* Flow control: eager payload unmatched at the peer, and matched
	 * here and not yet told the peer. */
	uint64_t credit_used; /* l: */
	uint64_t credit_back; /* l: */

	nm_count_t nsent, nreceived; /* l: packets; read by anybody */
};

static inline bool nm_gate_has_output(const struct nm_gate *g)
{
	return !base_list_is_empty(&g->answers) || !base_list_is_empty(&g->out);
}

#endif
