/*
 * The match tables. The path of a message: nm_match_arrival(), and if no
 * receive took it nm_match_keep(); of a receive: nm_match_post().
 */
#include "match.h"

#include <errno.h>

#include <base/diag.h>

/* What the list of an entry holds. */
enum holds { RECVS, MSGS, PROBES };

/*
 * What is in the tables for one key; exists while its list is not empty.
 * Receives and messages share the entry of a key, because they are never
 * there together; probes have their own. l: all, core lock
 */
struct entry {
	struct base_hash_node node;
	struct base_list list; /* of `link` or of `links[kind]` */
	struct nm_match_session *session;
	struct nm_gate *gate; /* NULL in table TAG */
	uint32_t tag;         /* 0 in table SOURCE */
	uint8_t holds;        /* enum holds */
};

_Static_assert(sizeof(struct entry) <= BASE_CACHE_LINE, "one miss an entry");

struct key {
	struct nm_match_session *session;
	struct nm_gate *gate;
	uint32_t tag;
	bool probe;
	uint64_t hash;
};

/* --- entries --- */

static struct key key_make(enum nm_match_kind kind, struct nm_match_session *s,
			   struct nm_gate *gate, uint32_t tag, bool probe)
{
	struct key k = {
		.session = s,
		.gate = kind == NM_MATCH_TAG ? NULL : gate,
		.tag = kind == NM_MATCH_SOURCE ? 0 : tag,
		.probe = probe,
	};

	k.hash = base_hash_mix((uintptr_t)k.session, (uintptr_t)k.gate);
	k.hash = base_hash_mix(k.hash, (uint64_t)k.tag << 1 | k.probe);
	return k;
}

static bool entry_is(const struct base_hash_node *node, const void *key)
{
	const struct entry *e = container_of(node, struct entry, node);
	const struct key *k = key;

	return e->tag == k->tag && e->gate == k->gate &&
	       e->session == k->session && (e->holds == PROBES) == k->probe;
}

static struct entry *entry_find(const struct nm_match *m,
				enum nm_match_kind kind, const struct key *k)
{
	struct base_hash_node *n =
		base_hash_find(&m->tables[kind], k->hash, entry_is, k);

	return n != NULL ? container_of(n, struct entry, node) : NULL;
}

static struct entry *entry_add(struct nm_match *m, enum nm_match_kind kind,
			       const struct key *k, enum holds holds)
{
	struct entry *e = base_pool_get_reserved(&m->entries);

	if (unlikely(e == NULL))
		return NULL;
	e->node.hash = k->hash;
	base_list_init(&e->list);
	e->session = k->session;
	e->gate = k->gate;
	e->tag = k->tag;
	e->holds = (uint8_t)holds;
	base_hash_insert(&m->tables[kind], &e->node);
	return e;
}

static void entry_remove(struct nm_match *m, enum nm_match_kind kind,
			 struct entry *e)
{
	base_hash_remove(&m->tables[kind], &e->node);
	base_pool_put(&m->entries, e);
}

/*
 * Take a link off its list; the entry goes if that was the last. A last link
 * has the head on both sides, which is how the entry is found.
 */
static void list_leave(struct nm_match *m, enum nm_match_kind kind,
		       struct base_link *link)
{
	struct base_link *head = link->next == link->prev ? link->next : NULL;

	base_list_remove(link);
	if (head != NULL && kind != NM_MATCH_WILD)
		entry_remove(m, kind,
			     container_of(head, struct entry, list.head));
}

static struct nm_match_recv *recv_of(struct base_link *link)
{
	return container_of(link, struct nm_match_recv, link);
}

static struct nm_match_msg *msg_of(struct base_link *link,
				   enum nm_match_kind kind)
{
	return container_of(link - kind, struct nm_match_msg, links[0]);
}

/* --- a message comes --- */

/* The earliest posted receive of this place, or NULL. */
static struct nm_match_recv *head_recv(const struct nm_match *m,
				       enum nm_match_kind kind,
				       struct nm_match_session *s,
				       struct nm_gate *gate, uint32_t tag)
{
	struct key k = key_make(kind, s, gate, tag, false);
	struct entry *e = entry_find(m, kind, &k);

	if (e == NULL || e->holds != RECVS)
		return NULL;
	return recv_of(e->list.head.next);
}

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
	struct nm_match_recv *r = NULL, *wild;

	for (int kind = 0; kind < NM_MATCH_TABLES; kind++)
		if (s->nrecvs[kind] != 0)
			r = earlier(r, head_recv(m, kind, s, gate, tag));
	if (s->nrecvs[NM_MATCH_WILD] != 0) {
		wild = recv_of(s->recvs.head.next);
		r = earlier(r, wild);
	}
	if (r != NULL)
		nm_match_cancel(m, r);
	return r;
}

