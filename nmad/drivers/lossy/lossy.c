/*
 * A simulated network that can be lost: it wraps another driver and keeps what
 * it sends until that is known to have arrived, as reliable hardware does
 * (NM_CAP_RESENDS). "lossy:shm" wraps shm; options follow after commas:
 *
 *   lose=N   a link is lost when so many frames have been sent and taken over
 *            it; by default never
 *   both=1   on both sides, when each has counted as far; by default the lower
 *            rank loses it and the other hears of it from that one, or from
 *            the driver beneath
 *
 * Everything goes in frames of one size, packets of the driver beneath:
 *
 *   PACKET   a packet
 *   DATA     some bytes of a transfer, for the receiver's side whose number is
 *            in its token
 *   ACK      nothing; it is not counted
 *
 * Each says how many have been taken on its side, in their order. So many are
 * not sent again, and a transfer is over at the sender when its last has been
 * taken. The last ones before a link is lost do not leave any more, and what
 * has been on its way here is not taken: some frames have arrived, some have
 * not, and of some of those that have the sender does not know it.
 *
 * Processes of one job run on machines of one kind. The inner rail is owned
 * with the outer one.
 */
#include "lossy.h"

#include <errno.h>
#include <string.h>

#include <base/diag.h>

static struct lossy *lossy_of_inner(struct nm_rail *inner)
{
	return container_of(inner, struct lossy, inner);
}

static struct lossy_link *link_of(const struct nm_link *outer)
{
	struct lossy *lossy = outer->rail->drv;

	return &lossy->links[outer->rank];
}

static struct nm_link *inner_link(struct lossy *lossy,
				  const struct lossy_link *l)
{
	return &lossy->inner.links[l->outer->rank];
}

static struct lossy_x *lossy_x(struct nm_xfer *x)
{
	return (struct lossy_x *)(void *)x->drv;
}

static struct nm_xfer *xfer_of(struct base_link *on)
{
	return container_of((void *)on, struct nm_xfer, drv);
}

static struct lossy_frame *frame_of(const struct lossy_link *l, uint32_t number)
{
	return &l->frames[number % LOSSY_WINDOW];
}

static void want(struct lossy *lossy, struct lossy_link *l)
{
	if (!base_link_is_on(&l->work))
		base_list_push_back(&lossy->work, &l->work);
}

/* --- the end of a link --- */

static bool loses(const struct lossy *lossy, const struct lossy_link *l)
{
	return lossy->lose > 0 &&
	       (lossy->both || lossy->outer->rank <= l->outer->rank);
}

/* Frames that may still be counted before it is lost. */
static long left_to(const struct lossy *lossy, const struct lossy_link *l)
{
	return lossy->lose - (long)l->made - (long)l->taken;
}

/* Nothing leaves any more, not even what somebody waits for to go on. */
static bool is_silent(const struct lossy *lossy, const struct lossy_link *l)
{
	return loses(lossy, l) && left_to(lossy, l) <= LOSSY_LAST;
}

static void look_at_end(struct lossy *lossy, struct lossy_link *l)
{
	if (l->error != 0 || !is_silent(lossy, l))
		return;
	if (left_to(lossy, l) <= 0)
		l->error = -ENETDOWN;
	want(lossy, l);
}

/* What it has of the link is the core's to redo. */
static void let_go(struct lossy_link *l)
{
	struct nm_link *link = l->outer;

	for (uint32_t n = l->arrived; n != l->made; n++) {
		const struct lossy_frame *f = frame_of(l, n);

		if (f->head.kind == LOSSY_PACKET)
			nm_rail_unsure(link->rail, link,
				       l->numbers[n % LOSSY_WINDOW], f->bytes,
				       f->head.length);
	}
	l->gone = true;
	l->posted = NULL;
	base_list_remove(&l->work);
	while (base_list_take_front(&l->sending) != NULL)
		;
	while (base_list_take_front(&l->unsure) != NULL)
		;
	while (base_list_take_front(&l->receiving) != NULL)
		;
}

static void give_up_inner(struct lossy *lossy, struct lossy_link *l)
{
	struct nm_link *inner = inner_link(lossy, l);

	if (lossy->inner.driver->give_up != NULL && inner->conn != NULL)
		lossy->inner.driver->give_up(inner);
}

static void lossy_give_up(struct nm_link *link)
{
	struct lossy_link *l = link_of(link);

	if (l->gone)
		return;
	let_go(l);
	give_up_inner(link->rail->drv, l);
}

/* --- frames leave --- */

static void make(struct lossy_link *l, struct lossy_frame *f,
		 enum lossy_kind kind, size_t length)
{
	memset(&f->head, 0, sizeof(f->head));
	f->head.kind = kind;
	f->head.number = l->made;
	f->head.length = (uint32_t)length;
}

