/*
 * Large transfers. The receiver takes a control block of its segment for each
 * and says in the RTR how the data goes:
 *
 *   one copy    cut into blocks, claimed from one word by the receiver from
 *               the front (it pulls) and by the sender from the back (it
 *               pushes), whoever is inside the library. Either alone can
 *               finish; both together reach twice the speed. Who pulls needs
 *               the other's memory in one piece, and so does who pushes.
 *
 *        |R R R R|.........................|S S S|
 *         claim >> 32 blocks        (uint32_t)claim blocks
 *
 *   two copies  through a ring of chunks in the receiver's segment, where the
 *               kernel does not let us, where both sides are in pieces, or
 *               where the pieces are so small that the kernel would be slower.
 *
 * A side counts the blocks that it has copied; when both counts make up the
 * whole, both sides are done. A failed copy sets `error` and counts all the
 * same, and so does everything claimed after it, uncopied: the accounts close
 * without a special path, and nobody reports the end while the other may still
 * be inside the data.
 *
 * An announced transfer is one of one copy, whose control block the sender gets
 * before it has asked; if it does, it pushes while the receiver knows of
 * nothing, and the receiver joins it when it hears of the message.
 *
 * Who finds nothing left to copy waits for one thing only, that the account
 * closes, and is told of nothing else: a wake-up for each block would cost both
 * sides more than the block. Each side stores its count, then looks at the
 * other's, so that the account is seen to be closed by at least one of them,
 * order(shm-account); whoever sees it tells the other.
 */
#include "shm.h"

#include <errno.h>
#include <string.h>

#include <base/diag.h>

enum {
	BLOCK_MIN = 32768, /* half of it for less than two of them */
	BLOCK_MAX = 131072,
	PIECE_MIN = 256, /* mean bytes below which two copies are faster */
	PROBE = 32,      /* pieces looked at for that */
	CHUNKS_A_STEP = 4,
	BLOCKS_A_POLL = 4, /* or so many steps that move anything */
};

enum flags {
	OFFER_FLAT = 1, /* base is valid */
	OFFER_PUSH = 2, /* the sender is able to push */
	ANSWER_PIPE = 4,
	ANSWER_PUSH = 8,       /* base is valid: the sender may push */
	ANSWER_ANNOUNCED = 16, /* nobody has asked: length is the room */
};

/* What stands in the tokens; both sides run on the same machine. */
struct offer {
	uint64_t base, length;
	uint32_t flags, spare;
};

struct answer {
	uint64_t base, length;
	uint32_t flags, ctl, block, number; /* of the announcement */
};

/* nm_xfer.drv. The rail's owner's. */
struct shm_x {
	struct base_link link; /* on shm->active or ->waiting */
	struct shm_ctl *ctl;
	uint64_t remote; /* the peer's memory, 0: not to be reached */
	size_t length;
	uint32_t block, nblocks; /* bytes of a block or chunk; how many */
	uint32_t mine;           /* blocks or chunks that I have copied */
	uint32_t index;          /* of ctl */
	uint32_t number;         /* of the announcement; the receiver's */
	uint8_t sender, pipe;
	uint8_t waits; /* the last step found nothing to do */
} BASE_MAY_ALIAS;

_Static_assert(sizeof(struct shm_x) <= sizeof(((struct nm_xfer *)0)->drv),
	       "the driver's words of a transfer");
_Static_assert(sizeof(struct answer) <= NM_TOKEN_MAX, "token");

static struct shm_x *of(struct nm_xfer *x)
{
	return (struct shm_x *)(void *)x->drv;
}

static struct nm_xfer *xfer_of(struct shm_x *sx)
{
	return container_of((void *)sx, struct nm_xfer, drv);
}

static shm_count_t *count_of(const struct shm_x *sx, bool sender)
{
	return sender ? &sx->ctl->pushed : &sx->ctl->pulled;
}

/* The blocks that the other side has done with. */
static uint32_t others(const struct shm_x *sx)
{
	return load_seq(count_of(sx, !sx->sender)); /* order(shm-account) */
}