/* Probes of one place that wait for such a message leave it. */
static void wake_probes(struct nm_match *m, enum nm_match_kind kind,
			const struct nm_match_msg *msg, struct base_list *out)
{
	struct nm_match_session *s = msg->session;
	struct base_list *list = &s->probes;
	struct entry *e = NULL;

	if (kind != NM_MATCH_WILD) {
		struct key k = key_make(kind, s, msg->gate, msg->tag, true);

		e = entry_find(m, kind, &k);
		if (e == NULL)
			return;
		list = &e->list;
	}
	base_list_for_each (link, list)
		s->nprobes[kind]--;
	base_list_splice_back(out, list);
	if (e != NULL)
		entry_remove(m, kind, e);
}

int nm_match_keep(struct nm_match *m, struct nm_match_msg *msg,
		  struct base_list *probes)
{
	struct nm_match_session *s = msg->session;

	if (unlikely(nm_match_room(m) == 0))
		return -ENOMEM;
	msg->number = ++m->narrived;
	for (int kind = 0; kind < NM_MATCH_TABLES; kind++) {
		struct key k = key_make(kind, s, msg->gate, msg->tag, false);
		struct entry *e = entry_find(m, kind, &k);

		if (e == NULL)
			e = entry_add(m, kind, &k, MSGS);
		base_assert(e->holds == MSGS);
		base_list_push_back(&e->list, &msg->links[kind]);
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
	struct entry *e;
	struct key k;

	r->is_probe = false;
	if (kind == NM_MATCH_WILD) {
		r->number = ++m->nposted;
		return post_wild(m, r, out);
	}
	k = key_make(kind, r->session, r->gate, r->tag, false);
	e = entry_find(m, kind, &k);
	if (e != NULL && e->holds == MSGS) {
		r->number = ++m->nposted;
		*out = msg_of(e->list.head.next, kind);
		nm_match_take(m, *out);
		return 0;
	}
	if (e == NULL)
		e = entry_add(m, kind, &k, RECVS);
	if (unlikely(e == NULL))
		return -ENOMEM;
	r->number = ++m->nposted;
	base_list_push_back(&e->list, &r->link);
	r->session->nrecvs[kind]++;
	*out = NULL;
	return 0;
}

int nm_match_post_probe(struct nm_match *m, struct nm_match_recv *probe)
{
	enum nm_match_kind kind = nm_match_kind(probe->gate, probe->any_tag);
	struct nm_match_session *s = probe->session;
	struct base_list *list = &s->probes;

	if (kind != NM_MATCH_WILD) {
		struct key k = key_make(kind, s, probe->gate, probe->tag, true);
		struct entry *e = entry_find(m, kind, &k);

		if (e == NULL)
			e = entry_add(m, kind, &k, PROBES);
		if (unlikely(e == NULL))
			return -ENOMEM;
		list = &e->list;
	}
	probe->is_probe = true;
	probe->number = ++m->nposted;
	base_list_push_back(list, &probe->link);
	s->nprobes[kind]++;
	return 0;
}

struct nm_match_msg *nm_match_probe(struct nm_match *m,
				    struct nm_match_session *s,
				    struct nm_gate *gate, uint32_t tag,
				    bool any_tag)
{
	enum nm_match_kind kind = nm_match_kind(gate, any_tag);
	struct base_list *list = &s->msgs;

	if (s->nmsgs == 0)
		return NULL;
	if (kind != NM_MATCH_WILD) {
		struct key k = key_make(kind, s, gate, tag, false);
		struct entry *e = entry_find(m, kind, &k);

		if (e == NULL || e->holds != MSGS)
			return NULL;
		list = &e->list;
	}
	return msg_of(list->head.next, kind);
}

/* --- leaving --- */

void nm_match_take(struct nm_match *m, struct nm_match_msg *msg)
{
	for (int kind = 0; kind < NM_MATCH_KINDS; kind++)
		list_leave(m, kind, &msg->links[kind]);
	msg->session->nmsgs--;
}

int nm_match_cancel(struct nm_match *m, struct nm_match_recv *r)
{
	enum nm_match_kind kind = nm_match_kind(r->gate, r->any_tag);

	if (!nm_match_is_posted(r))
		return -ENOENT;
	list_leave(m, kind, &r->link);
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

static void take_entry(struct base_hash_node *node, void *arg)
{
	struct entry *e = container_of(node, struct entry, node);
	struct take_gate *t = arg;

	if (e->session != t->session || e->gate != t->gate || e->holds == MSGS)
		return;
	take_list(t, &e->list);
	entry_remove(t->m, t->kind, e);
}

void nm_match_take_gate(struct nm_match *m, struct nm_match_session *s,
			const struct nm_gate *gate, struct base_list *out)
{
	struct take_gate t = { m, s, gate, NM_MATCH_FULL, out };

	for (; t.kind < NM_MATCH_TABLES; t.kind++)
		base_hash_walk(&m->tables[t.kind], take_entry, &t);
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
	if (err == 0 && unlikely(nm_match_room(m) < n))
		err = base_pool_reserve(&m->entries, n * NM_MATCH_TABLES);
	return err;
}

void nm_match_init(struct nm_match *m)
{
	for (int kind = 0; kind < NM_MATCH_TABLES; kind++)
		base_hash_init(&m->tables[kind]);
	base_pool_init(&m->entries, sizeof(struct entry), BASE_CACHE_LINE);
	base_list_init(&m->sessions);
	m->nposted = 0;
	m->narrived = 0;
}

void nm_match_exit(struct nm_match *m)
{
	base_check(base_list_is_empty(&m->sessions));
	for (int kind = 0; kind < NM_MATCH_TABLES; kind++) {
		base_check(m->tables[kind].count == 0);
		base_hash_exit(&m->tables[kind]);
	}
	base_pool_exit(&m->entries);
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
	uint64_t entries, recvs, probes, msgs;
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

static void check_entry(struct base_hash_node *node, void *arg)
{
	struct entry *e = container_of(node, struct entry, node);
	struct census *c = arg;
	struct key k = key_make(c->kind, e->session, e->gate, e->tag,
				e->holds == PROBES);
	struct nm_match_msg *before = NULL;
	uint64_t last = 0;

	c->entries++;
	base_check(!base_list_is_empty(&e->list));
	base_check(k.hash == node->hash && k.gate == e->gate &&
		   k.tag == e->tag);
	base_check(entry_find(c->m, c->kind, &k) == e); /* the only one */
	base_list_for_each (link, &e->list) {
		if (e->holds == MSGS) {
			struct nm_match_msg *msg = msg_of(link, c->kind);
			struct key of = key_make(c->kind, msg->session,
						 msg->gate, msg->tag, false);

			base_check(entry_is(node, &of));
			base_check(before == NULL ||
				   (int32_t)(msg->number - before->number) > 0);
			before = msg;
			c->msgs++;
		} else {
			struct nm_match_recv *r = recv_of(link);
			struct key of = key_make(c->kind, r->session, r->gate,
						 r->tag, r->is_probe);

			base_check(entry_is(node, &of));
			last = check_recv(r, c->kind, e->holds == PROBES, last);
			c->recvs += e->holds == RECVS;
			c->probes += e->holds == PROBES;
		}
	}
}

/* No receive or probe is posted that this message should have gone to. */
static void check_msg(struct nm_match *m, const struct nm_match_msg *msg)
{
	struct nm_match_session *s = msg->session;

	base_check(base_list_is_empty(&s->recvs));
	base_check(base_list_is_empty(&s->probes));
	for (int kind = 0; kind < NM_MATCH_TABLES; kind++) {
		struct key k = key_make(kind, s, msg->gate, msg->tag, false);
		struct entry *e = entry_find(m, kind, &k);

		base_check(e != NULL && e->holds == MSGS);
		k = key_make(kind, s, msg->gate, msg->tag, true);
		base_check(entry_find(m, kind, &k) == NULL);
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
	uint64_t entries = 0;

	for (int kind = 0; kind < NM_MATCH_TABLES; kind++) {
		struct census c = { .m = m, .kind = kind };
		uint64_t recvs = 0, probes = 0, msgs = 0;

		base_hash_check(&m->tables[kind]);
		base_hash_walk(&m->tables[kind], check_entry, &c);
		base_list_for_each (link, &m->sessions) {
			struct nm_match_session *s = container_of(
				link, struct nm_match_session, link);

			recvs += s->nrecvs[kind];
			probes += s->nprobes[kind];
			msgs += s->nmsgs;
		}
		base_check(c.recvs == recvs && c.probes == probes);
		base_check(c.msgs == msgs);
		base_check(c.entries == m->tables[kind].count);
		entries += c.entries;
	}
	base_check(entries + m->entries.nfree == m->entries.ntotal);
	base_list_for_each (link, &m->sessions)
		check_session(
			m, container_of(link, struct nm_match_session, link));
}

void nm_match_dump(const struct nm_match *m)
{
	static const char *const names[] = { "gate+tag", "tag",
					     "gate+session" };

	for (int kind = 0; kind < NM_MATCH_TABLES; kind++)
		base_dump("  match by %s: %zu keys, index of %u slots\n",
			  names[kind], m->tables[kind].count,
			  m->tables[kind].now.size);
	base_dump("  match: %lu posted, %u kept so far; room for %zu more\n",
		  m->nposted, m->narrived, nm_match_room(m));
}

void nm_match_session_dump(const struct nm_match_session *s)
{
	base_dump("  receives: %lu exact, %lu any gate, %lu any tag, %lu any; "
		  "%lu unexpected messages\n",
		  s->nrecvs[NM_MATCH_FULL], s->nrecvs[NM_MATCH_TAG],
		  s->nrecvs[NM_MATCH_SOURCE], s->nrecvs[NM_MATCH_WILD],
		  s->nmsgs);
}
