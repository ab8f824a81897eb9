/*
 * The driver for processes of one host that share memory: opening, small and
 * medium packets, polling. Large transfers are in large.c, deaths in live.c.
 *
 * Everything is found by looking at one word: the flag of the next slot. What
 * costs more (deaths) is looked at every few polls and then at most once a
 * millisecond.
 */
#include "shm.h"

#include <marcel/errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include <base/diag.h>

#include "../../boot/boot.h"

enum {
	RDV_THRESHOLD = 8192, /* where one copy becomes faster than two */
	POLLS_A_LOOK = 64,    /* a power of two */
	WARM = 5120,          /* longer packets are written faster where it
			       * is cold */
	BACKS_A_LINE = BASE_CACHE_LINE / sizeof(uint32_t),
	/* Naps, at most. The first is so long that the watcher takes what comes
	 * after it for rare, and has nobody poll.
	 */
	DEAF_NS = 2000000,
	BLIND_NS = 20000000,
};

static const char *const segments[] = { "memfd", "file", NULL };

struct base_option nm_shm_options[SHM_NOPTS] = {
	[SHM_OPT_CMA] = { "NMAD_SHM_CMA", BASE_OPTION_BOOL, "1", 0, 1, NULL,
			  "copy large data once, through the kernel" },
	[SHM_OPT_SEGMENT] = { "NMAD_SHM_SEGMENT", BASE_OPTION_CHOICE, "memfd",
			      0, 0, segments,
			      "where shared memory comes from" },
};

static const struct base_option_table options =
	BASE_OPTION_TABLE("nmad", nm_shm_options);

/* --- sending --- */

/* Whether I may use a buffer: no peer holds it, or it came back. */
static bool buf_is_back(struct shm *shm, unsigned i)
{
	struct shm_lending *l = &shm->lending;
	uint32_t back;

	if (l->holder[i] == NULL)
		return true;
	back = load_acquire(&shm->seg->back[i]); /* order(shm-buf) */
	if (back != l->number[i])
		return false;
	l->holder[i]->nbufs--;
	l->holder[i] = NULL;
	l->nlent--;
	return true;
}

/* The peer has its share. */
static bool has_share(const struct shm_lending *l, const struct shm_peer *p)
{
	return p->nbufs >= SHM_BUFS - l->nlent;
}

/* Look at all whose words share this one's line. */
static void bufs_look(struct shm *shm, unsigned i)
{
	unsigned end = (i | (BACKS_A_LINE - 1)) + 1;

	for (i = end - BACKS_A_LINE; i < end; i++)
		buf_is_back(shm, i);
}

/* Out of turn: somebody has his share, or holds the next one for long. */
static BASE_NOINLINE int buf_seek(struct shm *shm, const struct shm_peer *p)
{
	const struct shm_lending *l = &shm->lending;

	for (unsigned i = 0; i < SHM_BUFS; i += BACKS_A_LINE)
		bufs_look(shm, i);
	if (has_share(l, p))
		return -1;
	for (unsigned n = 0; n < SHM_BUFS; n++) {
		unsigned i = (l->next + n) % SHM_BUFS;

		if (l->holder[i] == NULL)
			return (int)i;
	}
	return -1;
}

/* A buffer of mine for this peer, or -1. See struct shm_lending. */
static int buf_get(struct shm *shm, const struct shm_peer *p, size_t length)
{
	const struct shm_lending *l = &shm->lending;
	unsigned next = l->next, last = (next - 1) % SHM_BUFS;

	if (length <= WARM && shm->rx.head != l->heard &&
	    buf_is_back(shm, last) && !has_share(l, p))
		return (int)last;
	if (l->holder[next] != NULL)
		bufs_look(shm, next);
	if (likely(l->holder[next] == NULL && !has_share(l, p)))
		return (int)next;
	return buf_seek(shm, p);
}

/* A packet has found no room there, for want of a buffer perhaps; or some. */
static BASE_COLD int is_stuck(struct shm *shm, struct shm_peer *p, bool stuck,
			      bool no_buf)
{
	shm->nstuck += (unsigned)stuck - (unsigned)p->stuck;
	/* The notes stay: another may wait for what this one has. */
	p->said &= stuck && p->stuck && no_buf <= p->no_buf;
	p->stuck = stuck;
	p->no_buf = no_buf;
	return -EAGAIN;
}

