/*
 * Sessions: opened and closed by the user, found by their number.
 */
#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/pin.h>
#include <nmad/nmad.h>

#include "core.h"
#include "siphash.h"

/* The two highest bits of a number: whose it is. */
enum { ID_NUMBER = 0, ID_NAME = 2 };

static unsigned owner(uint64_t id)
{
	return (unsigned)(id >> 62);
}

uint64_t nm_session_id_of(const char *name)
{
	/* Any will do, for ever: the number must be the same in all builds. */
	static const unsigned char key[16] = "nmad's sessions";

	return (uint64_t)ID_NAME << 62 |
	       nm_siphash(key, name, strlen(name)) >> 2;
}

/* Numbers are counters with a rank above; all bits must count. */
static uint64_t hash(uint64_t id)
{
	return base_hash_mix(id, 0);
}

static struct nm_session *by_id(const struct base_link *link)
{
	return container_of(link, struct nm_session, by_id);
}

uint64_t nm_session_hash(const struct base_link *first, bool mark, unsigned arg)
{
	(void)mark;
	(void)arg;
	return hash(by_id(first)->id);
}

static bool has_id(const struct base_link *first, bool mark, const void *id)
{
	(void)mark;
	return by_id(first)->id == *(const uint64_t *)id;
}

static struct base_hash_place place_of(const struct nm_core *core, uint64_t id)
{
	return base_hash_find(&core->by_id, hash(id), has_id, &id);
}

struct nm_session *nm_session_find(struct nm_core *core, uint64_t id)
{
	struct base_hash_place place = place_of(core, id);

	return place.at != NULL ? by_id(base_hash_first(place)) : NULL;
}

/* If memory is short, the table does not grow, and its chains get longer. */
static void table_insert(struct nm_core *core, struct nm_session *s)
{
	base_hash_reserve(&core->by_id, 1);
	base_hash_insert(&core->by_id, place_of(core, s->id), hash(s->id),
			 &s->by_id, false);
}

static struct nm_session *session_new(struct nm_core *core, uint64_t id,
				      const char *name)
{
	size_t bytes = strlen(name) + 1;
	struct nm_session *s = calloc(1, sizeof(*s) + bytes);

	if (s == NULL)
		return NULL;
	s->peers = calloc((size_t)core->size, sizeof(*s->peers));
	if (s->peers == NULL) {
		free(s);
		return NULL;
	}
	for (int rank = 0; rank < core->size; rank++)
		base_list_init(&s->peers[rank].parked);
	s->id = id;
	s->core = core;
	s->nmembers = core->size;
	memcpy(s->name, name, bytes);
	return s;
}

/* With the number of another: the same session, or another name's. */
static int error_of(const struct nm_session *other, const char *name)
{
	if (strcmp(other->name, name) == 0)
		return -EEXIST;
	base_warn("nmad",
		  "the sessions \"%s\" and \"%s\" have the same number; one of "
		  "them needs another name",
		  name, other->name);
	return -ENOTUNIQ;
}

int nm_core_session_open_name(struct nm_core *core, uint64_t id,
			      const char *name, struct nm_session **out)
{
	struct nm_session *s = session_new(core, id, name), *other;
	struct nm_pass pass;
	int rc = 0;

	if (s == NULL)
		return -ENOMEM;
	nm_core_lock(core);
	nm_core_settle(core, &pass);
	s->ndead = core->ndead;
	other = nm_session_find(core, id);
	if (other != NULL) {
		rc = error_of(other, name);
	} else {
		table_insert(core, s);
		base_list_push_back(&core->sessions, &s->on);
		nm_match_session_init(&core->match, &s->match);
		nm_in_opened(&pass, s);
	}
	nm_core_unlock(core, &pass);
	if (rc < 0) {
		free(s->peers);
		free(s);
		return rc;
	}
	*out = s;
	return 0;
}

int nm_core_session_open(struct nm_core *core, uint64_t id,
			 struct nm_session **out)
{
	return nm_core_session_open_name(core, id, "", out);
}

static void drop(struct nm_gate *gate, struct nm_msg *msg)
{
	nm_in_refuse(gate, msg, 0);
	nm_in_drop(gate, msg);
}

/* What a RETRACT takes back may still come; then they meet in limbo. */
static void drop_parked(const struct nm_peer *peer, struct nm_msg *msg)
{
	struct nm_gate *gate = msg->early.from;

	if (msg->kind == NM_WIRE_KIND_RETRACT &&
	    (int32_t)((uint32_t)msg->id - peer->recv_seq) >= 0)
		nm_retract_early(gate->core, msg);
	else
		drop(gate, msg);
}

