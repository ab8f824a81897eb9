/*
 * The core: everything between the user's requests and the rails.
 *
 * Three stations, no lock over two of them:
 *   the core    tables, under core->lock, which is only tried, never awaited,
 *               by whoever makes progress (but see NMAD_LOCK, lock.h);
 *   a rail      the driver's work, by the rail's owner;
 *   the user    copies into his memory and the signals that his requests are
 *               complete.
 * Who holds the core's lock only decides; what he decided (orders for the
 * rails, copies, completions) is in his `struct nm_pass` and is carried out
 * after the lock is released.
 */
#ifndef NMAD_CORE_CORE_H
#define NMAD_CORE_CORE_H

#include <base/atomic.h>
#include <base/diag.h>
#include <base/hash.h>
#include <base/list.h>
#include <base/option.h>
#include <base/spin.h>
#include <pioman/ltask.h>

#include "../sr/req.h"
#include "../strategies/strategy.h"
#include "calls.h"
#include "gate.h"
#include "ids.h"
#include "limbo.h"
#include "lock.h"
#include "lost.h"
#include "mem.h"
#include "msg.h"
#include "parked.h"
#include "pkt.h"
#include "rail.h"
#include "session.h"
#include "stats.h"

enum {
	NM_RAILS_MAX = NM_GATE_LINKS,
	NM_KICK_BYTES = 4096, /* larger messages wake an idle VP */
};

/* Values of the options; constant while running. */
struct nm_config {
	const struct nm_strategy *strategy;
	size_t rdv_threshold; /* 0: the driver's */
	bool announce;        /* large receives, where drivers can */
	size_t offload;       /* bytes of a packet that others send; 0: none */
	uint64_t window;      /* bytes of unmatched eager payload per peer */
	enum nm_lock_scheme lock;
};

struct nm_core {
	/* -: const while running  l: lock  a: atomic */
	struct nm_core_lock lock; /* a: order(core) */
	struct nm_hunger hunger;  /* a: order(hungry) */
	struct base_mpsc freed;   /* a: messages whose payload is copied;
				   *    order(mpsc) */
	ATOMIC(uint32_t)
	pending; /* a: written under the lock: requests and
		  *    answers that are not over, and monitors */
	ATOMIC(uint32_t)
	bursting;                /* a: written under the lock: who polls is
				  *    to end a burst; a hint */
	ATOMIC(uint32_t) low;    /* a: the match tables want memory; a hint */
	ATOMIC(uint32_t) ending; /* a: the refiller shall end; order(ending) */

	struct nm_config config;              /* -: */
	int rank, size;                       /* -: */
	struct nm_gate *gates;                /* -: by rank */
	struct nm_rail *rails;                /* -: nrails of them */
	int nrails;                           /* -: */
	int first_listed;                     /* -: of those in NMAD_DRIVER */
	char names[NM_RAILS_MAX * 16];        /* -: the rails' drivers */
	struct nm_boot *boot;                 /* -: or NULL: a test's */
	struct base_spin asking;              /* for the next: one at a time */
	const struct nm_link *asker;          /* whose address is asked for, or
					       *    that it is held */
	struct nm_learnt *learnt;             /* those that are known */
	struct nm_rail *polled[NM_RAILS_MAX]; /* -: those that are used */
	int npolled;                          /* -: */
	int epoll;                            /* -: of their descriptors, or
					       *    -1: they are only polled */
	int event;                            /* -: in it, an eventfd: nudged */
	int launcher;                         /* -: in it, nm_boot_fd() */
	uint32_t until_look;                  /* the ltask's: runs in vain until
					       *    it asks for the launcher */
	struct nm_calls calls;                /* a: order(due) */
	ATOMIC(uint32_t)
	nudged; /* a: it was written to since it
		 *    was read; see arm() */

	struct nm_stats stats;                         /* see there */
	struct nm_rail_stats rail_stats[NM_RAILS_MAX]; /* see there */