/* The slot is written: give it to the peer, and wake it if it sleeps. */
static void fill_slot(struct shm *shm, struct shm_peer *p, uint64_t t,
		      unsigned kind, size_t length, const struct nm_pkt *pkt)
{
	struct nm_awaited *awaited = nm_pkt_awaited(pkt);

	shm_ring_fill(&p->tx, t, kind, (unsigned)length);
	if (likely(awaited == NULL) || nm_awaited_ask(awaited) ||
	    shm_ring_is_followed(&p->tx, t))
		nm_shm_bell_tell(shm, p);
	if (unlikely(p->stuck))
		is_stuck(shm, p, false, false);
}

static int post_medium(struct shm *shm, struct shm_peer *p, struct nm_pkt *pkt,
		       size_t length)
{
	struct shm_lending *l = &shm->lending;
	struct shm_where *where;
	int i = buf_get(shm, p, length);
	uint64_t t;

	base_assert(length <= SHM_BUF_BYTES);
	if (i < 0 || !shm_ring_claim(&p->tx, &t))
		return is_stuck(shm, p, true, i < 0);
	l->next = ((unsigned)i + 1) % SHM_BUFS;
	l->heard = shm->rx.head;
	l->holder[i] = p;
	l->nlent++;
	p->nbufs++;
	nm_pkt_copy(pkt, shm->seg->buf[i]);
	/* Not from the stack: what is read there by other pieces than it was
	 * written by waits for all that is written before, the copy too. */
	where = (void *)shm_ring_slot(&p->tx, t)->data;
	where->buf = (uint32_t)i;
	where->number = ++l->number[i];
	where->length = (uint32_t)length;
	fill_slot(shm, p, t, SHM_MEDIUM, sizeof(*where), pkt);
	return NM_SENT;
}

_Static_assert((SHM_INLINE - SHM_FIRST_LINE) % BASE_CACHE_LINE == 0,
	       "a slot ends where a line ends");

/*
 * From or to a slot a line at a time, from its beginning on, and of the last
 * line all: no store lies in two lines. Such a store waits until both have
 * come from the other core, and they come one after the other.
 */
static inline void copy_lines(unsigned char *to, const unsigned char *from,
			      size_t length)
{
	memcpy(to, from, SHM_FIRST_LINE);
	for (size_t at = SHM_FIRST_LINE; at < length; at += BASE_CACHE_LINE)
		memcpy(to + at, from + at, BASE_CACHE_LINE);
}

/*
 * What is in no more than two lines is put together there; more would be lines
 * that the receiver, who looks at the first without a pause, takes away from us
 * half written.
 */
static void write_slot(struct shm_slot *slot, const struct nm_pkt *pkt,
		       size_t length)
{
	unsigned char bytes[SHM_INLINE + BASE_CACHE_LINE];

	if (length <= SHM_FIRST_LINE + BASE_CACHE_LINE) {
		nm_pkt_copy(pkt, slot->data);
		return;
	}
	nm_pkt_copy(pkt, bytes);
	memset(bytes + length, 0, BASE_CACHE_LINE); /* not our stack */
	copy_lines(slot->data, bytes, length);
}

static int shm_post_send(struct nm_link *link, struct nm_pkt *pkt)
{
	struct shm_peer *p = link->conn;
	size_t length = nm_pkt_length(pkt);
	uint64_t t;

	/* Until all that it sent has been taken, the end is not told. */
	if (unlikely(p->exited))
		return p->gone ? -ECONNRESET : -EAGAIN;
	if (length > SHM_INLINE)
		return post_medium(link->rail->drv, p, pkt, length);
	if (!shm_ring_claim(&p->tx, &t))
		return is_stuck(link->rail->drv, p, true, false);
	write_slot(shm_ring_slot(&p->tx, t), pkt, length);
	fill_slot(link->rail->drv, p, t, SHM_SMALL, length, pkt);
	return NM_SENT;
}

/* --- receiving --- */

/*
 * A packet that nobody holds, or NULL. Each poll begins with the first again:
 * it is the warmest, and most often back.
 */
static struct shm_pkt *packet_find(struct shm *shm)
{
	for (; shm->next < SHM_PACKETS; shm->next++) {
		struct shm_pkt *pkt = &shm->packets[shm->next];

		if (likely(!load_acquire(&pkt->busy))) /* order(shm-pkt) */
			return pkt;
	}
	return NULL;
}