void nm_shm_large_init(struct shm *shm)
{
	struct shm_ctls *c = &shm->ctls;

	base_list_init(&shm->active);
	base_list_init(&shm->waiting[0]);
	base_list_init(&shm->waiting[1]);
	for (unsigned i = SHM_CTLS; i-- > SHM_PIPES;)
		c->plain[c->nplain++] = (uint16_t)i;
	for (unsigned i = SHM_PIPES; i-- > 0;)
		c->pipe[c->npipe++] = (uint16_t)i;
}

/* --- what the data looks like --- */

struct look {
	void *base;
	size_t bytes;
	unsigned n;
};

static int look_at(void *arg, void *piece, size_t bytes)
{
	struct look *l = arg;

	if (l->n == 0)
		l->base = piece;
	l->bytes += bytes;
	return ++l->n == PROBE;
}

/* The base of data in one piece, or 0. *coarse: worth a system call. */
static uint64_t flat_base(const struct nm_xfer *x, bool *coarse)
{
	struct look l = { NULL, 0, 0 };

	nm_data_walk(&x->data, x->offset, x->length, look_at, &l);
	*coarse = l.n > 0 && l.bytes / l.n >= PIECE_MIN;
	return l.n == 1 ? (uint64_t)(uintptr_t)l.base : 0;
}

/* --- control blocks --- */

static void ctl_put(struct shm_ctls *c, unsigned i)
{
	if (i < SHM_PIPES)
		c->pipe[c->npipe++] = (uint16_t)i;
	else
		c->plain[c->nplain++] = (uint16_t)i;
}

static bool has_left(struct shm *shm, unsigned i)
{
	return shm->ctls.sender[i]->gone ||
	       load_acquire(&shm->seg->ctl[i].left); /* order(shm-left) */
}

/* The sender will not come for it, or has left again. */
static bool is_void(struct shm *shm, unsigned i)
{
	uint8_t fate = load_relaxed(&shm->ctls.fate[i]);

	return fate == SHM_VOID || (fate == SHM_IN_VAIN && has_left(shm, i));
}

/* Take back those whose sender has left since, or that it cannot get. */
static void ctl_reap(struct shm *shm)
{
	struct shm_ctls *c = &shm->ctls;
	unsigned kept = 0;

	for (unsigned k = 0; k < c->nannounced; k++) {
		if (is_void(shm, c->announced[k]))
			ctl_put(c, c->announced[k]);
		else
			c->announced[kept++] = c->announced[k];
	}
	c->nannounced = kept;
	kept = 0;
	for (unsigned k = 0; k < c->nlinger; k++) {
		unsigned i = c->linger[k];

		if (has_left(shm, i))
			ctl_put(c, i);
		else
			c->linger[kept++] = (uint16_t)i;
	}
	c->nlinger = kept;
}

static int ctl_get(struct shm *shm, bool pipe)
{
	struct shm_ctls *c = &shm->ctls;

	if ((pipe ? c->npipe : c->nplain) == 0)
		ctl_reap(shm);
	if ((pipe ? c->npipe : c->nplain) == 0)
		return -1;
	return pipe ? c->pipe[--c->npipe] : c->plain[--c->nplain];
}

/* --- the end --- */

/*
 * The other side may wait for what has just been stored: but who has not heard
 * of an announced transfer does not, unless it says so.
 */
static void tell(struct shm *shm, struct shm_x *sx)
{
	struct nm_xfer *x = xfer_of(sx);

	if (sx->sender && x->awaited != NULL && !nm_awaited_ask(x->awaited))
		return;
	nm_shm_bell_tell(shm, x->link->conn);
}

/* The side's last act on a transfer; x is the core's from here. */
static void finish(struct shm *shm, struct shm_x *sx)
{
	struct nm_xfer *x = xfer_of(sx);
	struct shm_ctls *c = &shm->ctls;
	int status = -(int)load_relaxed(&sx->ctl->error);

	base_list_remove(&sx->link);
	if (sx->sender)
		store_release(&sx->ctl->left, 1); /* order(shm-left) */
	else
		c->linger[c->nlinger++] = (uint16_t)sx->index;
	tell(shm, sx);
	nm_rail_xfer_done(shm->rail, x, status);
}