	struct nm_match match;      /* l: */
	struct nm_mem mem;          /* l: */
	struct nm_ids offers;       /* l: struct nm_part */
	struct nm_ids syncs;        /* l: sends that wait for an ACK */
	struct base_list active;    /* l: gates that have output */
	struct base_list gathering; /* l: gates whose output waits for a poll */
	uint64_t burst_ns;          /* l: its oldest, or the last of a burst */
	uint64_t burst_began;       /* l: when it could gather first */
	uint64_t burst_last;        /* l: its last, from the last on that had to
				     *    leave at once */
	int64_t late_ns;            /* l: the last poll that was late */
	uint32_t burst_round;       /* l: polls that ended a burst */
	/* l: bursts that shall not gather, after a late poll; how many that
	 * was the last time */
	uint32_t distrust, penalty;
	bool burst_teaches;        /* l: this one is long enough */
	struct base_list sessions; /* l: all of them */
	struct base_hash by_id;    /* l: sessions, by number */
	struct base_hash parked;   /* l: messages before their turn: parked.h */
	struct nm_limbo limbo;     /* l: messages of no session */
	struct nm_limbo retracts;  /* l: RETRACTs of no session that have not
				    *    found their message in limbo */
	struct nm_chain stalled;   /* l: requests that found no memory */
	bool parked_for_memory;    /* l: some peer's messages, too */
	bool refill_asked;         /* l: refill is set, not yet answered */
	int ndead;                 /* l: gates that are dead */

	marcel_event_t refill;     /* wakes the refiller */
	marcel_t refiller;         /* -: the thread that allocates */
	struct piom_ltask ltask;   /* pioman's */
	struct base_dumper dumper; /* diag's */
};

/* What a holder of the lock leaves to be done after it. */
struct nm_pass {
	struct nm_core *core;
	bool polls;              /* whose it is: sends and polls */
	bool kick;               /* somebody is to poll */
	struct nm_chain posts;   /* struct nm_event, each for its link's rail */
	struct nm_chain done;    /* struct nm_req: copy, then signal */
	struct nm_chain release; /* struct nm_pkt_in, after the copies */
};

/* --- progress.c: entering the core and doing what was decided --- */

/*
 * Enter the core with news of rails and perhaps a request of the caller's; if
 * it is busy, leave them there or wait, as NMAD_LOCK says. Goes on until
 * nothing is left to this caller. No lock held.
 * True if he came to that: not if all was left to the holder.
 */
bool nm_core_run(struct nm_core *core, struct nm_news *news,
		 struct nm_req *req);

/*
 * Before a wait: what has gathered leaves, whether or not the wait polls. If
 * the core is busy its holder sees to it; or, now and then, who was kicked.
 */
void nm_core_hurry(struct nm_core *core);

/*
 * Before a test or a wait, which polls only if it finds nothing: that is the
 * end of a burst all the same.
 */
static inline void nm_core_end_burst(struct nm_core *core)
{
	if (unlikely(load_relaxed(&core->bursting) != 0))
		nm_core_hurry(core);
}

/* Poll all rails once and settle what that brings. True if anything moved. */
bool nm_core_progress(struct nm_core *core);

/*
 * For one who waits from now on, and was told nothing of what came before: he
 * finds it, or somebody does after him, though all be armed.
 */
void nm_core_look(struct nm_core *core);

/*
 * Before nobody polls any more: whatever comes for any of the polled rails from
 * now on makes core->epoll readable. 0, or -EAGAIN: there is something to do
 * here. Not beside nm_core_progress() of the ltask, nor twice at once.
 */
int nm_core_arm(struct nm_core *core);

/* Armed, but a rail has got something to do that only polling moves. */
void nm_core_nudge(struct nm_core *core);

/* Whether anything here waits for a network. */
bool nm_core_is_quiet(struct nm_core *core);

/*
 * Wait for the lock: for probe and cancel, from user context, or from a
 * function that nmad calls (calls.h), when the caller holds nothing else of
 * nmad's. He is pinned until nm_core_unlock() has settled all.
 */
void nm_core_lock(struct nm_core *core);

/*
 * After nm_core_lock(): drain what was submitted, so that the tables show all
 * that the caller has done before. `pass` is made ready.
 */
