/*
 * A rail at work: what its owner does with the driver, and what the driver
 * tells him.
 */
#include "rail.h"

#include <marcel/errno.h>
#include <string.h>

#include <base/diag.h>

#include "core.h"

enum { BUDGET = 32 }; /* arrivals a poll may bring */

static void backlog_add(struct nm_rail *rail, int n)
{
	store_relaxed(&rail->backlog,
		      load_relaxed(&rail->backlog) + (uint32_t)n);
}

static void tell(struct nm_rail *rail, struct nm_event *e, unsigned kind)
{
	e->kind = kind;
	nm_chain_append(&rail->news->events, &e->node);
}

/* One of several of a message; or one with a packet of a lost link in it. */
static BASE_COLD void special_over(struct nm_rail *rail, struct nm_pkt *pkt,
				   int error)
{
	if (pkt->post.kind == NM_POST_RESENT)
		nm_lost_carried(pkt->doubt);
	else if (nm_medium_left(pkt->part_of, error))
		nm_chain_append(&rail->news->sent, &pkt->part_of->node);
}

/*
 * The packet has left or never will: its requests are over, and the link's
 * turn ends. After that the packet is the core's.
 */
static void pkt_over(struct nm_rail *rail, struct nm_pkt *pkt, int error)
{
	struct base_mpsc_node *n;

	while ((n = nm_chain_take(&pkt->reqs)) != NULL) {
		struct nm_req *req = container_of(n, struct nm_req, node);

		/* The other part of a synchronous send fails in the core. */
		if (error != 0 && !(req->flags & NM_REQ_SYNC))
			req->error = -ECONNRESET;
		nm_chain_append(&rail->news->sent, n);
	}
	if (unlikely(pkt->post.kind != NM_POST_PKT))
		special_over(rail, pkt, error);
	if (nm_turn_end(&pkt->link->turn, &rail->core->hunger))
		rail->news->hungry = true;
}

/* Other links take over what this one does not end. */
static bool is_spared(const struct nm_link *link)
{
	return link->may_lose && !link->hopeless;
}

/* The link is dead, and the packet has not left. */
static BASE_COLD void pkt_unsent(struct nm_rail *rail, struct nm_pkt *pkt,
				 int error)
{
	struct nm_link *link = pkt->link;
	struct nm_doubt *d;

	if (is_spared(link)) {
		d = nm_doubt_new(link, nm_pkt_length(pkt));
		nm_pkt_copy(pkt, d->bytes);
		d->unsent = true;
		tell(rail, &d->event, NM_EVENT_UNSURE);
		error = 0;
	}
	pkt_over(rail, pkt, error);
}

/* --- orders --- */

/* The peer is used: the driver must know it. 0, or -errno as connect(). */
static inline int know(struct nm_rail *rail, struct nm_link *link)
{
	return likely(link->conn != NULL) ? 0 : rail->driver->connect(link);
}

/* The order finds no room: it is tried again. */
static BASE_COLD void keep(struct nm_rail *rail, struct nm_event *e)
{
	nm_chain_append(&rail->stuck, &e->node);
	backlog_add(rail, 1);
}

/* Somebody waits for it: its death is to be heard of. */
static BASE_COLD void connect_link(struct nm_rail *rail, struct nm_link *link)
{
	int rc = link->error != 0 ? 0 : know(rail, link);

	if (rc == -EAGAIN)
		keep(rail, &link->first);
	else if (rc < 0)
		nm_rail_link_dead(rail, link, rc);
}

/* False: no room, the packet must be tried again. */
static bool send_pkt(struct nm_rail *rail, struct nm_pkt *pkt)
{
	struct nm_link *link = pkt->link;
	int rc;

	if (unlikely(link->error != 0)) {
		pkt_unsent(rail, pkt, link->error);
		return true;
	}
	rc = know(rail, link);
	if (likely(rc == 0))
		rc = rail->driver->post_send(link, pkt);
	if (likely(rc == NM_SENT)) {
		pkt_over(rail, pkt, 0);
	} else if (rc == NM_POSTED) {
		link->posted = pkt;
		backlog_add(rail, 1);
		rail->news->kick = true;
	} else if (rc == -EAGAIN) {
		return false;
	} else {
		nm_rail_link_dead(rail, link, rc);
		pkt_unsent(rail, pkt, rc);
	}
	return true;
}

