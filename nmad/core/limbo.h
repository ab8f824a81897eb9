/*
 * Limbo: messages for sessions that are not open here, by session. To add, take
 * out or look up a message takes as long among many sessions as among few. The
 * core lock covers it.
 */
#ifndef NMAD_CORE_LIMBO_H
#define NMAD_CORE_LIMBO_H

#include <base/hash.h>

#include "msg.h"

/* Lists of struct nm_msg, each of one session, oldest first. */
struct nm_limbo {
	struct base_hash by_session; /* l: */
};

/* 0 or -ENOMEM. */
int nm_limbo_init(struct nm_limbo *l);
/* Forgets the messages and frees the table. */
void nm_limbo_exit(struct nm_limbo *l);

/* Behind the others of its session. */
void nm_limbo_add(struct nm_limbo *l, struct nm_msg *msg);
void nm_limbo_remove(struct nm_limbo *l, struct nm_msg *msg);

/* Append all of a session to `out`. */
void nm_limbo_take(struct nm_limbo *l, uint64_t session, struct base_list *out);

/* The youngest one of a session, and the one before another; NULL: none. */
struct nm_msg *nm_limbo_last(const struct nm_limbo *l, uint64_t session);
struct nm_msg *nm_limbo_before(const struct nm_msg *msg);

static inline bool nm_limbo_is_empty(const struct nm_limbo *l)
{
	return l->by_session.count == 0;
}

#endif