/* How a transfer with a dead peer ends: its account may be closed. */
static int end_of(const struct shm_x *sx, int error)
{
	if (sx->ctl == NULL || sx->pipe || sx->mine + others(sx) < sx->nblocks)
		return error;
	return -(int)load_relaxed(&sx->ctl->error);
}

/*
 * Let go of the transfers with a peer; report them if error is not 0. A peer
 * that lives may still write to a control block: it lingers.
 */
static void drop_list(struct shm *shm, struct base_list *list,
		      struct shm_peer *p, int error)
{
	struct base_list keep;
	struct base_link *n;

	base_list_init(&keep);
	while ((n = base_list_take_front(list)) != NULL) {
		struct shm_x *sx = (void *)n;
		struct nm_xfer *x = xfer_of(sx);

		if (x->link->conn != p) {
			base_list_push_back(&keep, n);
			continue;
		}
		if (!sx->sender && sx->ctl != NULL)
			shm->ctls.linger[shm->ctls.nlinger++] =
				(uint16_t)sx->index;
		if (error != 0)
			nm_rail_xfer_done(shm->rail, x, end_of(sx, error));
	}
	base_list_splice_back(list, &keep);
}

void nm_shm_large_drop(struct shm *shm, struct shm_peer *p, int error)
{
	drop_list(shm, &shm->active, p, error);
	drop_list(shm, &shm->waiting[0], p, error);
	drop_list(shm, &shm->waiting[1], p, error);
}

/* --- starting --- */

/* Also for who does not own the rail: link->conn is its owner's. */
static struct shm_peer *peer_of(const struct nm_xfer *x)
{
	struct shm *shm = x->link->rail->drv;

	return &shm->all[shm->indices[x->link->rank]];
}

void nm_shm_large_offer(struct nm_xfer *x)
{
	const struct shm_peer *p = peer_of(x);
	struct offer o = { 0, x->length, 0, 0 };
	bool coarse, cma = nm_shm_has_cma(p); /* not, if it is not used */

	o.base = flat_base(x, &coarse);
	o.flags = (o.base ? OFFER_FLAT : 0) | (cma && coarse ? OFFER_PUSH : 0);
	memcpy(x->mine.bytes, &o, sizeof(o));
	x->mine.length = sizeof(o);
}

/* The transfer gets this control block. */
static void begin(struct shm *shm, struct nm_xfer *x, int i)
{
	struct shm_x *sx = of(x);
	struct shm_ctl *ctl;

	shm->ctls.sender[i] = x->link->conn;
	sx->index = (uint32_t)i;
	sx->ctl = ctl = &shm->seg->ctl[i];
	store_relaxed(&ctl->claim, 0);
	store_relaxed(&ctl->error, 0);
	store_relaxed(&ctl->pulled, 0);
	store_relaxed(&ctl->head, 0);
	store_relaxed(&ctl->pushed, 0);
	store_relaxed(&ctl->tail, 0);
	store_relaxed(&ctl->left, 0);
	store_relaxed(&ctl->awaited.is, 0);
}

/* A control block for the transfer, and the answer. False: none is free. */
static bool start(struct shm *shm, struct nm_xfer *x)
{
	struct shm_x *sx = of(x);
	struct answer a = { 0 };
	int i = ctl_get(shm, sx->pipe);

	if (i < 0)
		return false;
	begin(shm, x, i);
	a.ctl = sx->index;
	a.length = sx->length;
	a.block = sx->block;
	if (sx->pipe) {
		a.flags = ANSWER_PIPE;
	} else {
		bool coarse;

		a.base = flat_base(x, &coarse);
		a.flags = a.base ? ANSWER_PUSH : 0;
	}
	memcpy(x->mine.bytes, &a, sizeof(a));
	x->mine.length = sizeof(a);
	base_list_push_back(&shm->active, &sx->link);
	nm_rail_xfer_ready(shm->rail, x);
	return true;
}