/* Read the slot into the packet. False: nonsense. */
static bool unpack(struct shm_pkt *pkt, const struct shm_peer *p,
		   const struct shm_slot *slot, unsigned word)
{
	unsigned length = shm_ring_length(word);
	struct shm_where where;

	if (shm_ring_kind(word) == SHM_SMALL && length <= SHM_INLINE) {
		copy_lines(pkt->data, slot->data, length);
		pkt->in.data = pkt->data;
		pkt->in.length = length;
		pkt->in.drv = NULL;
		return true;
	}
	memcpy(&where, slot->data, sizeof(where));
	if (shm_ring_kind(word) != SHM_MEDIUM || where.buf >= SHM_BUFS ||
	    where.length > SHM_BUF_BYTES)
		return false;
	pkt->in.data = p->seg->buf[where.buf];
	pkt->in.length = where.length;
	pkt->in.drv = &p->seg->back[where.buf];
	pkt->number = where.number;
	return true;
}

static void shm_release(struct nm_rail *rail, struct nm_pkt_in *in)
{
	struct shm_pkt *pkt = container_of(in, struct shm_pkt, in);
	struct shm *shm = rail->drv;
	ATOMIC(uint32_t) *back = in->drv;

	if (back != NULL) {
		store_release(back, pkt->number); /* order(shm-buf): reads */
		/* Only the owner rings. */
		if (shm_bell_is_hungry(&shm->seg->bell, shm->light))
			nm_shm_bell_self(shm);
	}
	store_release(&pkt->busy, 0); /* order(shm-pkt): our reads */
}

/* Take the next packet out of the ring. False: none, or no room for it. */
static bool take(struct shm *shm)
{
	unsigned word;
	struct shm_slot *slot = shm_ring_peek(&shm->rx, &word);
	struct shm_pkt *pkt;
	struct shm_peer *p;
	uint32_t index;
	int rc;

	if (slot == NULL)
		return false;
	index = slot->rank;
	rc = nm_shm_meet(shm, index);
	if (unlikely(rc == -EAGAIN))
		return false;
	pkt = packet_find(shm);
	if (unlikely(pkt == NULL))
		return false;
	p = &shm->all[index];
	if (unlikely(rc < 0) || unlikely(!unpack(pkt, p, slot, word))) {
		base_warn("nmad", "shm: process %u has sent nonsense, dropped",
			  index);
		shm_ring_pop(&shm->rx);
		return true;
	}
	store_relaxed(&pkt->busy, 1); /* nobody else knows it yet */
	pkt->in.link = p->link;
	shm_ring_pop(&shm->rx);
	if (unlikely(p->left))
		shm_release(shm->rail, &pkt->in);
	else
		nm_rail_recv(shm->rail, &pkt->in);
	return true;
}

static bool shm_peek(const struct nm_rail *rail)
{
	struct shm *shm = rail->drv;

	return shm_ring_has(&shm->rx);
}

static bool shm_poll(struct nm_rail *rail, int budget)
{
	struct shm *shm = rail->drv;
	bool moved = false;

	shm->next = 0;
	shm->refused = false;
	while (budget-- > 0 && take(shm))
		moved = true;
	if (!base_list_is_empty(&shm->active) ||
	    !base_list_is_empty(&shm->waiting[0]) ||
	    !base_list_is_empty(&shm->waiting[1]))
		moved |= nm_shm_large_poll(shm);
	if (unlikely((++shm->npolls & (POLLS_A_LOOK - 1)) == 0))
		nm_shm_live_look(shm, false);
	if (unlikely(shm->nexited > 0))
		moved |= nm_shm_live_bury(shm);
	if (shm_bell_is_hungry(&shm->seg->bell, shm->light))
		nm_shm_bell_feed(shm);
	if (unlikely(shm->nowed > 0))
		nm_shm_bell_pay(shm);
	if (moved)
		shm->nap = 0;
	return moved;
}

/* --- waiting --- */

/* A packet was posted since arm(), and found no room. */
static bool hides_hunger(const struct shm *shm)
{
	base_list_for_each (n, &shm->peers) {
		const struct shm_peer *p =
			container_of(n, struct shm_peer, all);

		if (p->stuck && !p->said)
			return true;
	}
	return false;
}

static bool shm_is_busy(const struct nm_rail *rail)
{
	const struct shm *shm = rail->drv;

	return nm_shm_large_is_busy(shm) || shm->nexited > 0 ||
	       shm->nowed > 0 || shm->refused ||
	       (rail->armed && shm->nstuck > 0 && hides_hunger(shm));
}

