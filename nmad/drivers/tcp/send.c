/*
 * Outgoing frames. One frame is being sent at a time; when it has left, a
 * small packet goes before the next piece of a large transfer, and transfers
 * take turns. A system call may take any part of a frame: `done` says how far
 * it got, and the next call starts there.
 *
 * While no packet waits, a system call is offered a train: a piece and those of
 * its transfer that follow. A call for each piece would end in a segment of its
 * own with the few bytes by which a piece exceeds the largest one, and such a
 * segment costs both ends as much as a full one. What the socket does not take
 * is not begun: a packet that comes then goes before it.
 *
 * Pieces of scattered memory are copied together, into a block.
 */
#include "tcp.h"

#include <marcel/errno.h>
#include <string.h>
#include <sys/socket.h>

#include <base/diag.h>

enum {
	FLUSH_BYTES = 1 << 20, /* a call of flush sends about this much */
	TRAIN = FLUSH_BYTES / TCP_PIECE, /* pieces of one system call */
	SMALL_PIECE = 256,               /* of the user's memory */
};

int nm_tcp_gather(void *pieces, void *piece, size_t bytes)
{
	struct tcp_pieces *g = pieces;

	g->iov[g->n].iov_base = piece;
	g->iov[g->n].iov_len = bytes;
	g->bytes += bytes;
	return ++g->n == BASE_ARRAY_LEN(g->iov) - 1;
}

bool nm_tcp_is_scattered(const struct tcp_pieces *g)
{
	return g->n == BASE_ARRAY_LEN(g->iov) - 1 &&
	       g->bytes < g->n * (size_t)SMALL_PIECE;
}

static void put_head(unsigned char *to, unsigned kind, size_t length,
		     uint32_t window, uint32_t generation)
{
	struct tcp_head head = { (uint32_t)length, window, generation,
				 (uint8_t)kind };

	nm_tcp_head_put(to, &head);
}

static void begin(struct tcp_out *out, unsigned kind, size_t length,
		  uint32_t window, uint32_t generation)
{
	put_head(out->head, kind, length, window, generation);
	out->kind = kind;
	out->done = 0;
	out->total = TCP_HEAD + length;
}

static size_t piece_length(const struct tcp_x *tx, size_t at)
{
	size_t left = tx->length - at;

	return left < TCP_PIECE ? left : TCP_PIECE;
}

static void begin_piece(struct tcp_out *out, struct tcp_x *tx)
{
	size_t length = piece_length(tx, tx->sent);

	begin(out, TCP_PIECES, length, tx->window, tx->generation);
	out->x = nm_tcp_xfer(tx);
	out->at = tx->sent;
	tx->sent += length;
}

/* The next frame. False: nothing waits. */
static bool choose(struct tcp_peer *p)
{
	struct base_link *n;

	if (p->pkt != NULL) {
		p->pkt_out = p->pkt;
		p->pkt = NULL;
		begin(&p->out, TCP_PACKET, nm_pkt_length(p->pkt_out), 0, 0);
		return true;
	}
	n = base_list_take_front(&p->sending);
	if (n == NULL)
		return false;
	base_list_push_back(&p->sending, n);
	begin_piece(&p->out, (void *)n);
	return true;
}

/* What is left of the frame, as far as it fits. */
static void describe(struct tcp_peer *p, struct tcp_pieces *g)
{
	struct tcp_out *out = &p->out;
	size_t body = 0, length = out->total - TCP_HEAD;

	g->n = 0;
	g->bytes = 0;
	if (out->done < TCP_HEAD)
		nm_tcp_gather(g, out->head + out->done, TCP_HEAD - out->done);
	else
		body = out->done - TCP_HEAD;
	if (out->kind == TCP_PACKET) {
		int n = nm_pkt_iov(p->pkt_out, body, g->iov + g->n,
				   (int)BASE_ARRAY_LEN(g->iov) - (int)g->n);

		for (; n > 0; n--)
			g->bytes += g->iov[g->n++].iov_len;
	} else if (out->kind == TCP_PIECES) {
		nm_xfer_walk(out->x, out->at + body, length - body,
			     nm_tcp_gather, g);
	}
}

