/*
 * Peers: from the first use to the end.
 *
 * A queue pair that fails is put into the state of error at once: then nothing
 * more comes or goes, and what is under way is told of as flushed. The core
 * hears of it when all that had come before is read.
 */
#include "verbs.h"

#include <marcel/errno.h>
#include <limits.h>

#include <base/diag.h>

/* --- peers --- */

struct verbs_peer *nm_verbs_peer(struct verbs *v, uint32_t rank)
{
	struct nm_link *link = &v->rail->links[rank];
	struct verbs_peer *p = &v->peers[rank];

	if (link->conn != NULL)
		return p;
	p->link = link;
	p->credits = VERBS_CREDITS;
	p->connect.rank = p->destroy.rank = rank;
	base_list_init(&p->xfers);
	base_list_init(&p->sending);
	base_list_init(&p->waiting);
	base_link_init(&p->on_dying);
	base_link_init(&p->on_send);
	base_link_init(&p->on_owing);
	base_link_init(&p->on_asks);
	base_link_init(&p->on_thirsty);
	base_list_push_back(&v->used, &p->on_used);
	link->conn = p;
	return p;
}

static void stop_asking(struct verbs_peer *p)
{
	if (p->asks)
		nm_rail_address_drop(p->link);
	p->asks = false;
	base_list_remove(&p->on_asks);
}

void nm_verbs_destroy(struct verbs *v, struct verbs_peer *p)
{
	if (p->qp == NULL || p->told != p->posted)
		return;
	nm_verbs_unknow(v, p);
	p->qp = NULL;
	p->destroy.kind = VERBS_DESTROY;
	nm_verbs_order(v, &p->destroy);
}

/*
 * After that the adapter touches no memory for this peer: a queue pair in the
 * state of error takes nothing and sends nothing.
 */
static void to_error(struct verbs *v, struct verbs_peer *p)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (p->qp == NULL)
		return;
	v->has_failed = true;
	nm_verbs_lib.modify_qp(p->qp, &attr, IBV_QP_STATE);
	nm_verbs_mark_end(v, p);
}

/* What may not have arrived: over another rail the core sends it again. */
static void tell_unsure(struct verbs *v, struct verbs_peer *p)
{
	for (uint32_t i = p->done; i != p->posted; i++) {
		size_t bytes;
		const struct verbs_head *head =
			nm_verbs_frame_of(v, &p->wr[i % VERBS_SQ], &bytes);

		if (head != NULL && head->kind == VERBS_PACKET)
			nm_rail_unsure(v->rail, p->link, le32toh(head->number),
				       head + 1, bytes - VERBS_HEAD);
	}
}

void nm_verbs_hang_up(struct verbs *v, struct verbs_peer *p)
{
	if (p->state == VERBS_CLOSED)
		return;
	if (!p->is_dying)
		to_error(v, p);
	stop_asking(p);
	nm_verbs_forget(v, p);
	nm_verbs_drop_frames(v, p);
	nm_verbs_hold_nothing(v, p);
	base_list_remove(&p->on_dying);
	base_list_remove(&p->on_send);
	base_list_remove(&p->on_owing);
	p->is_dying = false;
	p->state = VERBS_CLOSED;
	nm_verbs_destroy(v, p);
}

int nm_verbs_refuse(struct verbs *v, struct verbs_peer *p)
{
	tell_unsure(v, p);
	nm_verbs_hang_up(v, p);
	return -ECONNRESET;
}

/* What has come by now is taken up: the peer may know that it has arrived. */
void nm_verbs_give_up(struct nm_link *link)
{
	struct verbs *v = link->rail->drv;
	struct verbs_peer *p;
	bool empty;

	nm_verbs_news(v);
	p = nm_verbs_peer(v, (uint32_t)link->rank);
	empty = p->qp == NULL;
	nm_verbs_fail(v, p, -ECONNRESET);
	while (!empty) {
		int budget = INT_MAX;

		nm_verbs_poll_cq(v, &budget, &empty);
	}
	nm_verbs_refuse(v, p);
}

uint32_t nm_verbs_arrived(const struct nm_link *link)
{
	const struct verbs_peer *p = link->conn;

	return p->arrived;
}

void nm_verbs_fail(struct verbs *v, struct verbs_peer *p, int error)
{
	if (p->is_dying || p->state == VERBS_CLOSED)
		return;
	to_error(v, p);
	p->is_dying = true;
	p->error = error;
	base_list_push_back(&v->dying, &p->on_dying);
}

