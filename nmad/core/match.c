/*
 * The match tables. The path of a message: nm_match_arrival(), and if no
 * receive took it nm_match_keep(); of a receive: nm_match_post().
 */
#include "match.h"

#include <errno.h>

#include <base/diag.h>

/* What a list of the tables is found by. */
struct key {
	enum nm_match_kind kind;
	struct nm_match_session *session;
	struct nm_gate *gate; /* but in TAG */
	uint32_t tag;         /* but in SOURCE */
	bool probe;           /* probes have lists of their own */
	uint64_t hash;
};

enum { BLOCK = 64 }; /* tags */

#define GATE_FACTOR 0xd6e8feb86659fd93u /* odd: keeps gates apart */

/* --- lists --- */

/*
 * Neighbouring tags are neighbours in the index, too, in blocks that lie
 * anywhere: most programs count their tags, and the index is larger than any
 * cache.
 */
BASE_INLINE struct key key_make(enum nm_match_kind kind,
				struct nm_match_session *s,
				struct nm_gate *gate, uint32_t tag, bool probe)
{
	struct key k = { kind, s, gate, tag, probe, 0 };

	if (kind == NM_MATCH_TAG)
		gate = NULL;
	if (kind == NM_MATCH_SOURCE)
		tag = 0;
	k.hash = base_hash_mix((uintptr_t)s + (uintptr_t)gate * GATE_FACTOR,
			       (uint64_t)(tag / BLOCK) << 1 | probe);
	k.hash += (uint64_t)(tag % BLOCK) << 32;
	return k;
}

static struct nm_match_recv *recv_of(const struct base_link *link)
{
	return container_of((struct base_link *)link, struct nm_match_recv,
			    link);
}

static struct nm_match_msg *msg_of(const struct base_link *link,
				   enum nm_match_kind kind)
{
	return container_of((struct base_link *)link - kind,
			    struct nm_match_msg, links[0]);
}

static struct key key_of_recv(enum nm_match_kind kind,
			      const struct nm_match_recv *r)
{
	return key_make(kind, r->session, r->gate, r->tag, r->is_probe);
}

static struct key key_of_msg(enum nm_match_kind kind,
			     const struct nm_match_msg *msg)
{
	return key_make(kind, msg->session, msg->gate, msg->tag, false);
}

/* A list that is marked holds messages. */
static uint64_t hash_of(const struct base_link *first, bool msgs, unsigned kind)
{
	return msgs ? key_of_msg(kind, msg_of(first, kind)).hash
		    : key_of_recv(kind, recv_of(first)).hash;
}

static bool is_same(const struct key *k, const struct nm_match_session *s,
		    const struct nm_gate *gate, uint32_t tag)
{
	return s == k->session &&
	       (gate == k->gate || k->kind == NM_MATCH_TAG) &&
	       (tag == k->tag || k->kind == NM_MATCH_SOURCE);
}

static bool list_is(const struct base_link *first, bool msgs, const void *key)
{
	const struct key *k = key;
	const struct nm_match_msg *msg;
	const struct nm_match_recv *r;

	if (msgs) {
		msg = msg_of(first, k->kind);
		return !k->probe &&
		       is_same(k, msg->session, msg->gate, msg->tag);
	}
	r = recv_of(first);
	return r->is_probe == k->probe &&
	       is_same(k, r->session, r->gate, r->tag);
}

BASE_INLINE struct base_hash_place list_find(const struct nm_match *m,
					     const struct key *k)
{
	return base_hash_find(&m->tables[k->kind], k->hash, list_is, k);
}

static bool holds_msgs(struct base_hash_place place)
{
	return place.at != NULL && base_hash_mark(place);
}

/* Append to the list that was found here, or begin one. */
BASE_INLINE int list_push(struct nm_match *m, const struct key *k,
			  struct base_hash_place place, struct base_link *link,
			  bool msgs)
{
	struct base_hash *table = &m->tables[k->kind];

	if (place.at != NULL) {
		base_assert(base_hash_mark(place) == msgs);
		base_hash_append(place, link);
		return 0;
	}
	if (unlikely(base_hash_room(table) == 0))
		return -ENOMEM;
	base_hash_insert(table, place, k->hash, link, msgs);
	if (unlikely(base_hash_room(table) < NM_MATCH_LOW))
		m->is_low = true;
	return 0;
}

static void list_leave(struct nm_match *m, const struct key *k,
		       struct base_link *link)
{
	struct base_hash *table = &m->tables[k->kind];

