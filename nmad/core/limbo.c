/*
 * Messages of sessions that are not open here.
 */
#include "limbo.h"

static struct nm_msg *msg_of(const struct base_link *link)
{
	return container_of(link, struct nm_msg, early.on);
}

static uint64_t hash(uint64_t session)
{
	return base_hash_mix(session, 0);
}

static uint64_t hash_of(const struct base_link *first, bool mark, unsigned arg)
{
	(void)mark;
	(void)arg;
	return hash(msg_of(first)->early.session);
}

static bool is_of(const struct base_link *first, bool mark, const void *session)
{
	(void)mark;
	return msg_of(first)->early.session == *(const uint64_t *)session;
}

static struct base_hash_place place_of(const struct nm_limbo *l,
				       uint64_t session)
{
	return base_hash_find(&l->by_session, hash(session), is_of, &session);
}

int nm_limbo_init(struct nm_limbo *l)
{
	base_hash_init(&l->by_session, hash_of, 0);
	return base_hash_reserve(&l->by_session, 1);
}

void nm_limbo_exit(struct nm_limbo *l)
{
	base_hash_exit(&l->by_session);
}

/* Without memory the table works on, with longer chains. */
void nm_limbo_add(struct nm_limbo *l, struct nm_msg *msg)
{
	struct base_hash_place place = place_of(l, msg->early.session);

	if (place.at != NULL) {
		base_hash_append(place, &msg->early.on);
		return;
	}
	base_hash_reserve(&l->by_session, 1);
	base_hash_insert(&l->by_session, place_of(l, msg->early.session),
			 hash(msg->early.session), &msg->early.on, false);
}

void nm_limbo_remove(struct nm_limbo *l, struct nm_msg *msg)
{
	if (!base_hash_remove_inner(&msg->early.on))
		base_hash_remove(&l->by_session,
				 place_of(l, msg->early.session),
				 &msg->early.on);
}

void nm_limbo_take(struct nm_limbo *l, uint64_t session, struct base_list *out)
{
	struct base_hash_place place = place_of(l, session);

	if (place.at != NULL)
		base_hash_take_list(&l->by_session, place, out);
}

struct nm_msg *nm_limbo_last(const struct nm_limbo *l, uint64_t session)
{
	struct base_hash_place place = place_of(l, session);

	return place.at != NULL
		       ? msg_of(base_hash_plain(base_hash_first(place)->prev))
		       : NULL;
}

struct nm_msg *nm_limbo_before(const struct nm_msg *msg)
{
	const struct base_link *prev = msg->early.on.prev;

	return base_hash_has(prev, BASE_HASH_WITHIN)
		       ? msg_of(base_hash_plain(prev))
		       : NULL;
}