static void cut(struct shm_x *sx)
{
	size_t block = SHM_CHUNK;

	if (!sx->pipe) {
		block = (sx->length / 8 + 4095) & ~(size_t)4095;
		if (block < BLOCK_MIN) /* both sides can copy at once */
			block = sx->length / 2 < BLOCK_MIN ? BLOCK_MIN / 2
							   : BLOCK_MIN;
		if (block > BLOCK_MAX)
			block = BLOCK_MAX;
	}
	sx->block = (uint32_t)block;
	sx->nblocks = (uint32_t)((sx->length + block - 1) / block);
}

/* --- an announced one --- */

/* The other half of the blocks is for transfers that have met already. */
int nm_shm_large_announce(struct nm_xfer *x)
{
	struct shm *shm = x->link->rail->drv;
	struct shm_peer *p = x->link->conn;
	struct shm_ctls *c = &shm->ctls;
	struct shm_x *sx = of(x);
	struct answer a = { 0 };
	bool coarse;

	if (p->gone || !nm_shm_has_cma(p))
		return -EAGAIN;
	if (c->nplain <= SHM_CTLS / 2)
		ctl_reap(shm);
	if (c->nplain <= SHM_CTLS / 2)
		return -EAGAIN;
	memset(sx, 0, sizeof(*sx));
	begin(shm, x, ctl_get(shm, false));
	c->announced[c->nannounced++] = (uint16_t)sx->index;
	store_relaxed(&c->fate[sx->index], SHM_AWAITED);
	sx->number =
		(uint32_t)(load_relaxed(&sx->ctl->announced) / SHM_STATES) + 1;
	store_relaxed(&sx->ctl->announced,
		      (uint64_t)sx->number * SHM_STATES + SHM_OPEN);
	a.base = flat_base(x, &coarse);
	a.length = x->length;
	a.flags = ANSWER_PUSH | ANSWER_ANNOUNCED;
	a.ctl = sx->index;
	a.number = sx->number;
	memcpy(x->mine.bytes, &a, sizeof(a));
	x->mine.length = sizeof(a);
	x->awaited = &sx->ctl->awaited;
	return 0;
}

static bool change(struct shm_ctl *ctl, uint32_t number, unsigned to)
{
	uint64_t word = (uint64_t)number * SHM_STATES;
	uint64_t open = word + SHM_OPEN;

	return cas_relaxed(&ctl->announced, &open, word + to);
}

static bool is_announced(const struct answer *a)
{
	return a->flags == (ANSWER_PUSH | ANSWER_ANNOUNCED) &&
	       a->ctl >= SHM_PIPES && a->ctl < SHM_CTLS;
}

int nm_shm_large_take(struct nm_xfer *x)
{
	struct shm_peer *p = peer_of(x);
	struct answer a;
	bool coarse;

	if (x->peers.length != sizeof(a))
		return -EPROTO;
	memcpy(&a, x->peers.bytes, sizeof(a));
	if (!is_announced(&a) || a.length < x->length)
		return -EPROTO;
	flat_base(x, &coarse);
	if (!nm_shm_has_cma(p) || !coarse)
		return -EINVAL;
	x->awaited = &p->seg->ctl[a.ctl].awaited;
	return change(&p->seg->ctl[a.ctl], a.number, SHM_TAKEN) ? 0
								: -ECANCELED;
}

int nm_shm_large_recall(struct nm_xfer *x, bool for_good)
{
	struct shm *shm = x->link->rail->drv;
	struct shm_x *sx = of(x);
	bool done = change(sx->ctl, sx->number, SHM_RECALLED);

	if (!done && !for_good)
		return -EALREADY;
	/* Last: the block may be another's from here on. */
	store_relaxed(&shm->ctls.fate[sx->index],
		      done ? SHM_VOID : SHM_IN_VAIN);
	return 0;
}

static void leave_announced(struct shm_ctls *c, unsigned index)
{
	unsigned k = 0;

	while (c->announced[k] != index)
		k++;
	c->announced[k] = c->announced[--c->nannounced];
}

