/*
 * Fixed-size objects from slabs that are never given back to libc before the
 * pool ends, so that a word inside an object stays a word of such an object
 * (type-stable memory). Not synchronised: whoever owns the pool calls it, but
 * anybody may walk.
 * A freed object keeps its content but for its first word.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include <base/atomic.h>

struct base_pool_slab;

struct base_pool {
	size_t size; /* of an object, rounded up */
	size_t align;
	unsigned per_slab;
	void *free; /* first free object; its first word
		     * links to the next */
	ATOMIC(struct base_pool_slab *) slabs; /* a: for walks; order(dump) */
	size_t nfree, ntotal;                  /* counts of objects */
};

/* align is a power of two; slabs hold at least 16 objects and 16 KiB. */
void base_pool_init(struct base_pool *p, size_t size, size_t align);

/* Give all slabs back. Nothing of the pool may be in use. */
void base_pool_exit(struct base_pool *p);

/* An object of any content, or NULL: no memory. Allocates if none is free. */
void *base_pool_get(struct base_pool *p);

void base_pool_put(struct base_pool *p, void *object);

/* Calls fn for every object ever made, free ones too. Signal-safe. */
void base_pool_walk(const struct base_pool *p,
		    void (*fn)(void *object, void *arg), void *arg);

#endif