	base_hash_remove(table, base_hash_find_end(table, k->hash, link), link);
}

/* --- a message comes --- */

static struct nm_match_recv *earlier(struct nm_match_recv *a,
				     struct nm_match_recv *b)
{
	if (a == NULL || (b != NULL && b->number < a->number))
		return b;
	return a;
}

struct nm_match_recv *nm_match_arrival(struct nm_match *m,
				       struct nm_match_session *s,
				       struct nm_gate *gate, uint32_t tag)
{
	struct base_hash_place places[NM_MATCH_TABLES];
	struct nm_match_recv *r = NULL;
	enum nm_match_kind kind;

	for (kind = 0; kind < NM_MATCH_TABLES; kind++) {
		struct key k;

		if (s->nrecvs[kind] == 0)
			continue;
		k = key_make(kind, s, gate, tag, false);
		places[kind] = list_find(m, &k);
		if (places[kind].at != NULL && !base_hash_mark(places[kind]))
			r = earlier(r, recv_of(base_hash_first(places[kind])));
	}
	if (s->nrecvs[NM_MATCH_WILD] != 0)
		r = earlier(r, recv_of(s->recvs.head.next));
	if (r == NULL)
		return NULL;
	kind = nm_match_kind(r->gate, r->any_tag);
	s->nrecvs[kind]--;
	if (kind == NM_MATCH_WILD)
		base_list_remove(&r->link);
	else
		base_hash_remove(&m->tables[kind], places[kind], &r->link);
	return r;
}

struct nm_match_recv *nm_match_first(const struct nm_match *m,
				     struct nm_match_session *s,
				     struct nm_gate *gate, uint32_t tag)
{
	struct key k = key_make(NM_MATCH_FULL, s, gate, tag, false);
	struct base_hash_place place;

	if (s->nrecvs[NM_MATCH_FULL] == 0)
		return NULL;
	place = list_find(m, &k);
	if (place.at == NULL || base_hash_mark(place))
		return NULL;
	return recv_of(base_hash_first(place));
}

/* Probes of one place that wait for such a message leave it. */
static void wake_probes(struct nm_match *m, enum nm_match_kind kind,
			const struct nm_match_msg *msg, struct base_list *out)
{
	struct nm_match_session *s = msg->session;
	struct base_list woken;

	base_list_init(&woken);
	if (kind != NM_MATCH_WILD) {
		struct key k = key_make(kind, s, msg->gate, msg->tag, true);
		struct base_hash_place place = list_find(m, &k);

		if (place.at != NULL)
			base_hash_take_list(&m->tables[kind], place, &woken);
	} else {
		base_list_splice_back(&woken, &s->probes);
	}
	base_list_for_each (link, &woken)
		s->nprobes[kind]--;
	base_list_splice_back(out, &woken);
}

int nm_match_keep(struct nm_match *m, struct nm_match_msg *msg,
		  struct base_list *probes)
{
	struct nm_match_session *s = msg->session;

	if (unlikely(nm_match_room(m) == 0))
		return -ENOMEM;
	msg->number = ++m->narrived;
	for (int kind = 0; kind < NM_MATCH_TABLES; kind++) {
		struct key k = key_of_msg(kind, msg);

		list_push(m, &k, list_find(m, &k), &msg->links[kind], true);
	}
	base_list_push_back(&s->msgs, &msg->links[NM_MATCH_WILD]);
	s->nmsgs++;
	for (int kind = 0; kind < NM_MATCH_KINDS; kind++)
		if (unlikely(s->nprobes[kind] != 0))
			wake_probes(m, kind, msg, probes);
	return 0;
}

/* --- a receive comes --- */

static int post_wild(struct nm_match *m, struct nm_match_recv *r,
		     struct nm_match_msg **out)
{
	struct nm_match_session *s = r->session;

	*out = nm_match_drain(m, s);
	if (*out == NULL) {
		base_list_push_back(&s->recvs, &r->link);
		s->nrecvs[NM_MATCH_WILD]++;
	}
	return 0;
}

int nm_match_post(struct nm_match *m, struct nm_match_recv *r,
		  struct nm_match_msg **out)
{
	enum nm_match_kind kind = nm_match_kind(r->gate, r->any_tag);
	struct base_hash_place place;
	struct key k;