/* All that they had sent is read. */
void nm_verbs_bury(struct verbs *v)
{
	struct base_link *n;

	while ((n = base_list_first(&v->dying)) != NULL) {
		struct verbs_peer *p =
			container_of(n, struct verbs_peer, on_dying);
		bool quiet =
			p->state == VERBS_LEFT && base_list_is_empty(&p->xfers);

		if (!quiet)
			tell_unsure(v, p);
		nm_verbs_hang_up(v, p);
		if (!quiet)
			nm_rail_link_dead(v->rail, p->link, p->error);
	}
}

/* --- connecting --- */

/* Both on Ethernet, or on the same InfiniBand subnet. */
static bool is_reachable(const struct verbs *v, const struct verbs_addr *a,
			 size_t len)
{
	const struct verbs_port *port = &v->port;
	bool here = port->attr.link_layer == IBV_LINK_LAYER_ETHERNET;

	return len == sizeof(*a) && a->version == VERBS_ADDR_VERSION &&
	       a->is_ethernet == here &&
	       (here || memcmp(a->gid.raw, port->gid.raw, 8) == 0);
}

/* Where is it? 0: the clerk has been told; -EAGAIN; -errno. */
static int find_peer(struct verbs *v, struct verbs_peer *p)
{
	union {
		unsigned char bytes[NM_ADDR_MAX];
		struct verbs_addr addr;
	} a;
	size_t len;
	int rc = nm_rail_address(p->link, &a, &len);

	p->asks = rc == -EAGAIN;
	if (rc == 0 && !is_reachable(v, &a.addr, len))
		rc = -EHOSTUNREACH;
	if (rc < 0)
		return rc;
	p->state = VERBS_CALLING;
	p->connect.kind = VERBS_CONNECT;
	p->connect.addr = a.addr;
	nm_verbs_order(v, &p->connect);
	return 0;
}

int nm_verbs_connect(struct nm_link *link)
{
	struct verbs *v = link->rail->drv;
	struct verbs_peer *p = nm_verbs_peer(v, (uint32_t)link->rank);
	int rc = load_relaxed(&v->down);

	if (rc == 0)
		rc = find_peer(v, p);
	if (rc == -EAGAIN)
		base_list_push_back(&v->asking, &p->on_asks);
	else if (rc < 0)
		nm_verbs_fail(v, p, rc); /* it may have come by itself */
	return 0;
}

/* Those whose address the launcher had not answered for. */
void nm_verbs_ask_again(struct verbs *v)
{
	struct base_list batch;
	struct base_link *n;

	base_list_init(&batch);
	base_list_splice_back(&batch, &v->asking);
	while ((n = base_list_take_front(&batch)) != NULL) {
		struct verbs_peer *p =
			container_of(n, struct verbs_peer, on_asks);
		int rc = find_peer(v, p);

		if (rc == -EAGAIN)
			base_list_push_back(&v->asking, n);
		else if (rc < 0)
			nm_verbs_fail(v, p, rc);
	}
}

/* --- what the clerk says --- */

static void known(struct verbs *v, struct verbs_peer *p, struct ibv_qp *qp)
{
	stop_asking(p);
	p->qp = qp;
	nm_verbs_know(v, p);
	if (p->is_dying || p->state == VERBS_CLOSED)
		to_error(v, p); /* it failed, or was given up, meanwhile */
	if (p->state == VERBS_CLOSED)
		nm_verbs_destroy(v, p);
	else
		p->state = VERBS_READY;
}

void nm_verbs_met(struct verbs *v, struct verbs_peer *p)
{
	if (p->state == VERBS_READY)
		p->state = VERBS_OPEN;
}

bool nm_verbs_news(struct verbs *v)
{
	bool any = false;

	base_mpsc_for_each (n, base_mpsc_take(&v->news)) {
		struct verbs_order *o =
			container_of(n, struct verbs_order, node);
		struct verbs_peer *p;

		any = true;
		if (o->kind == VERBS_REGISTER) {
			nm_verbs_registered(v, o);
			continue;
		}
		p = nm_verbs_peer(v, o->rank);
		if (o->kind == VERBS_KNOWN)
			known(v, p, o->qp);
		else if (o->kind == VERBS_MET)
			nm_verbs_met(v, p);
		else
			nm_verbs_fail(v, p, o->error);
	}
	return any;
}

/* Whose adapter has done nothing for us since the last look is asked. */
void nm_verbs_look(struct verbs *v)
{
	int down = load_relaxed(&v->down);

	v->ticks_seen = load_relaxed(&v->ticks);
	base_list_for_each (n, &v->used) {
		struct verbs_peer *p =
			container_of(n, struct verbs_peer, on_used);

		if (down != 0)
			nm_verbs_fail(v, p, down);
		else if (p->heard == p->heard_before)
			nm_verbs_ask(v, p);
		p->heard_before = p->heard;
	}
}
