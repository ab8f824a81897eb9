/* nmad: peers on the same host, and what lies in their memory. */
#include "../peers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

enum { BYTES = 3000000, PIECES = 100 };

static unsigned char from[BYTES], to[BYTES];

RULE(who_is_reached_through_memory_alone_is_near)
{
	const char *networks = getenv("NMAD_DRIVER");

	if (networks == NULL)
		return;
	if (strcmp(networks, "shm") == 0 || strcmp(networks, "self") == 0)
		MUST(nm_gate_is_near(peer));
	if (strncmp(networks, "sim", 3) == 0 || strcmp(networks, "tcp") == 0)
		MUST(!nm_gate_is_near(peer));
}

static bool copies(void)
{
	const char *networks = getenv("NMAD_DRIVER");
	const char *one_copy = getenv("NMAD_SHM_CMA");

	return networks != NULL && strcmp(networks, "shm") == 0 &&
	       (one_copy == NULL || strcmp(one_copy, "0") != 0);
}

/* Where the other process has `from`, after a message of it. */
static uint64_t exchange_addresses(void)
{
	uint64_t mine = (uintptr_t)from, its = 0;
	struct nm_sr_request out, in;

	irecv_bytes(&in, peer, 1, NM_TAG_EXACT, &its, sizeof(its));
	isend_bytes(&out, 1, &mine, sizeof(mine), 0);
	MUST(wait_for(&in).error == 0 && wait_for(&out).error == 0);
	return its;
}

RULE(the_kernel_copies_from_and_to_the_peers_memory)
{
	struct iovec pieces[PIECES];
	struct nm_data flat = nm_data_flat(to, BYTES), d;
	unsigned char last;
	uint64_t its;

	paint(from, BYTES, 9);
	its = exchange_addresses();
	if (!copies()) {
		MUST(!nm_gate_can_copy(peer));
		MUST(nm_gate_read(peer, &flat, 0, 1, its) == -ENOTSUP);
		MUST(nm_gate_write(peer, &flat, 0, 1, its) == -ENOTSUP);
		meet(2);
		return;
	}
	if (!nm_gate_can_copy(peer))
		check_skip("the kernel refuses process_vm_readv");
	memset(to, 0, BYTES);
	MUST(nm_gate_read(peer, &flat, 0, BYTES, its) == 0);
	MUST(is_painted(to, BYTES, 9, nm_gate_rank(peer)));
	/* More pieces than a system call has, from the middle on. */
	for (size_t i = 0; i < PIECES; i++)
		pieces[i] = (struct iovec){ to + i * (BYTES / PIECES),
					    BYTES / PIECES };
	d = nm_data_iovec(pieces, PIECES);
	last = to[776];
	memset(to, 0, BYTES);
	MUST(nm_gate_read(peer, &d, 0, 777, its) == 0);
	MUST(to[776] == last && to[777] == 0);
	MUST(nm_gate_read(peer, &d, 777, BYTES - 777, its + 777) == 0);
	MUST(is_painted(to, BYTES, 9, nm_gate_rank(peer)));
	MUST(nm_gate_read(peer, &flat, 0, 1, 0) == -EFAULT);
	MUST(nm_gate_write(peer, &flat, 0, 1, 0) == -EFAULT);
	meet(2);
	/* Now the other way, in place of what all have read. */
	paint(to, BYTES, 10);
	MUST(nm_gate_write(peer, &d, 0, 777, its) == 0);
	MUST(nm_gate_write(peer, &d, 777, BYTES - 777, its + 777) == 0);
	meet(3);
	MUST(is_painted(from, BYTES, 10, nm_gate_rank(peer)));
}
