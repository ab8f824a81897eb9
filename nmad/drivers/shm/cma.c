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

#include <errno.h>
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

static int copy(const struct shm_peer *p, const struct nm_data *d,
		struct nm_data_place *place, size_t offset, size_t length,
		uint64_t remote, bool push)
{
	struct iovec its;
	struct pieces g;
	ssize_t n;

	while (length > 0) {
		g.n = 0;
		g.bytes = 0;
		nm_data_walk_on(d, place, offset,
				length < AT_ONCE ? length : AT_ONCE, gather,
				&g);
		its.iov_base = (void *)(uintptr_t)remote;
		its.iov_len = g.bytes;
		nm_rail_calls(p->link->rail, NM_CALL_COPY);
		if (push)
			n = process_vm_writev(p->pid, g.iov, g.n, &its, 1, 0);
		else
			n = process_vm_readv(p->pid, g.iov, g.n, &its, 1, 0);
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

int nm_shm_cma_copy(struct nm_xfer *x, size_t offset, size_t length,
		    uint64_t remote, bool push)
{
	return copy(x->link->conn, &x->data, &x->place, x->offset + offset,
		    length, remote + offset, push);
}

int nm_shm_cma_read(const struct shm_peer *p, const struct nm_data *d,
		    size_t offset, size_t length, uint64_t remote)
{
	struct nm_data_place place = { .before = 0 };

	return copy(p, d, &place, offset, length, remote, false);
}
