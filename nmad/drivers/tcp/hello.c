/*
 * The hello: what stands in its messages, and the proof that both ends know
 * the key of the job. The numbers drawn by both ends go into every proof, so
 * that an old one is worth nothing (but BUSY's: spare.c); the kind goes in, so
 * that a proof cannot be sent back to its author.
 *
 *   magic 4 | version 2 | kind 2 | from 4 | to 4 | nonce 16 | accept 4 | 0 4 |
 *   proof 8                                              little-endian
 */
#include "tcp.h"

#include <string.h>

#include "../../core/siphash.h"
#include "../bytes.h"

static const unsigned char magic[4] = { 'n', 'm', 't', 'c' };

uint64_t nm_tcp_hello_proof(const unsigned char key[static 16],
			    const struct tcp_greeting *g, unsigned kind,
			    unsigned accept)
{
	unsigned char text[16 + 2 * TCP_NONCE];

	nm_bytes_put(text, kind, 4);
	nm_bytes_put(text + 4, accept, 4);
	nm_bytes_put(text + 8, g->caller, 4);
	nm_bytes_put(text + 12, g->callee, 4);
	memcpy(text + 16, g->caller_nonce, TCP_NONCE);
	memcpy(text + 16 + TCP_NONCE, g->callee_nonce, TCP_NONCE);
	return nm_siphash(key, text, sizeof(text));
}

void nm_tcp_hello_put(unsigned char to[static TCP_HELLO],
		      const struct tcp_hello *h)
{
	memcpy(to, magic, 4);
	nm_bytes_put(to + 4, TCP_VERSION, 2);
	nm_bytes_put(to + 6, h->kind, 2);
	nm_bytes_put(to + 8, h->from, 4);
	nm_bytes_put(to + 12, h->to, 4);
	memcpy(to + 16, h->nonce, TCP_NONCE);
	nm_bytes_put(to + 32, h->accept, 4);
	nm_bytes_put(to + 36, 0, 4);
	nm_bytes_put(to + 40, h->proof, 8);
}

const char *nm_tcp_hello_get(const unsigned char from[static TCP_HELLO],
			     struct tcp_hello *h)
{
	if (memcmp(from, magic, 4) != 0)
		return "not a process of a job of ours";
	if (nm_bytes_get(from + 4, 2) != TCP_VERSION)
		return "speaks another version";
	h->kind = (uint16_t)nm_bytes_get(from + 6, 2);
	h->from = (uint32_t)nm_bytes_get(from + 8, 4);
	h->to = (uint32_t)nm_bytes_get(from + 12, 4);
	memcpy(h->nonce, from + 16, TCP_NONCE);
	h->accept = (uint32_t)nm_bytes_get(from + 32, 4);
	h->proof = nm_bytes_get(from + 40, 8);
	return NULL;
}