void nm_core_settle(struct nm_core *core, struct nm_pass *pass);

/* Release, and do what was decided. */
void nm_core_unlock(struct nm_core *core, struct nm_pass *pass);

/*
 * User context: give the match tables the memory that they want. `answered`:
 * the refiller's call, which may be asked again from now on.
 */
void nm_core_refill(struct nm_core *core, bool answered);

/* Submit a request: what isend and irecv come down to. */
void nm_core_submit(struct nm_core *core, struct nm_req *req);

/*
 * As nm_session_open(), nm_session_open_name(), whose number may be another
 * than nm_session_id_of() says, for tests; and nm_session_close().
 */
int nm_core_session_open(struct nm_core *core, uint64_t id,
			 struct nm_session **out);
int nm_core_session_open_name(struct nm_core *core, uint64_t id,
			      const char *name, struct nm_session **out);
int nm_core_session_close(struct nm_session *s);

/* The one of this process, or NULL; made by nm_init(). */
extern struct nm_core *nm_core_self;

/* There is none, and the caller waits: in the child of a fork() he is told. */
void nm_core_check_child(void);

extern const struct base_option_table nm_options;

/*
 * core.c: a core without rails. 0 or -errno. Before the exit its sessions are
 * closed and its rails are too.
 */
int nm_core_init(struct nm_core *core, int rank, int size,
		 const struct nm_config *config);
void nm_core_exit(struct nm_core *core);
/* From now on pioman makes it progress, and memory is refilled. 0 or -errno. */
int nm_core_start(struct nm_core *core);
void nm_core_stop(struct nm_core *core);

/*
 * connect.c: the rails of a list as in NMAD_DRIVER (NULL: automatic), opened;
 * after a fence, joined, which ends with one; then the gates have their links.
 * 0 or -errno, explained; what was opened is closed by nm_rails_close() in any
 * case.
 */
int nm_rails_open(struct nm_core *core, struct nm_boot *boot, const char *list);
int nm_rails_join(struct nm_core *core);
int nm_rails_link(struct nm_core *core);
void nm_rails_close(struct nm_core *core);

/* rail.c, nobody drives them any more: what they told of has been heard. */
void nm_rails_check(const struct nm_core *core);

/*
 * connect.c: the launcher hears one at a time. Who calls it while rails are
 * polled, be it for a fence, holds it: a peer's address, which a rail may want
 * at any time if another rail is lost, is asked for when it is released. Held
 * is for who needs no connection that is not there, and whom others that need
 * one can call; what he has said last may be on a rail that is lost then, so
 * where whom he has said it to can be called is learnt before. Nor may the VP
 * wait with who is in a fence: others might come to it only when the rails here
 * have said something.
 */
void nm_launcher_learn(const struct nm_gate *gate);
void nm_launcher_hold(struct nm_core *core);
int nm_launcher_fence(struct nm_boot *boot);
void nm_launcher_release(struct nm_core *core);

/*
 * connect.c, core lock held or nobody else there: up to which size the messages
 * to each peer are eager, by what is known of the rails. What that is for one
 * rail alone, and the most that it takes.
 */
void nm_rails_thresholds(struct nm_core *core);
size_t nm_rail_threshold(const struct nm_rail *rail);
size_t nm_rail_room(const struct nm_rail *rail);

/* Anyone: the link over this rail, or NULL: that does not lead there. */
struct nm_link *nm_gate_link(const struct nm_gate *gate, unsigned rail);

/*
 * Core lock held: gate->links, and what follows from them, from what leads
 * there now. None is left: gate->nlinks is 0, and all else as before.
 */
void nm_gate_relink(struct nm_gate *gate);

/*
 * sampling.c: the curves of the rails, from a file and to one, which is
 * replaced at once or not at all. 0 or -errno, explained.
 */
int nm_sampling_load(struct nm_core *core, const char *path);
int nm_sampling_save(const struct nm_core *core, const char *path);

/* --- from here on all functions: core lock held --- */

/* submit.c: a request comes in, in the order of pushes. */
void nm_submit_take(struct nm_pass *pass, struct nm_req *req);

