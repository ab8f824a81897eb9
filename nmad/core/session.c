/*
 * Sessions: opened and closed by the user, found by their number.
 */
#include "session.h"

#include <errno.h>
#include <stdlib.h>

#include <nmad/nmad.h>

#include "core.h"

/* Numbers are counters with a rank above; all bits must count. */
static unsigned bucket(uint64_t id)
{
	return (unsigned)(id * 0x9e3779b97f4a7c15u >> 32) % NM_SESSION_BUCKETS;
}

struct nm_session *nm_session_find(struct nm_core *core, uint64_t id)
{
	struct nm_session *s = core->buckets[bucket(id)];

	while (s != NULL && s->id != id)
		s = s->next;
	return s;
}

static struct nm_session *session_new(struct nm_core *core, uint64_t id)
{
	struct nm_session *s = calloc(1, sizeof(*s));

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
	return s;
}

int nm_core_session_open(struct nm_core *core, uint64_t id,
			 struct nm_session **out)
{
	struct nm_session *s = session_new(core, id);
	struct nm_pass pass;
	int rc = 0;

	if (s == NULL)
		return -ENOMEM;
	nm_core_lock(core);
	nm_core_settle(core, &pass);
	if (nm_session_find(core, id) != NULL) {
		rc = -EEXIST;
	} else {
		s->next = core->buckets[bucket(id)];
		core->buckets[bucket(id)] = s;
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

/* Messages that nobody has received. */
static void drop_messages(struct nm_core *core, struct nm_session *s)
{
	struct nm_match_msg *m;
	struct base_link *n;

	while ((m = nm_match_drain(&core->match, &s->match)) != NULL) {
		struct nm_msg *msg = container_of(m, struct nm_msg, match);

		if (msg->kind == NM_WIRE_KIND_EAGER)
			nm_in_credit(m->gate, msg->length);
		nm_msg_free(core, msg);
	}
	for (int rank = 0; rank < core->size; rank++)
		while ((n = base_list_take_front(&s->peers[rank].parked)))
			nm_msg_free(core,
				    container_of(n, struct nm_msg, early.on));
}

static bool in_use(const struct nm_session *s)
{
	for (int kind = 0; kind < NM_MATCH_KINDS; kind++)
		if (s->match.nrecvs[kind] > 0 || s->match.nprobes[kind] > 0)
			return true;
	return nm_submit_is_stalled(s->core, s);
}

int nm_core_session_close(struct nm_session *s)
{
	struct nm_core *core = s->core;
	struct nm_session **p;
	struct nm_pass pass;
	int rc = 0;

	nm_core_lock(core);
	nm_core_settle(core, &pass);
	if (in_use(s)) {
		rc = -EBUSY;
	} else {
		for (p = &core->buckets[bucket(s->id)]; *p != s;)
			p = &(*p)->next;
		*p = s->next;
		base_list_remove(&s->on);
		drop_messages(core, s);
		nm_match_session_exit(&core->match, &s->match);
	}
	nm_core_unlock(core, &pass);
	if (rc < 0)
		return rc;
	free(s->peers);
	free(s);
	return 0;
}

BASE_PUBLIC int nm_session_open(uint64_t id, struct nm_session **out)
{
	if (nm_core_self == NULL || out == NULL)
		return -EINVAL;
	return nm_core_session_open(nm_core_self, id, out);
}

BASE_PUBLIC int nm_session_close(struct nm_session *s)
{
	return s == NULL ? -EINVAL : nm_core_session_close(s);
}

/* The rank makes it unique among processes, the counter in this one. */
BASE_PUBLIC uint64_t nm_session_new_id(void)
{
	static ATOMIC(uint64_t) counter;
	uint64_t rank = nm_core_self != NULL ? (uint64_t)nm_core_self->rank : 0;

	return (rank + 1) << 40 | fetch_add_relaxed(&counter, 1);
}
