/*
 * Events: functions of the program's that nmad calls when something has
 * happened, so that nobody has to wait for it ("callbacks [...] called with all
 * locks released", CCGrid 2019, section V).
 *
 * Where they run. Whoever makes progress calls them, once he holds nothing of
 * nmad's: a thread inside any function of nmad's, an idle VP, a tick while all
 * VPs compute. So the rules are those of an ltask's function
 * (<pioman/ltask.h>), on whatever stack: it must not block, park, or take a
 * lock that a thread may hold while it calls nmad, waits or is interrupted;
 * malloc() and stdio take such locks. A function that comes to wait ends the
 * process with a message that names it. It should be short: whoever called it
 * is not interrupted, and all other calls wait.
 *
 * What they may do. All of <nmad/sendrecv.h> that does not block, with the
 * request that they were called for, too: post sends and receives, test, probe,
 * take a message by nm_sr_mprobe(), cancel; give more functions, end a monitor;
 * nm_rpc_send(). And what ltasks may: wake threads, signal conditions and
 * semaphores, submit ltasks. Not: open and close, nm_init(), nm_exit().
 *
 * One at a time: in a process no two of them run at once, and none inside
 * another. What one brings about is called after it has returned. Calls are
 * made in the order in which they fell due, so messages of one sender are told
 * in the order in which they were sent.
 */
#ifndef NMAD_EVENT_H
#define NMAD_EVENT_H

#include <nmad/sendrecv.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The request is complete, and the program's again: it may be used anew, or
 * its memory given away. */
typedef void (*nm_done_fn)(struct nm_sr_request *req, void *arg);

/*
 * Have fn called once for a request that was posted, when it is complete,
 * however it ends: nm_sr_status() tells. If it is complete already the call is
 * due at once, and made before this returns unless somebody is making calls.
 * Until it is made the request stays where it is and its session open, even if
 * nm_sr_test() says that it is complete. It cannot be taken back, but a receive
 * can be cancelled. Once per posting, and for requests that nobody waits for: a
 * second function, or a thread that comes to sleep for the request, ends the
 * process. Anyone, never blocks, allocates nothing. 0; -EINVAL: no request, no
 * function, or nmad does not run.
 */
int nm_sr_on_done(struct nm_sr_request *req, nm_done_fn fn, void *arg);

/*
 * A message has come that no receive was posted for: from whom, with what tag
 * and of what length. A receive may have taken it since.
 */
typedef void (*nm_arrival_fn)(struct nm_session *s,
			      const struct nm_sr_status *what, void *arg);

/*
 * Have fn called for each message of the session that finds no receive, those
 * that are there already included, in the order of their arrival. As for a
 * receive that is posted, somebody polls for them. Each costs 64 bytes until it
 * was told. From user threads, foreign threads, and functions that nmad has
 * called; never blocks. 0; -EBUSY: the session has a monitor; -EINVAL: no
 * session or no function.
 */
int nm_session_monitor(struct nm_session *s, nm_arrival_fn fn, void *arg);

/*
 * End that. On return the function is not running and will not be called, what
 * has come and was not told is not; but the call from inside which this is
 * called goes on, of course. Waits for a call that goes on elsewhere, of
 * whatever function, and may make calls that are due. From user threads,
 * foreign threads, and functions that nmad has called. 0; -ENOENT: it has none;
 * -EINVAL: no session.
 *
 * nm_session_close() does the same; when it returns, what was to be called of
 * requests that were complete has been called, too.
 */
int nm_session_unmonitor(struct nm_session *s);

/* What a watcher may be told of; bits. */
enum nm_watched {
	NM_SAW_UNEXPECTED = 1,  /* a message came before its receive */
	NM_SAW_RDV_OUT = 2,     /* a large message was announced to the peer; */
	NM_SAW_RDV_OUT_END = 4, /* all of it has left, or nothing more will */
	NM_SAW_RDV_IN = 8,      /* a receive has met a large message; */
	NM_SAW_RDV_IN_END = 16, /* all of it is here, or nothing more comes */
	NM_SAW_LOST = 32,       /* a peer is dead; length and tag are 0 */
};

struct nm_sight {
	enum nm_watched what;
	int rank; /* the peer's */
	nm_tag_t tag;
	size_t length;    /* bytes of the message, or of the part received */
	uint64_t when_ns; /* by CLOCK_MONOTONIC; never less than the last */
};

typedef void (*nm_watch_fn)(const struct nm_sight *sight);

/*
 * For tools: have fn called whenever one of these bits happens in whatever
 * session, nmad's own and that of other users of nmad included, in that order;
 * by the rules of this file, but it does not use nmad. One for the process,
 * before nm_init() and after nm_exit(), too; kinds 0 ends it, though what has
 * happened before may still be told. From anywhere, never blocks.
 */
void nm_watch(unsigned kinds, nm_watch_fn fn);

#ifdef __cplusplus
}
#endif

#endif
