/*
 * Descriptors: a pool for the life of the process, a cache per VP.
 *
 * A free descriptor has no name and no keys, so that making a thread touches
 * its first cache line only.
 */
#include "thread.h"

#include <string.h>

#include <base/pool.h>
#include <base/spin.h>
#include "../sched/vp.h"

enum {
	CACHED_MAX = 256, /* free descriptors that a VP keeps */
	CACHED_MOVE = 64, /* how many move to or from the pool at once */
};

/* l: lock. Never ends: late wakes and foreign threads may use descriptors. */
static struct {
	struct base_spin lock;
	struct base_pool pool; /* l: */
	bool is_ready;         /* l: */
} all = { .lock = BASE_SPIN_INIT(BASE_RANK_POOL) };

static struct marcel_thread *get_locked(void)
{
	if (!all.is_ready) {
		base_pool_init(&all.pool, sizeof(struct marcel_thread),
			       BASE_CACHE_LINE);
		all.is_ready = true;
	}
	return base_pool_get(&all.pool);
}

static BASE_COLD struct marcel_thread *refill(struct marcel_vp *vp)
{
	struct marcel_thread *t = NULL, *last;

	base_spin_lock(&all.lock);
	for (int i = 0; vp != NULL && i < CACHED_MOVE - 1; i++) {
		last = get_locked();
		if (last == NULL)
			break;
		last->free = vp->free;
		vp->free = last;
		vp->nfree++;
	}
	t = get_locked();
	base_spin_unlock(&all.lock);
	return t;
}

struct marcel_thread *marcel_thread_get(struct marcel_vp *vp)
{
	struct marcel_thread *t;

	if (unlikely(vp == NULL || vp->free == NULL))
		return refill(vp);
	t = vp->free;
	vp->free = t->free;
	vp->nfree--;
	return t;
}

static BASE_COLD void spill(struct marcel_vp *vp, unsigned n)
{
	struct marcel_thread *t;

	base_spin_lock(&all.lock);
	vp->nfree -= n;
	for (; n > 0; n--) {
		t = vp->free;
		vp->free = t->free;
		base_pool_put(&all.pool, t);
	}
	base_spin_unlock(&all.lock);
}

void marcel_thread_put(struct marcel_vp *vp, struct marcel_thread *t)
{
	store_relaxed(&t->state, MARCEL_T_FREE);
	if (unlikely(marcel_thread_has(t, MARCEL_F_NAMED)))
		store_relaxed(&t->name[0], 0);
	if (unlikely(vp == NULL)) {
		base_spin_lock(&all.lock);
		base_pool_put(&all.pool, t);
		base_spin_unlock(&all.lock);
		return;
	}
	t->free = vp->free;
	vp->free = t;
	if (unlikely(++vp->nfree >= CACHED_MAX))
		spill(vp, CACHED_MOVE);
}

void marcel_thread_flush(struct marcel_vp *vp)
{
	spill(vp, vp->nfree);
}

struct walk {
	void (*fn)(struct marcel_thread *t, void *arg);
	void *arg;
};

static void walk_one(void *object, void *arg)
{
	struct walk *w = arg;

	w->fn(object, w->arg);
}

void marcel_thread_walk(void (*fn)(struct marcel_thread *t, void *arg),
			void *arg)
{
	struct walk w = { fn, arg };

	base_pool_walk(&all.pool, walk_one, &w);
}

void marcel_thread_fork_begin(void)
{
	base_spin_lock(&all.lock);
}

void marcel_thread_fork_end(void)
{
	base_spin_unlock(&all.lock);
}

/* --- names --- */

void marcel_thread_name(struct marcel_thread *t, const char *name)
{
	uint64_t words[BASE_ARRAY_LEN(t->name)] = { 0 };

	strncpy((char *)words, name, sizeof(words) - 1);
	fetch_or_relaxed(&t->flags, MARCEL_F_NAMED);
	for (size_t i = 0; i < BASE_ARRAY_LEN(words); i++)
		store_relaxed(&t->name[i], words[i]);
}

void marcel_thread_get_name(struct marcel_thread *t, char *out)
{
	uint64_t words[BASE_ARRAY_LEN(t->name)];

	for (size_t i = 0; i < BASE_ARRAY_LEN(words); i++)
		words[i] = load_relaxed(&t->name[i]);
	memcpy(out, words, sizeof(words));
	out[sizeof(words) - 1] = 0;
}