/* One packet of that frame. What its driver answers. */
static int hand_over(struct lossy *lossy, struct lossy_link *l,
		     struct lossy_frame *f)
{
	size_t length = sizeof(f->head) + f->head.length;
	struct nm_link *inner = inner_link(lossy, l);
	struct nm_pkt *pkt = &l->pkt;
	uint32_t taken = l->taken;
	int rc;

	f->head.taken = taken;
	l->data = nm_data_flat(f, length);
	nm_pkt_init(pkt);
	pkt->link = inner;
	pkt->ctl_len = 0;
	pkt->length = length;
	pkt->npieces = 1;
	pkt->pieces[0] =
		(struct nm_piece){ .data = &l->data, .length = length };
	rc = lossy->inner.driver->post_send(inner, pkt);
	if (rc == NM_SENT || rc == NM_POSTED) {
		l->flying = rc == NM_POSTED;
		l->told = taken;
	} else if (rc != -EAGAIN && l->error == 0) {
		l->error = rc;
	}
	return rc;
}

/* The packet of the core's that was made last has left. */
static void packet_left(struct lossy_link *l)
{
	struct nm_pkt *pkt = l->posted;

	l->posted = NULL;
	if (pkt != NULL)
		nm_rail_sent(l->outer->rail, pkt);
}

static void send_frames(struct lossy *lossy, struct lossy_link *l)
{
	while (l->left != l->made && !l->flying && l->error == 0) {
		int rc = NM_SENT;

		if (!is_silent(lossy, l))
			rc = hand_over(lossy, l, frame_of(l, l->left));
		if (rc != NM_SENT && rc != NM_POSTED)
			return;
		l->left++;
	}
}

static void send_ack(struct lossy *lossy, struct lossy_link *l)
{
	if (l->told == l->taken || l->flying || l->error != 0 ||
	    l->left != l->made)
		return;
	make(l, &l->ack, LOSSY_ACK, 0);
	if (is_silent(lossy, l))
		l->told = l->taken;
	else
		hand_over(lossy, l, &l->ack);
}

/* The next bytes of a transfer into a frame. */
static void frame_data(struct lossy_link *l, struct nm_xfer *x)
{
	struct lossy_x *lx = lossy_x(x);
	struct lossy_frame *f = frame_of(l, l->made);
	size_t bytes = x->length - lx->done;

	if (bytes > LOSSY_ROOM)
		bytes = LOSSY_ROOM;
	make(l, f, LOSSY_DATA, bytes);
	f->head.to = lx->number;
	f->head.offset = lx->done;
	nm_xfer_copy_out(x, lx->done, f->bytes, bytes);
	lx->done += bytes;
	lx->last = l->made++;
	if (lx->done < x->length)
		return;
	base_list_remove(&lx->on);
	base_list_push_back(&l->unsure, &lx->on);
}

static bool may_frame(const struct lossy_link *l, uint32_t most)
{
	return l->made - l->arrived < most && l->error == 0;
}

/* All that can be done for a link now. True: something was. */
static bool work(struct lossy *lossy, struct lossy_link *l)
{
	uint32_t before = l->left + l->made;
	struct base_link *n;

	while ((n = base_list_first(&l->sending)) != NULL &&
	       may_frame(l, LOSSY_FOR_DATA)) {
		frame_data(l, xfer_of(n));
		look_at_end(lossy, l);
	}
	send_frames(lossy, l);
	if (l->left == l->made && l->posted != NULL)
		packet_left(l);
	send_ack(lossy, l);
	if (is_silent(lossy, l) && ++l->npolls > LOSSY_PATIENCE &&
	    l->error == 0)
		l->error = -ETIMEDOUT;
	if (l->error != 0) {
		lossy_give_up(l->outer);
		nm_rail_link_dead(lossy->outer, l->outer, l->error);
		return true;
	}
	if (l->left == l->made && l->told == l->taken && !is_silent(lossy, l) &&
	    (base_list_is_empty(&l->sending) || !may_frame(l, LOSSY_FOR_DATA)))
		base_list_remove(&l->work);
	return l->left + l->made != before;
}

static int lossy_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	struct lossy *lossy = link->rail->drv;
	struct lossy_link *l = link_of(link);
	struct lossy_frame *f = frame_of(l, l->made);

	if (!may_frame(l, LOSSY_WINDOW))
		return -EAGAIN;
	make(l, f, LOSSY_PACKET, nm_pkt_length(pkt));
	nm_pkt_copy(pkt, f->bytes);
	l->numbers[l->made++ % LOSSY_WINDOW] = l->npackets++;
	look_at_end(lossy, l);
	send_frames(lossy, l);
	if (l->left == l->made)
		return NM_SENT;
	l->posted = pkt;
	want(lossy, l);
	return NM_POSTED;
}

