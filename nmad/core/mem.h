/*
 * Memory for what the core keeps: messages that nobody has asked for yet,
 * transfers, answers. Blocks of a few sizes from slabs that come from mmap(),
 * so that progress can take one while a thread that it interrupted holds
 * libc's lock. Slabs are given back when the core ends.
 *
 * Called with the core lock held.
 */
#ifndef NMAD_CORE_MEM_H
#define NMAD_CORE_MEM_H

#include <stddef.h>
#include <stdint.h>

#include "stats.h"

enum {
	NM_MEM_CLASSES = 13,
	NM_MEM_PKT = 4608, /* a class for struct nm_pkt, of which many live */
	NM_MEM_MAX = 128 * 1024, /* bytes of the largest block */
};

struct nm_mem_slab;

struct nm_mem {
	struct {
		void *free;        /* first word links to the next */
		char *fresh, *end; /* of the newest slab, not yet used */
	} classes[NM_MEM_CLASSES];
	struct nm_mem_slab *slabs;
	size_t taken, total;        /* bytes, in blocks and in slabs */
	nm_count_t nblocks, nslabs; /* ever taken and mapped */
};

void nm_mem_init(struct nm_mem *m);
void nm_mem_exit(struct nm_mem *m);

/* The class of a block of at least so many bytes; at most NM_MEM_MAX. */
unsigned nm_mem_class(size_t bytes);

/*
 * A block of any content, 64-byte aligned. Without memory the process ends
 * with a message: nothing here could go on.
 */
void *nm_mem_get(struct nm_mem *m, unsigned class);
void nm_mem_put(struct nm_mem *m, unsigned class, void *block);

#endif
