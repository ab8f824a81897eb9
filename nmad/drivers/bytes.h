/*
 * Numbers on the wire: little-endian, not aligned.
 */
#ifndef NMAD_DRIVERS_BYTES_H
#define NMAD_DRIVERS_BYTES_H

#include <stdint.h>

static inline void nm_bytes_put(unsigned char *to, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		to[i] = (unsigned char)(value >> 8 * i);
}

static inline uint64_t nm_bytes_get(const unsigned char *from, int bytes)
{
	uint64_t value = 0;

	while (bytes-- > 0)
		value = value << 8 | from[bytes];
	return value;
}

#endif