static void start_xfer(struct nm_rail *rail, struct nm_xfer *x,
		       int (*slot)(struct nm_xfer *x))
{
	struct nm_link *link = x->link;
	int rc = unlikely(link->error != 0) ? 0 : know(rail, link);

	if (unlikely(rc == -EAGAIN)) {
		keep(rail, &x->done);
		return;
	}
	base_list_push_back(&link->xfers, &x->on);
	backlog_add(rail, 1);
	/* The dead may have brought all of what was announced. */
	if (unlikely(link->error != 0) && slot != rail->driver->xfer_meet) {
		x->lost = is_spared(link);
		nm_rail_xfer_done(rail, x, link->error);
		return;
	}
	if (likely(rc == 0))
		rc = slot(x);
	if (rc < 0 && link->error != 0) {
		x->lost = is_spared(link);
		nm_rail_xfer_done(rail, x, rc);
	} else if (rc < 0) {
		nm_rail_link_dead(rail, link, rc);
	}
}

/* Until it is met the transfer is not the driver's, and costs no poll. */
static void announce(struct nm_rail *rail, struct nm_xfer *x)
{
	x->status = x->link->error;
	if (x->status == 0)
		x->status = know(rail, x->link);
	if (x->status == 0)
		x->status = rail->driver->xfer_announce(x);
	x->is_ready = true;
	tell(rail, &x->ready, NM_EVENT_XFER_READY);
}

static void give_up(struct nm_rail *rail, struct nm_link *link)
{
	if (link->error != 0)
		return;
	/* Its driver may have heard of the peer, though nobody has polled. */
	if (rail->driver->give_up != NULL &&
	    (link->conn != NULL || link->may_lose))
		rail->driver->give_up(link);
	nm_rail_link_dead(rail, link, -ECONNRESET);
}

BASE_INLINE void hand_over(struct nm_rail *rail, struct nm_event *e)
{
	struct nm_pkt *pkt;

	switch (e->kind) {
	case NM_POST_PKT:
	case NM_POST_PART:
	case NM_POST_RESENT:
		pkt = container_of(e, struct nm_pkt, post);
		if (!send_pkt(rail, pkt)) {
			keep(rail, e);
			rail->news->kick = true;
		}
		break;
	case NM_POST_XFER_RECV:
		start_xfer(rail, container_of(e, struct nm_xfer, done),
			   rail->driver->xfer_recv);
		break;
	case NM_POST_XFER_SEND:
		start_xfer(rail, container_of(e, struct nm_xfer, done),
			   rail->driver->xfer_send);
		break;
	case NM_POST_XFER_MEET:
		start_xfer(rail, container_of(e, struct nm_xfer, done),
			   rail->driver->xfer_meet);
		break;
	case NM_POST_XFER_ANNOUNCE:
		announce(rail, container_of(e, struct nm_xfer, done));
		break;
	case NM_POST_CONNECT:
		connect_link(rail, container_of(e, struct nm_link, first));
		break;
	case NM_POST_GIVE_UP:
		container_of(e, struct nm_link, giveup)->hopeless = true;
		give_up(rail, container_of(e, struct nm_link, giveup));
		break;
	case NM_POST_LOSE:
		give_up(rail, container_of(e, struct nm_link, lose));
		break;
	}
}

struct nm_rail *nm_post_rail(struct nm_event *post)
{
	switch (post->kind) {
	case NM_POST_PKT:
	case NM_POST_PART:
	case NM_POST_RESENT:
		return container_of(post, struct nm_pkt, post)->link->rail;
	case NM_POST_CONNECT:
		return container_of(post, struct nm_link, first)->rail;
	case NM_POST_GIVE_UP:
		return container_of(post, struct nm_link, giveup)->rail;
	case NM_POST_LOSE:
		return container_of(post, struct nm_link, lose)->rail;
	default:
		return container_of(post, struct nm_xfer, done)->link->rail;
	}
}

static bool is_packet(const struct nm_event *e)
{
	return e->kind == NM_POST_PKT || e->kind == NM_POST_PART ||
	       e->kind == NM_POST_RESENT;
}

/* Who tries again polls: nobody is kicked for what stays. */
static void hand_over_again(struct nm_rail *rail, struct nm_event *e)
{
	if (!is_packet(e))
		hand_over(rail, e);
	else if (!send_pkt(rail, container_of(e, struct nm_pkt, post)))
		keep(rail, e);
}

/* Orders that found no room: one try each, as they came. True: one is done. */
static BASE_NOINLINE bool retry_stuck(struct nm_rail *rail)
{
	struct nm_chain stuck = rail->stuck;
	struct base_mpsc_node *n;
	bool moved = false;

	nm_chain_init(&rail->stuck);
	while ((n = nm_chain_take(&stuck)) != NULL) {
		struct base_mpsc_node **last = rail->stuck.last;

		backlog_add(rail, -1);
		hand_over_again(rail, container_of(n, struct nm_event, node));
		moved |= rail->stuck.last == last;
	}
	return moved;
}

