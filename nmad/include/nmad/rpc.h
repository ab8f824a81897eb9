/*
 * Remote procedure calls: a process asks another one to run a function, with a
 * short header and a body of any length, and learns what became of it ("active
 * messages", but for where the function runs).
 *
 * The function, a *handler*, is registered for a number in the process that
 * serves. It runs in a user thread of nmad's own: it may block, allocate,
 * receive the body into whatever memory it chooses, and send messages and calls
 * itself, back to where the call came from, too. Handlers run at the same time,
 * in as many threads as are needed and allowed; there is no order among them
 * but with one thread, which takes the calls of one process in the order in
 * which they were sent.
 *
 * What a call may hold up. At most NM_RPC_WINDOW calls from one process to
 * another are on their way or running; later ones wait, in the order in which
 * they were sent, in their own memory, and nobody is blocked. So a process
 * holds no more than that many headers (NM_RPC_HEADER_MAX bytes each) and
 * unreceived bodies of each other one, and has at most as many threads. A
 * handler that waits for a call of its own waits for room there: if all of a
 * window's handlers do so, for calls whose handlers wait for calls the same way
 * back, nobody ever goes on; nor where all threads that are allowed do so.
 *
 * Errors of the network end calls, not the server: a process that dies takes
 * its own calls with it, and the others are served on.
 */
#ifndef NMAD_RPC_H
#define NMAD_RPC_H

#include <stddef.h>
#include <stdint.h>

#include <nmad/data.h>
#include <nmad/sendrecv.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	NM_RPC_WINDOW = 64,       /* calls from one process to another */
	NM_RPC_HEADER_MAX = 1024, /* bytes */
};

struct nm_rpc;      /* calls of one session, both ways */
struct nm_rpc_call; /* one that is being served */

/*
 * Open: the session with this number is used for calls and for nothing else, so
 * as with nm_session_open() it is the same in all processes that take part, and
 * calls to a process wait until it has opened. At most `threads` handlers run
 * here at once; 0: as many as there may be calls. Threads are made when they
 * are needed and end with it. From user context, may block. 0; -EINVAL: nmad
 * does not run, or nowhere to write it; -ENOMEM; -EAGAIN: no thread; others as
 * nm_session_open().
 */
int nm_rpc_open(uint64_t session, unsigned threads, struct nm_rpc **out);

/* The same with the session of this name, and the errors of its opening. */
int nm_rpc_open_name(const char *session, unsigned threads,
		     struct nm_rpc **out);

/*
 * Close, when all handlers are unregistered, nobody waits for the end of one
 * any more, and all calls from here are over. Calls that have come are
 * answered, with -ENOENT; one that comes later is never answered while this
 * process lives: all should know of each other that they will call no more.
 * From user context, blocks until threads have ended. 0; -EBUSY: not yet;
 * -EDEADLK: the caller is a handler; -EINVAL: nothing to close.
 */
int nm_rpc_close(struct nm_rpc *rpc);

/* --- who serves --- */

/*
 * The result is what the caller gets: any number. It returns: a handler that
 * ends its thread leaves its caller without an answer.
 */
typedef int (*nm_rpc_fn)(struct nm_rpc_call *call, void *arg);

/*
 * From now on calls of this number run fn; those that came before were answered
 * with -ENOENT. From user context. 0; -EEXIST: there is one; -ENOMEM; -EINVAL:
 * no function.
 */
int nm_rpc_register(struct nm_rpc *rpc, uint32_t service, nm_rpc_fn fn,
		    void *arg);

/*
 * No longer. Blocks until no handler of the number runs, nor will. 0; -ENOENT:
 * there is none; -EDEADLK: the caller is such a handler; -EINVAL.
 */
int nm_rpc_unregister(struct nm_rpc *rpc, uint32_t service);

/* In its handler: who calls, and with what. The header is nmad's and lies there
 * until the handler returns, aligned for any object. */
struct nm_gate *nm_rpc_from(const struct nm_rpc_call *call);
const void *nm_rpc_header(const struct nm_rpc_call *call, size_t *bytes);
size_t nm_rpc_body_length(const struct nm_rpc_call *call);

/*
 * In its handler, once: the body, into memory of the handler's. Blocks. 0;
 * -EMSGSIZE: there was room for the beginning only; -ECONNRESET: the caller has
 * died; -EALREADY: it was received; -EINVAL: nowhere to. A body that no handler
 * wants is dropped, and of a large one nothing travels.
 */
int nm_rpc_receive(struct nm_rpc_call *call, const struct nm_data *into);

/* --- who calls --- */

/* Opaque; the caller's, and must stay where it is until it is complete. */
struct nm_rpc_request {
	uint64_t nm_words[104];
};

/* What became of a call that is complete. */
struct nm_rpc_status {
	int error;  /* 0: the handler has run; -ENOENT: the other process has
		     * none of that number; -ECONNRESET: it has died, and
		     * nobody knows whether the handler has run */
	int result; /* what the handler has returned, or 0 */
};

/*
 * Call: complete when the handler has returned, whatever happens to the body.
 * Header and body (NULL: none) are only read, and not to be touched until then.
 * Anyone, functions that nmad calls included (<nmad/event.h>); never blocks,
 * allocates nothing. 0; -EMSGSIZE: the header is too long; -EINVAL: something
 * is missing, or the body is in no memory. Nothing is started then.
 */
int nm_rpc_send(struct nm_rpc *rpc, struct nm_gate *to, uint32_t service,
		const void *header, size_t bytes, const struct nm_data *body,
		struct nm_rpc_request *req);

/* As nm_sr_test(), nm_sr_wait() and nm_sr_status(). One waiter. */
int nm_rpc_test(struct nm_rpc_request *req);
void nm_rpc_wait(struct nm_rpc_request *req);
void nm_rpc_status(const struct nm_rpc_request *req, struct nm_rpc_status *out);

#ifdef __cplusplus
}
#endif

#endif
