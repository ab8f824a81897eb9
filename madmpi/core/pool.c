/*
 * Objects for all threads: shelves per VP before one store.
 */
#include "core/pool.h"

#include <pthread.h>

#include <marcel/marcel.h>

#include "core/number.h"

/* By the last digit of their kind. -: while MPI begins and ends */
static struct madmpi_pool *pools[16];

struct madmpi_pool *madmpi_pool_of(enum madmpi_kind kind)
{
	return pools[kind % BASE_ARRAY_LEN(pools)];
}

void madmpi_pool_init(struct madmpi_pool *p, enum madmpi_kind kind, size_t size)
{
	base_spin_init(&p->lock, BASE_RANK_LEAF);
	base_pool_init(&p->store, size, BASE_CACHE_LINE);
	p->kind = kind;
	pools[kind % BASE_ARRAY_LEN(pools)] = p;
	p->refilled = NULL;
	for (int i = 0; i < MADMPI_POOL_SHELVES; i++) {
		base_spin_init(&p->shelf[i].lock, BASE_RANK_POOL);
		p->shelf[i].first = NULL;
		p->shelf[i].n = 0;
	}
}

void madmpi_pool_exit(struct madmpi_pool *p)
{
	pools[p->kind % BASE_ARRAY_LEN(pools)] = NULL;
	madmpi_pool_walk(p, madmpi_number_drop);
	for (int i = 0; i < MADMPI_POOL_SHELVES; i++)
		p->shelf[i].first = NULL;
	base_pool_exit(&p->store);
}

/* Where the calling thread looks first: only speed depends on it. */
static unsigned home(void)
{
	int vp = marcel_current_vp();

	return vp >= 0 ? (unsigned)vp
		       : (unsigned)((uintptr_t)pthread_self() >> 12);
}

static void shelf_push(struct madmpi_pool_shelf *s, struct madmpi_object *o)
{
	o->link = s->first;
	s->first = o;
	s->n++;
}

static struct madmpi_object *shelf_take(struct madmpi_pool_shelf *s)
{
	struct madmpi_object *o = s->first;

	if (o != NULL) {
		s->first = o->link;
		s->n--;
	}
	return o;
}

static void shelf_fill(struct madmpi_pool *p, struct madmpi_pool_shelf *s)
{
	struct madmpi_object *o;

	base_spin_lock(&p->lock);
	for (int i = 0; i < MADMPI_POOL_HANDFUL; i++) {
		o = base_pool_get(&p->store);
		if (o == NULL)
			break;
		shelf_push(s, o);
	}
	base_spin_unlock(&p->lock);
}

static void shelf_relieve(struct madmpi_pool *p, struct madmpi_pool_shelf *s)
{
	base_spin_lock(&p->lock);
	for (int i = 0; i < MADMPI_POOL_HANDFUL; i++)
		base_pool_put(&p->store, shelf_take(s));
	base_spin_unlock(&p->lock);
}

/* A shelf with its lock held: the caller's own, or the next that is free. */
static struct madmpi_pool_shelf *shelf_lock(struct madmpi_pool *p)
{
	unsigned h = home();
	struct madmpi_pool_shelf *s;

	for (unsigned i = 0; i < MADMPI_POOL_SHELVES; i++) {
		s = &p->shelf[(h + i) % MADMPI_POOL_SHELVES];
		if (base_spin_trylock(&s->lock))
			return s;
	}
	s = &p->shelf[h % MADMPI_POOL_SHELVES];
	base_spin_lock(&s->lock);
	return s;
}

void *madmpi_pool_get(struct madmpi_pool *p)
{
	struct madmpi_pool_shelf *s = shelf_lock(p);
	struct madmpi_object *o;
	bool refill = s->first == NULL;

	if (unlikely(refill))
		shelf_fill(p, s);
	o = shelf_take(s);
	base_spin_unlock(&s->lock);
	if (unlikely(refill && p->refilled != NULL))
		p->refilled();
	if (likely(o != NULL))
		madmpi_object_init(o, p->kind);
	return o;
}

void madmpi_pool_put_chain(struct madmpi_pool *p,
			   struct madmpi_pool_chain *chain)
{
	struct madmpi_pool_shelf *s;

	if (chain->n == 0)
		return;
	s = shelf_lock(p);
	chain->last->link = s->first;
	s->first = chain->first;
	s->n += chain->n;
	if (unlikely(s->n > 4 * MADMPI_POOL_HANDFUL))
		shelf_relieve(p, s);
	base_spin_unlock(&s->lock);
	chain->n = 0;
}

static void append(struct madmpi_pool_chain *chain, struct madmpi_object *o)
{
	madmpi_number_drop(o);
	store_relaxed(&o->kind, MADMPI_FREED);
	if (chain->n++ == 0)
		chain->first = o;
	else
		chain->last->link = o;
	chain->last = o;
}

void madmpi_pool_put_later(struct madmpi_pool *p, void *object,
			   struct madmpi_pool_chain *chain)
{
	append(chain, object);
	if (chain->n == MADMPI_POOL_HANDFUL)
		madmpi_pool_put_chain(p, chain);
}

void madmpi_pool_put(struct madmpi_pool *p, void *object)
{
	struct madmpi_pool_chain chain = { .n = 0 };

	append(&chain, object);
	madmpi_pool_put_chain(p, &chain);
}

/* What base_pool_walk() needs to see only the objects in use. */
struct walk {
	enum madmpi_kind kind;
	void (*fn)(struct madmpi_object *o);
};

static void walk_one(void *object, void *arg)
{
	struct walk *w = arg;
	struct madmpi_object *o = object;

	if (load_relaxed(&o->kind) == (uint32_t)w->kind)
		w->fn(o);
}

void madmpi_pool_walk(struct madmpi_pool *p,
		      void (*fn)(struct madmpi_object *o))
{
	struct walk w = { .kind = p->kind, .fn = fn };

	base_pool_walk(&p->store, walk_one, &w);
}
