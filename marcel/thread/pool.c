/*
 * Descriptors: slabs for the life of the process, a cache per VP.
 *
 *	slab:  | head | descriptors, a line each ... | their rests ... |
 *
 * A free descriptor has nothing set in its rest, so that making a thread
 *touches one line, and those lines lie side by side. Free descriptors move
 *between VPs in chains, so that nobody touches them on the way: a VP has one
 *that it takes from and adds to, and at most one full one beside it.
 */
#include "thread.h"

#include <string.h>

#include <base/spin.h>
#include "../os/os.h"
#include "../sched/sanitizer.h"
#include "../sched/vp.h"

enum {
	CHAIN = 64, /* descriptors in a full chain */
	SLAB = MARCEL_SLAB,
};

struct marcel_slabs marcel_slabs;

/*
 * l: lock. Never ends: late wakes and foreign threads may use descriptors. A
 * chain is linked by `free`, a list of chains by `chain` of their first.
 */
static struct {
	struct base_spin lock;
	unsigned used;                /* l: descriptors of the newest slab */
	struct marcel_thread *chains; /* l: full ones, or nearly */
	struct marcel_thread *loose;  /* l: the one of foreign threads */
	unsigned nloose;              /* l: */
} all = { .lock = BASE_SPIN_INIT(BASE_RANK_POOL), .used = SLAB };

/* Not from libc, whose allocator must not be called inside: arena.c. */
static bool grow_locked(void)
{
	size_t bytes = sizeof(struct marcel_slab) + BASE_CACHE_LINE +
		       SLAB * (sizeof(struct marcel_thread) +
			       sizeof(struct marcel_thread_rest));
	struct marcel_slab *s = os_map(bytes);
	char *first = (char *)(s + 1);

	if (s == NULL)
		return false;
	marcel_san_root(s, bytes);
	first += -(uintptr_t)first % BASE_CACHE_LINE;
	s->thread = (struct marcel_thread *)first;
	s->rest = (struct marcel_thread_rest *)(s->thread + SLAB);
	s->next = load_relaxed(&marcel_slabs.newest);
	store_relaxed(&marcel_slabs.newest, s);
	all.used = 0;
	return true;
}

/* A chain of up to n that were never used. NULL: no memory. */
static struct marcel_thread *cut_locked(unsigned n)
{
	struct marcel_thread *t, *chain = NULL;
	struct marcel_slab *s;

	if (all.used == SLAB && !grow_locked())
		return NULL;
	s = load_relaxed(&marcel_slabs.newest);
	if (n > SLAB - all.used)
		n = SLAB - all.used;
	for (unsigned i = all.used + n; i-- > all.used; chain = t) {
		t = &s->thread[i];
		t->rest = &s->rest[i];
		t->free = chain;
	}
	all.used += n;
	return chain;
}

/* A full chain, or a shorter one if there is none. NULL: no memory. */
static struct marcel_thread *take_locked(void)
{
	struct marcel_thread *t = all.chains;

	if (t != NULL) {
		all.chains = t->chain;
	} else if (all.loose != NULL) {
		t = all.loose;
		all.loose = NULL;
		all.nloose = 0;
	} else {
		t = cut_locked(CHAIN);
	}
	return t;
}

static void give_locked(struct marcel_thread *chain)
{
	chain->chain = all.chains;
	all.chains = chain;
}

static BASE_COLD struct marcel_thread *get_foreign(void)
{
	struct marcel_thread *t;

	base_spin_lock(&all.lock);
	if (all.loose == NULL) {
		all.loose = take_locked();
		all.nloose = all.loose != NULL ? CHAIN : 0; /* at most */
	}
	t = all.loose;
	if (t != NULL) {
		all.loose = t->free;
		all.nloose--;
	}
	base_spin_unlock(&all.lock);
	return t;
}

static BASE_COLD void put_foreign(struct marcel_thread *t)
{
	base_spin_lock(&all.lock);
	if (all.nloose >= CHAIN) {
		give_locked(all.loose);
		all.loose = NULL;
		all.nloose = 0;
	}
	t->free = all.loose;
	all.loose = t;
	all.nloose++;
	base_spin_unlock(&all.lock);
}

static bool refill(struct marcel_vp *vp)
{
	vp->free = vp->spare;
	vp->spare = NULL;
	if (vp->free == NULL) {
		base_spin_lock(&all.lock);
		vp->free = take_locked();
		base_spin_unlock(&all.lock);
	}
	vp->nfree = vp->free != NULL ? CHAIN : 0; /* at most */
	return vp->free != NULL;
}