/* Who lacks a buffer may get back one from any peer that has some. */
static void say_hungry(struct shm *shm)
{
	bool no_buf = false;

	base_list_for_each (n, &shm->peers)
		no_buf |= container_of(n, struct shm_peer, all)->no_buf;
	base_list_for_each (n, &shm->peers) {
		struct shm_peer *p = container_of(n, struct shm_peer, all);
		struct shm_note *mine = &p->seg->note[shm->index];

		if (p->stuck || (no_buf && p->nbufs > 0))
			shm_bell_hunger(&p->seg->bell, mine);
		else
			store_relaxed(&mine->hungry, 0);
		p->said = p->stuck;
	}
	shm->noted = shm->nstuck > 0;
}

static bool is_room(struct shm *shm)
{
	base_list_for_each (n, &shm->peers) {
		struct shm_peer *p = container_of(n, struct shm_peer, all);

		if (p->stuck && shm_ring_has_room(&p->tx) &&
		    (!p->no_buf || buf_seek(shm, p) >= 0))
			return true;
	}
	return false;
}

/* The bell is set: whether there is anything else than packets. */
static bool has_other_work(struct shm *shm)
{
	return nm_shm_large_may_move(shm) ||
	       shm_bell_is_hungry(&shm->seg->bell, shm->light) ||
	       (shm->nstuck > 0 && is_room(shm));
}

/* Some peers cannot ring, so none does: nobody is told that we sleep. */
static int nap(struct shm *shm)
{
	unsigned word;

	nm_shm_bell_mute(shm);
	base_list_for_each (n, &shm->peers) {
		struct shm_peer *p = container_of(n, struct shm_peer, all);

		p->said = p->stuck; /* as good as said: it is looked at */
	}
	if (shm_ring_peek(&shm->rx, &word) != NULL || has_other_work(shm) ||
	    !nm_shm_bell_nap(shm, DEAF_NS))
		return -EAGAIN;
	return 0;
}

static int shm_arm(struct nm_rail *rail)
{
	struct shm *shm = rail->drv;

	if (nm_shm_live_look(shm, true)) {
		nm_shm_live_bury(shm); /* news, perhaps; else the next poll */
		return -EAGAIN;
	}
	if (shm->refused)
		return -EAGAIN;
	if (shm->bell < 0 || load_relaxed(&shm->arena->deaf))
		return nap(shm);
	if (shm->nblind == 0)
		nm_shm_bell_no_nap(shm);
	else if (!nm_shm_bell_nap(shm, BLIND_NS))
		return -EAGAIN;
	if (shm->rx.published != shm->rx.head)
		shm_ring_publish(&shm->rx);
	nm_shm_bell_set(shm);
	if (shm->nstuck > 0 || shm->noted)
		say_hungry(shm);
	if (!shm_bell_look(&shm->seg->bell, &shm->rx))
		return -EAGAIN;
	if (!has_other_work(shm))
		return 0;
	shm_bell_unset(&shm->seg->bell);
	return -EAGAIN;
}

/* --- connecting --- */

static void say_no_cma(struct shm *shm, const struct shm_peer *p)
{
	if (shm->said_no_cma)
		return;
	shm->said_no_cma = true;
	base_warn("nmad",
		  "shm: the kernel does not let rank %u reach the memory of "
		  "rank %d (ptrace rules): large messages are copied twice",
		  shm->rank, p->link->rank);
}

static bool shm_reaches(const struct nm_rail *rail, int rank)
{
	const struct shm *shm = rail->drv;

	return rank != rail->rank && shm->arena != NULL &&
	       shm->indices[rank] >= 0 &&
	       shm->arena->card[shm->indices[rank]].there == 1;
}

static void prove_cma(struct shm *shm, struct shm_peer *p)
{
	if (!nm_shm_options[SHM_OPT_CMA].value)
		return;
	if (nm_shm_cma_prove(p, shm->arena->card[p->index].secret))
		store_relaxed(&p->cma, p->pid);
	else
		say_no_cma(shm, p);
}

