/* SipHash-2-4. */
#include "siphash.h"

static uint64_t get64(const unsigned char *p)
{
	uint64_t v = 0;

	for (int i = 7; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

static uint64_t rotl(uint64_t x, int b)
{
	return x << b | x >> (64 - b);
}

static void rounds(uint64_t v[static 4], int n)
{
	while (n-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotl(v[1], 13) ^ v[0];
		v[3] = rotl(v[3], 16) ^ v[2];
		v[0] = rotl(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotl(v[1], 17) ^ v[2];
		v[3] = rotl(v[3], 21) ^ v[0];
		v[2] = rotl(v[2], 32);
	}
}

static void absorb(uint64_t v[static 4], uint64_t word)
{
	v[3] ^= word;
	rounds(v, 2);
	v[0] ^= word;
}

uint64_t nm_siphash(const unsigned char key[static 16], const void *data,
		    size_t length)
{
	const unsigned char *p = data;
	uint64_t k0 = get64(key), k1 = get64(key + 8);
	uint64_t v[4] = { k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
			  k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u };
	uint64_t last = (uint64_t)length << 56;
	size_t rest = length;

	for (; rest >= 8; rest -= 8, p += 8)
		absorb(v, get64(p));
	for (size_t i = 0; i < rest; i++)
		last |= (uint64_t)p[i] << (8 * i);
	absorb(v, last);
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
