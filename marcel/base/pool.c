/*
 * Fixed-size objects, cut from slabs.
 */
#include <base/pool.h>

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <base/diag.h>

struct base_pool_slab {
	struct base_pool_slab *next;
	char *objects; /* per_slab of them */
};

static void *next_of(void *object)
{
	void *next;

	memcpy(&next, object, sizeof(next));
	return next;
}

BASE_PUBLIC void base_pool_init(struct base_pool *p, size_t size, size_t align)
{
	if (align < sizeof(void *))
		align = sizeof(void *);
	base_check((align & (align - 1)) == 0);
	memset(p, 0, sizeof(*p));
	p->size = (size + align - 1) & ~(align - 1);
	p->align = align;
	p->per_slab = (unsigned)(16384 / p->size);
	if (p->per_slab < 16)
		p->per_slab = 16;
}

BASE_PUBLIC void base_pool_exit(struct base_pool *p)
{
	struct base_pool_slab *s, *next;

	for (s = load_relaxed(&p->slabs); s != NULL; s = next) {
		next = s->next;
		free(s->objects);
		free(s);
	}
	memset(p, 0, sizeof(*p));
}

static int grow(struct base_pool *p)
{
	struct base_pool_slab *s = malloc(sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->objects = aligned_alloc(p->align, p->per_slab * p->size);
	if (s->objects == NULL) {
		free(s);
		return -ENOMEM;
	}
	memset(s->objects, 0, p->per_slab * p->size);
	s->next = load_relaxed(&p->slabs);
	store_release(&p->slabs, s); /* order(dump): *s, its objects */
	p->ntotal += p->per_slab;
	/* Backwards, so that objects are handed out in address order. */
	for (unsigned i = p->per_slab; i-- > 0;)
		base_pool_put(p, s->objects + i * p->size);
	return 0;
}

BASE_PUBLIC void *base_pool_get(struct base_pool *p)
{
	void *object;

	if (unlikely(p->free == NULL) && grow(p) < 0)
		return NULL;
	object = p->free;
	p->free = next_of(object);
	p->nfree--;
	return object;
}

BASE_PUBLIC void base_pool_put(struct base_pool *p, void *object)
{
	memcpy(object, &p->free, sizeof(void *));
	p->free = object;
	p->nfree++;
}

BASE_PUBLIC void base_pool_walk(const struct base_pool *p,
				void (*fn)(void *object, void *arg), void *arg)
{
	struct base_pool_slab *s = load_acquire(&p->slabs); /* order(dump) */

	for (; s != NULL; s = s->next)
		for (unsigned i = 0; i < p->per_slab; i++)
			fn(s->objects + i * p->size, arg);
}