	r->is_probe = false;
	if (kind == NM_MATCH_WILD) {
		r->number = ++m->nposted;
		return post_wild(m, r, out);
	}
	k = key_of_recv(kind, r);
	place = list_find(m, &k);
	if (holds_msgs(place)) {
		r->number = ++m->nposted;
		*out = msg_of(base_hash_first(place), kind);
		base_hash_remove(&m->tables[kind], place, &(*out)->links[kind]);
		nm_match_take(m, *out);
		return 0;
	}
	if (unlikely(list_push(m, &k, place, &r->link, false) < 0))
		return -ENOMEM;
	r->number = ++m->nposted;
	r->session->nrecvs[kind]++;
	*out = NULL;
	return 0;
}

int nm_match_post_probe(struct nm_match *m, struct nm_match_recv *probe)
{
	enum nm_match_kind kind = nm_match_kind(probe->gate, probe->any_tag);
	struct nm_match_session *s = probe->session;

	probe->is_probe = true;
	if (kind != NM_MATCH_WILD) {
		struct key k = key_of_recv(kind, probe);

		if (unlikely(list_push(m, &k, list_find(m, &k), &probe->link,
				       false) < 0))
			return -ENOMEM;
	} else {
		base_list_push_back(&s->probes, &probe->link);
	}
	probe->number = ++m->nposted;
	s->nprobes[kind]++;
	return 0;
}

struct nm_match_msg *nm_match_probe(struct nm_match *m,
				    struct nm_match_session *s,
				    struct nm_gate *gate, uint32_t tag,
				    bool any_tag)
{
	enum nm_match_kind kind = nm_match_kind(gate, any_tag);
	struct base_hash_place place;
	struct key k;

	if (s->nmsgs == 0)
		return NULL;
	if (kind == NM_MATCH_WILD)
		return msg_of(s->msgs.head.next, kind);
	k = key_make(kind, s, gate, tag, false);
	place = list_find(m, &k);
	return holds_msgs(place) ? msg_of(base_hash_first(place), kind) : NULL;
}

struct nm_match_msg *nm_match_next(struct nm_match *m,
				   struct nm_match_session *s,
				   struct nm_gate *gate, uint32_t tag,
				   struct nm_match_msg *last)
{
	struct base_link *next;

	if (last == NULL)
		return nm_match_probe(m, s, gate, tag, false);
	next = base_hash_next(&last->links[NM_MATCH_FULL]);
	return next != NULL ? msg_of(next, NM_MATCH_FULL) : NULL;
}

/* --- leaving --- */

void nm_match_take(struct nm_match *m, struct nm_match_msg *msg)
{
	for (int kind = 0; kind < NM_MATCH_TABLES; kind++) {
		struct base_link *link = &msg->links[kind];
		struct key k;

		/* Off already, if a receive found it there. */
		if (!base_link_is_on(link) || base_hash_remove_inner(link))
			continue;
		k = key_of_msg(kind, msg);
		list_leave(m, &k, link);
	}
	base_list_remove(&msg->links[NM_MATCH_WILD]);
	msg->session->nmsgs--;
}

int nm_match_cancel(struct nm_match *m, struct nm_match_recv *r)
{
	enum nm_match_kind kind = nm_match_kind(r->gate, r->any_tag);

	if (!nm_match_is_posted(r))
		return -ENOENT;
	if (kind == NM_MATCH_WILD) {
		base_list_remove(&r->link);
	} else if (!base_hash_remove_inner(&r->link)) {
		struct key k = key_of_recv(kind, r);

		list_leave(m, &k, &r->link);
	}
	if (r->is_probe)
		r->session->nprobes[kind]--;
	else
		r->session->nrecvs[kind]--;
	return 0;
}

struct nm_match_msg *nm_match_drain(struct nm_match *m,
				    struct nm_match_session *s)
{
	struct base_link *first = base_list_first(&s->msgs);
	struct nm_match_msg *msg;

	if (first == NULL)
		return NULL;
	msg = msg_of(first, NM_MATCH_WILD);
	nm_match_take(m, msg);
	return msg;
}

struct take_gate {
	struct nm_match *m;
	struct nm_match_session *session;
	const struct nm_gate *gate;
	enum nm_match_kind kind;
	struct base_list *out;
};

static void take_list(struct take_gate *t, struct base_list *list)
{
	base_list_for_each (link, list) {
		if (recv_of(link)->is_probe)
			t->session->nprobes[t->kind]--;
		else
			t->session->nrecvs[t->kind]--;
	}
	base_list_splice_back(t->out, list);
}

static void take_place(struct base_hash_place place, void *arg)
{
	const struct nm_match_recv *r = recv_of(base_hash_first(place));
	struct take_gate *t = arg;
	struct base_list list;

	if (holds_msgs(place) || r->session != t->session || r->gate != t->gate)
		return;
	base_list_init(&list);
	base_hash_take_list(&t->m->tables[t->kind], place, &list);
	take_list(t, &list);
}

