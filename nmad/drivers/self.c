/*
 * The network to oneself: the shortest example of a driver.
 *
 * A small packet is copied into one of a fixed number of buffers and comes
 * back by the next poll; without a free buffer the sender has to try again. A
 * large transfer copies straight between the two memories once both sides are
 * known: the token is the address of the sender's or receiver's side.
 */
#include "driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/diag.h>

#include "../core/rail.h"

enum {
	BUFFERS = 32,
	BUFFER_SIZE = 65536 + 256, /* as tcp's packets */
	PIECE = 64 * 1024, /* bytes that one poll copies of a transfer */
};

struct buffer {
	struct nm_pkt_in in;
	struct base_mpsc_node free;
	unsigned char data[BUFFER_SIZE];
};

struct self {
	/* o: the rail's owner  a: atomic */
	struct base_mpsc released;   /* a: buffers given back; order(mpsc) */
	struct base_mpsc_node *free; /* o: buffers */
	struct nm_chain full;        /* o: buffers to be delivered */
	struct base_list copies;     /* o: transfers of the sender's side */
	struct buffer buffers[BUFFERS];
};

/* What the driver keeps in a transfer; it is the sender's that is queued. */
struct copy {
	struct base_link on;
	struct nm_xfer *other;
	size_t done;
};

_Static_assert(sizeof(struct copy) <= sizeof(((struct nm_xfer *)0)->drv),
	       "a transfer has room for what the driver keeps");

static struct copy *copy_of(struct nm_xfer *x)
{
	return (struct copy *)x->drv;
}

static int self_open(struct nm_rail *rail, const struct nm_boot_info *info,
		     const char *spec)
{
	struct self *self = calloc(1, sizeof(*self));

	(void)info;
	(void)spec;
	if (self == NULL)
		return -ENOMEM;
	base_mpsc_init(&self->released);
	nm_chain_init(&self->full);
	base_list_init(&self->copies);
	for (int i = BUFFERS; i-- > 0;) {
		self->buffers[i].free.next = self->free;
		self->free = &self->buffers[i].free;
	}
	rail->drv = self;
	return 0;
}

static void self_close(struct nm_rail *rail)
{
	free(rail->drv);
}

static bool self_reaches(const struct nm_rail *rail, int rank)
{
	return rank == rail->rank;
}

static int self_connect(struct nm_link *link)
{
	link->conn = link->rail->drv;
	return 0;
}

static void self_disconnect(struct nm_link *link)
{
	(void)link;
}

static struct buffer *take_buffer(struct self *self)
{
	struct base_mpsc_node *n = self->free;

	if (n == NULL)
		n = base_mpsc_take(&self->released);
	if (n == NULL)
		return NULL;
	self->free = n->next;
	return container_of(n, struct buffer, free);
}

/*
 * The packet counts as sent when it is delivered, so that the rail is seen to
 * be at work until then.
 */
static int self_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	struct self *self = link->rail->drv;
	struct buffer *b = take_buffer(self);

	if (b == NULL)
		return -EAGAIN;
	b->in.link = link;
	b->in.data = b->data;
	b->in.length = nm_pkt_length(pkt);
	b->in.drv = pkt;
	nm_pkt_copy(pkt, b->data);
	nm_chain_append(&self->full, &b->in.event.node);
	return NM_POSTED;
}

static void self_release(struct nm_rail *rail, struct nm_pkt_in *in)
{
	struct self *self = rail->drv;
	struct buffer *b = container_of(in, struct buffer, in);

	base_mpsc_push(&self->released, &b->free); /* order(mpsc) */
}

static void self_xfer_offer(struct nm_xfer *x)
{
	memcpy(x->mine.bytes, &x, sizeof(x));
	x->mine.length = sizeof(x);
}

static int self_xfer_recv(struct nm_xfer *x)
{
	self_xfer_offer(x);
	nm_rail_xfer_ready(x->link->rail, x);
	return 0;
}

static int self_xfer_send(struct nm_xfer *x)
{
	struct self *self = x->link->rail->drv;
	struct copy *c = copy_of(x);

	base_check(x->peers.length == sizeof(c->other));
	memcpy(&c->other, x->peers.bytes, sizeof(c->other));
	c->done = 0;
	base_list_push_back(&self->copies, &c->on);
	return 0;
}

/* Puts the sender's pieces into the receiver's memory one after the other. */
struct pour {
	struct nm_xfer *to;
	size_t at;
};

static int pour(void *arg, void *piece, size_t bytes)
{
	struct pour *p = arg;

	nm_xfer_copy_in(p->to, p->at, piece, bytes);
	p->at += bytes;
	return 0;
}

static void copy_some(struct nm_rail *rail, struct copy *c)
{
	struct nm_xfer *from =
		container_of((uint64_t *)c, struct nm_xfer, drv[0]);
	struct nm_xfer *to = c->other;
	size_t left = from->length - c->done;
	size_t bytes = left < PIECE ? left : PIECE;
	struct pour p = { to, c->done };

	nm_xfer_walk(from, c->done, bytes, pour, &p);
	c->done += bytes;
	if (c->done < from->length)
		return;
	base_list_remove(&c->on);
	nm_rail_xfer_done(rail, to, 0);
	nm_rail_xfer_done(rail, from, 0);
}

static bool self_poll(struct nm_rail *rail, int budget)
{
	struct self *self = rail->drv;
	struct base_link *first = base_list_first(&self->copies);
	struct base_mpsc_node *n;
	bool moved = first != NULL;

	while (budget-- > 0 && (n = nm_chain_take(&self->full)) != NULL) {
		struct nm_pkt_in *in =
			container_of(n, struct nm_pkt_in, event.node);
		struct nm_pkt *pkt = in->drv;

		nm_rail_recv(rail, in);
		nm_rail_sent(rail, pkt);
		moved = true;
	}
	if (first != NULL)
		copy_some(rail, container_of(first, struct copy, on));
	return moved;
}

/* All that moves here is given by ourselves: there is no descriptor. */
static bool self_is_busy(const struct nm_rail *rail)
{
	const struct self *self = rail->drv;

	return self->full.first != NULL || !base_list_is_empty(&self->copies);
}

static int self_arm(struct nm_rail *rail)
{
	return self_is_busy(rail) ? -EAGAIN : 0;
}

const struct nm_driver nm_driver_self = {
	.name = "self",
	.caps = NM_CAP_SELF,
	.max_small = BUFFER_SIZE,
	.fill = BUFFER_SIZE,
	.rdv_threshold = 4096,
	.weight = 0,
	.open = self_open,
	.close = self_close,
	.reaches = self_reaches,
	.connect = self_connect,
	.disconnect = self_disconnect,
	.post_send = self_post_send,
	.poll = self_poll,
	.arm = self_arm,
	.is_busy = self_is_busy,
	.release = self_release,
	.xfer_offer = self_xfer_offer,
	.xfer_recv = self_xfer_recv,
	.xfer_send = self_xfer_send,
};