static inline bool retry(struct nm_rail *rail)
{
	return unlikely(rail->stuck.first != NULL) && retry_stuck(rail);
}

/*
 * The driver's promise covers what comes from outside, not what we have just
 * given it to do.
 */
static bool is_busy(struct nm_rail *rail)
{
	return (rail->stuck.first != NULL &&
		!(rail->driver->caps & NM_CAP_ROOM)) ||
	       rail->driver->is_busy(rail);
}

/* The owner at work. True if anything moved. */
BASE_INLINE bool drive(struct nm_rail *rail, struct nm_event *post, bool poll,
		       struct nm_news *news)
{
	bool moved = false;

	rail->news = news;
	base_mpsc_for_each (n, base_mpsc_take(&rail->lock.posts)) {
		hand_over(rail, container_of(n, struct nm_event, node));
		moved = true;
	}
	if (post != NULL)
		hand_over(rail, post);
	if (poll) {
		moved |= rail->driver->poll(rail, BUDGET);
		moved |= retry(rail);
	}
	if (unlikely(rail->armed)) {
		/* A link may just have died over its packet. */
		moved |= retry(rail);
		if (is_busy(rail))
			nm_core_nudge(rail->core);
	}
	return moved;
}

/* --- under any scheme --- */

bool nm_rail_drive(struct nm_rail *rail, struct nm_event *post, bool poll,
		   struct nm_news *news)
{
	return drive(rail, post, poll, news);
}

/* Coarse: who holds the core's lock owns it. */
static bool is_cores(const struct nm_rail *rail)
{
	return rail->core->lock.scheme == NM_LOCK_COARSE;
}

/* Never waits. */
static bool own(struct nm_rail *rail)
{
	bool got = is_cores(rail) ? nm_core_try(&rail->core->lock)
				  : nm_rail_enter(&rail->lock);

	if (!got)
		nm_count_shared(&rail->stats->busy);
	return got;
}

/*
 * True: the caller must own it again. What was left for the core meanwhile he
 * hears of as of a turn that has ended.
 */
static bool disown(struct nm_rail *rail, struct nm_news *news)
{
	if (!is_cores(rail))
		return nm_rail_leave(&rail->lock);
	news->hungry |= nm_core_end(&rail->core->lock);
	return false;
}

/* `fine` and `coarse`, for who has found the rail busy or not alone. */
static BASE_COLD bool drive_waiting(struct nm_rail *rail, struct nm_event *post,
				    bool poll, struct nm_news *news)
{
	bool moved = false;

	for (;;) {
		bool busy, got = is_cores(rail)
					 ? nm_core_wait(&rail->core->lock,
							news->waits, &busy)
					 : nm_rail_wait(&rail->lock,
							news->waits, &busy);

		if (busy)
			nm_count_shared(&rail->stats->busy);
		if (!got) {
			if (post == NULL)
				return moved;
			/* Posts of `coarse` go by nm_rail_drive(). */
			base_assert(!is_cores(rail));
			nm_rail_push(&rail->lock, &post->node);
			post = NULL;
			continue;
		}
		nm_count(&rail->stats->taken);
		moved |= nm_rail_drive(rail, post, poll, news);
		post = NULL;
		poll = false;
		if (!disown(rail, news))
			return moved;
	}
}

bool nm_rail_run(struct nm_rail *rail, struct nm_event *post, bool poll,
		 struct nm_news *news)
{
	bool moved = false;

	for (;;) {
		if (!nm_rail_enter(&rail->lock)) {
			if (unlikely(rail->core->lock.scheme !=
				     NM_LOCK_DEFERRED))
				return drive_waiting(rail, post, poll, news) ||
				       moved;
			nm_count_shared(&rail->stats->busy);
			if (post == NULL)
				return moved;
			nm_rail_push(&rail->lock, &post->node);
			post = NULL;
			continue;
		}
		nm_count(&rail->stats->taken);
		moved |= drive(rail, post, poll, news);
		post = NULL;
		poll = false;
		if (!nm_rail_leave(&rail->lock))
			return moved;
	}
}