/* All of it is undone if it is not known whether the process lives. */
static BASE_COLD int meet(struct shm *shm, uint32_t index)
{
	const struct shm_card *card = &shm->arena->card[index];
	struct shm_peer *p = &shm->all[index];
	bool lives;
	int rc;

	p->index = index;
	p->pid = card->pid;
	p->pidfd = p->bell = -1;
	rc = nm_shm_seg_map(shm, p);
	if (rc < 0)
		goto err;
	lives = nm_shm_live_add(shm, p);
	rc = lives ? nm_shm_bell_know(shm, p) : -ESRCH;
	if (rc == -EAGAIN)
		goto err_unmap;
	p->link = &shm->rail->links[card->rank];
	p->light = !load_relaxed(&shm->arena->heavy);
	if (base_list_is_empty(&shm->peers)) /* who releases reads it */
		shm->light = p->light;
	shm_ring_tx_init(&p->tx, nm_shm_seg_ring(p->seg), shm->index,
			 SHM_QUOTA);
	base_list_push_back(&shm->peers, &p->all);
	p->link->conn = p;
	/* What it has sent is there, though it is gone. */
	if (rc == -ESRCH)
		nm_shm_live_lose(shm, p);
	else
		prove_cma(shm, p);
	return 0;

err_unmap:
	nm_shm_live_remove(shm, p);
	nm_shm_seg_unmap(shm, p);
err:
	shm->refused |= rc == -EAGAIN;
	return rc;
}

int nm_shm_meet(struct shm *shm, uint32_t index)
{
	const struct shm_card *card;

	if (likely(index < shm->nlocal && shm->all[index].link != NULL))
		return 0;
	if (index >= shm->nlocal || index == shm->index)
		return -EPROTO;
	card = &shm->arena->card[index];
	if (card->there != 1 || card->rank >= shm->nranks ||
	    shm->indices[card->rank] != (int32_t)index)
		return -EPROTO;
	return meet(shm, index);
}

static int shm_connect(struct nm_link *link)
{
	struct shm *shm = link->rail->drv;

	return nm_shm_meet(shm, (uint32_t)shm->indices[link->rank]);
}

static void shm_give_up(struct nm_link *link)
{
	struct shm *shm = link->rail->drv;
	struct shm_peer *p = link->conn;

	p->left = true;
	nm_shm_large_drop(shm, p, 0);
	nm_shm_live_remove(shm, p);
	nm_shm_bell_forget(shm, p);
}

static void shm_disconnect(struct nm_link *link)
{
	struct shm *shm = link->rail->drv;
	struct shm_peer *p = link->conn;

	if (p->left)
		return;
	store_release(&shm->seg->note[p->index].bye, 1); /* order(shm-bye) */
	shm_give_up(link);
}

/* --- opening --- */

/* Those that I have never met may have met me. */
static void say_bye(struct shm *shm)
{
	for (uint32_t i = 0; shm->seg != NULL && i < shm->nlocal; i++)
		if (nm_shm_peer(shm, i) == NULL)
			store_release(&shm->seg->note[i].bye,
				      1); /* order(shm-bye) */
}

static void drop(struct shm *shm)
{
	struct base_link *n;

	while ((n = base_list_take_front(&shm->peers)) != NULL) {
		struct shm_peer *p = container_of(n, struct shm_peer, all);

		nm_shm_live_remove(shm, p);
		nm_shm_bell_forget(shm, p);
		nm_shm_seg_unmap(shm, p);
		p->link->conn = NULL;
	}
	nm_shm_arena_drop(shm);
	nm_shm_bell_drop(shm);
	if (shm->alarm >= 0)
		close(shm->alarm);
	if (shm->spare >= 0)
		close(shm->spare);
	if (shm->epoll >= 0)
		close(shm->epoll);
	free(shm->all);
	free(shm->indices);
	free(shm->packets);
	free(shm->secret);
	free(shm);
}

/* Memory by the number of ranks and of processes: all but `indices` is zero. */
static int make_room(struct shm *shm, const struct nm_boot_info *info)
{
	int32_t n = 0;

	shm->all = calloc(shm->nlocal, sizeof(*shm->all));
	shm->indices = calloc(shm->nranks, sizeof(*shm->indices));
	shm->packets = calloc(SHM_PACKETS, sizeof(*shm->packets));
	shm->secret = malloc(SHM_NONCE);
	if (shm->all == NULL || shm->indices == NULL || shm->packets == NULL ||
	    shm->secret == NULL)
		return -ENOMEM;
	for (uint32_t r = 0; r < shm->nranks; r++)
		shm->indices[r] =
			info->node[r] == info->node[shm->rank] ? n++ : -1;
	return getrandom(shm->secret, SHM_NONCE, 0) == SHM_NONCE ? 0 : -EIO;
}

