/*
 * Walks that follow each other over one message, as a network takes it up: with
 * a place to remember between them each costs what it goes over, and not what
 * lies before, however many pieces that is.
 */
#ifndef NMAD_DATA_PLACE_H
#define NMAD_DATA_PLACE_H

#include <nmad/data.h>

/* The walker's own, for one message; all zero: its beginning. */
struct nm_data_place {
	size_t before;  /* bytes of the pieces before ... */
	unsigned piece; /* ... this one: where the last walk began */
};

/* As nm_data_walk(), nm_data_copy_out() and _in(); fast near the place. */
int nm_data_walk_on(const struct nm_data *d, struct nm_data_place *place,
		    size_t offset, size_t length, nm_piece_fn each, void *arg);
void nm_data_copy_out_on(const struct nm_data *d, struct nm_data_place *place,
			 size_t offset, void *to, size_t length);
void nm_data_copy_in_on(const struct nm_data *d, struct nm_data_place *place,
			size_t offset, const void *from, size_t length);

#endif
