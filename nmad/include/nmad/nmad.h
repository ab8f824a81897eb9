/*
 * nmad (NewMadeleine): messages between the processes of a job. The user gives
 * messages; the core forms packets from them when a network is free.
 *
 * All functions return 0 or a negative errno and may be called from user
 * threads and foreign threads, unless they say otherwise.
 *
 * The child of a fork() is no part of the job, and nmad does not run there, as
 * before nm_init(), which is refused. Who uses in the child what its parent has
 * (sessions, gates, requests that are not complete) ends the child with a
 * message. The parent notices nothing of it.
 */
#ifndef NMAD_NMAD_H
#define NMAD_NMAD_H

#include <stdint.h>

#include <nmad/data.h>
#include <nmad/event.h>
#include <nmad/pack.h>
#include <nmad/sendrecv.h>
#include <nmad/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Join the job: finds the launcher (none: a job of one), starts marcel and
 * pioman if they do not run, opens the drivers of NMAD_DRIVER and exchanges
 * addresses. Blocks until all processes have come. Calls nest, but are made by
 * one thread at a time. Errors are explained on stderr; -EINVAL: a setting is
 * not allowed; -EPERM: in the child of a fork().
 */
int nm_init(void);

/*
 * Leave the job: the last of as many calls as of nm_init(), by the thread of
 * the first one. Blocks until all processes have come here and everything sent
 * has left. 0; -EBUSY: a session is open; -EINVAL: no nm_init(); or what the
 * launcher has to say: nmad does not run any more then, either.
 */
int nm_exit(void);

/* This process and the job; -1 and 0 before nm_init(). */
int nm_rank(void);
int nm_size(void);

/*
 * Which of the programs that the job was started with this process runs, from
 * 0; -1: the launcher does not say, or there is none.
 */
int nm_appnum(void);

/* Rank within those of the same host, and their number. */
int nm_local_rank(void);
int nm_local_size(void);

/* A peer by its rank (oneself included), or NULL; constant while running. */
struct nm_gate *nm_gate_of(int rank);
int nm_gate_rank(const struct nm_gate *gate);

/*
 * The host that the peer is on, as the launcher says: a number that those of
 * one host have in common, the same in every process of the job. Constant.
 */
int nm_gate_host(const struct nm_gate *gate);

/*
 * Nonzero: a network of processes of one host reaches the peer, so that both
 * may have memory in common. It answers the same about us.
 */
int nm_gate_is_near(const struct nm_gate *gate);

/*
 * Nonzero: the kernel copies between the peer's memory and ours. nmad has tried
 * when it first heard from the peer, or sent it something; who asks has
 * completed a message to or from it. Anyone, a few loads.
 */
int nm_gate_can_copy(const struct nm_gate *gate);

/*
 * Copy `length` bytes between the address `remote` in the peer's memory and
 * bytes [offset, offset + length) of `d`: to d, or from there. The peer takes
 * no part and hears nothing: the two have agreed on what this memory holds.
 * What is sent when this has returned comes after it. Anyone; the caller's
 * kernel thread does it, 1 MB a system call. 0; or -errno, unlogged, and some
 * of it may have been copied: -ENOTSUP: !nm_gate_can_copy(), also when the
 * process is known to be gone; -ESRCH: it is gone; -EFAULT: it has no such
 * memory.
 */
int nm_gate_read(const struct nm_gate *gate, const struct nm_data *d,
		 size_t offset, size_t length, uint64_t remote);
int nm_gate_write(const struct nm_gate *gate, const struct nm_data *d,
		  size_t offset, size_t length, uint64_t remote);

/*
 * Stores how many packets this process has sent to and received from other live
 * processes. A packet counts as received once its content has been dealt with.
 * Returns nonzero if nmad is at work or the body of a message is under way
 * here.
 *
 * Look at every process, and then at every process again. If every look
 * returned 0 and the packets received at the first look equal those sent at the
 * second, no message was on its way. Any thread may call it; it never waits for
 * a lock.
 */
int nm_motion(uint64_t *sent, uint64_t *received);

/* Kill the whole job with this exit code, after a line on stderr. */
void nm_abort(int code, const char *why) __attribute__((noreturn));

/*
 * Open a session: its id must be the same in every process that takes part and
 * must not be used again in the job's life, since something of the old one may
 * still be on its way (nm_sr_cancel()): a number of the program's choice below
 * 2^40, or one from nm_session_new_id() that its maker has told the others. A
 * message of a session that is not open here yet waits. Does not wait for the
 * others. -EEXIST: already open; -EINVAL: no nm_init(), or a number of names
 * (its highest bits are 10); -ENOMEM.
 */
int nm_session_open(uint64_t id, struct nm_session **out);

enum { NM_SESSION_NAME_MAX = 255 }; /* bytes, the final 0 not counted */

/*
 * The same by a name: the same name in every process is the same session, and
 * neither one that has a number nor one of MPI's. The name is copied; any bytes
 * but 0 will do. It must not be used again in the job's life.
 *
 * What travels is a hash of 62 bits: that two of n names of a job have the same
 * is as likely as n^2 in 2^63, and then they have it in every run. A process
 * that opens both is told (-ENOTUNIQ, and a line on stderr that names them);
 * one that opens only one of them is not.
 *
 * -EEXIST: this name is open; -EINVAL: no nm_init(), or no name (NULL or
 * empty); -ENAMETOOLONG; -ENOMEM.
 */
int nm_session_open_name(const char *name, struct nm_session **out);

/*
 * Messages of this session come from these peers only: a receive from anyone
 * fails when one of them is dead, and what becomes of others is nothing to it.
 * Without this call they are all processes. Best before anything is received.
 * -EINVAL: no session, or no members where there are some.
 */
int nm_session_among(struct nm_session *s, struct nm_gate *const members[],
		     int n);

/*
 * For reports on processes that hang: fn writes into out[room] what a tag of
 * the session means to the program, in a few words. It is called while nmad is
 * locked: it must not block or call nmad. Until the session is closed.
 */
typedef void (*nm_describe_fn)(void *arg, nm_tag_t tag, int any_tag, char *out,
			       size_t room);
void nm_session_describe(struct nm_session *s, nm_describe_fn fn, void *arg);

/*
 * Close a session. Complete its requests first; only receives by nm_sr_mrecv()
 * may be outstanding. Returns -EBUSY if another receive is outstanding or a
 * send has not left yet. Do not wait for requests by retrying on -EBUSY: a send
 * that has left may still be incomplete.
 *
 * Unclaimed messages that have arrived are dropped, which completes their sends
 * if these are large or synchronous. A message that comes later is kept: its
 * sender may complete the send by nm_sr_cancel(). The session's monitor ends
 * (<nmad/event.h>).
 */
int nm_session_close(struct nm_session *s);

/*
 * A number that no process of the job has got or will get: for session ids. 0,
 * which is none of them, before nm_init().
 */
uint64_t nm_session_new_id(void);

#ifdef __cplusplus
}
#endif

#endif
