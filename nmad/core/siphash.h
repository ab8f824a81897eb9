/*
 * SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash of short messages.
 * Who cannot compute it for a fresh random message does not know the key.
 */
#ifndef NMAD_CORE_SIPHASH_H
#define NMAD_CORE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t nm_siphash(const unsigned char key[static 16], const void *data,
		    size_t length);

#endif