/* --- frames come --- */

static void ends(struct lossy *lossy, struct nm_xfer *x)
{
	base_list_remove(&lossy_x(x)->on);
	nm_rail_xfer_done(lossy->outer, x, 0);
}

/* So many of ours have been taken. False: that cannot be. */
static bool have_arrived(struct lossy *lossy, struct lossy_link *l,
			 uint32_t taken)
{
	struct base_link *n;

	if (taken - l->arrived > l->left - l->arrived)
		return false;
	if (taken != l->arrived)
		want(lossy, l);
	l->arrived = taken;
	while ((n = base_list_first(&l->unsure)) != NULL) {
		struct nm_xfer *x = xfer_of(n);

		if ((int32_t)(lossy_x(x)->last - l->arrived) >= 0)
			break;
		ends(lossy, x);
	}
	return true;
}

static struct lossy_held *held_new(struct lossy *lossy)
{
	struct base_mpsc_node *n = lossy->free;

	if (n == NULL)
		n = base_mpsc_take(&lossy->released);
	if (n == NULL)
		return NULL;
	lossy->free = n->next;
	return container_of(n, struct lossy_held, free);
}

static void deliver(struct lossy *lossy, struct lossy_link *l,
		    struct nm_pkt_in *in, size_t length)
{
	struct lossy_held *h = held_new(lossy);

	base_check(h != NULL); /* poll asks for no more than there are */
	h->inner = in;
	h->in.link = l->outer;
	h->in.data = in->data + sizeof(struct lossy_head);
	h->in.length = length;
	h->in.drv = h;
	l->ncame++;
	nm_rail_recv(lossy->outer, &h->in);
}

/* False: it is of no transfer that we know. */
static bool take_data(struct lossy *lossy, struct lossy_link *l,
		      const struct lossy_head *head, const unsigned char *bytes)
{
	base_list_for_each (n, &l->receiving) {
		struct nm_xfer *x = xfer_of(n);
		struct lossy_x *lx = lossy_x(x);

		if (lx->number != head->to)
			continue;
		if (head->offset != lx->done ||
		    head->length > x->length - lx->done)
			return false;
		nm_xfer_copy_in(x, lx->done, bytes, head->length);
		lx->done += head->length;
		if (lx->done == x->length)
			ends(lossy, x);
		return true;
	}
	return false;
}

/* False: nonsense. *kept: the packet is the core's now. */
static bool take(struct lossy *lossy, struct lossy_link *l,
		 struct nm_pkt_in *in, bool *kept)
{
	const unsigned char *bytes = in->data + sizeof(struct lossy_head);
	struct lossy_head head;

	if (in->length < sizeof(head))
		return false;
	memcpy(&head, in->data, sizeof(head));
	if (head.length != in->length - sizeof(head) ||
	    !have_arrived(lossy, l, head.taken))
		return false;
	if (head.kind == LOSSY_ACK)
		return true;
	if (head.number != l->taken)
		return false;
	l->taken++;
	want(lossy, l);
	if (head.kind == LOSSY_DATA)
		return take_data(lossy, l, &head, bytes);
	*kept = true;
	deliver(lossy, l, in, head.length);
	return head.kind == LOSSY_PACKET;
}

static void came(struct nm_rail *inner, struct nm_pkt_in *in)
{
	struct lossy *lossy = lossy_of_inner(inner);
	struct lossy_link *l = &lossy->links[in->link->rank];
	bool kept = false;

	l->outer->conn = in->link; /* the inner driver has connected it */
	if (!l->gone && l->error == 0 && !take(lossy, l, in, &kept)) {
		l->error = -EPROTO;
		want(lossy, l);
	}
	if (!kept)
		inner->driver->release(inner, in);
	if (!l->gone)
		look_at_end(lossy, l);
}

static void inner_sent(struct nm_rail *inner, struct nm_pkt *pkt)
{
	struct lossy *lossy = lossy_of_inner(inner);
	struct lossy_link *l = container_of(pkt, struct lossy_link, pkt);

	l->flying = false;
	if (!l->gone)
		want(lossy, l);
}

static void inner_dead(struct nm_rail *inner, struct nm_link *link, int error)
{
	struct lossy *lossy = lossy_of_inner(inner);
	struct lossy_link *l = &lossy->links[link->rank];

	if (l->gone)
		return;
	let_go(l);
	nm_rail_link_dead(lossy->outer, l->outer, error);
}

const struct nm_rail_upcalls nm_lossy_upcalls = {
	.recv = came,
	.sent = inner_sent,
	.link_dead = inner_dead,
};

static uint32_t lossy_arrived(const struct nm_link *link)
{
	return link_of(link)->ncame;
}

