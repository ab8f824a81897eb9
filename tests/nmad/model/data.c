/*
 * The memory of a message.
 */
#include "data.h"

#include <stdlib.h>
#include <string.h>

enum { UNTOUCHED = 0xee, GAP = 13 };

static unsigned char byte_of(uint64_t number, size_t i)
{
	return (unsigned char)((i * 31 + (i >> 8)) ^ number >> i % 8 * 8);
}

/* nmad may ask for any part. */
static int walk(const void *what, size_t offset, size_t length,
		nm_piece_fn each, void *arg)
{
	const struct model_buffer *b = what;

	for (unsigned i = 0; length > 0; i++) {
		size_t n = b->pieces[i].iov_len;
		int rc;

		if (offset >= n) {
			offset -= n;
			continue;
		}
		n = n - offset < length ? n - offset : length;
		rc = each(arg, (char *)b->pieces[i].iov_base + offset, n);
		if (rc != 0)
			return rc;
		length -= n;
		offset = 0;
	}
	return 0;
}

/* Half of what is left each, or one byte, or nothing; the last all. */
static size_t size_of(unsigned i, unsigned n, unsigned shape, size_t left)
{
	if (i + 1 == n)
		return left;
	if ((shape + i) % 3 == 0)
		return left > 0;
	return (shape + i) % 3 == 1 ? left / 2 : 0;
}

void model_buffer_new(struct model_buffer *b, unsigned shape, size_t length)
{
	size_t at = GAP;

	b->npieces = shape < 4 ? 1 : MODEL_PIECES;
	b->bytes = length + (b->npieces + 1) * GAP;
	b->memory = malloc(b->bytes);
	if (b->memory == NULL)
		abort();
	memset(b->memory, UNTOUCHED, b->bytes);
	for (unsigned i = 0; i < b->npieces; i++) {
		size_t left = length + (i + 1) * GAP - at;
		size_t n = size_of(i, b->npieces, shape, left);

		b->pieces[i].iov_base = b->memory + at;
		b->pieces[i].iov_len = n;
		at += n + GAP;
	}
	if (shape < 4)
		b->data = nm_data_flat(b->memory + GAP, length);
	else if (shape < 6)
		b->data = nm_data_iovec(b->pieces, b->npieces);
	else
		b->data = nm_data_walker(b, length, walk);
}

void model_buffer_free(struct model_buffer *b)
{
	free(b->memory);
	b->memory = NULL;
}

static void paint(const struct model_buffer *b, uint64_t number, size_t n,
		  unsigned char *memory)
{
	size_t at = 0;

	for (unsigned i = 0; i < b->npieces; i++) {
		unsigned char *base = b->pieces[i].iov_base;

		base = memory + (base - b->memory);
		for (size_t k = 0; k < b->pieces[i].iov_len && at < n; k++)
			base[k] = byte_of(number, at++);
	}
}

void model_buffer_paint(struct model_buffer *b, uint64_t number)
{
	paint(b, number, b->bytes, b->memory);
}

bool model_buffer_holds(const struct model_buffer *b, uint64_t number, size_t n)
{
	unsigned char *want = malloc(b->bytes);
	bool same;

	if (want == NULL)
		abort();
	memset(want, UNTOUCHED, b->bytes);
	paint(b, number, n, want);
	same = memcmp(want, b->memory, b->bytes) == 0;
	free(want);
	return same;
}
