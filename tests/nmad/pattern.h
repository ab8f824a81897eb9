/*
 * Bytes that belong to a number. By words, and compared many at a time: a
 * sanitizer looks at each access.
 */
#ifndef TESTS_NMAD_PATTERN_H
#define TESTS_NMAD_PATTERN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t pattern_begin(uint64_t number)
{
	return number * 0x9e3779b97f4a7c15u + 1;
}

/* The next bytes of it; the last, if these are no whole words. */
static inline void pattern_next(uint64_t *z, unsigned char *to, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 8) {
		uint64_t word;

		*z = *z * 6364136223846793005u + 1442695040888963407u;
		word = *z ^ *z >> 32; /* the low bits alone repeat soon */
		memcpy(to + i, &word, bytes - i < 8 ? bytes - i : 8);
	}
}

static inline void pattern(uint64_t number, void *to, size_t bytes)
{
	uint64_t z = pattern_begin(number);

	pattern_next(&z, to, bytes);
}

static inline bool is_pattern(uint64_t number, const void *at, size_t bytes)
{
	uint64_t z = pattern_begin(number);
	const unsigned char *p = at;
	unsigned char want[1024];

	for (size_t n; bytes > 0; p += n, bytes -= n) {
		n = bytes < sizeof(want) ? bytes : sizeof(want);
		pattern_next(&z, want, n);
		if (memcmp(p, want, n) != 0)
			return false;
	}
	return true;
}

#endif
