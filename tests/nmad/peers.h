/*
 * Tests that use nmad as programs do, in one process that talks with itself or
 * in two that talk with each other, over the driver in NMAD_DRIVER.
 *
 * Both processes run each rule at the same time with the same random numbers;
 * each rule has a session of its own. A failure in any process ends the job,
 * since the other could only wait.
 */
#ifndef TESTS_NMAD_PEERS_H
#define TESTS_NMAD_PEERS_H

#include <nmad/nmad.h>

#include "../check.h"

/* A test of both. */
#define RULE(name)                                                             \
	static void name##_body(void);                                         \
	TEST(name)                                                             \
	{                                                                      \
		current = #name;                                               \
		name##_body();                                                 \
	}                                                                      \
	static void name##_body(void)

/* As CHECK, in any process and any thread. */
#define MUST(x) ((x) ? (void)0 : peers_failed(__FILE__, __LINE__, #x))

extern const char *current;         /* the rule's name */
extern struct nm_session *session;  /* the rule's */
extern uint64_t session_id;         /* its number; greater ones are free */
extern struct nm_gate *peer;        /* the other process, or this one */
extern uint64_t same_random_stream; /* may be set back to an earlier value */

void peers_failed(const char *file, int line, const char *what)
	__attribute__((noreturn));

/* The same numbers in both processes. */
uint64_t same_random(void);

/* Bytes that belong to the message with this number, from this rank. */
void paint(unsigned char *p, size_t bytes, uint32_t number);
bool is_painted(const unsigned char *p, size_t bytes, uint32_t number,
		int rank);

/* In `session`; sends go to `peer`. */
void isend_bytes(struct nm_sr_request *req, nm_tag_t tag, const void *data,
		 size_t bytes, unsigned flags);
void irecv_bytes(struct nm_sr_request *req, struct nm_gate *from, nm_tag_t tag,
		 nm_tag_t mask, void *data, size_t bytes);
struct nm_sr_status wait_for(struct nm_sr_request *req);

/* Nothing but: both have come here, and what was sent before is here. */
void meet(nm_tag_t tag);

#endif
