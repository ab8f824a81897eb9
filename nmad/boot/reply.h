/*
 * A value that another kernel thread brings: who asks looks until it is there.
 * One value at a time; what comes for somebody who waits no more is dropped by
 * who asks next.
 */
#ifndef NMAD_BOOT_REPLY_H
#define NMAD_BOOT_REPLY_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <base/atomic.h>

#include "boot.h"

struct nm_boot_reply {
	/* a: 1 once the rest is there; who brings it and who asks;
	 * order(boot-reply) */
	ATOMIC(uint32_t) has_come;
	bool asked; /* o: by who asks */
	int rc;     /* o: handed over by order(boot-reply), as is text */
	char text[2 * NM_BOOT_VALUE_MAX + 1];
};

/* True: it may be asked for the next. False: the last is still to come. */
static inline bool nm_boot_reply_begin(struct nm_boot_reply *r)
{
	if (r->asked && load_acquire(&r->has_come) == 0) /* order(boot-reply) */
		return false;
	store_relaxed(&r->has_come, 0);
	r->asked = true;
	return true;
}

/* Nothing will come: the question was not taken. */
static inline void nm_boot_reply_cancel(struct nm_boot_reply *r)
{
	r->asked = false;
}

/* Once for each begin, by whatever thread; rc, and if it is 0 the text. */
static inline void nm_boot_reply_bring(struct nm_boot_reply *r, int rc,
				       const char *text)
{
	size_t n = rc == 0 ? strlen(text) : 0;

	if (n >= sizeof(r->text)) {
		rc = -EMSGSIZE;
		n = 0;
	}
	if (n > 0)
		memcpy(r->text, text, n);
	r->text[n] = '\0';
	r->rc = rc;
	store_release(&r->has_come, 1); /* order(boot-reply): rc, text */
}

/* -EAGAIN: not yet. Else what has been brought, once. */
static inline int nm_boot_reply_take(struct nm_boot_reply *r, char *out,
				     size_t room)
{
	size_t n;

	if (load_acquire(&r->has_come) == 0) /* order(boot-reply) */
		return -EAGAIN;
	r->asked = false;
	n = strlen(r->text);
	if (r->rc != 0)
		return r->rc;
	if (n >= room)
		return -EMSGSIZE;
	memcpy(out, r->text, n + 1);
	return 0;
}

#endif