struct marcel_thread *marcel_thread_get(struct marcel_vp *vp)
{
	struct marcel_thread *t;

	if (unlikely(vp == NULL))
		return get_foreign();
	if (unlikely(vp->free == NULL) && !refill(vp))
		return NULL;
	t = vp->free;
	vp->free = t->free;
	vp->nfree--;
	__builtin_prefetch(vp->free, 1);
	return t;
}

/* The chain is full: begin another one. */
static void spill(struct marcel_vp *vp)
{
	if (vp->spare != NULL) {
		base_spin_lock(&all.lock);
		give_locked(vp->spare);
		base_spin_unlock(&all.lock);
	}
	vp->spare = vp->free;
	vp->free = NULL;
	vp->nfree = 0;
}

static BASE_COLD void clear_rest(struct marcel_thread *t)
{
	struct marcel_thread_rest *rest = t->rest;

	marcel_thread_no_favour(t);
	store_relaxed(&rest->cancel, 0);
	store_relaxed(&rest->steady, 0);
	store_relaxed(&rest->awaits_io, false);
	store_relaxed(&rest->name[0], 0);
	rest->cleanup = NULL;
	store_relaxed(&rest->cpu_ns, 0);
	store_relaxed(&rest->call, NULL);
}

void marcel_thread_put(struct marcel_vp *vp, struct marcel_thread *t)
{
	if (unlikely(marcel_thread_has(t, MARCEL_F_NAMED | MARCEL_F_USED)))
		clear_rest(t);
	if (unlikely(vp == NULL)) {
		put_foreign(t);
		return;
	}
	if (unlikely(vp->nfree >= CHAIN))
		spill(vp);
	t->free = vp->free;
	vp->free = t;
	vp->nfree++;
}

void marcel_thread_flush(struct marcel_vp *vp)
{
	base_spin_lock(&all.lock);
	if (vp->free != NULL)
		give_locked(vp->free);
	if (vp->spare != NULL)
		give_locked(vp->spare);
	base_spin_unlock(&all.lock);
	vp->free = vp->spare = NULL;
	vp->nfree = 0;
}

void marcel_thread_walk(void (*fn)(struct marcel_thread *t, void *arg),
			void *arg)
{
	struct marcel_slab *s = load_relaxed(&marcel_slabs.newest);

	for (; s != NULL; s = s->next)
		for (unsigned i = 0; i < SLAB; i++)
			if (s->thread[i].rest != NULL) /* was ever used */
				fn(&s->thread[i], arg);
}

int marcel_thread_visit(int (*fn)(struct marcel_thread *t, void *arg),
			void *arg)
{
	struct marcel_slab *s;
	unsigned used;
	int rc = 0;

	base_spin_lock(&all.lock);
	s = load_relaxed(&marcel_slabs.newest);
	used = all.used;
	base_spin_unlock(&all.lock);
	for (; s != NULL; s = s->next, used = SLAB)
		for (unsigned i = 0; i < used; i++)
			if (s->thread[i].rest != NULL && /* or forked */
			    (rc = fn(&s->thread[i], arg)) != 0)
				return rc;
	return rc;
}

/*
 * Nobody holds the lock while it forks: libc may wait there for a thread that
 * needs a descriptor. So who held it is not here, and what was in the lists is
 * given up.
 */
void marcel_thread_forked(void)
{
	base_spin_init(&all.lock, BASE_RANK_POOL);
	all.chains = all.loose = NULL;
	all.nloose = 0;
	all.used = SLAB;
}

/* --- names --- */

void marcel_thread_name(struct marcel_thread *t, const char *name)
{
	uint64_t words[BASE_ARRAY_LEN(t->rest->name)] = { 0 };

	strncpy((char *)words, name, sizeof(words) - 1);
	fetch_or_relaxed(&t->flags, MARCEL_F_NAMED);
	for (size_t i = 0; i < BASE_ARRAY_LEN(words); i++)
		store_relaxed(&t->rest->name[i], words[i]);
}

void marcel_thread_get_name(struct marcel_thread *t, char *out)
{
	uint64_t words[BASE_ARRAY_LEN(t->rest->name)];

	for (size_t i = 0; i < BASE_ARRAY_LEN(words); i++)
		words[i] = load_relaxed(&t->rest->name[i]);
	memcpy(out, words, sizeof(words));
	out[sizeof(words) - 1] = 0;
}
