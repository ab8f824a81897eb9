/*
 * nmad (NewMadeleine): messages between the processes of a job. The user gives
 * messages; the core forms packets from them when a network is free.
 *
 * All functions return 0 or a negative errno and may be called from user
 * threads and foreign threads, unless they say otherwise.
 */
#ifndef NMAD_NMAD_H
#define NMAD_NMAD_H

#include <stdint.h>

#include <nmad/data.h>
#include <nmad/sendrecv.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Join the job: finds the launcher (none: a job of one), starts marcel and
 * pioman if they do not run, opens the drivers of NMAD_DRIVER and exchanges
 * addresses. Blocks until all processes have come. Calls nest. Errors are
 * explained on stderr.
 */
int nm_init(void);

/*
 * Leave the job. Blocks until all processes have come here and everything sent
 * has left. All sessions must be closed. -EBUSY: requests are outstanding.
 */
int nm_exit(void);

/* This process and the job; -1 and 0 before nm_init(). */
int nm_rank(void);
int nm_size(void);

/* Rank within those of the same host, and their number. */
int nm_local_rank(void);
int nm_local_size(void);

/* A peer by its rank (oneself included), or NULL; constant while running. */
struct nm_gate *nm_gate_of(int rank);
int nm_gate_rank(const struct nm_gate *gate);

/* Kill the whole job with this exit code, after a line on stderr. */
void nm_abort(int code, const char *why) __attribute__((noreturn));

/*
 * Open a session: its id must be the same in every process that takes part and
 * must not be used again in the job's life. A message of a session that is not
 * open here yet waits. -EEXIST: already open; -ENOMEM.
 */
int nm_session_open(uint64_t id, struct nm_session **out);

/* No request of it may be outstanding. Messages nobody took are dropped. */
int nm_session_close(struct nm_session *s);

/* A number that no process of the job has got or will get: for session ids. */
uint64_t nm_session_new_id(void);

#ifdef __cplusplus
}
#endif

#endif