/* Again those that found no memory. */
void nm_submit_resume(struct nm_pass *pass);

/*
 * A message of this peer is asked for, for the first time (gate->awaited): from
 * now on its death is heard of, whether or not we ever send.
 */
void nm_submit_await(struct nm_pass *pass, struct nm_gate *gate);

/* The order to the rail's owner to connect it; once a link. */
void nm_submit_connect(struct nm_pass *pass, struct nm_link *link);

/*
 * Whether nothing will come any more: the peer is dead; or, of anyone (NULL),
 * some member of the session, the deaths of all of which are heard of as of
 * now.
 */
bool nm_submit_in_vain(struct nm_pass *pass, struct nm_session *s,
		       const struct nm_gate *from);

/*
 * Give up a receive that was taken: it is finished, with -ECANCELED. 0, or
 * -EALREADY: it has met its message, which may be on its way (announce.c), or
 * is complete.
 */
int nm_submit_cancel(struct nm_pass *pass, struct nm_req *req);

/* out.c */
void nm_out_send(struct nm_pass *pass, struct nm_req *req);
/* The link's packet, which its first use makes. Core lock held. */
struct nm_pkt *nm_out_pkt(struct nm_core *core, struct nm_link *link);
/* An ACK, or an RTR that wants nothing; and a plain ACK. */
void nm_out_reply(struct nm_gate *gate, uint8_t kind, uint64_t id,
		  uint8_t flags);
void nm_out_ack(struct nm_gate *gate, uint64_t id);
void nm_out_answer(struct nm_gate *gate, struct nm_answer *a);
/* It is in a packet, or never will be. */
void nm_out_answer_over(struct nm_core *core, struct nm_answer *a);
void nm_out_activate(struct nm_gate *gate);
/* Form packets for all links that are free. */
void nm_out_form(struct nm_pass *pass);

/*
 * burst.c. Whether a send that has just been queued stays where it is: others
 * join it, until somebody polls.
 */
bool nm_burst_keeps(struct nm_pass *pass, struct nm_gate *gate, size_t length);
/* The gate gathers no more; it is on no list. */
void nm_burst_leave(struct nm_gate *gate);
/* Somebody polls: what has gathered leaves. */
void nm_burst_end(struct nm_core *core);

/*
 * For strategies: append the first that waits for the gate. True: done; false:
 * nothing waits, or nothing fits any more.
 */
bool nm_out_add(struct nm_gate *gate, struct nm_pkt *pkt);
/*
 * The same for a certain send, the first that waits of its session. `yields`:
 * its envelope now, its payload by rendezvous, whatever it is.
 */
bool nm_out_add_send(struct nm_gate *gate, struct nm_pkt *pkt,
		     struct nm_req *req, bool yields);
/* A send waits for the gate no more; the first of its session. */
void nm_out_dequeue(struct nm_gate *gate, struct nm_req *req);

/*
 * A send waits no more and leaves with its payload, in the EAGER or the PARTs
 * of `c`, whose id is filled in. False: there is none left, nothing changed.
 */
bool nm_out_leaves(struct nm_gate *gate, struct nm_req *req,
		   struct nm_wire_chunk *c);

/* in.c: a rail's news. */
void nm_in_event(struct nm_pass *pass, struct nm_event *e);
/* A packet with a RESENT in it that was held: again. */
void nm_in_held(struct nm_pass *pass, struct nm_pkt_in *in);
/* An envelope, to be matched in its turn. 0 or -EBADMSG. */
int nm_in_envelope(struct nm_pass *pass, struct nm_gate *gate,
		   const struct nm_wire_chunk *c);
/* The record of one that is before its turn; on no list. */
struct nm_msg *nm_in_early(struct nm_gate *gate, const struct nm_wire_chunk *c);
/* A session was opened: its messages leave limbo. */
void nm_in_opened(struct nm_pass *pass, struct nm_session *s);
/* Memory has come for those that were parked for want of it. */
void nm_in_resume(struct nm_pass *pass);
/* Payload of a message has left the unexpected ones. */
void nm_in_credit(struct nm_gate *gate, uint64_t length);

