/*
 * The match tables: which posted receive takes which arrived message (CCGrid
 * 2019, section IV).
 *
 * Four places, by what a receive leaves open; "tag" always includes the
 * session:
 *
 *   FULL    (gate, tag)        table     SOURCE  (gate, session), any tag table
 *   TAG     tag, any gate      table     WILD    any gate, any tag   a list of
 *                                                the session
 *
 * A posted receive is on exactly one list, an unexpected message on all four,
 * with one link each. To find what matches, only heads of lists are looked at,
 * so that takes bounded time, however many receives and messages there are:
 *
 *  - an arrival compares the numbers of at most four heads. Each list is in
 *    the order of posting, so the lowest number of the heads is the earliest
 *    posted of all receives that match. Places in which the session has
 *    nothing posted are skipped: without wildcards it is one look-up;
 *  - a post looks at one place, because all messages it may take are there, in
 *    the order of arrival.
 *
 * Hence a receive and a message that match are never both in the tables: one
 * list of a table holds receives or messages, never both. Only who asks for a
 * certain message walks along a list, that of its gate and tag, in the order of
 * arrival (nm_match_next()). What is first on a list is also what the list is
 * found by: a key costs no memory, and a look-up reads a slot of the index and
 * the request or message itself.
 *
 * All functions are called with the core lock held. Requests and messages
 * carry their links; the tables allocate indexes, and only in
 * nm_match_reserve().
 */
#ifndef NMAD_CORE_MATCH_H
#define NMAD_CORE_MATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <base/hash.h>
#include <base/list.h>

struct nm_gate; /* never looked into, a key only */

enum nm_match_kind {
	NM_MATCH_FULL,
	NM_MATCH_TAG,
	NM_MATCH_SOURCE,
	NM_MATCH_WILD,
	NM_MATCH_KINDS,
	NM_MATCH_TABLES = NM_MATCH_WILD, /* the kinds that have a table */
};

/* The tables' part of a session. l: all, core lock */
struct nm_match_session {
	struct base_link link; /* among the sessions of the tables */
	struct base_list recvs, probes, msgs; /* WILD; msgs: all of them */
	uint64_t nrecvs[NM_MATCH_KINDS];      /* posted, by kind */
	uint64_t nprobes[NM_MATCH_KINDS];     /* waiting, by kind */
	uint64_t nmsgs;                       /* unexpected */
};

/* A receive or a waiting probe; lies in its request. l: all, core lock */
struct nm_match_recv {
	/* The caller's, constant while posted. */
	struct nm_match_session *session;
	struct nm_gate *gate; /* NULL: any */
	uint32_t tag;
	bool any_tag; /* then tag means nothing */

	/* The tables'. */
	bool is_probe;
	struct base_link link;
	uint64_t number; /* given when posted: who came first */
};

/* An unexpected message; lies in the core's record of it. l: all, core lock */
struct nm_match_msg {
	/* The caller's, constant while in the tables. */
	struct nm_match_session *session;
	struct nm_gate *gate;
	uint32_t tag;

	/* The tables'. */
	uint32_t number; /* of arrival; may wrap */
	struct base_link links[NM_MATCH_KINDS];
};

/* Sure calls below which more memory is to be asked for. */
enum { NM_MATCH_LOW = 1024 };

struct nm_match {
	struct base_hash tables[NM_MATCH_TABLES];
	struct base_list sessions;
	uint64_t nposted;  /* receives and probes ever posted */
	uint32_t narrived; /* messages ever kept */
	bool is_low; /* room was below NM_MATCH_LOW since the last reserve */
};

void nm_match_init(struct nm_match *m);

/* All sessions must be gone. */
void nm_match_exit(struct nm_match *m);

/* Memory is the caller's until nm_match_session_exit(). */
void nm_match_session_init(struct nm_match *m, struct nm_match_session *s);

/* Nothing of the session may be in the tables. */
void nm_match_session_exit(struct nm_match *m, struct nm_match_session *s);

/*
 * Have memory for n more calls of nm_match_post(), nm_match_post_probe() and
 * nm_match_keep() together. The only function that allocates: from user
 * context, never from progress. Cheap when there is enough. 0 or -ENOMEM.
 */
int nm_match_reserve(struct nm_match *m, size_t n);

/* How many such calls are sure to find memory. */
static inline size_t nm_match_room(const struct nm_match *m)
{
	size_t room = SIZE_MAX;

	for (int kind = 0; kind < NM_MATCH_TABLES; kind++)
		if (base_hash_room(&m->tables[kind]) < room)
			room = base_hash_room(&m->tables[kind]);
	return room;
}