/* The same of a piece whose memory is scattered; NULL: there is no block. */
static struct tcp_block *copy(struct tcp *tcp, struct tcp_peer *p,
			      struct tcp_pieces *g)
{
	struct tcp_block *b = nm_tcp_block_get(tcp);
	struct tcp_out *out = &p->out;
	size_t body = 0, length = out->total - TCP_HEAD;

	if (b == NULL)
		return NULL;
	g->n = 0;
	g->bytes = 0;
	if (out->done < TCP_HEAD)
		nm_tcp_gather(g, out->head + out->done, TCP_HEAD - out->done);
	else
		body = out->done - TCP_HEAD;
	nm_xfer_copy_out(out->x, out->at + body, b->data, length - body);
	nm_tcp_gather(g, b->data, length - body);
	return b;
}

/*
 * Behind a piece, while no packet waits: the next pieces of its transfer. They
 * are begun only as far as the socket takes them, see advance(). True if the
 * transfer does not end here.
 */
static bool couple(const struct tcp_peer *p, struct tcp_pieces *g,
		   unsigned char heads[static TRAIN][TCP_HEAD])
{
	const struct tcp_out *out = &p->out;
	size_t whole = out->total - out->done, at;
	const struct tcp_x *tx;

	if (out->kind != TCP_PIECES || p->pkt != NULL)
		return false;
	tx = nm_tcp_x(out->x);
	at = tx->sent;
	for (int i = 1; i < TRAIN && at < tx->length; i++) {
		size_t length = piece_length(tx, at);

		if (g->bytes < whole || g->n > BASE_ARRAY_LEN(g->iov) - 3)
			return true;
		put_head(heads[i], TCP_PIECES, length, tx->window,
			 tx->generation);
		nm_tcp_gather(g, heads[i], TCP_HEAD);
		nm_xfer_walk(out->x, at, length, nm_tcp_gather, g);
		whole += TCP_HEAD + length;
		at += length;
	}
	return at < tx->length || g->bytes < whole;
}

/* The socket has taken so much: of a train, perhaps several frames. */
static void advance(struct tcp_out *out, size_t n)
{
	while (n > out->total - out->done) {
		n -= out->total - out->done;
		begin_piece(out, nm_tcp_x(out->x));
	}
	out->done += n;
}

/* The frame has left: tell whose it was. `posted`: the core waits for it. */
static void leave(struct tcp *tcp, struct tcp_peer *p, bool posted)
{
	struct tcp_out *out = &p->out;
	struct nm_pkt *pkt = p->pkt_out;
	unsigned kind = out->kind;

	out->kind = 0;
	if (kind == TCP_PACKET) {
		p->pkt_out = NULL;
		if (posted)
			nm_rail_sent(tcp->rail, pkt);
	} else if (kind == TCP_PIECES) {
		struct tcp_x *tx = nm_tcp_x(out->x);

		if (tx->sent == tx->length) {
			base_list_remove(&tx->link);
			nm_rail_xfer_done(tcp->rail, out->x, 0);
		}
	}
}

/*
 * The socket takes nothing more, now or ever. A broken one is left to the
 * reader, because what the peer sent before it died comes first.
 */
static ssize_t no_more(struct tcp *tcp, struct tcp_peer *p)
{
	p->blocked = true;
	if (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM) {
		p->broken = true;
		nm_tcp_want_read(tcp, p);
	}
	return 0;
}

/*
 * Send of the current frame, and of a train, what the socket takes. The number
 * of bytes. Where more follows, the kernel may wait for it to fill a segment.
 */
static ssize_t push(struct tcp *tcp, struct tcp_peer *p)
{
	unsigned char heads[TRAIN][TCP_HEAD];
	struct tcp_pieces g;
	struct msghdr msg = { .msg_iov = g.iov };
	int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
	struct tcp_block *copied = NULL;
	ssize_t n;

	describe(p, &g);
	if (p->out.kind == TCP_PIECES && nm_tcp_is_scattered(&g))
		copied = copy(tcp, p, &g);
	if (couple(p, &g, heads))
		flags |= MSG_MORE;
	msg.msg_iovlen = g.n;
	do {
		nm_rail_calls(tcp->rail, NM_CALL_SEND);
		n = sendmsg(p->sock.fd, &msg, flags);
	} while (n < 0 && errno == EINTR);
	if (copied != NULL)
		nm_tcp_block_put(tcp, copied);
	if (n < 0)
		return no_more(tcp, p);
	nm_tcp_alive_sent(tcp);
	advance(&p->out, (size_t)n);
	if ((size_t)n < g.bytes)
		p->blocked = true;
	return n;
}