/* Messages that nobody has received, or that wait for their turn. */
static void drop_messages(struct nm_core *core, struct nm_session *s)
{
	struct nm_match_msg *m;
	struct nm_msg *msg;

	while ((m = nm_match_drain(&core->match, &s->match)) != NULL)
		drop(m->gate, container_of(m, struct nm_msg, match));
	for (int rank = 0; rank < core->size; rank++) {
		struct nm_peer *peer = &s->peers[rank];

		while ((msg = nm_parked_take_any(core, peer)) != NULL)
			drop_parked(peer, msg);
	}
}

bool nm_session_forget(struct nm_session *s)
{
	if (s->monitor == NULL)
		return false;
	s->monitor = NULL;
	nm_pending_add(s->core, -1);
	return true;
}

int nm_core_session_close(struct nm_session *s)
{
	struct nm_core *core = s->core;
	struct nm_pass pass;
	int rc = 0;

	nm_core_lock(core);
	nm_core_settle(core, &pass);
	if (s->nactive > 0) {
		rc = -EBUSY;
	} else {
		base_hash_remove(&core->by_id, place_of(core, s->id),
				 &s->by_id);
		base_list_remove(&s->on);
		nm_session_forget(s);
		drop_messages(core, s);
		nm_match_session_exit(&core->match, &s->match);
	}
	nm_core_unlock(core, &pass);
	if (rc < 0)
		return rc;
	nm_calls_settle(core, s);
	free(s->peers);
	free(s);
	return 0;
}

BASE_PUBLIC int nm_session_open(uint64_t id, struct nm_session **out)
{
	base_handler_check("nmad", "nm_session_open()");
	if (nm_core_self == NULL || out == NULL || owner(id) == ID_NAME)
		return -EINVAL;
	return nm_core_session_open(nm_core_self, id, out);
}

BASE_PUBLIC int nm_session_open_name(const char *name, struct nm_session **out)
{
	base_handler_check("nmad", "nm_session_open_name()");
	if (nm_core_self == NULL || out == NULL || name == NULL ||
	    name[0] == '\0')
		return -EINVAL;
	if (strnlen(name, NM_SESSION_NAME_MAX + 1) > NM_SESSION_NAME_MAX)
		return -ENAMETOOLONG;
	return nm_core_session_open_name(nm_core_self, nm_session_id_of(name),
					 name, out);
}

BASE_PUBLIC void nm_session_describe(struct nm_session *s, nm_describe_fn fn,
				     void *arg)
{
	struct nm_pass pass;

	nm_core_lock(s->core);
	nm_core_settle(s->core, &pass);
	s->describe = fn;
	s->describe_arg = arg;
	nm_core_unlock(s->core, &pass);
}

BASE_PUBLIC int nm_session_among(struct nm_session *s,
				 struct nm_gate *const members[], int n)
{
	struct nm_pass pass;

	base_handler_check("nmad", "nm_session_among()");
	if (s == NULL || n < 0 || (n > 0 && members == NULL))
		return -EINVAL;
	nm_core_lock(s->core);
	nm_core_settle(s->core, &pass);
	for (int rank = 0; rank < s->core->size; rank++)
		s->peers[rank].is_outside = true;
	s->nmembers = s->ndead = 0;
	for (int i = 0; i < n; i++) {
		struct nm_peer *peer = &s->peers[members[i]->rank];

		s->nmembers += peer->is_outside;
		s->ndead += peer->is_outside && members[i]->error != 0;
		peer->is_outside = false;
	}
	nm_core_unlock(s->core, &pass);
	return 0;
}

BASE_PUBLIC int nm_session_close(struct nm_session *s)
{
	base_handler_check("nmad", "nm_session_close()");
	return s == NULL ? -EINVAL : nm_core_session_close(s);
}

/* The rank makes it unique among processes, the counter in this one. */
BASE_PUBLIC uint64_t nm_session_new_id(void)
{
	static ATOMIC(uint64_t) counter;
	uint64_t id, n;

	if (nm_core_self == NULL)
		return 0;
	n = fetch_add_relaxed(&counter, 1);
	id = ((uint64_t)nm_core_self->rank + 1) << 40 | n;
	base_check(n >> 40 == 0 && owner(id) == ID_NUMBER);
	return id;
}
