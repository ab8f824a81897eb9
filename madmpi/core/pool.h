/*
 * A pool of MPI objects that all threads use. Each VP has a shelf of its own,
 * under a lock that is never waited for: who finds a shelf busy takes the next
 * one. A shelf that is empty or full exchanges a handful with the store, so
 * that objects freed on one VP come back to the VP that takes them.
 */
#ifndef MADMPI_CORE_POOL_H
#define MADMPI_CORE_POOL_H

#include <base/compiler.h>
#include <base/pool.h>
#include <base/spin.h>

#include "core/object.h"

#define MADMPI_POOL_SHELVES 16
#define MADMPI_POOL_HANDFUL 32

struct madmpi_pool_shelf {
	struct base_spin lock;
	struct madmpi_object *first; /* l: chained by their links */
	unsigned n;                  /* l: */
} BASE_ALIGNED(BASE_CACHE_PAIR);

struct madmpi_pool {
	struct base_spin lock;  /* of the store */
	struct base_pool store; /* l: */
	enum madmpi_kind kind;  /* -: of its objects */
	void (*refilled)(void); /* -: called without a lock, or NULL */
	struct madmpi_pool_shelf shelf[MADMPI_POOL_SHELVES];
};

/* Objects that are given back together: one lock for all of them. */
struct madmpi_pool_chain {
	struct madmpi_object *first, *last;
	unsigned n; /* up to MADMPI_POOL_HANDFUL */
};

void madmpi_pool_init(struct madmpi_pool *p, enum madmpi_kind kind,
		      size_t size);
void madmpi_pool_exit(struct madmpi_pool *p);

/* The one that has been made for this kind of objects, or NULL. */
struct madmpi_pool *madmpi_pool_of(enum madmpi_kind kind);

/* An object with one reference and any content, or NULL: no memory. */
void *madmpi_pool_get(struct madmpi_pool *p);

/* Nobody may use it any more; its handle is found to be freed from now on. */
void madmpi_pool_put(struct madmpi_pool *p, void *object);

/*
 * The same, and its memory is not used again before the chain is put, which is
 * empty then and may be put as such.
 */
void madmpi_pool_put_later(struct madmpi_pool *p, void *object,
			   struct madmpi_pool_chain *chain);
void madmpi_pool_put_chain(struct madmpi_pool *p,
			   struct madmpi_pool_chain *chain);

/* Calls fn for every object in use. Nobody else may use the pool meanwhile. */
void madmpi_pool_walk(struct madmpi_pool *p,
		      void (*fn)(struct madmpi_object *o));

#endif