static void lossy_release(struct nm_rail *rail, struct nm_pkt_in *in)
{
	struct lossy *lossy = rail->drv;
	struct lossy_held *h = in->drv;

	lossy->inner.driver->release(&lossy->inner, h->inner);
	base_mpsc_push(&lossy->released, &h->free); /* order(mpsc) */
}

/* --- transfers --- */

static int lossy_xfer_recv(struct nm_xfer *x)
{
	struct lossy *lossy = x->link->rail->drv;
	struct lossy_x *lx = lossy_x(x);

	lx->number = ++lossy->nxfers;
	x->mine.length = sizeof(lx->number);
	memcpy(x->mine.bytes, &lx->number, sizeof(lx->number));
	base_list_push_back(&link_of(x->link)->receiving, &lx->on);
	nm_rail_xfer_ready(lossy->outer, x);
	return 0;
}

static int lossy_xfer_send(struct nm_xfer *x)
{
	struct lossy *lossy = x->link->rail->drv;
	struct lossy_link *l = link_of(x->link);
	struct lossy_x *lx = lossy_x(x);

	memcpy(&lx->number, x->peers.bytes, sizeof(lx->number));
	base_list_push_back(&l->sending, &lx->on);
	want(lossy, l);
	return 0;
}

/* --- at work --- */

/* How many more packets the core can be given. */
static int room(struct lossy *lossy, int budget)
{
	int n = 0;

	if (lossy->free == NULL)
		lossy->free = base_mpsc_take(&lossy->released);
	for (struct base_mpsc_node *f = lossy->free; f != NULL && n < budget;
	     f = f->next)
		n++;
	return n;
}

static bool lossy_poll(struct nm_rail *rail, int budget)
{
	struct lossy *lossy = rail->drv;
	bool moved =
		lossy->inner.driver->poll(&lossy->inner, room(lossy, budget));
	struct base_link *n = lossy->work.head.next, *next;

	for (; n != &lossy->work.head; n = next) {
		next = n->next;
		moved |= work(lossy, container_of(n, struct lossy_link, work));
	}
	return moved;
}

static bool lossy_is_busy(const struct nm_rail *rail)
{
	const struct lossy *lossy = rail->drv;

	return !base_list_is_empty(&lossy->work) ||
	       lossy->inner.driver->is_busy(&lossy->inner);
}

static int lossy_arm(struct nm_rail *rail)
{
	struct lossy *lossy = rail->drv;
	int rc = lossy->inner.driver->arm(&lossy->inner);

	return base_list_is_empty(&lossy->work) ? rc : -EAGAIN;
}

/* --- the driver --- */

static int lossy_join(struct nm_rail *rail, const void *addr, size_t len)
{
	struct lossy *lossy = rail->drv;

	if (lossy->inner.driver->join == NULL)
		return 0;
	return lossy->inner.driver->join(&lossy->inner, addr, len);
}

static bool lossy_reaches(const struct nm_rail *rail, int rank)
{
	const struct lossy *lossy = rail->drv;

	return lossy->inner.driver->reaches(&lossy->inner, rank);
}

static int lossy_connect(struct nm_link *link)
{
	struct lossy *lossy = link->rail->drv;
	struct nm_link *inner = inner_link(lossy, link_of(link));
	int rc = inner->conn != NULL ? 0 : lossy->inner.driver->connect(inner);

	if (rc == 0)
		link->conn = inner;
	return rc;
}

static void lossy_disconnect(struct nm_link *link)
{
	struct lossy *lossy = link->rail->drv;
	struct lossy_link *l = link_of(link);

	if (!l->gone)
		lossy->inner.driver->disconnect(inner_link(lossy, l));
}

static void lossy_dump(const struct nm_rail *rail)
{
	const struct lossy *lossy = rail->drv;

	base_dump("     lossy over %s: lose %ld", lossy->inner.driver->name,
		  lossy->lose);
	if (lossy->inner.driver->dump != NULL)
		lossy->inner.driver->dump(&lossy->inner);
}

const struct nm_driver nm_driver_lossy = {
	.name = "lossy",
	.caps = NM_CAP_RESENDS,
	.max_small = LOSSY_ROOM,
	.fill = LOSSY_ROOM,
	.rdv_threshold = 2048,
	.weight = 5,
	.open = nm_lossy_open,
	.close = nm_lossy_close,
	.join = lossy_join,
	.reaches = lossy_reaches,
	.connect = lossy_connect,
	.disconnect = lossy_disconnect,
	.give_up = lossy_give_up,
	.arrived = lossy_arrived,
	.post_send = lossy_post_send,
	.poll = lossy_poll,
	.arm = lossy_arm,
	.is_busy = lossy_is_busy,
	.release = lossy_release,
	.xfer_recv = lossy_xfer_recv,
	.xfer_send = lossy_xfer_send,
	.dump = lossy_dump,
};
