/*
 * Where a process runs: the host, and of each kind of hardware that the machine
 * has the one that all VPs of the process are in, if it is one
 * (marcel_topo_places()). Processes tell each other, byte by byte.
 */
#ifndef MADMPI_COMM_SPOT_H
#define MADMPI_COMM_SPOT_H

#include <stdbool.h>
#include <stdint.h>

enum { MADMPI_SPOT_HOST = 160, MADMPI_SPOT_KINDS = 16 };

struct madmpi_spot {
	char host[MADMPI_SPOT_HOST]; /* same text: same kernel and /dev/shm */
	struct {
		uint32_t kind;   /* of hardware, by its name; 0: no more */
		int32_t index;   /* -1: in none of it, or in several */
	} at[MADMPI_SPOT_KINDS]; /* from the largest kind on */
};

/* Of this process. */
void madmpi_spot_find(struct madmpi_spot *s);

bool madmpi_spot_share_host(const struct madmpi_spot *a,
			    const struct madmpi_spot *b);

/* Of one host, the same one of this kind. */
bool madmpi_spot_share(const struct madmpi_spot *a, const struct madmpi_spot *b,
		       int kind);

#endif
