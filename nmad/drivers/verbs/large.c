/*
 * Large transfers. Each side says where its data are:
 *
 *   window 4 | generation 4 | length 8 | address 8 | key 4 | 0 4
 *
 * If both have them in one piece of memory that is registered, the adapters
 * move them, a few work requests at a time, between which small packets pass.
 * If the sender's was already when it offered, it says so, and the receiver
 * reads; the window in its answer is READ: nothing is left to be done. Else the
 * receiver opens a window, the sender writes, and the last work request says
 * that all is there. A key of 0 says that the receiver's cannot be registered;
 * then, or if the sender's cannot, it goes in pieces that are copied on both
 * sides, as small packets are.
 *
 * Memory that is not registered yet is left to the clerk, which tells when it
 * is: the transfer waits meanwhile, and nobody else.
 */
#include "verbs.h"

#include <marcel/errno.h>

enum {
	TOKEN = 32,
	READ = 0xffff,     /* in place of a window's number */
	PACKETS_FIRST = 8, /* credits that are left to small packets */
	PUSH = 16,         /* work requests of a turn */
};

struct token {
	uint32_t window, generation;
	uint64_t length, address;
	uint32_t key, zero;
};

_Static_assert(sizeof(struct token) == TOKEN, "token");

static void put_token(struct nm_xfer *x, uint32_t window, uint32_t generation)
{
	const struct verbs_x *vx = nm_verbs_x(x);
	struct token t = { htole32(window),
			   htole32(generation),
			   htole64(x->length),
			   0,
			   0,
			   0 };

	if (vx->reg != NULL) {
		t.address = htole64((uintptr_t)x->data.base + x->offset);
		t.key = htole32(vx->reg->mr->rkey);
	}
	memcpy(x->mine.bytes, &t, TOKEN);
	x->mine.length = TOKEN;
}

/* Where the peer's data are. False: nonsense. */
static bool get_token(struct nm_xfer *x)
{
	struct verbs_x *vx = nm_verbs_x(x);
	struct token t;

	if (x->peers.length != TOKEN)
		return false;
	memcpy(&t, x->peers.bytes, TOKEN);
	vx->length = le64toh(t.length);
	vx->window = le32toh(t.window);
	vx->generation = le32toh(t.generation);
	vx->remote = le64toh(t.address);
	vx->rkey = le32toh(t.key);
	return vx->length != 0 && vx->generation < VERBS_GENERATIONS &&
	       (vx->window < VERBS_WINDOWS || vx->window == READ);
}

/* --- memory --- */

static const void *memory_of(const struct nm_xfer *x)
{
	return (const char *)x->data.base + x->offset;
}

/* Have the clerk register it. False: too many wait for that. */
static bool ask_clerk(struct verbs *v, struct nm_xfer *x)
{
	struct verbs_order *o = v->free_orders;

	if (o == NULL)
		return false;
	v->free_orders = o->next;
	o->kind = VERBS_REGISTER;
	o->x = x;
	o->memory = memory_of(x);
	o->bytes = x->length;
	nm_verbs_x(x)->order = o;
	nm_verbs_order(v, o);
	return true;
}

/* True: it is known whether it is registered. False: the clerk will tell. */
static bool find_memory(struct verbs *v, struct nm_xfer *x)
{
	struct verbs_x *vx = nm_verbs_x(x);

	if (x->data.kind != NM_DATA_FLAT || vx->reg != NULL)
		return true;
	vx->reg = nm_verbs_reg_find(v->regs, memory_of(x), x->length);
	return vx->reg != NULL || !ask_clerk(v, x);
}

static void let_go(struct verbs *v, struct nm_xfer *x)
{
	struct verbs_x *vx = nm_verbs_x(x);

	if (vx->reg != NULL)
		nm_verbs_reg_put(v->regs, vx->reg);
	vx->reg = NULL;
	if (vx->order != NULL)
		vx->order->x = NULL;
	vx->order = NULL;
}

static void finish(struct verbs *v, struct nm_xfer *x)
{
	let_go(v, x);
	base_list_remove(&nm_verbs_x(x)->on);
	base_list_remove(&nm_verbs_x(x)->all);
	nm_rail_xfer_done(v->rail, x, 0);
}

/* What xfer_offer() has found stays. */
static void begin(struct verbs_peer *p, struct nm_xfer *x)
{
	struct verbs_x *vx = nm_verbs_x(x);
	struct verbs_reg *reg = vx->reg;

	memset(vx, 0, sizeof(*vx));
	vx->reg = reg;
	base_link_init(&vx->on);
	base_list_push_back(&p->xfers, &vx->all);
}

static void go_on(struct verbs *v, struct verbs_peer *p, struct nm_xfer *x)
{
	base_list_push_back(&p->sending, &nm_verbs_x(x)->on);
	if (!base_link_is_on(&p->on_send))
		base_list_push_back(&v->sending, &p->on_send);
	nm_verbs_push(v, p);
}

/* --- the receiver --- */

