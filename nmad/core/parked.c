/*
 * Envelopes that came before their turn.
 */
#include "core.h"

#include <errno.h>

struct key {
	uint64_t session;
	const struct nm_gate *from;
	uint32_t seq;
};

static struct nm_msg *by_seq(const struct base_link *link)
{
	return container_of(link, struct nm_msg, early.by_seq);
}

static struct key key_of(const struct nm_msg *msg)
{
	return (struct key){ msg->early.session, msg->early.from, msg->seq };
}

static uint64_t hash(const struct key *k)
{
	return base_hash_mix(base_hash_mix(k->session, (uintptr_t)k->from),
			     k->seq);
}

uint64_t nm_parked_hash(const struct base_link *first, bool mark, unsigned arg)
{
	struct key k = key_of(by_seq(first));

	(void)mark;
	(void)arg;
	return hash(&k);
}

static bool has_key(const struct base_link *first, bool mark, const void *key)
{
	const struct nm_msg *msg = by_seq(first);
	const struct key *k = key;

	(void)mark;
	return msg->seq == k->seq && msg->early.from == k->from &&
	       msg->early.session == k->session;
}

static struct base_hash_place place_of(const struct nm_core *core,
				       const struct key *k)
{
	return base_hash_find(&core->parked, hash(k), has_key, k);
}

/* If memory is short, the table does not grow, and its chains get longer. */
int nm_parked_add(struct nm_core *core, struct nm_peer *peer,
		  struct nm_msg *msg)
{
	struct key k = key_of(msg);
	struct base_hash_place place;

	if (msg->seq - peer->recv_seq > NM_PARKED_MAX)
		return -EBADMSG;
	base_hash_reserve(&core->parked, 1);
	place = place_of(core, &k);
	if (place.at != NULL)
		return -EBADMSG;
	base_hash_insert(&core->parked, place, hash(&k), &msg->early.by_seq,
			 false);
	base_list_push_back(&peer->parked, &msg->early.on);
	return 0;
}

void nm_parked_remove(struct nm_core *core, struct nm_msg *msg)
{
	struct key k = key_of(msg);

	base_hash_remove(&core->parked, place_of(core, &k), &msg->early.by_seq);
	base_list_remove(&msg->early.on);
}

struct nm_msg *nm_parked_due(const struct nm_core *core,
			     const struct nm_session *s,
			     const struct nm_gate *gate)
{
	const struct nm_peer *peer = &s->peers[gate->rank];
	struct key k = { s->id, gate, peer->recv_seq };
	struct base_hash_place place;

	if (base_list_is_empty(&peer->parked))
		return NULL;
	place = place_of(core, &k);
	return place.at != NULL ? by_seq(base_hash_first(place)) : NULL;
}

struct nm_msg *nm_parked_take_any(struct nm_core *core, struct nm_peer *peer)
{
	struct base_link *n = base_list_first(&peer->parked);
	struct nm_msg *msg;

	if (n == NULL)
		return NULL;
	msg = container_of(n, struct nm_msg, early.on);
	nm_parked_remove(core, msg);
	return msg;
}