/* A receive and a kept message have found each other. */
void nm_in_deliver_kept(struct nm_pass *pass, struct nm_req *req,
			struct nm_msg *msg);
/* A probe has found it: it stays. */
void nm_in_probed(struct nm_pass *pass, struct nm_req *req,
		  const struct nm_msg *msg);
void nm_msg_free(struct nm_core *core, struct nm_msg *msg);
/*
 * Nobody will receive it: its sender does not wait for that any more. `flags`
 * of the answer.
 */
void nm_in_refuse(struct nm_gate *gate, const struct nm_msg *msg,
		  uint8_t flags);
/* A message that nobody has taken: what is still to come of it, too. */
void nm_in_drop(struct nm_gate *gate, struct nm_msg *msg);

/* announce.c: large receives that the sender knows of. */
/* No lock held: a large send is to be submitted. */
void nm_announce_look(struct nm_gate *gate);
/* An announcement has come. 0 or -EBADMSG. */
int nm_announce_heard(struct nm_pass *pass, struct nm_gate *gate,
		      const struct nm_wire_chunk *c);
/* A send comes in: what was announced for it is used up. */
void nm_announce_use(struct nm_gate *gate, struct nm_req *req);
/* It does not go there. */
void nm_announce_unuse(struct nm_core *core, struct nm_req *req);
/* The gate is dead. */
void nm_announce_forget(struct nm_gate *gate);
/* One was posted, or left the tables: the first of that tag, if it may. */
void nm_announce_next(struct nm_pass *pass, struct nm_session *s,
		      struct nm_gate *gate, uint32_t tag);

/* retract.c: sends that are taken back. */
/* Ask for it. 0; -EALREADY: the gate is dead, and the send will be over. */
int nm_retract(struct nm_req *req);
/* The chunk of a queued one, and: it is in a packet, or never will be. */
void nm_retract_chunk(const struct nm_answer *a, struct nm_wire_chunk *c);
void nm_retract_over(struct nm_core *core, struct nm_answer *a);
/* The peer takes back its envelope `which`; what was sent before it is here. */
void nm_retract_heard(struct nm_pass *pass, struct nm_session *s,
		      struct nm_gate *gate, uint32_t tag, uint32_t which);
/*
 * An envelope of no open session goes to limbo: it and what it takes back, or
 * what takes it back, may find each other there.
 */
void nm_retract_early(struct nm_core *core, struct nm_msg *msg);
/*
 * All of a message has come that no receive has matched. `retracted`: it was to
 * be taken back (nm_medium_retract()).
 */
void nm_retract_whole(const struct nm_gate *gate, uint64_t session,
		      struct nm_msg *msg, bool retracted);

/* medium.c: messages in parts over several links. */
/*
 * Form the packets of this send, `first` and those of other links. False: it
 * is not cut, and nothing is changed.
 */
bool nm_medium_cut(struct nm_gate *gate, struct nm_pkt *first,
		   struct nm_req *req, const struct nm_wire_chunk *envelope);
/* Rail's owner: a part has left, or never will. True: that was the last. */
bool nm_medium_left(struct nm_req *req, int error);
/* A part has come. 0 or -EBADMSG. */
int nm_medium_heard(struct nm_pass *pass, struct nm_gate *gate,
		    struct nm_pkt_in *in, const struct nm_wire_chunk *c);
/* The message whose first part is just being heard of: it is kept here ... */
void nm_medium_kept(struct nm_gate *gate, struct nm_msg *msg);
/* ... or has met its receive. */
void nm_medium_matched(struct nm_pass *pass, struct nm_req *req,
		       struct nm_gate *gate, const struct nm_wire_chunk *c);
/* A receive takes one that is kept and of which parts are missing. */
void nm_medium_taken(struct nm_pass *pass, struct nm_req *req,
		     struct nm_msg *msg);