/* As push(), for a small packet that has just begun: from one buffer. */
static void push_small(struct tcp *tcp, struct tcp_peer *p)
{
	unsigned char buf[TCP_HEAD + TCP_COPY];
	ssize_t n;

	memcpy(buf, p->out.head, TCP_HEAD);
	nm_pkt_copy(p->pkt_out, buf + TCP_HEAD);
	do {
		nm_rail_calls(tcp->rail, NM_CALL_SEND);
		n = send(p->sock.fd, buf, p->out.total,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0) {
		no_more(tcp, p);
		return;
	}
	nm_tcp_alive_sent(tcp);
	p->out.done += (size_t)n;
}

void nm_tcp_want_send(struct tcp *tcp, struct tcp_peer *p)
{
	if (!base_link_is_on(&p->on_send))
		base_list_push_back(&tcp->sending, &p->on_send);
}

int nm_tcp_post(struct tcp *tcp, struct tcp_peer *p, struct nm_pkt *pkt)
{
	base_assert(p->pkt == NULL && p->pkt_out == NULL);
	p->pkt = pkt;
	if (unlikely(p->state != TCP_OPEN || p->out.kind != 0 || p->blocked)) {
		nm_tcp_want_send(tcp, p);
		return NM_POSTED;
	}
	choose(p);
	if (p->out.total <= TCP_HEAD + TCP_COPY)
		push_small(tcp, p);
	else
		push(tcp, p);
	if (likely(p->out.done == p->out.total)) {
		leave(tcp, p, false);
		return NM_SENT;
	}
	nm_tcp_want_send(tcp, p);
	return NM_POSTED;
}

bool nm_tcp_flush(struct tcp *tcp, struct tcp_peer *p)
{
	size_t sent = 0;

	if (p->state != TCP_OPEN || p->broken)
		return false;
	p->blocked = false;
	while (sent < FLUSH_BYTES) {
		if (p->out.kind == 0 && !choose(p)) {
			base_list_remove(&p->on_send);
			break;
		}
		sent += (size_t)push(tcp, p);
		if (p->out.done == p->out.total)
			leave(tcp, p, true);
		else if (p->blocked)
			break;
	}
	return sent > 0;
}

/*
 * The answer of a receiver: its window, and how much it wants. It may have come
 * over another rail, so this may be the first that the connection is for.
 */
int nm_tcp_xfer_send(struct nm_xfer *x)
{
	struct tcp *tcp = x->link->rail->drv;
	struct tcp_peer *p = x->link->conn;
	struct tcp_x *tx = nm_tcp_x(x);
	struct tcp_head head;

	memset(tx, 0, sizeof(*tx));
	base_link_init(&tx->link);
	if (x->peers.length == TCP_TOKEN)
		nm_tcp_head_get(x->peers.bytes, &head);
	if (p->state >= TCP_LEFT) {
		nm_tcp_hang_up(tcp, p);
		return -ECONNRESET;
	}
	if (x->peers.length != TCP_TOKEN) {
		nm_tcp_hang_up(tcp, p);
		return -EPROTO;
	}
	memcpy(&tx->length, x->peers.bytes + TCP_HEAD, sizeof(tx->length));
	if (tx->length > x->length) {
		nm_tcp_hang_up(tcp, p);
		return -EPROTO;
	}
	tx->window = head.window;
	tx->generation = head.generation;
	base_list_push_back(&p->sending, &tx->link);
	nm_tcp_want_send(tcp, p);
	return 0;
}

/* Nothing else is on its way; if the socket is full, there is no goodbye. */
void nm_tcp_bye(struct tcp *tcp, struct tcp_peer *p)
{
	if (p->out.kind != 0)
		return;
	begin(&p->out, TCP_BYE, 0, 0, 0);
	push(tcp, p);
	p->out.kind = 0;
}
