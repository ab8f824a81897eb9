/*
 * Blocks of a few sizes, cut from mapped slabs.
 */
#include "mem.h"

#include <string.h>
#include <sys/mman.h>

#include <base/diag.h>

enum { SLAB_MIN = 256 * 1024, PER_SLAB_MIN = 8, LINE = 64 };

/* Stands at the start of its mapping. */
struct nm_mem_slab {
	struct nm_mem_slab *next;
	size_t bytes;
};

static const uint32_t sizes[NM_MEM_CLASSES] = {
	64,   128,        192,  256,   512,   1024,       2048,
	4096, NM_MEM_PKT, 8192, 16384, 32768, NM_MEM_MAX,
};

void nm_mem_init(struct nm_mem *m)
{
	memset(m, 0, sizeof(*m));
}

void nm_mem_exit(struct nm_mem *m)
{
	struct nm_mem_slab *s, *next;

	for (s = m->slabs; s != NULL; s = next) {
		next = s->next;
		munmap(s, s->bytes);
	}
	memset(m, 0, sizeof(*m));
}

unsigned nm_mem_class(size_t bytes)
{
	unsigned class = 0;

	base_check(bytes <= NM_MEM_MAX);
	while (sizes[class] < bytes)
		class ++;
	return class;
}

static void grow(struct nm_mem *m, unsigned class)
{
	size_t size = sizes[class], bytes = SLAB_MIN;
	struct nm_mem_slab *s;

	if (bytes < PER_SLAB_MIN * size + LINE)
		bytes = PER_SLAB_MIN * size + 4096;
	s = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		base_fatal("nmad",
			   "out of memory: %zu MiB are held for messages "
			   "that nobody has received yet",
			   m->total >> 20);
	s->bytes = bytes;
	s->next = m->slabs;
	m->slabs = s;
	m->total += bytes;
	nm_count(&m->nslabs);
	m->classes[class].fresh = (char *)s + LINE;
	m->classes[class].end = (char *)s + LINE + (bytes - LINE) / size * size;
}

void *nm_mem_get(struct nm_mem *m, unsigned class)
{
	void *block = m->classes[class].free;

	if (block != NULL) {
		memcpy(&m->classes[class].free, block, sizeof(void *));
	} else {
		if (m->classes[class].fresh == m->classes[class].end)
			grow(m, class);
		block = m->classes[class].fresh;
		m->classes[class].fresh += sizes[class];
	}
	m->taken += sizes[class];
	nm_count(&m->nblocks);
	return block;
}

void nm_mem_put(struct nm_mem *m, unsigned class, void *block)
{
	memcpy(block, &m->classes[class].free, sizeof(void *));
	m->classes[class].free = block;
	m->taken -= sizes[class];
}