/* The message has come that took it. All of it may be here already. */
int nm_shm_large_meet(struct nm_xfer *x)
{
	struct shm *shm = x->link->rail->drv;
	struct shm_peer *p = x->link->conn;
	bool dead = p->gone || x->link->error != 0;
	struct shm_x *sx = of(x);
	struct offer o;
	bool coarse;

	memcpy(&o, x->peers.bytes, sizeof(o));
	if (x->peers.length != sizeof(o) || o.length != x->length) {
		nm_shm_large_recall(x, true);
		nm_shm_large_drop(shm, p, 0);
		return -EPROTO;
	}
	sx->length = x->length;
	cut(sx);
	if (dead && others(sx) < sx->nblocks) {
		nm_shm_large_recall(x, true);
		nm_shm_large_drop(shm, p, 0);
		return -ECONNRESET;
	}
	leave_announced(&shm->ctls, sx->index);
	nm_awaited_set(x->awaited); /* we look at it from now on */
	base_list_push_back(&shm->active, &sx->link);
	flat_base(x, &coarse);
	if (nm_shm_has_cma(p) && coarse && (o.flags & OFFER_FLAT))
		sx->remote = o.base;
	if (dead)
		finish(shm, sx);
	return 0;
}

/* --- both sides have been told --- */

int nm_shm_large_recv(struct nm_xfer *x)
{
	struct shm *shm = x->link->rail->drv;
	struct shm_peer *p = x->link->conn;
	struct shm_x *sx = of(x);
	struct offer o;
	bool coarse, pull, push;
	uint64_t base;

	if (unlikely(p->gone || x->peers.length != sizeof(o))) {
		nm_shm_large_drop(shm, p, 0);
		return p->gone ? -ECONNRESET : -EPROTO;
	}
	memcpy(&o, x->peers.bytes, sizeof(o));
	memset(sx, 0, sizeof(*sx));
	sx->length = x->length < o.length ? x->length : o.length;
	base = flat_base(x, &coarse);
	pull = nm_shm_has_cma(p) && coarse && (o.flags & OFFER_FLAT);
	push = base != 0 && (o.flags & OFFER_PUSH);
	sx->pipe = !pull && !push;
	sx->remote = pull ? o.base : 0;
	cut(sx);
	if (!base_list_is_empty(&shm->waiting[sx->pipe]) || !start(shm, x))
		base_list_push_back(&shm->waiting[sx->pipe], &sx->link);
	return 0;
}

/* Whether an answer can be true for what was offered. */
static bool is_sound(const struct nm_xfer *x, const struct answer *a)
{
	if (a->flags & ANSWER_ANNOUNCED)
		return is_announced(a);
	if (a->ctl >= SHM_CTLS || a->length > x->length || a->block == 0)
		return false;
	return !(a->flags & ANSWER_PIPE) ||
	       (a->ctl < SHM_PIPES && a->block == SHM_CHUNK);
}

int nm_shm_large_send(struct nm_xfer *x)
{
	struct shm *shm = x->link->rail->drv;
	struct shm_peer *p = x->link->conn;
	struct shm_x *sx = of(x);
	struct answer a = { 0 };
	struct offer o;

	if (x->peers.length == sizeof(a))
		memcpy(&a, x->peers.bytes, sizeof(a));
	memcpy(&o, x->mine.bytes, sizeof(o));
	if (unlikely(p->gone || !is_sound(x, &a))) {
		nm_shm_large_drop(shm, p, 0);
		return p->gone ? -ECONNRESET : -EPROTO;
	}
	memset(sx, 0, sizeof(*sx));
	sx->sender = 1;
	sx->index = a.ctl;
	if (a.flags & ANSWER_ANNOUNCED) {
		sx->length = x->length;
		cut(sx);
	} else {
		sx->length = a.length;
		sx->pipe = (a.flags & ANSWER_PIPE) != 0;
		sx->block = a.block;
		sx->nblocks = (uint32_t)((a.length + a.block - 1) / a.block);
	}
	sx->ctl = &p->seg->ctl[a.ctl];
	if ((a.flags & ANSWER_PUSH) && (o.flags & OFFER_PUSH))
		sx->remote = a.base;
	base_list_push_back(&shm->active, &sx->link);
	return 0;
}