static void open_window(struct verbs *v, struct verbs_peer *p,
			struct nm_xfer *x)
{
	struct verbs_x *vx = nm_verbs_x(x);
	unsigned i = 0;

	if (p->nwindows == VERBS_WINDOWS) {
		base_list_push_back(&p->waiting, &vx->on);
		return;
	}
	while (p->window[i].x != NULL)
		i++;
	p->nwindows++;
	p->window[i].x = x;
	p->window[i].generation =
		(p->window[i].generation + 1) % VERBS_GENERATIONS;
	put_token(x, i, p->window[i].generation);
	nm_rail_xfer_ready(v->rail, x);
}

/* It is known whether our memory is registered. */
static void receive(struct verbs *v, struct verbs_peer *p, struct nm_xfer *x)
{
	struct verbs_x *vx = nm_verbs_x(x);

	if (vx->reads && vx->reg != NULL) {
		go_on(v, p, x);
		return;
	}
	vx->reads = false;
	open_window(v, p, x);
}

int nm_verbs_xfer_recv(struct nm_xfer *x)
{
	struct verbs *v = x->link->rail->drv;
	struct verbs_peer *p = x->link->conn;
	struct verbs_x *vx = nm_verbs_x(x);

	if (p->state >= VERBS_LEFT)
		return nm_verbs_refuse(v, p);
	begin(p, x);
	if (x->peers.length > 0 &&
	    (!get_token(x) || vx->length < x->length || vx->rkey == 0)) {
		nm_verbs_fail(v, p, -EPROTO);
		return 0;
	}
	vx->reads = x->peers.length > 0;
	vx->length = x->length;
	vx->receives = true;
	if (find_memory(v, x))
		receive(v, p, x);
	return 0;
}

/* The sender has nothing left to do. */
static void has_read(struct verbs *v, struct nm_xfer *x)
{
	put_token(x, READ, 0);
	nm_rail_xfer_ready(v->rail, x);
	finish(v, x);
}

static void close_window(struct verbs *v, struct verbs_peer *p,
			 struct verbs_window *w)
{
	struct nm_xfer *x = w->x;
	struct base_link *n;

	w->x = NULL;
	p->nwindows--;
	finish(v, x);
	n = base_list_take_front(&p->waiting);
	if (n != NULL)
		open_window(v, p, nm_verbs_xfer(n));
}

static struct verbs_window *window_of(struct verbs_peer *p, uint32_t number,
				      uint32_t generation)
{
	struct verbs_window *w = &p->window[number % VERBS_WINDOWS];

	return number < VERBS_WINDOWS && w->x != NULL &&
			       w->generation == generation
		       ? w
		       : NULL;
}

bool nm_verbs_window_full(struct verbs *v, struct verbs_peer *p,
			  uint32_t immediate)
{
	struct verbs_window *w = window_of(p, immediate % VERBS_WINDOWS,
					   immediate >> VERBS_WINDOW_BITS);

	if (w == NULL || nm_verbs_x(w->x)->reg == NULL ||
	    nm_verbs_x(w->x)->at != 0)
		return false;
	close_window(v, p, w);
	return true;
}

bool nm_verbs_piece(struct verbs *v, struct verbs_peer *p,
		    const unsigned char *body, size_t bytes)
{
	uint32_t number[2];
	struct verbs_window *w;
	struct verbs_x *vx;

	if (bytes <= VERBS_PIECE_HEAD)
		return false;
	memcpy(number, body, VERBS_PIECE_HEAD);
	bytes -= VERBS_PIECE_HEAD;
	w = window_of(p, le32toh(number[0]), le32toh(number[1]));
	if (w == NULL)
		return false;
	vx = nm_verbs_x(w->x);
	if (bytes > w->x->length - vx->at)
		return false;
	nm_xfer_copy_in(w->x, vx->at, body + VERBS_PIECE_HEAD, bytes);
	vx->at += bytes;
	if (vx->at == w->x->length)
		close_window(v, p, w);
	return true;
}

/* --- the sender --- */

/* The receiver may read what is registered already. Anyone. */
void nm_verbs_xfer_offer(struct nm_xfer *x)
{
	struct verbs *v = x->link->rail->drv;
	struct verbs_x *vx = nm_verbs_x(x);

	if (x->data.kind != NM_DATA_FLAT || !v->may_read)
		return;
	vx->reg = nm_verbs_reg_find(v->regs, memory_of(x), x->length);
	if (vx->reg != NULL)
		put_token(x, READ, 0);
}

void nm_verbs_xfer_withdraw(struct nm_xfer *x)
{
	if (nm_verbs_x(x)->reg != NULL && x->link->rail->drv != NULL)
		let_go(x->link->rail->drv, x);
}

