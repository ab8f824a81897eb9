/*
 * Incoming frames. A socket is read into blocks, as much as there is by one
 * system call; packets are handed to the core where they lie, and a block is
 * free when the last of them has been released. The body of a piece is read
 * straight into the user's memory, but for what came along with its head, and
 * unless that memory is scattered.
 *
 *   block  | packet | packet | part of a frame |           |
 *                            parse             fill        TCP_BLOCK
 *
 * When packets or blocks are all in the core's hands, the socket is left alone
 * until some come back: the sender then feels the window close.
 */
#include "tcp.h"

#include <marcel/errno.h>
#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <base/diag.h>

enum {
	READ_BYTES = 65536, /* asked of a socket without large transfers */
	HEAD_BYTES = 512,   /* with them: little more than the next head */
	READS = 8,          /* system calls of one call of nm_tcp_read */
};

/* --- pools --- */

int nm_tcp_pools(struct tcp *tcp)
{
	tcp->nblocks = TCP_BLOCKS + (unsigned)tcp->info->size;
	/* Never touched, never there: most blocks are for many peers. */
	tcp->blocks = mmap(NULL, tcp->nblocks * sizeof(struct tcp_block),
			   PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	tcp->packets = calloc(TCP_PACKETS, sizeof(*tcp->packets));
	if (tcp->blocks == MAP_FAILED || tcp->packets == NULL)
		return -ENOMEM;
	base_mpsc_init(&tcp->released);
	base_mpsc_init(&tcp->blocks_released);
	for (unsigned i = TCP_PACKETS; i-- > 0;) {
		tcp->packets[i].free.next = tcp->stack;
		tcp->stack = &tcp->packets[i].free;
	}
	return 0;
}

/* A node from a stack that is filled from what others gave back, or NULL. */
static struct base_mpsc_node *pop(struct base_mpsc_node **stack,
				  struct base_mpsc *released)
{
	struct base_mpsc_node *n = *stack;

	if (unlikely(n == NULL)) {
		base_mpsc_for_each (back, base_mpsc_take(released)) {
			back->next = n;
			n = back;
		}
		if (n == NULL)
			return NULL;
	}
	*stack = n->next;
	return n;
}

struct tcp_block *nm_tcp_block_get(struct tcp *tcp)
{
	struct base_mpsc_node *n =
		pop(&tcp->block_stack, &tcp->blocks_released);
	struct tcp_block *b;

	if (unlikely(n == NULL) && tcp->nfresh < tcp->nblocks)
		n = &tcp->blocks[tcp->nfresh++].free;
	if (n == NULL)
		return NULL;
	b = container_of(n, struct tcp_block, free);
	store_relaxed(&b->refs, 1);
	return b;
}

void nm_tcp_block_put(struct tcp *tcp, struct tcp_block *b)
{
	b->free.next = tcp->block_stack;
	tcp->block_stack = &b->free;
}

void nm_tcp_release(struct nm_rail *rail, struct nm_pkt_in *in)
{
	struct tcp *tcp = rail->drv;
	struct tcp_pkt *pkt = container_of(in, struct tcp_pkt, in);
	struct tcp_block *b = in->drv;

	if (fetch_sub_acq_rel(&b->refs, 1) == 1) /* order(tcp-block) */
		base_mpsc_push(&tcp->blocks_released, &b->free);
	base_mpsc_push(&tcp->released, &pkt->free);
}

void nm_tcp_block_drop(struct tcp *tcp, struct tcp_peer *p)
{
	struct tcp_block *b = p->block;

	p->block = NULL;
	p->parse = p->fill = 0;
	if (b == NULL || fetch_sub_acq_rel(&b->refs, 1) != 1)
		return; /* order(tcp-block) */
	nm_tcp_block_put(tcp, b);
}

/* Room for `want` bytes from p->parse on. False: no block is free. */
static bool make_room(struct tcp *tcp, struct tcp_peer *p, uint32_t want)
{
	uint32_t have = p->fill - p->parse;
	struct tcp_block *b = p->block;

	if (b != NULL) {
		bool alone = load_acquire(&b->refs) == 1; /* order(tcp-block) */

		if (alone && (have == 0 || p->parse + want > TCP_BLOCK)) {
			memmove(b->data, b->data + p->parse, have);
			p->parse = 0;
			p->fill = have;
		}
		if (p->parse + want <= TCP_BLOCK)
			return true;
	}
	b = nm_tcp_block_get(tcp);
	if (b == NULL)
		return false;
	if (have > 0)
		memcpy(b->data, p->block->data + p->parse, have);
	nm_tcp_block_drop(tcp, p);
	p->block = b;
	p->fill = have;
	return true;
}

/* --- windows --- */

static bool open_window(struct tcp *tcp, struct tcp_peer *p, struct nm_xfer *x)
{
	struct tcp_head head = { 0 };
	uint64_t length = x->length;
	unsigned i = 0;

	if (p->nwindows == TCP_WINDOWS)
		return false;
	while (p->window[i].x != NULL)
		i++;
	p->nwindows++;
	p->window[i].x = x;
	p->window[i].got = 0;
	head.window = i;
	head.generation = ++p->window[i].generation;
	nm_tcp_head_put(x->mine.bytes, &head);
	memcpy(x->mine.bytes + TCP_HEAD, &length, sizeof(length));
	x->mine.length = TCP_TOKEN;
	nm_rail_xfer_ready(tcp->rail, x);
	return true;
}

int nm_tcp_xfer_recv(struct nm_xfer *x)
{
	struct tcp *tcp = x->link->rail->drv;
	struct tcp_peer *p = x->link->conn;
	struct tcp_x *tx = nm_tcp_x(x);

	memset(tx, 0, sizeof(*tx));
	base_link_init(&tx->link);
	if (p->state == TCP_CLOSED)
		return -ECONNRESET;
	if (!open_window(tcp, p, x))
		base_list_push_back(&p->waiting, &tx->link);
	return 0;
}

/* The body of a piece has come: perhaps the transfer is over. */
static void end_piece(struct tcp *tcp, struct tcp_peer *p)
{
	struct tcp_window *w = p->piece;
	struct nm_xfer *x = w->x;
	struct base_link *n;

	p->piece = NULL;
	if (w->got < x->length)
		return;
	w->x = NULL;
	p->nwindows--;
	nm_rail_xfer_done(tcp->rail, x, 0);
	n = base_list_take_front(&p->waiting);
	if (n != NULL)
		open_window(tcp, p, nm_tcp_xfer((void *)n));
}

/* --- understanding --- */

/* What of a piece's body lies in the block goes to the user's memory. */
static void copy_piece(struct tcp *tcp, struct tcp_peer *p)
{
	struct tcp_window *w = p->piece;
	size_t n = p->fill - p->parse;

	if (n > p->piece_left)
		n = p->piece_left;
	nm_xfer_copy_in(w->x, w->got, p->block->data + p->parse, n);
	p->parse += (uint32_t)n;
	p->piece_left -= n;
	w->got += n;
	if (p->piece_left == 0)
		end_piece(tcp, p);
}

static bool begin_piece(struct tcp_peer *p, const struct tcp_head *h)
{
	struct tcp_window *w = &p->window[h->window % TCP_WINDOWS];

	if (h->window >= TCP_WINDOWS || w->x == NULL ||
	    w->generation != h->generation || h->length > TCP_PIECE ||
	    h->length > w->x->length - w->got ||
	    (h->length == 0 && w->x->length > 0))
		return false;
	p->piece = w;
	p->piece_left = h->length;
	return true;
}

/* False: no packet is free. */
static bool take_packet(struct tcp *tcp, struct tcp_peer *p, uint32_t length)
{
	struct base_mpsc_node *n = pop(&tcp->stack, &tcp->released);
	struct tcp_pkt *pkt;

	if (n == NULL)
		return false;
	pkt = container_of(n, struct tcp_pkt, free);
	pkt->in.link = p->link;
	pkt->in.data = p->block->data + p->parse + TCP_HEAD;
	pkt->in.length = length;
	pkt->in.drv = p->block;
	fetch_add_relaxed(&p->block->refs, 1);
	p->parse += TCP_HEAD + length;
	nm_rail_recv(tcp->rail, &pkt->in);
	return true;
}

enum understood { NEED_MORE, NO_ROOM, NONSENSE, DONE };

/* One frame, or as much of it as has come. */
static enum understood one_frame(struct tcp *tcp, struct tcp_peer *p,
				 int *budget)
{
	struct tcp_head h;

	if (p->fill - p->parse < TCP_HEAD)
		return NEED_MORE;
	nm_tcp_head_get(p->block->data + p->parse, &h);
	switch (h.kind) {
	case TCP_PACKET:
		if (h.length > TCP_MAX_SMALL)
			return NONSENSE;
		if (p->fill - p->parse < TCP_HEAD + h.length)
			return make_room(tcp, p, TCP_HEAD + h.length)
				       ? NEED_MORE
				       : NO_ROOM;
		if (*budget == 0 || !take_packet(tcp, p, h.length))
			return NO_ROOM;
		--*budget;
		return DONE;
	case TCP_PIECES:
		if (!begin_piece(p, &h))
			return NONSENSE;
		p->parse += TCP_HEAD;
		copy_piece(tcp, p);
		return DONE;
	case TCP_BYE:
		if (h.length != 0)
			return NONSENSE;
		p->parse += TCP_HEAD;
		p->state = TCP_LEFT;
		return DONE;
	default:
		return NONSENSE;
	}
}

/* All frames that are there. False: stop reading for now. */
static bool understand(struct tcp *tcp, struct tcp_peer *p, int *budget,
		       bool *moved)
{
	while (p->block != NULL && p->piece == NULL) {
		switch (one_frame(tcp, p, budget)) {
		case NEED_MORE:
			return true;
		case NO_ROOM:
			return false;
		case NONSENSE:
			base_warn("nmad",
				  "tcp: rank %d has sent nonsense, closing",
				  p->link->rank);
			nm_tcp_dead(tcp, p, -EPROTO);
			*moved = true;
			return false;
		case DONE:
			*moved = true;
			if (p->state == TCP_CLOSED)
				return false;
		}
	}
	return true;
}

/* --- reading --- */

/* One system call. Bytes, 0 if the peer has closed, or -errno. */
static ssize_t read_some(struct tcp *tcp, struct tcp_peer *p, bool *all)
{
	uint32_t want = p->nwindows > 0 ? HEAD_BYTES : READ_BYTES;
	struct tcp_pieces g = { .n = 0, .bytes = 0 };
	bool copies = false;
	ssize_t n;
	size_t body;

	if (p->piece != NULL) {
		nm_xfer_walk(p->piece->x, p->piece->got, p->piece_left,
			     nm_tcp_gather, &g);
		copies = nm_tcp_is_scattered(&g);
	}
	if (copies) {
		g.n = 0;
		g.bytes = 0;
		want = READ_BYTES;
	}
	if (p->fill - p->parse >= TCP_HEAD) /* a packet that is on its way */
		want = TCP_BLOCK - p->fill;
	else if (!make_room(tcp, p, want))
		return -ENOBUFS;
	if (want > TCP_BLOCK - p->fill)
		want = TCP_BLOCK - p->fill;
	body = g.bytes;
	if (body == p->piece_left || p->piece == NULL || copies) {
		g.iov[g.n].iov_base = p->block->data + p->fill;
		g.iov[g.n++].iov_len = want;
		g.bytes += want;
	}
	do {
		nm_rail_calls(tcp->rail, NM_CALL_RECEIVE);
		n = g.n == 1 ? recv(p->sock.fd, g.iov[0].iov_base,
				    g.iov[0].iov_len, MSG_DONTWAIT)
			     : readv(p->sock.fd, g.iov, (int)g.n);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	*all = (size_t)n < g.bytes && !p->ended;
	if (p->piece != NULL && !copies) {
		if (body > (size_t)n)
			body = (size_t)n;
		p->piece->got += body;
		p->piece_left -= body;
		p->fill += (uint32_t)((size_t)n - body);
		if (p->piece_left == 0)
			end_piece(tcp, p);
	} else {
		p->fill += (uint32_t)n;
		if (copies)
			copy_piece(tcp, p);
	}
	return n;
}

void nm_tcp_want_read(struct tcp *tcp, struct tcp_peer *p)
{
	if (!base_link_is_on(&p->on_read))
		base_list_push_back(&tcp->reading, &p->on_read);
}

/* As nm_tcp_read(); *all: until the socket was empty, or is gone. */
static bool read_on(struct tcp *tcp, struct tcp_peer *p, int *budget, bool *all)
{
	bool moved = false;
	ssize_t n;

	for (int i = 0;; i++) {
		if (!understand(tcp, p, budget, &moved)) {
			*all = false;
			return moved;
		}
		if (*all || i == READS)
			return moved;
		n = read_some(tcp, p, all);
		if (n == -ENOBUFS)
			return moved;
		if (n == -EAGAIN && !p->broken) {
			*all = true;
			return moved;
		}
		if (n <= 0) { /* no more will come: a goodbye or a death */
			*all = true;
			nm_tcp_dead(tcp, p, n == 0 ? -ECONNRESET : (int)n);
			return true;
		}
		moved = true;
	}
}

bool nm_tcp_read(struct tcp *tcp, struct tcp_peer *p, int *budget)
{
	bool all = false;
	bool moved = read_on(tcp, p, budget, &all);

	if (p->state == TCP_CLOSED)
		return moved;
	if (!all)
		nm_tcp_want_read(tcp, p);
	else
		base_list_remove(&p->on_read);
	return moved;
}