/* --- moving --- */

/*
 * Take blocks: the receiver from the front, the sender from the back; how many,
 * and the first. Half of what nobody has, since the kernel takes as long to be
 * called as to copy 16 KB: who is alone calls it seldom, and whoever joins him
 * finds enough to do. That is so as well if all is taken of each of several.
 */
static uint32_t claim(const struct shm *shm, struct shm_x *sx, unsigned most,
		      uint32_t *first)
{
	uint64_t word = load_relaxed(&sx->ctl->claim);
	uint32_t front, back, n;

	do {
		front = (uint32_t)(word >> 32);
		back = (uint32_t)word;
		if (front >= sx->nblocks || back >= sx->nblocks - front)
			return 0;
		n = sx->nblocks - front - back;
		if (!shm->several)
			n = (n + 1) / 2;
		if (n > most)
			n = most;
		*first = sx->sender ? sx->nblocks - back - n : front;
	} while (
		!cas_weak_relaxed(&sx->ctl->claim, &word,
				  word + (sx->sender ? n : (uint64_t)n << 32)));
	return n;
}

static void copy_blocks(struct shm *shm, struct shm_x *sx, uint32_t first,
			uint32_t n)
{
	size_t offset = (size_t)first * sx->block;
	size_t length = (size_t)n * sx->block;
	uint32_t none = 0;
	int rc;

	if (length > sx->length - offset)
		length = sx->length - offset;
	if (load_relaxed(&sx->ctl->error) == 0) {
		rc = nm_shm_cma_move(xfer_of(sx), offset, length, sx->remote,
				     sx->sender);
		if (rc < 0)
			cas_relaxed(&sx->ctl->error, &none, (uint32_t)-rc);
		if (rc == -ESRCH)
			nm_shm_live_look(shm, true);
	}
	sx->mine += n;
	/* What was written, and that no more is read. */
	store_seq(count_of(sx, sx->sender), sx->mine); /* order(shm-account) */
}

static unsigned step_blocks(struct shm *shm, struct shm_x *sx, unsigned most)
{
	uint32_t first, n = sx->remote != 0 ? claim(shm, sx, most, &first) : 0;

	if (n > 0)
		copy_blocks(shm, sx, first, n);
	if (sx->mine + others(sx) < sx->nblocks)
		return n;
	finish(shm, sx);
	return n > 0 ? n : 1;
}

static size_t chunk_bytes(const struct shm_x *sx, uint32_t i)
{
	size_t rest = sx->length - (size_t)i * SHM_CHUNK;

	return rest < SHM_CHUNK ? rest : SHM_CHUNK;
}

static bool step_fill(struct shm *shm, struct shm_x *sx)
{
	struct nm_xfer *x = xfer_of(sx);
	struct shm_peer *p = x->link->conn;
	uint32_t head = load_acquire(&sx->ctl->head); /* order(shm-head) */
	uint32_t n = 0;

	while (n < CHUNKS_A_STEP && sx->mine < sx->nblocks &&
	       sx->mine - head < SHM_DEPTH) {
		uint32_t i = sx->mine;

		nm_xfer_copy_out(x, (size_t)i * SHM_CHUNK,
				 p->seg->chunk[sx->index][i % SHM_DEPTH],
				 chunk_bytes(sx, i));
		sx->mine++;
		n++;
		if (sx->mine == sx->nblocks)
			break;
		store_release(&sx->ctl->tail, sx->mine); /* order(shm-tail) */
	}
	if (sx->mine < sx->nblocks) {
		if (n > 0)
			tell(shm, sx);
		return n > 0;
	}
	/* With the last chunk the block is the receiver's alone. */
	base_list_remove(&sx->link);
	store_relaxed(&sx->ctl->left, 1);
	store_release(&sx->ctl->tail, sx->mine); /* order(shm-tail) */
	nm_shm_bell_tell(shm, p);
	nm_rail_xfer_done(shm->rail, x, 0);
	return true;
}

