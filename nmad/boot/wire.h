/*
 * What PMI-1 and PMI-2 have in common: a connection to the launcher, requests
 * and their answers, which are fields NAME=VALUE. A message of PMI-1 is a line,
 * with blanks between its fields; one of PMI-2 has its length before it, six
 * characters, and a ';' behind each field. Servers differ in the order of the
 * fields, so they are read by name.
 *
 * All that fails has been said on stderr: 0, -EPROTO, -ECONNRESET and what is
 * named below. One user at a time, but for nm_boot_wire_say().
 */
#ifndef NMAD_BOOT_WIRE_H
#define NMAD_BOOT_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include <base/compiler.h>

enum {
	NM_BOOT_WIRE_MAX = 4096,      /* bytes of a message */
	NM_BOOT_WIRE_SHORT = 512,     /* of one that is sent without waiting */
	NM_BOOT_WIRE_RANKS = 1 << 20, /* more than this is nonsense */
};

/* Whoever has one sets fd, and prefixed for PMI-2; both constant once open. */
struct nm_boot_wire {
	int fd;
	bool prefixed;
	bool asked;     /* an answer comes that nobody waits for */
	size_t at, end; /* what has come and is not read: in[at..end) */
	char in[NM_BOOT_WIRE_MAX];
	size_t have, need;           /* characters of the message that comes */
	char line[NM_BOOT_WIRE_MAX]; /* the last answer, or that */
};

/* The first question, a line in all versions; also -ETIMEDOUT. */
int nm_boot_wire_greet(struct nm_boot_wire *w, int version, int subversion);

/* Send a request and read its answer, which must be of kind `reply`. */
int nm_boot_wire_ask(struct nm_boot_wire *w, const char *reply, const char *fmt,
		     ...) BASE_PRINTF(3, 4);

/* The same, with limited patience: also -ETIMEDOUT. */
int nm_boot_wire_ask_first(struct nm_boot_wire *w, const char *reply,
			   const char *fmt, ...) BASE_PRINTF(3, 4);

/* The next message, with limited patience. */
int nm_boot_wire_read(struct nm_boot_wire *w);

/* Ask without waiting, then look for the answer: -EAGAIN: not now. */
int nm_boot_wire_post(struct nm_boot_wire *w, const char *fmt, ...)
	BASE_PRINTF(2, 3);
int nm_boot_wire_poll(struct nm_boot_wire *w, const char *reply);

/* One send, no answer, from any thread, silently: another may be in a call. */
void nm_boot_wire_say(const struct nm_boot_wire *w, const char *fmt, ...)
	BASE_PRINTF(2, 3);

/* A field of the last answer. False: none, too long, or not a whole number. */
bool nm_boot_wire_field(const struct nm_boot_wire *w, const char *name,
			char *out, size_t room);
bool nm_boot_wire_number(const struct nm_boot_wire *w, const char *name,
			 long *out);

/* -EPROTO, and a message that quotes the last answer. */
int nm_boot_wire_unexpected(const struct nm_boot_wire *w, const char *asked,
			    const char *want);

/* -EPROTO: the last answer is not of this kind. */
int nm_boot_wire_kind(const struct nm_boot_wire *w, const char *asked,
		      const char *reply);

/* The variable as a number of min..max, or -EINVAL. */
int nm_boot_wire_variable(const char *name, long min, long max, long *out);

/*
 * It closes on exec from now on. -EBADF if the number names no open socket: a
 * launcher's it cannot be.
 */
int nm_boot_wire_take(long fd);

#endif
