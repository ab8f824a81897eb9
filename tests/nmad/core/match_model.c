/*
 * nmad/core/match.c against its oracle: one plain list of receives and one of
 * messages, searched from the front, as the MPI standard words it. Random
 * operations over few gates and tags, so that everything collides.
 */
#include "../../check.h"

#include <errno.h>
#include <stdlib.h>

#include <base/compiler.h>

#include "../../../nmad/core/match.h"

enum {
	SESSIONS = 3,
	GATES = 4,
	ALIVE = 200,
	OPERATIONS = BASE_TSAN ? 5000 : 20000, /* one thread */
};

struct recv {
	struct nm_match_recv recv;
	struct recv *next, **back; /* the oracle's list */
};

struct msg {
	struct nm_match_msg msg;
	struct msg *next, **back;
};

static char gate_memory[GATES];
static struct nm_match m;
static struct nm_match_session sessions[SESSIONS];
static struct recv *recvs, **recvs_end, *probes, **probes_end;
static struct msg *msgs, **msgs_end;
static unsigned nrecvs, nmsgs, nprobes, tags;

static unsigned pick(unsigned n)
{
	return (unsigned)(check_random() % n);
}

static struct nm_gate *gate(unsigned n)
{
	return (struct nm_gate *)&gate_memory[n];
}

/* --- the oracle --- */

static void recv_append(struct recv *r, struct recv ***end)
{
	r->next = NULL;
	r->back = *end;
	**end = r;
	*end = &r->next;
}

static void recv_remove(struct recv *r, struct recv ***end)
{
	*r->back = r->next;
	if (r->next != NULL)
		r->next->back = r->back;
	else
		*end = r->back;
}

static void msg_append(struct msg *x)
{
	x->next = NULL;
	x->back = msgs_end;
	*msgs_end = x;
	msgs_end = &x->next;
	nmsgs++;
}

static void msg_remove(struct msg *x)
{
	*x->back = x->next;
	if (x->next != NULL)
		x->next->back = x->back;
	else
		msgs_end = x->back;
	nmsgs--;
}

static bool fits(const struct nm_match_recv *r,
		 const struct nm_match_session *s, const struct nm_gate *from,
		 uint32_t tag)
{
	return r->session == s && (r->gate == NULL || r->gate == from) &&
	       (r->any_tag || r->tag == tag);
}

static struct msg *oracle_msg(const struct nm_match_recv *r)
{
	for (struct msg *x = msgs; x; x = x->next)
		if (fits(r, x->msg.session, x->msg.gate, x->msg.tag))
			return x;
	return NULL;
}

static struct recv *oracle_recv(const struct nm_match_msg *x)
{
	for (struct recv *r = recvs; r; r = r->next)
		if (fits(&r->recv, x->session, x->gate, x->tag))
			return r;
	return NULL;
}

/* --- operations, each done by both --- */

static void recv_random(struct nm_match_recv *r)
{
	nm_match_recv_init(r, &sessions[pick(SESSIONS)],
			   pick(3) ? gate(pick(GATES)) : NULL, pick(tags),
			   pick(4) == 0);
}

static void do_post(void)
{
	struct recv *r = calloc(1, sizeof(*r));
	struct nm_match_msg *out = NULL;
	struct msg *want;

	recv_random(&r->recv);
	want = oracle_msg(&r->recv);
	CHECK_INT(nm_match_reserve(&m, 1), 0);
	CHECK_INT(nm_match_post(&m, &r->recv, &out), 0);
	CHECK_PTR(out, want ? &want->msg : NULL);
	CHECK_INT(nm_match_is_posted(&r->recv), want == NULL);
	if (want == NULL) {
		recv_append(r, &recvs_end);
		nrecvs++;
		return;
	}
	msg_remove(want);
	free(want);
	free(r);
}

/* Probes that wait: all that fit must be told, and no others. */
static void expect_woken(const struct nm_match_msg *x, struct base_list *woken)
{
	struct recv *next;
	unsigned want = 0;

	for (struct recv *p = probes; p; p = p->next)
		want += fits(&p->recv, x->session, x->gate, x->tag);
	for (struct base_link *l; (l = base_list_take_front(woken)); want--) {
		next = container_of(l, struct recv, recv.link);
		CHECK(fits(&next->recv, x->session, x->gate, x->tag));
		recv_remove(next, &probes_end);
		free(next);
		nprobes--;
	}
	CHECK_INT(want, 0);
}