static bool step_empty(struct shm *shm, struct shm_x *sx)
{
	struct nm_xfer *x = xfer_of(sx);
	uint32_t tail = load_acquire(&sx->ctl->tail); /* order(shm-tail) */
	uint32_t n = 0;

	while (n < CHUNKS_A_STEP && sx->mine < sx->nblocks &&
	       sx->mine != tail) {
		uint32_t i = sx->mine++;

		nm_xfer_copy_in(x, (size_t)i * SHM_CHUNK,
				shm->seg->chunk[sx->index][i % SHM_DEPTH],
				chunk_bytes(sx, i));
		store_release(&sx->ctl->head, sx->mine); /* order(shm-head) */
		n++;
	}
	if (sx->mine < sx->nblocks) {
		if (n > 0)
			tell(shm, sx);
		return n > 0;
	}
	finish(shm, sx);
	return true;
}

/* How much it has moved, of so many blocks; if nothing it is on its list. */
static unsigned step(struct shm *shm, struct shm_x *sx, unsigned most)
{
	unsigned moved;

	sx->waits = 0;
	if (!sx->pipe)
		moved = step_blocks(shm, sx, most);
	else
		moved = sx->sender ? step_fill(shm, sx) : step_empty(shm, sx);
	if (moved == 0)
		sx->waits = 1;
	return moved;
}

/* Whether a step would move it; the step looks again. */
static bool may_move(const struct shm_x *sx)
{
	struct shm_ctl *ctl = sx->ctl;
	uint64_t word = load_relaxed(&ctl->claim);

	if (sx->pipe && sx->sender)
		return sx->mine - load_relaxed(&ctl->head) < SHM_DEPTH;
	if (sx->pipe)
		return sx->mine != load_relaxed(&ctl->tail);
	if (sx->remote != 0 &&
	    (uint32_t)(word >> 32) + (uint32_t)word < sx->nblocks)
		return true;
	return sx->mine + others(sx) >= sx->nblocks;
}

bool nm_shm_large_is_busy(const struct shm *shm)
{
	base_list_for_each (n, &shm->active)
		if (!((const struct shm_x *)(const void *)n)->waits)
			return true;
	return false;
}

bool nm_shm_large_may_move(struct shm *shm)
{
	base_list_for_each (n, &shm->active)
		if (may_move((void *)n))
			return true;
	for (int pipe = 0; pipe < 2; pipe++) {
		if (base_list_is_empty(&shm->waiting[pipe]))
			continue;
		ctl_reap(shm);
		if ((pipe ? shm->ctls.npipe : shm->ctls.nplain) > 0)
			return true;
	}
	return false;
}

static bool several_move(const struct shm *shm)
{
	unsigned n = 0;

	base_list_for_each (l, &shm->active)
		if (!((const struct shm_x *)(const void *)l)->waits && n++ > 0)
			return true;
	return false;
}

/*
 * One step of each, but only so many that copy: the next call goes on with
 * those that had to wait. An upcall may add transfers at the end.
 */
bool nm_shm_large_poll(struct shm *shm)
{
	struct base_list batch;
	struct base_link *n;
	unsigned moved = 0;

	shm->several = several_move(shm);
	base_list_init(&batch);
	base_list_splice_back(&batch, &shm->active);
	while (moved < BLOCKS_A_POLL &&
	       (n = base_list_take_front(&batch)) != NULL) {
		base_list_push_back(&shm->active, n);
		moved += step(shm, (void *)n, BLOCKS_A_POLL - moved);
	}
	base_list_splice_back(&batch, &shm->active);
	base_list_splice_back(&shm->active, &batch);
	for (int pipe = 0; pipe < 2; pipe++) {
		while ((n = base_list_take_front(&shm->waiting[pipe]))) {
			if (!start(shm, xfer_of((void *)n))) {
				base_list_push_front(&shm->waiting[pipe], n);
				break;
			}
			moved++;
		}
	}
	return moved > 0;
}
