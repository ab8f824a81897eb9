/*
 * Connecting. Hellos are datagrams to the clerk of the peer, whose place is its
 * rail's address; they get lost, so they are said again, ever more rarely.
 * Either side may begin, or both. A clerk that is ordered to connect, or hears
 * the hello of a peer for the first time, makes a queue pair and says where it
 * is:
 *
 *   HELLO    I know nothing of the peer's            CALLING
 *   KNOWN    the peer's hello has come: my queue pair may receive and send;
 *            the owner is told, then the peer ("heard"): it may send to me
 *   MET      a hello has come that says so of mine: the owner may send, and
 *            nothing is said any more, but to who has not met us
 *
 * What comes from a peer that is KNOWN proves that it has met us: recv.c.
 */
#include "clerk.h"

#include <marcel/errno.h>
#include <sys/random.h>

#include <base/diag.h>

enum {
	WAIT_MS = 4,       /* before a hello is said again; then twice ... */
	WAIT_MAX_MS = 256, /* ... that, until this */
	COMPLAINTS = 16,
};

/* --- saying --- */

static void say(struct verbs_clerk *c, uint32_t rank, struct call *k)
{
	struct verbs_hello h = { .from = (uint32_t)c->v->info->rank,
				 .to = rank,
				 .queue = c->mine,
				 .clerk = c->mine };
	unsigned char *place;

	if (k->ah == NULL) {
		struct ibv_ah_attr ah = nm_verbs_way(c->v, &k->to);

		k->ah = nm_verbs_lib.create_ah(c->v->port.pd, &ah);
		k->no_way = k->ah == NULL && errno != 0 ? errno : ETIMEDOUT;
	}
	place = nm_verbs_mail_place(&c->mail);
	if (k->ah == NULL || place == NULL)
		return; /* as if it had been lost */
	h.is_met = k->state == CALL_MET;
	h.queue.qpn = k->qp->qp_num;
	h.queue.psn = k->psn;
	h.heard = k->state >= CALL_KNOWN ? k->queue.qpn : 0;
	nm_verbs_hello_put(place, &h, c->key);
	nm_verbs_mail_send(&c->mail, k->ah, k->to.qpn);
}

/* It is said again and again, from now on. */
static void go_on_saying(struct verbs_clerk *c, uint32_t rank, struct call *k)
{
	k->wait = WAIT_MS;
	k->due = verbs_now_ms() + k->wait;
	k->give_up = verbs_now_ms() +
		     (uint64_t)nm_verbs_options[VERBS_OPT_TIMEOUT].value;
	if (!base_link_is_on(&k->on))
		base_list_push_back(&c->saying, &k->on);
	say(c, rank, k);
}

/*
 * Nothing more is said of it, if nobody asks. The address stays where a device
 * that has failed does not tell what has gone.
 */
static void be_quiet(struct verbs_clerk *c, struct call *k)
{
	base_list_remove(&k->on);
	if (k->ah == NULL || !nm_verbs_mail_leaves(&c->mail))
		return;
	nm_verbs_lib.destroy_ah(k->ah);
	k->ah = NULL;
}

static void call_failed(struct verbs_clerk *c, uint32_t rank, struct call *k,
			int error, const char *what)
{
	base_warn("nmad", "ibverbs: rank %u: %s: %s", rank, what,
		  strerror(-error));
	be_quiet(c, k);
	if (k->state == CALL_HELLO && k->qp != NULL) {
		nm_verbs_lib.destroy_qp(k->qp);
		k->qp = NULL; /* nobody else has heard of it */
	}
	k->state = CALL_OVER;
	k->met.error = error;
	nm_verbs_tell(c, &k->met, VERBS_FAILED);
}

/* --- from hello to hello --- */

static struct call *call_of(struct verbs_clerk *c, uint32_t rank)
{
	struct call *k = &c->calls[rank];

	if (k->state != CALL_NONE)
		return k;
	base_link_init(&k->on);
	k->known.rank = k->met.rank = rank;
	base_check(getrandom(&k->psn, sizeof(k->psn), 0) == sizeof(k->psn));
	k->psn &= 0xffffff;
	return k;
}

/* False: it has failed. */
static bool begin(struct verbs_clerk *c, uint32_t rank, struct call *k)
{
	int rc = nm_verbs_queue_make(c->v, &k->qp);

	k->state = CALL_HELLO;
	if (rc < 0)
		call_failed(c, rank, k, rc, "no queue pair for it");
	return rc == 0;
}