static void do_arrive(void)
{
	struct msg *x = calloc(1, sizeof(*x));
	struct nm_match_recv *got;
	struct base_list woken;
	struct recv *want;

	x->msg.session = &sessions[pick(SESSIONS)];
	x->msg.gate = gate(pick(GATES));
	x->msg.tag = pick(tags);
	want = oracle_recv(&x->msg);
	got = nm_match_arrival(&m, x->msg.session, x->msg.gate, x->msg.tag);
	CHECK_PTR(got, want ? &want->recv : NULL);
	if (want != NULL) {
		recv_remove(want, &recvs_end);
		nrecvs--;
		free(want);
		free(x);
		return;
	}
	base_list_init(&woken);
	CHECK_INT(nm_match_reserve(&m, 1), 0);
	CHECK_INT(nm_match_keep(&m, &x->msg, &woken), 0);
	msg_append(x);
	expect_woken(&x->msg, &woken);
}

static void do_probe(void)
{
	struct recv *p = calloc(1, sizeof(*p));
	struct nm_match_msg *got;
	struct msg *want;

	recv_random(&p->recv);
	want = oracle_msg(&p->recv);
	got = nm_match_probe(&m, p->recv.session, p->recv.gate, p->recv.tag,
			     p->recv.any_tag);
	CHECK_PTR(got, want ? &want->msg : NULL);
	if (want != NULL && pick(2)) { /* mprobe */
		nm_match_take(&m, got);
		msg_remove(want);
		free(want);
	}
	if (want == NULL && nprobes < ALIVE) {
		CHECK_INT(nm_match_reserve(&m, 1), 0);
		CHECK_INT(nm_match_post_probe(&m, &p->recv), 0);
		recv_append(p, &probes_end);
		nprobes++;
		return;
	}
	free(p);
}

static void cancel_one(struct recv *first, struct recv ***end, unsigned *n)
{
	if (*n == 0)
		return;
	for (unsigned i = pick(*n); i > 0; i--)
		first = first->next;
	CHECK_INT(nm_match_cancel(&m, &first->recv), 0);
	CHECK_INT(nm_match_cancel(&m, &first->recv), -ENOENT);
	recv_remove(first, end);
	--*n;
	free(first);
}

static void do_drain(void)
{
	struct nm_match_session *s = &sessions[pick(SESSIONS)];
	struct nm_match_msg *got = nm_match_drain(&m, s);
	struct msg *want = msgs;

	while (want != NULL && want->msg.session != s)
		want = want->next;
	CHECK_PTR(got, want ? &want->msg : NULL);
	if (want != NULL) {
		msg_remove(want);
		free(want);
	}
}

static void do_take_gate(void)
{
	struct nm_match_session *s = &sessions[pick(SESSIONS)];
	struct nm_gate *g = pick(3) ? gate(pick(GATES)) : NULL;
	struct base_list out;
	unsigned want = 0;

	base_list_init(&out);
	for (struct recv *r = recvs; r; r = r->next)
		want += r->recv.session == s && r->recv.gate == g;
	for (struct recv *r = probes; r; r = r->next)
		want += r->recv.session == s && r->recv.gate == g;
	nm_match_take_gate(&m, s, g, &out);
	for (struct base_link *l; (l = base_list_take_front(&out)); want--) {
		struct recv *r = container_of(l, struct recv, recv.link);

		CHECK(r->recv.session == s && r->recv.gate == g);
		recv_remove(r, r->recv.is_probe ? &probes_end : &recvs_end);
		--*(r->recv.is_probe ? &nprobes : &nrecvs);
		free(r);
	}
	CHECK_INT(want, 0);
}

/* Phases lean to receives or to messages, so that both tables get long. */
static void run(unsigned operations, unsigned ntags)
{
	tags = ntags;
	recvs_end = &recvs;
	probes_end = &probes;
	msgs_end = &msgs;
	nm_match_init(&m);
	for (int i = 0; i < SESSIONS; i++)
		nm_match_session_init(&m, &sessions[i]);
	for (unsigned i = 0; i < operations; i++) {
		unsigned lean = i / 500 % 3, op = pick(100);

		if (op < 4)
			do_probe();
		else if (op < 8)
			cancel_one(recvs, &recvs_end, &nrecvs);
		else if (op < 9)
			cancel_one(probes, &probes_end, &nprobes);
		else if (op < 10)
			do_drain();
		else if (op == 10 && pick(20) == 0)
			do_take_gate();
		else if (pick(4) > lean ? nrecvs < ALIVE : nmsgs >= ALIVE)
			do_post();
		else
			do_arrive();
		if (i % 64 == 0)
			nm_match_check(&m);
	}
	nm_match_check(&m);
	while (nrecvs)
		cancel_one(recvs, &recvs_end, &nrecvs);
	while (nprobes)
		cancel_one(probes, &probes_end, &nprobes);
	while (nmsgs)
		do_drain();
	for (int i = 0; i < SESSIONS; i++)
		nm_match_session_exit(&m, &sessions[i]);
	nm_match_exit(&m);
}

TEST(few_tags_as_one_plain_list)
{
	run(OPERATIONS, 3);
}

TEST(some_tags_as_one_plain_list)
{
	run(OPERATIONS, 40);
}

TEST(fresh_tags_as_one_plain_list)
{
	run(OPERATIONS, 1000000);
}
