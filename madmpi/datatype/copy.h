/*
 * Copying between a layout and one piece of memory.
 */
#ifndef MADMPI_DATATYPE_COPY_H
#define MADMPI_DATATYPE_COPY_H

#include "datatype/type.h"

/* struct nm_walker's copy() of a struct madmpi_layout. */
void madmpi_layout_copy(const void *what, size_t offset, size_t length,
			void *flat, bool in);

/* struct nm_walker's walk() of the same. */
int madmpi_layout_walk(const void *what, size_t offset, size_t length,
		       nm_piece_fn each, void *arg);

/*
 * Of n steps, the one that holds byte *skip of what they move together, *skip
 * becoming a byte of it.
 */
static inline uint32_t madmpi_step_find(const struct madmpi_step *s, uint32_t n,
					MPI_Count *skip)
{
	uint32_t low = 0, high = n, middle;

	while (*skip > 0 && high - low > 1) {
		middle = low + (high - low) / 2;
		if (s[middle].before <= *skip)
			low = middle;
		else
			high = middle;
	}
	*skip -= s[low].before;
	return low;
}

#endif
