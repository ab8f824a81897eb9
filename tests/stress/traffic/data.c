/* What is sent, where it lies, and whether it is what has come. */
#include "traffic.h"

#include <stdlib.h>
#include <string.h>

enum { GAP = 0xc5, BEHIND = 64 /* bytes */ };

/* splitmix64 */
uint64_t draw(uint64_t *lot)
{
	uint64_t z = *lot += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t lot = a;

	lot = draw(&lot) ^ b;
	return draw(&lot);
}

uint64_t word(uint64_t key, size_t i)
{
	uint64_t x = key + i * 0x9e3779b97f4a7c15u;

	return x ^ x >> 29;
}

void place_make(const struct group *g, struct place *p, uint64_t *lot,
		size_t most)
{
	static const size_t blocks[] = { 0, 0, 16, 64, 1024 };
	size_t extent;

	p->block = blocks[draw_below(lot, sizeof(blocks) / sizeof(blocks[0]))];
	p->most = most;
	if (most % (p->block != 0 ? p->block : 1) != 0)
		p->block = 0;
	extent = (p->block != 0 ? 2 * most : most) + BEHIND;
	p->buf = must_alloc(g, extent);
	memset(p->buf, GAP, extent);
}

void place_free(struct place *p)
{
	free(p->buf);
}

int place_type(const struct place *p, size_t bytes, MPI_Datatype *out)
{
	*out = MPI_BYTE;
	if (p->block == 0 || bytes % p->block != 0)
		return (int)bytes;
	MPI_Type_vector((int)(bytes / p->block), (int)p->block,
			(int)(2 * p->block), MPI_BYTE, out);
	MPI_Type_commit(out);
	return 1;
}

void place_untype(MPI_Datatype *type)
{
	if (*type != MPI_BYTE)
		MPI_Type_free(type);
}

static void fill(unsigned char *to, size_t bytes, uint64_t key, size_t first)
{
	size_t i = 0;
	uint64_t w;

	for (; i + 8 <= bytes; i += 8) {
		w = word(key, first++);
		memcpy(to + i, &w, 8);
	}
	w = word(key, first);
	memcpy(to + i, &w, bytes - i);
}

static bool holds(const unsigned char *in, size_t bytes, uint64_t key,
		  size_t first)
{
	uint64_t wrong = 0, w, is;
	size_t i = 0;

	for (; i + 8 <= bytes; i += 8) {
		memcpy(&is, in + i, 8);
		wrong |= is ^ word(key, first++);
	}
	w = word(key, first);
	return wrong == 0 && memcmp(in + i, &w, bytes - i) == 0;
}

static bool is_gap(const unsigned char *p, size_t bytes)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < bytes; i++)
		wrong |= p[i] ^ (unsigned)GAP;
	return wrong == 0;
}

/* The same as place_type() says: what does not fit into blocks has no gaps. */
void place_fill(const struct place *p, size_t bytes, uint64_t key)
{
	size_t block = p->block;

	if (block == 0 || bytes % block != 0) {
		fill(p->buf, bytes, key, 0);
		return;
	}
	for (size_t i = 0; i < bytes / block; i++)
		fill(p->buf + 2 * i * block, block, key, i * block / 8);
}

/* It has been received as the longest, all of whose blocks are whole. */
bool place_holds(const struct place *p, size_t bytes, uint64_t key)
{
	size_t block = p->block != 0 ? p->block : bytes, at = 0;
	bool right = true;

	for (size_t done = 0; right && done < bytes; done += block) {
		size_t n = bytes - done < block ? bytes - done : block;

		right = holds(p->buf + at, n, key, done / 8);
		memset(p->buf + at, GAP, n);
		at += n;
		if (n == block && p->block != 0) {
			right = right && is_gap(p->buf + at, block);
			at += block;
		}
	}
	return right && is_gap(p->buf + at, BEHIND);
}