void nm_verbs_call(struct verbs_clerk *c, const struct verbs_order *o)
{
	struct call *k = call_of(c, o->rank);

	if (k->state != CALL_NONE)
		return; /* it has called us */
	k->to = o->addr;
	if (begin(c, o->rank, k))
		go_on_saying(c, o->rank, k);
}

/* It has said where its queue pair is, for the first time. */
static void learn(struct verbs_clerk *c, struct call *k,
		  const struct verbs_hello *h)
{
	int rc;

	k->queue = h->queue;
	rc = nm_verbs_queue_connect(c->v, k->qp, k->psn, c->mine.mtu,
				    &k->queue);
	if (rc < 0) {
		call_failed(c, h->from, k, rc,
			    "its queue pair cannot be connected to");
		return;
	}
	k->state = CALL_KNOWN;
	k->known.qp = k->qp;
	nm_verbs_tell(c, &k->known, VERBS_KNOWN);
	if (h->heard != k->qp->qp_num)
		go_on_saying(c, h->from, k);
}

static void meet(struct verbs_clerk *c, const struct verbs_hello *h,
		 struct call *k)
{
	k->state = CALL_MET;
	c->nmet++;
	/* It may not know that we know; nor learn it, if our process ends. */
	say(c, h->from, k);
	nm_verbs_tell(c, &k->met, VERBS_MET);
	be_quiet(c, k);
}

static void hear_hello(struct verbs_clerk *c, const struct verbs_hello *h)
{
	struct call *k = call_of(c, h->from);

	if (k->state == CALL_NONE) {
		k->to = h->clerk;
		if (!begin(c, h->from, k))
			return;
	}
	if (k->state == CALL_HELLO)
		learn(c, k, h);
	if ((k->state != CALL_KNOWN && k->state != CALL_MET) ||
	    k->queue.qpn != h->queue.qpn)
		return;
	if (k->state == CALL_KNOWN && h->heard == k->qp->qp_num)
		meet(c, h, k);
	else if (k->state == CALL_MET && !h->is_met)
		say(c, h->from, k);
}

BASE_COLD static void complain(struct verbs_clerk *c, const char *what)
{
	if (c->complaints++ < COMPLAINTS)
		base_warn("nmad", "ibverbs: a hello from a stranger: %s", what);
}

static void hear(struct verbs_clerk *c, const unsigned char *hello,
		 size_t bytes)
{
	const struct nm_boot_info *info = c->v->info;
	struct verbs_hello h;
	const char *why = nm_verbs_hello_get(hello, bytes, &h, c->key);

	if (why == NULL &&
	    (h.to != (uint32_t)info->rank || h.from == h.to ||
	     h.from >= (uint32_t)info->size ||
	     h.queue.is_ethernet != c->mine.is_ethernet ||
	     h.queue.mtu < IBV_MTU_256 || h.queue.mtu > IBV_MTU_4096))
		why = "says what makes no sense here";
	if (why != NULL)
		complain(c, why);
	else
		hear_hello(c, &h);
}

void nm_verbs_calls_hear(struct verbs_clerk *c)
{
	unsigned char hello[VERBS_HELLO];
	size_t bytes;

	nm_verbs_mail_arm(&c->mail);
	while (nm_verbs_mail_take(&c->mail, hello, &bytes))
		hear(c, hello, bytes);
}

void nm_verbs_calls_go_on(struct verbs_clerk *c, uint64_t now, uint64_t *next)
{
	struct base_list batch;
	struct base_link *n;

	base_list_init(&batch);
	base_list_splice_back(&batch, &c->saying);
	while ((n = base_list_take_front(&batch)) != NULL) {
		struct call *k = container_of(n, struct call, on);
		uint32_t rank = (uint32_t)(k - c->calls);

		base_list_push_back(&c->saying, n);
		if (now >= k->give_up) {
			call_failed(c, rank, k, -k->no_way, "does not answer");
			continue;
		}
		if (now >= k->due) {
			say(c, rank, k);
			k->wait = 2 * k->wait < WAIT_MAX_MS ? 2 * k->wait
							    : WAIT_MAX_MS;
			k->due = now + k->wait;
		}
		if (k->due < *next)
			*next = k->due;
	}
}

void nm_verbs_call_end(struct verbs_clerk *c, struct call *k)
{
	be_quiet(c, k);
	if (k->state == CALL_MET)
		c->nmet--;
	k->state = CALL_OVER;
	if (k->qp != NULL)
		nm_verbs_lib.destroy_qp(k->qp);
	k->qp = NULL;
}
