/*
 * The memory of a message: pieces with gaps between them, of which every byte
 * is known.
 */
#ifndef TESTS_NMAD_MODEL_DATA_H
#define TESTS_NMAD_MODEL_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include <nmad/data.h>

enum { MODEL_PIECES = 7 };

struct model_buffer {
	unsigned char *memory;
	size_t bytes;
	struct iovec pieces[MODEL_PIECES];
	unsigned npieces;
	struct nm_data data;
};

/* Room for so many bytes, in one of 8 shapes; nothing is in it. */
void model_buffer_new(struct model_buffer *b, unsigned shape, size_t length);
void model_buffer_free(struct model_buffer *b);

/* Write the message with this number into all of it. */
void model_buffer_paint(struct model_buffer *b, uint64_t number);

/* The first n bytes of that message are in it, and nothing else anywhere. */
bool model_buffer_holds(const struct model_buffer *b, uint64_t number,
			size_t n);

#endif