static int make(struct shm *shm, const struct nm_boot_info *info)
{
	struct shm_addr addr;
	int rc = make_room(shm, info);

	if (rc < 0)
		return rc;
	shm->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (shm->epoll < 0)
		return -errno;
	rc = nm_shm_bell_spare(shm);
	if (rc < 0)
		return rc;
	nm_shm_live_init(shm);
	nm_shm_bell_alarm(shm);
	nm_shm_bell_make(shm, &shm->bell_at);
	if (shm->index > 0)
		return 0;
	rc = nm_shm_arena_make(shm, &addr);
	if (rc < 0)
		return rc;
	_Static_assert(sizeof(addr) <= NM_ADDR_MAX, "address");
	memcpy(shm->rail->addr, &addr, sizeof(addr));
	shm->rail->addr_len = sizeof(addr);
	return 0;
}

static int shm_open_rail(struct nm_rail *rail, const struct nm_boot_info *info,
			 const char *spec)
{
	struct shm *shm;
	int rc;

	if (base_option_load(&options) < 0)
		return -EINVAL;
	if (info->local_size >= 1 << SHM_RANK_BITS)
		return -ENODEV;
	shm = calloc(1, sizeof(*shm));
	if (shm == NULL)
		return -ENOMEM;
	shm->rail = rail;
	shm->rank = (uint32_t)info->rank;
	shm->nranks = (uint32_t)info->size;
	shm->nlocal = (uint32_t)info->local_size;
	shm->index = (uint32_t)info->local_rank;
	shm->epoll = shm->bell = shm->alarm = shm->spare = -1;
	base_list_init(&shm->peers);
	nm_shm_large_init(shm);
	nm_shm_arena_init(shm);
	rc = make(shm, info);
	if (rc < 0) {
		drop(shm);
		return rc;
	}
	rail->fd = shm->epoll;
	rail->drv = shm;
	return 0;
}

static int shm_join(struct nm_rail *rail, const void *addr, size_t len)
{
	struct shm *shm = rail->drv;
	struct shm_addr a;
	int rc;

	if (addr == NULL || len != sizeof(a))
		return 0;
	memcpy(&a, addr, sizeof(a));
	rc = nm_shm_arena_join(shm, &a);
	if (rc == 0 && shm->seg != NULL)
		shm_ring_rx_init(&shm->rx, nm_shm_seg_ring(shm->seg));
	return rc;
}

static void shm_close(struct nm_rail *rail)
{
	say_bye(rail->drv);
	drop(rail->drv);
	rail->drv = NULL;
}

static void shm_dump(const struct nm_rail *rail)
{
	const struct shm *shm = rail->drv;

	base_dump("shm: %u processes here; ring at %lu; %u + %u blocks free",
		  shm->nlocal, (unsigned long)shm->rx.head, shm->ctls.nplain,
		  shm->ctls.npipe);
	base_list_for_each (n, &shm->peers) {
		const struct shm_peer *p =
			container_of(n, struct shm_peer, all);

		base_dump("  rank %d pid %d: sent up to %lu of which %u may "
			  "wait, %u buffers%s%s%s",
			  p->link->rank, p->pid, (unsigned long)p->tx.next,
			  p->tx.nmine, p->nbufs,
			  nm_shm_has_cma(p) ? ", one copy" : "",
			  p->left ? ", left" : "", p->exited ? ", dead" : "");
	}
}

const struct nm_driver nm_driver_shm = {
	.name = "shm",
	.caps = NM_CAP_NODE | NM_CAP_SYNC | NM_CAP_ROOM,
	.max_small = SHM_BUF_BYTES,
	.fill = SHM_INLINE,
	.rdv_threshold = RDV_THRESHOLD,
	.options = &options,
	.weight = 10,
	.open = shm_open_rail,
	.close = shm_close,
	.join = shm_join,
	.reaches = shm_reaches,
	.copies = nm_shm_cma_copies,
	.copy = nm_shm_cma_copy,
	.connect = shm_connect,
	.disconnect = shm_disconnect,
	.give_up = shm_give_up,
	.post_send = shm_post_send,
	.poll = shm_poll,
	.peek = shm_peek,
	.arm = shm_arm,
	.is_busy = shm_is_busy,
	.release = shm_release,
	.xfer_offer = nm_shm_large_offer,
	.xfer_recv = nm_shm_large_recv,
	.xfer_send = nm_shm_large_send,
	.xfer_announce = nm_shm_large_announce,
	.xfer_meet = nm_shm_large_meet,
	.xfer_take = nm_shm_large_take,
	.xfer_recall = nm_shm_large_recall,
	.dump = shm_dump,
};
