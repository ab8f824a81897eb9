/*
 * Cross-memory attach: the kernel copies between our memory and a peer's, one
 * copy in all (process_vm_readv, process_vm_writev).
 *
 * Whether it may is for ptrace's rules, Yama, seccomp and containers to say,
 * so every pair is proven before use: we read the peer's nonce from its private
 * memory, which shows that the process number means the process that we think
 * of, and write the same bytes back to the same place.
 */
#include "shm.h"

#include <marcel/errno.h>
#include <string.h>
#include <sys/uio.h>

bool nm_shm_cma_prove(const struct shm_peer *p, uint64_t secret)
{
	unsigned char nonce[SHM_NONCE];
	struct iovec mine = { nonce, SHM_NONCE };
	struct iovec its = { (void *)(uintptr_t)secret, SHM_NONCE };

	return process_vm_readv(p->pid, &mine, 1, &its, 1, 0) == SHM_NONCE &&
	       memcmp(nonce, p->seg->nonce, SHM_NONCE) == 0 &&
	       process_vm_writev(p->pid, &mine, 1, &its, 1, 0) == SHM_NONCE;
}

/* Pieces of ours, gathered for one system call. */
struct pieces {
	struct iovec iov[64];
	unsigned n;
	size_t bytes;
};

static int gather(void *arg, void *piece, size_t bytes)
{
	struct pieces *g = arg;

	g->iov[g->n].iov_base = piece;
	g->iov[g->n].iov_len = bytes;
	g->bytes += bytes;
	return ++g->n == BASE_ARRAY_LEN(g->iov);
}

/* One call: nobody else has the core meanwhile, whatever is due. */
enum { AT_ONCE = 1024 * 1024 };

/* Of the peer only what anybody may read: it may be met just now. */
static int copy(const struct nm_rail *rail, const struct shm_peer *p,
		const struct nm_range *range, struct nm_data_place *place,
		uint64_t remote, bool push)
{
	size_t offset = range->offset, length = range->length;
	struct iovec its;
	struct pieces g;
	ssize_t n;
	int pid;

	while (length > 0) {
		pid = load_relaxed(&p->cma);
		if (pid == 0)
			return -ENOTSUP;
		g.n = 0;
		g.bytes = 0;
		nm_data_walk_on(range->data, place, offset,
				length < AT_ONCE ? length : AT_ONCE, gather,
				&g);
		its.iov_base = (void *)(uintptr_t)remote;
		its.iov_len = g.bytes;
		nm_rail_calls(rail, NM_CALL_COPY);
		if (push)
			n = process_vm_writev(pid, g.iov, g.n, &its, 1, 0);
		else
			n = process_vm_readv(pid, g.iov, g.n, &its, 1, 0);
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EFAULT;
		offset += (size_t)n;
		remote += (size_t)n;
		length -= (size_t)n;
	}
	return 0;
}

int nm_shm_cma_move(struct nm_xfer *x, size_t offset, size_t length,
		    uint64_t remote, bool push)
{
	struct nm_range range = { &x->data, x->offset + offset, length };

	return copy(x->link->rail, x->link->conn, &range, &x->place,
		    remote + offset, push);
}

/* Of a peer that was met, for whoever knows that it was. */
static const struct shm_peer *within_reach(const struct nm_rail *rail, int rank)
{
	const struct shm *shm = rail->drv;
	const struct shm_peer *p;

	if (!rail->driver->reaches(rail, rank))
		return NULL;
	p = &shm->all[shm->indices[rank]];
	return nm_shm_has_cma(p) ? p : NULL;
}

bool nm_shm_cma_copies(const struct nm_rail *rail, int rank)
{
	return within_reach(rail, rank) != NULL;
}

int nm_shm_cma_copy(const struct nm_rail *rail, int rank,
		    const struct nm_range *range, uint64_t remote, bool push)
{
	const struct shm_peer *p = within_reach(rail, rank);
	struct nm_data_place place = { .before = 0 };

	return p != NULL ? copy(rail, p, range, &place, remote, push)
			 : -ENOTSUP;
}
