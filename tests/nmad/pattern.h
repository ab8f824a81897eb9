/*
 * Bytes that belong to a number. By words, and compared as a whole: a sanitizer
 * looks at each access.
 */
#ifndef TESTS_NMAD_PATTERN_H
#define TESTS_NMAD_PATTERN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline void pattern(uint64_t number, void *to, size_t bytes)
{
	unsigned char *p = to;
	uint64_t z = number * 0x9e3779b97f4a7c15u + 1;

	for (size_t i = 0; i < bytes; i += 8) {
		uint64_t word;

		z = z * 6364136223846793005u + 1442695040888963407u;
		word = z ^ z >> 32; /* the low bits alone repeat soon */
		memcpy(p + i, &word, bytes - i < 8 ? bytes - i : 8);
	}
}

static inline bool is_pattern(uint64_t number, const void *at, size_t bytes)
{
	void *want = malloc(bytes + 1);
	bool same;

	if (want == NULL)
		abort();
	pattern(number, want, bytes);
	same = memcmp(want, at, bytes) == 0;
	free(want);
	return same;
}

#endif
