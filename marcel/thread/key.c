/*
 * Keys: values of each thread's own.
 *
 * A key has a generation, odd while it exists. A value remembers the
 * generation under which it was set; so deleting a key forgets its values in
 * all threads at once, and nothing has to look for them.
 *
 * A thread's values are one array that grows with the highest key it sets;
 * only the thread itself touches it.
 */
#include <marcel/thread.h>

#include <errno.h>
#include <stdlib.h>

#include <base/atomic.h>
#include <base/compiler.h>
#include "../sched/vp.h"
#include "cancel.h"
#include "thread.h"

/* How many values an array grows by. */
enum { STEP = 8 };

struct key {
	/* a: atomic, relaxed: who uses a key was told of it by its maker */
	ATOMIC(uint64_t) generation;  /* a: odd: it exists */
	ATOMIC(uintptr_t) destructor; /* a: a function's address, or 0 */
};

struct value {
	uint64_t generation;
	void *value;
};

/* o: the thread's own */
struct values {
	unsigned n; /* o: room in v */
	struct value v[];
};

static struct key keys[MARCEL_KEYS_MAX];

static bool exists(uint64_t generation)
{
	return generation & 1;
}

BASE_PUBLIC int marcel_key_create(marcel_key_t *out, void (*destructor)(void *))
{
	if (out == NULL)
		return EINVAL;
	for (marcel_key_t k = 0; k < MARCEL_KEYS_MAX; k++) {
		uint64_t g = load_relaxed(&keys[k].generation);

		if (exists(g) || !cas_relaxed(&keys[k].generation, &g, g + 1))
			continue;
		store_relaxed(&keys[k].destructor, (uintptr_t)destructor);
		*out = k;
		return 0;
	}
	return EAGAIN;
}

/* EINVAL: there is no such key. Its values are forgotten, not destroyed. */
BASE_PUBLIC int marcel_key_delete(marcel_key_t key)
{
	uint64_t g;

	if (key >= MARCEL_KEYS_MAX)
		return EINVAL;
	g = load_relaxed(&keys[key].generation);
	if (!exists(g) || !cas_relaxed(&keys[key].generation, &g, g + 1))
		return EINVAL;
	return 0;
}

/* The array of t, with room for `key`; NULL: no memory. */
static struct values *grow(struct marcel_thread *t, marcel_key_t key)
{
	struct values *old = t->rest->keys, *vs;
	unsigned n = (key / STEP + 1) * STEP, i = old ? old->n : 0;

	vs = realloc(old, sizeof(*vs) + n * sizeof(vs->v[0]));
	if (vs == NULL)
		return NULL;
	for (; i < n; i++)
		vs->v[i] = (struct value){ 0 };
	vs->n = n;
	t->rest->keys = vs;
	fetch_or_relaxed(&t->flags, MARCEL_F_KEYS);
	return vs;
}

BASE_PUBLIC int marcel_setspecific(marcel_key_t key, const void *value)
{
	struct marcel_thread *t = marcel_thread_self();
	struct values *vs = t->rest->keys;
	uint64_t g;

	if (key >= MARCEL_KEYS_MAX)
		return EINVAL;
	g = load_relaxed(&keys[key].generation);
	if (!exists(g))
		return EINVAL;
	if (vs == NULL || key >= vs->n) {
		if (value == NULL)
			return 0;
		vs = grow(t, key);
		if (vs == NULL)
			return ENOMEM;
	}
	vs->v[key] = (struct value){ g, (void *)value };
	return 0;
}

BASE_PUBLIC void *marcel_getspecific(marcel_key_t key)
{
	struct values *vs = marcel_thread_self()->rest->keys;

	if (vs == NULL || key >= vs->n ||
	    vs->v[key].generation != load_relaxed(&keys[key].generation))
		return NULL;
	return vs->v[key].value;
}

/* One round over all values; whether a destructor ran. */
static bool destroy_all(struct marcel_thread *t)
{
	struct values *vs = t->rest->keys;
	void (*destructor)(void *);
	bool ran = false;

	/* A destructor may set values: then the array may move and grow. */
	for (marcel_key_t k = 0; k < vs->n; k++, vs = t->rest->keys) {
		struct value v = vs->v[k];

		vs->v[k].value = NULL;
		if (v.value == NULL ||
		    v.generation != load_relaxed(&keys[k].generation))
			continue;
		destructor =
			(void (*)(void *))load_relaxed(&keys[k].destructor);
		if (destructor == NULL)
			continue;
		destructor(v.value);
		ran = true;
	}
	return ran;
}

void marcel_key_exit(struct marcel_thread *t)
{
	if (t->rest->keys == NULL)
		return;
	marcel_cancel_ends(t);
	for (int i = 0; i < MARCEL_DESTRUCTOR_ITERATIONS; i++)
		if (!destroy_all(t))
			break;
	free(t->rest->keys);
	t->rest->keys = NULL;
	fetch_and_relaxed(&t->flags, (uint16_t)~MARCEL_F_KEYS);
}
