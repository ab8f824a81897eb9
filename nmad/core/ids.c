/*
 * Objects by number.
 */
#include "ids.h"

#include <string.h>

#include <base/diag.h>

void nm_ids_init(struct nm_ids *t, struct nm_mem *mem)
{
	memset(t, 0, sizeof(*t));
	t->mem = mem;
}

static struct nm_id *at(struct nm_ids *t, uint32_t i)
{
	return &t->chunks[i / NM_IDS_CHUNK][i % NM_IDS_CHUNK];
}

static int grow(struct nm_ids *t)
{
	size_t bytes = NM_IDS_CHUNK * sizeof(struct nm_id);
	struct nm_id *chunk;

	if (t->n == NM_IDS_CHUNK * NM_IDS_CHUNKS)
		return -1;
	chunk = nm_mem_get(t->mem, nm_mem_class(bytes));
	t->chunks[t->n / NM_IDS_CHUNK] = chunk;
	for (uint32_t i = 0; i < NM_IDS_CHUNK; i++) {
		chunk[i].object = NULL;
		chunk[i].round = 0;
		chunk[i].next = i + 1 < NM_IDS_CHUNK ? t->n + i + 2 : 0;
	}
	t->free = t->n + 1;
	t->n += NM_IDS_CHUNK;
	return 0;
}

uint64_t nm_ids_get(struct nm_ids *t, void *object)
{
	struct nm_id *id;
	uint32_t i;

	if (t->free == 0 && grow(t) < 0)
		return 0;
	i = t->free - 1;
	id = at(t, i);
	t->free = id->next;
	id->object = object;
	if (++id->round == 0)
		id->round = 1;
	return (uint64_t)id->round << 32 | i;
}

void *nm_ids_find(struct nm_ids *t, uint64_t number)
{
	uint32_t i = (uint32_t)number;
	struct nm_id *id;

	if (i >= t->n)
		return NULL;
	id = at(t, i);
	return id->round == number >> 32 ? id->object : NULL;
}

void nm_ids_put(struct nm_ids *t, uint64_t number)
{
	uint32_t i = (uint32_t)number;
	struct nm_id *id = at(t, i);

	base_assert(nm_ids_find(t, number) != NULL);
	id->object = NULL;
	id->next = t->free;
	t->free = i + 1;
}
