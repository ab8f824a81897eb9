/*
 * The hello of two clerks, a datagram: where my queue pair is, where I am to be
 * answered, whether I know yours, and the proof that I know the key of the job.
 *
 *   magic 4 | version 2 | ethernet 1 | mtu 1 | from 4 | to 4 | qpn 4 | psn 4 |
 *   heard 4 | clerk 4 | lid 2 | met 1 | 0 5 | gid 16 | 0 8 | proof 8
 * little-endian
 *
 * An old one of the same job that is sent again names a queue pair that is no
 * more, and is worth nothing.
 */
#include "verbs.h"

#include "../../core/siphash.h"
#include "../bytes.h"

static const unsigned char magic[4] = { 'n', 'm', 'i', 'b' };

enum { VERSION = 1, PROOF_AT = VERBS_HELLO - 8 };

void nm_verbs_hello_put(unsigned char to[static VERBS_HELLO],
			const struct verbs_hello *h,
			const unsigned char key[static 16])
{
	memset(to, 0, VERBS_HELLO);
	memcpy(to, magic, 4);
	nm_bytes_put(to + 4, VERSION, 2);
	to[6] = h->queue.is_ethernet;
	to[7] = h->queue.mtu;
	nm_bytes_put(to + 8, h->from, 4);
	nm_bytes_put(to + 12, h->to, 4);
	nm_bytes_put(to + 16, h->queue.qpn, 4);
	nm_bytes_put(to + 20, h->queue.psn, 4);
	nm_bytes_put(to + 24, h->heard, 4);
	nm_bytes_put(to + 28, h->clerk.qpn, 4);
	nm_bytes_put(to + 32, h->queue.lid, 2);
	to[34] = h->is_met;
	memcpy(to + 40, h->queue.gid.raw, 16);
	nm_bytes_put(to + PROOF_AT, nm_siphash(key, to, PROOF_AT), 8);
}

const char *nm_verbs_hello_get(const unsigned char *from, size_t length,
			       struct verbs_hello *h,
			       const unsigned char key[static 16])
{
	if (length != VERBS_HELLO || memcmp(from, magic, 4) != 0)
		return "not a process of a job of ours";
	if (nm_bytes_get(from + 4, 2) != VERSION)
		return "speaks another version";
	if (nm_bytes_get(from + PROOF_AT, 8) != nm_siphash(key, from, PROOF_AT))
		return "does not know this job's key";
	memset(h, 0, sizeof(*h));
	h->queue.is_ethernet = from[6];
	h->queue.mtu = from[7];
	h->from = (uint32_t)nm_bytes_get(from + 8, 4);
	h->to = (uint32_t)nm_bytes_get(from + 12, 4);
	h->queue.qpn = (uint32_t)nm_bytes_get(from + 16, 4);
	h->queue.psn = (uint32_t)nm_bytes_get(from + 20, 4);
	h->heard = (uint32_t)nm_bytes_get(from + 24, 4);
	h->queue.lid = (uint16_t)nm_bytes_get(from + 32, 2);
	h->is_met = from[34] != 0;
	memcpy(h->queue.gid.raw, from + 40, 16);
	h->clerk = h->queue;
	h->clerk.qpn = (uint32_t)nm_bytes_get(from + 28, 4);
	return NULL;
}
