/*
 * Send and receive (the sr interface). Requests are memory of the caller; a
 * non-blocking call fills one, pushes it on a lock-free list and tries once to
 * make progress: no lock is waited for and nothing is allocated, but when the
 * match tables run low, and then it may be. With NMAD_LOCK fine or coarse a
 * lock is waited for, but in an ltask or another handler.
 *
 * Order: two messages from one process to another in one session are matched in
 * the order in which they were sent; receives match in the order in which they
 * were posted.
 */
#ifndef NMAD_SENDRECV_H
#define NMAD_SENDRECV_H

#include <stddef.h>
#include <stdint.h>

#include <nmad/data.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t nm_tag_t;

struct nm_session; /* a world of tags of its own */
struct nm_gate;    /* a peer process */

#define NM_ANY_GATE  ((struct nm_gate *)0)
#define NM_TAG_EXACT ((nm_tag_t)-1) /* mask: the tag must be equal */
#define NM_TAG_ANY   ((nm_tag_t)0)  /* mask: any tag will do */

enum nm_send_flags {
	NM_SEND_SYNC = 1, /* completes only when a receive has matched */
	NM_SEND_NOW = 2,  /* the caller waits at once: it joins no others */
};

/* What is urgent: the higher, the sooner. */
enum nm_priority { NM_PRIORITY_MIN = -8, NM_PRIORITY_MAX = 7 };

/* Opaque; the caller's, and must stay where it is until it is complete. */
struct nm_sr_request {
	uint64_t nm_words[26];
};

/* What became of a completed receive, or of a probed message. */
struct nm_sr_status {
	struct nm_gate *gate; /* the sender; NULL if cancelled */
	nm_tag_t tag;
	int error;     /* 0; -EMSGSIZE: longer than the buffer, cut;
			* -ECANCELED; -ECONNRESET: the peer is gone */
	size_t length; /* bytes received (probe: bytes of the message) */
	size_t sent;   /* bytes the message had */
};

/*
 * 0, or -EINVAL for a bad argument (nothing is started then): null pointers,
 * data of no kind or in no memory, unknown flags or masks. After 0 the request
 * completes, whatever happens. Data may not be touched until then (read, for a
 * send).
 */
int nm_sr_isend(struct nm_session *s, struct nm_gate *to, nm_tag_t tag,
		const struct nm_data *data, unsigned flags,
		struct nm_sr_request *req);
int nm_sr_irecv(struct nm_session *s, struct nm_gate *from, nm_tag_t tag,
		nm_tag_t mask, const struct nm_data *data,
		struct nm_sr_request *req);

/*
 * As nm_sr_isend(), which is of priority 0. With NMAD_STRATEGY=prio, of what
 * waits for a network to one process the highest priority leaves first, among
 * equals what was sent first; other strategies send as if all were 0. Matching
 * keeps its order all the same, so a message hurries those before it in its
 * session, of whose payload only what is short goes before its own. Bodies of
 * large messages from one process come in the order of their priorities, too,
 * in parts. What has waited longest is passed 16 times at most. -EINVAL also
 * for a priority out of NM_PRIORITY_MIN to NM_PRIORITY_MAX.
 */
int nm_sr_isend_priority(struct nm_session *s, struct nm_gate *to, nm_tag_t tag,
			 const struct nm_data *data, unsigned flags,
			 int priority, struct nm_sr_request *req);

/*
 * nm_sr_isend() and nm_sr_irecv(), blocking only the calling thread until it is
 * over; the request is on the stack. The send joins no others (NM_SEND_NOW is
 * implied). 0, or what became of it: the `error` of its status, or -EINVAL.
 * *out, unless NULL, is written whatever that is, but not after -EINVAL.
 */
int nm_sr_send(struct nm_session *s, struct nm_gate *to, nm_tag_t tag,
	       const struct nm_data *data, unsigned flags);
int nm_sr_recv(struct nm_session *s, struct nm_gate *from, nm_tag_t tag,
	       nm_tag_t mask, const struct nm_data *data,
	       struct nm_sr_status *out);

/* Complete? Makes progress once if not. 0: complete; -EAGAIN: not yet. */
int nm_sr_test(struct nm_sr_request *req);

/* The same without making progress: one load. */
int nm_sr_is_complete(const struct nm_sr_request *req);

/*
 * Who has sent has no more to send now: messages that wait for others to share
 * a packet leave. All that test or wait do this by themselves, but not
 * nm_sr_is_complete(). Two loads if there are none.
 */