void nm_match_take_gate(struct nm_match *m, struct nm_match_session *s,
			const struct nm_gate *gate, struct base_list *out)
{
	struct take_gate t = { m, s, gate, NM_MATCH_FULL, out };

	for (; t.kind < NM_MATCH_TABLES; t.kind++)
		base_hash_walk(&m->tables[t.kind], take_place, &t);
	if (gate == NULL) {
		take_list(&t, &s->recvs);
		take_list(&t, &s->probes);
	}
}

/* --- memory, first and last --- */

int nm_match_reserve(struct nm_match *m, size_t n)
{
	int err = 0;

	for (int kind = 0; kind < NM_MATCH_TABLES && err == 0; kind++)
		err = base_hash_reserve(&m->tables[kind], n);
	m->is_low = nm_match_room(m) < NM_MATCH_LOW;
	return err;
}

void nm_match_init(struct nm_match *m)
{
	for (unsigned kind = 0; kind < NM_MATCH_TABLES; kind++)
		base_hash_init(&m->tables[kind], hash_of, kind);
	base_list_init(&m->sessions);
	m->nposted = 0;
	m->narrived = 0;
	m->is_low = true;
}

void nm_match_exit(struct nm_match *m)
{
	base_check(base_list_is_empty(&m->sessions));
	for (int kind = 0; kind < NM_MATCH_TABLES; kind++) {
		base_check(m->tables[kind].count == 0);
		base_hash_exit(&m->tables[kind]);
	}
}

void nm_match_session_init(struct nm_match *m, struct nm_match_session *s)
{
	*s = (struct nm_match_session){ 0 };
	base_list_init(&s->recvs);
	base_list_init(&s->probes);
	base_list_init(&s->msgs);
	base_list_push_back(&m->sessions, &s->link);
}

void nm_match_session_exit(struct nm_match *m, struct nm_match_session *s)
{
	base_check(s->nmsgs == 0);
	for (int kind = 0; kind < NM_MATCH_KINDS; kind++)
		base_check(s->nrecvs[kind] == 0 && s->nprobes[kind] == 0);
	base_list_remove(&s->link);
}

/* --- for tests, debuggers and people --- */

struct census {
	struct nm_match *m;
	enum nm_match_kind kind;
	uint64_t recvs, probes, msgs;
};

/* A receive or probe is where it belongs, after `last`. */
static uint64_t check_recv(const struct nm_match_recv *r,
			   enum nm_match_kind kind, bool probe, uint64_t last)
{
	base_check(nm_match_kind(r->gate, r->any_tag) == kind);
	base_check(r->is_probe == probe);
	base_check(r->number > last);
	return r->number;
}

static void check_msgs(struct census *c, const struct base_link *first)
{
	struct key k = key_of_msg(c->kind, msg_of(first, c->kind));
	const struct nm_match_msg *before = NULL;

	base_check(base_hash_first(list_find(c->m, &k)) == first);
	for (; first != NULL; first = base_hash_next(first)) {
		const struct nm_match_msg *msg = msg_of(first, c->kind);

		base_check(list_is(first, true, &k));
		base_check(before == NULL ||
			   (int32_t)(msg->number - before->number) > 0);
		before = msg;
		c->msgs++;
	}
}

static void check_place(struct base_hash_place place, void *arg)
{
	const struct base_link *link = base_hash_first(place);
	struct census *c = arg;
	uint64_t last = 0;
	struct key k;

	if (holds_msgs(place)) {
		check_msgs(c, link);
		return;
	}
	k = key_of_recv(c->kind, recv_of(link));
	base_check(base_hash_first(list_find(c->m, &k)) == link);
	for (; link != NULL; link = base_hash_next(link)) {
		base_check(list_is(link, false, &k));
		last = check_recv(recv_of(link), c->kind, k.probe, last);
		c->recvs += !k.probe;
		c->probes += k.probe;
	}
}

/* No receive or probe is posted that this message should have gone to. */
static void check_msg(struct nm_match *m, const struct nm_match_msg *msg)
{
	struct nm_match_session *s = msg->session;

	base_check(base_list_is_empty(&s->recvs));
	base_check(base_list_is_empty(&s->probes));
	for (int kind = 0; kind < NM_MATCH_TABLES; kind++) {
		struct key k = key_of_msg(kind, msg);

		base_check(holds_msgs(list_find(m, &k)));
		k = key_make(kind, s, msg->gate, msg->tag, true);
		base_check(list_find(m, &k).at == NULL);
	}
	for (int kind = 0; kind < NM_MATCH_KINDS; kind++)
		base_check(base_link_is_on(&msg->links[kind]));
}