/* Where a receive goes. */
static inline enum nm_match_kind nm_match_kind(const struct nm_gate *gate,
					       bool any_tag)
{
	if (gate != NULL)
		return any_tag ? NM_MATCH_SOURCE : NM_MATCH_FULL;
	return any_tag ? NM_MATCH_WILD : NM_MATCH_TAG;
}

/* Prepare a receive or probe; it is then on no list. */
static inline void nm_match_recv_init(struct nm_match_recv *r,
				      struct nm_match_session *s,
				      struct nm_gate *gate, uint32_t tag,
				      bool any_tag)
{
	r->session = s;
	r->gate = gate;
	r->tag = tag;
	r->any_tag = any_tag;
	r->is_probe = false;
	r->number = 0;
	base_link_init(&r->link);
}

/* Whether it is in the tables. */
static inline bool nm_match_is_posted(const struct nm_match_recv *r)
{
	return base_link_is_on(&r->link);
}

/*
 * A receive comes. 0: *out is the message it takes, which is out of the tables
 * then, or NULL and the receive is posted. -ENOMEM: no reserve is left;
 * nothing has changed. The receive gets its number here, so calls are in the
 * order in which receives are to match.
 */
int nm_match_post(struct nm_match *m, struct nm_match_recv *r,
		  struct nm_match_msg **out);

/*
 * A message comes: the receive that takes it, which is out of the tables then,
 * or NULL: then the caller makes a record of the message and keeps it.
 */
struct nm_match_recv *nm_match_arrival(struct nm_match *m,
				       struct nm_match_session *s,
				       struct nm_gate *gate, uint32_t tag);

/* The first of those posted that name this gate and tag, or NULL. */
struct nm_match_recv *nm_match_first(const struct nm_match *m,
				     struct nm_match_session *s,
				     struct nm_gate *gate, uint32_t tag);

/*
 * Keep a message that no receive took: session, gate and tag are set. Probes
 * that wait for such a message leave the tables and are appended to `probes`
 * by their `link`. 0, or -ENOMEM as above.
 */
int nm_match_keep(struct nm_match *m, struct nm_match_msg *msg,
		  struct base_list *probes);

/*
 * The message that such a receive would take now, which stays in the tables,
 * or NULL.
 */
struct nm_match_msg *nm_match_probe(struct nm_match *m,
				    struct nm_match_session *s,
				    struct nm_gate *gate, uint32_t tag,
				    bool any_tag);

/*
 * The kept message of this gate and tag that came after `last`, or the first
 * one if that is NULL; NULL: there is none.
 */
struct nm_match_msg *nm_match_next(struct nm_match *m,
				   struct nm_match_session *s,
				   struct nm_gate *gate, uint32_t tag,
				   struct nm_match_msg *last);

/*
 * Wait for a message that no receive takes. Only when nm_match_probe() found
 * none. 0 or -ENOMEM as above.
 */
int nm_match_post_probe(struct nm_match *m, struct nm_match_recv *probe);

/* Take a kept message out. */
void nm_match_take(struct nm_match *m, struct nm_match_msg *msg);

/* Take a posted receive or probe out. 0; -ENOENT: it is not in the tables. */
int nm_match_cancel(struct nm_match *m, struct nm_match_recv *r);

/* The session's oldest kept message, out of the tables, or NULL: for closing.
 */
struct nm_match_msg *nm_match_drain(struct nm_match *m,
				    struct nm_match_session *s);

/*
 * Take out all receives and probes of the session that wait for this gate
 * only (gate NULL: those that wait for any gate), and append them to `out` by
 * their `link`. For dead peers: it walks over everything.
 */
void nm_match_take_gate(struct nm_match *m, struct nm_match_session *s,
			const struct nm_gate *gate, struct base_list *out);

/* Aborts if the tables contradict themselves. Walks over everything. */
void nm_match_check(struct nm_match *m);

/* Fn for each receive and probe that is posted, and each message that is kept;
 * NULL: not for those. It changes nothing. */
void nm_match_walk(struct nm_match *m,
		   void (*recv)(struct nm_match_recv *r, void *arg),
		   void (*msg)(struct nm_match_msg *msg, void *arg), void *arg);

/* Counts, by base_dump(). Signal-safe. */
void nm_match_dump(const struct nm_match *m);
void nm_match_session_dump(const struct nm_match_session *s);

#endif