void nm_sr_end_burst(void);

/* Block until complete; only the calling thread. */
void nm_sr_wait(struct nm_sr_request *req);

/*
 * Several at once. Null pointers are passed over, and the array is only read;
 * nothing is allocated. Those that wait block only the calling thread, and
 * those that test make progress once if they find nothing.
 *
 * any:  the lowest index of those that are complete. n: none is (test), or all
 *       pointers are null.
 * some: how many are complete, and their indices, ascending, in out[], which
 *       has room for n. 0 as n above.
 * all:  test: 0, or -EAGAIN: one at least is not complete.
 *
 * wait_any and wait_some may not be given a request twice.
 */
size_t nm_sr_wait_any(struct nm_sr_request *const reqs[], size_t n);
size_t nm_sr_wait_some(struct nm_sr_request *const reqs[], size_t n,
		       size_t out[]);
void nm_sr_wait_all(struct nm_sr_request *const reqs[], size_t n);
size_t nm_sr_test_any(struct nm_sr_request *const reqs[], size_t n);
size_t nm_sr_test_some(struct nm_sr_request *const reqs[], size_t n,
		       size_t out[]);
int nm_sr_test_all(struct nm_sr_request *const reqs[], size_t n);

/* Of a complete request. For a send only `error` and `sent` mean anything. */
void nm_sr_status(const struct nm_sr_request *req, struct nm_sr_status *out);

/*
 * Returns the size of the request's data in bytes. The request may be
 * incomplete.
 */
size_t nm_sr_bytes(const struct nm_sr_request *req);

/*
 * Give up a receive: it completes, with -ECANCELED. 0; -EALREADY: it is
 * complete, or a message has taken it, and it will be.
 *
 * Or a send: 0, and it completes without that a receive matches it, with
 * -ECANCELED if none had: then none will. One that does not wait for a match,
 * as it is neither large nor synchronous, completes as ever. -EALREADY: it is
 * complete, or will be. The peer's session need not be open, yet or any more.
 * If the send completes otherwise than with -ECANCELED, what was said to the
 * peer may come there at any time later, even after both have closed the
 * session: one more reason why its number is not used again
 * (nm_session_open()).
 *
 * -EINVAL: neither nm_sr_irecv()'s nor a send. Waits for the core's lock.
 */
int nm_sr_cancel(struct nm_sr_request *req);

/*
 * Is there a message that this receive would take? 0 and *out; -EAGAIN;
 * -ECONNRESET: nor will there be one, as this peer has died, or, if it is to be
 * from anyone, a member of the session (nm_session_among()); -EINVAL: a null
 * pointer, or no such mask. Makes progress first, and waits for the core's
 * lock.
 */
int nm_sr_probe(struct nm_session *s, struct nm_gate *from, nm_tag_t tag,
		nm_tag_t mask, struct nm_sr_status *out);

/*
 * The same, blocking the calling thread until there is one.
 */
int nm_sr_probe_wait(struct nm_session *s, struct nm_gate *from, nm_tag_t tag,
		     nm_tag_t mask, struct nm_sr_status *out);

/*
 * As nm_sr_probe(), and the message is taken out of the tables: only
 * nm_sr_mrecv() with this handle can receive it. The handle is nmad's, and is
 * used up by that, which answers as nm_sr_irecv(). The session may be closed
 * before.
 */
struct nm_message;
int nm_sr_mprobe(struct nm_session *s, struct nm_gate *from, nm_tag_t tag,
		 nm_tag_t mask, struct nm_message **out,
		 struct nm_sr_status *status);
int nm_sr_mrecv(struct nm_message *message, const struct nm_data *data,
		struct nm_sr_request *req);

/*
 * A request of no message: it is complete when the program says so. Tested,
 * waited for and given a function as others are, also among them; its status
 * tells the error and nothing else, and it cannot be cancelled. For operations
 * that consist of several messages, or of something else.
 *
 * begin: as if it were posted. -EINVAL: a null pointer.
 * end: once per begin, from anyone, also from functions that nmad has called
 *   and from ltasks; never blocks. Then the request is its owner's again.
 *   -EINVAL: none that was begun so, or an error that is positive.
 */
int nm_sr_general_begin(struct nm_sr_request *req);
int nm_sr_general_end(struct nm_sr_request *req, int error);

#ifdef __cplusplus
}
#endif

#endif