/* Such a one is to be taken back when it is whole. */
void nm_medium_retract(const struct nm_gate *gate, const struct nm_msg *msg);
/* Such a one is not kept any more. */
void nm_medium_lost(struct nm_gate *gate, const struct nm_msg *msg);
/* No lock held: copy what has come of a part. Perhaps ends the request. */
void nm_medium_copy(struct nm_pkt_in *in);
/* The gate is dead. */
void nm_medium_fail(struct nm_pass *pass, struct nm_gate *gate);

/* rdv.c: large messages. */
/*
 * An offer for the RTS of this send, whose parts are written to `parts`; false:
 * too many. And the most bytes that the RTS may take.
 */
bool nm_rdv_offer(struct nm_gate *gate, struct nm_pkt *pkt, struct nm_req *req,
		  struct nm_wire_chunk *rts, void *parts);
size_t nm_rdv_rts_size(const struct nm_gate *gate);
/* Announce a posted receive. */
void nm_rdv_announce(struct nm_pass *pass, struct nm_req *req);
/*
 * A receive is no longer to be had by its announcement, if there is one. 0, or
 * -EALREADY: it has been taken, and the message will come; but not if
 * `for_good`: then the peer is given up.
 */
int nm_rdv_recall(struct nm_req *req, bool for_good);
/* Its message has come, and not that way: the peer must not have taken it. */
void nm_rdv_in_vain(struct nm_pass *pass, struct nm_req *req,
		    struct nm_gate *gate);
/* Nobody will receive it. `flags` of the answers. */
void nm_rdv_refuse(struct nm_gate *gate, const struct nm_wire_chunk *rts,
		   uint8_t flags);
/* A receive has met an RTS. */
void nm_rdv_matched(struct nm_pass *pass, struct nm_req *req,
		    struct nm_gate *gate, const struct nm_wire_chunk *rts);
/* Whether an RTS can be answered at all. */
bool nm_rdv_is_sane(const struct nm_gate *gate,
		    const struct nm_wire_chunk *rts);
/* 0 or -EBADMSG. */
int nm_rdv_rtr(struct nm_pass *pass, struct nm_gate *gate,
	       const struct nm_wire_chunk *rtr);
void nm_rdv_ready(struct nm_pass *pass, struct nm_xfer *x);
void nm_rdv_done(struct nm_pass *pass, struct nm_xfer *x);
/* The chunk of a queued RTR or ANNOUNCE, and: it is in a packet, or never will
 * be. */
void nm_rdv_chunk(struct nm_answer *a, struct nm_wire_chunk *c);
void nm_rdv_chunk_over(struct nm_core *core, struct nm_answer *a);
/* The gate is dead: transfers that no driver has. */
void nm_rdv_fail(struct nm_pass *pass, struct nm_gate *gate);

/* finish.c: a request is over; settled: and somebody else will signal it. */
void nm_req_settle(struct nm_pass *pass, struct nm_req *req, int error);
void nm_req_finish(struct nm_pass *pass, struct nm_req *req, int error);
/* One of the parts of which a request consists; true: that was the last. */
bool nm_req_part(struct nm_req *req);

/* fail.c: a peer is gone. */
void nm_gate_fail(struct nm_pass *pass, struct nm_gate *gate, int error);

/* Say so, once: by whoever is the first to know of it. */
void nm_gate_mourn(struct nm_gate *gate, int error);

/* dump.c */
void nm_core_dump(void *core);

/*
 * After what may have completed requests or brought messages, and nothing held:
 * have made what is due. A look sees what the caller has left, unless somebody
 * has taken it.
 */
static inline void nm_calls_look(struct nm_core *core)
{
	if (unlikely(!base_mpsc_is_empty(&core->calls.due)))
		nm_calls_make(core);
}

/* A hint: there are calls that nobody makes, or not yet. */
static inline bool nm_calls_are_due(struct nm_core *core)
{
	return !base_mpsc_is_empty(&core->calls.due) ||
	       load_relaxed(&core->calls.left) != 0;
}

static inline void nm_pending_add(struct nm_core *core, int n)
{
	store_relaxed(&core->pending,
		      load_relaxed(&core->pending) + (uint32_t)n);
}

#endif