static void check_session(struct nm_match *m, struct nm_match_session *s)
{
	uint64_t last = 0, count = 0;
	const struct nm_match_msg *before = NULL;

	base_list_for_each (link, &s->recvs) {
		last = check_recv(recv_of(link), NM_MATCH_WILD, false, last);
		count++;
	}
	base_check(count == s->nrecvs[NM_MATCH_WILD]);
	last = count = 0;
	base_list_for_each (link, &s->probes) {
		last = check_recv(recv_of(link), NM_MATCH_WILD, true, last);
		count++;
	}
	base_check(count == s->nprobes[NM_MATCH_WILD]);
	count = 0;
	base_list_for_each (link, &s->msgs) {
		const struct nm_match_msg *msg = msg_of(link, NM_MATCH_WILD);

		base_check(msg->session == s);
		base_check(before == NULL ||
			   (int32_t)(msg->number - before->number) > 0);
		check_msg(m, msg);
		before = msg;
		count++;
	}
	base_check(count == s->nmsgs);
}

void nm_match_check(struct nm_match *m)
{
	for (int kind = 0; kind < NM_MATCH_TABLES; kind++) {
		struct census c = { .m = m, .kind = kind };
		uint64_t recvs = 0, probes = 0, msgs = 0;

		base_hash_check(&m->tables[kind]);
		base_hash_walk(&m->tables[kind], check_place, &c);
		base_list_for_each (link, &m->sessions) {
			struct nm_match_session *s = container_of(
				link, struct nm_match_session, link);

			recvs += s->nrecvs[kind];
			probes += s->nprobes[kind];
			msgs += s->nmsgs;
		}
		base_check(c.recvs == recvs && c.probes == probes);
		base_check(c.msgs == msgs);
	}
	base_list_for_each (link, &m->sessions)
		check_session(
			m, container_of(link, struct nm_match_session, link));
}

struct walk {
	void (*recv)(struct nm_match_recv *r, void *arg);
	void *arg;
};

static void walk_place(struct base_hash_place place, void *arg)
{
	struct base_link *link = base_hash_first(place);
	const struct walk *w = arg;

	if (holds_msgs(place))
		return;
	for (; link != NULL; link = base_hash_next(link))
		w->recv(recv_of(link), w->arg);
}

static void walk_recvs(const struct base_list *list, const struct walk *w)
{
	base_list_for_each (link, list)
		w->recv(recv_of(link), w->arg);
}

void nm_match_walk(struct nm_match *m,
		   void (*recv)(struct nm_match_recv *r, void *arg),
		   void (*msg)(struct nm_match_msg *msg, void *arg), void *arg)
{
	struct walk w = { recv, arg };

	for (int kind = 0; recv != NULL && kind < NM_MATCH_TABLES; kind++)
		base_hash_walk(&m->tables[kind], walk_place, &w);
	base_list_for_each (on, &m->sessions) {
		struct nm_match_session *s =
			container_of(on, struct nm_match_session, link);

		if (recv != NULL) {
			walk_recvs(&s->recvs, &w);
			walk_recvs(&s->probes, &w);
		}
		if (msg == NULL)
			continue;
		base_list_for_each (link, &s->msgs)
			msg(msg_of(link, NM_MATCH_WILD), arg);
	}
}

void nm_match_dump(const struct nm_match *m)
{
	static const char *const names[] = { "gate+tag", "tag",
					     "gate+session" };

	for (int kind = 0; kind < NM_MATCH_TABLES; kind++)
		base_dump("  match by %s: %zu keys, index of %u slots",
			  names[kind], m->tables[kind].count,
			  m->tables[kind].now.size);
	base_dump("  match: %lu posted, %u kept so far; room for %zu more",
		  m->nposted, m->narrived, nm_match_room(m));
}

void nm_match_session_dump(const struct nm_match_session *s)
{
	base_dump("  receives: %lu exact, %lu any gate, %lu any tag, %lu any; "
		  "%lu unexpected messages",
		  s->nrecvs[NM_MATCH_FULL], s->nrecvs[NM_MATCH_TAG],
		  s->nrecvs[NM_MATCH_SOURCE], s->nrecvs[NM_MATCH_WILD],
		  s->nmsgs);
}
