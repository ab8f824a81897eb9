/*
 * Deaths. The kernel tells when a process is gone through its pidfd, which
 * cannot be fooled by a forked child that holds on to descriptors; nothing is
 * missed by looking rarely. A peer that has left in good order has said so in
 * its segment.
 *
 * After a death everything that the peer has sent is still in the ring and is
 * taken first. What it had claimed and not filled is skipped: when its pidfd
 * says so, the process has no memory and no running instruction any more.
 */
#include "shm.h"

#include <marcel/errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <base/diag.h>

enum { LOOK_NS = 1000000, MANY = 1 << 20 };

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The program has descriptors of its own: half of them are not for peers. */
void nm_shm_live_init(struct shm *shm)
{
	struct rlimit limit = { .rlim_cur = 0 };
	unsigned half;

	getrlimit(RLIMIT_NOFILE, &limit);
	half = limit.rlim_cur < MANY ? (unsigned)limit.rlim_cur / 2 : MANY / 2;
	shm->maxbells = half / 2 < SHM_BELLS ? half / 2 + 1 : SHM_BELLS;
	shm->maxpidfds = half > shm->maxbells ? half - shm->maxbells : 0;
}

static bool is_gone(const struct shm_peer *p)
{
	return kill(p->pid, 0) < 0 && errno == ESRCH;
}

bool nm_shm_live_add(struct shm *shm, struct shm_peer *p)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = p };

	if (shm->npidfds < shm->maxpidfds)
		p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	if (p->pidfd >= 0 &&
	    epoll_ctl(shm->epoll, EPOLL_CTL_ADD, p->pidfd, &ev) == 0) {
		shm->npidfds++;
		return true;
	}
	if (p->pidfd >= 0)
		close(p->pidfd);
	p->pidfd = -1;
	/* kill() tells as well, but only who asks */
	if (is_gone(p))
		return false;
	p->blind = true;
	shm->nblind++;
	return true;
}

void nm_shm_live_remove(struct shm *shm, struct shm_peer *p)
{
	if (p->blind)
		shm->nblind--;
	p->blind = false;
	store_relaxed(&p->cma, 0);
	if (p->pidfd < 0)
		return;
	/* A forked child may hold a copy: closing alone does not end it. */
	epoll_ctl(shm->epoll, EPOLL_CTL_DEL, p->pidfd, NULL);
	close(p->pidfd);
	p->pidfd = -1;
	shm->npidfds--;
}

void nm_shm_live_lose(struct shm *shm, struct shm_peer *p)
{
	nm_shm_live_remove(shm, p);
	nm_shm_bell_forget(shm, p);
	p->exited = true;
	p->drain = shm_ring_end(&shm->rx);
	shm->nexited++;
}

/* Without pidfds (old kernels, seccomp, too many peers): ask for each of them.
 */
static bool look_by_kill(struct shm *shm)
{
	bool any = false;

	base_list_for_each (n, &shm->peers) {
		struct shm_peer *p = container_of(n, struct shm_peer, all);

		if (!p->blind || !is_gone(p))
			continue;
		nm_shm_live_lose(shm, p);
		any = true;
	}
	return any;
}

/*
 * Who has claimed the slot that comes next and fills it not yet may have died
 * over its first packet to us.
 */
static bool meet_claimer(struct shm *shm)
{
	int index = shm_ring_claimer(&shm->rx);
	unsigned before = shm->nexited;

	if (index >= 0)
		nm_shm_meet(shm, (uint32_t)index);
	return shm->nexited != before;
}

bool nm_shm_live_look(struct shm *shm, bool now)
{
	struct epoll_event ev[16];
	uint64_t t = now_ns();
	bool any;
	int n;

	if (!now && t < shm->next_look)
		return false;
	shm->next_look = t + LOOK_NS;
	any = meet_claimer(shm);
	nm_rail_calls(shm->rail, NM_CALL_LOOK);
	n = epoll_wait(shm->epoll, ev, BASE_ARRAY_LEN(ev), 0);
	for (int i = 0; i < n; i++) {
		if (ev[i].data.ptr == NULL)
			continue; /* the bell */
		nm_shm_live_lose(shm, ev[i].data.ptr);
		any = true;
	}
	if (shm->nblind > 0)
		any |= look_by_kill(shm);
	return any;
}

/* All that the peer has sent has been taken. */
static void bury(struct shm *shm, struct shm_peer *p)
{
	struct shm_lending *l = &shm->lending;
	bool bye = load_acquire(
		&p->seg->note[shm->index].bye); /* order(shm-bye) */

	p->gone = true;
	shm->nexited--;
	for (unsigned i = 0; i < SHM_BUFS; i++)
		if (l->holder[i] == p)
			l->holder[i] = NULL;
	l->nlent -= p->nbufs;
	p->nbufs = 0;
	nm_shm_large_drop(shm, p, -ECONNRESET);
	if (bye || p->left)
		return;
	nm_rail_link_dead(shm->rail, p->link, -ECONNRESET);
}

bool nm_shm_live_bury(struct shm *shm)
{
	bool moved = false;
	int index;

	while ((index = shm_ring_claimer(&shm->rx)) >= 0) {
		struct shm_peer *p = NULL;
		unsigned word;

		if ((uint32_t)index < shm->nlocal)
			p = nm_shm_peer(shm, (uint32_t)index);
		if (p == NULL || !p->exited || shm_ring_peek(&shm->rx, &word))
			break;
		shm_ring_pop(&shm->rx);
		moved = true;
	}
	base_list_for_each (n, &shm->peers) {
		struct shm_peer *p = container_of(n, struct shm_peer, all);

		if (!p->exited || p->gone || shm->rx.head < p->drain)
			continue;
		bury(shm, p);
		moved = true;
	}
	return moved;
}