int nm_verbs_xfer_send(struct nm_xfer *x)
{
	struct verbs *v = x->link->rail->drv;
	struct verbs_peer *p = x->link->conn;
	struct verbs_x *vx = nm_verbs_x(x);

	if (p->state >= VERBS_LEFT)
		return nm_verbs_refuse(v, p);
	begin(p, x);
	if (!get_token(x) || vx->length > x->length ||
	    (vx->window == READ && x->mine.length == 0)) {
		nm_verbs_fail(v, p, -EPROTO);
		return 0;
	}
	if (vx->window == READ)
		finish(v, x);
	else if (vx->rkey == 0 || find_memory(v, x))
		go_on(v, p, x);
	return 0;
}

static bool is_written(const struct verbs_x *vx)
{
	return vx->rkey != 0 && vx->reg != NULL;
}

/* A read or a write of it. 0: there is no room; 1; -errno. */
static int write_some(struct verbs *v, struct verbs_peer *p, struct nm_xfer *x)
{
	struct verbs_x *vx = nm_verbs_x(x);
	size_t left = vx->length - vx->at;
	size_t most = vx->reads ? v->max_read : v->max_write;
	bool last = left <= most;
	bool tells = last && !vx->reads;
	int rc;

	if (p->nwrites == VERBS_WRITES || (tells && p->credits == 0) ||
	    !nm_verbs_has_room(v, p, false))
		return 0;
	rc = nm_verbs_write(v, p, x, last ? left : most, tells);
	return rc < 0 ? rc : 1;
}

static int copy_some(struct verbs *v, struct verbs_peer *p, struct nm_xfer *x)
{
	struct verbs_x *vx = nm_verbs_x(x);
	size_t left = vx->length - vx->at;
	size_t bytes = left < VERBS_PIECE ? left : VERBS_PIECE;
	uint32_t number[2] = { htole32(vx->window), htole32(vx->generation) };
	unsigned char *body;
	int rc;

	if (p->credits <= PACKETS_FIRST || !nm_verbs_has_frame(v, p, false))
		return 0;
	body = nm_verbs_frame(v);
	memcpy(body, number, VERBS_PIECE_HEAD);
	nm_xfer_copy_out(x, vx->at, body + VERBS_PIECE_HEAD, bytes);
	rc = nm_verbs_frame_send(v, p, VERBS_PIECES, VERBS_PIECE_HEAD + bytes,
				 bytes == left ? x : NULL);
	if (rc < 0)
		return rc;
	vx->at += bytes;
	return 1;
}

/* Those that are granted take turns, a work request each. */
bool nm_verbs_push(struct verbs *v, struct verbs_peer *p)
{
	bool moved = false;
	struct base_link *n;

	if (p->state != VERBS_OPEN || p->is_dying)
		return false;
	for (int i = 0; i < PUSH && (n = base_list_first(&p->sending)) != NULL;
	     i++) {
		struct nm_xfer *x = nm_verbs_xfer(n);
		struct verbs_x *vx = nm_verbs_x(x);
		int rc = is_written(vx) ? write_some(v, p, x)
					: copy_some(v, p, x);

		if (rc < 0)
			nm_verbs_fail(v, p, rc);
		if (rc <= 0)
			return moved;
		moved = true;
		base_list_remove(n); /* if all has left, it is awaited */
		if (vx->at < vx->length)
			base_list_push_back(&p->sending, n);
	}
	if (base_list_is_empty(&p->sending))
		base_list_remove(&p->on_send);
	return moved;
}

void nm_verbs_written(struct verbs *v, struct verbs_peer *p, struct nm_xfer *x)
{
	struct verbs_x *vx = nm_verbs_x(x);

	if (--vx->flying != 0 || vx->at != vx->length)
		return;
	if (vx->reads)
		has_read(v, x);
	else
		finish(v, x);
}

void nm_verbs_sent(struct verbs *v, struct nm_xfer *x)
{
	finish(v, x);
}

/* --- both --- */

void nm_verbs_registered(struct verbs *v, struct verbs_order *o)
{
	struct nm_xfer *x = o->x;
	struct verbs_reg *reg = o->reg;
	struct verbs_x *vx;

	o->next = v->free_orders;
	v->free_orders = o;
	if (x == NULL) {
		if (reg != NULL)
			nm_verbs_reg_put(v->regs, reg);
		return;
	}
	vx = nm_verbs_x(x);
	vx->order = NULL;
	vx->reg = reg;
	if (vx->receives)
		receive(v, x->link->conn, x);
	else
		go_on(v, x->link->conn, x);
}

/* All that the core knows of; it ends them. */
void nm_verbs_forget(struct verbs *v, struct verbs_peer *p)
{
	struct base_link *n;

	while ((n = base_list_take_front(&p->xfers)) != NULL) {
		struct verbs_x *vx = container_of(n, struct verbs_x, all);

		let_go(v, container_of((void *)vx, struct nm_xfer, drv));
	}
	while (base_list_take_front(&p->sending) != NULL)
		;
	while (base_list_take_front(&p->waiting) != NULL)
		;
	for (unsigned i = 0; i < VERBS_WINDOWS; i++)
		p->window[i].x = NULL;
	p->nwindows = 0;
	for (uint32_t i = p->done; i != p->posted; i++)
		p->wr[i % VERBS_SQ].x = NULL;
}