int nm_rail_arm(struct nm_rail *rail, struct nm_news *news)
{
	int rc = -EAGAIN;

	if (!own(rail))
		return -EAGAIN;
	nm_count(&rail->stats->taken);
	rail->news = news;
	rail->armed = false;
	/* A link may have died before, over its packet. */
	retry(rail);
	if (!is_busy(rail))
		rc = rail->driver->arm(rail);
	rail->armed = rc == 0;
	/* What was posted meanwhile is ours to hand over. */
	if (disown(rail, news))
		nm_rail_run(rail, NULL, false, news);
	return rc;
}

/* --- upcalls of drivers --- */

enum {
	MALLOCED = 16, /* what memory of calloc() is aligned to, at least */
	HEARD = offsetof(struct nm_link, heard) / MALLOCED,
	TOLD = offsetof(struct nm_link, posted) / MALLOCED,
	NEXT = sizeof(struct nm_link) / MALLOCED,
	LINE = BASE_CACHE_LINE / MALLOCED,
};
_Static_assert(TOLD - HEARD >= LINE && NEXT - TOLD >= LINE,
	       "two threads write for each packet, to a cache line each");

void nm_rail_recv(struct nm_rail *rail, struct nm_pkt_in *in)
{
	if (unlikely(rail->up != NULL)) {
		rail->up->recv(rail, in);
		return;
	}
	base_assert(in->link->rail == rail);
	in->link->told++;
	tell(rail, &in->event, NM_EVENT_PKT_IN);
}

void nm_rail_sent(struct nm_rail *rail, struct nm_pkt *pkt)
{
	if (unlikely(rail->up != NULL)) {
		rail->up->sent(rail, pkt);
		return;
	}
	pkt->link->posted = NULL;
	backlog_add(rail, -1);
	pkt_over(rail, pkt, 0);
}

void nm_rail_xfer_ready(struct nm_rail *rail, struct nm_xfer *x)
{
	if (unlikely(rail->up != NULL)) {
		rail->up->xfer_ready(rail, x);
		return;
	}
	x->is_ready = true;
	tell(rail, &x->ready, NM_EVENT_XFER_READY);
}

void nm_rail_xfer_done(struct nm_rail *rail, struct nm_xfer *x, int status)
{
	if (unlikely(rail->up != NULL)) {
		rail->up->xfer_done(rail, x, status);
		return;
	}
	base_list_remove(&x->on);
	backlog_add(rail, -1);
	x->status = status;
	/* Who is told of it may end the job, before the link is dead. */
	if (unlikely(status < 0) && !x->lost)
		nm_gate_mourn(x->link->gate, status);
	tell(rail, &x->done, NM_EVENT_XFER_DONE);
}

void nm_rail_unsure(struct nm_rail *rail, struct nm_link *link, uint32_t number,
		    const void *bytes, size_t length)
{
	struct nm_doubt *d;

	if (unlikely(rail->up != NULL)) {
		if (rail->up->unsure != NULL)
			rail->up->unsure(rail, link, number, bytes, length);
		return;
	}
	base_check(link->error == 0);
	if (!is_spared(link))
		return;
	d = nm_doubt_new(link, length);
	memcpy(d->bytes, bytes, length);
	d->number = number;
	tell(rail, &d->event, NM_EVENT_UNSURE);
}

void nm_rail_link_dead(struct nm_rail *rail, struct nm_link *link, int error)
{
	struct nm_pkt *pkt = link->posted;
	struct base_link *n;

	if (unlikely(rail->up != NULL)) {
		rail->up->link_dead(rail, link, error);
		return;
	}
	if (link->error != 0)
		return;
	link->error = error;
	link->last = link->told;
	if (link->may_lose && link->conn != NULL)
		link->arrived = rail->driver->arrived(link);
	if (!is_spared(link)) /* as in nm_rail_xfer_done() */
		nm_gate_mourn(link->gate, error);
	if (pkt != NULL) {
		link->posted = NULL;
		backlog_add(rail, -1);
		/* It has arrived, or the driver has said that it may not. */
		pkt_over(rail, pkt, is_spared(link) ? 0 : error);
	}
	while ((n = base_list_first(&link->xfers)) != NULL) {
		struct nm_xfer *x = container_of(n, struct nm_xfer, on);

		x->lost = is_spared(link);
		nm_rail_xfer_done(rail, x, error);
	}
	tell(rail, &link->dead, NM_EVENT_LINK_DEAD);
}

/* --- when all is over --- */

void nm_rails_check(const struct nm_core *core)
{
	for (int i = 0; i < core->nrails; i++)
		for (int rank = 0; rank < core->rails[i].nlinks; rank++) {
			const struct nm_link *link =
				&core->rails[i].links[rank];

			base_assert(link->heard == link->told);
			base_assert(!link->is_dying);
		}
}
