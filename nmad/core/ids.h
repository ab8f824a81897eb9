/*
 * Numbers that stand for our objects on the wire: a send that waits for an
 * answer. A number holds an index and how often the index was given out, so
 * that an answer that is late, made up or doubled finds nothing.
 *
 * Called with the core lock held.
 */
#ifndef NMAD_CORE_IDS_H
#define NMAD_CORE_IDS_H

#include <stdint.h>

#include "mem.h"

enum { NM_IDS_CHUNK = 1024, NM_IDS_CHUNKS = 8192 };

struct nm_id {
	void *object;   /* NULL: free */
	uint32_t round; /* how often it was given out */
	uint32_t next;  /* free: the next free index + 1, or 0 */
};

struct nm_ids {
	struct nm_mem *mem;
	struct nm_id *chunks[NM_IDS_CHUNKS];
	uint32_t n;    /* indexes made */
	uint32_t free; /* a free index + 1, or 0 */
};

void nm_ids_init(struct nm_ids *t, struct nm_mem *mem);

/* A number for the object, never 0; 0: there are too many. */
uint64_t nm_ids_get(struct nm_ids *t, void *object);

/* The object, or NULL. */
void *nm_ids_find(struct nm_ids *t, uint64_t id);

/* The number is valid and now means nothing. */
void nm_ids_put(struct nm_ids *t, uint64_t id);

#endif
